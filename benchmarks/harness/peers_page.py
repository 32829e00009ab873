"""The page of the peers: frontiers, accuracy at given gaps, and who is ahead."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness.dominance import Outcome
from benchmarks.harness.intervals import LEAST_SPLITS, half_width
from benchmarks.harness.peer_worker import MOMENTS, PEERS
from benchmarks.harness.peers_verdicts import (
    TEST_TO_TRAIN,
    Verdict,
    at_gaps,
    at_levels,
    pooled_gap,
    speeds,
    summary,
    verdicts,
)
from benchmarks.harness.rank_figures import MARKS, plt
from benchmarks.harness.tables import Row, as_markdown, environment

DATA = ("compas", "communities", "law_school", "bank", "adult")  # from few rows to many
SMALL_CELL = 50
_WIDEST = 0.3  # the largest gap in a figure
_MEANS = ("accuracy", "AUC", "log loss", "gap", "gap, low", "gap, high", "CPU seconds", "MiB")


def frontier(rows: list[Row]) -> list[Row]:
    """Return means over the splits, a row for every setting of every peer."""
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
        row["pooled gap"] = pooled_gap([one["cells"] for one in some])
        row["+-"] = half_width(np.array([one["accuracy"] for one in some]), TEST_TO_TRAIN)
        row["splits"] = len(by_split)
        row["least positives"] = min(one["least positives"] for one in some)
        row["kind"], row["random"] = PEERS[peer].kind, "yes" if PEERS[peer].random else "no"
        row["by split"] = by_split
        table.append(row)
    return table


def draw(table: list[Row], notion: str, path: Path) -> None:
    """Draw accuracy against the test gap, a panel for every data set, with 95% bands."""
    chosen = [row for row in table if row["notion"] == notion and row["pooled gap"] <= _WIDEST]
    names = list(dict.fromkeys(row["data"] for row in chosen))
    columns = min(len(names), 3)
    lines = -(-len(names) // columns)
    size = (4.2 * columns, 3.2 * lines + 1.3)
    figure, axes = plt().subplots(lines, columns, figsize=size, squeeze=False)
    for axis in axes.ravel()[len(names) :]:
        axis.axis("off")
    styles, found = _styles(table), {}
    for axis, name in zip(axes.ravel(), names, strict=False):
        _panel(axis, [row for row in chosen if row["data"] == name], styles)
        axis.set(title=name, xlabel="pooled gap (test)", ylabel="accuracy (test)")
        axis.grid(alpha=0.3)
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    order = [method for method in styles if method in found]
    handles = [found[method] for method in order]
    figure.legend(handles, order, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 1.1 / size[1], 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt().close(figure)


def _styles(table: list[Row]) -> dict[str, dict[str, Any]]:
    """Return the line of every method: dashed if it sees the group, dotted for trees."""
    dashes = {"linear": "-", "linear, sees the group": "--", "trees": ":"}
    styles: dict[str, dict[str, Any]] = {}
    for kind, dash in dashes.items():
        own = [method for method, peer in PEERS.items() if peer.kind == kind]
        own = [method for method in own if any(row["method"] == method for row in table)]
        for k, method in enumerate(own):
            styles[method] = {"linestyle": dash, "color": f"C{k % 10}", "marker": MARKS[k % 6]}
            styles[method] |= {"linewidth": 2.0 if method.startswith("ours") else 1.0}
    return styles


def _panel(axis: Any, chosen: list[Row], styles: dict[str, dict[str, Any]]) -> None:
    """Draw the lines of a data set; the axis shows all points, and bands that are not wider."""
    values = [row["accuracy"] for row in chosen]
    height = max(max(values) - min(values), 0.01)
    for method, style in styles.items():
        own = [row for row in chosen if row["method"] == method]
        if not own:
            continue
        x, y, half = np.array(sorted((r["pooled gap"], r["accuracy"], r["+-"]) for r in own)).T
        axis.plot(x, y, markersize=4, label=method, **style)
        if half.max() <= height:
            band = {"color": style["color"], "alpha": 0.08, "linewidth": 0}
            axis.fill_between(x, y - half, y + half, **band)
    axis.set_ylim(min(values) - 0.15 * height, max(values) + 0.15 * height)


def write_page(
    table: list[Row], missing: dict[str, str], options: Namespace, versions: str = ""
) -> None:
    """Write peers.md and a figure for every notion."""
    table = sorted(table, key=_order)
    notions = list(dict.fromkeys(row["notion"] for row in table))
    pooled, single = verdicts(table), verdicts(table, "gap")
    text = _HEAD + _lead(pooled) + "\n## Who is ahead\n\n" + _AHEAD
    text += as_markdown(summary(pooled)) + "\n## Seconds\n\n" + _SECONDS
    text += as_markdown(speeds(table)) + "\n## At given gaps\n\n" + _AT_GAPS
    text += as_markdown(at_levels(table))
    for notion in notions:
        draw(table, notion, options.docs / "_static" / f"peers-{notion}.png")
        some = [row for row in table if row["notion"] == notion]
        text += f"\n## {_title(notion)}\n\n![Frontiers](_static/peers-{notion}.png)\n\n"
        gaps = [{k: v for k, v in row.items() if k != "notion"} for row in at_gaps(some)]
        text += as_markdown(gaps)
    text += "\n## How it is measured\n\n" + _HOW.format(
        environment=environment(), versions=versions
    )
    text += _what_was_run(table, missing, options)
    text += "\n## By the mean gap of single splits\n\n" + _BY_MEAN + _lead(single)
    text += "\n" + as_markdown(summary(single)) + "\n" + as_markdown(at_levels(table, "gap"))
    for notion in notions:
        some = [row for row in table if row["notion"] == notion]
        text += f"\n## Every point: {_title(notion).lower()}\n\n"
        text += as_markdown([_shown(row) for row in some])
    (options.docs / "peers.md").write_text(text)


def _order(row: Row) -> tuple[int, ...]:
    """Return the position of a row: by notion, data set and method, in the order of the options."""
    return tuple(
        list(names).index(row[name])
        for name, names in (("notion", MOMENTS), ("data", DATA), ("method", PEERS))
    )


def _title(notion: str) -> str:
    return notion.replace("_", " ").capitalize()


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
        names = [f"{_title(one.row['notion'])}, {one.row['data']}" for one in where]
        text += "".join(f"- {name}: {one}\n" for name, one in zip(names, where, strict=True))
    return text + "\n"


def _what_was_run(table: list[Row], missing: dict[str, str], options: Namespace) -> str:
    """Return how many splits there are, and what is missing."""
    numbers = dict.fromkeys(dict.fromkeys(row["data"] for row in table), 0)
    for row in table:
        numbers[row["data"]] = max(numbers[row["data"]], row["splits"])
    shown = ", ".join(f"{data} {n}" for data, n in numbers.items())
    text = f"\nSplits, at most: {shown}. {_FEWER}"
    absent = [data for data in options.data if data not in numbers]
    if absent:
        text += f"\nNot run on this page: {', '.join(absent)}.\n"
    noisy = sorted({row["data"] for row in table if row["least positives"] < SMALL_CELL})
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


_FEWER = """Some methods have fewer (column "splits"), and a method
without figures has not been run: linear programs and reductions take minutes on the large data.
"""
_AHEAD = f"""For every point of another method, a setting, our accuracy at the same pooled test gap
is interpolated between our settings. "+-" is half the 95% interval of the difference over the same
splits, with the noise of both gaps (jackknife): within it both are level. With fewer than
{LEAST_SPLITS} splits an interval says nothing. "ahead" includes points with a smaller gap than any
of ours that are less accurate. Methods that need the group to predict are compared with our
thresholds by group, and with our linear models that have the group, or the group and its products
with all features, as features. With two groups, gaps of opposite sign cancel when rates are pooled,
so that methods whose models differ much between splits (GridSearch) have small pooled gaps.

