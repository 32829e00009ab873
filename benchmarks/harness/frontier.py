"""Methods measured on random splits of the same rows: intervals, and who is ahead of whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.harness.pages import boxes
from benchmarks.harness.tables import Row

LEAST_SPLITS = 3  # for an interval; that of two splits is wider than any difference
Splits = tuple[int, ...]
_ROUNDING = 1e-9


class Outcome(StrEnum):
    """What a comparison says about ours."""

    AHEAD = "ahead"
    LEVEL = "level"
    BEHIND = "behind"
    BEYOND = "fairer than any of ours, and less accurate"
    FEW = "too few splits"


@dataclass(frozen=True, eq=False)
class Point:
    """A method with a setting, measured on several splits.

    Attributes
    ----------
    row : dict
        What tables say about it.
    task : object
        Points of the same task are compared.
    ours : bool
        Whether it is a point of the frontier that others are compared with.
    accuracy, fairness : dict
        For every split; the larger the fairer.
    """

    row: Row
    task: Any
    ours: bool
    accuracy: Mapping[int, float]
    fairness: Mapping[int, float]

    def at(self, splits: Splits) -> tuple[float, float]:
        """Return mean fairness and accuracy on some splits."""
        fairness, accuracy = ([of[k] for k in splits] for of in (self.fairness, self.accuracy))
        return float(np.mean(fairness)), float(np.mean(accuracy))


def half_width(values: np.ndarray, test_to_train: float) -> float:
    """Return half the 95% interval of the mean of figures of several random splits.

    The training rows of two splits overlap, so that the variance of the mean is larger than that of
    independent figures: Nadeau and Bengio, "Inference for the generalization error" (2003).
    """
    if len(values) < 2:
        return float("inf")
    variance = (1.0 / len(values) + test_to_train) * np.var(values, ddof=1)
    return float(student.ppf(0.975, len(values) - 1) * np.sqrt(variance))


def jackknife_half_width(
    statistic: Callable[[Splits], float], splits: Splits, test_to_train: float
) -> float:
    """Return half the 95% interval of a figure that is computed from several splits together."""
    n = len(splits)
    if n < 2:
        return float("inf")
    values = [statistic(splits[:k] + splits[k + 1 :]) for k in range(n)]
    return half_width((n - 1.0) * np.array(values), test_to_train)


def compared(points: list[Point], test_to_train: Callable[[Point], float]) -> list[Row]:
    """Return a row per point, with what ours is at its fairness if it is another method's.

    Ours is interpolated between its points, and constant beyond the ends; a fairer model of ours
    serves where less is asked. The splits are those that the point and all of ours have; points of
    ours with too few splits for an interval are left out.
    """
    rows = []
    for point in points:
        ratio, splits = test_to_train(point), tuple(sorted(point.accuracy))
        fairness, accuracy = point.at(splits)
        noise = half_width(np.array(list(point.accuracy.values())), ratio)
        row = {**point.row, "fairness": fairness, "accuracy": accuracy, "+-": noise}
        ours = [other for other in points if other.ours and other.task == point.task]
        verdict: Row = {"difference": "", "+- of it": "", "ours is": ""}
        if ours and not point.ours:
            verdict = _comparison(point, ours, ratio)
        rows.append({**row, "splits": len(splits), **verdict})
    return rows


def _comparison(point: Point, ours: Sequence[Point], test_to_train: float) -> Row:
    many = [set(one.accuracy) for one in ours if len(one.accuracy) >= LEAST_SPLITS]
    known = many or [set(max((one.accuracy for one in ours), key=len))]
    splits = tuple(sorted(set(point.accuracy).intersection(*known)))
    if not splits:
        return {"difference": np.nan, "+- of it": np.inf, "ours is": Outcome.FEW}
    usable = [one for one in ours if set(splits) <= set(one.accuracy)]

    def gain(some: Splits) -> float:
        at, theirs = point.at(some)
        return float(accuracy_at(at, *np.array([other.at(some) for other in usable]).T)) - theirs

    noise = jackknife_half_width(gain, splits, test_to_train)
    reached = point.at(splits)[0] <= max(other.at(splits)[0] for other in usable)
    outcome = _outcome(gain(splits), noise, len(splits), reached)
    return {"difference": gain(splits), "+- of it": noise, "ours is": outcome}


def _outcome(gain: float, noise: float, n: int, reached: bool) -> Outcome:
    if n < LEAST_SPLITS:
        return Outcome.FEW
    noise = max(noise, _ROUNDING)
    if gain < -noise:
        return Outcome.BEHIND
    if not reached and gain > 0.0:
        return Outcome.BEYOND
    return Outcome.AHEAD if gain > noise else Outcome.LEVEL


def draw_differences(ax: Any, rows: pd.DataFrame) -> None:
    """Draw the differences of all comparisons, a box for every method."""
    judged = rows[rows["ours is"].notna() & (rows["ours is"] != Outcome.FEW)]
    label = "our accuracy less theirs, in points"
    boxes(ax, 100.0 * judged.difference, judged.method, label)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])


def counts(y: np.ndarray, groups: np.ndarray, chance: np.ndarray, notion: str) -> list[Any]:
    """Return, by the sets of rows whose rates a notion compares, [selected, rows] of each group."""
    events = [np.ones(len(y), dtype=bool)]
    if notion != "demographic_parity":
        events = [y == 1] if notion == "equal_opportunity" else [y == 1, y == 0]
    members = [[event & (groups == g) for g in np.unique(groups)] for event in events]
    return [[[float(chance[rows].sum()), int(rows.sum())] for rows in some] for some in members]


def gap(counts: list[Any], *, relative: bool = False, least: int = 1) -> float:
    """Return the largest difference of rates that are of at least some rows.

    With `relative` it is the largest distance from the rate of all rows, in units of that rate.
    """
    largest = 0.0
    for selected, rows in np.moveaxis(np.array(counts, dtype=float), -1, 1):
        rates = (selected / np.maximum(rows, 1.0))[rows >= least]
        if relative:
            rates = np.append(rates * rows.sum() / max(selected.sum(), 1e-9), 1.0)
            largest = max(largest, *np.abs(rates - 1.0))
        elif len(rates):
            largest = max(largest, np.ptp(rates))
    return float(largest)


def accuracy_at(at: Any, fairness: np.ndarray, accuracy: np.ndarray) -> Any:
    """Return the accuracy of a frontier at some fairness, interpolated between its points.

    It is constant beyond the ends; a fairer point serves where less is asked.
    """
    order = np.lexsort((accuracy, fairness))
    best = np.maximum.accumulate(accuracy[order][::-1])[::-1]
    return np.interp(at, fairness[order], best)
