"""Deployment of fitted models: conversion to scikit-learn, and files that are safe to load.

All estimators of this library can be saved with ``pickle`` and ``joblib``, but loading such a file
can run arbitrary code. ``skops.io`` loads only trusted types: those of NumPy, SciPy and
scikit-learn, and those that the caller lists. There are two ways to use it:

- :func:`to_sklearn` returns a model that consists of scikit-learn's classes. Its file needs no
  further trusted types, and can be loaded where this library is not installed.
- A file with an estimator of this library, including its constraint, solver and result, is loaded
  with ``skops.io.load(file, trusted=trusted_types())``.
"""

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import _is_fitted, check_is_fitted

from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.decisions.new_rows import ExpectedGap
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.decisions.threshold_search import ThresholdSearch
from fairconstrained.estimators.logistic import FairHingeClassifier, FairLogisticClassifier
from fairconstrained.estimators.neyman_pearson import NeymanPearsonClassifier
from fairconstrained.metrics.inputs import positive_class
from fairconstrained.solvers import Result, Status, Trace
from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array, MatrixLike
from fairconstrained.utils.execution import coefficients
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    classes_of,
    favourable_label,
    last_step,
    provenance,
)
from fairconstrained.utils.parameter_constraints import Count, check_arguments

__all__ = ["provenance", "reasons", "to_sklearn", "trusted_types"]

_CONVERTIBLE = (FairLogisticClassifier, FairHingeClassifier)


def to_sklearn(model: BaseEstimator, *, sensitive: str = "zero") -> Any:
    """Convert a fitted model to scikit-learn's classes.

    Parameters
    ----------
    model : FairLogisticClassifier, FairHingeClassifier, Pipeline that ends in one, or search
        The fitted model. Of a search, `best_estimator_` is converted.
    sensitive : {"zero", "leave_out"}, default="zero"
        What to do with sensitive columns that are not features of the classifier. With "zero" they
        have a coefficient of zero, and must be numeric. With "leave_out" a pipeline drops them
        before its last step, so that they may be strings; a single classifier then needs X without
        them. Columns that a ColumnTransformer just before the last step only passes through are
        dropped there, so that they can be missing in a DataFrame that is passed to the pipeline.

    Returns
    -------
    model : LogisticRegression, LinearSVC, SGDClassifier or Pipeline
        The converted model. It shares the fitted transformers with the given pipeline.

    Raises
    ------
    ValueError
        If the model is not a classifier of this library, if scikit-learn has no linear classifier
        with its loss, or if it has coefficients for each group (``group_interactions=True``).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.deployment import to_sklearn
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> fair = make_pipeline(StandardScaler(), FairLogisticClassifier())
    >>> fair = fair.fit(X, y, fairlogisticclassifier__sensitive_features=groups)
    >>> [type(step).__name__ for step in to_sklearn(fair).named_steps.values()]
    ['StandardScaler', 'LogisticRegression']
    """
    model = best_estimator(model)
    if not isinstance(model, Pipeline):
        return _converted(model, sensitive)
    *front, (name, last) = [part for part in model.steps if not hasattr(part[1], "fit_resample")]
    plain = _converted(last, sensitive)
    if plain.n_features_in_ == last.n_features_in_:
        return Pipeline([*front, (name, plain)])
    kept = SensitiveColumns(last).kept()
    if front and isinstance(front[-1][1], ColumnTransformer):
        reduced, kept = _without_passed_through(front[-1][1], kept, last.n_features_in_)
        front[-1] = (front[-1][0], reduced)
    if kept.size < last.n_features_in_:
        front.append(("columns", _selection(last, kept)))
        if hasattr(plain, "feature_names_in_"):  # the selection's output has none
            del plain.feature_names_in_
    return Pipeline([*front, (name, plain)])


def _without_passed_through(
    transformer: ColumnTransformer, kept: Array, n_columns: int
) -> tuple[ColumnTransformer, Array]:
    """Return a fitted transformer that drops columns which it only passes through, if it can.

    `kept` are the positions of its `n_columns` columns of output that are needed. If it can, it is
    copied, and all positions are returned with it.
    """
    unused, inputs = set(range(n_columns)) - set(kept.tolist()), {}
    reduced, entries = copy(transformer), []
    for name, part, columns in transformer.transformers_:
        indices = list(transformer._transformer_to_input_indices[name])
        inputs[name], start = indices, transformer.output_indices_[name].start
        passes = isinstance(part, FunctionTransformer) and part.func is None
        if not passes or not len(indices):
            entries.append((name, part, columns))
            continue
        chosen = [j for j in range(len(indices)) if start + j not in unused]
        unused -= {start + j for j in range(len(indices))}
        inputs[name] = [indices[j] for j in chosen]
        entries.append((name, _of_columns(part, chosen), inputs[name] if chosen else columns))
    if unused:  # another transformer makes them
        return transformer, kept
    reduced.transformers_ = entries
    reduced._transformer_to_input_indices = inputs
    return reduced, np.arange(n_columns)


