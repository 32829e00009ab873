"""What a report is made of: constraints measured for every model, and the models of a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.constraints import Constraint, resolve_constraints
from fairconstrained.inspection.assessment import (
    Finding,
    assess,
    constraints_of,
    interval_of,
    minimizes_gap,
    named,
)
from fairconstrained.inspection.collected import Collected, Cost, cost_of, overall
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.inspection.proxies import hidden_columns, proxies
from fairconstrained.metrics.impact import ComparedRows
from fairconstrained.metrics.intervals import Interval, weighted_share
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.meta_estimators import final_estimator, last_step, provenance
from fairconstrained.utils.typing import MatrixLike

NamedConstraints = list[tuple[str, Constraint]]
Constraints = str | Constraint | Sequence[str | Constraint] | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a report shows, as numbers, for a positive class or for all of several."""

    rows: Collected  # rows and outputs of the models
    # the constraints, for each model; of several classes for all of them together
    findings: dict[str, list[Finding]]
    # the groups with those that they are compared with, and the confidence level
    compared: ComparedRows
    # of several classes, the evidence for each
    of_classes: dict[str, Evidence] = field(default_factory=dict)
    # the columns from each of which the group can be guessed; see
    # `proxies`
    proxies: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Collected,
        compared: ComparedRows,
        constraint: Constraints,
        pos_label: object,
        X: MatrixLike | None = None,
    ) -> Evidence:
        """Measure constraints of all models on collected rows, for a class or all of several.

        A model without constraints is measured by those of the last model that has some.
        """
        models = {name: output.model for name, output in rows.outputs.items()}
        asked, hidden = _asked(models, constraint), set[str]()
        if X is not None:
            hidden = hidden_columns(list(models.values()))
        columns = proxies(X, rows.rows, rows.groups, hidden)
        if len(rows.classes) > 2 and pos_label is None:
            parts = {
                str(label): cls._of_class(rows.of_class(label), compared, asked)
                for label in rows.classes
            }
            return cls(rows, _together(parts, compared.confidence), compared, parts, columns)
        rows = rows.against_rest(pos_label)
        return replace(cls._of_class(rows, compared, asked), proxies=columns)

    @classmethod
    def _of_class(
        cls,
        rows: Collected,
        compared: ComparedRows,
        asked: Mapping[str, tuple[NamedConstraints, bool]],
    ) -> Evidence:
        """Return the evidence for the positive class of rows."""
        findings = {
            name: _findings(rows, output, *asked[name], compared.confidence)
            for name, output in rows.outputs.items()
        }
        return cls(rows, findings, compared)

    @property
    def confidence(self) -> float:
        """The confidence level."""
        return self.compared.confidence

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self.rows.outputs)

    @property
    def several_classes(self) -> bool:
        """Whether the report is on all of several classes."""
        return bool(self.of_classes)

    @property
    def classes(self) -> dict[str, Evidence]:
        """The evidence for each positive class by its name; a single one is called ""."""
        return self.of_classes or {"": self}

    @cached_property
    def overall(self) -> dict[str, dict[str, float]]:
        """The measures on all rows, for each model."""
        return {name: overall(self.rows, output) for name, output in self.rows.outputs.items()}

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """For all models but the first: the difference from the first; none without labels."""
        first, *others = self.names if self.rows.labels is not None else self.names[:1]
        return {name: cost_of(self.rows, first, name, self.confidence) for name in others}

    @property
    def reference(self) -> Finding | None:
        """The first constraint of the last model that has any: its gap is that of the frontier."""
        return next((some[0] for some in reversed(list(self.findings.values())) if some), None)

    def gap(self, output: Outputs, constraint: Constraint | None) -> float:
        """Return the largest gap of a constraint, of selection rates if None, over all classes."""
        gaps = []
        for part in self.classes.values():
            rows = part.rows.assessed(output.of_class(part.rows.positive))
            if constraint is not None:
                gaps.append(assess("", constraint, rows, self.confidence).on_predictions)
                continue
            rates = [groups.cells("selection_rate")[0] for groups in rows.predictions()]
            gaps += [np.nanmax(each) - np.nanmin(each) for each in rates]
        return float(max(gaps))

    def origin(self, X: MatrixLike | None) -> dict[str, str]:
        """Return where the models and the rows come from."""
        rows = self.rows
        strata = rows.groups.attributes[0].columns if rows.groups.stratified else ()
        groups = [
            np.append(part.names, "unknown")[part.codes] for part in (*rows.groups.columns, *strata)
        ]
        models = {name: output.model for name, output in rows.outputs.items()}
        predicted = [output.labels for output in rows.outputs.values()]
        seen = not self.several_classes and any(map(self.trained_here, self.names))
        return provenance(
            models, X, rows.labels, *groups, rows.weight, *predicted,
            rows=len(rows.weight), held_out="no, training rows" if seen else "not known",
        )  # fmt: skip

    def trained_here(self, name: str) -> bool:
        """Return whether the gaps of a model are those of its training rows to the last digits."""
        last: Any = final_estimator(self.rows.outputs[name].model)
        trained = [finding for finding in self.findings[name] if finding.trained]
        if not abs(gap := float(getattr(last, "gap_", np.nan))) > 1e-12:  # also if it is nan
            return False
        pairs = {"on_scores": gap, "on_predictions": last.decision_gap_}
        return all(
            any(np.isclose(getattr(each, key), value, rtol=1e-9, atol=0.0) for each in trained)
            for key, value in pairs.items()
        )


