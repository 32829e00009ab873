"""What a report is made of: constraints measured for every model, and the models of a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.inspection.assessment import (
    Assessment,
    assess,
    constraints_of,
    interval_of,
    minimizes_gap,
    named,
)
from fairconstrained.inspection.collected import Collected
from fairconstrained.inspection.cost import Cost, cost_of, overall
from fairconstrained.inspection.deciding import Deciding, deciding_cells
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.inspection.proxies import hidden_columns, proxies
from fairconstrained.metrics.intervals import Interval, weighted_share
from fairconstrained.metrics.rates import Predictions
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.meta_estimators import final_estimator, last_step
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import MatrixLike

NamedConstraints = list[tuple[str, Constraint]]
Constraints = str | Constraint | Sequence[str | Constraint] | None


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
        """The state of the verdict: see :class:`~fairconstrained.reporting._tables.Verdict`."""
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
    proxies : dict of str to float
        The columns from each of which the group can be guessed; see
        :func:`~fairconstrained.inspection.proxies.proxies`.
    """

    rows: Collected
    classes: dict[str, ClassEvidence]
    confidence: float
    findings: dict[str, list[Finding]]
    proxies: dict[str, float]

    @classmethod
    def of(
        cls,
        rows: Collected,
        confidence: float,
        constraint: Constraints,
        pos_label: object,
        X: MatrixLike | None = None,
    ) -> Evidence:
        """Measure constraints of all models on collected rows, for a class or all of several.

        A model without constraints is measured by those of the last model that has some.
        """
        several = len(rows.classes) > 2 and pos_label is None
        models = {name: one.model for name, one in rows.outputs.items()}
        asked, classes = _asked(models, constraint), {}
        for label in rows.classes if several else [rows.favourable(pos_label)]:
            collected = rows.of_class(label)
            findings = {
                name: _findings(collected, output, *asked[name], confidence)
                for name, output in collected.outputs.items()
            }
            classes[str(label) if several else ""] = ClassEvidence(collected, findings)
        findings = _together(classes, confidence) if several else classes[""].findings
        hidden = set() if X is None else hidden_columns(list(models.values()))
        columns = proxies(X, rows.rows, rows.groups, hidden)
        return cls(rows, classes, confidence, findings, columns)

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

    @property
    def _all_rows(self) -> Collected:
        return self.rows if self.several_classes else self.classes[""].collected

    @cached_property
    def overall(self) -> dict[str, dict[str, float]]:
        """The measures on all rows, for each model."""
        rows = self._all_rows
        return {name: overall(rows, output) for name, output in rows.outputs.items()}

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """For all models but the first: the difference from the first; none without labels."""
        first, *others = self.names if self.rows.labels is not None else self.names[:1]
        return {name: cost_of(self._all_rows, first, name, self.confidence) for name in others}

    @property
    def reference(self) -> Finding | None:
        """The first constraint of the last model that has any: its gap is that of the frontier."""
        return next((one[0] for one in reversed(list(self.findings.values())) if one), None)

    def trained_here(self, name: str) -> bool:
        """Return whether the gaps of a model are those of its training rows to the last digits."""
        last: Any = final_estimator(self.rows.outputs[name].model)
        measured = [one.assessment for one in self.findings[name] if one.own]
        gap = float(getattr(last, "gap_", np.nan))
        if not abs(gap) > 1e-12:  # also if it is nan
            return False
        same = any(np.isclose(one.on_scores, gap, rtol=1e-9, atol=0.0) for one in measured)
        return same and any(
            np.isclose(one.on_predictions, last.decision_gap_, rtol=1e-9) for one in measured
        )


