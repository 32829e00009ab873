"""Bounds on decisions that hold for the population with a given probability."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.constraints.base import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.binomial_limits import Cells, cell_rates
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.search import DecisionSearch, SearchTask
from fairconstrained.exceptions import ConstantDecisionWarning
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array, RandomState
from fairconstrained.utils.validation import is_number

_FEW_ROWS = 10  # groups of fewer rows are not divided one by one


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows that are not used for training.

    Attributes
    ----------
    constraints : tuple of CompositeFunction
        The constraints on these rows.
    rows : ndarray of int of shape (n_held_out,)
        Their positions in X.
    """

    constraints: tuple[CompositeFunction, ...]
    rows: Array

    def cells(self, names: Sequence[str]) -> Cells | None:
        """Return the cells of the constraints, None unless the constraints have these names."""
        found = [name for part in self.constraints if part.term for name in part.term.names]
        return Cells.of(self.constraints) if found == list(names) else None

    def rates(self, w: Array) -> Array:
        """Return the rates of positive decisions in the cells, for a model."""
        return cell_rates(self.constraints, w)


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the held-out rows show about the constraints in the population.

    Attributes
    ----------
    confidence : float
        The probability, over the draw of the held-out rows, with which the statement holds.
    certified : bool
        Whether the constraints hold for the population with that confidence. Constant decisions,
        whose rates are known, are certified without a test.
    bounds : ndarray of shape (n_constraints,)
        Upper confidence bounds on the constraints for the population, each valid on its own;
        <= 0 where the constraint is certified.
    names : list of str
        The names of the constraints.
    n_tested, n_accepted : int
        The candidates tested, the safest first, and those accepted before the first rejection.
    n_held_out : int
        The number of rows held out.
    smallest : int
        The number of them in the smallest cell.
    rows_needed : float
        About how many rows, training included, a model that is not constant would need.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, gap=0.3, random_state=0)
    >>> clf = FairLogisticClassifier(
    ...     kappa=0.2, enforce="decision", confidence=0.9, random_state=0
    ... ).fit(X, y, sensitive_features=groups)
    >>> certificate = clf.certificate_
    >>> certificate.certified, certificate.n_held_out == len(clf.holdout_indices_)
    (True, True)
    >>> bool(certificate.bounds.max() <= 0.0), certificate.names[0]
    (True, 'rate(0) - rate(1) <= 0.2')
    """

    confidence: float
    certified: bool
    bounds: Array = field(repr=False)
    names: list[str] = field(repr=False)
    n_tested: int
    n_accepted: int
    n_held_out: int
    smallest: int
    rows_needed: float

    def warn(self, stacklevel: int) -> None:
        """Warn, with the numbers, if no candidate was accepted."""
        if self.n_accepted:
            return
        enough = ""
        if np.isfinite(self.rows_needed):
            enough = f"About {self.rows_needed:.0f} rows in all would suffice. "
        warnings.warn(
            f"confidence={self.confidence:g}: the {self.n_held_out} rows held out (the smallest "
            f"cell has {self.smallest}) are too few to show that a model other than constant "
            f"decisions meets the constraints; the same class is predicted for every row. "
            f"{enough}Or raise kappa, lower confidence, or merge small groups.",
            ConstantDecisionWarning,
            stacklevel=stacklevel,
        )


def check_confidence(estimator: Any) -> None:
    """Check `confidence` and `holdout`.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what to do.
    """
    for name, value in (("confidence", estimator.confidence), ("holdout", estimator.holdout)):
        if name == "confidence" and value is None:
            continue
        if not (is_number(value, Real) and 0.0 < value < 1.0):
            also = " or None" if name == "confidence" else ""
            raise ValueError(f"{name} must be a number between 0 and 1{also}; got {value!r}.")
    if estimator.confidence is not None and estimator.enforce != "decision":
        raise ValueError(
            f"confidence={estimator.confidence!r} bounds decisions: use enforce='decision', not "
            f"{estimator.enforce!r}."
        )


def check_binomial_limits(constraints: Sequence[Constraint]) -> None:
    """Check that exact binomial limits apply to the constraints.

    Raises
    ------
    ValueError
        If one of them does not compare groups' rates with each other.
    """
    for one in constraints:
        if not one.has_binomial_limits:
            raise ValueError(
                "confidence is for constraints that compare groups' rates with each other "
                "(demographic parity, equal opportunity, predictive equality, equalized odds, as "
                f"differences or ratios, disparate impact, balanced rates); {one!r} is not one: "
                "leave confidence at None."
            )


def split(
    data: TrainingData, share: float, random_state: RandomState
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows to train on, the held-out rows, and the positions of the latter.

    The share is taken of every group and label, as nearly as their rows allow; of every label where
    groups and labels have fewer than ten rows each on average.

    Parameters
    ----------
    data : TrainingData
        All rows.
    share : float
        The share that is held out, in (0, 1).
    random_state : int, RandomState or None
        Chooses the rows.
    """
    groups = np.zeros(len(data.y), dtype=int) if data.groups is None else data.groups.codes
    cells = 2 * groups + (data.y > 0)
    if len(np.unique(cells)) * _FEW_ROWS > len(cells) and groups.any():
        cells = (data.y > 0).astype(int)
    random, held = check_random_state(random_state), np.zeros(len(cells), dtype=bool)
    for cell in np.unique(cells):
        rows = random.permutation(np.flatnonzero(cells == cell))
        held[rows[: min(max(round(share * len(rows)), 1), len(rows) - 1)]] = True
    kept, out = np.flatnonzero(~held), np.flatnonzero(held)
    return _rows(data, kept), _rows(data, out), out


