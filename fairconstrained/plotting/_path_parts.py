"""Parts of the picture of a path: what it shows, the band of the noise, labels in the margin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike
from fairconstrained.utils.validation import check_confidence

_QUALITIES = {"accuracy": "accuracy", "ndcg": "NDCG@10"}  # names in a path, and in the picture


def checked(argument: str, values: ArrayLike, shape: tuple[int | None, ...], what: str) -> Array:
    """Return finite numbers as an array of a shape, in which None stands for any length.

    Raises
    ------
    ValueError
        If they are not. The message says `what` they must be.
    """
    try:
        numbers = np.array(values, dtype=float, ndmin=len(shape))
    except (TypeError, ValueError):
        numbers = np.empty(0)
    fits = numbers.size and numbers.ndim == len(shape) and np.isfinite(numbers).all()
    sizes = zip(shape, numbers.shape, strict=False)
    if not fits or any(n is not None and n != size for n, size in sizes):
        raise ValueError(f"{argument} must be {what}; got {values!r}.")
    return numbers


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
    accuracies, noise = measured.get(f"val_{path.quality}", path.train_quality), None
    if confidence is not None and measured and path.quality == "accuracy":
        sizes = np.full(len(accuracies), path.validation_size)
        limits = clopper_pearson(accuracies, sizes, check_confidence(confidence))
        noise = np.column_stack([limits.low, limits.high])
    return {
        "gaps": measured.get("val_decision_gap", path.decision_gaps),
        "accuracies": accuracies,
        "kappas": path.kappas,
        "noise": noise,
        "gap_name": f"gap of the predictions, {where}",
        "accuracy_name": f"{_QUALITIES[path.quality]}, {where}",
    }
