"""How estimators of another kind are fitted: rankers, thresholds, classifiers on collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.fuzz.data import Array, Data

CHUNK = 97  # rows of a partition


def queries(data: Data) -> Array:
    """Return a query of every row: about twenty rows have the same one."""
    n = len(data.positions)
    return np.random.default_rng(data.spec.seed + 2).integers(max(2, n // 20), size=n)


def fit_ranker(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit a ranker."""
    return estimator.fit(data.X, data.y, query=queries(data), **given)


def fit_thresholds(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit the classifier, then thresholds on its scores of the same rows."""
    base = clone(estimator.estimator).fit(data.X, data.y, sample_weight=given["sample_weight"])
    return estimator.set_params(estimator=base).fit(data.X, data.y, **given)


def fit_collections(estimator: Any, data: Data, given: dict[str, Any]) -> Any:
    """Fit a classifier to collections of several partitions."""
    weight, groups = given["sample_weight"], given["sensitive_features"]
    return estimator.fit(
        collection(data.X),
        collection(data.y),
        sample_weight=None if weight is None else collection(weight),
        sensitive_features=collection(groups),
    )


def collection(values: Any) -> Any:
    """Return a dask array, or for pandas objects a dask dataframe."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(values, pd.DataFrame | pd.Series):
        return dd.from_pandas(values, chunksize=CHUNK, sort=False)
    values = np.asarray(values)
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def scores_of_ranker(estimator: Any, data: Data) -> Array:
    """Return the scores of a ranker."""
    return np.asarray(estimator.predict(data.X))


def decisions(estimator: Any, data: Data) -> Array:
    """Return 1 for rows that get the favourable label, else -1."""
    groups = {"sensitive_features": data.groups} if estimator.per_group else {}
    chosen = estimator.predict(data.X, **groups) == estimator.pos_label_
    return np.where(chosen, 1.0, -1.0)


def scores_of_collections(estimator: Any, data: Data) -> Array:
    """Return the scores of a classifier on collections."""
    return np.asarray(estimator.decision_function(collection(data.X)).compute())


Fitter = Callable[[Any, Data, dict[str, Any]], Any]
FITTERS: dict[str, tuple[Fitter, Callable[[Any, Data], Array]]] = {
    "FairRanker": (fit_ranker, scores_of_ranker),
    "FairThresholds": (fit_thresholds, decisions),
    "dask.FairLogisticClassifier": (fit_collections, scores_of_collections),
}
"""How estimators are fitted, and how their scores are read, where not as other classifiers."""
