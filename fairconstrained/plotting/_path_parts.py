"""Parts of the picture of a path: what it shows, the band of the noise, labels in the margin."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from fairconstrained.metrics.distributions import weak_partial_demographic_parity_difference
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.plotting.style import COLOURS, GREY
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike
from fairconstrained.utils.validation import check_confidence, check_numbers, is_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch
    from matplotlib.text import Annotation

_QUALITIES = {"accuracy": "accuracy", "ndcg": "NDCG@10"}  # names in a path, and in the picture
_DISTANCE = 0.07  # of labels in the margin, as a share of the height


class MarginLabels:
    """Labels in the right margin of axes, with thin lines to their points.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes.
    """

    def __init__(self, ax: Axes):
        self.ax = ax
        self.labels: list[tuple[str, float, float]] = []
        self._texts: list[Annotation] = []

    def add(self, text: str, x: float, y: float) -> None:
        """Add the label of a point; `draw` shows it."""
        self.labels.append((text, float(x), float(y)))

    def draw(self) -> None:
        """Draw all labels at the heights of their points, but not over each other."""
        for drawn in self._texts:
            drawn.remove()
        low, high = self.ax.get_ylim()
        wanted = np.array([(y - low) / (high - low) for _, _, y in self.labels])
        line = {"arrowstyle": "-", "color": "0.75", "linewidth": 0.7, "shrinkA": 1.0}
        line["shrinkB"] = 5.0
        self._texts = [
            self.ax.annotate(
                text, (x, y), (1.02, place), textcoords="axes fraction", fontsize="small",
                color=GREY, ha="left", va="center", arrowprops=line, zorder=2.5,
            )
            for (text, x, y), place in zip(self.labels, apart(wanted, _DISTANCE), strict=True)
        ]  # fmt: skip


def apart(places: Array, distance: float) -> Array:
    """Return places that are at least a distance apart, near the given ones and not below 0."""
    moved = np.array(places, dtype=float)
    order = np.argsort(-moved, kind="stable")
    for above, below in pairwise(order):
        moved[below] = min(moved[below], moved[above] - distance)
    if len(moved) and moved[order[-1]] < 0.0:
        moved[order[-1]] = 0.0
        for below, above in pairwise(order[::-1]):
            moved[above] = max(moved[above], moved[below] + distance)
    return moved


def noise_of(accuracies: Array, size: float, confidence: float | None) -> Array | None:
    """Return exact confidence intervals of accuracies on `size` rows; None if it is not known."""
    if confidence is None or not np.isfinite(size):
        return None
    sizes = np.full(len(accuracies), size)
    limits = clopper_pearson(accuracies, sizes, check_confidence(confidence))
    return np.column_stack([limits.low, limits.high])


def measures_of(path: FairnessPath, rows: str, confidence: float | None) -> dict[str, Any]:
    """Return the arguments of `FairnessPathDisplay` that a path gives: measures and axis labels.

    Parameters
    ----------
    path : FairnessPath
        The path.
    rows : {"auto", "training", "validation"}
        The rows on which the models are measured; "auto" takes the validation rows if there are
        any.
    confidence : float or None
        The confidence level of the intervals of accuracies on validation rows; None for none. Other
        qualities have none: the intervals are those of a share of the rows.

    Raises
    ------
    ValueError
        If the path has no validation rows and they are asked for.
    TypeError
        If `path` is not a path.
    """
    if not isinstance(path, FairnessPath):
        raise TypeError(f"path must be the FairnessPath of fairness_path; got {path!r}.")
    check_option("rows", rows, dict.fromkeys(("auto", "training", "validation"), ""))
    if rows == "validation" and not path.validation:
        raise ValueError(
            "rows='validation': the path has no validation rows; pass X_val and y_val to it."
        )
    measured = path.validation if rows != "training" else {}
    where = "validation rows" if measured else "training rows"
    size = path.validation_size if measured else float("nan")
    accuracies = measured.get(f"val_{path.quality}", path.train_quality)
    level = confidence if path.quality == "accuracy" else None
    return {
        "gaps": measured.get("val_decision_gap", path.decision_gaps),
        "accuracies": accuracies,
        "noise": noise_of(accuracies, size, level),
        "gap_name": f"gap of the predictions, {where}",
        "accuracy_name": f"{_QUALITIES[path.quality]}, {where}",
    }


def in_order(
    gaps: ArrayLike, accuracies: ArrayLike, kappas: ArrayLike | None
) -> tuple[Array, Array, Array | None, Array]:
    """Return a path sorted by kappa, or by gap if there are no kappas, and the order.

    Raises
    ------
    ValueError
        If there are no models, a value is not a finite number, or the numbers of values differ.
    """
    found, measured = _numbers("gaps", gaps), _numbers("accuracies", accuracies)
    known = None if kappas is None else _numbers("kappas", kappas)
    sizes = {len(found), len(measured), *([] if known is None else [len(known)])}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            f"FairnessPathDisplay needs a gap and an accuracy for each model; got {len(found)} "
            f"gaps and {len(measured)} accuracies"
            + ("." if known is None else f" for {len(known)} kappas.")
        )
    order = np.argsort(found if known is None else known, kind="stable")
    return found[order], measured[order], None if known is None else known[order], order


def _numbers(argument: str, values: ArrayLike) -> Array:
    """Return one or several finite numbers as an array of shape (n_values,).

    Raises
    ------
    ValueError
        If they are not finite numbers; there may be none.
    """
    try:
        found = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError(f"{argument} must be finite numbers, one for each model; got {values!r}.")
    return found


def checked_pair(argument: str, values: object) -> tuple[float, float]:
    """Return the gap and the accuracy of a model.

    Raises
    ------
    ValueError
        If they are not two finite numbers.
    """
    found = check_numbers(argument, values, -np.inf, np.inf)
    if len(found) != 2:
        raise ValueError(f"{argument} must be two numbers, (gap, accuracy); got {values!r}.")
    return float(found[0]), float(found[1])


def checked_position(chosen: object, n_models: int) -> int:
    """Return the position of the chosen model.

    Raises
    ------
    ValueError
        If there is no model at this position.
    """
    if not is_number(chosen, Integral) or not 0 <= chosen < n_models:
        raise ValueError(
            f"chosen must be the position of one of the {n_models} models, from 0; got {chosen!r}."
        )
    return int(chosen)


_MARKS: dict[str, dict[str, Any]] = {
    "chosen": {
        "color": COLOURS[1], "marker": "o", "markersize": 11.0, "markerfacecolor": "none",
        "markeredgewidth": 2.0,
    },
    "unconstrained": {
        "color": "black", "marker": "*", "markersize": 12.0, "markeredgecolor": "white",
    },
}  # fmt: skip


def draw_mark(ax: Axes, x: float, y: float, kind: str) -> Line2D:
    """Mark the point of the chosen or the unconstrained model, which is not in the legend."""
    (mark,) = ax.plot([x], [y], linestyle="none", zorder=4.0, label=f"_{kind}", **_MARKS[kind])
    return mark


def draw_band(ax: Axes, gaps: Array, noise: ArrayLike, order: Array, colour: str) -> PathPatch:
    """Draw the band of intervals along a sorted path, which may turn back.

    Raises
    ------
    ValueError
        If there is not a lower and an upper end for each model.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    ends = _table("noise", noise)
    if ends.shape != (len(gaps), 2):
        raise ValueError(
            f"noise must have a lower and an upper end for each of the {len(gaps)} models; got "
            f"{noise!r}."
        )
    (low, high), quads = ends[order].T, []
    for i in range(len(gaps) - 1):
        left, right = sorted((i, i + 1), key=lambda k: gaps[k])  # by gap, for one orientation
        corners = [
            (gaps[left], low[left]), (gaps[right], low[right]), (gaps[right], high[right]),
            (gaps[left], high[left]), (gaps[left], low[left]),
        ]  # fmt: skip
        quads.append(Path(corners, closed=True))
    band = PathPatch(
        Path.make_compound_path(*quads), facecolor=colour, alpha=0.13, linewidth=0.0, zorder=1.0,
        label="confidence interval of the accuracy",
    )  # fmt: skip
    ax.add_patch(band)
    ax.update_datalim(np.column_stack([np.repeat(gaps, 2), ends[order].ravel()]))
    return band


def selection_gap(y_true: ArrayLike, y_pred: ArrayLike, **rows: Any) -> float:
    """Return the gap of the selection rates."""
    values = np.unique(np.concatenate([np.asarray(y_true), np.asarray(y_pred)]))
    selected = np.asarray(y_pred) == values[-1]
    return weak_partial_demographic_parity_difference(y_true, selected, threshold=0.5, **rows)


def _table(argument: str, values: ArrayLike) -> Array:
    """Return numbers as an array."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must be numbers; got {values!r}.") from error


def checked_points(name: str, points: ArrayLike) -> Array:
    """Return the points of other models, sorted by gap, of shape (n, 2).

    Raises
    ------
    ValueError
        If the name is not a string, or the points are not pairs.
    """
    if not isinstance(name, str):
        raise ValueError(f"name must be a string, the name in the legend; got {name!r}.")
    places = _table("points", points)
    if places.shape != (2,) and (places.ndim != 2 or places.shape[1] != 2):
        raise ValueError(
            f"points of {name!r} must be a pair (gap, accuracy), or pairs of shape (n, 2); "
            f"got shape {places.shape}."
        )
    places = places.reshape(-1, 2)
    return places[np.argsort(places[:, 0], kind="stable")]
