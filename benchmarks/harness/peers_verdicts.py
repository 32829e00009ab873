"""Who is ahead among the peers: accuracy at given gaps, with intervals, and seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, median

from benchmarks.harness.intervals import LEAST_SPLITS, difference
from benchmarks.harness.tables import Row

LEVELS = (0.01, 0.02, 0.05, 0.1)
POOLED = "pooled gap"
TEST_SHARE = 0.3  # of the rows of a split
TEST_TO_TRAIN = TEST_SHARE / (1.0 - TEST_SHARE)
REFERENCE = {
    "linear": "ours, decisions",
    "linear, sees the group": "ours, thresholds by group",
    "trees": "ours boosted, decisions",
}


class Outcome(StrEnum):
    """What a comparison at a gap says."""

    AHEAD = "ahead"
    LEVEL = "level"
    BEHIND = "behind"
    FEW = "too few splits"
    ONLY_OURS = "no peer has such a gap"
    ONLY_PEERS = "ours has no such gap"
    NONE = "-"


@dataclass(frozen=True)
class Verdict:
    """The comparison of ours with the best peer of a kind, at a gap on a task.

    Attributes
    ----------
    outcome : Outcome
        Who is ahead.
    text : str
        The same with the figures.
    """

    outcome: Outcome
    text: str


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
            row[f"s at {level:g}"] = f"{found['CPU seconds']:.2g}" if found else "-"
        row["kind"], row["random"] = own[0]["kind"], own[0]["random"]
        out.append(row)
    return out


def compared(some: list[Row], level: float, gap: str = POOLED) -> Verdict:
    """Return who of the methods of a kind is ahead of ours by more than noise.

    Parameters
    ----------
    some : list of dict
        The points of a kind on a task.
    level : float
        The largest test gap.
    gap : str, default="pooled gap"
        The column of the gaps.
    """
    ours = best([row for row in some if row["method"].startswith("ours")], level, gap)
    theirs = best(
        [row for row in some if not row["method"].startswith(("ours", "no con"))], level, gap
    )
    if ours is None or theirs is None:
        absent = Outcome.NONE if ours is theirs else Outcome.ONLY_PEERS
        absent = Outcome.ONLY_OURS if ours else absent
        emphasis = "**" if absent is Outcome.ONLY_PEERS else ""
        return Verdict(absent, f"{emphasis}{absent}{emphasis}")
    gain, noise, n = difference(ours["by split"], theirs["by split"], TEST_TO_TRAIN)
    if n < LEAST_SPLITS:
        return Verdict(Outcome.FEW, f"{Outcome.FEW} ({gain:+.4f} against {theirs['method']})")
    text = f"({gain:+.4f} +- {noise:.4f} against {theirs['method']}, {n} splits)"
    if abs(gain) <= noise:
        return Verdict(Outcome.LEVEL, f"level {text}")
    if gain > 0.0:
        return Verdict(Outcome.AHEAD, f"**ours** {text}")
    return Verdict(Outcome.BEHIND, f"**{theirs['method']}** {text}")


def verdicts(table: list[Row], gap: str = POOLED) -> list[Row]:
    """Return a row for every task and level, with a :class:`Verdict` for every kind of model."""
    out = []
    kinds = dict.fromkeys(row["kind"] for row in table)
    for data, notion in dict.fromkeys((row["data"], row["notion"]) for row in table):
        some = [row for row in table if (row["data"], row["notion"]) == (data, notion)]
        for level in LEVELS:
            row: Row = {"data": data, "notion": notion, "gap at most": level}
            for kind in kinds:
                row[kind] = compared([one for one in some if one["kind"] == kind], level, gap)
            out.append(row)
    return out


def as_text(rows: list[Row]) -> list[Row]:
    """Return the rows with the texts of the verdicts."""
    return [
        {name: one.text if isinstance(one, Verdict) else one for name, one in row.items()}
        for row in rows
    ]


def counts(rows: list[Row]) -> Counter[Outcome]:
    """Return how many comparisons have which outcome."""
    return Counter(one.outcome for row in rows for one in row.values() if isinstance(one, Verdict))


def behind(rows: list[Row]) -> list[str]:
    """Return where a peer is ahead, in words."""
    return [
        f"{row['data']}, {row['notion'].replace('_', ' ')}, {name}, gap {row['gap at most']:g}: "
        f"{one.text.replace('**', '')}"
        for row in rows
        for name, one in row.items()
        if isinstance(one, Verdict) and one.outcome in (Outcome.BEHIND, Outcome.ONLY_PEERS)
    ]


def speeds(table: list[Row]) -> list[Row]:
    """Return the CPU seconds of every method as multiples of those of ours of the same kind.

    They are medians over the tasks; a task's seconds are means over settings and splits.
    """
    seconds: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for row in table:
        own = seconds.setdefault((row["kind"], row["method"]), {})
        own.setdefault((row["data"], row["notion"]), []).append(row["CPU seconds"])
    out = []
    for (kind, method), tasks in seconds.items():
        reference = seconds.get((kind, REFERENCE[kind]), {})
        common = [task for task in tasks if task in reference]
        ratios = [mean(tasks[task]) / mean(reference[task]) for task in common]
        if ratios and method != REFERENCE[kind]:
            out.append(
                {
                    "method": method,
                    "compared with": REFERENCE[kind],
                    "times the CPU seconds": f"{median(ratios):.2g}",
                    "tasks": len(ratios),
                }
            )
    return out
