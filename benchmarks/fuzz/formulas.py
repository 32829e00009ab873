"""Losses, surrogates and penalties in NumPy, independent of the library's."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

Array = np.ndarray
Function = Callable[[Array], Array]
PAIR_LOSSES = ("auc", "pairwiseloss", "partialauc")
_LOSSES: dict[str, Function] = {
    "logistic": lambda t: np.logaddexp(0.0, -np.asarray(t)),
    "hinge": lambda t: np.maximum(0.0, 1.0 - np.asarray(t)),
    "squaredhinge": lambda t: np.maximum(0.0, 1.0 - np.asarray(t)) ** 2 / 2.0,
    "quadratic": lambda t: (1.0 - np.asarray(t)) ** 2 / 2.0,
}


def kind_of(value: Any) -> str:
    """Return the lower-case name of a function given by name or as an object."""
    return (value if isinstance(value, str) else type(value).__name__).lower().replace("_", "")


def surrogate_of(value: Any, *, sharp: bool = False) -> Function:
    """Return the surrogate of 1{s > 0}; with `sharp` the sigmoid by name has scale 0.25."""
    kind, scale = kind_of(value), float(getattr(value, "scale", 1.0))
    if kind == "sigmoid":
        tau = 0.25 if sharp and isinstance(value, str) else scale
        return lambda t: expit(np.asarray(t) / tau)
    if kind == "ramp":
        return lambda t: np.clip(np.asarray(t) / scale + 0.5, 0.0, 1.0)
    if kind in ("quadratic", "shiftedsquare"):
        return lambda t: (1.0 + np.asarray(t)) ** 2 / 2.0
    raise LookupError(f"unknown surrogate {value!r}")


def loss_of(value: Any) -> Function:
    """Return a loss of the margin."""
    if kind_of(value) == "truncatedlogistic":
        level = float(getattr(value, "alpha", 2.0))
        return lambda t: level * np.log1p(np.logaddexp(0.0, -np.asarray(t)) / level)
    return _LOSSES[kind_of(value)]


def pair_mean(function: Function, first: tuple[Array, Array], second: tuple[Array, Array]) -> float:
    """Return the weighted mean of a function of s_i - s_j over pairs of two sets of rows."""
    (s, u), (t, v) = first, second
    blocks = np.array_split(np.arange(len(s)), len(s) // 500 + 1)
    total = sum(u[block] @ function(s[block][:, None] - t[None, :]) @ v for block in blocks)
    return float(total / (u.sum() * v.sum()))


def _partial_auc_loss(up: tuple, down: tuple, pair: Function, ranks: tuple) -> float:
    """Return the mean loss of pairs whose negative ranks in a range among the negatives."""
    (s, a), (t, b), (low, high) = up, down, ranks
    order = np.argsort(-t, kind="stable")
    shares = b[order] / b.sum()
    ends = np.cumsum(shares)
    inside = np.minimum(ends, high) - np.maximum(ends - shares, low)
    losses = a / a.sum() @ pair(s[:, None] - t[order][None, :])
    return float(np.maximum(inside, 0.0) @ losses) / (high - low)


def mean_loss(loss: Any, scores: Array, y: Array, weight: Array) -> float:
    """Return the loss that an estimator minimises, of the margin or of pairs."""
    kind = kind_of(loss)
    if kind not in PAIR_LOSSES:
        return float(np.average(loss_of(loss)(y * scores), weights=weight))
    up, down = ((scores[rows], weight[rows]) for rows in (y > 0, y < 0))
    pair = loss_of(getattr(loss, "loss", "hinge" if kind == "partialauc" else "quadratic"))
    if kind == "partialauc":
        return _partial_auc_loss(up, down, pair, getattr(loss, "ranks", (0.0, 0.3)))
    return pair_mean(pair, up, down)


def penalty(alpha: Any, scaled: Array) -> float:
    """Return the penalty of coefficients, each times the scale of its feature."""
    size, strength = np.abs(np.ravel(scaled)), float(getattr(alpha, "alpha", alpha))
    if kind_of(alpha) == "l1":
        return float(strength * size.sum())
    if kind_of(alpha) == "scad":
        bend = np.where(size <= 2.0, -(size**2) + 4.0 * size - 1.0, 3.0)
        return float(strength * np.where(size <= 1.0, 2.0 * size, bend).sum())
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
