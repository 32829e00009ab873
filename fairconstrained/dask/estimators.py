"""Linear classifiers on dask collections."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fairconstrained.dask._base import DaskLinearClassifier
from fairconstrained.dask._collections import Collection
from fairconstrained.estimators.logistic import (
    FairHingeClassifier as LocalFairHingeClassifier,
)
from fairconstrained.estimators.logistic import (
    FairLogisticClassifier as LocalFairLogisticClassifier,
)


class FairLogisticClassifier(DaskLinearClassifier, LocalFairLogisticClassifier):  # type: ignore[misc]  # bind has no queries
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
        See :class:`fairconstrained.FairLogisticClassifier`. With enforce="decision" the search has
        the decisions of all rows, at quantiles of the points of a line where decisions change, not
        at all of them. With `confidence` every partition draws its own held-out rows, by
        `random_state` and its number.

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


class FairHingeClassifier(DaskLinearClassifier, LocalFairHingeClassifier):  # type: ignore[misc]  # bind has no queries
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
