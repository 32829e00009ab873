"""The fairness report of one or several fitted classifiers."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from fairconstrained.data.attributes import with_strata
from fairconstrained.data.groups import Groups
from fairconstrained.inspection.collected import collect, collect_predictions
from fairconstrained.inspection.shown import FEW_ROWS, MOST_GROUPS, choose_groups
from fairconstrained.metrics.impact import LEAST_SHARE, ComparedRows
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.reporting import _pictures as pictures
from fairconstrained.reporting import _tables as tables
from fairconstrained.reporting._evidence import Constraints, Evidence
from fairconstrained.reporting.forms import Report, Table, plain, sentence
from fairconstrained.utils.arguments import check_confidence
from fairconstrained.utils.arrays import ArrayLike, Classifier, MatrixLike


def _of_models(table: Callable[[Evidence, str], pd.DataFrame], *of_classes: str) -> Any:
    """Return the attribute of a report that is a table of all models, computed once."""
    return cached_property(lambda r: tables.for_every_model(r._evidence, table, *of_classes))


@dataclass(frozen=True, eq=False)
class FairnessReport(Report):
    """The result of :func:`fairness_report`.

    ``print(report)`` shows it as text. With several models, the first level of the index of
    `model`, `constraints`, `gaps` and `groups` is the name of the model.

    Attributes
    ----------
    title : str
        The models, the number of rows and the positive class, or the classes.
    verdict : Verdict
        The verdict on the last model: `state`, `sentence` and, with several constraints, `details`.
    model : DataFrame
        The parameters of the model, its gaps on the training rows, and the status of the solver;
        empty for classifiers of other libraries.
    constraints : DataFrame
        A row for each constraint: the tolerance, the gap of the surrogate on the scores, the gap of
        the predictions with its confidence interval, the groups with the largest gap, and the
        verdict.
    gaps : DataFrame
        The largest gap of each rate; see :func:`~fairconstrained.metrics.rate_gaps`. For models
        with probabilities also that of the calibration.
    groups : DataFrame
        Counts and rates by group; see :func:`~fairconstrained.metrics.group_rates`. With labels
        also the precision.
    calibration : DataFrame
        The mean label minus the mean probability by group; see
        :func:`~fairconstrained.metrics.group_calibration`. Empty without labels or probabilities.
    summary : DataFrame
        Accuracy, AUC, Brier score, selection rate and gaps on all rows, a column for each model;
        with several classes accuracy, balanced accuracy, log loss and the largest gaps.
    cost : DataFrame
        For every model but the first: the change of the accuracy with its interval, and the
        numbers of rows whose prediction changes.
    impact : DataFrame
        The impact ratios of the decisions; see :func:`~fairconstrained.metrics.impact_ratios`.
    score_impact : DataFrame
        Impact ratios of the probabilities, or of the scores if there are none; see
        :func:`~fairconstrained.metrics.score_impact_ratios`. Empty for models without scores.
    frontier : DataFrame
        The models of the path, measured on these rows.
    confidence : float
        The confidence level of the intervals.
    notes : tuple of str
        Remarks on how to read the values.
    provenance : dict of str to str
        Versions, date, command, hashes of data and parameters; see
        :func:`~fairconstrained.deployment.provenance`.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, fairness_report
    >>> from fairconstrained import make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> report = fairness_report(clf, X, y, groups)
    >>> report.to_frame("groups").index.tolist()
    ['0', '1', 'all rows']
    """

    _tables = (
        "groups", "gaps", "calibration", "constraints", "impact", "score_impact", "model",
        "summary", "cost", "frontier",
    )  # fmt: skip
    _template = "report"

    verdict: tables.Verdict
    frontier: pd.DataFrame
    notes: tuple[str, ...]
    _evidence: Evidence = field(repr=False)

    groups = _of_models(tables.groups_table)
    gaps = _of_models(tables.gaps_table)
    calibration = _of_models(tables.calibration_table)
    constraints = _of_models(tables.constraints_table, "also together")
    impact = _of_models(tables.impact_table)
    score_impact = _of_models(tables.score_impact_table)
    model = _of_models(tables.model_table, "together")
    summary = cached_property(lambda report: tables.summary_table(report._evidence))
    cost = cached_property(lambda report: tables.cost_table(report._evidence))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        *,
        sensitive_features: MatrixLike | Groups,
        control_features: MatrixLike | None = None,
        y_score: ArrayLike | Mapping[str, ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        confidence: float = 0.95,
        constraint: Constraints = None,
        groups_missing: str | None = None,
        pos_label: object = None,
        reference: Any = None,
        least_share: float = LEAST_SHARE,
    ) -> "FairnessReport":
        """Report the fairness of stored predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            The labels. Without them the report is on selection rates only.
        y_pred : array-like of shape (n_samples,) or mapping of str to array-like
            The predicted labels; those of several models by name.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        control_features : array-like or DataFrame or None, default=None
            Strata in which groups are compared, see :func:`fairness_report`.
        y_score : array-like of shape (n_samples,), mapping of str to array-like or None
            The scores of the second of the sorted classes, whatever `pos_label` is, or (n_samples,
            n_classes). They are taken for probabilities if all are between 0 and 1.
        constraint : str, Constraint, sequence of these or None, default=None
            The constraints to measure; names have the tolerance 0.05.
        sample_weight, confidence, groups_missing, reference, least_share
            See :func:`fairness_report`.
        pos_label : label or None, default=None
            The positive class; None means the second of the sorted classes, or all of several.

        Returns
        -------
        report : FairnessReport
            The report.

        Raises
        ------
        ValueError
            If lengths differ, values are missing, or predictions are not labels.

        Examples
        --------
        >>> from fairconstrained import FairnessReport
        >>> report = FairnessReport.from_predictions(
        ...     [0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=["a", "a", "b", "b"]
        ... )
        >>> report.to_frame("groups")["selection_rate"].to_list()
        [0.5, 1.0, 0.75]
        """
        confidence = check_confidence(confidence)
        groups = with_strata(sensitive_features, control_features)
        rows = collect_predictions(
            y_true, y_pred, y_score, groups, sample_weight, groups_missing=groups_missing
        )
        compared = ComparedRows(rows.groups, rows.weight, reference, least_share, confidence)
        evidence = Evidence.of(rows, compared, constraint, pos_label)
        return _report(evidence, evidence.frontier())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dictionaries, lists, strings and numbers; nan becomes None."""
        evidence, rows = self._evidence, self._evidence.rows
        return super().to_dict() | {
            "verdict": {**asdict(self.verdict), "details": list(self.verdict.details)},
            "rows": rows.n_rows,
            "weighted": rows.weighted,
            "target": rows.target or None,
            "positive_class": plain(rows.positive),
            "classes": [plain(label) for label in rows.classes],
            "models": evidence.names,
            "sentences": self._sentences(),
            "notes": list(self.notes),
            "proxies": evidence.proxies,
        }

    def _sentences(self) -> list[str]:
        """Return what decides the constraints, and what the models cost."""
        findings = self._evidence.findings[self._evidence.names[-1]]
        decided = [text for finding in findings if (text := tables.decided_by(finding))]
        return decided + tables.costs_in_words(self._evidence)

    def _content(self) -> dict[str, Any]:
        evidence = self._evidence
        return {
            "evidence": evidence,
            "names": evidence.names,
            "few_rows": FEW_ROWS,
            "most_groups": MOST_GROUPS,
            "sentences": self._sentences(),
            "sentence": sentence,
            "few_groups": few_groups,
            "tables": tables,
            "plots": pictures,
        }


def few_groups(evidence: Evidence, heads: Mapping[str, str]) -> Table:
    """Return the groups of the last model, of many the extremes and the largest, and all rows."""
    table = tables.groups_table(evidence, evidence.names[-1])
    body = table.iloc[:-1]
    choice = choose_groups(body["selection_rate"].to_numpy(float), body["rows"].to_numpy())
    shown = Table.of(table.iloc[[*choice.shown, len(body)]], heads)
    if len(choice.others):
        size = str(body["rows"].iloc[choice.others].sum())
        others = [size, *[""] * (len(shown.columns) - 1)]
        shown.rows.insert(-1, (f"({choice.label})", others))
    return shown


def fairness_report(
    estimator: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike | None,
    sensitive_features: MatrixLike | None = None,
    *,
    control_features: MatrixLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    constraint: Constraints = None,
    path: FairnessPath | None = None,
    groups_missing: str | None = None,
    pos_label: object = None,
    reference: Any = None,
    least_share: float = LEAST_SHARE,
) -> FairnessReport:
    """Report the fairness of one or several fitted classifiers on given rows.

    The intervals of the rates are exact (Clopper-Pearson); each has the given confidence. The
    largest gap of a rate has Newcombe's interval with a Bonferroni correction for all pairs of
    groups. The largest shortfall of a ratio has an interval derived from exact intervals of the
    rates, with a correction for their number. The difference of two accuracies on the same rows has
    the interval of Agresti and Min. All intervals refer to the population that the rows are drawn
    from. A constraint "holds" if its whole interval is within the tolerance, and "does not hold" if
    its whole interval is above. Otherwise the verdict states whether it is met on these rows.

    Parameters
    ----------
    estimator : classifier or mapping of str to classifier
        A fitted classifier: one of this library, a pipeline that ends in one, a search, or any
        object whose `predict` returns labels, with or without `classes_`, `predict_proba` and
        `decision_function`. Its `predict` gets `sensitive_features` if it takes them, and a fixed
        seed if it takes `random_state`. Several by name, for example ``{"before": ...,
        "after": ...}``, are shown side by side; the verdict refers to the last one, and the cost to
        the first one. Models without constraints are measured with the constraints of the last
        model that has any.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        The features of the rows, preferably held-out rows.
    y : array-like of shape (n_samples,) or None
        The labels. Without them the report is on selection rates only.
    sensitive_features : array-like, DataFrame or None, default=None
        The groups; None reads them from the `sensitive_columns` of the classifier.
    control_features : array-like or DataFrame or None, default=None
        Strata, such as income bands: groups are compared within each stratum.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The sample weights. With weights the intervals are approximate.
    confidence : float, default=0.95
        The confidence level of the intervals.
    constraint : str, Constraint, sequence of these or None, default=None
        The constraints to measure; None means those that the models were trained with. Objects have
        their own tolerance, for instance ``DemographicParity(0.02)``; names have the default one.
    path : FairnessPath or None, default=None
        A path of models, drawn as the frontier of accuracy and gap on these rows.
    groups_missing : {"raise", "own_group", "ignore_in_constraint"} or None, default=None
        How missing values of the groups are treated; None uses the parameter of the classifier, if
        it has one, else "raise".
    pos_label : label or None, default=None
        The positive class; None means that of the classifiers. With several classes the report
        compares this class with all others, or, if it is None, each class with all others: the
        tables then have a level "class", and constraints a row for all classes together, whose
        intervals have a Bonferroni correction for their number.
    reference : group, mapping of str to group or None, default=None
        The group, by attribute, that selection rates are compared with in the tables of impact
        ratios; None takes the group with the highest rate. See
        :func:`~fairconstrained.metrics.impact_ratios`.
    least_share : float, default=0.02
        Groups with a smaller share of the rows do not set that highest rate.

    Returns
    -------
    report : FairnessReport
        The report. See its methods ``to_html``, ``to_markdown``, ``to_json`` and ``to_frame``.

    Raises
    ------
    ValueError
        If an estimator is not a classifier, the models have other classes, or no groups are known.
    NotFittedError
        If an estimator is not fitted.

    References
    ----------
    Clopper, Pearson (1934); Newcombe (1998), method 10; Agresti, Min (2005).

    Examples
    --------
    >>> from fairconstrained import (
    ...     FairLogisticClassifier,
    ...     fairness_report,
    ...     make_biased_classification,
    ... )
    >>> X, y, groups = make_biased_classification(n_samples=4000, random_state=0)
    >>> before = FairLogisticClassifier(None).fit(X[:2000], y[:2000])
    >>> clf = FairLogisticClassifier(kappa=0.05)
    >>> clf = clf.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    >>> report = fairness_report(clf, X[2000:], y[2000:], groups[2000:])
    >>> report.to_frame("constraints")[["tolerance", "decisions", "low", "high"]].round(2)
                        tolerance  decisions   low  high
    constraint
    demographic_parity       0.05       0.16  0.11   0.2
    >>> both = {"before": before, "after": clf}
    >>> report = fairness_report(both, X[2000:], y[2000:], groups[2000:])
    >>> report.to_frame("summary").loc[["accuracy", "gap: demographic_parity"]].round(2)
                             before  after
    measure
    accuracy                   0.79   0.74
    gap: demographic_parity    0.20   0.16
    """
    confidence = check_confidence(confidence)
    groups = with_strata(sensitive_features, control_features)
    rows = collect(estimator, X, y, groups, sample_weight, groups_missing=groups_missing)
    if path is not None and not isinstance(path, FairnessPath):
        raise ValueError(
            "path must be a FairnessPath, which fairness_path returns, or None; got "
            f"{type(path).__name__}."
        )
    compared = ComparedRows(rows.groups, rows.weight, reference, least_share, confidence)
    evidence = Evidence.of(rows, compared, constraint, pos_label, X)
    return _report(evidence, evidence.frontier(path, X, groups), X)


def _report(evidence: Evidence, frontier: pd.DataFrame, X: Any = None) -> FairnessReport:
    """Return the report; X is hashed."""
    return FairnessReport(
        title=sentence("title", evidence),
        verdict=tables.verdict_of(evidence),
        frontier=frontier,
        confidence=evidence.confidence,
        notes=tuple(dict.fromkeys(filter(None, sentence("notes", evidence).split("\n")))),
        provenance=evidence.origin(X),
        _evidence=evidence,
    )
