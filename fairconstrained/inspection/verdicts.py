"""Whether constraints hold on rows: the gaps that scores and decisions show there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.constraints.parity import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    PredictiveEquality,
)
from fairconstrained.constraints.rates import DisparateImpact, ErrorRateParity
from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.metrics.intervals import Interval, largest_gap, largest_shortfall
from fairconstrained.metrics.rates import Decisions
from fairconstrained.terms.base import Term
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array

# What the decisions' gap of a constraint is a difference (or ratio) of: these have intervals.
MEASURED: Mapping[type[Constraint], tuple[str, ...]] = {
    DemographicParity: ("selection_rate",),
    DisparateImpact: ("selection_rate",),
    EqualOpportunity: ("true_positive_rate",),
    PredictiveEquality: ("false_positive_rate",),
    EqualizedOdds: ("true_positive_rate", "false_positive_rate"),
    ErrorRateParity: ("error_rate",),
}
_UNKNOWN = Interval(np.array(np.nan), np.array(np.nan), np.array(np.nan))
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that constraints are looked at on.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        The labels, -1 or +1.
    scores : ndarray of shape (n_rows,)
        The scores, decisions being positive above 0.
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    """

    y: Array
    scores: Array
    groups: Groups
    weight: Array

    def decisions(self) -> list[Decisions]:
        """Return labels and decisions, for every grouping that constraints are bound to."""
        return [
            Decisions(self.y > 0, self.scores > 0, groups, self.weight)
            for groups in self.groups.separate
        ]


@dataclass(frozen=True)
class Verdict:
    """What a constraint's gap is on some rows.

    Attributes
    ----------
    name : str
        The constraint.
    tolerance : float
        What the gap is to be at most.
    on_scores, on_decisions : float
        The gaps, with the surrogate and with the indicator; nan where they cannot be said.
    low, high : float
        The interval of the decisions' gap; nan without one.
    worst : str
        Which groups are compared where it is largest.
    note : str
        Why something is missing.
    """

    name: str
    tolerance: float
    on_scores: float
    on_decisions: float
    low: float
    high: float
    worst: str
    note: str = ""

    def words(self, confidence: float) -> str:
        """Return whether the decisions meet the constraint, and how sure that is."""
        if np.isnan(self.on_decisions):
            return "not measured"
        sure = f"{100.0 * confidence:g}% confidence"
        if self.high <= self.tolerance + _ROUNDING:
            return f"holds ({sure})"
        if self.low > self.tolerance + _ROUNDING:
            return f"does not hold ({sure})"
        met = "met" if self.on_decisions <= self.tolerance + _ROUNDING else "not met"
        return f"{met} on these rows" + ("" if np.isnan(self.low) else ", not certain either way")


def constraints_of(model: Any) -> list[tuple[str, Constraint]]:
    """Return the constraints of a classifier of ours with their names, defaults filled in."""
    given = getattr(model, "constraint", None)
    if given is None:
        return []
    names = ("kappa", "surrogate", "loss")
    defaults = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if smallest_gap(model):
        defaults["kappa"] = 0.0
    found = []
    for one in given if isinstance(given, list | tuple) else [given]:
        constraint = resolve("constraint", one, CONSTRAINTS, Constraint)
        found.append((_name_of(constraint), constraint.with_defaults(**defaults)))
    return found


def smallest_gap(model: Any) -> bool:
    """Return whether a classifier of ours was to have the least gap, and not one below kappa."""
    return getattr(model, "goal", "accuracy") == "fairness"


def _name_of(constraint: Constraint) -> str:
    names = [name for name, kind in CONSTRAINTS.items() if kind is type(constraint)]
    return names[0] if names else type(constraint).__name__


def judge(name: str, constraint: Constraint, rows: Rows, confidence: float) -> Verdict:
    """Return what a constraint's gap is on some rows.

    Parameters
    ----------
    name : str
        What it is called.
    constraint : Constraint
        With its tolerance.
    rows : Rows
        The rows.
    confidence : float
        Of the interval.
    """
    note = _cannot_be_bound(constraint)
    try:
        terms = [] if note else _terms(constraint, rows)
    except ValueError as error:  # for instance a group that it names has no rows here
        terms, note = [], str(error)
    if not terms:
        return Verdict(name, np.nan, np.nan, np.nan, np.nan, np.nan, "", note)
    on_scores, on_decisions, tolerance, worst = np.nan, np.nan, np.nan, ""
    for term in terms:
        strict = term.zero_one()
        if not strict.n_outputs:
            continue
        gaps, values = strict.gap(rows.scores), strict.value(rows.scores)
        ratio = getattr(constraint, "ratio", None)
        j = int(np.argmax(values if ratio is None else gaps))
        if not gaps[j] <= on_decisions:  # also the first one, as nothing compares with nan
            on_decisions, worst = float(gaps[j]), str(strict.names[j]).split(" <= ")[0]
            tolerance = float(gaps[j] - values[j]) if ratio is None else 1.0 - ratio
        if not term.n_auxiliary:
            on_scores = float(np.fmax(on_scores, term.gap(rows.scores).max()))
    interval = _interval(constraint, rows, confidence)
    return Verdict(
        name, tolerance, on_scores, on_decisions, float(interval.low), float(interval.high), worst
    )


def _terms(constraint: Constraint, rows: Rows) -> list[Term]:
    with warnings.catch_warnings():  # cells without rows have a rate of nan in the tables
        warnings.simplefilter("ignore", VacuousConstraintWarning)
        return [constraint.bind(rows.y, one, rows.weight) for one in rows.groups.separate]


def _cannot_be_bound(constraint: Constraint) -> str:
    """Return why a constraint says nothing about other rows than those it was fitted on."""
    if isinstance(getattr(constraint, "ranks", None), str):
        return "the range of ranks was chosen by the rows of fit (ranks='auto')"
    if getattr(constraint, "thresholds", ()) is None:
        return "its thresholds were chosen by the rows of fit"
    if getattr(constraint, "reference", None) is not None:
        return "it is about its own reference rows"
    return ""


def _interval(constraint: Constraint, rows: Rows, confidence: float) -> Interval:
    """Return the interval of the decisions' gap, unknown where there is no rule for it."""
    rates = MEASURED.get(type(constraint))
    if rates is None or getattr(constraint, "against", "pairs") != "pairs":
        return _UNKNOWN
    cells = [one.cells(rate) for one in rows.decisions() for rate in rates]
    ratio = getattr(constraint, "ratio", None) is not None
    return (largest_shortfall if ratio else largest_gap)(cells, confidence)
