"""The rows of training and test folds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)

from fairconstrained.utils.typing import Array

_OF_FOLDS = {  # what scikit-learn calls for every fold; estimators are not told in another way
    "_fit_and_score",
    "_fit_and_predict",
    "_fit_and_score_over_thresholds",
    "_permutation_test_score",
}


def splits_of(
    cv: Any, X: Any, y: Any, params: Mapping[str, Any] | None = None
) -> list[tuple[Array, Array]]:
    """Return the rows of the training fold and of the test fold of every split.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn.
    X, y : array-like
        The rows.
    params : mapping or None, default=None
        Further arguments of `split`, such as `groups`.

    Raises
    ------
    ValueError
        If a splitter needs groups, which it is not passed; or what it raises.
    """
    try:
        return list(check_cv(cv, y, classifier=True).split(X, y, **(params or {})))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} needs groups to split the rows by: pass them to fit, groups=..., or pass "
            f"the splits themselves, cv=list({type(cv).__name__}(...).split(X, y, groups))."
        ) from error


def in_fold() -> bool:
    """Return whether scikit-learn fits or scores a fold, as searches and cross-validation do.

    What a fold brings by chance is no error, and what is said of all its fits is said once, by the
    fit to all rows.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name not in _OF_FOLDS:
        frame = frame.f_back
    return frame is not None


def with_splitter(router: MetadataRouter, cv: Any) -> MetadataRouter:
    """Return a router that passes metadata of `fit` on to the splitter of an estimator's `cv`."""
    mapping = MethodMapping().add(caller="fit", callee="split")
    return router.add(splitter=cv, method_mapping=mapping)


def splitter_params(estimator: Any, params: Mapping[str, Any], **known: Any) -> dict[str, Any]:
    """Return what `split` gets of the further arguments of an estimator's `fit`.

    Parameters
    ----------
    estimator : estimator
        It routes metadata where that is enabled. Otherwise the splitter gets `groups`.
    params : mapping
        The further arguments of `fit`.
    **known : object
        The arguments that the estimator takes itself; None stands for nothing.

    Raises
    ------
    TypeError
        If there is an argument that nothing takes.
    """
    if _routing_enabled():
        passed = {name: value for name, value in known.items() if value is not None}
        return dict(process_routing(estimator, "fit", **passed, **params).splitter.split)
    unknown = sorted(set(params) - {"groups"})
    if unknown:
        raise TypeError(
            f"{type(estimator).__name__}.fit got the argument {unknown[0]!r}, which nothing takes. "
            "Without metadata routing a splitter gets `groups` only."
        )
    return dict(params)
