"""The sections on E9 and E10 of the page "Reproducing the papers"."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness.intervals import LEAST_SPLITS, difference
from benchmarks.harness.rank_data import TEST_TO_TRAIN
from benchmarks.harness.rank_figures import draw_frontiers
from benchmarks.harness.rank_parity import without_splits
from benchmarks.harness.tables import Row, as_markdown

BASELINES = ("group AUC", "inter-group", "intra-group", "regularisation")
OURS = ("ours", "unconstrained")
ABOVE, BELOW = "ours is on or above", "**ours is below**"
BEYOND, FEW = "fairer than any of ours, and less accurate", "too few splits"
_SPLITS = 5  # of the papers


@dataclass(frozen=True)
class Ranks:
    """Means over splits of an experiment on ranges of ranks.

    Attributes
    ----------
    name, symbol : str
        The experiment and its measure.
    table : list of dict
        A row for every level of every method.
    """

    name: str
    symbol: str
    table: list[Row]


def dominance(ranks: Ranks) -> list[Row]:
    """Return the accuracy of ours less that of a baseline, at the fairness of the baseline.

    Ours is interpolated between its levels, and constant beyond its ends; a fairer model of ours
    serves where less is asked. A difference counts if it exceeds half the 95% interval of the
    differences on the same splits.
    """
    return [
        _against(row, [one for one in ranks.table if one["data"] == row["data"]])
        for row in ranks.table
        if row["method"] in BASELINES
    ]


def _against(row: Row, some: list[Row]) -> Row:
    """Return the line of a baseline's point."""
    known = max((one["by split"] for one in some if one["method"] in OURS), key=len)
    splits = set(row["by split"]) & set(known)
    ours = [one for one in some if one["method"] in OURS and splits <= set(one["by split"])]
    ours.sort(key=lambda one: one["1 - unfairness"])
    best = [max(ours[k:], key=lambda one: one["accuracy"]) for k in range(len(ours))]
    fairness, fair = [one["1 - unfairness"] for one in ours], row["1 - unfairness"]
    at = {k: float(np.interp(fair, fairness, [one["by split"][k] for one in best])) for k in splits}
    gain, noise, n = difference(at, row["by split"], TEST_TO_TRAIN.get(row["data"], 0.5))
    if n < LEAST_SPLITS:
        verdict = FEW
    elif gain < -noise:
        verdict = BELOW
    else:
        verdict = ABOVE if fair <= fairness[-1] or gain <= 0.0 else BEYOND
    return {
        "data": row["data"], "baseline": row["method"], "level": row["level"],
        "1 - unfairness": fair, "accuracy": row["accuracy"], "ours there": row["accuracy"] + gain,
        "difference": gain, "+-": noise if n >= LEAST_SPLITS else "-", "splits": n,
        "verdict": verdict,
    }  # fmt: skip


def verdict_of(ranks: Ranks) -> str:
    """Return a sentence on where ours lies, for the data sets with enough splits."""
    found = dominance(ranks)
    counts = {one: sum(row["verdict"] == one for row in found) for one in (BELOW, FEW)}
    judged = len(found) - counts[FEW]
    if not judged:
        return f"{ranks.name} has too few splits for a verdict."
    names = " and ".join(dict.fromkeys(row["data"] for row in found if row["verdict"] != FEW))
    beyond = sum(row["verdict"] == BEYOND for row in found)
    text = (
        f"{ranks.name}, {names}: of {judged} points of baselines at the paper's tolerances, ours "
        f"lies on or above {judged - counts[BELOW] - beyond} and below {counts[BELOW]}"
    )
    text += f"; {beyond} are fairer than any of ours and less accurate" if beyond else ""
    text += f" ({counts[FEW]} more have too few splits)" if counts[FEW] else ""
    return text + "."


def section(ranks: Ranks, folder: Path) -> str:
    """Return the text of an experiment, and draw its figure."""
    name = f"papers-{ranks.name.lower()}.png"
    (folder / "_static").mkdir(parents=True, exist_ok=True)
    draw_frontiers(ranks.table, ranks.symbol, folder / "_static" / name)
    counts: dict[str, int] = {}
    for row in ranks.table:
        counts[row["data"]] = max(counts.get(row["data"], 0), row["splits"])
    data = ", ".join(f"{name} ({n} of {_SPLITS} splits)" for name, n in counts.items())
    return (
        f"{verdict_of(ranks)}\n\nData: {data}. {_METHOD}\n![Frontiers](_static/{name})\n\n"
        + as_markdown(dominance(ranks))
    )


def every_level(ranks: Ranks) -> str:
    """Return the table of all points."""
    rows = [
        {name: "-" if value != value else value for name, value in row.items()}
        for row in without_splits(ranks.table)
    ]
    return as_markdown(rows)


_METHOD = f"""The paper prints curves only. "ours there" is the
accuracy of our models at the fairness of the baseline's, interpolated between levels. "+-" is half
the 95% interval of the difference over the same splits; with fewer than {LEAST_SPLITS} splits it
says nothing. Ours has the paper's tolerances and larger ones, up to the fairness of the baselines
that are hardly constrained.
"""
