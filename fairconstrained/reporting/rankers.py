"""Rankers on the same rows: NDCG and pairwise errors by group, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from fairconstrained.constraints import QueryParity, resolve_constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.inputs import check_labels, check_same_rows
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.inspection.deciding import stacked
from fairconstrained.inspection.models import groups_of
from fairconstrained.metrics.inputs import check_scores, positive_class
from fairconstrained.metrics.ranking import (
    pairwise_error,
    query_gaps,
    query_ndcg,
    query_pairwise_errors,
)
from fairconstrained.reporting.forms import Report
from fairconstrained.utils.meta_estimators import final_estimator, named_models
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike
from fairconstrained.utils.validation import check_confidence

_LEVELS = ["model", "group"]


@dataclass(frozen=True, eq=False)
class RankerComparison(Report):
    """The result of :func:`compare_rankers`, a report as :class:`FairnessReport` is.

    Attributes
    ----------
    title : str
        The numbers of rows, queries and relevant rows.
    summary : DataFrame
        A row for each model. `ndcg` is the mean over queries of ``NDCG@k``, with an interval in
        `ndcg_low` and `ndcg_high`, `pairwise_error` the share of all pairs in the wrong order.
        `largest_gap` and `mean_gap` are the largest and the mean of the queries' differences of
        pairwise errors across groups, `gap_of_means` the largest difference of the means over
        queries, and `queries_compared` the number of queries that have a difference. For models
        with a constraint on queries, `gap_on_scores` is its largest gap on these rows, with its
        loss, and `kappa` the bound on it that the model was trained with; else nan.
    groups : DataFrame
        A row for each model and group: `rows`, `relevant`, and `ndcg`, the mean over queries of the
        ``NDCG@k`` of the group's rows among themselves.
    errors : DataFrame
        A row for each model and group of the relevant row, a column for each group of the
        irrelevant one: the mean over queries of the pairwise errors.
    confidence : float
        The confidence level of the intervals.

    Examples
    --------
    >>> from fairconstrained import FairRanker, compare_rankers, make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(30, 4, random_state=0)
    >>> ranker = FairRanker(kappa=0.1).fit(X, y, query=query, sensitive_features=groups)
    >>> found = compare_rankers({"fair": ranker}, X, y, groups, query=query)
    >>> found.title
    'fair on 2355 rows of 30 queries, 354 of them relevant'
    >>> found.to_frame("errors").shape
    (2, 2)
    """

    _tables = ("summary", "groups", "errors")
    _template = "rankers"

    summary: pd.DataFrame
    groups: pd.DataFrame
    errors: pd.DataFrame


def compare_rankers(
    models: Any | Mapping[str, Any],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | None = None,
    *,
    query: ArrayLike,
    k: int | None = 10,
    confidence: float = 0.95,
    groups_missing: str | None = None,
    pos_label: object = None,
) -> RankerComparison:
    r"""Compare rankers on the same rows: NDCG and pairwise errors, by group, before and after.

    Parameters
    ----------
    models : ranker or mapping of str to ranker
        Fitted models whose `predict` returns scores, of any library, pipelines or searches; several
        by name, such as ``{"before": a, "after": b}``.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The rows, preferably of queries that no model was trained on.
    y : array-like of shape (n_samples,)
        The labels, of two classes.
    sensitive_features : array-like or DataFrame or None, default=None
        The groups, (n_samples,) or (n_samples, n_columns); None reads them from the
        `sensitive_columns` of the last model.
    query : array-like of shape (n_samples,)
        The query of each row.
    k : int or None, default=10
        The number of ranks that count in the NDCG; None counts all.
    confidence : float, default=0.95
        The level of the intervals of the mean NDCG, :math:`m \pm z\, s / \sqrt{n}` for n queries.
    groups_missing
        See :func:`fairness_report`.
    pos_label : label or None, default=None
        The label of relevant rows; None takes that of the last model, of other libraries the second
        of the sorted labels.

    Returns
    -------
    comparison : RankerComparison
        Tables, and a text when printed.

    Raises
    ------
    ValueError
        If there are no models, lengths differ, labels are not of two classes, no groups are known,
        or a model predicts labels.
    TypeError
        If a model has no method `predict`.

    See Also
    --------
    compare : The same for classifiers.

    Examples
    --------
    >>> from fairconstrained import FairRanker, compare_rankers, make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(30, 4, random_state=0)
    >>> before = FairRanker(None).fit(X, y, query=query)
    >>> after = FairRanker(kappa=0.1).fit(X, y, query=query, sensitive_features=groups)
    >>> found = compare_rankers({"before": before, "after": after}, X, y, groups, query=query)
    >>> bool(found.summary.loc["after", "largest_gap"] < found.summary.loc["before", "largest_gap"])
    True
    >>> found.groups.columns.to_list(), found.errors.shape
    (['rows', 'relevant', 'ndcg'], (4, 2))
    """
    confidence = check_confidence(confidence)
    named = named_models(models, alone=type(models).__name__)
    check_same_rows(X=X, y=y, sensitive_features=sensitive_features, query=query)
    last = list(named.values())[-1]
    groups = groups_of(last, X, sensitive_features, missing=groups_missing)
    if pos_label is None:
        pos_label = getattr(final_estimator(last), "pos_label_", None)
    n_rows = len(groups.codes)
    labels = check_labels("y", y, n_rows)
    relevant = labels == positive_class(labels, pos_label)
    rows = _Rows(relevant, check_labels("query", query, n_rows), groups, k)
    scores = {name: _scores(model, X) for name, model in named.items()}
    measured = [
        rows.summary(of_rows, confidence) | rows.bound(named[name], of_rows)
        for name, of_rows in scores.items()
    ]
    return RankerComparison(
        title=f"{', '.join(scores)} on {n_rows} rows of {len(np.unique(rows.query))} queries, "
        f"{int(relevant.sum())} of them relevant",
        confidence=confidence,
        summary=pd.DataFrame(measured, index=pd.Index(list(scores), name="model")),
        groups=pd.concat({name: rows.by_group(s) for name, s in scores.items()}, names=_LEVELS),
        errors=pd.concat({name: rows.errors(s) for name, s in scores.items()}, names=_LEVELS),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows on which rankers are compared."""

    relevant: Array
    query: Array
    groups: Groups
    k: int | None

    def summary(self, scores: Array, level: float) -> dict[str, float]:
        """Return the measures on all rows."""
        ndcg = query_ndcg(self.relevant, scores, query=self.query, k=self.k).dropna()
        mean = float(ndcg.mean())
        deviation = float(ndcg.std()) / max(len(ndcg), 1) ** 0.5
        width = float(norm.isf((1.0 - level) / 2.0)) * deviation
        by_query = [self._errors(one, scores) for one in self.groups.separate]
        gaps = pd.Series(np.concatenate([query_gaps(errors) for errors in by_query]))
        means = [query_gaps(errors.mean().to_frame().T) for errors in by_query]
        return {
            "ndcg": mean,
            "ndcg_low": max(mean - width, 0.0),
            "ndcg_high": min(mean + width, 1.0),
            "pairwise_error": pairwise_error(self.relevant, scores, query=self.query),
            "largest_gap": float(gaps.max()),
            "mean_gap": float(gaps.mean()),
            "gap_of_means": float(pd.Series(np.concatenate(means)).max()),
            "queries_compared": len(gaps),
        }

    def bound(self, model: object, scores: Array) -> dict[str, float]:
        """Return the largest gap of a model's constraints on queries, and their kappa."""
        last, constraints = final_estimator(model), []
        if getattr(last, "needs_queries", False):
            constraints = resolve_constraints(last.constraint, kappa=last.kappa)
        parities = [one for one in constraints if isinstance(one, QueryParity)]
        y, weight, gaps = np.where(self.relevant, 1.0, -1.0), np.ones(len(scores)), [np.empty(0)]
        with without_vacuous_warnings():
            for one in parities:
                terms = [one.bind(y, part, weight, self.query) for part in self.groups.separate]
                gaps += [term.gap(scores) for term in terms]
        kappas = [one.kappa for one in parities]
        figures = {"gap_on_scores": np.concatenate(gaps), "kappa": kappas}
        return {name: float(pd.Series(each, dtype=float).max()) for name, each in figures.items()}

    def _errors(self, groups: Groups, scores: Array) -> pd.DataFrame:
        """Return the pairwise errors of the queries, among the rows of known groups."""
        known = np.flatnonzero(groups.known)
        return query_pairwise_errors(
            self.relevant[known],
            scores[known],
            query=self.query[known],
            sensitive_features=groups.take(known),
            pos_label=True,
        )

    def errors(self, scores: Array) -> pd.DataFrame:
        """Return the mean over queries of the pairwise errors, by the groups of both rows."""
        parts = self.groups.separate
        return pd.concat([self._errors(one, scores).mean().unstack() for one in parts])

    def by_group(self, scores: Array) -> pd.DataFrame:
        """Return numbers of rows and the NDCG of every group."""
        rows, groups = stacked(self.groups)
        figures = []
        for code in range(len(groups)):
            some = rows[groups.codes == code]
            relevant, query = self.relevant[some], self.query[some]
            ndcg = query_ndcg(relevant, scores[some], query=query, k=self.k)
            figures.append([len(some), int(relevant.sum()), float(ndcg.mean())])
        return pd.DataFrame(figures, columns=["rows", "relevant", "ndcg"], index=groups.labels)


def _scores(model: Any, X: MatrixLike) -> Array:
    """Return the scores of a model."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise TypeError(
            "models must be a fitted ranker, or a mapping from names to fitted rankers; got "
            f"{model!r}."
        )
    if hasattr(final_estimator(model), "predict_proba") or hasattr(model, "decision_function"):
        raise ValueError(
            f"models: {type(model).__name__} is a classifier, whose predictions are labels; use "
            "compare or fairness_report."
        )
    return check_scores("the predictions", model.predict(X))
