"""The table of a comparison: accuracy, rates and gaps of models on several sets of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.inspection.assessment import AssessedRows, assess
from fairconstrained.reporting.text_tables import aligned

NOT_MET = 3
"""The exit status of ``--check`` where the bound is not met; errors have 1 and 2."""

Found = Mapping[tuple[str, str], "Figures"]


@dataclass(frozen=True)
class Figures:
    """Accuracy, rates and gaps of a model on some rows: one line of the table.

    Numbers are nan where there are no rows that they could be measured on.

    Attributes
    ----------
    accuracy : float
        The share of correct predictions.
    rates : list of float
        The share of positive predictions in every group that is shown.
    decision_gap, score_gap : float
        The constraint's gap, of the predictions and on scores.
    note : str
        Why a gap is not measured.
    seconds : float or None
        The time of the fit.
    """

    accuracy: float
    rates: list[float]
    decision_gap: float
    score_gap: float
    note: str
    seconds: float | None = None

    @classmethod
    def of(
        cls,
        rows: AssessedRows,
        constraint: Constraint,
        shown: Sequence[object],
        seconds: float | None = None,
    ) -> Figures:
        """Return the figures of scores.

        Parameters
        ----------
        rows : AssessedRows
            The rows with their scores.
        constraint : Constraint
            Its gaps are measured.
        shown : sequence of group
            The groups whose rates are shown; these rows may lack some.
        seconds : float or None, default=None
            The time of the fit.
        """
        positive = rows.scores > 0
        rates = {
            name: float(positive[rows.groups.codes == k].mean())
            for k, name in enumerate(rows.groups.labels)
        }
        gaps = assess("", constraint, rows, 0.95, interval=False)
        return cls(
            accuracy=float((positive == (rows.y > 0)).mean()),
            rates=[rates.get(one, np.nan) for one in shown],
            decision_gap=gaps.on_predictions,
            score_gap=gaps.on_scores,
            note=gaps.note,
            seconds=seconds,
        )

    def cells(self) -> list[str]:
        """Return the figures as text."""
        numbers = [self.accuracy, *self.rates, self.decision_gap, self.score_gap]
        seconds = "" if self.seconds is None else f"{self.seconds:.2f}"
        return ["-" if np.isnan(number) else f"{number:.3f}" for number in numbers] + [seconds]

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name; None stands for what could not be measured."""
        rates = [_or_none(rate) for rate in self.rates]
        found = {name: _or_none(value) for name, value in asdict(self).items() if name != "rates"}
        return found | {"rates": rates}


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def unit(constraint: Constraint) -> str:
    """Return what the gaps of a constraint are."""
    return (
        f"Its gap: {constraint.gap_title}; on scores, with {constraint.scores_title} in "
        "place of predictions."
    )


def verdict(model: FairLogisticClassifier) -> str:
    """Return whether a fitted model meets the bound that was asked for."""
    bounded = "predictions" if model.enforce == "decision" else "scores"
    return f"{model.result_.bound.capitalize()}, for {bounded} on the training rows."


def exit_status(model: FairLogisticClassifier, check: bool) -> int:
    """Return 3 if a fitted model does not meet the bound and this is to be checked, else 0."""
    return NOT_MET if check and not model.bound_met_ else 0


def table(found: Found, groups: Sequence[str]) -> str:
    """Return the figures as a table in plain text.

    Parameters
    ----------
    found : mapping
        From (model, rows) to figures.
    groups : sequence of str
        The names of the groups whose rates are shown.
    """
    above = ["", "", "", *["selected"] * len(groups), "gap of", "gap on", ""]
    below = ["model", "rows", "accuracy", *groups, "predictions", "scores", "seconds"]
    lines = [above, below]
    lines += [[*where, *figures.cells()] for where, figures in found.items()]
    return "\n".join(aligned(lines, n_left=2))
