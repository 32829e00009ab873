"""Whether a method's point lies above our frontier: the same fairness, the same splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.harness.intervals import LEAST_SPLITS, jackknife_half_width

Splits = tuple[int, ...]
_ROUNDING = 1e-9


class Outcome(StrEnum):
    """What a comparison says about ours."""

    AHEAD = "ahead"
    LEVEL = "level"
    BEHIND = "**behind**"
    BEYOND = "fairer than any of ours, and less accurate"
    FEW = "too few splits"


def by_outcome(counts: Mapping[Outcome, int]) -> dict[str, int]:
    """Return the columns of a table that counts comparisons."""
    return {
        "ours ahead": counts[Outcome.AHEAD],
        "level": counts[Outcome.LEVEL],
        "ours behind": counts[Outcome.BEHIND],
        "fairer, less accurate": counts[Outcome.BEYOND],
    }


@dataclass(frozen=True, eq=False)
class Point:
    """A model with a setting, measured on several splits.

    Attributes
    ----------
    accuracy : dict
        For every split.
    fairness : callable
        Returns the fairness on some splits, the larger the fairer.
    """

    accuracy: Mapping[int, float]
    fairness: Callable[[Splits], float]

    def at(self, splits: Splits) -> tuple[float, float]:
        """Return fairness and mean accuracy on some splits."""
        return self.fairness(splits), float(np.mean([self.accuracy[k] for k in splits]))


@dataclass(frozen=True)
class Comparison:
    """Ours at the fairness of another method's point.

    Attributes
    ----------
    gain : float
        The mean accuracy of ours less that of the other.
    noise : float
        Half the 95% interval of that: accuracy and fairness both vary between splits.
    n_splits : int
        The splits that both have.
    outcome : Outcome
        What that says.
    """

    gain: float
    noise: float
    n_splits: int
    outcome: Outcome


def compare_at(point: Point, ours: Sequence[Point], test_to_train: float) -> Comparison:
    """Return the comparison of a point with our frontier.

    Ours is interpolated between its points, and constant beyond the ends; a fairer model of ours
    serves where less is asked. The splits are those that the point and all of ours have; points of
    ours with too few splits for an interval are left out.

    Parameters
    ----------
    point : Point
        The other method's.
    ours : sequence of Point
        Ours, at least one.
    test_to_train : float
        The number of test rows divided by that of training rows.
    """
    many = [set(one.accuracy) for one in ours if len(one.accuracy) >= LEAST_SPLITS]
    known = many or [set(max((one.accuracy for one in ours), key=len))]
    splits = tuple(sorted(set(point.accuracy).intersection(*known)))
    if not splits:
        return Comparison(float("nan"), float("inf"), 0, Outcome.FEW)
    usable = [one for one in ours if set(splits) <= set(one.accuracy)]

    def gain(some: Splits) -> float:
        return _gain(point.at(some), [one.at(some) for one in usable])

    noise = jackknife_half_width(gain, splits, test_to_train)
    reached = point.fairness(splits) <= max(one.fairness(splits) for one in usable)
    found = gain(splits)
    return Comparison(found, noise, len(splits), _outcome(found, noise, len(splits), reached))


def _gain(point: tuple[float, float], ours: list[tuple[float, float]]) -> float:
    """Return our accuracy less a point's, at its fairness; a point is fairness and accuracy."""
    fairness, accuracy = np.array(sorted(ours)).T
    best = np.maximum.accumulate(accuracy[::-1])[::-1]
    return float(np.interp(point[0], fairness, best)) - point[1]


def _outcome(gain: float, noise: float, n: int, reached: bool) -> Outcome:
    if n < LEAST_SPLITS:
        return Outcome.FEW
    noise = max(noise, _ROUNDING)
    if gain < -noise:
        return Outcome.BEHIND
    if not reached and gain > 0.0:
        return Outcome.BEYOND
    return Outcome.AHEAD if gain > noise else Outcome.LEVEL