"""
_AT_GAPS = """The accuracy of our best setting with a pooled test gap of at most the given one, less
that of the best other method's. Settings are few: one with a gap just above the given one does not
count.

"""
_BY_MEAN = """The mean of the gaps of single splits includes the noise of the test rows: on small
data sets no method can have a small one. Expected rates of random predictions have less noise than
rates of fixed ones, and thresholds by group, of which there are few, follow the training rows less
than a search over all coefficients.

"""
_SECONDS = """CPU seconds of a fit and its predictions, as multiples of those of this library on the
same task: medians over the tasks. GridSearch's are those of all its models together.

"""
_HEAD = """# Peers side by side

"""
_HOW = """`python -m benchmarks peers --docs docs` writes this page ({environment}).{versions}

All methods have the same task: a model without the sensitive attribute as a feature, 30 per
cent test rows, five tolerances. If predictions are random, accuracy and gaps are expected values.
The AUC is that of the scores of the mixture for ExponentiatedGradient, and that of the selection
probabilities for ThresholdOptimizer and error-parity, which have no probabilities of the positive
class and therefore no log loss. The pooled gap is that of the rates of the test rows of all splits
together; gaps with simultaneous 95% intervals are means over single splits. CPU seconds include a
fit and its predictions on the test rows, without imports. MiB is the growth of the peak memory of
the process over all fits. Packages for networks train their linear model by 300 full-batch steps of
Adam. Kinds: linear models that do not see the group when they predict, linear models with the group
or with one threshold for each group, and boosted trees that do not see the group.
"""
