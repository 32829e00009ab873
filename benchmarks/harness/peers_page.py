"""The page of the peers: frontiers, accuracy at given gaps, and who is ahead."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.harness.peer_worker import PEERS
from benchmarks.harness.rank_figures import COLOURS, MARKS, plt
from benchmarks.harness.tables import Row, as_markdown, environment

LEVELS = (0.01, 0.02, 0.05)
SMALL_CELL = 50
TEST_SHARE = 0.3  # of the rows of a split
_TEST_TO_TRAIN = TEST_SHARE / (1.0 - TEST_SHARE)
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
        by_split = {one["split"]: one["accuracy"] for one in some}
        row["pooled gap"] = pooled_gap([one["cells"] for one in some])
        row["+-"] = half_width(np.array(list(by_split.values())))
        row["splits"] = len(by_split)
        row["least positives"] = min(one["least positives"] for one in some)
        row["kind"], row["random"] = PEERS[peer].kind, "yes" if PEERS[peer].random else "no"
        row["by split"] = by_split
        table.append(row)
    return table


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


def half_width(values: np.ndarray) -> float:
    """Return half the 95% interval of a mean over splits, infinite for one split.

    The training rows of splits overlap: the variance is that of Nadeau and Bengio (2003),
    with 1 / J + n_test / n_train in place of 1 / J.
    """
    if len(values) < 2:
        return float("inf")
    variance = (1.0 / len(values) + _TEST_TO_TRAIN) * np.var(values, ddof=1)
    return float(student.ppf(0.975, len(values) - 1) * np.sqrt(variance))


def best(rows: list[Row], level: float, gap: str = "pooled gap") -> Row | None:
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


def verdicts(table: list[Row], gap: str = "pooled gap") -> list[Row]:
    """Return, for every task and level, who of the same kind is ahead of ours by more than noise.

    A difference counts if it exceeds the interval of the differences on the same splits.
    """
    out = []
    kinds = dict.fromkeys(row["kind"] for row in table)
    for data, notion in dict.fromkeys((row["data"], row["notion"]) for row in table):
        some = [row for row in table if (row["data"], row["notion"]) == (data, notion)]
        for level in LEVELS:
            row: Row = {"data": data, "notion": notion, "gap at most": level}
            for kind in kinds:
                row[kind] = _leader([one for one in some if one["kind"] == kind], level, gap)
            out.append(row)
    return out


def _leader(some: list[Row], level: float, gap: str) -> str:
    ours = best([row for row in some if row["method"].startswith("ours")], level, gap)
    theirs = best(
        [row for row in some if not row["method"].startswith(("ours", "no con"))], level, gap
    )
    if ours is None or theirs is None:
        return "no peer has such a gap" if ours else ("ours has no such gap" if theirs else "-")
    common = sorted(set(ours["by split"]) & set(theirs["by split"]))
    differences = np.array([ours["by split"][k] - theirs["by split"][k] for k in common])
    difference, noise = float(differences.mean()), half_width(differences)
    text = f"{difference:+.4f} +- {noise:.4f} against {theirs['method']}"
    if abs(difference) <= noise:
        return f"level ({text})"
    return f"**ours** ({text})" if difference > 0 else f"**{theirs['method']}** ({text})"


def draw(table: list[Row], notion: str, path: Path) -> None:
    """Draw accuracy against the test gap, a panel for every data set, with 95% bands."""
    chosen = [row for row in table if row["notion"] == notion]
    names = list(dict.fromkeys(row["data"] for row in chosen))
    methods = list(dict.fromkeys(row["method"] for row in table))
    figure, axes = plt().subplots(1, len(names), figsize=(3.6 * len(names), 3.4), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        for k, method in enumerate(methods):
            own = [r for r in chosen if r["data"] == name and r["method"] == method]
            own = [r for r in own if r["pooled gap"] <= 0.3]
            if not own:
                continue
            x, y, half = np.array(sorted((r["pooled gap"], r["accuracy"], r["+-"]) for r in own)).T
            half = np.where(np.isfinite(half), half, 0.0)
            colour, style = COLOURS[k % len(COLOURS)], "-" if k < len(COLOURS) else "--"
            axis.plot(x, y, style, color=colour, marker=MARKS[k % 6], ms=4, lw=1, label=method)
            axis.fill_between(x, y - half, y + half, color=colour, alpha=0.12, linewidth=0)
        axis.set(title=name, xlabel="pooled gap (test)")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy (test)")
    found = {}
    for axis in axes[0]:
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(found.values(), found.keys(), loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=72)
    plt().close(figure)


def write_page(table: list[Row], missing: dict[str, str], options: Namespace) -> None:
    """Write peers.md and a figure for every notion."""
    notions = list(dict.fromkeys(row["notion"] for row in table))
    text = _HEAD.format(environment=environment(), small=SMALL_CELL)
    counts = dict.fromkeys(dict.fromkeys(row["data"] for row in table), 0)
    for row in table:
        counts[row["data"]] = max(counts[row["data"]], row["splits"])
    numbers = ", ".join(f"{data} {n}" for data, n in counts.items())
    text += f"\nSplits, at most: {numbers}. {_FEWER}"
    absent = [data for data in options.data if data not in counts]
    if absent:
        text += f"\nNot run on this page: {', '.join(absent)}.\n"
    noisy = sorted({row["data"] for row in table if row["least positives"] < SMALL_CELL})
    text += (
        f"\nA group has under {SMALL_CELL} positives in the test rows of: {', '.join(noisy)}; its "
        "gaps are mostly noise, see their intervals.\n"
        if noisy
        else f"\nEvery group has at least {SMALL_CELL} positives in the test rows.\n"
    )
    for peer, reason in missing.items():
        text += f"\nNot run: {peer} ({reason}).\n"
    text += "\n## Who is ahead\n\n" + _AHEAD + as_markdown(verdicts(table))
    text += "\n### By the mean gap of single splits\n\n" + _BY_MEAN
    text += as_markdown(verdicts(table, "gap"))
    for notion in notions:
        draw(table, notion, options.docs / "_static" / f"peers-{notion}.png")
        some = [row for row in table if row["notion"] == notion]
        title = notion.replace("_", " ").capitalize()
        text += f"\n## {title}\n\n![Frontiers](_static/peers-{notion}.png)\n\n"
        gaps = [{k: v for k, v in row.items() if k != "notion"} for row in at_gaps(some)]
        text += as_markdown(gaps) + "\n### Every point\n\n"
        text += as_markdown([_shown(row) for row in some])
    (options.docs / "peers.md").write_text(text)


def _shown(row: Row) -> Row:
    """Return the columns of a point, its gap with the interval in one cell."""
    low, high = row["gap, low"], row["gap, high"]
    left_out = ("notion", "gap", "gap, low", "gap, high", "kind", "random", "least positives")
    left_out += ("by split",)
    shown = {name: value for name, value in row.items() if name not in left_out}
    return {**shown, "gap [95%]": f"{row['gap']:.4f} [{low:.3f}, {high:.3f}]"}


_FEWER = """Some methods have fewer (column "splits"): the intervals of two splits are
so wide that "level" says little there, and a method without figures has not been run.
"""
_AHEAD = """The table has the accuracy of this library minus that of the best other method of the
same kind, both with a pooled test gap of at most the given one, and half the 95% interval
of the difference over the same splits. "level" means that the difference is within it.
Methods that need the group to predict are compared with our linear model that has the group
as a feature and with our thresholds by group. There is no entry if a method has no setting
with so small a gap. With two groups, gaps of opposite sign cancel when rates are pooled, so
that methods whose models differ much between splits (GridSearch) have small pooled gaps.

"""
_BY_MEAN = """The mean of the gaps of single splits includes the noise of the test rows: on small
data sets no method can have a small one. Expected rates of random predictions have less noise than
rates of fixed ones, and thresholds by group, of which there are few, follow the training rows less
than a search over all coefficients.

"""
_HEAD = """# Peers side by side

`python -m benchmarks peers --docs docs` writes this page ({environment}).

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
