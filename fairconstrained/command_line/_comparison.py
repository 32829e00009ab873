"""The table of a comparison: accuracy, rates and gaps of models on several sets of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.utils.typing import Array

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
    decision_gap, probability_gap : float
        The constraint's gap, of the predictions and of the surrogate.
    seconds : float or None
        The time of the fit.
    """

    accuracy: float
    rates: list[float]
    decision_gap: float
    probability_gap: float
    seconds: float | None = None

    @classmethod
    def of(
        cls,
        scores: Array,
        y: Array,
        groups: Groups,
        constraint: Constraint,
        shown: Sequence[object],
        seconds: float | None = None,
    ) -> Figures:
        """Return the figures of scores.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores; the positive class is predicted where they are positive.
        y : ndarray of shape (n_rows,)
            The labels, 0 or 1.
        groups : Groups
            The groups.
        constraint : Constraint
            Its gaps are measured.
        shown : sequence of group
            The groups whose rates are shown; these rows may lack some.
        seconds : float or None, default=None
            The time of the fit.
        """
        term = constraint.bind(2.0 * y - 1.0, groups, np.ones(len(y)))
        positive = scores > 0
        rates = {
            name: float(positive[groups.codes == k].mean())
            for k, name in enumerate(groups.names.tolist())
        }
        return cls(
            accuracy=float((positive == (y == 1)).mean()),
            rates=[rates.get(one, np.nan) for one in shown],
            decision_gap=_largest(term.zero_one().gap(scores)),
            probability_gap=_largest(term.gap(scores)),
            seconds=seconds,
        )

    def cells(self) -> list[str]:
        """Return the figures as text."""
        numbers = [self.accuracy, *self.rates, self.decision_gap, self.probability_gap]
        seconds = "" if self.seconds is None else f"{self.seconds:.2f}"
        return ["-" if np.isnan(number) else f"{number:.3f}" for number in numbers] + [seconds]

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name; None stands for what could not be measured."""
        found = asdict(self)
        values = {name: _or_none(value) for name, value in found.items() if name != "rates"}
        return found | values | {"rates": [_or_none(rate) for rate in self.rates]}


def _largest(gaps: Array) -> float:
    """Return the largest gap, nan if nothing is compared."""
    return float(gaps.max()) if len(gaps) else np.nan


def _or_none(number: float | None) -> float | None:
    return None if number is None or np.isnan(number) else number


def table(found: Found, groups: Sequence[str]) -> str:
    """Return the figures as a table in plain text.

    Parameters
    ----------
    found : mapping
        From (model, rows) to figures.
    groups : sequence of str
        The names of the groups whose rates are shown.
    """
    above = ["", "", "", *["rate of"] * len(groups), "gap of", "gap of", ""]
    below = ["model", "rows", "accuracy", *groups, "predictions", "probabilities", "seconds"]
    lines = [above, below]
    lines += [[*where, *figures.cells()] for where, figures in found.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def align(cells: list[str]) -> str:
        words = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        return "  ".join(words + numbers).rstrip()

    return "\n".join(map(align, lines))
