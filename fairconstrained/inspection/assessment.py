"""Whether constraints hold on given rows: gaps of scores and of predictions, with intervals."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np

from fairconstrained.constraints import CONSTRAINTS, Constraint, resolve_constraints
from fairconstrained.constraints.losses import measured_from
from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.metrics.intervals import Interval, largest_gap, largest_shortfall
from fairconstrained.metrics.rates import Predictions
from fairconstrained.terms.base import Term
from fairconstrained.terms.class_scores import of_predictions
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

ALL_EQUAL = "all equal"
"""What tables show in place of the groups with the largest gap, where the gap is 0."""

NOT_MEASURED = "not measured"
"""The verdict on a constraint that cannot be measured on the given rows."""

_Part = tuple[Term, "AssessedRows"]
_UNKNOWN = Interval(np.array(np.nan), np.array(np.nan), np.array(np.nan))


@dataclass(frozen=True, eq=False)
class AssessedRows:
    """Rows with scores and groups on which constraints are assessed.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        The labels, -1 or +1.
    scores : ndarray of shape (n_rows,)
        The scores. A prediction is positive if its score is above 0.
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    threshold : float, default=0.0
        The threshold that the scores are measured from; losses are functions of their sum.
    log_odds : ndarray of shape (n_rows,) or None, default=None
        With several classes: the log odds of the positive class, which surrogates and constraints
        on rankings are functions of. Its predictions are those of `scores`.
    """

    y: Array
    scores: Array
    groups: Groups
    weight: Array
    threshold: float = 0.0
    log_odds: Array | None = None

    def take(self, rows: Array, groups: Groups) -> AssessedRows:
        """Return some rows, with their groups in the given ones."""
        return replace(
            self,
            y=self.y[rows],
            scores=self.scores[rows],
            groups=groups.take(rows),
            weight=self.weight[rows],
            log_odds=None if self.log_odds is None else self.log_odds[rows],
        )

    def scores_for(self, term: Term) -> Array:
        """Return the scores that a term is measured at."""
        if self.log_odds is None or of_predictions(term):
            return self.scores
        return self.log_odds

    @property
    def n_groups(self) -> int:
        """The number of groups with rows, of the attribute with most if they are marginal."""
        return max(np.unique(one.codes[one.codes >= 0]).size for one in self.groups.separate)

    def predictions(self) -> list[Predictions]:
        """Return labels and predictions, once for each grouping (marginal groups have several)."""
        return [
            Predictions(self.y > 0, self.scores > 0, groups, self.weight)
            for groups in self.groups.separate
        ]


@dataclass(frozen=True)
class Assessment:
    """The gaps of a constraint on given rows.

    Attributes
    ----------
    name : str
        The name of the constraint.
    tolerance : float
        The largest gap allowed.
    on_scores, on_predictions : float
        The gaps of the surrogate and of the predictions; nan if they cannot be measured.
    low, high : float
        The confidence interval of the gap of the predictions; nan if there is none.
    worst : str
        The groups with the largest gap; "all equal" if there is no gap.
    note : str
        The reason why values are missing, if any.
    """

    name: str
    tolerance: float
    on_scores: float
    on_predictions: float
    low: float
    high: float
    worst: str
    note: str = ""

    def verdict(self, confidence: float) -> str:
        """Return in words whether the predictions satisfy the constraint."""
        if np.isnan(self.on_predictions):
            return NOT_MEASURED
        level = f"{100.0 * confidence:g}% confidence"
        if at_most(self.high, self.tolerance):
            return f"holds ({level})"
        if not (np.isnan(self.low) or at_most(self.low, self.tolerance)):
            return f"does not hold ({level})"
        met = "met" if at_most(self.on_predictions, self.tolerance) else "not met"
        return f"{met} on these rows" + (
            "" if np.isnan(self.low) else f" (inconclusive at {100.0 * confidence:g}%)"
        )


def constraints_of(model: object) -> list[tuple[str, Constraint]]:
    """Return the names and the constraints of a classifier of this library, with tolerances.

    What a constraint chose on the training rows, for instance the minority, is given.
    """
    parameters = ("kappa", "surrogate", "loss")
    defaults = {name: getattr(model, name) for name in parameters if hasattr(model, name)}
    if minimizes_gap(model):
        defaults["kappa"] = 0.0
    found = resolve_constraints(getattr(model, "constraint", None), **defaults)
    chosen = chain(getattr(model, "constraint_choices_", ()), repeat({}))
    bound = [one.set_params(**own) for one, own in zip(found, chosen, strict=False)]
    return named(bound)


def named(constraints: Sequence[Constraint]) -> list[tuple[str, Constraint]]:
    """Return constraints with their names in tables; repeated names have numbers."""
    found: list[tuple[str, Constraint]] = []
    counts: Counter[str] = Counter()
    for one in constraints:
        name = name_of(one)
        counts[name] += 1
        found.append((f"{name} ({counts[name]})" if counts[name] > 1 else name, one))
    return found


def minimizes_gap(model: object) -> bool:
    """Return whether a classifier has goal="fairness": it minimizes the gap, without kappa."""
    return getattr(model, "goal", "accuracy") == "fairness"


def name_of(constraint: Constraint) -> str:
    """Return the name of a constraint in tables: its registered name, else that of its class."""
    names = [name for name, kind in CONSTRAINTS.items() if kind is type(constraint)]
    return names[0] if names else type(constraint).__name__


def assess(
    name: str,
    constraint: Constraint,
    rows: AssessedRows,
    confidence: float,
    *,
    scores_known: bool = True,
    interval: bool = True,
) -> Assessment:
    """Return the gaps of a constraint on given rows.

    Parameters
    ----------
    name : str
        The name of the constraint.
    constraint : Constraint
        The constraint, with its tolerance.
    rows : AssessedRows
        The rows.
    confidence : float
        The confidence level of the interval.
    scores_known : bool, default=True
        Whether the surrogate of the constraint can be applied to the scores. Else the gap on
        scores is nan.
    interval : bool, default=True
        Whether to compute the interval.

    Returns
    -------
    assessment : Assessment
        The gaps. They are nan, with a note, if the constraint cannot be measured on these rows.
    """
    parts: list[_Part] = []
    empty: list[str] = []
    note = constraint.bound_to_training_rows
    try:
        if not note:
            parts, empty = _parts(constraint, rows)
    except ValueError as error:  # for instance, a group that the constraint names has no rows here
        note = str(error)
    if not parts:
        return Assessment(name, np.nan, np.nan, np.nan, np.nan, np.nan, "", note)
    tolerance, on_scores, on_predictions, worst = _gaps(parts, scores_known)
    if np.isnan(on_predictions):
        note = " ".join(empty).removesuffix(".")
        if rows.n_groups < 2:
            note = "these rows are of a single group" if rows.n_groups else "no row has a group"
    if constraint.rates_compared and at_most(on_predictions, 0.0):
        worst = ALL_EQUAL
    limits = interval_of(constraint, rows, confidence) if interval else _UNKNOWN
    low, high = float(limits.low), float(limits.high)
    return Assessment(name, tolerance, on_scores, on_predictions, low, high, worst, note)


def _gaps(parts: list[_Part], scores_known: bool) -> tuple[float, float, float, str]:
    """Return the tolerance, the gaps on scores and of predictions, and the output with the latter.

    With several parts these are the values of the part with the largest gap of the predictions.
    """
    tolerance, on_scores, on_predictions, worst = np.nan, np.nan, np.nan, ""
    for term, rows in parts:
        zero_one = term.zero_one()
        if not zero_one.n_outputs:
            continue
        gaps, bounds = zero_one.gap(rows.scores_for(zero_one)), zero_one.gap_bounds
        j = int(np.argmax(gaps - bounds))
        if np.isnan(on_predictions) or gaps[j] > on_predictions:
            on_predictions, worst = float(gaps[j]), str(zero_one.names[j]).split(" <= ")[0]
            tolerance = float(bounds[j])
        if scores_known:
            on_scores = float(np.fmax(on_scores, _gap_on_scores(term, rows.scores_for(term))))
    return tolerance, on_scores, on_predictions, worst


def _gap_on_scores(term: Term, scores: Array) -> float:
    """Return the largest gap; variables of the term's own are those that suit the scores."""
    auxiliary = term.auxiliary_for(lambda variables: term.value(scores, variables))
    return float(term.gap(scores, auxiliary).max())


def _parts(constraint: Constraint, rows: AssessedRows) -> tuple[list[_Part], list[str]]:
    """Return the parts' terms, each with its rows, those of known groups, and what has no rows."""
    found = []
    with warnings.catch_warnings(record=True) as empty:  # tables show nan for cells without rows
        warnings.simplefilter("always", VacuousConstraintWarning)
        for groups in constraint.groups_of_parts(rows.groups):
            own = rows.take(np.flatnonzero(constraint.known_rows(groups)), groups)
            term = constraint.bind(own.y, own.groups, own.weight)
            found.append((measured_from(term, rows.threshold), own))
    return found, [str(warning.message) for warning in empty]


def interval_of(constraint: Constraint, rows: AssessedRows, confidence: float) -> Interval:
    """Return the interval of the gap of the predictions; nan if no method is known for it."""
    if not constraint.rates_compared:
        return _UNKNOWN
    cells = [one.cells(rate) for one in rows.predictions() for rate in constraint.rates_compared]
    largest = largest_shortfall if constraint.compares_ratios else largest_gap
    return largest(cells, confidence)
