"""Comparisons of several models on the same rows: of classifiers, and of rankers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from fairconstrained.constraints import Constraint, QueryParity, resolve_constraints
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import Groups
from fairconstrained.data.inputs import check_labels, check_same_rows, known_labels
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.inspection.assessment import assess
from fairconstrained.inspection.collected import Collected, collect, cost_of, groups_of, overall
from fairconstrained.inspection.shown import stacked
from fairconstrained.metrics import ranking
from fairconstrained.metrics.inputs import check_scores, positive_class
from fairconstrained.metrics.intervals import Interval, largest_gap, largest_shortfall
from fairconstrained.metrics.rates import DEFAULT_RATES
from fairconstrained.reporting.forms import Report
from fairconstrained.utils.arguments import check_confidence
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.meta_estimators import final_estimator, named_models, provenance

_MEASURES = {"AUC": "auc", "Brier score": "brier", "selection rate": "selection_rate"}
_LEVELS = ["model", "group"]


def compare(
    models: Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | None = None,
    *,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    reference: str | None = None,
    constraint: str | Constraint | None = None,
    groups_missing: str | None = None,
    pos_label: object = None,
) -> pd.DataFrame:
    r"""Return accuracy, fairness and cost of several models on the same rows, a row for each.

    Parameters
    ----------
    models : mapping of str to classifier
        Fitted classifiers by name, of any library, pipelines or searches.
    X, sensitive_features, control_features, sample_weight, confidence, groups_missing
        See :func:`fairness_report`.
    y : array-like of shape (n_samples,)
        The labels.
    reference : str or None, default=None
        The name of the model that `cost` is relative to; None takes the first one.
    constraint : str, Constraint or None, default=None
        A constraint whose largest gap of the predictions is shown in a column `gap`.
    pos_label : label or None, default=None
        The favourable class; None takes that of the models. Required with more than two classes:
        the measures are those of this class against all others.

    Returns
    -------
    table : DataFrame
        The columns: `accuracy` (Clopper and Pearson's interval), `auc` of `decision_function` (with
        thresholds by group: of the scores minus the thresholds) or else of the probabilities,
        `brier` (both nan if the model has no scores or probabilities), `selection_rate`, the
        largest differences between two groups `selection_rate_gap`, `true_positive_rate_gap`,
        `false_positive_rate_gap` and `accuracy_gap` (Newcombe's intervals with a Bonferroni
        correction for the pairs of groups), the smallest ratio of two groups' selection rates
        `selection_rate_ratio`, and `cost`, the accuracy of the reference minus that of the model
        (interval of Agresti and Min for the same rows). Intervals have the endings ``_low`` and
        ``_high``. With marginal groups (`combine`) a gap is the largest one of all attributes.

    Raises
    ------
    ValueError
        If a model is not a classifier or has more than two classes without `pos_label`,
        `reference` is not among the models, or no groups are known.

    See Also
    --------
    fairness_report : The same with rates by group, verdicts and pictures.

    References
    ----------
    Clopper, Pearson (1934); Newcombe (1998), method 10; Agresti, Min (2005).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairconstrained import FairThresholds, compare, make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, gap=0.3, random_state=0)
    >>> before = LogisticRegression().fit(X[:2000], y[:2000])
    >>> after = FairThresholds(before, kappa=0.05, per_group=True, cv="prefit")
    >>> after = after.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    >>> table = compare({"before": before, "after": after}, X[2000:], y[2000:], groups[2000:])
    >>> table[["accuracy", "auc", "selection_rate_gap", "cost"]].round(2)
            accuracy   auc  selection_rate_gap  cost
    model
    before      0.79  0.88                0.30  0.00
    after       0.77  0.83                0.03  0.02
    """
    confidence = check_confidence(confidence)
    if not isinstance(models, Mapping):
        raise ValueError(
            "models must be a mapping from names to fitted classifiers, such as "
            f"{{'before': a, 'after': b}}; got {models!r}."
        )
    if y is None:
        raise ValueError("y is None: a comparison measures accuracy and needs the labels.")
    given = with_strata(sensitive_features, control_features)
    rows = collect(models, X, y, given, sample_weight, groups_missing=groups_missing)
    return compared(rows.against_rest(pos_label), reference, constraint, confidence)


def compared(
    rows: Collected, reference: str | None, constraint: str | Constraint | None, confidence: float
) -> pd.DataFrame:
    """Return the table of :func:`compare` of collected rows."""
    names = list(rows.outputs)
    first = names[0] if reference is None else reference
    if first not in names:
        raise ValueError(f"reference={reference!r} is not the name of a model: {names}.")
    table = {name: _row(rows, name, first, confidence) for name in names}
    for each in resolve_constraints(constraint):
        for name, row in table.items():
            gap = assess(each, rows.assessed(rows.outputs[name]), confidence)
            row |= {"gap": gap.on_predictions, "gap_low": gap.low, "gap_high": gap.high}
    return pd.DataFrame.from_dict(table, orient="index", dtype=float).rename_axis("model")


def _row(collected: Collected, name: str, first: str, confidence: float) -> dict[str, Any]:
    """Return the measures of a model."""
    measured = overall(collected, collected.outputs[name])
    row: dict[str, Any] = collected.accuracy(collected.outputs[name], confidence).named("accuracy")
    row |= {column: measured.get(key, np.nan) for key, column in _MEASURES.items()}
    for rate in DEFAULT_RATES:
        cells = [part.cells(rate) for part in collected.predictions(name)]
        row |= largest_gap(cells, confidence).named(f"{rate}_gap")
        if rate == "selection_rate":
            lack, least, most = largest_shortfall(cells, confidence)
            row |= Interval(1.0 - lack, 1.0 - most, 1.0 - least).named(f"{rate}_ratio")
    if name == first:
        return row | dict.fromkeys(("cost", "cost_low", "cost_high"), 0.0)
    (change, low, high), _ = cost_of(collected, first, name, confidence)
    return row | Interval(0.0 - change, -high, -low).named("cost")


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
    provenance : dict of str to str
        Versions, date, command, hashes of data and parameters; see
        :func:`~fairconstrained.deployment.provenance`.

    Examples
    --------
    >>> from fairconstrained import FairRanker, compare_rankers, make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(30, 4, random_state=0)
    >>> ranker = FairRanker(kappa=0.1).fit(X, y, query=query, sensitive_features=groups)
    >>> comparison = compare_rankers({"fair": ranker}, X, y, groups, query=query)
    >>> comparison.title
    'fair on 2355 rows of 30 queries, 354 of them relevant'
    >>> comparison.to_frame("errors").shape
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
    control_features: MatrixLike | None = None,
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
    query : array-like of shape (n_samples,)
        The query of each row.
    k : int or None, default=10
        The number of ranks that count in the NDCG; None counts all.
    confidence : float, default=0.95
        The level of the intervals of the mean NDCG, Student's :math:`m \pm t\, s / \sqrt{n}` for n
        queries. With few queries they are too short, because values near 1 are skewed: in
        simulations 86% of those of 5 queries held the mean, 90% of 10 and 93% of 30, in place of
        95%.
    sensitive_features, control_features, groups_missing
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
    >>> comparison = compare_rankers({"before": before, "after": after}, X, y, groups, query=query)
    >>> bool(
    ...     comparison.summary.loc["after", "largest_gap"]
    ...     < comparison.summary.loc["before", "largest_gap"]
    ... )
    True
    >>> comparison.groups.columns.to_list(), comparison.errors.shape
    (['rows', 'relevant', 'ndcg'], (4, 2))
    """
    confidence = check_confidence(confidence)
    named = named_models(models, alone=type(models).__name__)
    given = with_strata(sensitive_features, control_features)
    check_same_rows(X=X, y=y, sensitive_features=given, query=query)
    last = list(named.values())[-1]
    groups = groups_of(last, X, given, missing=groups_missing)
    n_rows = len(groups.codes)
    labels = check_labels("y", y, n_rows)
    if pos_label is None and hasattr(final_estimator(last), "pos_label_"):
        labels = known_labels("y", labels, final_estimator(last).classes_.tolist())
        pos_label = final_estimator(last).pos_label_
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
        provenance=provenance(named, X, y, query, given, rows=n_rows),
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
        ndcg = ranking.query_ndcg(self.relevant, scores, query=self.query, k=self.k).dropna()
        mean, n = float(ndcg.mean()), len(ndcg)
        width = float(student.isf(0.5 - 0.5 * level, n - 1)) * float(ndcg.std()) / max(n, 1) ** 0.5
        by_query = [self._errors(groups, scores) for groups in self.groups.separate]
        gaps = pd.Series(np.concatenate([ranking.query_gaps(errors) for errors in by_query]))
        means = [ranking.query_gaps(errors.mean().to_frame().T) for errors in by_query]
        return {
            "ndcg": mean,
            "ndcg_low": max(mean - width, 0.0),
            "ndcg_high": min(mean + width, 1.0),
            "pairwise_error": ranking.pairwise_error(self.relevant, scores, query=self.query),
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
        parities = [parity for parity in constraints if isinstance(parity, QueryParity)]
        y, weight, gaps = np.where(self.relevant, 1.0, -1.0), np.ones(len(scores)), [np.empty(0)]
        with without_vacuous_warnings():
            for parity in parities:
                terms = [parity.bind(y, part, weight, self.query) for part in self.groups.separate]
                gaps += [term.gap(scores) for term in terms]
        kappas = [parity.kappa for parity in parities]
        figures = {"gap_on_scores": np.concatenate(gaps), "kappa": kappas}
        return {name: float(pd.Series(each, dtype=float).max()) for name, each in figures.items()}

    def _errors(self, groups: Groups, scores: Array) -> pd.DataFrame:
        """Return the pairwise errors of the queries, among the rows of known groups."""
        known = np.flatnonzero(groups.known)
        given: Any = {"sensitive_features": groups.take(known), "pos_label": True}
        given["query"] = self.query[known]
        return ranking.query_pairwise_errors(self.relevant[known], scores[known], **given)

    def errors(self, scores: Array) -> pd.DataFrame:
        """Return the mean over queries of the pairwise errors, by the groups of both rows."""
        parts = self.groups.separate
        return pd.concat([self._errors(groups, scores).mean().unstack() for groups in parts])

    def by_group(self, scores: Array) -> pd.DataFrame:
        """Return numbers of rows and the NDCG of every group."""
        rows, groups = stacked(self.groups)
        figures = []
        for code in range(len(groups)):
            some = rows[groups.codes == code]
            relevant, query = self.relevant[some], self.query[some]
            ndcg = ranking.query_ndcg(relevant, scores[some], query=query, k=self.k)
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
