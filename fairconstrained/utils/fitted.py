"""Setting the attributes of a fitted estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array

_OF_SOME_FITS = (
    *("holdout_indices_", "pos_label_", "score_threshold_", "sensitive_names_in_"),
    *("threshold_", "validation_indices_", "_by_group"),
    *("booster_", "coef_", "feature_mean_", "feature_scale_", "weights_"),  # of rankers' models
)


_OF_CALLBACKS = ("_callback", "_skl_callback")  # scikit-learn ends its callbacks after a failure


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before its fit, if the fit fails or is interrupted.

    Parameters
    ----------
    estimator : estimator
        The estimator. Its attributes are those of one fit, or of none.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        now = vars(estimator).items()
        ending = {name: value for name, value in now if name.startswith(_OF_CALLBACKS)}
        estimator.__dict__ = before | ending
        raise


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
    kept = {name: vars(estimator)[name] for name in vars(estimator) if name not in _OF_SOME_FITS}
    estimator.__dict__ = {**kept, **attributes}


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return the fitted attributes of an estimator: those whose names end with an underscore."""
    own = vars(estimator)
    return {name: own[name] for name in own if name.endswith("_") and name[0] != "_"}


def copy_fitted(estimator: Any, source: object, own: Iterable[str]) -> None:
    """Set the fitted attributes of another estimator.

    Attributes that an earlier fit has left and that the other estimator does not have are removed.

    Parameters
    ----------
    estimator : estimator
        The estimator. It is changed.
    source : estimator
        The other one.
    own : iterable of str
        Fitted attributes that are the estimator's own and stay.
    """
    left = fitted_attributes(estimator).keys() - set(own)
    kept = {name: vars(estimator)[name] for name in vars(estimator) if name not in left}
    estimator.__dict__ = {**kept, **fitted_attributes(source)}


def coefficients(estimator: Any) -> Array:
    """Return the coefficients of a linear model as an ndarray, also after `sparsify`."""
    coef: Any = getattr(estimator, "coef_", np.empty(0))
    return coef.toarray() if hasattr(coef, "toarray") else coef
