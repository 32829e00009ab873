"""Minimisation of a smooth function over a domain."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from fairconstrained.domains import Domain
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.solvers._tools.lbfgs import (
    Function,
    InverseHessian,
    Stop,
    minimize_lbfgs,
    never,
)
from fairconstrained.solvers._tools.projected import ProjectedSteps
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

# The callback stops the run, at the norm of the projected gradient.
_BOX_OPTIONS = {"maxcor": 20, "gtol": 0.0, "ftol": 0.0, "maxls": 30}


def minimize_smooth(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    preconditioner: Array | None = None,
    inverse_hessian: InverseHessian | None = None,
    stop: Stop = never,
) -> Array:
    """Return a point of the domain whose projected gradient has a norm of at most `tol`.

    The method is L-BFGS on the whole space, scipy's L-BFGS-B in boxes, and the projected
    quasi-Newton method in other domains.

    Parameters
    ----------
    function : callable
        w -> (value, gradient).
    w : ndarray of shape (n_variables,)
        The first point, in the domain.
    domain : Domain
        The feasible set.
    tol : float
        The norm at which to stop. It may not be reached within `max_iter` iterations or in
        floating point; the caller measures the outcome.
    max_iter : int
        The largest number of iterations.
    preconditioner : ndarray of shape (n_variables,) or None, default=None
        L-BFGS works in the variables w / preconditioner; None means ones.
    inverse_hessian : InverseHessian or None, default=None
        The approximation that the method begins with, except in boxes; the pairs of this run are
        added to it.
    stop : callable, default=never
        Called before every iteration; the run ends if it returns True.
    """
    bounds = domain.bounds(w.size)
    scale = np.ones_like(w) if preconditioner is None else preconditioner
    if bounds is None or np.all(np.isinf(bounds)):
        return minimize_lbfgs(
            function, w, tol=tol, max_iter=max_iter, preconditioner=scale,
            inverse_hessian=InverseHessian() if inverse_hessian is None else inverse_hessian,
            stop=stop, steps=None if bounds is not None else ProjectedSteps(domain),
        )  # fmt: skip
    return _minimize_in_box(function, w, domain, tol=tol, max_iter=max_iter, scale=scale, stop=stop)


class LatestEvaluation:
    """Evaluates a problem and keeps the latest evaluation, which is often asked for again.

    Parameters
    ----------
    first : Evaluation
        The problem at the first point.
    """

    def __init__(self, first: Evaluation):
        self._latest = first

    def at(self, w: Array) -> Evaluation:
        """Return the evaluation at `w`."""
        if not same_values(self._latest.w, w):
            self._latest = self._latest.problem.at(w.copy())
        return self._latest


def _minimize_in_box(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    scale: Array,
    stop: Stop,
) -> Array:
    """Minimise over a box by scipy's L-BFGS-B."""
    recorded, bounds = _Recorded(function, domain), domain.bounds(w.size)
    assert bounds is not None
    if recorded.residual_at(w) <= tol:
        return w

    def scaled(u: Array) -> tuple[float, Array]:
        value, gradient = recorded(scale * u)
        return value, scale * gradient

    def stop_when_small(intermediate_result: OptimizeResult) -> None:
        if recorded.residual_at(scale * intermediate_result.x) <= tol or stop():
            raise StopIteration

    found = minimize(  # type: ignore[call-overload]  # the stubs do not know jac=True with bounds
        scaled,
        w / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack(bounds) / scale[:, None],
        callback=stop_when_small,
        options={**_BOX_OPTIONS, "maxiter": max_iter, "maxfun": 2 * max_iter},
    )
    return np.clip(scale * found.x, *bounds)


class _Recorded:
    """A function that keeps its latest value and gradient."""

    def __init__(self, function: Function, domain: Domain):
        self.function = function
        self.domain = domain
        self.w: Array | None = None

    def __call__(self, w: Array) -> tuple[float, Array]:
        if self.w is None or not np.array_equal(w, self.w):
            self.value, self.gradient = self.function(w)
            self.w = np.array(w)
        return self.value, self.gradient

    def residual_at(self, w: Array) -> float:
        """Return the norm of the projected gradient."""
        gradient = self(w)[1]
        return float(np.linalg.norm(self.domain.normal_cone_residual(w, gradient)))
