"""Losses, surrogates and penalties in a few lines of NumPy, independent of the library's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

Array = np.ndarray
Function = Callable[[Array], Array]


def _kind(value: Any) -> str:
    """Return the lower-case name of a function given by name or as an object."""
    return (value if isinstance(value, str) else type(value).__name__).lower().replace("_", "")


def surrogate_of(value: Any, *, sharp: bool = False) -> Function:
    """Return the surrogate of 1{s > 0}; with `sharp` the sigmoid by name has scale 0.25."""
    kind, scale = _kind(value), float(getattr(value, "scale", 1.0))
    if kind == "sigmoid":
        tau = 0.25 if sharp and isinstance(value, str) else scale
        return lambda t: expit(np.asarray(t) / tau)
    if kind == "ramp":
        return lambda t: np.minimum(np.maximum(np.asarray(t) / scale + 0.5, 0.0), 1.0)
    if kind in ("quadratic", "shiftedsquare"):
        return lambda t: (1.0 + np.asarray(t)) ** 2 / 2.0
    raise LookupError(f"unknown surrogate {value!r}")


def positive(t: Array) -> Array:
    """Return the decision 1{t > 0}."""
    return (np.asarray(t) > 0.0).astype(float)


def above(t: Array) -> Array:
    """Return 1{t > 0} + 1{t = 0} / 2, which counts ties of pairs half."""
    return 0.5 * (np.sign(np.asarray(t)) + 1.0)


def errors(scores: Array, y: Array) -> Array:
    """Return whether decisions differ from the labels; a score of 0 is decided as negative."""
    return ((np.asarray(scores) > 0.0) != (y > 0)).astype(float)


def loss_of(value: Any) -> Function:
    """Return a loss of the margin."""
    kind = _kind(value)
    if kind == "truncatedlogistic":
        level = float(getattr(value, "alpha", 2.0))
        return lambda t: level * np.log1p(np.logaddexp(0.0, -np.asarray(t)) / level)
    return _LOSSES[kind]


_LOSSES: dict[str, Function] = {
    "logistic": lambda t: np.logaddexp(0.0, -np.asarray(t)),
    "hinge": lambda t: np.maximum(0.0, 1.0 - np.asarray(t)),
    "squaredhinge": lambda t: np.maximum(0.0, 1.0 - np.asarray(t)) ** 2 / 2.0,
    "quadratic": lambda t: (1.0 - np.asarray(t)) ** 2 / 2.0,
}
SMOOTH_LOSSES = ("logistic", "truncatedlogistic", "squaredhinge", "quadratic")


def is_smooth_loss(value: Any) -> bool:
    """Return whether a loss is a smooth function of the margin."""
    return _kind(value) in SMOOTH_LOSSES


def determines_intercept(loss: Any) -> bool:
    """Return whether a loss changes if a number is added to all scores: not so for pairs."""
    return _kind(loss) not in ("auc", "pairwiseloss", "partialauc")


def pair_mean(function: Function, first: tuple[Array, Array], second: tuple[Array, Array]) -> float:
    """Return the weighted mean of a function of s_i - s_j over pairs of two sets of rows."""
    (s, u), (t, v) = first, second
    total = 0.0
    for start in range(0, len(s), 500):
        block = slice(start, start + 500)
        total += float(u[block] @ function(s[block][:, None] - t[None, :]) @ v)
    return total / float(u.sum() * v.sum())


def _auc_loss(scores: Array, y: Array, weight: Array, pair: Function) -> float:
    up, down = y > 0, y < 0
    return pair_mean(pair, (scores[up], weight[up]), (scores[down], weight[down]))


def _partial_auc_loss(
    scores: Array, y: Array, weight: Array, pair: Function, ranks: tuple[float, float]
) -> float:
    """Return the mean loss of pairs whose negative ranks in a range among the negatives."""
    up, down = y > 0, y < 0
    a, b = weight[up] / weight[up].sum(), weight[down] / weight[down].sum()
    order = np.argsort(-scores[down], kind="stable")
    ends = np.cumsum(b[order])
    starts = ends - b[order]
    low, high = ranks
    inside = np.minimum(ends, high) - np.maximum(starts, low)
    losses = a @ pair(scores[up][:, None] - scores[down][order][None, :])
    return float(np.maximum(inside, 0.0) @ losses) / (high - low)


def mean_loss(loss: Any, scores: Array, y: Array, weight: Array) -> float:
    """Return the loss that an estimator minimises, of the margin or of pairs."""
    kind = _kind(loss)
    if kind in ("auc", "pairwiseloss"):
        return _auc_loss(scores, y, weight, loss_of(getattr(loss, "loss", "quadratic")))
    if kind in ("partialauc",):
        ranks = getattr(loss, "ranks", (0.0, 0.3))
        pair = loss_of(getattr(loss, "loss", "hinge"))
        return _partial_auc_loss(scores, y, weight, pair, ranks)
    return float(np.average(loss_of(loss)(y * scores), weights=weight))


def penalty(alpha: Any, scaled: Array) -> float:
    """Return the penalty of coefficients, each times the scale of its feature."""
    size = np.abs(np.ravel(scaled))
    kind = _kind(alpha) if not isinstance(alpha, float | int) else "number"
    if kind == "l1":
        return float(alpha.alpha * size.sum())
    if kind == "scad":
        bend = np.where(size <= 2.0, -(size**2) + 4.0 * size - 1.0, 3.0)
        return float(alpha.alpha * np.where(size <= 1.0, 2.0 * size, bend).sum())
    strength = float(alpha) if kind == "number" else alpha.alpha
    return float(strength * (size @ size) / 2.0)


def feature_scale(X: Array, weight: Array) -> Array:
    """Return the scale of each column.

    That is the distance of two values, |value| of a constant, the root mean square of the distance
    from a value with more than half of the weight, else the standard deviation.
    """
    scale = np.ones(X.shape[1])
    for k, column in enumerate(X.T):
        values, places = np.unique(column, return_inverse=True)
        mass = np.bincount(places, weight)
        if len(values) == 1:
            scale[k] = abs(values[0]) or 1.0
        elif len(values) == 2:
            scale[k] = values[1] - values[0]
        elif mass.max() > (0.5 + 1e-9) * mass.sum():
            distances = column - values[np.argmax(mass)]
            scale[k] = np.sqrt(np.average(distances**2, weights=weight * (distances != 0.0)))
        else:
            mean = np.average(column, weights=weight)
            scale[k] = np.sqrt(np.average((column - mean) ** 2, weights=weight))
    return scale
