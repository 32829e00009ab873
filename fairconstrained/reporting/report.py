"""The fairness report of a fitted classifier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups
from fairconstrained.data.inputs import check_held, check_labels
from fairconstrained.inspection.assessment import Rows, assess, constraints_of, minimizes_gap
from fairconstrained.inspection.scores import (
    GroupScores,
    check_two_classes,
    groups_of,
    has_scores,
    ranks_of,
)
from fairconstrained.metrics.rates import DEFAULT_RATES, Predictions
from fairconstrained.reporting.render import FigureData, as_html, as_text
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.validation import check_confidence

_TABLES = ("groups", "gaps", "constraints", "model")
_ALWAYS_SHOWN = ("enforce",)
_SHOWN_WITH_CONSTRAINTS = ("constraint", "kappa", "surrogate")
_HELD_OUT_ROWS = (
    "The intervals are valid for rows that were not used in training. On training rows they are "
    "too optimistic: use held-out rows."
)


@dataclass(frozen=True, eq=False)
class FairnessReport:
    """The result of :func:`fairness_report`.

    ``print(report)`` shows it as text, :meth:`to_html` returns an HTML page with figures, and
    :meth:`to_frame` returns its tables.

    Attributes
    ----------
    title : str
        The model, the number of rows and the positive class.
    model : DataFrame
        The parameters of the model, its gaps on the training rows, and the status of the solver;
        empty for classifiers of other libraries.
    constraints : DataFrame
        A row for each constraint: the tolerance, the gap of the surrogate on the scores, the gap of
        the predictions with its confidence interval, the groups with the largest gap, and the
        verdict.
    gaps : DataFrame
        The largest gap of each rate; see
        :func:`~fairconstrained.metrics.rate_gaps`.
    groups : DataFrame
        Counts and rates by group; see :func:`~fairconstrained.metrics.group_rates`.
    confidence : float
        The confidence level of the intervals.
    notes : tuple of str
        Remarks on how to read the values.
    """

    title: str
    model: pd.DataFrame
    constraints: pd.DataFrame
    gaps: pd.DataFrame
    groups: pd.DataFrame
    confidence: float
    notes: tuple[str, ...]
    _figure_data: FigureData = field(repr=False)

    def to_frame(self, table: str = "groups") -> pd.DataFrame:
        """Return a table of the report as a DataFrame with numbers.

        Parameters
        ----------
        table : {"groups", "gaps", "constraints", "model"}, default="groups"
            The table.

        Returns
        -------
        table : DataFrame
            A copy.
        """
        check_option("table", table, dict.fromkeys(_TABLES, ""))
        frame: pd.DataFrame = getattr(self, table)
        return frame.copy()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a self-contained HTML page with embedded figures.

        Without matplotlib the page has no figures.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            A file to which the page is also written.

        Returns
        -------
        page : str
            The HTML source. All names from the data are escaped.
        """
        page = as_html(self, self._figure_data)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        """Return the report as text."""
        return as_text(self)

    def _repr_html_(self) -> str:
        """Return the report as HTML for notebooks."""
        return as_html(self, self._figure_data, whole=False)


