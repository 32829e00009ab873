"""The page of the peers: frontiers, accuracy at given gaps, and who is ahead."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness.dominance import Outcome
from benchmarks.harness.fairlearn_peers import NOTIONS
from benchmarks.harness.intervals import LEAST_SPLITS, half_width
from benchmarks.harness.names import TITLES
from benchmarks.harness.peer_worker import PEERS
from benchmarks.harness.peers_verdicts import (
    COSTS,
    SPLIT_OF_COSTS,
    TEST_TO_TRAIN,
    UNCONSTRAINED,
    Verdict,
    at_gaps,
    at_levels,
    pooled_gap,
    speeds,
    summary,
    verdicts,
)
from benchmarks.harness.rank_figures import MARKS, focus, plt
from benchmarks.harness.tables import Row, as_markdown, environment

DATA = ("compas", "communities", "law_school", "bank", "adult")  # from few rows to many
SMALL_CELL = 50
_WIDEST = 0.3  # the largest gap in a figure
_KINDS = ("linear", "linear, sees the group", "trees")
_MEANS = ("accuracy", "AUC", "log loss", "gap", "gap, low", "gap, high")


def frontier(rows: list[Row]) -> list[Row]:
    """Return a row for every setting of every peer: means over the splits, costs of one split."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("data", "notion", "peer", "setting"))
        found.setdefault(key, []).append(row)
    table = []
    for (data, notion, peer, setting), some in found.items():
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


