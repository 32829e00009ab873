"""What a report is made of: constraints measured for every model, and points of a frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.inspection.assessment import (
    Assessment,
    assess,
    constraints_of,
    interval_of,
    minimizes_gap,
)
from fairconstrained.inspection.collected import Collected
from fairconstrained.inspection.cost import Cost, cost_of, overall
from fairconstrained.inspection.deciding import Deciding, deciding_cells
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.inspection.proxies import hidden_columns, proxies
from fairconstrained.metrics.rates import Predictions
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.reporting._frontier import FrontierPoint, frontier_of
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import MatrixLike

NamedConstraints = list[tuple[str, Constraint]]


@dataclass(frozen=True, eq=False)
class Finding:
    """A constraint on the rows of a report, for one model.

    Parameters
    ----------
    constraint : Constraint
        The constraint.
    assessment : Assessment
        Its gaps.
    deciding : Deciding or None
        The cells that decide it, for constraints on rates.
    own : bool
        Whether the model was trained with it.
    minimized : bool
        Whether the model minimizes the gap and has no bound.
    of_class : str, default=""
        Of several classes the one with the largest gap less its bound.
    n_classes : int, default=1
        The number of classes that the statement is on.
    """

    constraint: Constraint
    assessment: Assessment
    deciding: Deciding | None
    own: bool
    minimized: bool
    of_class: str = ""
    n_classes: int = 1

    @property
    def state(self) -> str:
        """The state of the verdict: see :class:`~fairconstrained.reporting._verdict.Verdict`."""
        one = self.assessment
        if np.isnan(one.on_predictions):
            return "not measured"
        if self.minimized:
            return "no bound"
        if not at_most(one.on_predictions, one.tolerance):
            return "not met"
        return "holds" if at_most(one.high, one.tolerance) else "met"

    def verdict(self, confidence: float) -> str:
        """Return the verdict in words."""
        if self.minimized:
            return "gap minimized, no bound"
        return self.assessment.verdict(confidence)


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """The constraints of all models for a positive class.

    Parameters
    ----------
    collected : Collected
        Rows and outputs of the models.
    findings : dict of str to list of Finding
        The constraints, for each model.
    """

    collected: Collected
    findings: dict[str, list[Finding]]

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self.collected.outputs)


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a report shows, as numbers.

    Parameters
    ----------
    rows : Collected
        Rows and outputs of the models.
    classes : dict of str to ClassEvidence
        The evidence for each positive class by its name; a single one is called "".
    confidence : float
        The confidence level.
    findings : dict of str to list of Finding
        The constraints, for each model; of several classes for all of them together.
    overall : dict of str to dict of str to float
        The measures on all rows, for each model.
    costs : dict of str to Cost
        For all models but the first: the difference from the first.
    trained_here : list of str
        The models whose training rows these seem to be.
    frontier : list of FrontierPoint
        The models of the path; empty without one.
    frontier_gap : str
        The name of the gap of the frontier.
    proxies : dict of str to float
        The columns from each of which the group can be guessed; see
        :func:`~fairconstrained.inspection.proxies.proxies`.
    """

    rows: Collected
    classes: dict[str, ClassEvidence]
    confidence: float
    findings: dict[str, list[Finding]]
    overall: dict[str, dict[str, float]]
    costs: dict[str, Cost]
    trained_here: list[str]
    frontier: list[FrontierPoint]
    frontier_gap: str
    proxies: dict[str, float]

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self.rows.outputs)

    @property
    def several_classes(self) -> bool:
        """Whether the report is on all of several classes."""
        return len(self.classes) > 1

    def predictions(self, name: str) -> list[Predictions]:
        """Return labels and predictions of a model, for each class and grouping."""
        return [part for one in self.classes.values() for part in one.collected.predictions(name)]


def evidence_of(
    rows: Collected,
    positive: Sequence[object],
    X: MatrixLike | None,
    sensitive_features: MatrixLike | None,
    constraints: NamedConstraints | None,
    path: FairnessPath | None,
    confidence: float,
) -> Evidence:
    """Measure the constraints of all models on the collected rows.

    A model without constraints is measured by those of the last model that has some.

    Parameters
    ----------
    rows : Collected
        Rows and outputs.
    positive : sequence of label
        The class that the report is on, or all of several classes.
    X, sensitive_features
        The rows, as the models of the path receive them.
    constraints : list of (str, Constraint) or None
        The constraints of all models; None takes those that the models were trained with.
    path : FairnessPath or None
        The path of the frontier.
    confidence : float
        The confidence level.
    """
    several = len(positive) > 1
    models = {name: one.model for name, one in rows.outputs.items()}
    asked = _asked(models, constraints)
    classes = {
        str(label) if several else "": _of_class(rows, label, asked, confidence)
        for label in positive
    }
    findings = _together(classes, confidence) if several else classes[""].findings
    reference = next((found[0] for found in reversed(list(findings.values())) if found), None)
    points: list[FrontierPoint] = []
    if path is not None:
        constraint = None if reference is None else reference.constraint
        points = frontier_of(path, rows, positive, X, sensitive_features, constraint, confidence)
    measured, costs = _on_all_rows(rows, classes, confidence)
    hidden = set() if X is None else hidden_columns(list(models.values()))
    return Evidence(
        rows=rows,
        classes=classes,
        confidence=confidence,
        findings=findings,
        overall=measured,
        costs=costs,
        trained_here=[name for name in models if _trained_here(models[name], findings[name])],
        frontier=points,
        frontier_gap="demographic_parity" if reference is None else reference.assessment.name,
        proxies=proxies(X, rows.rows, rows.groups, hidden),
    )