def fairness_report(
    estimator: Classifier,
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> FairnessReport:
    """Report the fairness of a fitted classifier on given rows.

    The intervals of the rates are exact (Clopper-Pearson); each has the given confidence. The
    largest gap of a rate has Newcombe's interval with a Bonferroni correction for all pairs of
    groups. The largest shortfall of a ratio has an interval from exact intervals with the same
    correction. All intervals refer to the population that the rows are drawn from. A constraint
    "holds" if its whole interval is within the tolerance, and "does not hold" if its whole interval
    is above. Otherwise the verdict says whether it is met on these rows, and that this is
    inconclusive.

    Parameters
    ----------
    estimator : classifier
        A fitted binary classifier: one of this library, a pipeline that ends in one, a search, or
        any classifier with scikit-learn's API. For the latter, the report has only rates and gaps.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features of the rows, preferably held-out rows.
    y : array-like of shape (n_samples,)
        The labels.
    sensitive_features : array-like, DataFrame or None, default=None
        The groups; None reads them from the `sensitive_columns` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The sample weights. With weights the intervals are approximate.
    confidence : float, default=0.95
        The confidence level of the intervals.

    Returns
    -------
    report : FairnessReport
        The report. See its methods ``to_frame`` and ``to_html``.

    Raises
    ------
    ValueError
        If the estimator is not a binary classifier, or no groups are known.
    NotFittedError
        If the estimator is not fitted.

    References
    ----------
    Clopper, Pearson (1934); Newcombe (1998), method 10.

    Examples
    --------
    >>> from fairconstrained import (
    ...     FairLogisticClassifier,
    ...     fairness_report,
    ...     make_biased_classification,
    ... )
    >>> X, y, groups = make_biased_classification(n_samples=4000, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05)
    >>> clf = clf.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    >>> report = fairness_report(clf, X[2000:], y[2000:], groups[2000:])
    >>> report.to_frame("constraints")[["tolerance", "decisions", "low", "high"]].round(2)
                        tolerance  decisions   low  high
    constraint
    demographic_parity       0.05       0.16  0.11   0.2
    """
    confidence = check_confidence(confidence)
    estimator = best_estimator(estimator)
    check_two_classes(estimator)
    check_same_rows(
        test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    _check_known_labels(estimator, y)
    last = final_estimator(estimator)
    groups = groups_of(estimator, X, sensitive_features, marginal=True)
    predictions = estimator.predict(X)
    intersections = replace(groups, marginal=False)
    positive = estimator.classes_[1]
    whole = Predictions.check(y, predictions, intersections, sample_weight, positive)
    parts = [
        Predictions.check(y, predictions, one, sample_weight, positive) for one in groups.separate
    ]
    constraints, notes = _constraints(estimator, X, y, groups, sample_weight, confidence)
    kind = type(last).__name__
    return FairnessReport(
        title=f"{kind} on {len(whole.labels)} rows; the positive class is {positive}",
        model=_model(last),
        constraints=constraints,
        gaps=pd.concat([_gaps(one, groups.marginal, confidence) for one in parts]),
        groups=_groups(parts, confidence),
        confidence=confidence,
        notes=(*notes, *_notes(groups, sample_weight), _HELD_OUT_ROWS),
        _figure_data=FigureData(
            predictions=whole,
            scores=GroupScores.from_estimator(estimator, X, y, intersections, sample_weight)
            if has_scores(estimator)
            else None,
            ranks=ranks_of(last),
            result=getattr(last, "result_", None),
        ),
    )


def _check_known_labels(estimator: Classifier, y: ArrayLike) -> None:
    """Raise if a label is not among the classes of the estimator."""
    check_held("y", y)
    labels = check_labels("y", y, len(np.ravel(np.asarray(y))), rows="y")
    unknown = [one for one in np.unique(labels).tolist() if one not in estimator.classes_.tolist()]
    if unknown:
        raise ValueError(
            f"y has the label {unknown[0]!r}, which is not among the classes "
            f"{estimator.classes_.tolist()} of the estimator."
        )


def _groups(parts: list[Predictions], confidence: float) -> pd.DataFrame:
    """Return the rates of all groups, with the row for all rows at the end."""
    tables = [one.table(DEFAULT_RATES, confidence) for one in parts]
    return pd.concat([*(table.iloc[:-1] for table in tables), tables[-1].iloc[-1:]])


def _gaps(predictions: Predictions, marginal: bool, confidence: float) -> pd.DataFrame:
    """Return the largest gaps. With marginal groups, their names start with the attribute."""
    gaps = predictions.gaps(DEFAULT_RATES, confidence)
    if marginal:
        gaps.index = [f"{predictions.groups.title}: {name}" for name in gaps.index]
        gaps.index.name = "rate"
    return gaps


def _constraints(
    estimator: Any,
    X: MatrixLike,
    y: ArrayLike,
    groups: Groups,
    sample_weight: ArrayLike | None,
    confidence: float,
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of the model's constraints on these rows, and notes."""
    columns = ["tolerance", "scores", "decisions", "low", "high", "worst", "verdict"]
    constraints = constraints_of(final_estimator(estimator))
    scores = np.asarray(estimator.decision_function(X), dtype=float) if constraints else np.empty(0)
    if not constraints:
        return pd.DataFrame(columns=columns, index=pd.Index([], name="constraint")), []
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
    counted = np.flatnonzero(weight)
    labels = np.where(np.asarray(y) == estimator.classes_[1], 1.0, -1.0)
    rows = Rows(labels[counted], scores[counted], groups.take(counted), weight[counted])
    found = [assess(name, one, rows, confidence) for name, one in constraints]
    verdicts = [v.verdict(confidence) for v in found]
    if minimizes_gap(final_estimator(estimator)):
        verdicts = ["gap minimized, no bound"] * len(found)
    table = pd.DataFrame(
        [
            [v.tolerance, v.on_scores, v.on_predictions, v.low, v.high, v.worst, verdict]
            for v, verdict in zip(found, verdicts, strict=True)
        ],
        columns=columns,
        index=pd.Index([v.name for v in found], name="constraint"),
    )
    return table, [f"{v.name}: {v.note}." for v in found if v.note]


def _model(last: Any) -> pd.DataFrame:
    """Return the parameters and the results of the fit of a classifier of this library."""
    rows: dict[str, str] = {}
    result = getattr(last, "result_", None)
    if result is not None:
        constraints = [one for _, one in constraints_of(last)]
        rows["constraint"] = "; ".join(" ".join(repr(one).split()) for one in constraints) or "none"
        defaults = type(last)().get_params(deep=False)
        for name, value in last.get_params(deep=False).items():
            if name not in _SHOWN_WITH_CONSTRAINTS and (
                name in _ALWAYS_SHOWN or repr(value) != repr(defaults[name])
            ):
                rows[name] = str(value)
        if constraints:
            rows["gap on scores, training rows"] = f"{last.gap_:.4f}"
            rows["gap of predictions, training rows"] = f"{last.decision_gap_:.4f}"
            rows["violation on scores"] = f"{last.violation_:.2e}"
            rows |= dict(_search_results(last))
        rows["solver"] = " ".join(repr(result.solver).split())
        rows["status"] = result.message
    return pd.DataFrame({"value": rows}, dtype=object).rename_axis("what")


def _search_results(last: Any) -> Iterator[tuple[str, str]]:
    """Yield the results of the search for predictions within the bound, if there was one."""
    search = getattr(last, "decision_search_", None)
    if search is not None:
        met = "met" if search.met else "not met"
        yield "bound on predictions, training rows", met + " (constant)" * search.constant
        others = {
            "bound on scores only": search.accuracy_on_scores,
            "unconstrained": search.accuracy_unconstrained,
        }
        fitted = [f"{name}: {value:.4f}" for name, value in others.items() if np.isfinite(value)]
        beside = f" ({', '.join(fitted)})" if fitted else ""
        yield "accuracy, training rows", f"{search.accuracy:.4f}{beside}"
    certificate = getattr(last, "certificate_", None)
    if certificate is not None:
        verdict = "" if certificate.certified else "not "
        yield (
            "population",
            f"{verdict}shown to be within the bound with {100.0 * certificate.confidence:g}% "
            f"confidence, on {certificate.n_held_out} rows held out in fit",
        )


def _notes(groups: Groups, sample_weight: ArrayLike | None) -> Iterator[str]:
    unknown = int((~groups.known).sum())
    if unknown:
        yield f"The group of {unknown} rows is unknown. They count only in the rates of all rows."
    if sample_weight is not None:
        yield "Rates are weighted, counts are not. With weights the intervals are approximate."
