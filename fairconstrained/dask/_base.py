"""What linear classifiers on dask collections have in common."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from fairconstrained.dask._collections import (
    Collection,
    drawn,
    example,
    lazily,
    partitions_of,
    weight_right,
)
from fairconstrained.dask._data import (
    AtomTable,
    atom_data,
    held_out_draw,
    sharded_data,
    tested,
    with_interactions,
)
from fairconstrained.dask._reader import Reader
from fairconstrained.dask._rows import divide, no_rows_error
from fairconstrained.dask._shards import workers_of
from fairconstrained.data.attributes import names_of_columns
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.estimators.binding import constraints_of
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.nested import DOCUMENTATION
from fairconstrained.estimators.rows import check_group_sizes, check_options
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.shards.in_memory import ShardedData
from fairconstrained.terms.pairs import PairMeans
from fairconstrained.utils.meta_estimators import library_parameters


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

    _doc_link_template = f"{DOCUMENTATION}/generated/fairconstrained.dask.{{estimator_name}}.html"
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
        given = {"X": X, "y": y, "sensitive_features": sensitive_features}
        partitions = partitions_of(**given, sample_weight=sample_weight)
        columns = SensitiveColumns.of(self)
        columns.check_only_source(sensitive_features)
        validate_data(self, example(X), reset=True, skip_check_array=True)
        groups = self._example_groups(X, sensitive_features)
        workers = workers_of(self.client, self.disk)
        worker_side = self.local(**library_parameters(self))
        validate_data(worker_side, example(X), reset=True, skip_check_array=True)
        reader = Reader.of(worker_side, columns, names_of_columns(groups))
        part = workers.prepare(reader, partitions)
        table = AtomTable.merged(part[1])
        data = atom_data(self, table, part[1], _titles(groups))
        constraints = constraints_of(self, data)
        check_group_sizes(constraints, data)
        draw = held_out_draw(self, data, constraints)
        parts = [with_interactions(self, data, table, part, workers)]
        if draw is not None:
            prepared = parts[0][0]
            numbers = range(len(prepared))
            parts = workers.changed(partial(divide, *draw), prepared, numbers, n_parts=2)
        rows = _cut(self, sharded_data(data, table, parts[0], workers), path)
        fit = _checked(Fit.bind(self, rows, constraints, path=path), self.local)
        if draw is None:
            return fit
        data = replace(data, convention=rows.convention)
        others = sharded_data(data, table, parts[1], workers, rows.feature_scale)
        return tested(fit, others, *draw)

    def _example_groups(self: Any, X: Collection, sensitive_features: Collection | None) -> Any:
        """Return something with the columns of the groups, None if there are no groups."""
        if sensitive_features is not None:
            return sensitive_features
        return SensitiveColumns.of(self).groups(self, example(X))

    def held_out_rows(self: Any, X: Collection) -> Collection:
        """Return which rows were held out of the last fit with `confidence`, lazily.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            The collection that was passed to `fit`, with the same partitions.

        Returns
        -------
        held_out : dask array or dask series of bool of shape (n_samples,)
            An array for an array, a series for a frame, with the rows in the order of X.

        Raises
        ------
        NotFittedError
            If it was not fitted with `confidence`.

        Notes
        -----
        dask matches the rows of two frames by their index, not by position. If labels of the index
        repeat, as in frames read from several Parquet files, ``X[held_out]`` has other rows.
        """
        check_is_fitted(self, "holdout_seed_")
        return drawn(X, self.holdout_share_, self.holdout_seed_)

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
        local = self.local(**library_parameters(self))
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

        Raises
        ------
        ValueError
            If lengths differ, a label is missing or not among `classes_`, weights are not finite
            numbers >= 0 of which one is positive, or pandas objects have the same row labels in
            another order.
        """
        partitions = partitions_of(X=X, y=y, sample_weight=sample_weight)
        workers = workers_of(self.client, self.disk)
        parts = np.array(workers.map(weight_right, partitions, self.to_local()))
        right, total = parts.sum(axis=0)
        if not total:
            raise no_rows_error()
        return float(right / total)

    def _lazily(self: Any, method: str, X: Collection, dtype: Any, n_columns: int = 0) -> Any:
        """Return a method of the local estimator on every partition."""
        return lazily(self.to_local(), method, X, dtype, n_columns)


def _titles(groups: Any) -> list[Any]:
    """Return the names of the sensitive attributes, positions where they have none."""
    if groups is None:
        return []
    if hasattr(groups, "columns"):
        return list(groups.columns)
    if getattr(groups, "ndim", 1) == 2:
        return list(range(groups.shape[1]))
    return [getattr(groups, "name", None) or 0]


def _cut(estimator: Any, data: ShardedData, path: bool) -> ShardedData:
    """Return data with the first threshold where the threshold selects a share of the rows."""
    if not isinstance(estimator.threshold, SelectionRate):
        return data
    step = Fit.first_threshold(estimator, data, None, path=path)
    return replace(data, convention=data.convention.moved(step))


def _checked(fit: Fit, local: type[Any]) -> Fit:
    """Return a fit whose functions are sums over rows.

    Raises
    ------
    ValueError
        If one of them is not.
    """
    for part in fit.problem.parts:
        if not part.term.shardable:
            name = type(part.term).__name__
            raise ValueError(
                f"The constraint or loss compares pairs of rows (`{name}`), which dask collections "
                "support only with surrogate='quadratic' (for PairwiseLoss, loss='quadratic'). Use "
                f"it, or fit fairconstrained.{local.__name__} to data in memory."
                if type(part.term) is PairMeans
                else f"The constraint or loss is not a sum over rows (`{name}`), and dask "
                "collections do not support it. Use another one, or fit "
                f"fairconstrained.{local.__name__} to data in memory."
            )
    return fit