def _of_columns(part: Any, chosen: list[int]) -> Any:
    if not chosen:
        return "drop"
    reduced = copy(part)
    reduced.n_features_in_ = len(chosen)
    if hasattr(reduced, "feature_names_in_"):
        reduced.feature_names_in_ = reduced.feature_names_in_[chosen]
    return reduced


def _converted(model: object, sensitive: str) -> Any:
    if not isinstance(model, _CONVERTIBLE):
        kinds = " or ".join(kind.__name__ for kind in _CONVERTIBLE)
        raise ValueError(
            f"to_sklearn needs a {kinds}, or a pipeline that ends in one; found "
            f"{type(model).__name__}."
        )
    return model.to_sklearn(sensitive=sensitive)


def _selection(model: Any, kept: Array) -> ColumnTransformer:
    names = getattr(model, "feature_names_in_", None)
    columns = kept.tolist() if names is None else names[kept].tolist()
    select = ColumnTransformer([("seen", "passthrough", columns)]).set_output(transform="default")
    example = np.zeros((1, model.n_features_in_))
    return select.fit(example if names is None else pd.DataFrame(example, columns=names))


def reasons(
    model: Any,
    X: MatrixLike,
    n: Count = 4,
    *,
    reference: MatrixLike | None = None,
    pos_label: object = None,
) -> pd.DataFrame:
    r"""Return the features that count most against each row, with their contributions.

    With the score s of the favourable class and contributions :math:`c_j(x)` that sum to it, the
    contribution of a feature is its difference from the mean over reference rows,
    :math:`c_j(x) - \bar c_j`. The contributions of all features sum to :math:`s(x) - \bar s`. They
    are :math:`w_j (x_j - \bar x_j)` of a linear model, and SHAP values of trees.

    Parameters
    ----------
    model : classifier or ranker, Pipeline that ends in one, or search
        A fitted linear model of two classes, of this library or of scikit-learn, without
        coefficients for each group, a linear ranker, boosted trees of this library, or thresholds
        on one of these.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The rows.
    n : int, default=4
        The number of features for each row; fewer if the model has fewer.
    reference : array-like, DataFrame or sparse matrix, default=None
        The rows that X is compared with, such as selected rows. None takes X itself, which must
        then have several rows.
    pos_label : label or None, default=None
        The favourable class; None means that of the model, which is the second of the sorted
        classes for a model of scikit-learn without `pos_label`.

    Returns
    -------
    reasons : DataFrame
        Indexed by row (of X, from 0) and rank (from 1): the columns feature, value (as the model
        sees it, categories of trees by name) and contribution, in the unit of `decision_function`,
        the most negative first. A positive one does not count against the row.

    Raises
    ------
    TypeError
        If the contributions to the model's score are not known.
    ValueError
        If X is one row, and there is no reference, or `pos_label` is no class of the model.

    References
    ----------
    S. M. Lundberg, S.-I. Lee, "A unified approach to interpreting model predictions", 2017.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.deployment import reasons
    >>> X, y, groups = make_biased_classification(300, random_state=0)
    >>> clf = FairLogisticClassifier().fit(X, y, sensitive_features=groups)
    >>> table = reasons(clf, X[:2], n=3, reference=X)
    >>> table.index.to_list()
    [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
    """
    check_arguments(reasons, n=n)
    names, values, parts = _contributions(model, X)
    if reference is None and len(parts) == 1:
        raise ValueError(
            "reference is None, and X is one row, which would be compared with itself: pass the "
            "rows that it is compared with, such as those that were selected."
        )
    compared = parts if reference is None else _contributions(model, reference)[-1]
    parts = parts - compared.mean(axis=0)
    classes = classes_of(model)
    if classes is not None:
        favourable = favourable_label(model, classes)
        if pos_label is not None:
            favourable = positive_class(np.asarray(classes), pos_label)
        parts = parts if favourable == classes[-1] else -parts
    first = np.argsort(parts, axis=1, kind="stable")[:, :n]
    rows = np.arange(len(parts))[:, None]
    ranks = range(1, first.shape[1] + 1)
    index = pd.MultiIndex.from_product([rows[:, 0], ranks], names=["row", "rank"])
    columns = {
        "feature": names[first].ravel(),
        "value": values[rows, first].ravel(),
        "contribution": parts[rows, first].ravel(),
    }
    return pd.DataFrame(columns, index=index)


