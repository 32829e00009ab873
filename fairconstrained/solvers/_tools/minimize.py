"""Minimisation of a smooth function over a domain."""

from __future__ import annotations

from collections import deque

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
from fairconstrained.utils.typing import Array


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

    The method is L-BFGS on the whole space, scipy's L-BFGS-B in boxes, and the spectral projected
    gradient method in other domains.

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
        The approximation that L-BFGS begins with on the whole space; the pairs of this run are
        added to it.
    stop : callable, default=never
        Called before every iteration; the run ends if it returns True.
    """
    bounds = domain.bounds(w.size)
    if bounds is None:
        return spectral_projected_gradient(
            function, w, domain, tol=tol, max_iter=max_iter, stop=stop
        )
    scale = np.ones_like(w) if preconditioner is None else preconditioner
    if np.all(np.isinf(bounds)):
        return minimize_lbfgs(
            function, w, tol=tol, max_iter=max_iter, preconditioner=scale,
            inverse_hessian=InverseHessian() if inverse_hessian is None else inverse_hessian,
            stop=stop,
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
        if not np.array_equal(self._latest.w, w):
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

    options = {
        "maxcor": 20,
        "maxiter": max_iter,
        "maxfun": 2 * max_iter,
        "gtol": 0.0,
        "ftol": 0.0,
        "maxls": 30,
    }
    found = minimize(  # type: ignore[call-overload]  # the stubs do not know jac=True with bounds
        scaled,
        w / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack(bounds) / scale[:, None],
        callback=stop_when_small,
        options=options,
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


def spectral_projected_gradient(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    stop: Stop = never,
) -> Array:
    """Minimise over a domain by projected gradient steps of Barzilai and Borwein's length.

    References
    ----------
    E. Birgin, J. Martinez, M. Raydan, "Nonmonotone spectral projected gradient methods on convex
    sets", SIAM Journal on Optimization 10 (2000).
    """
    value, gradient = function(w)
    recent = deque([value], maxlen=10)
    best, best_value = w, value
    step = 1.0 / max(float(np.linalg.norm(gradient)), 1e-12)
    for _ in range(max_iter):
        if np.linalg.norm(domain.normal_cone_residual(w, gradient)) <= tol:
            return w
        if stop():
            return best
        direction = domain.project(w - step * gradient) - w
        slope, fraction = float(gradient @ direction), 1.0
        while True:
            trial = w + fraction * direction
            trial_value, trial_gradient = function(trial)
            if trial_value <= max(recent) + 1e-4 * fraction * slope or fraction < 1e-10:
                break
            fraction *= 0.5
        moved, turned = trial - w, trial_gradient - gradient
        bend = float(moved @ turned)
        step = float(np.clip(moved @ moved / bend, 1e-10, 1e10)) if bend > 0 else 1e10
        w, value, gradient = trial, trial_value, trial_gradient
        recent.append(value)
        if value < best_value:
            best, best_value = w, value
    return best
