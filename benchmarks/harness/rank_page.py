"""The sections on E9 and E10 of the page "Reproducing the papers"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.harness.dominance import Outcome, Point, Splits, compare_at
from benchmarks.harness.intervals import LEAST_SPLITS
from benchmarks.harness.names import TITLES
from benchmarks.harness.rank_data import TEST_TO_TRAIN
from benchmarks.harness.rank_figures import OURS, draw_frontiers
from benchmarks.harness.rank_parity import (
    PAPER_EPSILON,
    REGULARISATION,
    ScoresOf,
    draw_scores,
    without_splits,
)
from benchmarks.harness.tables import Row, as_markdown

BASELINES = ("group AUC", "inter-group", "intra-group", *REGULARISATION)
PRINTED = "IDCA, paper()"  # the method of the paper
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
    shown : dict of dict
        Scores of our models on the first split, by data set and model.
    """

    name: str
    symbol: str
    table: list[Row]
    shown: dict[str, ScoresOf] = field(default_factory=dict)


def dominance(ranks: Ranks, methods: Collection[str] = BASELINES) -> list[Row]:
    """Return the accuracy of ours less that of a method, at the fairness of the method."""
    out = []
    for row in ranks.table:
        if row["method"] not in methods:
            continue
        same = [one for one in ranks.table if one["data"] == row["data"]]
        ours = [_point(one) for one in same if one["method"] in OURS]
        found = compare_at(_point(row), ours, TEST_TO_TRAIN[row["data"]])
        out.append(
            {
                "data": row["data"], "method": row["method"], "level": row["level"],
                "1 - unfairness": row["1 - unfairness"], "accuracy": row["accuracy"],
                "ours there": row["accuracy"] + found.gain, "difference": found.gain,
                "+-": "-" if found.outcome is Outcome.FEW else found.noise,
                "splits": found.n_splits, "ours is": found.outcome,
            }
        )  # fmt: skip
    return out


def _point(row: Row) -> Point:
    runs = row["by split"]

    def fairness(splits: Splits) -> float:
        return mean(runs[k]["1 - unfairness"] for k in splits)

    return Point({k: one["accuracy"] for k, one in runs.items()}, fairness)


def verdicts_of(ranks: Ranks) -> list[str]:
    """Return sentences on where ours lies beside the baselines, and beside the printed method."""
    return [
        _verdict(ranks.name, found, what)
        for methods, what in ((BASELINES, "baselines"), ((PRINTED,), f'"{PRINTED}"'))
        if (found := dominance(ranks, methods))
    ]


def _verdict(experiment: str, found: list[Row], what: str) -> str:
    """Return a sentence on where ours lies, for the data sets with enough splits."""
    counts = Counter(row["ours is"] for row in found)
    few = counts[Outcome.FEW]
    if few == len(found):
        return f"{experiment} has too few splits to compare ours with {what}."
    names = dict.fromkeys(TITLES[row["data"]] for row in found if row["ours is"] is not Outcome.FEW)
    text = (
        f"{experiment}, {', '.join(names)}: of {len(found) - few} points of {what} at the paper's "
        f"tolerances, ours is level with {counts[Outcome.LEVEL]} at the same fairness, "
        f"ahead of {counts[Outcome.AHEAD]} and behind {counts[Outcome.BEHIND]}"
    )
    if counts[Outcome.BEYOND]:
        text += f"; fairer than any of ours, and less accurate: {counts[Outcome.BEYOND]}"
    return text + (f" ({few} more have too few splits)." if few else ".")


def section(ranks: Ranks, folder: Path) -> str:
    """Return the text of an experiment, and draw its figure."""
    name = f"papers-{ranks.name.lower()}.png"
    (folder / "_static").mkdir(parents=True, exist_ok=True)
    draw_frontiers(ranks.table, ranks.symbol, folder / "_static" / name)
    counts: dict[str, int] = {}
    for row in ranks.table:
        counts[row["data"]] = max(counts.get(row["data"], 0), row["splits"])
    data = ", ".join(f"{TITLES[name]} ({n} of {_SPLITS} splits)" for name, n in counts.items())
    return (
        f"{' '.join(verdicts_of(ranks))}\n\nData: {data}.{_not_run(ranks)}\n\n{_METHOD}\n"
        f"{_REMARKS[ranks.name]}\nThe figure leaves out points far below ours. It shows their "
        "number.\n\n"
        f"![Frontiers](_static/{name})\n\n"
        + _table(dominance(ranks, (*BASELINES, PRINTED)))
        + _of_scores(ranks, list(counts), folder / "_static")
    )


