"""Whether constraints hold on given rows: gaps of scores and of predictions, with intervals."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, cast

import numpy as np

from fairconstrained.constraints import CONSTRAINTS, Constraint, resolve_constraints
from fairconstrained.constraints.losses import measured_from
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.metrics.inputs import GroupedRows, group_labels
from fairconstrained.metrics.intervals import Interval, largest_gap, largest_shortfall
from fairconstrained.metrics.rates import Predictions
from fairconstrained.terms.base import Term
from fairconstrained.terms.class_scores import of_predictions
from fairconstrained.utils.numerics import at_most
from fairconstrained.utils.typing import Array

ALL_EQUAL = "all equal"
"""What tables show in place of the groups with the largest gap, where the gap is 0."""

_Part = tuple[Term, Array]  # a term, and its rows: those of known groups
_UNKNOWN = Interval(np.array(np.nan), np.array(np.nan), np.array(np.nan))


@dataclass(frozen=True, eq=False)
class AssessedRows(GroupedRows):
    """Rows on which constraints are assessed: labels -1 or +1, and scores.

    A prediction is positive if its score is above 0.

    Parameters
    ----------
    threshold : float, default=0.0
        The threshold that the scores are measured from; losses are functions of their sum.
    log_odds : ndarray of shape (n_rows,) or None, default=None
        With several classes: the log odds of the positive class, which surrogates and constraints
        on rankings are functions of. Its predictions are those of `values`.
    classes : sequence of two labels, default=(-1, 1)
        What the labels were called.
    passed : tuple or None, default=None
        X as it was passed, and the positions of these rows in it, for constraints on the
        predictions of another model.
    """

    threshold: float = 0.0
    log_odds: Array | None = None
    classes: Sequence[Any] = (-1, 1)
    passed: tuple[Any, Array] | None = None

    @property
    def data(self) -> TrainingData:
        """The rows as constraints know them."""
        X, positions = self.passed or (None, None)
        classes = np.asarray(self.classes)
        rows = TrainingData(None, self.labels, classes, self.groups, self.weight)
        return replace(rows, passed=X, positions=positions)

    def scores_for(self, term: Term) -> Array:
        """Return the scores that a term is measured at."""
        if self.log_odds is None or of_predictions(term):
            return self.values
        return self.log_odds

    def predictions(self) -> list[Predictions]:
        """Return labels and predictions, once for each grouping (marginal groups have several)."""
        return Predictions(self.labels > 0, self.values > 0, self.groups, self.weight).separate


@dataclass(frozen=True)
class Cell:
    """A rate of a group and the rows that it is computed from.

    Parameters
    ----------
    group : str
        The group.
    rate : float
        The rate.
    n_rows : int
        The number of rows in the denominator.
    n_counted : int
        The number of rows in the numerator.
    effective_rows : float
        The effective sample size (Kish): that many rows of equal weight have a rate of the same
        variance. It is `n_rows` if the weights are equal.
    """

    group: str
    rate: float
    n_rows: int
    n_counted: int
    effective_rows: float

    @property
    def weighted(self) -> bool:
        """Whether the weights of the rows differ."""
        return not np.isclose(self.effective_rows, self.n_rows, rtol=1e-9, atol=0.0)


@dataclass(frozen=True)
class Deciding:
    """The two cells with the largest gap of a constraint, and the smallest cell that it compares.

    Parameters
    ----------
    rate : str
        The name of the rate, a key of `RATES`.
    highest, lowest : Cell
        The groups with the highest and with the lowest rate.
    smallest : Cell
        The cell with the smallest effective sample size among all that the constraint compares.
    smallest_rate : str
        The rate of the smallest cell.
    changes : int
        How many predictions of the group with the lowest rate, or of the one with the highest,
        would at least have to change for the bound to be met by them; 0 if it is met, None if
        weights differ.
    """

    rate: str
    highest: Cell
    lowest: Cell
    smallest: Cell
    smallest_rate: str
    changes: int | None


def deciding_cells(
    constraint: Constraint, tolerance: float, parts: Sequence[Predictions]
) -> Deciding | None:
    """Return the cells that decide a constraint on rates; None for other constraints."""
    ratios = constraint.compares_ratios
    compared = [
        (_gap(cells, ratios), rate, cells)
        for part in parts
        for rate in constraint.rates_compared
        if len(cells := _cells(part, rate)) > 1
    ]
    if not compared:
        return None
    _, rate, cells = max(compared, key=lambda figures: figures[0])
    highest, lowest = (choose(cells, key=lambda cell: cell.rate) for choose in (max, min))
    everything = [(name, cell) for _, name, group in compared for cell in group]
    smallest_rate, smallest = min(everything, key=lambda cell: cell[1].effective_rows)
    changes = None  # of precisions a prediction changes both counts
    if rate != "precision":
        changes = _changes(highest, lowest, tolerance, ratios)
    return Deciding(rate, highest, lowest, smallest, smallest_rate, changes)


def _cells(part: Predictions, name: str) -> list[Cell]:
    """Return the cells of a rate that have rows."""
    counted, rows = part.masks(name)
    counts = [part.counts(mask).tolist() for mask in (rows, rows & counted)]
    rates, sizes = (figures.tolist() for figures in part.cells(name))
    cells = map(Cell, group_labels(part.groups), rates, *counts, sizes)
    return [cell for cell in cells if cell.n_rows]


def _gap(cells: list[Cell], ratios: bool) -> float:
    """Return the largest gap, or the largest shortfall of a ratio, between cells."""
    highest, lowest = (choose(cell.rate for cell in cells) for choose in (max, min))
    if ratios:
        return 1.0 - lowest / highest if highest > 0.0 else 0.0
    return highest - lowest


def _changes(highest: Cell, lowest: Cell, tolerance: float, ratios: bool) -> int | None:
    """Return the number of rows that would have to change sides in one of two cells."""
    gap = _gap([highest, lowest], ratios)
    if np.isnan(tolerance) or at_most(gap, tolerance):
        return 0
    if highest.weighted or lowest.weighted:
        return None
    if ratios:
        up, down = (1.0 - tolerance) * highest.rate, lowest.rate / max(1.0 - tolerance, 1e-300)
    else:
        up, down = highest.rate - tolerance, lowest.rate + tolerance
    rows = (up - lowest.rate) * lowest.n_rows, (highest.rate - down) * highest.n_rows
    return int(np.ceil(min(rows) - 1e-9))


@dataclass(frozen=True, eq=False)
class Finding:
    """A constraint on given rows, for one model.

    Parameters
    ----------
    name : str
        The name of the constraint in tables.
    constraint : Constraint
        The constraint.
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
    deciding : Deciding or None
        The cells that decide it, for constraints on rates.
    trained : bool
        Whether the model was trained with it.
    minimized : bool
        Whether the model minimizes the gap and has no bound.
    of_class : str, default=""
        Of several classes the one with the largest gap less its bound.
    n_classes : int, default=1
        The number of classes that the statement is on.
    """

    name: str
    constraint: Constraint
    tolerance: float = np.nan
    on_scores: float = np.nan
    on_predictions: float = np.nan
    low: float = np.nan
    high: float = np.nan
    worst: str = ""
    note: str = ""
    deciding: Deciding | None = None
    trained: bool = False
    minimized: bool = False
    of_class: str = ""
    n_classes: int = 1

    @property
    def state(self) -> str:
        """The state of the verdict: see :class:`~fairconstrained.reporting._tables.Verdict`."""
        if np.isnan(self.on_predictions):
            return "not measured"
        if self.minimized:
            return "no bound"
        if not at_most(self.on_predictions, self.tolerance):
            return "not met"
        return "holds" if at_most(self.high, self.tolerance) else "met"

    @property
    def surely_missed(self) -> bool:
        """Whether the whole interval is above the tolerance."""
        return not (np.isnan(self.low) or at_most(self.low, self.tolerance))


def constraints_of(model: object) -> list[tuple[str, Constraint]]:
    """Return the names and the constraints of a classifier of this library, with tolerances.

    What a constraint chose on the training rows, for instance the minority, is given.
    """
    parameters = ("kappa", "surrogate", "loss")
    defaults = {name: getattr(model, name) for name in parameters if hasattr(model, name)}
    if minimizes_gap(model):
        defaults["kappa"] = 0.0
    constraints = resolve_constraints(getattr(model, "constraint", None), **defaults)
    choices = chain(getattr(model, "constraint_choices_", ()), repeat({}))
    return named(
        [each.set_params(**choice) for each, choice in zip(constraints, choices, strict=False)]
    )


def named(constraints: Sequence[Constraint]) -> list[tuple[str, Constraint]]:
    """Return constraints with their names in tables: registered ones, numbered if repeated."""
    registered = {kind: name for name, kind in reversed(CONSTRAINTS.items())}
    pairs: list[tuple[str, Constraint]] = []
    counts: Counter[str] = Counter()
    for constraint in constraints:
        name = registered.get(type(constraint), type(constraint).__name__)
        counts[name] += 1
        pairs.append((f"{name} ({counts[name]})" if counts[name] > 1 else name, constraint))
    return pairs


def minimizes_gap(model: object) -> bool:
    """Return whether a classifier has goal="fairness": it minimizes the gap, without kappa."""
    return getattr(model, "goal", "accuracy") == "fairness"


def assess(
    name: str,
    constraint: Constraint,
    rows: AssessedRows,
    confidence: float,
    *,
    scores_known: bool = True,
) -> Finding:
    """Return the gaps of a constraint on given rows.

    They are nan, with a note, if the constraint cannot be measured on these rows; those on scores
    are nan also where its surrogate cannot be applied to the scores (`scores_known`).
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
        return Finding(name, constraint, note=note)
    tolerance, on_scores, on_predictions, worst = _gaps(rows, parts, scores_known)
    if np.isnan(on_predictions):
        groups = max(len(np.unique(part.codes[part.known])) for part in rows.groups.separate)
        note = " ".join(empty).removesuffix(".")
        if groups < 2:
            note = "these rows are of a single group" if groups else "no row has a group"
    if constraint.rates_compared and at_most(on_predictions, 0.0):
        worst = ALL_EQUAL
    _, low, high = map(float, interval_of(constraint, rows, confidence))
    deciding = None
    if not np.isnan(on_predictions):
        deciding = deciding_cells(constraint, tolerance, rows.predictions())
    return Finding(
        name, constraint, tolerance, on_scores, on_predictions, low, high, worst, note, deciding
    )


