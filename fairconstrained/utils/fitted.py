"""Setting the attributes of a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_SOME_FITS = (
    "holdout_indices_",
    "pos_label_",
    "score_threshold_",
    "sensitive_names_in_",
    "threshold_",
    "thresholds_",
)


def set_fitted(estimator: Any, attributes: Mapping[str, Any]) -> None:
    """Set the fitted attributes of an estimator.

    Some attributes exist only after some fits: a model of more than two classes has no threshold,
    for instance. Those that an earlier fit has left are removed.

    Parameters
    ----------
    estimator : estimator
        The estimator. It is changed.
    attributes : mapping of str to object
        All fitted attributes and their values.
    """
    for name in _OF_SOME_FITS:
        vars(estimator).pop(name, None)
    for name, value in attributes.items():
        setattr(estimator, name, value)