def frontier_of(
    evidence: Evidence,
    path: FairnessPath | None,
    X: MatrixLike | None,
    sensitive_features: MatrixLike | None,
) -> pd.DataFrame:
    """Return the models of a path, measured on the rows; empty without a path."""
    table = pd.DataFrame(columns=["kappa", "gap", "accuracy", "low", "high"], dtype=float)
    if path is None:
        return table
    rows = evidence.rows
    if rows.labels is None:
        raise ValueError("y is None: the frontier of a path is one of accuracy and gap. Pass y.")
    if path.pipeline is not None:
        _, X = last_step(path.pipeline, X)
    for k, (kappa, model) in enumerate(zip(path.kappas, path.estimators, strict=True)):
        output = Outputs.of(model, X, sensitive_features).take(rows.rows)
        here = replace(rows, outputs={"": output})
        gaps = [
            _gap(here.of_class(one.collected.positive), evidence.reference)
            for one in evidence.classes.values()
        ]
        right = np.asarray(output.labels == rows.labels)
        accuracy = weighted_share(right, rows.weight, evidence.confidence)
        table.loc[k] = [kappa, max(gaps), *map(float, accuracy)]
    return table


def _gap(collected: Collected, reference: Finding | None) -> float:
    """Return the gap of a constraint for a single model; of the selection rates without one."""
    rows = collected.assessed(collected.outputs[""])
    if reference is None:
        return widest_gap(rows.predictions())
    return assess("", reference.constraint, rows, 0.95, interval=False).on_predictions


def widest_gap(parts: Sequence[Predictions]) -> float:
    """Return the largest difference of selection rates between two groups, of any grouping."""
    rates = [part.cells("selection_rate")[0] for part in parts]
    return float(max(np.nanmax(one) - np.nanmin(one) for one in rates))


def _asked(
    models: Mapping[str, Any], constraint: Constraints
) -> dict[str, tuple[NamedConstraints, bool]]:
    """Return the constraints of every model, and whether it was trained with them."""
    if constraint is not None:
        defaults = {"kappa": 0.05, "surrogate": "sigmoid", "loss": "logistic"}
        given = named(resolve_constraints(constraint, **defaults))
        return dict.fromkeys(models, (given, False))
    trained = {name: constraints_of(final_estimator(one)) for name, one in models.items()}
    shared = next((each for each in reversed(list(trained.values())) if each), [])
    return {name: (each or shared, bool(each)) for name, each in trained.items()}


def _together(classes: Mapping[str, ClassEvidence], confidence: float) -> dict[str, list[Finding]]:
    """Return the constraints of every model on all classes together.

    The gap is the largest one. Its interval reaches from the largest lower to the largest upper
    limit of the classes, each with a Bonferroni correction for their number.
    """
    each = 1.0 - (1.0 - confidence) / len(classes)
    joint: dict[str, list[Finding]] = {}
    for name in next(iter(classes.values())).names:
        rows = [one.collected.assessed(one.collected.outputs[name]) for one in classes.values()]
        joint[name] = []
        for findings in zip(*(one.findings[name] for one in classes.values()), strict=True):
            parts = zip(findings, rows, strict=True)
            limits = [interval_of(one.constraint, part, each) for one, part in parts]
            joint[name].append(_joint(dict(zip(classes, findings, strict=True)), limits))
    return joint


def _joint(findings: Mapping[str, Finding], limits: Sequence[Interval]) -> Finding:
    """Return a constraint on all classes together, from that on each."""
    measured = {label: one.assessment for label, one in findings.items()}
    excess = {label: one.on_predictions - one.tolerance for label, one in measured.items()}
    worst = max(excess, key=lambda label: np.nan_to_num(excess[label], nan=-np.inf))
    assessment = replace(
        measured[worst],
        on_scores=float(np.max([one.on_scores for one in measured.values()])),
        low=float(np.max([limit.low for limit in limits])),
        high=float(np.max([limit.high for limit in limits])),
        worst=f"class {worst}: {measured[worst].worst}",
        note="; ".join(dict.fromkeys(one.note for one in measured.values() if one.note)),
    )
    return replace(findings[worst], assessment=assessment, of_class=worst, n_classes=len(findings))


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
