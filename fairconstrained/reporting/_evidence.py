"""What a report is made of: constraints measured for every model, and points of a frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.inspection.assessment import (
    Assessment,
    Rows,
    assess,
    constraints_of,
    minimizes_gap,
)
from fairconstrained.inspection.collected import Collected, ModelOutput, output_of
from fairconstrained.inspection.cost import Cost, cost_of, overall
from fairconstrained.inspection.deciding import Deciding, deciding_cells
from fairconstrained.metrics.intervals import Interval, clopper_pearson
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.meta_estimators import final_estimator
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
    """

    constraint: Constraint
    assessment: Assessment
    deciding: Deciding | None
    own: bool
    minimized: bool

    def verdict(self, confidence: float) -> str:
        """Return the verdict in words."""
        if self.minimized:
            return "gap minimized, no bound"
        return self.assessment.verdict(confidence)


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """A model of a path, measured on the rows of a report.

    Parameters
    ----------
    kappa : float
        Its tolerance.
    gap : float
        The gap of its predictions.
    accuracy : Interval
        Its accuracy with the confidence interval.
    """

    kappa: float
    gap: float
    accuracy: Interval


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a report shows, as numbers.

    Parameters
    ----------
    collected : Collected
        Rows and outputs of the models.
    confidence : float
        The confidence level.
    findings : dict of str to list of Finding
        The constraints, for each model.
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
    """

    collected: Collected
    confidence: float
    findings: dict[str, list[Finding]]
    overall: dict[str, dict[str, float]]
    costs: dict[str, Cost]
    trained_here: list[str]
    frontier: list[FrontierPoint]
    frontier_gap: str

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self.collected.outputs)


def evidence_of(
    collected: Collected,
    X: MatrixLike,
    sensitive_features: Any,
    constraints: NamedConstraints | None,
    path: FairnessPath | None,
    confidence: float,
) -> Evidence:
    """Measure the constraints of all models on the collected rows.

    A model without constraints is measured by those of the last model that has some.

    Parameters
    ----------
    collected : Collected
        Rows and outputs.
    X, sensitive_features
        The rows, as the models of the path receive them.
    constraints : list of (str, Constraint) or None
        The constraints of all models; None takes those that the models were trained with.
    path : FairnessPath or None
        The path of the frontier.
    confidence : float
        The confidence level.
    """
    lasts = {name: final_estimator(one.estimator) for name, one in collected.outputs.items()}
    own = {name: constraints_of(last) for name, last in lasts.items()}
    known = [found for found in own.values() if found]
    shared = constraints if constraints is not None else (known[-1] if known else [])
    findings = {
        name: _findings(
            collected,
            output,
            own[name] if own[name] and constraints is None else shared,
            bool(own[name]) and constraints is None,
            confidence,
        )
        for name, output in collected.outputs.items()
    }
    first, *others = collected.outputs
    reference = next((found[0] for found in reversed(list(findings.values())) if found), None)
    points: list[FrontierPoint] = []
    if path is not None:
        constraint = None if reference is None else reference.constraint
        points = _frontier(path, collected, X, sensitive_features, constraint, confidence)
    return Evidence(
        collected=collected,
        confidence=confidence,
        findings=findings,
        overall={name: overall(collected, one) for name, one in collected.outputs.items()},
        costs={name: cost_of(collected, first, name, confidence) for name in others},
        trained_here=[name for name, last in lasts.items() if _trained_here(last, findings[name])],
        frontier=points,
        frontier_gap="demographic_parity" if reference is None else reference.assessment.name,
    )


def rows_of(collected: Collected, output: ModelOutput) -> Rows:
    """Return the rows on which constraints are measured, with the scores of a model."""
    labels = np.where(collected.labels, 1.0, -1.0)
    threshold = 0.0 if np.isnan(output.threshold) else output.threshold
    return Rows(labels, output.centred, collected.groups, collected.weight, threshold)


def _findings(
    collected: Collected,
    output: ModelOutput,
    constraints: NamedConstraints,
    own: bool,
    confidence: float,
) -> list[Finding]:
    """Return the constraints measured for one model."""
    rows = rows_of(collected, output)
    minimized = own and minimizes_gap(final_estimator(output.estimator))
    binary = len(collected.others) == 1
    has_surrogate = binary and hasattr(final_estimator(output.estimator), "result_")
    found = []
    for name, constraint in constraints:
        one = assess(name, constraint, rows, confidence, scores_known=has_surrogate)
        deciding = None
        if not np.isnan(one.on_predictions):
            deciding = deciding_cells(constraint, one.tolerance, rows.predictions())
        found.append(Finding(constraint, one, deciding, own, minimized))
    return found


def _trained_here(last: Any, findings: list[Finding]) -> bool:
    """Return whether the gaps of a model are those of its training rows to the last digits."""
    measured = [one.assessment for one in findings if one.own]
    gaps = [one.on_scores for one in measured if not np.isnan(one.on_scores)]
    own = float(getattr(last, "gap_", np.nan))
    if not gaps or not abs(own) > 1e-12:  # also if it is nan
        return False
    same = any(np.isclose(gap, own, rtol=1e-9, atol=0.0) for gap in gaps)
    decided = [one.on_predictions for one in measured]
    return same and any(np.isclose(gap, last.decision_gap_, rtol=1e-9) for gap in decided)


def _frontier(
    path: FairnessPath,
    collected: Collected,
    X: MatrixLike,
    sensitive_features: Any,
    constraint: Constraint | None,
    confidence: float,
) -> list[FrontierPoint]:
    """Return the models of a path, measured on the rows of the report."""
    if path.pipeline is not None and len(path.pipeline.steps) > 1:
        X = path.pipeline[:-1].transform(X)
    share = collected.weight / collected.weight.sum()
    size = np.array(1.0 / (share @ share))
    points = []
    for kappa, model in zip(path.kappas, path.estimators, strict=True):
        output = output_of(model, X, collected.positive, sensitive_features)
        output = output.take(collected.rows)
        gap = _gap(collected, output, constraint)
        correct = np.array(share @ (output.decided == collected.labels))
        accuracy = clopper_pearson(correct, size, confidence)
        points.append(FrontierPoint(float(kappa), gap, accuracy))
    return points


def _gap(collected: Collected, output: ModelOutput, constraint: Constraint | None) -> float:
    """Return the gap of a constraint; of the selection rates if there is none."""
    rows = rows_of(collected, output)
    if constraint is not None:
        return assess("", constraint, rows, 0.95, interval=False).on_predictions
    rates = [part.cells("selection_rate")[0] for part in rows.predictions()]
    return float(max(np.nanmax(one) - np.nanmin(one) for one in rates))
