"""Methods measured on random splits of the same rows: intervals, and who is ahead of whom."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.harness.results import Row, boxes

LEAST_SPLITS = 3  # for an interval; that of two splits is wider than any difference
_ROUNDING = 1e-9
BEYOND = "fairer than any of ours, and less accurate"
FEW = "too few splits"


@dataclass(frozen=True, eq=False)
class Point:
    """A method with a setting, measured on several splits, which all points of a task have.

    Attributes
    ----------
    row : dict
        What tables say about it.
    ours : bool
        Whether it is a point of the frontier that others are compared with.
    accuracy, fairness : ndarray
        For every split; the larger the fairer.
    """

    row: Row
    ours: bool
    accuracy: np.ndarray
    fairness: np.ndarray


def half_width(values: np.ndarray, test_to_train: float) -> float:
    """Return half the 95% interval of the mean of figures of several random splits.

    The training rows of two splits overlap, so that the variance of the mean is larger than that of
    independent figures: Nadeau and Bengio, "Inference for the generalization error" (2003).
    """
    if len(values) < 2:
        return float("inf")
    variance = (1.0 / len(values) + test_to_train) * np.var(values, ddof=1)
    return float(student.ppf(0.975, len(values) - 1) * np.sqrt(variance))


def jackknife_half_width(statistic, n: int, test_to_train: float) -> float:
    """Return half the 95% interval of a figure that is computed from n splits together."""
    values = [statistic(np.delete(np.arange(n), k)) for k in range(n if n > 1 else 0)]
    return half_width((n - 1.0) * np.array(values), test_to_train)


def paired(difference, n: int, test_to_train: float) -> tuple[float, float, str]:
    """Return the difference on n splits, half its 95% interval, and who is ahead."""
    mean = difference(slice(None))
    noise = jackknife_half_width(difference, n, test_to_train)
    outcome = "ahead" if mean > 0.0 else "behind"
    return mean, noise, "level" if abs(mean) <= max(noise, _ROUNDING) else outcome


def compared(points: list[Point], test_to_train: float) -> list[Row]:
    """Return a row per point, with what ours is at its fairness if it is another method's.

    Ours is interpolated between its points, and constant beyond the ends; a fairer model of ours
    serves where less is asked.
    """
    mine = np.array([[point.fairness, point.accuracy] for point in points if point.ours])
    rows = []
    for point in points:
        verdict: Row = {"difference": "", "+- of it": "", "ours is": ""}
        if len(mine) and not point.ours:
            verdict = _comparison(point, mine, test_to_train)
        row = {"fairness": point.fairness.mean(), "accuracy": point.accuracy.mean()}
        row |= {"+-": half_width(point.accuracy, test_to_train), "splits": len(point.accuracy)}
        rows.append({**point.row, **row, **verdict})
    return rows


def _comparison(point: Point, mine: np.ndarray, test_to_train: float) -> Row:
    def gain(some) -> float:
        frontier = mine[:, :, some].mean(axis=2).T
        at, theirs = point.fairness[some].mean(), point.accuracy[some].mean()
        return float(accuracy_at(at, *frontier) - theirs)

    difference, noise, outcome = paired(gain, len(point.accuracy), test_to_train)
    if len(point.accuracy) < LEAST_SPLITS:
        outcome = FEW
    elif difference > 0.0 and point.fairness.mean() > mine[:, 0].mean(axis=1).max():
        outcome = BEYOND
    return {"difference": difference, "+- of it": noise, "ours is": outcome}


def draw_differences(ax, rows: pd.DataFrame) -> None:
    """Draw the differences of all comparisons, a box for every method."""
    judged = rows[rows["ours is"].notna() & (rows["ours is"] != FEW)]
    label = "our accuracy less theirs, in points"
    boxes(ax, 100.0 * judged.difference, judged.method, label)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])


def counts(y: np.ndarray, groups: np.ndarray, chance: np.ndarray, notion: str) -> list:
    """Return, by the sets of rows whose rates a notion compares, [selected, rows] of each group."""
    events = [np.ones(len(y), dtype=bool)]
    if notion != "demographic_parity":
        events = [y == 1] if notion == "equal_opportunity" else [y == 1, y == 0]
    members = [[event & (groups == g) for g in np.unique(groups)] for event in events]
    return [[[float(chance[rows].sum()), int(rows.sum())] for rows in some] for some in members]


def gap(counts: list, *, relative: bool = False, least: int = 1) -> float:
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


def accuracy_at(at, fairness: np.ndarray, accuracy: np.ndarray):
    """Return the accuracy of a frontier at some fairness, interpolated between its points.

    It is constant beyond the ends; a fairer point serves where less is asked.
    """
    order = np.lexsort((accuracy, fairness))
    best = np.maximum.accumulate(accuracy[order][::-1])[::-1]
    return np.interp(at, fairness[order], best)
