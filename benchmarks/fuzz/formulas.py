"""Losses, surrogates, penalties and averages of groups in NumPy, independent of the library's.

Also the rows that constraints see, and what is returned of a constraint.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


class NotMeasured(Exception):
    """There is no independent formula for this setting (it depends on another fit)."""


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


@dataclass(frozen=True, eq=False)
class Measured:
    """How far outputs are above their bounds, and the largest gap (nan where there is none)."""

    excess: Array
    gap: float

    @property
    def violation(self) -> float:
        """The largest excess, at least 0."""
        return float(np.max(self.excess, initial=0.0))


NOTHING = Measured(np.zeros(0), np.nan)


def joined(parts: list[Measured]) -> Measured:
    """Return several constraints as one."""
    gaps = [part.gap for part in parts if not np.isnan(part.gap)]
    return Measured(
        np.concatenate([[], *(part.excess for part in parts)]), max(gaps, default=np.nan)
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of positive weight: labels -1 and +1, weights, and codes of the sensitive columns.

    A code of -1 is a row that is in no group. `kappa`, `surrogate` and `loss` are the estimator's,
    for constraints that have none of their own.
    """

    y: Array
    weight: Array
    codes: Array
    combine: str = "intersection"
    kappa: float = 0.05
    surrogate: Any = "sigmoid"
    loss: Any = "logistic"

    @property
    def marginal(self) -> bool:
        """Whether every column is a grouping of its own."""
        return self.combine == "marginal" and self.codes.shape[1] > 1

    def groupings(self, *, crossed: bool) -> Iterator[tuple[Array, Array]]:
        """Yield, for every grouping, the rows whose group is known and their groups."""
        if self.marginal and not crossed:
            for column in self.codes.T:
                yield np.flatnonzero(column >= 0), column[column >= 0]
        else:
            known = self.codes >= 0  # of groups of all columns in any, of crossed ones in all
            rows = np.flatnonzero(known.any(axis=1) if self.marginal else known.all(axis=1))
            yield rows, np.unique(self.codes[rows], axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Bound:
    """A constraint, the rows of one grouping with their groups, and which version is measured."""

    constraint: Any
    rows: Rows
    groups: Array
    decisions: bool

    @property
    def kappa(self) -> float:
        """The tolerance."""
        given = getattr(self.constraint, "kappa", None)
        return float(self.rows.kappa if given is None else given)

    def decide(self, *, sharp: bool = False) -> Function:
        """Return the surrogate, or the decision 1{t > 0}."""
        if self.decisions:
            return lambda t: (np.asarray(t) > 0.0).astype(float)
        given = getattr(self.constraint, "surrogate", None)
        return surrogate_of(self.rows.surrogate if given is None else given, sharp=sharp)

    def averages(self, values: Array, event: Array | None = None) -> tuple[Array, Array]:
        """Return the mean of every group that has rows in an event, and its weight there."""
        event = np.ones(len(values), dtype=bool) if event is None else event
        inside = [event & (self.groups == name) for name in np.unique(self.groups[event])]
        mass = np.array([self.rows.weight[i].sum() for i in inside])
        sums = np.array([self.rows.weight[i] @ values[i] for i in inside])
        return sums / mass, mass

    def compare(self, gaps: Any) -> Measured:
        """Return differences less kappa, and the largest of them."""
        gaps = np.asarray(gaps)
        return Measured(gaps - self.kappa, float(gaps.max())) if gaps.size else NOTHING