def _rows(data: TrainingData, rows: Array) -> TrainingData:
    groups = None if data.groups is None else data.groups.take(rows)
    weight = data.sample_weight[rows]
    return replace(data, X=data.X[rows], y=data.y[rows], groups=groups, sample_weight=weight)


def search_with_confidence(
    task: SearchTask, held_out: HeldOut, confidence: float
) -> tuple[DecisionSearch, Certificate]:
    r"""Return the most accurate model whose constraints hold with confidence, and the certificate.

    Candidates are fitted on the training rows, the first ones farthest below the bound, and tested
    on the held-out rows in that order, each with error delta = 1 - confidence, up to the first that
    is rejected. A candidate is accepted if every constraint is: its upper bound, from the exact
    binomial limits of the cells that it compares, is at most 0. The probability that a candidate
    that violates a constraint is accepted is at most delta: the first of these in the order is
    accepted only if the bound on the constraint that it violates errs, so that no correction for
    the number of candidates or of constraints is needed; the two limits of a constraint share
    delta. Constant decisions need no test.

    Parameters
    ----------
    task : SearchTask
        What the search on the training rows starts from.
    held_out : HeldOut
        The constraints on the held-out rows.
    confidence : float
        The probability with which the constraints are to hold for the population.

    References
    ----------
    C. Clopper and E. Pearson, Biometrika 26 (1934); fixed-sequence testing: A. Angelopoulos, S.
    Bates, E. Candes, M. Jordan, L. Lei, "Learn then test" (2021), section 2.3; intersection-union
    tests: R. Berger, Technometrics 24 (1982).
    """
    problem, begin = task.problem, task.problem.passes
    delta, n_held_out = 1.0 - confidence, len(held_out.rows)
    plain = task.search()
    cells = held_out.cells(problem.names)
    rates = cell_rates(problem.constraints, plain.w)
    accepted, tested, needed = [], 0, np.inf
    if cells is not None:
        width = cells.bounds(rates, delta) - cells.values(rates)
        room = np.maximum(-cells.values(np.full(len(rates), rates.mean())), 0.0)
        for found in _safer_models(task, width, room):
            tested += 1
            if not np.all(at_most(cells.bounds(held_out.rates(found.w), delta))):
                break
            accepted.append(found)
        total = len(task.y) + n_held_out
        needed = total * _rows_factor(cells, rates, delta, room, task.budget)
    constant = plain.with_model(task.candidates().constant)
    best = max(accepted, key=lambda one: one.accuracy, default=constant)
    if best is constant or cells is None:  # the rates of constant decisions are known
        bounds = np.full(problem.n_constraints, best.violation)
    else:
        bounds = cells.bounds(held_out.rates(best.w), delta)
    certificate = Certificate(
        confidence=confidence,
        certified=bool(np.all(at_most(bounds))),
        bounds=bounds,
        names=problem.names,
        n_tested=tested,
        n_accepted=len(accepted),
        n_held_out=n_held_out,
        smallest=0 if cells is None else int(cells.sizes.min(initial=n_held_out)),
        rows_needed=needed,
    )
    return replace(best, data_passes=task.first_passes + problem.passes - begin), certificate


def _safer_models(task: SearchTask, width: Array, room: Array) -> Iterator[DecisionSearch]:
    """Yield models whose decisions are below the bound, by margins in falling order."""
    for margin in task.budget.margins:
        shifts = np.minimum(margin * width, task.budget.max_margin * room)
        found = task.tightened(shifts).search()
        if found.met and not found.constant:
            yield found


def _rows_factor(
    cells: Cells, rates: Array, delta: float, room: Array, budget: SearchBudget
) -> float:
    """Return the multiple of the rows at which the test is narrow compared with the room."""
    low, high = 0.0, 1.0

    def enough(factor: float) -> bool:
        width = cells.bounds(rates, delta, factor=factor) - cells.values(rates)
        return bool(np.all(width <= budget.width_share * np.maximum(room, 1e-6)))

    while not enough(high) and high < 1e9:
        low, high = high, 2.0 * high
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
