"""Minimisation of a smooth function over a domain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from fairconstrained.domains import Domain
from fairconstrained.solvers._tools.lbfgs import InverseHessian, norm
from fairconstrained.utils.typing import Array

Function = Callable[[Array], tuple[float, Array]]

_ARMIJO = 1e-4  # sufficient decrease: part of the decrease that the slope predicts
_ROUNDING = 1e-14  # relative: smaller differences of values are rounding errors
_MAX_TRIALS = 20  # evaluations in one line search
# The callback stops the run, at the norm of the projected gradient.
_BOX_OPTIONS = {"maxcor": 20, "gtol": 0.0, "ftol": 0.0, "maxls": 30}
_MOST_PROJECTED = 100  # steps in a round: where they are slow, new multipliers help more
_WINDOW = 10  # steps within which the value must fall


def minimize_smooth(
    function: Function,
    w: Array,
    domain: Domain,
    *,
    tol: float,
    max_iter: int,
    diagonal: Array,
    hessian: InverseHessian,
    stop: Callable[[], bool],
) -> Array:
    """Return a point of the domain whose projected gradient has a norm of at most `tol`.

    On the whole space directions are those of L-BFGS, in boxes scipy's L-BFGS-B is called. In other
    domains directions lead to the projection of a gradient step of Barzilai and Borwein's length,
    and values need only fall below the largest of the last ten (Birgin, Martinez and Raydan).

    Parameters
    ----------
    function : callable
        w -> (value, gradient). The value may be infinite outside an open set that contains the
        first point; the gradient there is not used.
    w : ndarray of shape (n_variables,)
        The first point, in the domain.
    domain : Domain
        The feasible set.
    tol : float
        The norm at which to stop. It may not be reached within `max_iter` iterations or in
        floating point; the caller measures the outcome.
    max_iter : int
        The largest number of iterations.
    diagonal : ndarray of shape (n_variables,)
        The inverse Hessian before there are pairs.
    hessian : InverseHessian
        The approximation to begin with; the pairs of this run are added to it.
    stop : callable
        Called before every iteration; the run ends if it returns True.

    References
    ----------
    E. Birgin, J. Martinez, M. Raydan, "Nonmonotone spectral projected gradient methods on convex
    sets", SIAM Journal on Optimization 10 (2000).
    """
    whole, bounds = domain.whole_space, domain.bounds(w.size)
    if bounds is not None and not whole:
        return _in_box(function, w, domain, bounds, tol, max_iter, np.sqrt(diagonal), stop)
    value, gradient = function(w)
    best, least, reached = w, value, np.inf  # the least value when the present window began
    recent = deque([value], maxlen=1 if whole else _WINDOW)
    length = 1.0 / max(norm(gradient), 1e-12)
    for k in range(max_iter if whole else min(max_iter, _MOST_PROJECTED)):
        if norm(domain.normal_cone_residual(w, gradient)) <= tol or not np.isfinite(value):
            return w
        if k % _WINDOW == 0:
            if least >= reached - _ROUNDING * abs(reached):
                break
            reached = least
        if stop():
            break
        if whole:
            direction = -hessian.apply(gradient, diagonal)
        else:
            direction = domain.project(w - length * gradient) - w
        scaled = len(hessian) > 0 or not whole
        moved = _line_search(function, w, gradient, direction, max(recent), scaled)
        if moved is None:
            if not len(hessian):
                break
            hessian.clear()  # pairs of another function can mislead
            continue
        step, change = moved[0] - w, moved[2] - gradient
        if whole:
            hessian.add(step, change)
        else:
            bend = float(step @ change)
            length = min(max(float(step @ step) / bend, 1e-10), 1e10) if bend > 0.0 else 1e10
        w, value, gradient = moved
        recent.append(value)
        if value < least:
            best, least = w, value
    return best


def _line_search(
    function: Function, w: Array, gradient: Array, direction: Array, level: float, scaled: bool
) -> tuple[Array, float, Array] | None:
    """Return a point that is low enough with its value and gradient, None if there is none.

    The value may rise by rounding errors if the slope shows that the point is nearer the minimum
    (Hager and Zhang's approximate Wolfe condition).
    """
    slope = float(direction @ gradient)
    if slope >= 0.0:
        return None
    length = 1.0 if scaled else min(1.0, 1.0 / np.sqrt(-slope))
    for _ in range(_MAX_TRIALS):
        moved = w + length * direction
        value, turned = function(moved)
        rise, after = value - level, float(direction @ turned)
        near = rise <= _ROUNDING * abs(level) and abs(after) <= -slope
        if np.isfinite(value) and (rise <= _ARMIJO * length * slope or near):
            return moved, value, turned
        secant = slope / (slope - after) if np.isfinite(value) and after > slope else 0.5
        length *= min(max(secant, 0.1), 0.5)
    return None


def _in_box(
    function: Function,
    w: Array,
    domain: Domain,
    bounds: tuple[Array, Array],
    tol: float,
    max_iter: int,
    scale: Array,
    stop: Callable[[], bool],
) -> Array:
    """Return the point that L-BFGS-B finds in the variables w / scale."""

    def point(u: Array) -> Array:
        return np.clip(scale * u, *bounds)

    def scaled(u: Array) -> tuple[float, Array]:
        value, gradient = function(point(u))
        return value, scale * gradient

    def end(intermediate_result: OptimizeResult) -> None:
        at = point(intermediate_result.x)
        if norm(domain.normal_cone_residual(at, function(at)[1])) <= tol or stop():
            raise StopIteration

    if norm(domain.normal_cone_residual(w, function(w)[1])) <= tol:
        return w
    found = minimize(  # type: ignore[call-overload]  # the stubs do not know jac=True with bounds
        scaled,
        w / scale,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack(bounds) / scale[:, None],
        callback=end,
        options={**_BOX_OPTIONS, "maxiter": max_iter, "maxfun": 2 * max_iter},
    )
    return point(found.x)
