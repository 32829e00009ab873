"""Linear classifiers on dask collections."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairconstrained.dask._data import AtomTable, ShardedParametrization, sharded_data
from fairconstrained.dask._partitions import Partitions, is_collection, is_frame
from fairconstrained.dask._shards import workers_of
from fairconstrained.data.validation import SensitiveColumns
from fairconstrained.estimators.binding import constraints_of
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.linear.logistic import (
    FairLogisticClassifier as LocalFairLogisticClassifier,
)
from fairconstrained.estimators.linear.svm import FairHingeClassifier as LocalFairHingeClassifier
from fairconstrained.estimators.options import check_options, warn_of_small_groups
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.shards.moments import Moments
from fairconstrained.terms.base import Shardable
from fairconstrained.utils.extras import import_extra
from fairconstrained.utils.typing import Array

Collection = Any  # a dask array, dataframe or series: dask is imported when it is needed


class DaskLinearClassifier:
    """What linear classifiers on dask collections have in common: it comes before the estimator.

    Attributes
    ----------
    client : distributed.Client or None
        Whose workers compute; None takes the default client, or threads if there is none. Set it on
        an instance.
    disk : {"auto"} or bool
        Whether workers keep dense features in a file and read it in blocks. "auto" does that where
        the features need more than half the memory of the workers. Set it on an instance.
    """

    parametrization = ShardedParametrization
    local: ClassVar[type[Any]]
    client: Any = None
    disk: str | bool = "auto"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client, which cannot be pickled."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "client"}

    def __sklearn_clone__(self) -> Any:
        """Return a clone that computes where this estimator does."""
        made: Any = super().__sklearn_clone__()  # type: ignore[misc]
        made.client, made.disk = self.client, self.disk
        return made

    def bind(
        self: Any,
        X: Collection,
        y: Collection,
        sample_weight: Collection | None = None,
        sensitive_features: Collection | None = None,
        *,
        path: bool = False,
    ) -> Fit:
        """Return the problem that `fit` would solve, for developers.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features
            See `fit`.
        path : bool, default=False
            Whether the tolerances are to vary, see :meth:`Fit.bind`.
        """
        check_options(self)
        self._check_supported()
        given = {"X": X, "y": y, "sensitive_features": sensitive_features}
        partitions = Partitions.of(**given, sample_weight=sample_weight)
        columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
        columns.check_only_source(sensitive_features)
        validate_data(self, _example(X), reset=True, skip_check_array=True)
        workers = workers_of(self.client, self.disk)
        worker_side = self.local(**self.get_params(deep=False))
        validate_data(worker_side, _example(X), reset=True, skip_check_array=True)
        prepared, summaries = workers.prepare(worker_side, partitions)
        moments = [one.moments for one in summaries if one.moments is not None]
        if not moments:
            raise ValueError("X has no rows, or sample_weight is zero for all of them.")
        table = AtomTable.merged(summaries)
        shards = workers.shards(prepared, table.positions, summaries)
        titles = self._titles(X, sensitive_features)
        data = sharded_data(self, table, Moments.merged(moments), shards, titles)
        constraints = constraints_of(self, data)
        warn_of_small_groups(constraints, data)
        fit = Fit.bind(self, data, constraints, path=path)
        for part in fit.problem.parts:
            if not (isinstance(part.term, Shardable) and part.term.shardable):
                raise ValueError(
                    f"{type(part.term).__name__} is not a sum over rows, which collections need: "
                    "for constraint and loss take one with a smooth or quadratic surrogate, or fit "
                    f"{self.local.__name__} of fairconstrained to data in memory."
                )
        return fit

    def _check_supported(self: Any) -> None:
        """Raise a ValueError for parameters that need the rows in one place."""
        needs_rows = {
            "enforce": ("score", "the search on decisions needs the scores of all rows"),
            "confidence": (None, "rows are not held out of collections"),
            "group_interactions": (False, "features are not crossed with groups of collections"),
        }
        if isinstance(self.threshold, SelectionRate):
            raise ValueError(
                f"threshold={self.threshold!r} is not available for dask collections: it needs the "
                f"scores of all rows. Give a probability or a score, or use {self.local.__name__} "
                "of fairconstrained on data in memory."
            )
        for name, (value, why) in needs_rows.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not available for dask collections: {why}. "
                    f"Use {name}={value!r}, or {self.local.__name__} of fairconstrained on data in "
                    "memory."
                )

    def _titles(self: Any, X: Collection, sensitive_features: Collection | None) -> list[Any]:
        """Return the names of the sensitive attributes, positions where they have none."""
        values = sensitive_features
        if values is None:
            example = _example(X)
            columns = SensitiveColumns(self.sensitive_columns, self.use_sensitive)
            values = columns.groups(self, example)
            if values is None:
                return []
        if hasattr(values, "columns"):
            return list(values.columns)
        if getattr(values, "ndim", 1) == 2:
            return list(range(values.shape[1]))
        return [getattr(values, "name", None) or 0]

    def to_local(self: Any) -> Any:
        """Return the estimator for data in memory, with the same parameters and fitted attributes.

        Returns
        -------
        estimator : FairLogisticClassifier or FairHingeClassifier
            Of `fairconstrained`.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self, "classes_")
        local = self.local(**self.get_params(deep=False))
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        vars(local).update(fitted)
        return local

    def decision_function(self: Any, X: Collection) -> Collection:
        """Return the scores, lazily.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.

        Returns
        -------
        scores : dask array or dask series of shape (n_samples,)
            An array for an array, a series for a frame.
        """
        return self._lazily("decision_function", X, np.dtype(float))

    def predict(self: Any, X: Collection) -> Collection:
        """Return the class of each row, lazily.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : dask array or dask series of shape (n_samples,)
            An array for an array, a series for a frame.
        """
        check_is_fitted(self, "classes_")
        return self._lazily("predict", X, self.classes_.dtype)

    def score(self: Any, X: Collection, y: Collection, sample_weight: Any = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The rows.
        y : dask array or dask series of shape (n_samples,)
            Their labels.
        sample_weight : dask array or dask series of shape (n_samples,) or None, default=None
            The weights of the rows.

        Returns
        -------
        accuracy : float
        """
        partitions = Partitions.of(X=X, y=y, sample_weight=sample_weight)
        workers = workers_of(self.client, self.disk)
        parts = np.array(workers.map(_right, partitions, self.to_local()))
        right, total = parts.sum(axis=0)
        return float(right / total)

    def _lazily(self: Any, method: str, X: Collection, dtype: Any, n_columns: int = 0) -> Any:
        """Return a method of the local estimator on every partition."""
        if not is_collection(X):
            raise TypeError(
                f"X must be a dask array or dask dataframe; got {type(X).__name__}. For data in "
                f"memory call `to_local().{method}(X)`."
            )
        local = self.to_local()
        columns = local.classes_.tolist() if n_columns else None
        if is_frame(X):
            call = partial(_on_frame, local, method, columns)
            meta: Any = pd.Series([], dtype=dtype)
            if n_columns:
                meta = pd.DataFrame(dict.fromkeys(columns or (), meta))
            return X.map_partitions(call, meta=meta)
        array = import_extra("dask.array", "dask", "fairconstrained.dask")
        X = X.rechunk({1: -1}) if X.ndim == 2 and len(X.chunks[1]) > 1 else X
        call = partial(_on_array, local, method, n_columns)
        if n_columns:
            return array.map_blocks(call, X, dtype=dtype, chunks=(X.chunks[0], (n_columns,)))
        return array.map_blocks(call, X, dtype=dtype, drop_axis=1)


def _example(X: Collection) -> Any:
    """Return a frame or an array without rows that has the columns of X."""
    if is_frame(X):
        return X._meta
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features; it has {X.ndim}.")
    return np.empty((0, X.shape[1]))


def _on_array(estimator: Any, method: str, n_columns: int, X: Any) -> Array:
    """Return a method's result for the rows of a block, of which there may be none."""
    if X.shape[0] == 0:
        return np.empty((0, n_columns) if n_columns else 0)
    return np.asarray(getattr(estimator, method)(X))


def _on_frame(estimator: Any, method: str, columns: list[Any] | None, X: pd.DataFrame) -> Any:
    """Return a method's result for the rows of a partition, with their index."""
    values = _on_array(estimator, method, len(columns or ()), X)
    if columns is None:
        return pd.Series(values, index=X.index)
    return pd.DataFrame(values, index=X.index, columns=columns)


def _right(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
    """Return the weight of the rows that are predicted rightly, and that of all rows."""
    labels = np.asarray(y)
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, float)
    right = _on_array(estimator, "predict", 0, X) == labels
    return float(weight @ right), float(weight.sum())


class FairLogisticClassifier(DaskLinearClassifier, LocalFairLogisticClassifier):
    r"""Logistic regression under fairness constraints, for dask collections.

    The parameters, the problem and the solution are those of
    :class:`fairconstrained.FairLogisticClassifier`: objective, multipliers and certificate are
    those of all rows. Rows stay where they are; each evaluation of the problem is one round, in
    which every worker reads its rows once and returns sums.

    It takes dask arrays (dense or with sparse blocks) and dask dataframes, for X, y,
    sensitive_features and sample_weight, with the same partitions. It runs on the `client` that was
    set as attribute, on the default :class:`distributed.Client`, or on the threads of this process.

    Parameters
    ----------
    constraint, kappa, goal, max_loss_increase, solver, beta, surrogate, loss, alpha, domain
        See :class:`fairconstrained.FairLogisticClassifier`. Stochastic solvers, "idca" and
        constraints on pairs of rows with other than the quadratic surrogate are not available.
    fit_intercept, sensitive_columns, use_sensitive, combine, groups_missing, max_iter, tol
        See :class:`fairconstrained.FairLogisticClassifier`.
    pos_label, class_weight, threshold
        See :class:`fairconstrained.FairLogisticClassifier`.
    group_interactions, enforce, confidence, holdout, warm_start, random_state, verbose
        See :class:`fairconstrained.FairLogisticClassifier`. enforce="decision", `confidence` and
        group_interactions=True are not available.

    Attributes
    ----------
    client : distributed.Client or None
        The client whose workers compute; set it before `fit`. None takes the default client, or the
        threads of this process.
    disk : {"auto"} or bool
        Whether workers keep dense features in a file; set it before `fit`. "auto" does so if the
        features need more than half the memory of all workers.
    coef_, intercept_, classes_, objective_, violation_, gap_, decision_gap_, result_
        As those of :class:`fairconstrained.FairLogisticClassifier`. The gaps of predictions of
        constraints on ranks and pairs come from histograms of the scores with 4096 bins.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983 (the
    feature scales).

    Examples
    --------
    >>> import dask.array as da
    >>> from fairconstrained import make_biased_classification
    >>> from fairconstrained.dask import FairLogisticClassifier
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.3, random_state=0)
    >>> X, y, groups = (da.from_array(values, chunks=500) for values in (X, y, groups))
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> clf.result_.converged, clf.predict(X).chunks
    (True, ((500, 500, 500, 500),))
    """

    local = LocalFairLogisticClassifier

    def predict_proba(self, X: Collection) -> Collection:
        """Return the probabilities of the classes, lazily.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : dask array or dask dataframe of shape (n_samples, 2)
            In the order of `classes_`.
        """
        check_is_fitted(self, "classes_")
        return self._lazily("predict_proba", X, np.dtype(float), 2)

    def predict_log_proba(self, X: Collection) -> Collection:
        """Return the logarithms of the probabilities, lazily.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_probabilities : dask array or dask dataframe of shape (n_samples, 2)
        """
        check_is_fitted(self, "classes_")
        return self._lazily("predict_log_proba", X, np.dtype(float), 2)

    def to_sklearn(self, *, sensitive: str = "zero") -> ClassifierMixin:
        """Return scikit-learn's linear classifier with the same coefficients.

        See :meth:`fairconstrained.FairLogisticClassifier.to_sklearn`.
        """
        return self.to_local().to_sklearn(sensitive=sensitive)


class FairHingeClassifier(DaskLinearClassifier, LocalFairHingeClassifier):
    r"""A linear support vector machine under fairness constraints, for dask collections.

    The parameters, the problem and the solution are those of
    :class:`fairconstrained.FairHingeClassifier`; see :class:`FairLogisticClassifier` for what
    collections need.

    Parameters
    ----------
    constraint, kappa, goal, max_loss_increase, solver, beta, surrogate, loss, alpha, domain
        See :class:`fairconstrained.FairHingeClassifier`.
    fit_intercept, sensitive_columns, use_sensitive, combine, groups_missing, max_iter, tol
        See :class:`fairconstrained.FairHingeClassifier`.
    pos_label, class_weight, threshold
        See :class:`fairconstrained.FairHingeClassifier`.
    group_interactions, enforce, confidence, holdout, warm_start, random_state, verbose
        See :class:`fairconstrained.FairHingeClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from fairconstrained import make_biased_classification
    >>> from fairconstrained.dask import FairHingeClassifier
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.3, random_state=0)
    >>> X, y, groups = (da.from_array(values, chunks=500) for values in (X, y, groups))
    >>> clf = FairHingeClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> clf.violation_ <= 1e-4
    True
    """

    local = LocalFairHingeClassifier

    def to_sklearn(self, *, sensitive: str = "zero") -> ClassifierMixin:
        """Return scikit-learn's linear classifier with the same coefficients.

        See :meth:`fairconstrained.FairLogisticClassifier.to_sklearn`.
        """
        return self.to_local().to_sklearn(sensitive=sensitive)