def _not_run(ranks: Ranks) -> str:
    """Return a sentence on baselines that were not run on some data sets, or nothing."""
    known = {(row["data"], row["method"]) for row in ranks.table}
    names = dict.fromkeys(row["data"] for row in ranks.table)
    lacking = [
        f'"{method}" on {TITLES[name]}'
        for method in BASELINES
        for name in names
        if (name, method) not in known
    ]
    return f" Not run: {', '.join(lacking)}." if lacking else ""


def _of_scores(ranks: Ranks, names: list[str], folder: Path) -> str:
    """Return the pictures of rates and of scores; published results have no scores to draw."""
    stem, text = f"papers-{ranks.name.lower()}", ""
    for data in names:
        draw_scores(stem, data, ranks.shown.get(data, {}), folder)
        for kind, title in (("rates", "Rates"), ("densities", "Densities")):
            if (folder / f"{stem}-{data}-{kind}.png").exists():
                text += f"\n![{title}, {TITLES[data]}](_static/{stem}-{data}-{kind}.png)\n"
    return text and f"\n{_SCORES}{text}"


def every_level(ranks: Ranks) -> str:
    """Return the table of all points."""
    rows = [
        {name: "-" if value != value else value for name, value in row.items()}
        for row in without_splits(ranks.table)
    ]
    return _table(rows)


def _table(rows: list[Row]) -> str:
    """Return the rows with names in words and measures of four digits."""
    return as_markdown([{name: _cell(name, one) for name, one in row.items()} for row in rows])


def _cell(name: str, value: Any) -> Any:
    if name == "data":
        return TITLES[value]
    digits = {"level": None, "seconds": 1}.get(name, 4)
    if digits is None or not isinstance(value, float):
        return value
    return f"{round(value, digits) + 0.0:.{digits}f}"


_METHOD = f"""The methods:

- "ours" solves the paper's problem, whose surrogates are ramps, with `solver="auto"`. It has the
  paper's tolerances and further ones, where baselines are fairer or less fair.
- "group AUC", "inter-group" and "intra-group" are linear models with constraints on AUCs, with the
  paper's tolerances.
- "regularisation" has a penalty on the violation in place of a constraint, with the paper's weights
  and ramps. The paper minimises this objective by 15,000 to 80,000 subgradient steps, whose length
  validation rows choose. "regularisation" makes 1,000 steps of the library's default lengths;
  "regularisation, solved" is the minimum to a tolerance.
- "IDCA, paper()" is the printed method alone, with 150 steps of algorithm 2 in each of its 100
  subproblems, and a tolerance of {PAPER_EPSILON:g}. All its runs end after these subproblems. The
  paper chooses the tolerance from 0.0005 to 0.005, and 100 to 400 subproblems, by the accuracy on
  validation rows. On the first split of law school in E9, with kappa = 0.1, the objective falls
  faster with 0.005 than with 0.001.

The columns:

- "level": the tolerance, or the weight of the penalty.
- "ours there": the accuracy of our models at the fairness of the method, interpolated between
  levels.
- "+-": half the 95% interval of the difference over the same splits, with the noise of both
  measures and the overlap of the training rows. Both are level if the difference is not larger.
  With fewer than {LEAST_SPLITS} splits it says nothing.
"""
_REMARKS = {
    "E9": """Where the printed method is ahead on a9a, its loss on the training rows is larger than
that of ours: models are fitted to the logistic loss, and not to the accuracy. If both were equal
everywhere, chance would put about one of 40 points behind.
""",
    "E10": """The smallest tolerance is not the fairest one on test rows. With a tolerance of 0.005
on a9a the decisions on the training rows differ by 0.05, because the constraint is on ramps of the
scores.
""",
}
_SCORES = """The selection rates of one group against the other's over all thresholds, and the
densities of scores on the test rows of the first split (figures 2 to 8 of the paper). The range of
ranks is shaded.
"""
