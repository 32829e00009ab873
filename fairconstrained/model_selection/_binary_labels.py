"""Labels 0 and 1 in place of the names of two classes, as metrics of fairness need them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from fairconstrained.utils.meta_estimators import favourable_label
from fairconstrained.utils.typing import Array, ArrayLike

_LABELS = ("pos_label", "priority")  # options of metrics that name a class


@dataclass(frozen=True)
class BinaryLabels:
    """From an estimator's two classes to 0 and 1; what has other classes is left as it is.

    The favourable class is the second one; `reversed` is whether it is the first of `classes_`.
    """

    classes: tuple[Any, ...]
    reversed: bool = False

    @classmethod
    def of(cls, estimator: Any) -> BinaryLabels:
        classes = getattr(estimator, "classes_", ())
        found = tuple(np.asarray(classes).tolist()) if np.ndim(classes) == 1 else ()
        if len(found) == 2 and favourable_label(estimator) == found[0]:
            return cls(found[::-1], reversed=True)
        return cls(found)

    def metric(self, metric: Callable[..., float], *, of_labels: bool) -> Callable[..., float]:
        """Return the metric of the names of the classes.

        Parameters
        ----------
        metric : callable
            The metric of labels 0 and 1.
        of_labels : bool
            Whether `y_pred` are predicted labels; scores are left as they are.
        """
        if len(self.classes) != 2:
            return metric
        accepted = inspect.signature(metric).parameters

        @wraps(metric)
        def mapped(y_true: ArrayLike, y_pred: ArrayLike, **options: Any) -> float:
            predicted = np.asarray(y_pred)
            if of_labels and predicted.ndim == 1 and np.isin(predicted, self.classes).all():
                predicted = self.codes("y_pred", predicted)
            if self.reversed and "pos_label" not in accepted:  # it was for the scores
                options.pop("pos_label", None)
            return metric(self.codes("y_true", y_true), predicted, **self.options(options))

        return mapped

    def codes(self, name: str, labels: ArrayLike) -> Array:
        """Return 0 or 1 for every label."""
        values = np.asarray(labels)
        positive, negative = (values == one for one in reversed(self.classes))
        unknown = values[~(np.asarray(positive) | np.asarray(negative))]
        if unknown.size:
            raise ValueError(
                f"{name} has the label {unknown.tolist()[0]!r}, which is not among the classes "
                f"{list(self.classes)} of the estimator."
            )
        return np.asarray(positive).astype(int)

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return a metric's options with 0 or 1 where they name a class."""
        named = {key: options[key] for key in _LABELS if options.get(key) in self.classes}
        codes = {key: self.classes.index(label) for key, label in named.items()}
        return {**options, **codes}