def _of_class(
    rows: Collected,
    label: object,
    asked: Mapping[str, tuple[NamedConstraints, bool]],
    confidence: float,
) -> ClassEvidence:
    """Return the constraints of all models for a positive class."""
    collected = rows.of_class(label)
    found = {
        name: _findings(collected, output, *asked[name], confidence)
        for name, output in collected.outputs.items()
    }
    return ClassEvidence(collected, found)


def _on_all_rows(
    rows: Collected, classes: Mapping[str, ClassEvidence], confidence: float
) -> tuple[dict[str, dict[str, float]], dict[str, Cost]]:
    """Return the measures of every model on all rows, and the costs of all but the first."""
    first, *others = rows.outputs
    if rows.labels is None:
        others = []  # the cost is one of accuracy
    if len(classes) == 1:
        rows = next(iter(classes.values())).collected
    return (
        {name: overall(rows, output) for name, output in rows.outputs.items()},
        {name: cost_of(rows, first, name, confidence) for name in others},
    )


def _asked(
    models: Mapping[str, Any], constraints: NamedConstraints | None
) -> dict[str, tuple[NamedConstraints, bool]]:
    """Return the constraints of every model, and whether it was trained with them."""
    own = {name: constraints_of(final_estimator(one)) for name, one in models.items()}
    known = [found for found in own.values() if found]
    shared = constraints if constraints is not None else (known[-1] if known else [])
    return {
        name: (own[name], True) if own[name] and constraints is None else (shared, False)
        for name in models
    }


def _together(classes: Mapping[str, ClassEvidence], confidence: float) -> dict[str, list[Finding]]:
    """Return the constraints of every model on all classes together.

    The gap is the largest one. Its interval reaches from the largest lower to the largest upper
    limit of the classes, each with a Bonferroni correction for their number.
    """
    each = 1.0 - (1.0 - confidence) / len(classes)
    found: dict[str, list[Finding]] = {}
    for name in next(iter(classes.values())).names:
        by_constraint = zip(*(one.findings[name] for one in classes.values()), strict=True)
        found[name] = [
            _joint(dict(zip(classes, findings, strict=True)), name, classes, each)
            for findings in by_constraint
        ]
    return found


def _joint(
    findings: Mapping[str, Finding],
    model: str,
    classes: Mapping[str, ClassEvidence],
    confidence: float,
) -> Finding:
    """Return a constraint on all classes together, from that on each."""
    worst = max(findings, key=lambda name: _excess(findings[name].assessment))
    one = findings[worst]
    limits = []
    for name, finding in findings.items():
        collected = classes[name].collected
        rows = collected.assessed(collected.outputs[model])
        limits.append(interval_of(finding.constraint, rows, confidence))
    measured = [finding.assessment for finding in findings.values()]
    notes = dict.fromkeys(finding.note for finding in measured if finding.note)
    assessment = replace(
        one.assessment,
        on_scores=float(np.max([finding.on_scores for finding in measured])),
        low=float(np.max([limit.low for limit in limits])),
        high=float(np.max([limit.high for limit in limits])),
        worst=f"class {worst}: {one.assessment.worst}",
        note="; ".join(notes),
    )
    return replace(one, assessment=assessment, of_class=worst, n_classes=len(findings))


def _excess(one: Assessment) -> float:
    """Return the gap less its bound; what is not measured comes last."""
    return float(np.nan_to_num(one.on_predictions - one.tolerance, nan=-np.inf))


def _findings(
    collected: Collected,
    output: Outputs,
    constraints: NamedConstraints,
    own: bool,
    confidence: float,
) -> list[Finding]:
    """Return the constraints measured for one model."""
    rows = collected.assessed(output)
    minimized = own and minimizes_gap(final_estimator(output.model))
    has_surrogate = hasattr(final_estimator(output.model), "result_")
    label, others = str(collected.positive), [*collected.classes]
    others.remove(collected.positive)
    rest = str(others[0]) if len(others) == 1 else f"other than {label}"
    found = []
    for name, constraint in constraints:
        if collected.labels is None and constraint.rates_compared != ("selection_rate",):
            raise ValueError(
                f"y is None: without labels only constraints on selection rates can be measured, "
                f"and {name} is another one. Pass y."
            )
        constraint = constraint.naming(np.array([rest, label]))
        one = assess(name, constraint, rows, confidence, scores_known=has_surrogate)
        deciding = None
        if not np.isnan(one.on_predictions):
            deciding = deciding_cells(constraint, one.tolerance, rows.predictions())
        found.append(Finding(constraint, one, deciding, own, minimized))
    return found


def _trained_here(model: Any, findings: list[Finding]) -> bool:
    """Return whether the gaps of a model are those of its training rows to the last digits."""
    last: Any = final_estimator(model)
    measured = [one.assessment for one in findings if one.own]
    gaps = [one.on_scores for one in measured if not np.isnan(one.on_scores)]
    own = float(getattr(last, "gap_", np.nan))
    if not gaps or not abs(own) > 1e-12:  # also if it is nan
        return False
    same = any(np.isclose(gap, own, rtol=1e-9, atol=0.0) for gap in gaps)
    decided = [one.on_predictions for one in measured]
    return same and any(np.isclose(gap, last.decision_gap_, rtol=1e-9) for gap in decided)
