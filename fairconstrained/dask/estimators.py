"""Estimators whose rows are in dask collections."""

from dataclasses import fields
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairconstrained.dask import _data
from fairconstrained.dask._data import Collection
from fairconstrained.dask._rows import NO_ROWS, Reader, divide, prepare
from fairconstrained.dask._shards import Workers
from fairconstrained.data.attributes import names_of_columns
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.estimators import DOCUMENTATION, logistic
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.linear import with_feature_map
from fairconstrained.estimators.rows import check_group_sizes, check_options, constraints_of

MOST_COLLECTED = 20_000  # rows: so few are copied to this process, where fits are exact and quick


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
        control_features: Collection | None = None,
        *,
        query: None = None,
        constraint_data: None = None,
        path: bool = False,
    ) -> Fit:
        """Return the problem that `fit` would solve, for developers."""
        check_options(self)
        if constraint_data is not None:
            raise ValueError(
                "constraint_data is for rows in memory: the constraints of estimators on dask "
                "collections are on the rows of X. Leave it out."
            )
        given = {"X": X, "y": y, "sensitive_features": sensitive_features}
        given |= {"control_features": control_features}
        partitions = _data.partitions_of(**given, sample_weight=sample_weight)
        columns = SensitiveColumns(self)
        columns.check_only_source(sensitive_features)
        validate_data(self, _data.example(X), reset=True, skip_check_array=True)
        groups = sensitive_features
        if groups is None:
            groups = columns.groups(_data.example(X))
        workers = Workers(self.client, self.disk)
        reader = Reader(SensitiveColumns(self._local()), names_of_columns(groups))
        part = workers.part(partial(prepare, reader), partitions)
        titles = _data.titles_of(groups), _data.titles_of(control_features)
        table = _data.AtomTable(part[1], *titles)
        data = with_feature_map(self, _data.atom_data(self, table, part[1]))
        constraints = constraints_of(self, data)
        check_group_sizes(constraints, data)
        draw = _data.held_out_draw(self, data, constraints)
        parts = [_data.with_interactions(data, table, part, workers)]
        if draw is not None:
            numbered = [(prepared, k) for k, prepared in enumerate(parts[0][0])]
            calls = [partial(divide, *draw, held) for held in (False, True)]
            parts = [workers.part(call, numbered) for call in calls]
        rows_of = _data.collected_data if data.n_rows <= MOST_COLLECTED else _data.sharded_data
        rows, *held_out = [rows_of(data, table, part, workers) for part in parts]
        fit = Fit.bind(self, rows, constraints, path=path)
        _data.check_sums_over_rows(fit.problem, self.local.__name__)
        if draw is None:
            return fit
        return fit.tested(held_out[0], {"holdout_share_": draw[0], "holdout_seed_": draw[1]})

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
        return _data.drawn(X, self.holdout_share_, self.holdout_seed_)

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
        return self._local()

    def _local(self: Any) -> Any:
        """Return the estimator for data in memory, with the attributes that are set.

        Workers get it in place of this one, whose class may be one of the user's.
        """
        local = self.local(**{each.name: getattr(self, each.name) for each in fields(self.local)})
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        vars(local).update(fitted)
        return local

    def to_sklearn(self: Any, *, sensitive: str = "zero") -> ClassifierMixin:
        """Return a linear classifier of scikit-learn: what the model of `to_local` converts to."""
        return self.to_local().to_sklearn(sensitive=sensitive)

    def decision_function(self: Any, X: Collection) -> Collection:
        """Return the scores that the model of `to_local` returns, lazily.

        They are a dask array for an array, and a dask series for a frame.
        """
        return _data.lazily(self.to_local(), "decision_function", X, np.dtype(float))

    def predict(self: Any, X: Collection) -> Collection:
        """Return the class of each row that the model of `to_local` returns, lazily.

        They are a dask array for an array, and a dask series for a frame.
        """
        local = self.to_local()
        return _data.lazily(local, "predict", X, local.classes_.dtype)

    def score(self: Any, X: Collection, y: Collection, sample_weight: Any = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X, y, sample_weight : dask collections
            The rows, their labels, and their weights or None, with the same partitions.

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
        partitions = _data.partitions_of(X=X, y=y, sample_weight=sample_weight)
        workers = Workers(self.client, self.disk)
        parts = np.array(workers.map(partial(_data.weight_right, self.to_local()), partitions))
        right, total = parts.sum(axis=0)
        if not total:
            raise ValueError(NO_ROWS)
        return float(right / total)


class FairLogisticClassifier(DaskLinearClassifier, logistic.FairLogisticClassifier):  # type: ignore[misc]  # bind has no queries
    r"""Logistic regression under fairness constraints, for dask collections.

    The parameters, the problem and the solution are those of
    :class:`fairconstrained.FairLogisticClassifier`: objective, multipliers and certificate are
    those of all rows. Rows stay where they are; each evaluation of the problem is one round, in
    which every worker reads its rows once and returns sums. Up to 20,000 rows are copied to this
    process, and their fit is the one in memory.

    It takes dask arrays (dense or with sparse blocks) and dask dataframes, for X, y,
    sensitive_features and sample_weight, with the same partitions. It runs on the `client` that was
    set as attribute, on the default :class:`distributed.Client`, or on the threads of this process.

    Parameters
    ----------
    constraint, kappa, goal, max_loss_increase, solver, beta, surrogate, loss, alpha, domain
        See :class:`fairconstrained.FairLogisticClassifier`. Constraints on pairs of rows
        with other than the quadratic surrogate are not available, and with more than 20,000 rows
        neither are stochastic solvers and "idca".
    fit_intercept, sensitive_columns, use_sensitive, combine, groups_missing, max_iter, tol
    pos_label, class_weight, threshold
        See :class:`fairconstrained.FairLogisticClassifier`.
    group_interactions, enforce, confidence, holdout, warm_start, random_state, verbose
        See :class:`fairconstrained.FairLogisticClassifier`. With enforce="decision" the search has
        the decisions of all rows; of rows that are not copied, at quantiles of the points of a line
        where decisions change, not at all of them. With `confidence` every partition draws its own
        held-out rows, by `random_state` and its number.

    Attributes
    ----------
    client : distributed.Client or None
        The client whose workers compute; set it before `fit`. None takes the default client, or the
        threads of this process.
    disk : {"auto"} or bool
        Whether workers keep dense features in a file; set it before `fit`. "auto" does so if the
        features need more than half the memory of all workers.
    coef_, intercept_, classes_, objective_, violation_, bound_violation_, bound_met_, gap_
    decision_gap_, result_
        As those of :class:`fairconstrained.FairLogisticClassifier`. With more than
        20,000 rows the gaps of predictions of constraints on ranks and pairs come from histograms
        of the scores with 4096 bins.
    decision_search_, certificate_, constraint_choices_
        As those of :class:`fairconstrained.FairLogisticClassifier`.
    holdout_share_, holdout_seed_ : float, int
        With `confidence`: the probability with which a row was held out, and the seed of the draw;
        :meth:`held_out_rows` returns the rows.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", 1983 (the
    feature scales).

    Examples
    --------
    >>> import dask.array as da
    >>> from fairconstrained import make_biased_classification
    >>> from fairconstrained.dask import FairLogisticClassifier
    >>> X, y, groups = make_biased_classification(n_samples=2000, gap=0.1, random_state=0)
    >>> X, y, groups = (da.from_array(values, chunks=500) for values in (X, y, groups))
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> clf.result_.converged, clf.predict(X).chunks
    (True, ((500, 500, 500, 500),))
    """

    local = logistic.FairLogisticClassifier

    def predict_proba(self, X: Collection) -> Collection:
        """Return the probabilities that the model of `to_local` returns, lazily.

        They are a dask array for an array, and a dask dataframe for a frame, with a column for each
        of `classes_`.
        """
        return _data.lazily(self.to_local(), "predict_proba", X, np.dtype(float), by_class=True)

    def predict_log_proba(self, X: Collection) -> Collection:
        """Return the logarithms of the probabilities, see `predict_proba`."""
        return _data.lazily(self.to_local(), "predict_log_proba", X, np.dtype(float), by_class=True)


class FairHingeClassifier(DaskLinearClassifier, logistic.FairHingeClassifier):  # type: ignore[misc]  # bind has no queries
    r"""A linear support vector machine under fairness constraints, for dask collections.

    The parameters, the problem and the solution are those of
    :class:`fairconstrained.FairHingeClassifier`; see :class:`FairLogisticClassifier` for what
    collections need.

    Parameters
    ----------
    constraint, kappa, goal, max_loss_increase, solver, beta, surrogate, loss, alpha, domain
    fit_intercept, sensitive_columns, use_sensitive, combine, groups_missing, max_iter, tol
    pos_label, class_weight, threshold, group_interactions, enforce, confidence, holdout
    warm_start, random_state, verbose
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

    local = logistic.FairHingeClassifier
