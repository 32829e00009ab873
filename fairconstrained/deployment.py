"""From a fitted model to the place where it decides: plain pipelines, files that are safe to load.

``pickle`` and ``joblib`` take all estimators of this library as they are, and run whatever is in a
file when they load it. ``skops.io`` loads only types that it trusts, which are those of NumPy,
SciPy and scikit-learn, and those the caller names; a library cannot add to them. There are
two ways, then:

- :func:`to_sklearn` gives a model made of scikit-learn's classes alone: nothing in its file is
  untrusted, and this library need not be installed where it is loaded;
- a file with an estimator of this library, with its constraint, its solver and its result, is
  loaded with ``skops.io.load(file, trusted=trusted_types())``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.estimators.linear.export import visible_columns
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.estimators.linear.svm import FairHingeClassifier
from fairconstrained.solvers import Result, Status, Trace
from fairconstrained.utils.meta_estimators import best_estimator

__all__ = ["to_sklearn", "trusted_types"]

_CONVERTIBLE = (FairLogisticClassifier, FairHingeClassifier)


def to_sklearn(model: Any, *, sensitive: str = "zero") -> Any:
    """Return a fitted model with scikit-learn's classes in the place of this library's.

    Parameters
    ----------
    model : FairLogisticClassifier, FairHingeClassifier, Pipeline that ends in one, or search
        What is to be deployed, fitted; of a search its `best_estimator_`.
    sensitive : {"zero", "leave_out"}, default="zero"
        Sensitive columns that the classifier does not see: with "zero" they get a coefficient of
        zero, and must be numbers; with "leave_out" a pipeline drops them before its last step
        (they may then be strings), and a classifier on its own is to get X without them.

    Returns
    -------
    model : LogisticRegression, LinearSVC or Pipeline
        It shares the fitted transformers with the pipeline that was given.

    Raises
    ------
    ValueError
        If there is no classifier of this library to convert, or it has coefficients for every group
        (``group_interactions=True``).

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
    *front, (name, last) = model.steps
    plain = _converted(last, sensitive)
    if plain.n_features_in_ < last.n_features_in_:
        front.append(("columns", _selection(last)))
        if hasattr(plain, "feature_names_in_"):  # the selection's output has none
            del plain.feature_names_in_
    return Pipeline([*front, (name, plain)])


def _converted(model: Any, sensitive: str) -> Any:
    """Return the plain classifier for one of ours."""
    if not isinstance(model, _CONVERTIBLE):
        kinds = " or ".join(kind.__name__ for kind in _CONVERTIBLE)
        raise ValueError(
            f"to_sklearn needs a {kinds}, or a pipeline that ends in one; found "
            f"{type(model).__name__}."
        )
    return model.to_sklearn(sensitive=sensitive)


def _selection(model: Any) -> ColumnTransformer:
    """Return a fitted transformer that keeps the columns that a classifier sees."""
    names = getattr(model, "feature_names_in_", None)
    kept = visible_columns(model)
    columns = kept.tolist() if names is None else names[kept].tolist()
    select = ColumnTransformer([("seen", "passthrough", columns)]).set_output(transform="default")
    example = np.zeros((1, model.n_features_in_))
    return select.fit(example if names is None else pd.DataFrame(example, columns=names))


def trusted_types() -> list[str]:
    """Return the names of this library's types that a file of skops may hold.

    These are its estimators, constraints, solvers, losses, surrogates, penalties and domains, and
    what `result_` and the like are made of: they hold values, and loading one runs nothing but
    assignments. A function in `sensitive_columns`, or a class of your own, is not among them.

    Returns
    -------
    names : list of str
        For ``skops.io.load(file, trusted=...)``.

    Examples
    --------
    >>> from fairconstrained.deployment import trusted_types
    >>> "fairconstrained.estimators.linear.logistic.FairLogisticClassifier" in trusted_types()
    True
    """
    found = {*_ours(BaseEstimator), Result, Status, Trace, Certificate, DecisionSearch}
    return sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in found)


def _ours(base: type[Any]) -> Iterator[type[Any]]:
    """Yield all classes of this library below a class, however far."""
    kinds: list[type[Any]] = base.__subclasses__()
    for kind in kinds:
        if kind.__module__.startswith("fairconstrained."):
            yield kind
        yield from _ours(kind)
