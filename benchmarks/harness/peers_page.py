"""The page of the peers: frontiers, accuracy at given gaps, and who is ahead."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness.peer_worker import PEERS
from benchmarks.harness.rank_figures import COLOURS, MARKS, plt
from benchmarks.harness.tables import Row, as_markdown, environment

LEVELS = (0.01, 0.02, 0.05)
SMALL_CELL = 50
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
        row["+-"] = _half_width(row["accuracy"], sum(one["rows"] for one in some))
        row["splits"] = len({one["split"] for one in some})
        row["least positives"] = min(one["least positives"] for one in some)
        row["sees group"] = "yes" if PEERS[peer].sees_group else "no"
        row["random"] = "yes" if PEERS[peer].random else "no"
        table.append(row)
    return table


def _half_width(accuracy: float, n_rows: int) -> float:
    """Return half the 95% interval of an accuracy on all test rows of all splits together."""
    return float(1.96 * np.sqrt(max(accuracy * (1.0 - accuracy), 1e-9) / n_rows))


def best(rows: list[Row], level: float) -> Row | None:
    """Return the most accurate row whose mean test gap is at most a level."""
    allowed = [row for row in rows if row["gap"] <= level]
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
        row["sees group"], row["random"] = own[0]["sees group"], own[0]["random"]
        out.append(row)
    return out


def verdicts(table: list[Row]) -> list[Row]:
    """Return, for every task and level, who of the same kind is ahead of ours by more than noise.

    A difference counts if it exceeds the interval of the difference of two accuracies on these
    test rows, as if they were independent.
    """
    out = []
    for data, notion in dict.fromkeys((row["data"], row["notion"]) for row in table):
        some = [row for row in table if (row["data"], row["notion"]) == (data, notion)]
        for level in LEVELS:
            row: Row = {"data": data, "notion": notion, "gap at most": level}
            for sees in ("no", "yes"):
                kind = [one for one in some if one["sees group"] == sees]
                row[f"sees group: {sees}"] = _leader(kind, level)
            out.append(row)
    return out


def _leader(kind: list[Row], level: float) -> str:
    ours = best([row for row in kind if row["method"].startswith("ours")], level)
    theirs = best([row for row in kind if not row["method"].startswith(("ours", "no con"))], level)
    if ours is None or theirs is None:
        return "no peer has such a gap" if ours else ("ours has no such gap" if theirs else "-")
    difference = ours["accuracy"] - theirs["accuracy"]
    noise = float(np.hypot(ours["+-"], theirs["+-"]))
    text = f"{difference:+.4f} against {theirs['method']}"
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
            own = [r for r in own if r["gap"] <= 0.3]
            if not own:
                continue
            x, y, half = np.array(sorted((r["gap"], r["accuracy"], r["+-"]) for r in own)).T
            colour, style = COLOURS[k % len(COLOURS)], "-" if k < len(COLOURS) else "--"
            axis.plot(x, y, style, color=colour, marker=MARKS[k % 6], ms=4, lw=1, label=method)
            axis.fill_between(x, y - half, y + half, color=colour, alpha=0.12, linewidth=0)
        axis.set(title=name, xlabel="gap (test)")
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
    text += "\nSplits: " + ", ".join(f"{data} {n}" for data, n in counts.items()) + ".\n"
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
    left_out = ("notion", "gap", "gap, low", "gap, high", "sees group", "random", "least positives")
    shown = {name: value for name, value in row.items() if name not in left_out}
    return {**shown, "gap [95%]": f"{row['gap']:.4f} [{low:.3f}, {high:.3f}]"}


_AHEAD = """The table has the accuracy of this library minus that of the best other method of the
same kind, both with a mean test gap of at most the given one. "level" means that the
difference is within its 95% interval. Methods that need the group to predict are
compared with our model that has the group as a feature. There is no entry if a method
has no setting with so small a gap.

"""
_HEAD = """# Peers side by side

`python -m benchmarks peers --docs docs` writes this page ({environment}).

All methods have the same task: a linear model without the sensitive attribute as a feature, 30 per
cent test rows, five tolerances. If predictions are random, accuracy and gaps are expected values.
The AUC is that of the scores of the mixture for ExponentiatedGradient, and that of the selection
probabilities for ThresholdOptimizer, which has no probabilities of the positive class and therefore
no log loss. Gaps are on test rows, with simultaneous 95% intervals of the differences on a split.
CPU seconds include a fit and its predictions on the test rows, without imports. MiB is the growth
of the peak memory of the process over all fits. Packages for networks train their linear model by
300 full-batch steps of Adam.

FairGBM (boosted trees) and error-parity need older versions of scikit-learn and NumPy; they are not
part of this comparison of linear models.
"""
