"""Figures of partial parity: frontiers, rates over all thresholds, densities of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from benchmarks.harness.names import TITLES
from benchmarks.harness.rank_data import RANKS
from benchmarks.harness.tables import Row

COLOURS = (  # Okabe and Ito
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black", "0.5", "#882255",
)  # fmt: skip
MARKS = ("o", "s", "^", "D", "v", "P", "x", "*", "h")
OURS = ("ours", "unconstrained")  # whose points are our frontier
_BELOW = 1.5  # how far a figure reaches below our points, as a multiple of their range


def plt() -> Any:
    """Return matplotlib's pyplot, with a backend that needs no display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_frontiers(table: list[Row], what: str, path: Path) -> None:
    """Draw accuracy against fairness, a panel for every data set, a line for every method.

    Points far below ours are counted in the panel, and not drawn.
    """
    names = list(dict.fromkeys(row["data"] for row in table))
    styles = {
        method: (COLOURS[k], MARKS[k])
        for k, method in enumerate(dict.fromkeys(row["method"] for row in table))
    }
    figure, axes = plt().subplots(1, len(names), figsize=(4.6 * len(names), 4.0), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        some = [row for row in table if row["data"] == name]
        for method in dict.fromkeys(row["method"] for row in some):
            colour, mark = styles[method]
            points = sorted(
                (row["1 - unfairness"], row["accuracy"], row["+-"], row["+- "])
                for row in some
                if row["method"] == method
            )
            x, y, dx, dy = zip(*points, strict=True)
            axis.errorbar(
                x, y, yerr=dy, xerr=dx, label=method, color=colour, marker=mark,
                markersize=5, linewidth=1.4, elinewidth=0.8, capsize=2,
            )  # fmt: skip
        ours = [row["accuracy"] for row in some if row["method"] in OURS]
        points = [(row["1 - unfairness"], row["accuracy"]) for row in some]
        focus(axis, ours or [one for _, one in points], points)
        low, high = RANKS[name]
        axis.set_title(f"{TITLES[name]}, ranks {low:.0%} to {high:.0%}")
        axis.set_xlabel(f"1 - ${what}$ (test rows)")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy (test rows)")
    shown: dict[str, Any] = {}
    for axis in axes[0]:
        handles, labels = axis.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    columns = 2 * len(names)
    lines = -(-len(shown) // columns)
    figure.legend(
        shown.values(), shown, loc="lower center", ncols=columns, frameon=False, fontsize=9
    )
    figure.tight_layout(rect=(0, 0.02 + 0.06 * lines, 1, 1))
    _save(figure, path)


def focus(axis: Any, ours: list[float], points: list[tuple[float, float]]) -> None:
    """Set the limits so that our frontier is legible, and count the points far below it.

    Parameters
    ----------
    axis : matplotlib axes
        With all lines drawn.
    ours : list of float
        The accuracies of our points.
    points : list of (float, float)
        Abscissa and accuracy of all points.
    """
    x, y = np.array(points).T
    lowest = min(ours) - _BELOW * max(max(ours) - min(ours), 0.005)
    hidden = int(np.sum(y < lowest))
    if not hidden:
        return
    x, y = x[y >= lowest], y[y >= lowest]
    margin = 0.1 * max(np.ptp(y), 0.002)
    axis.set_ylim(max(lowest, y.min() - 4.0 * margin), y.max() + 4.0 * margin)
    axis.set_xlim(x.min() - 0.05 * np.ptp(x), x.max() + 0.05 * np.ptp(x))
    text = f"{hidden} {'point' if hidden == 1 else 'points'} below"
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    axis.annotate(text, (0.02, 0.03), xycoords="axes fraction", fontsize=8, bbox=box)


def draw_rates(scores: dict[str, tuple[np.ndarray, np.ndarray]], name: str, path: Path) -> None:
    """Draw the rate of one group against that of the other over all thresholds."""
    figure, axis = plt().subplots(figsize=(4.8, 4.6))
    low, high = RANKS[name]
    axis.fill_between([low, high], low, high, color="0.9", linewidth=0, zorder=0)
    for end in (low, high):
        axis.axvline(end, color="0.8", linewidth=0.8, zorder=0)
        axis.axhline(end, color="0.8", linewidth=0.8, zorder=0)
    axis.plot([0, 1], [0, 1], color="0.5", linewidth=0.8, linestyle=":", label="equal")
    styles = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), "-")
    for k, (label, (values, groups)) in enumerate(scores.items()):
        first, second = np.unique(groups)
        thresholds = np.sort(values)[::-1]
        rates = [
            1.0 - np.searchsorted(np.sort(values[groups == g]), thresholds, side="right")
            / np.sum(groups == g)
            for g in (first, second)
        ]  # fmt: skip
        axis.plot(*rates, color=COLOURS[k % 6], linestyle=styles[k % 6], label=label, linewidth=1.6)
    axis.set(xlabel=f"rate of {first}", ylabel=f"rate of {second}", xlim=(0, 1), ylim=(0, 1))
    axis.set_title(f"{name}: rates above every threshold (test)", fontsize=10)
    axis.set_aspect("equal")
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    _save(figure, path)


def draw_densities(scores: dict[str, tuple[np.ndarray, np.ndarray]], name: str, path: Path) -> None:
    """Draw the densities of the groups' scores; those of the ranks in the range are filled."""
    figure, axes = plt().subplots(
        1, len(scores), figsize=(3.4 * len(scores), 3.0), sharey=True, squeeze=False
    )
    low, high = RANKS[name]
    for axis, (label, (values, groups)) in zip(axes[0], scores.items(), strict=True):
        grid = np.linspace(*np.quantile(values, [0.002, 0.998]), 300)
        for k, group in enumerate(np.unique(groups)):
            own = values[groups == group]
            density = gaussian_kde(own)(grid)
            axis.plot(grid, density, "-" if k else "--", color=COLOURS[k], label=str(group))
            ends = np.quantile(own, [1.0 - high, 1.0 - low])
            inside = (grid >= ends[0]) & (grid <= ends[1])
            axis.fill_between(
                grid, density, where=inside, color=COLOURS[k], alpha=0.25, linewidth=0
            )
        axis.set_title(label, fontsize=10)
        axis.set_xlabel("score")
    axes[0][0].set_ylabel(f"density ({name}, test)")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt().close(figure)