def _gaps(
    rows: AssessedRows, parts: list[_Part], scores_known: bool
) -> tuple[float, float, float, str]:
    """Return the tolerance, the gaps on scores and of predictions, and the output with the latter.

    With several parts these are the values of the part with the largest gap of the predictions.
    """
    tolerance, on_scores, on_predictions, worst = np.nan, np.nan, np.nan, ""
    for term, chosen in parts:
        zero_one = term.zero_one()
        if not zero_one.n_outputs:
            continue
        gaps, bounds = zero_one.gap(rows.scores_for(zero_one)[chosen]), zero_one.gap_bounds
        gaps = np.where(at_most(np.abs(gaps)), 0.0, gaps)  # else rounding shows as -0.000
        j = int(np.argmax(gaps - bounds))
        if np.isnan(on_predictions) or gaps[j] > on_predictions:
            on_predictions, worst = float(gaps[j]), str(zero_one.names[j]).split(" <= ")[0]
            tolerance = float(bounds[j])
        if scores_known:
            # Variables of the term are those that suit the scores.
            scores = rows.scores_for(term)[chosen]
            auxiliary = term.auxiliary_for(partial(term.value, scores))
            on_scores = float(np.fmax(on_scores, term.gap(scores, auxiliary).max()))
    return tolerance, on_scores, on_predictions, worst


def _parts(constraint: Constraint, rows: AssessedRows) -> tuple[list[_Part], list[str]]:
    """Return the terms of the parts, each with its rows, and what has no rows."""
    parts = []
    with warnings.catch_warnings(record=True) as empty:  # tables show nan for cells without rows
        warnings.simplefilter("always", VacuousConstraintWarning)
        for part in constraint.groupings(rows.data):
            groups = cast("Groups", part.groups)
            inside = np.flatnonzero(constraint.known_rows(groups))
            term = constraint.bind(part.y[inside], groups.take(inside), rows.weight[inside])
            parts.append((measured_from(term, rows.threshold), inside))
    return parts, [str(warning.message) for warning in empty]


def interval_of(constraint: Constraint, rows: AssessedRows, confidence: float) -> Interval:
    """Return the interval of the gap of the predictions; nan if no method is known for it."""
    if not constraint.rates_compared:
        return _UNKNOWN
    cells = [part.cells(rate) for part in rows.predictions() for rate in constraint.rates_compared]
    largest = largest_shortfall if constraint.compares_ratios else largest_gap
    return largest(cells, confidence)