def frontier_of(
    evidence: Evidence,
    path: FairnessPath | None,
    X: MatrixLike | None,
    sensitive_features: MatrixLike | None,
) -> pd.DataFrame:
    """Return the models of a path, measured on the rows; empty without a path."""
    lines: list[list[float]] = []
    if path is not None:
        rows, reference = evidence.rows, evidence.reference
        constraint = None if reference is None else reference.constraint
        if rows.labels is None:
            raise ValueError(
                "y is None: the frontier of a path is one of accuracy and gap. Pass y."
            )
        if path.pipeline is not None:
            _, X = last_step(path.pipeline, X)
        for kappa, model in zip(path.kappas, path.estimators, strict=True):
            output = Outputs.of(model, X, sensitive_features).take(rows.rows)
            accuracy = weighted_share(rows.right(output), rows.weight, evidence.confidence)
            lines.append([kappa, evidence.gap(output, constraint), *map(float, accuracy)])
    return pd.DataFrame(lines, columns=["kappa", "gap", "accuracy", "low", "high"], dtype=float)


def _asked(
    models: Mapping[str, Any], constraint: Constraints
) -> dict[str, tuple[NamedConstraints, bool]]:
    """Return the constraints of every model, and whether it was trained with them."""
    if constraint is not None:
        defaults = {"kappa": 0.05, "surrogate": "sigmoid", "loss": "logistic"}
        given = named(resolve_constraints(constraint, **defaults))
        return dict.fromkeys(models, (given, False))
    trained = {name: constraints_of(final_estimator(model)) for name, model in models.items()}
    shared = next((each for each in reversed(list(trained.values())) if each), [])
    return {name: (each or shared, bool(each)) for name, each in trained.items()}


def _findings(
    collected: Collected,
    output: Outputs,
    constraints: NamedConstraints,
    trained: bool,
    confidence: float,
) -> list[Finding]:
    """Return the constraints measured for one model."""
    rows, last = collected.assessed(output), final_estimator(output.model)
    label, others = str(collected.positive), [*collected.classes]
    others.remove(collected.positive)
    names = np.array([str(others[0]) if len(others) == 1 else f"other than {label}", label])
    minimized = trained and minimizes_gap(last)
    findings = []
    for name, constraint in constraints:
        if collected.labels is None and constraint.rates_compared != ("selection_rate",):
            raise ValueError(
                f"y is None: without labels only constraints on selection rates can be measured, "
                f"and {name} is another one. Pass y."
            )
        scores = hasattr(last, "result_")
        finding = assess(name, constraint.naming(names), rows, confidence, scores_known=scores)
        findings.append(replace(finding, trained=trained, minimized=minimized))
    return findings


def _together(classes: Mapping[str, Evidence], confidence: float) -> dict[str, list[Finding]]:
    """Return the constraints of every model on all classes together.

    The gap is the largest one. Its interval reaches from the largest lower to the largest upper
    limit of the classes, each with a Bonferroni correction for their number.
    """
    each = 1.0 - (1.0 - confidence) / len(classes)
    joint: dict[str, list[Finding]] = {}
    for name in next(iter(classes.values())).names:
        rows = [part.rows.assessed(part.rows.outputs[name]) for part in classes.values()]
        joint[name] = []
        for findings in zip(*(part.findings[name] for part in classes.values()), strict=True):
            pairs = zip(findings, rows, strict=True)
            limits = [interval_of(finding.constraint, part, each) for finding, part in pairs]
            joint[name].append(_joint(dict(zip(classes, findings, strict=True)), limits))
    return joint


def _joint(findings: Mapping[str, Finding], limits: Sequence[Interval]) -> Finding:
    """Return a constraint on all classes together, from that on each."""
    excess = {label: each.on_predictions - each.tolerance for label, each in findings.items()}
    label = max(excess, key=lambda label: np.nan_to_num(excess[label], nan=-np.inf))
    return replace(
        findings[label],
        on_scores=float(np.max([finding.on_scores for finding in findings.values()])),
        low=float(np.max([limit.low for limit in limits])),
        high=float(np.max([limit.high for limit in limits])),
        worst=f"class {label}: {findings[label].worst}",
        note="; ".join(dict.fromkeys(each.note for each in findings.values() if each.note)),
        of_class=label,
        n_classes=len(findings),
    )
