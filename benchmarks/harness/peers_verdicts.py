"""Who is ahead among the peers: accuracy at given gaps with intervals, seconds and memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.harness.dominance import Comparison, Outcome, Point, Splits, by_outcome, compare_at
from benchmarks.harness.intervals import half_width
from benchmarks.harness.peer_worker import PEERS
from benchmarks.harness.tables import Row

LEVELS = (0.01, 0.02, 0.05, 0.1)
POOLED = "pooled gap"
TEST_SHARE = 0.3  # of the rows of a split
TEST_TO_TRAIN = TEST_SHARE / (1.0 - TEST_SHARE)
UNCONSTRAINED = "no constraint"
COSTS = ("CPU seconds", "MiB")
SPLIT_OF_COSTS = 0
REFERENCE = {
    "linear": "ours, decisions",
    "linear, sees the group": "ours, thresholds by group",
    "trees": "ours boosted, decisions",
}


def best(rows: list[Row], level: float, gap: str = POOLED) -> Row | None:
    """Return the most accurate row whose test gap is at most a level."""
    allowed = [row for row in rows if row[gap] <= level]
    return max(allowed, key=lambda row: row["accuracy"], default=None)


def at_gaps(table: list[Row]) -> list[Row]:
    """Return accuracy and seconds of every method at given test gaps."""
    out = []
    for data, notion, method in dict.fromkeys(
        (row["data"], row["notion"], row["method"]) for row in table
    ):
        own = [r for r in table if (r["data"], r["notion"], r["method"]) == (data, notion, method)]
        row: Row = {"data": data, "notion": notion, "method": method}
        for level in LEVELS:
            found = best(own, level)
            row[f"at {level:g}"] = f"{found['accuracy']:.4f}" if found else "-"
            row[f"s at {level:g}"] = _shown_seconds(found["CPU seconds"]) if found else "-"
        row["kind"], row["random"] = own[0]["kind"], own[0]["random"]
        out.append(row)
    return out


def _accuracies(row: Row) -> dict[int, float]:
    return {k: one["accuracy"] for k, one in row["by split"].items()}


def _is_peer(row: Row) -> bool:
    return not row["method"].startswith("ours") and row["method"] != UNCONSTRAINED


def by_task(table: list[Row]) -> list[list[Row]]:
    """Return the rows of every notion and data set."""
    tasks: dict[tuple[str, str], list[Row]] = {}
    for row in table:
        tasks.setdefault((row["notion"], row["data"]), []).append(row)
    return list(tasks.values())


@dataclass(frozen=True)
class Verdict:
    """Our frontier at the gap of a peer's point.

    Attributes
    ----------
    row : dict
        The peer's point.
    found : Comparison
        Who is ahead.
    """

    row: Row
    found: Comparison

    def __str__(self) -> str:
        gap, method = self.row[POOLED], self.row["method"]
        return f"{self.found.gain:+.4f} +- {self.found.noise:.4f} (gap {gap:.3f}, {method})"


def verdicts(table: list[Row], gap: str = POOLED) -> list[Verdict]:
    """Return for every point of a peer who is ahead at its gap, among models of its kind.

    Models that do not see the group are compared with the model without constraints as well, which
    is the end of every frontier.
    """
    out = []
    for some in by_task(table):
        for row in some:
            same = [one for one in some if one["kind"] == row["kind"] and not _is_peer(one)]
            if _is_peer(row) and same:
                ours = [_point(one, gap) for one in same]
                out.append(Verdict(row, compare_at(_point(row, gap), ours, TEST_TO_TRAIN)))
    return out


def _point(row: Row, gap: str) -> Point:
    """Return a row as a point, with the pooled gap or the mean gap of some splits."""
    runs = row["by split"]

    def fairness(splits: Splits) -> float:
        if gap == POOLED:
            return -pooled_gap([runs[k]["cells"] for k in splits])
        return -mean(runs[k]["gap"] for k in splits)

    return Point(_accuracies(row), fairness)


def pooled_gap(splits: list[Any]) -> float:
    """Return the largest gap of the rates of all test rows of all splits together.

    Parameters
    ----------
    splits : list of array-like of shape (n_events, n_groups, 2)
        For every split, how many rows are selected of how many.
    """
    selected, rows = np.moveaxis(np.sum(np.array(splits, dtype=float), axis=0), -1, 0)
    rates = selected / rows
    return float((rates.max(axis=1) - rates.min(axis=1)).max())


def summary(found: list[Verdict]) -> list[Row]:
    """Return how many points ours is ahead of, level with, and behind, for tasks and kinds."""
    groups: dict[tuple[str, str, str], list[Verdict]] = {}
    for one in found:
        key = (one.row["notion"], one.row["data"], one.row["kind"])
        groups.setdefault(key, []).append(one)
    out = []
    for (notion, data, kind), some in groups.items():
        judged = [one for one in some if one.found.outcome is not Outcome.FEW]
        counts = Counter(one.found.outcome for one in some)
        worst = min(judged, key=lambda one: one.found.gain, default=None)
        out.append(
            {
                "notion": notion,
                "data": data,
                "kind": kind,
                "splits": max((one.found.n_splits for one in some), default=0),
                "points": len(judged),
                **by_outcome(counts),
                "least difference": str(worst) if worst else Outcome.FEW,
            }
        )
    return out


def speeds(table: list[Row]) -> list[Row]:
    """Return how long every method takes, compared with ours of the same kind, and its memory.

    Both are medians over the tasks. The seconds of a task are means over the settings. A task
    without costs is left out.
    """
    costs: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for row in table:
        if "" not in [row[name] for name in COSTS]:
            own = costs.setdefault((row["kind"], row["method"]), {})
            own.setdefault((row["data"], row["notion"]), []).append(row)
    out = []
    for (kind, method), tasks in costs.items():
        reference = costs.get((kind, REFERENCE[kind]), {})
        common = [task for task in tasks if task in reference]
        if not common:
            continue
        ratios = [_mean_seconds(tasks[task]) / _mean_seconds(reference[task]) for task in common]
        out.append(
            {
                "method": method,
                "compared with": REFERENCE[kind],
                "times the CPU seconds": f"{median(ratios):.2g}",
                "MiB": f"{median(tasks[task][0]['MiB'] for task in common):.1f}",
                "tasks": len(ratios),
            }
        )
    return out


def _mean_seconds(rows: list[Row]) -> float:
    return mean(row["CPU seconds"] for row in rows)


def _shown_seconds(seconds: float | str) -> str:
    """Return seconds with two digits, "-" if they were not measured."""
    return f"{seconds:.2g}" if seconds != "" else "-"


_MEANS = ("accuracy", "AUC", "log loss", "gap", "gap, low", "gap, high")


def frontier(rows: list[Row]) -> list[Row]:
    """Return a row for every setting of every peer: means over the splits, costs of one split."""
    by_setting: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("data", "notion", "peer", "setting"))
        by_setting.setdefault(key, []).append(row)
    table = []
    for (data, notion, peer, setting), some in by_setting.items():
        row: Row = {"data": data, "notion": notion, "method": peer, "setting": setting}
        for name in _MEANS:
            values = [one[name] for one in some if one[name] is not None]
            row[name] = mean(values) if values else ""
        by_split = {one["split"]: one for one in some}
        row |= {name: by_split.get(SPLIT_OF_COSTS, {}).get(name, "") for name in COSTS}
        row["pooled gap"] = pooled_gap([one["cells"] for one in some])
        row["+-"] = half_width(np.array([one["accuracy"] for one in some]), TEST_TO_TRAIN)
        row["splits"] = len(by_split)
        row["least positives"] = min(one["least positives"] for one in some)
        row["kind"], row["random"] = PEERS[peer].kind, "yes" if PEERS[peer].random else "no"
        row["by split"] = by_split
        table.append(row)
    return table