def draw(table: list[Row], notion: str, path: Path) -> None:
    """Draw accuracy against the test gap, with 95% bands of ours.

    There is a row of panels for every data set, and a column for every kind of model in which ours
    has a peer.
    """
    chosen = [row for row in table if row["notion"] == notion and row["pooled gap"] <= _WIDEST]
    names = list(dict.fromkeys(row["data"] for row in chosen))
    kinds = [kind for kind in _KINDS if _has_peers(chosen, kind)]
    size = (5.2 * len(kinds), 3.0 * len(names) + 1.4)
    figure, axes = plt().subplots(len(names), len(kinds), figsize=size, squeeze=False)
    for column, kind in enumerate(kinds):
        styles = _styles([row for row in table if row["kind"] == kind])
        handles: dict[str, Any] = {}
        for axis, name in zip(axes[:, column], names, strict=True):
            own = [row for row in chosen if (row["kind"], row["data"]) == (kind, name)]
            _panel(axis, own, styles)
            axis.set(title=f"{TITLES[name]}: {kind}", xlabel="gap (test rows)")
            axis.set_ylabel("accuracy (test rows)")
            handles |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
        shown = [method for method in styles if method in handles]
        place = ((column + 0.5) / len(kinds), 0.1 / size[1])
        lines = [handles[method] for method in shown]
        figure.legend(lines, shown, loc="lower center", bbox_to_anchor=place, ncols=2, fontsize=8)
    figure.tight_layout(rect=(0, 1.3 / size[1], 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt().close(figure)


def _has_peers(rows: list[Row], kind: str) -> bool:
    """Return whether a kind has a peer with enough splits, so that ours is compared with it."""
    return any(
        row["kind"] == kind and not row["method"].startswith(("ours", UNCONSTRAINED))
        and row["splits"] >= LEAST_SPLITS
        for row in rows
    )  # fmt: skip


def _styles(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Return the line of every method of a kind; those of ours are thick."""
    own = [method for method in PEERS if any(row["method"] == method for row in rows)]
    return {
        method: {
            "color": f"C{k % 10}", "marker": MARKS[k % len(MARKS)],
            "linewidth": 2.0 if method.startswith("ours") else 1.0,
        }
        for k, method in enumerate(own)
    }  # fmt: skip


def _panel(axis: Any, chosen: list[Row], styles: dict[str, dict[str, Any]]) -> None:
    """Draw the lines of a data set, and bands of ours."""
    points = [(row["pooled gap"], row["accuracy"]) for row in chosen]
    for method, style in styles.items():
        own = [row for row in chosen if row["method"] == method]
        if not own:
            continue
        x, y, half = np.array(sorted((r["pooled gap"], r["accuracy"], r["+-"]) for r in own)).T
        axis.plot(x, y, markersize=5, label=method, **style)
        if method.startswith("ours") and np.all(np.isfinite(half)):
            band = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
            axis.fill_between(x, y - half, y + half, **band)
    axis.grid(alpha=0.3)
    if points:
        values = [value for _, value in points]
        height = max(max(values) - min(values), 0.01)
        axis.set_ylim(min(values) - 0.15 * height, max(values) + 0.15 * height)
        ours = [row["accuracy"] for row in chosen if row["method"].startswith("ours")]
        focus(axis, ours or values, points)


def write_page(
    table: list[Row], missing: dict[str, str], options: Namespace, versions: str = ""
) -> None:
    """Write peers.md and a figure for every notion."""
    table = sorted(table, key=_order)
    notions = list(dict.fromkeys(row["notion"] for row in table))
    pooled, single = verdicts(table), verdicts(table, "gap")
    text = _HEAD + _lead(pooled) + "\n## Who is ahead\n\n" + _AHEAD
    text += _table(summary(pooled)) + "\n## Seconds and memory\n\n" + _SECONDS
    text += _table(speeds(table)) + "\n## At given gaps\n\n" + _AT_GAPS
    text += _table(at_levels(table))
    for notion in notions:
        draw(table, notion, options.docs / "_static" / f"peers-{notion}.png")
        some = [row for row in table if row["notion"] == notion]
        text += f"\n## {_title(notion)}\n\n![Frontiers](_static/peers-{notion}.png)\n\n"
        gaps = [{k: v for k, v in row.items() if k != "notion"} for row in at_gaps(some)]
        text += _FRONTIERS + _table(gaps)
    text += "\n## How it is measured\n\n" + _HOW.format(
        environment=environment(), versions=versions
    )
    text += _what_was_run(table, missing, options)
    text += "\n## By the mean gap of single splits\n\n" + _BY_MEAN + _lead(single)
    text += "\n" + _table(summary(single)) + "\n" + _table(at_levels(table, "gap"))
    for notion in notions:
        some = [row for row in table if row["notion"] == notion]
        text += f"\n## Every point: {_title(notion).lower()}\n\n"
        text += _table([_shown(row) for row in some])
    (options.docs / "peers.md").write_text(text)


def _order(row: Row) -> tuple[int, ...]:
    """Return the position of a row: by notion, data set and method, in the order of the options."""
    return tuple(
        list(names).index(row[name])
        for name, names in (("notion", NOTIONS), ("data", DATA), ("method", PEERS))
    )


def _title(notion: str) -> str:
    return TITLES[notion].capitalize()


def _table(rows: list[Row]) -> str:
    """Return the rows as a table, with the names of data sets and notions in words."""
    named = ("data", "notion")
    return as_markdown(
        [{k: TITLES[v] if k in named else v for k, v in row.items()} for row in rows]
    )


def _lead(found: list[Verdict]) -> str:
    """Return who is ahead, in sentences."""
    counts = Counter(one.found.outcome for one in found)
    judged = len(found) - counts[Outcome.FEW]
    text = (
        f"The other methods have {judged} points with at least {LEAST_SPLITS} splits. At the same "
        f"test gap, and among models of the same kind, this library is more accurate than "
        f"{counts[Outcome.AHEAD]} of them by more than the 95% interval of the difference, level "
        f"with {counts[Outcome.LEVEL]}, and behind {counts[Outcome.BEHIND]}; "
        f"{counts[Outcome.BEYOND]} have a smaller gap than any of ours and are less accurate."
    )
    if judged:
        text += f" If all were equal, chance would put about {0.025 * judged:.0f} of them behind."
    if counts[Outcome.FEW]:
        text += f" {counts[Outcome.FEW]} more points have too few splits for an interval."
    where = [one for one in found if one.found.outcome is Outcome.BEHIND]
    if where:
        text += "\n\nWhere this library is behind:\n\n"
        names = [f"{_title(one.row['notion'])}, {TITLES[one.row['data']]}" for one in where]
        text += "".join(f"- {name}: {one}\n" for name, one in zip(names, where, strict=True))
    return text + "\n"


def _what_was_run(table: list[Row], missing: dict[str, str], options: Namespace) -> str:
    """Return how many splits there are, and what is missing."""
    numbers = dict.fromkeys(dict.fromkeys(row["data"] for row in table), 0)
    for row in table:
        numbers[row["data"]] = max(numbers[row["data"]], row["splits"])
    shown = ", ".join(f"{TITLES[data]} {n}" for data, n in numbers.items())
    text = f"\nSplits, at most: {shown}. {_FEWER}"
    lacking, fits = Counter[str](), Counter[str]()
    for row in table:
        lacking[row["method"]] += numbers[row["data"]] - row["splits"]
        fits[row["method"]] += numbers[row["data"]]
    without = [f"{method} {n} of {fits[method]}" for method, n in lacking.items() if n]
    if without:
        text += f"\nFits without a result: {', '.join(without)}.\n"
    absent = [data for data in options.data if data not in numbers]
    if absent:
        text += f"\nNot run on this page: {', '.join(TITLES[data] for data in absent)}.\n"
    noisy = sorted({TITLES[r["data"]] for r in table if r["least positives"] < SMALL_CELL})
    text += (
        f"\nA group has under {SMALL_CELL} positives in the test rows of: {', '.join(noisy)}; its "
        "gaps are mostly noise, see their intervals.\n"
        if noisy
        else f"\nEvery group has at least {SMALL_CELL} positives in the test rows.\n"
    )
    return text + "".join(f"\nNot run: {peer} ({why}).\n" for peer, why in missing.items())


def _shown(row: Row) -> Row:
    """Return the columns of a point, its gap with the interval in one cell."""
    low, high = row["gap, low"], row["gap, high"]
    left_out = ("notion", "gap", "gap, low", "gap, high", "kind", "random", "least positives")
    left_out += ("by split",)
    shown = {name: value for name, value in row.items() if name not in left_out}
    return {**shown, "gap [95%]": f"{row['gap']:.4f} [{low:.3f}, {high:.3f}]"}


_FEWER = """Some methods have fewer (column "splits"): a fit has no
result if the solver of the package fails. A method without figures has not been run.
"""
_AHEAD = f"""For every point of another method, our accuracy at the same pooled gap is interpolated
between our points. "+-" is half the 95% interval of the difference over the same splits, with the
noise of both gaps (jackknife) and the overlap of the training rows: within it both are *level*.
With fewer than {LEAST_SPLITS} splits an interval says nothing. *Fairer, less accurate* is a point
whose gap is smaller than any of ours, and whose accuracy is below ours: neither is better. The
last column has the comparison in which ours is lowest.

Methods that need the group to predict are compared with our thresholds by group, and with our
linear models that have the group, or the group and its products with all features, as features.
With two groups, gaps of opposite sign cancel when rates are pooled, so that methods whose models
differ much between splits (GridSearch) have small pooled gaps.

"""
_AT_GAPS = """The accuracy of our most accurate point with a pooled gap of at most the given one,
minus the accuracy of the most accurate point of the other methods. A method has few points, and a
point with a gap just above the limit does not count. The table "Who is ahead" is therefore the
fairer comparison. "only ours": no other method has a point within that gap; "only peers": none of
ours has one; "-": neither ours nor another method has one.

"""
_FRONTIERS = """Higher is more accurate, further left is fairer. Bands are 95% intervals of the
accuracy of ours. Points far below ours are counted and not drawn. The table has the accuracy of
the most accurate point with a gap of at most 0.01 to 0.1, and its CPU seconds ("s").

"""
_BY_MEAN = """The mean of the gaps of single splits includes the noise of the test rows: on small
data sets no method can have a small mean gap. Expected rates of random predictions vary less than
rates of deterministic predictions, and a few thresholds by group overfit the training rows less
than a search over all coefficients.

"""
_SECONDS = """CPU seconds of a fit and its predictions, as multiples of those of this library on the
same task, and how far the fits of all settings of a task raise the peak memory beyond the data
("MiB"). Both are medians over the tasks, measured on the first split. GridSearch's seconds are
those of all its models together.

"""
_HEAD = """# Comparison with other libraries

How accurate are this library and other packages on new rows, when both are equally fair? All have
the same task: five data sets, three notions of fairness, linear models and boosted trees, the same
random splits. A *point* is a method with one tolerance; most methods have five, GridSearch has ten,
ThresholdOptimizer and Reweighing have one. The *gap* is the largest difference between groups on
the test rows: of selection rates (demographic parity), of true positive rates (equal opportunity),
or of true or false positive rates (equalized odds). The *pooled* gap has the rates of the test rows
of all splits together. *Kinds* are linear models that do not see the group when they predict,
linear models that see the group or have thresholds by group, and boosted trees.
*Two thresholds by group* are those of `FairThresholds(n_thresholds=2)`: a hash value of the
features decides which of the two a row has.

"""
_HOW = """`python -m benchmarks peers --docs docs` writes this page ({environment}).{versions}

The groups are not features, except for models that see the group. 30 per cent of the rows are test
rows. If predictions are random, accuracy and gaps are expected values; so are those of two
thresholds by group, over hash functions.
The AUC is that of the scores of the mixture for ExponentiatedGradient, and that of the selection
probabilities for ThresholdOptimizer and error-parity, which have no probabilities of the positive
class and therefore no log loss. The pooled gap is that of the rates of the test rows of all splits
together; gaps with simultaneous 95% intervals are means over single splits. CPU seconds include a
fit and its predictions on the test rows, without imports. MiB is how far the peak memory of the
process rises over the fits of all settings, after a fit on few rows. Both are of the first split,
which has a process of its own. Packages for networks train their linear model by 300 full-batch
steps of Adam.
"""