def _contributions(model: Any, X: MatrixLike) -> tuple[Array, Array, Array]:
    """Return names and values of the features of a model's last step, and their parts of scores.

    The parts are (n_rows, n_features), in the direction of ``classes_[1]``.
    """
    models, (last, X) = [model], last_step(model, X)
    # Thresholds have a fitted estimator_; the trees of a forest are copies of one that is not. A
    # selection of features (RFE) has one as well, of other columns.
    while (
        not (hasattr(last, "coef_") or hasattr(last, "transform"))
        and hasattr(last, "estimator_")
        and _is_fitted(last.estimator_)
    ):
        models.append(last.estimator_)
        last, X = last_step(models[-1], last._seen(X) if hasattr(last, "_seen") else X)
    check_is_fitted(last)
    columns = SensitiveColumns(last)
    features = columns.features(X, reset=False)
    names, kept = _feature_names(models, last), columns.kept()
    values = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
    coef = np.atleast_2d(coefficients(last))
    if isinstance(last, NeymanPearsonClassifier) and len(coef) == 2:
        coef = np.diff(coef, axis=0)  # its scores are those of the two classes
    if hasattr(last, "booster_"):
        parts = np.asarray(last.booster_.predict(values, pred_contrib=True))[:, :-1]
    elif len(coef) == 1 and coef.size:
        parts = values * coef[0, kept]
    else:
        raise TypeError(
            f"reasons: the contributions to the scores of {type(last).__name__} are not known. "
            "Pass a linear model of two classes without group_interactions, or boosted trees."
        )
    names, named = np.asarray(names)[kept], getattr(last, "categories_", {})
    shown = values.astype(object) if named else values
    for j in np.flatnonzero(np.isin(names, list(named))):
        missing = [*named[names[j]], np.nan]
        shown[:, j] = [missing[-1 if np.isnan(code) else int(code)] for code in values[:, j]]
    return names, shown, parts


def _feature_names(models: list[Any], last: Any) -> Array:
    """Return the names of the features of a last step: its own, else those of the steps before.

    The steps are those of pipelines: the model, or one inside of it, which has the thresholds.
    """
    for pipeline in map(best_estimator, reversed(models)):
        if hasattr(last, "feature_names_in_") or not hasattr(pipeline, "feature_names_in_"):
            continue
        # It is no pipeline, or a step does not name what it makes.
        with suppress(AttributeError, TypeError, ValueError):
            names = np.asarray(pipeline[:-1].get_feature_names_out())
            if len(names) == last.n_features_in_:
                return names
    return SensitiveColumns(last).seen


def trusted_types() -> list[str]:
    """Return the names of the types of this library that a skops file may contain.

    These are the estimators, constraints, solvers, losses, surrogates, penalties and domains, and
    the types of `result_` and other fitted attributes. Loading them only assigns attributes.
    Functions in `sensitive_columns`, classes of the user and types of other libraries are not
    included. Models with boosted trees need ``trusted_types() + ["lightgbm.basic.Booster"]``:
    loading a booster runs LightGBM's reader of model files, which is not written for files of
    unknown origin. Trust it for files whose source you know.

    Returns
    -------
    names : list of str
        The argument `trusted` of ``skops.io.load``.

    Examples
    --------
    >>> from fairconstrained.deployment import trusted_types
    >>> "fairconstrained.estimators.logistic.FairLogisticClassifier" in trusted_types()
    True
    """
    public = import_module(__package__)
    for name in public.__all__:  # imports the modules of all estimators
        getattr(public, name)
    kinds = {*_subclasses(BaseEstimator), *_subclasses(Parametrized), Result, Status, Trace}
    kinds |= {Certificate, DecisionSearch, ThresholdSearch, ExpectedGap}
    return sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)


def _subclasses(base: type[object]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("fairconstrained."):
            yield kind
        yield from _subclasses(kind)
