"""How pictures look: colours, lines, markers and hatches that tell things apart in any print."""

from __future__ import annotations

from typing import Any

from sklearn.utils._optional_dependencies import check_matplotlib_support

# Okabe and Ito's colours, which the colour blind can tell apart, without the yellow that paper
# swallows; the styles of lines, markers and hatches tell things apart in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "<", ">", "p", "P", "X")
HATCHES = ("", "///", "...", "\\\\\\", "xx", "ooo", "++", "---", "**")
GREY = "0.35"


def look(i: int) -> dict[str, Any]:
    """Return colour and style of line i."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": STYLES[i % len(STYLES)]}


def axes_for(ax: Any, method: str, figsize: tuple[float, float] = (5.6, 4.2)) -> Any:
    """Return the axes to draw on: those given, else those of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed; `method` is who needs it.
    """
    check_matplotlib_support(method)
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def tidy(ax: Any) -> None:
    """Draw a light grid behind, and no frame above and to the right."""
    ax.grid(True, which="major", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend_above(ax: Any, handles: list[Any] | None = None, **kw: Any) -> Any:
    """Name things above the axes, where no data are, in as many columns as there is room for."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    alone = len(ax.figure.axes) == 1  # the layout will widen it to about this
    room = 0.88 * ax.figure.bbox.width if alone else ax.get_window_extent().width
    for columns in range(max(len(handles), 1), 0, -1):
        legend = ax.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.01), borderaxespad=0.0,
            borderpad=0.2, ncols=columns, frameon=False, handlelength=2.8, columnspacing=1.4, **kw,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent().width <= room:
            break
    return legend
