"""What a fitted model does to groups, in words, tables and pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups
from fairconstrained.inspection.assessment import Rows, assess, constraints_of, minimizes_gap
from fairconstrained.inspection.scores import (
    Scored,
    check_two_classes,
    groups_of,
    has_scores,
    ranks_of,
)
from fairconstrained.metrics.rates import DEFAULT_RATES, Decisions
from fairconstrained.reporting.render import as_html, as_text
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.validation import check_confidence

_TABLES = ("groups", "gaps", "constraints", "model")
_ALWAYS = ("enforce",)
_SAID_BY_CONSTRAINTS = ("constraint", "kappa", "surrogate")
_UNSEEN = (
    "Intervals are about rows that the model has not seen. On the rows that it was fitted to they "
    "promise too much: take rows that were kept apart."
)


@dataclass(frozen=True, eq=False)
class FairnessReport:
    """What :func:`fairness_report` returns.

    ``str(report)`` is the report as text, :meth:`to_html` a page with pictures, :meth:`to_frame`
    its tables.

    Attributes
    ----------
    title : str
        What was looked at.
    model : DataFrame
        What was asked of the model, what held on the rows it was fitted to, and how the solver
        ended; empty for classifiers of other libraries.
    constraints : DataFrame
        A row per constraint: its tolerance, the gap on scores (the surrogate's) and of the
        decisions on these rows, the interval of the latter, and whether it holds.
    gaps : DataFrame
        The largest gap of each rate between two groups; see
        :func:`~fairconstrained.metrics.rate_gaps`.
    groups : DataFrame
        Counts and rates of every group; see :func:`~fairconstrained.metrics.group_rates`.
    confidence : float
        Of the intervals.
    notes : tuple of str
        What one has to know to read the figures.
    """

    title: str
    model: pd.DataFrame
    constraints: pd.DataFrame
    gaps: pd.DataFrame
    groups: pd.DataFrame
    confidence: float
    notes: tuple[str, ...]
    _pictured: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self, table: str = "groups") -> pd.DataFrame:
        """Return a table of the report, with numbers as numbers.

        Parameters
        ----------
        table : {"groups", "gaps", "constraints", "model"}, default="groups"
            Which one.

        Returns
        -------
        table : DataFrame
            A copy.
        """
        check_option("table", table, dict.fromkeys(_TABLES, ""))
        frame: pd.DataFrame = getattr(self, table)
        return frame.copy()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as a page that needs no other file: the pictures are inside.

        Without matplotlib the page has no pictures, and says so.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            Where to write it as well.

        Returns
        -------
        page : str
            HTML; all names from the data are escaped.
        """
        page = as_html(self, self._pictured)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        """Return the report as text."""
        return as_text(self)

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return as_html(self, self._pictured, whole=False)


def fairness_report(
    estimator: Any,
    X: Any,
    y: Any,
    sensitive_features: Any = None,
    *,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> FairnessReport:
    """Return what a fitted classifier does to groups on some rows.

    Rates have exact intervals (Clopper-Pearson), each with the confidence on its own. The largest
    gap of a rate has Newcombe's interval for all pairs of groups at once (Bonferroni), and a ratio
    one made of exact intervals that hold at once. They say what to expect of rows drawn like these;
    a constraint "holds" when all of its interval is within the tolerance, and "does not hold" when
    all of it is above.

    Parameters
    ----------
    estimator : classifier
        Fitted, of two classes: one of this library, a pipeline that ends in one, a search, or any
        classifier of scikit-learn's kind, for which only what is measured is reported.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The rows to look at, best ones that were kept apart.
    y : array-like of shape (n_samples,)
        Their labels.
    sensitive_features : array-like, DataFrame or None, default=None
        Their groups; None takes them from the classifier's `sensitive_columns`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows. Intervals are then approximate.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    report : FairnessReport
        ``print(report)``, ``report.to_frame()``, ``report.to_html("report.html")``.

    Raises
    ------
    ValueError
        If the classifier does not have two classes, or no groups are known.
    NotFittedError
        If it is not fitted.

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
    last = final_estimator(estimator)
    groups = groups_of(estimator, X, sensitive_features, marginal=True)
    predictions = estimator.predict(X)
    together = replace(groups, marginal=False)
    positive = estimator.classes_[1]
    whole = Decisions.check(y, predictions, together, sample_weight, positive)
    parts = [
        Decisions.check(y, predictions, one, sample_weight, positive) for one in groups.separate
    ]
    constraints, notes = _constraints(estimator, X, y, groups, sample_weight, confidence)
    kind = type(last).__name__
    return FairnessReport(
        title=f"{kind} on {len(whole.labels)} rows; the positive decision is {positive}",
        model=_model(last),
        constraints=constraints,
        gaps=pd.concat([_gaps(one, groups.marginal, confidence) for one in parts]),
        groups=_groups(parts, confidence),
        confidence=confidence,
        notes=(*notes, *_notes(groups, sample_weight), _UNSEEN),
        _pictured={
            "decisions": whole,
            "result": getattr(last, "result_", None),
            "scored": Scored.of(estimator, X, y, together, sample_weight)
            if has_scores(estimator)
            else None,
            "ranks": ranks_of(last),
        },
    )


def _groups(parts: list[Decisions], confidence: float) -> pd.DataFrame:
    """Return the rates of all groups; the row of all rows comes once, at the end."""
    tables = [one.table(DEFAULT_RATES, confidence) for one in parts]
    return pd.concat([*(table.iloc[:-1] for table in tables), tables[-1].iloc[-1:]])


def _gaps(decisions: Decisions, marginal: bool, confidence: float) -> pd.DataFrame:
    """Return the largest gaps, the attribute in front where it is on its own."""
    gaps = decisions.gaps(DEFAULT_RATES, confidence)
    if marginal:
        gaps.index = [f"{decisions.groups.title}: {name}" for name in gaps.index]
        gaps.index.name = "rate"
    return gaps


def _constraints(
    estimator: Any, X: Any, y: Any, groups: Groups, sample_weight: Any, confidence: float
) -> tuple[pd.DataFrame, list[str]]:
    """Return whether the model's constraints hold on these rows, and what to note about it."""
    columns = ["tolerance", "scores", "decisions", "low", "high", "worst", "verdict"]
    asked = constraints_of(final_estimator(estimator))
    scores = np.asarray(estimator.decision_function(X), dtype=float) if asked else np.empty(0)
    if not asked:
        return pd.DataFrame(columns=columns, index=pd.Index([], name="constraint")), []
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
    counted = np.flatnonzero(weight)
    labels = np.where(np.asarray(y) == estimator.classes_[1], 1.0, -1.0)
    rows = Rows(labels[counted], scores[counted], groups.take(counted), weight[counted])
    found = [assess(name, one, rows, confidence) for name, one in asked]
    verdicts = [v.verdict(confidence) for v in found]
    if minimizes_gap(final_estimator(estimator)):
        verdicts = ["to be as small as the loss allows"] * len(found)
    table = pd.DataFrame(
        [
            [v.tolerance, v.on_scores, v.on_decisions, v.low, v.high, v.worst, words]
            for v, words in zip(found, verdicts, strict=True)
        ],
        columns=columns,
        index=pd.Index([v.name for v in found], name="constraint"),
    )
    return table, [f"{v.name}: {v.note}." for v in found if v.note]


def _model(last: Any) -> pd.DataFrame:
    """Return what was asked of a classifier of ours, and how its fit ended."""
    rows: dict[str, str] = {}
    result = getattr(last, "result_", None)
    if result is not None:
        asked = constraints_of(last)
        constraints = [repr(one).replace("\n", "") for _, one in asked]
        rows["constraint"] = "; ".join(" ".join(text.split()) for text in constraints) or "none"
        usual = type(last)().get_params(deep=False)
        for name, value in last.get_params(deep=False).items():
            if name not in _SAID_BY_CONSTRAINTS and (
                name in _ALWAYS or repr(value) != repr(usual[name])
            ):
                rows[name] = str(value)
        if asked:
            rows["gap on scores, rows of fit"] = f"{last.gap_:.4f}"
            rows["gap of decisions, rows of fit"] = f"{last.decision_gap_:.4f}"
            rows["violation on scores"] = f"{last.violation_:.2e}"
            rows |= dict(_promised(last))
        rows["solver"] = " ".join(repr(result.solver).split())
        rows["status"] = result.message
    return pd.DataFrame({"value": rows}, dtype=object).rename_axis("what")


def _promised(last: Any) -> Iterator[tuple[str, str]]:
    """Yield what the search for decisions within the bound found, if there was one."""
    search = getattr(last, "decision_search_", None)
    if search is not None:
        met = "met" if search.met else "not met"
        yield "bound on decisions, rows of fit", met + " (constant)" * search.constant
        yield (
            "accuracy, rows of fit",
            f"{search.accuracy:.4f} (bounding scores: {search.accuracy_on_scores:.4f}, "
            f"unconstrained: {search.accuracy_unconstrained:.4f})",
        )
    certificate = getattr(last, "certificate_", None)
    if certificate is not None:
        says = "within the bound" if certificate.certified else "not shown to be within the bound"
        yield (
            "population",
            f"{says} with {100.0 * certificate.confidence:g}% confidence, by "
            f"{certificate.n_held_out} rows held out in fit",
        )


def _notes(groups: Groups, sample_weight: Any) -> Iterator[str]:
    unknown = int((~groups.known).sum())
    if unknown:
        yield f"{unknown} rows are of no known group: they count among all rows only."
    if sample_weight is not None:
        yield "Rows have weights: rates are weighted, counts are not, intervals are approximate."
