"""The style of the plots: colours, line styles, markers and hatches."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

    from fairconstrained.utils.arrays import Array, ArrayLike
else:  # matplotlib is optional
    Annotation = Artist = Axes = Line2D = LineCollection = Any

# The palette of Okabe and Ito, safe for colour-blind readers, without its yellow, which is hardly
# visible on paper. Line styles, markers and hatches distinguish groups in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "<", ">", "p", "P", "X")
HATCHES = ("", "///", "...", "\\\\\\", "xx", "ooo", "++", "---", "**")
GREY = "0.35"
_DISTANCE = 0.07  # of labels in the margin, as a share of the height


def line_style(i: int) -> dict[str, Any]:
    """Return the colour and the line style of line i."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": STYLES[i % len(STYLES)]}


def mark(i: int) -> dict[str, Any]:
    """Return the colour and the marker of points i."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def plain_text(name: str, width: int = 40) -> str:
    """Return a name from the data such that matplotlib draws it as it is.

    "$" begins no formula, and legends leave out what begins with "_". It has lines of at most
    `width` characters.
    """
    return fill(" " * name.startswith("_") + name, width).replace("$", r"\$")


class AxesDisplay:
    """A display with a single axes, `ax_`."""

    ax_: Axes

    @property
    def figure_(self) -> Any:
        """The figure of the axes."""
        return self.ax_.figure

    def _start(self, ax: Axes | None, figsize: tuple[float, float] = (5.6, 4.2)) -> None:
        """Draw on the given axes, or on those of a new figure, with a light grid below the data.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not an Axes of matplotlib.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=figsize, layout="constrained")[1]
        if not isinstance(ax, plt.Axes):
            raise TypeError(f"ax must be an Axes of matplotlib, or None; got {ax!r}.")
        self.ax_ = ax
        style_axes(ax)


def style_axes(ax: Axes) -> None:
    """Draw a light grid below the data, and hide the top and right spines."""
    ax.grid(True, which="major", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def ranks_label(ranks: tuple[float, float]) -> str:
    """Return a range of ranks as text."""
    return "ranks {:g}% to {:g}%".format(*(100.0 * end for end in ranks))


def labels_in_margin(ax: Axes, labels: Sequence[tuple[str, float, float]]) -> list[Annotation]:
    """Draw texts of points in the right margin, at their heights but not overlaid."""
    low, high = ax.get_ylim()
    heights = np.array([(y - low) / (high - low) for _, _, y in labels])
    order, steps = np.argsort(-heights, kind="stable"), _DISTANCE * np.arange(len(heights))
    below = np.minimum.accumulate(heights[order] + steps) - steps
    heights[order] = np.maximum(below, steps[::-1])
    line = {"arrowstyle": "-", "color": "0.75", "linewidth": 0.7, "shrinkA": 1, "shrinkB": 5}
    return [
        ax.annotate(
            text, (x, y), (1.02, height), textcoords="axes fraction", fontsize="small",
            color=GREY, ha="left", va="center", arrowprops=line, zorder=2.5,
        )
        for (text, x, y), height in zip(labels, heights, strict=True)
    ]  # fmt: skip


def legend_above(ax: Axes, handles: Sequence[Artist] | None = None, **kw: Any) -> Legend:
    """Draw the legend above the axes, in as many columns as fit to the right end of their space."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    figure: Any = ax.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    inside = ax.get_window_extent()
    room = 0.98 * figure.bbox.x1 - inside.x0 if len(figure.axes) == 1 else inside.width
    for columns in range(max(len(handles), 1), 0, -1):
        legend = ax.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.01), borderaxespad=0.0,
            borderpad=0.2, ncols=columns, frameon=False, handlelength=2.8, columnspacing=1.4, **kw,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent().width <= room:
            break
    return legend


def checked(argument: str, values: ArrayLike, shape: tuple[int | None, ...], what: str) -> Array:
    """Return finite numbers as an array of a shape, in which None stands for any length."""
    try:
        numbers = np.array(values, dtype=float, ndmin=len(shape))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    fits = numbers.size and numbers.ndim == len(shape) and np.isfinite(numbers).all()
    if not fits or any(n not in (None, m) for n, m in zip(shape, numbers.shape, strict=True)):
        raise ValueError(f"{argument} must be {what}; got {values!r}.")
    return numbers
