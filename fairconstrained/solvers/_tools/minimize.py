"""Minimisation of one smooth function over a domain: what the augmented Lagrangian calls."""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from fairconstrained.domains import Domain
from fairconstrained.solvers._tools.lbfgs import Function, Memory, Stop, minimize_lbfgs, never
from fairconstrained.utils.typing import Array


def minimize_smooth(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    units: Array | None = None,
    memory: Memory | None = None,
    stop: Stop = never,
) -> Array:
    """Return a point of the domain whose projected gradient has a norm of at most `tol`.

    On the whole space by L-BFGS; boxes are left to scipy's L-BFGS-B, other domains to the spectral
    projected gradient method.

    Parameters
    ----------
    function : callable
        w -> (value, gradient).
    w : ndarray of shape (n_variables,)
        The first point, in the domain.
    domain : Domain
        Where to minimise.
    tol : float
        The norm at which to stop. It may not be reached within `max_iter` or in floating point:
        the caller measures the outcome.
    max_iter : int
        The largest number of iterations.
    units : ndarray of shape (n_variables,) or None, default=None
        L-BFGS works in the variables w / units; None stands for ones.
    memory : Memory or None, default=None
        What L-BFGS knows of the curvature, on the whole space; it is added to.
    stop : callable, default=never
        Asked before every iteration whether to return at once.
    """
    bounds = domain.bounds(w.size)
    if bounds is None:
        return spectral_projected_gradient(
            function, w, domain, tol=tol, max_iter=max_iter, stop=stop
        )
    unit = np.ones_like(w) if units is None else units
    if np.all(np.isinf(bounds)):
        memory = Memory() if memory is None else memory
        return minimize_lbfgs(
            function, w, tol=tol, max_iter=max_iter, units=unit, memory=memory, stop=stop
        )
    return _minimize_in_box(function, w, domain, tol=tol, max_iter=max_iter, unit=unit, stop=stop)


def _minimize_in_box(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    unit: Array,
    stop: Stop,
) -> Array:
    """Minimise over a box by scipy's L-BFGS-B."""
    recorded, bounds = _Recorded(function, domain), domain.bounds(w.size)
    assert bounds is not None
    if recorded.residual_at(w) <= tol:
        return w

    def in_units(u: Array) -> tuple[float, Array]:
        value, gradient = recorded(unit * u)
        return value, unit * gradient

    def stop_when_small(intermediate_result: OptimizeResult) -> None:
        if recorded.residual_at(unit * intermediate_result.x) <= tol or stop():
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
        in_units,
        w / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack(bounds) / unit[:, None],
        callback=stop_when_small,
        options=options,
    )
    return np.clip(unit * found.x, *bounds)


class _Recorded:
    """A function that keeps its latest evaluation."""

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
