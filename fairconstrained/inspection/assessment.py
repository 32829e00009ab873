"""Whether constraints hold on given rows: gaps of scores and of predictions, with intervals."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product, repeat
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from fairconstrained.constraints import CONSTRAINTS, Constraint, resolve_constraints
from fairconstrained.constraints.base import measured_from
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.metrics.inputs import group_labels
from fairconstrained.metrics.intervals import Calibrated, Interval, largest_gap, largest_shortfall
from fairconstrained.metrics.rates import RATES, Predictions
from fairconstrained.terms.base import Term
from fairconstrained.terms.classes import of_predictions
from fairconstrained.utils.arrays import Array, at_most

ALL_EQUAL = "all equal"
"""What tables show in place of the groups with the largest gap, where the gap is 0."""

_Part = tuple[Term, Array]  # a term, and its rows: those of known groups
_UNKNOWN = Interval(np.array(np.nan), np.array(np.nan), np.array(np.nan))


@dataclass(frozen=True, eq=False)
class AssessedRows:
    """Rows on which constraints are assessed; a prediction is positive if its score is above 0."""

    data: TrainingData  # the rows as constraints know them, with the threshold of the scores
    scores: Array  # (n_rows,)
    # with several classes the log odds of the positive class, which surrogates and constraints on
    # rankings are functions of, (n_rows,); its predictions are those of `scores`
    log_odds: Array | None = None

    def scores_for(self, term: Term) -> Array:
        """Return the scores that a term is measured at."""
        if self.log_odds is None or of_predictions(term):
            return self.scores
        return self.log_odds

    def predictions(self) -> list[Predictions]:
        """Return labels and predictions, once for each grouping (marginal groups have several)."""
        groups = cast("Groups", self.data.groups)
        given = self.data.y > 0, self.scores > 0, groups, self.data.sample_weight
        return Predictions(*given).separate


class Cell(NamedTuple):
    """A rate of a group and the rows that it is computed from."""

    kind: str  # the name of the rate, a key of `RATES`
    group: str
    rate: float
    n_rows: int  # in the denominator
    n_counted: int  # in the numerator
    # that many rows of equal weight have a rate of the same variance; `n_rows` if all weights are
    # equal
    effective_rows: float

    @property
    def weighted(self) -> bool:
        """Whether the weights of the rows differ."""
        return not np.isclose(self.effective_rows, self.n_rows, rtol=1e-9, atol=0.0)


def deciding_cells(
    constraint: Constraint, tolerance: float, parts: Sequence[Predictions]
) -> dict[str, Any] | None:
    """Return the cells that decide a constraint on rates; None for other constraints.

    They are the highest and the lowest one of the largest gap, and the smallest of all that are
    compared. `changes` is how many predictions of one of the first two would at least have to
    change for the bound to be met by them: 0 if it is met, None if weights differ, and of
    precisions and of a group against all rows, where a prediction changes both counts.
    """
    ratios, rate = constraint.compares_ratios, attrgetter("rate")
    # a cell that counts has rows; corrected weights may be below 0
    families = _compared(constraint, parts)
    counted = [[cell for cell in cells if cell.effective_rows > 0.0] for cells in families]
    compared = [cells for cells in counted if len(cells) > 1]
    if not compared:
        return None
    ends = [(max(each, key=rate), min(each, key=rate)) for each in compared]
    highest, lowest = max(ends, key=lambda pair: _gap(pair[0], pair[1], ratios))
    changes = None
    if highest.kind != "precision" and getattr(constraint, "against", "") != "overall":
        changes = _changes(highest, lowest, tolerance, ratios)
    smallest = min(chain(*compared), key=attrgetter("effective_rows"))
    return {"highest": highest, "lowest": lowest, "smallest": smallest, "changes": changes}


def _cells(part: Predictions, kind: str) -> list[Cell]:
    """Return the cells of a rate."""
    counted, rows = part.masks(kind)
    counts = [part.counts(mask).tolist() for mask in (rows, rows & counted)]
    rates, sizes = (figures.tolist() for figures in part.cells(kind))
    return [*map(Cell, repeat(kind), group_labels(part.groups), rates, *counts, sizes)]


def _compared(constraint: Constraint, parts: Sequence[Predictions]) -> list[list[Cell]]:
    """Return the cells that are compared: those of all groups, or each with one group or all rows.

    All rows have each group's among them, so that intervals of these differences are conservative.
    """
    named, compared = getattr(constraint, "against", "pairs"), list[list[Cell]]()
    for part, kind in product(parts, constraint.rates_compared):
        cells, k = _cells(part, kind), part.groups.named(named)
        with_it = cells[k : k + 1]  # none where k is -1
        if named == "overall":
            with_it = _cells(part.take(np.flatnonzero(part.groups.known)).together(), kind)
        pairs = [[it, cell] for it in with_it for cell in cells if cell is not it]
        compared += [cells] if named == "pairs" else pairs
    return compared


def _gap(highest: Cell, lowest: Cell, ratios: bool) -> float:
    """Return the gap, or the shortfall of the ratio, between two cells."""
    if ratios:
        return 1.0 - lowest.rate / highest.rate if highest.rate > 0.0 else 0.0
    return highest.rate - lowest.rate


def _changes(highest: Cell, lowest: Cell, tolerance: float, ratios: bool) -> int | None:
    """Return the number of rows that would have to change sides in one of two cells."""
    if np.isnan(tolerance) or at_most(_gap(highest, lowest, ratios), tolerance):
        return 0
    if highest.weighted or lowest.weighted:
        return None
    up, down = highest.rate - tolerance, lowest.rate + tolerance
    if ratios:
        up, down = (1.0 - tolerance) * highest.rate, lowest.rate / max(1.0 - tolerance, 1e-300)
    rows = (up - lowest.rate) * lowest.n_rows, (highest.rate - down) * highest.n_rows
    return int(np.ceil(min(rows) - 1e-9))


@dataclass(frozen=True, eq=False)
class Finding:
    """A constraint on given rows, for one model."""

    constraint: Constraint
    tolerance: float = np.nan  # the largest gap allowed
    # the gaps of the surrogate and of the predictions; nan if they cannot be measured
    on_scores: float = np.nan
    on_predictions: float = np.nan
    # the confidence interval of the gap of the predictions; nan if there is none
    low: float = np.nan
    high: float = np.nan
    worst: str = ""  # the groups with the largest gap; "all equal" if there is no gap
    note: str = ""  # the reason why values are missing, if any
    deciding: dict[str, Any] | None = None  # see `deciding_cells`
    name: str = ""  # in tables
    trained: bool = False  # whether the model was trained with it
    minimized: bool = False  # whether the model minimizes the gap and has no bound
    of_class: str = ""  # of several classes the one with the largest gap less its bound
    n_classes: int = 1  # that the statement is on

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
    constraint: Constraint, rows: AssessedRows, confidence: float, *, scores_known: bool = True
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
        return Finding(constraint, note=note)
    tolerance, on_scores, on_predictions, worst = _gaps(rows, parts, scores_known)
    deciding, interval, members = None, _UNKNOWN, cast("Groups", rows.data.groups)
    if np.isnan(on_predictions):
        groups = max(len(np.unique(p.codes[p.known])) for p in members.separate)
        note = " ".join(empty).removesuffix(".")
        if groups < 2:
            note = "no two groups that are compared have rows" if groups else "no row has a group"
    else:
        deciding = deciding_cells(constraint, tolerance, rows.predictions())
        interval = interval_of(constraint, rows, confidence)
    gap, low, high = map(float, interval)
    if deciding is not None and members.errors is not None:  # terms know no corrections
        ends = [deciding[end] for end in ("highest", "lowest")]
        worst = " - ".join(f"{RATES[each.kind].title}({each.group})" for each in ends)
        on_predictions = gap
    if constraint.rates_compared and at_most(on_predictions, 0.0):
        worst = ALL_EQUAL
    gaps = tolerance, on_scores, on_predictions
    return Finding(constraint, *gaps, low, high, worst, note, deciding)


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
            on_scores = float(np.fmax.reduce(term.gap(scores, auxiliary), initial=on_scores))
    return tolerance, on_scores, on_predictions, worst


def _parts(constraint: Constraint, rows: AssessedRows) -> tuple[list[_Part], list[str]]:
    """Return the terms of the parts, each with its rows, and what has no rows."""
    parts = []
    with warnings.catch_warnings(record=True) as empty:  # tables show nan for cells without rows
        warnings.simplefilter("always", VacuousConstraintWarning)
        for part in constraint.groupings(rows.data):
            groups = cast("Groups", part.groups)
            inside = np.flatnonzero(constraint.known_rows(groups))
            weight = part.sample_weight[inside]
            term = constraint.bind(part.y[inside], groups.take(inside), weight)
            parts.append((measured_from(term, part.convention.threshold), inside))
    return parts, [str(warning.message) for warning in empty]


def interval_of(constraint: Constraint, rows: AssessedRows, confidence: float) -> Interval:
    """Return the interval of the gap of the predictions; nan if no method is known for it."""
    calibration: Any = CONSTRAINTS["calibration_parity"]
    parts = [part for part in rows.predictions() if len(part.groups) > 1]
    if isinstance(constraint, calibration) and constraint.against == "pairs" and parts:
        each = 1.0 - (1.0 - confidence) / len(parts)
        gaps = [Calibrated(p.labels, p.values * 1.0, p.groups, p.weight).gap(each) for p in parts]
        return Interval(*np.max([[*gap.values()][:3] for gap in gaps], axis=0))
    if not constraint.rates_compared:
        return _UNKNOWN
    cells = [
        (np.array([cell.rate for cell in some]), np.array([cell.effective_rows for cell in some]))
        for some in _compared(constraint, rows.predictions())
    ]
    largest = largest_shortfall if constraint.compares_ratios else largest_gap
    return largest(cells, confidence)
