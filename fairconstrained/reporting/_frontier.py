"""The frontier of a report: the models of a path with accuracy and gap on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.inspection.assessment import assess
from fairconstrained.inspection.collected import Collected
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import Interval, clopper_pearson
from fairconstrained.metrics.rates import Predictions
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.utils.meta_estimators import last_step
from fairconstrained.utils.typing import MatrixLike


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


def frontier_of(
    path: FairnessPath,
    rows: Collected,
    positive: Sequence[object],
    X: MatrixLike | None,
    sensitive_features: MatrixLike | None,
    constraint: Constraint | None,
    confidence: float,
) -> list[FrontierPoint]:
    """Return the models of a path, measured on the rows of the report."""
    if rows.labels is None:
        raise ValueError("y is None: the frontier of a path is one of accuracy and gap. Pass y.")
    if path.pipeline is not None:
        _, X = last_step(path.pipeline, X)
    share = rows.weight / rows.weight.sum()
    size = np.array(1.0 / (share @ share))
    points = []
    for kappa, model in zip(path.kappas, path.estimators, strict=True):
        output = Outputs.of(model, X, sensitive_features).take(rows.rows)
        here = replace(rows, outputs={"": output})
        gap = max(_gap(here.of_class(label), constraint) for label in positive)
        correct = np.array(share @ (output.labels == rows.labels))
        accuracy = clopper_pearson(correct, size, confidence)
        points.append(FrontierPoint(float(kappa), gap, accuracy))
    return points


def _gap(collected: Collected, constraint: Constraint | None) -> float:
    """Return the gap of a constraint for a single model; of the selection rates without one."""
    rows = collected.assessed(collected.outputs[""])
    if constraint is not None:
        return assess("", constraint, rows, 0.95, interval=False).on_predictions
    return widest_gap(rows.predictions())


def widest_gap(parts: Sequence[Predictions]) -> float:
    """Return the largest difference of selection rates between two groups, of any grouping."""
    rates = [part.cells("selection_rate")[0] for part in parts]
    return float(max(np.nanmax(one) - np.nanmin(one) for one in rates))
