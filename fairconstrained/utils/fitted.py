"""Setting the attributes of a fitted estimator."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array

_OF_SOME_FITS = (
    *("holdout_indices_", "pos_label_", "score_threshold_", "sensitive_names_in_"),
    *("threshold_", "_by_group"),
    *("booster_", "coef_", "feature_mean_", "feature_scale_", "weights_"),  # of rankers' models
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


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return the fitted attributes of an estimator: those whose names end with an underscore."""
    own = vars(estimator)
    return {name: own[name] for name in own if name.endswith("_") and name[0] != "_"}


def copy_fitted(estimator: Any, source: object, own: Container[str]) -> None:
    """Set the fitted attributes of another estimator.

    Attributes that an earlier fit has left and that the other estimator does not have are removed.

    Parameters
    ----------
    estimator : estimator
        The estimator. It is changed.
    source : estimator
        The other one.
    own : container of str
        Fitted attributes that are the estimator's own and stay.
    """
    for name in fitted_attributes(estimator):
        if name not in own:
            delattr(estimator, name)
    for name, value in fitted_attributes(source).items():
        setattr(estimator, name, value)


def coefficients(estimator: Any) -> Array:
    """Return the coefficients of a linear model as an ndarray, also after `sparsify`."""
    coef: Any = getattr(estimator, "coef_", np.empty(0))
    return coef.toarray() if hasattr(coef, "toarray") else coef
