"""Bounds that hold for the population with a given probability, tested on rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from fairconstrained.constraints.base import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.search import (
    DecisionSearch,
    constant_decisions,
    enforce_on_decisions,
)
from fairconstrained.exceptions import ConstantDecisionWarning
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.terms.affine import as_csr
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import is_number

# How far below their bound the candidates are fitted, in widths of the test, the safest first.
_MARGINS = (2.5, 1.8, 1.3, 0.9, 0.6)
_MOST = 0.9  # no margin is a larger part of the room that equal rates have
_HALF = 0.4  # the part of it that the width may take for the rows to be enough
_FIT = 25.0  # data passes of a fit whose constraints bind, as they do below the bound


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the held-out rows say of the model.

    Attributes
    ----------
    confidence : float
        The probability, over the draw of the held-out rows, with which the statement holds.
    certified : bool
        Whether the constraints hold for the population with that confidence. It is true of constant
        decisions, whose rates are known.
    bounds : ndarray of shape (n_constraints,)
        Upper confidence bounds on the constraints for the population, each valid on its own;
        <= 0 where the constraint is certified.
    names : list of str
        What each of them says.
    n_tested, n_accepted : int
        The candidates tested, the safest first, and those accepted before the first that was not.
    n_held_out : int
        The rows held out.
    smallest : int
        How many of them the smallest cell has.
    rows_needed : float
        About how many rows, training included, would do for a model that is not constant.

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
            enough = f"About {self.rows_needed:.0f} rows in all would do. "
        warnings.warn(
            f"confidence={self.confidence:g}: the {self.n_held_out} rows held out (the smallest "
            f"cell has {self.smallest}) are too few to say that a model other than constant "
            f"decisions meets the constraints, and the model decides the same of everybody. "
            f"{enough}Or raise kappa, lower confidence, or join small groups.",
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
            f"confidence={estimator.confidence!r} is about decisions; use enforce='decision' with "
            f"it, not {estimator.enforce!r}."
        )


def check_rates(constraints: Sequence[Constraint]) -> None:
    """Check that the constraints are of the kind that limits for binomials are for.

    Raises
    ------
    ValueError
        If one of them is not made of groups' rates alone.
    """
    for one in constraints:
        if not one.of_rates:
            raise ValueError(
                "confidence is for constraints that compare groups' rates with each other "
                "(demographic parity, equal opportunity, predictive equality, equalized odds, as "
                f"differences or ratios, disparate impact, balanced rates); {one!r} is not one: "
                "leave confidence at None."
            )


def hold_out(
    data: TrainingData, share: float, random_state: Any
) -> tuple[TrainingData, TrainingData, Array]:
    """Return the rows to train with, the rows held out, and which these are.

    The share is that of every group and label, as nearly as their rows allow.
    """
    groups = np.zeros(len(data.y), dtype=int) if data.groups is None else data.groups.codes
    cells = 2 * groups + (data.y > 0)
    random, held = check_random_state(random_state), np.zeros(len(cells), dtype=bool)
    for cell in np.unique(cells):
        rows = random.permutation(np.flatnonzero(cells == cell))
        held[rows[: min(max(round(share * len(rows)), 1), len(rows) - 1)]] = True
    kept, out = np.flatnonzero(~held), np.flatnonzero(held)
    return _rows(data, kept), _rows(data, out), out


def counted(sample_weight: Any) -> Array:
    """Return the rows whose weight is not zero, which are those that count."""
    return np.flatnonzero(np.asarray(sample_weight))


def _rows(data: TrainingData, rows: Array) -> TrainingData:
    groups = None if data.groups is None else data.groups.take(rows)
    weight = data.sample_weight[rows]
    return replace(data, X=data.X[rows], y=data.y[rows], groups=groups, sample_weight=weight)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of constraints on the rows held out: how many rows, and what is asked of rates.

    Attributes
    ----------
    sizes : ndarray of shape (n_cells,)
        Their rows; with weights that differ within a cell, the number of rows of one weight that
        would say as much.
    exact : ndarray of bool of shape (n_cells,)
        Whether the weights are alike.
    combination : ndarray of shape (n_constraints, n_cells)
        R: constraints are R rate + level <= 0.
    level : ndarray of shape (n_constraints,)
        What is added.
    """

    sizes: Array
    exact: Array
    combination: Array
    level: Array

    @classmethod
    def of(cls, parts: Sequence[CompositeFunction]) -> Cells:
        """Return the cells of the parts, one after the other."""
        terms = [_rates(part) for part in parts]
        weights = [term.cells.tocsr() for term in terms]
        squares = np.concatenate([one.multiply(one).sum(axis=1) for one in weights])
        counts = np.concatenate([np.diff(one.indptr) for one in weights]).astype(float)
        sizes = 1.0 / squares
        return cls(
            np.minimum(sizes, counts),
            np.isclose(sizes, counts),
            sp.block_diag([as_csr(term.combination) for term in terms]).toarray(),
            np.concatenate([term.head(np.zeros(term.n_statistics)) for term in terms]),
        )

    def bounds(self, rates: Array, delta: float, *, factor: float = 1.0) -> Array:
        """Return upper bounds on the constraints, each with an error of at most `delta`.

        Parameters
        ----------
        rates : ndarray of shape (n_cells,)
            The rates of positive decisions found in the cells.
        delta : float
            The probability of error; the cells that a constraint compares share it.
        factor : float, default=1.0
            As if every cell had that many times the rows.
        """
        sizes, used = self.sizes * factor, self.combination != 0.0
        total = self.level.copy()
        for share in np.unique(used.sum(axis=1)):
            if not share:
                continue
            low, high = self._interval(rates, sizes, delta / share)
            chosen = used.sum(axis=1) == share
            matrix = self.combination[chosen]
            total[chosen] += np.maximum(matrix, 0.0) @ high + np.minimum(matrix, 0.0) @ low
        return total

    def _interval(self, rates: Array, sizes: Array, delta: float) -> tuple[Array, Array]:
        """Return one-sided limits: Clopper and Pearson's where weights are alike, Hoeffding's."""
        _, low, high = clopper_pearson(rates, sizes, 1.0 - 2.0 * delta)  # delta on each side
        reach = np.sqrt(np.log(1.0 / delta) / (2.0 * sizes))
        low = np.where(self.exact, low, np.maximum(rates - reach, 0.0))
        high = np.where(self.exact, high, np.minimum(rates + reach, 1.0))
        return low, high

    def values(self, rates: Array) -> Array:
        """Return the constraints at the rates."""
        return np.asarray(self.combination @ rates + self.level)


def _rates(part: CompositeFunction) -> CellMeans:
    assert isinstance(part.term, CellMeans)
    return part.term


def cell_rates(parts: Sequence[CompositeFunction], w: Array) -> Array:
    """Return the rates of positive decisions in the cells of the parts."""
    return np.concatenate(
        [
            part.term.zero_one().forward(part.model.scores(w[: part.model.n_parameters]))[0]
            for part in parts
            if part.term is not None
        ]
    )


def enforce(
    prepared: Any, first: Result, solver: Solver, confidence: float | None, random_state: Any
) -> tuple[DecisionSearch, Certificate | None]:
    """Return a model whose decisions meet the constraints, for the population if that is wanted.

    Parameters
    ----------
    prepared : Prepared
        The problem, its training rows, and the constraints on rows held out.
    first : Result
        The solution of the problem.
    solver : Solver
        Solves it again.
    confidence : float or None
        The probability with which the constraints are to hold for the population.
    random_state : int, RandomState or None
        For stochastic solvers.
    """
    free, data = prepared.unconstrained.result.w, prepared.data
    if confidence is not None:
        return enforce_with_confidence(
            prepared.problem,
            prepared.held_out,
            first,
            solver,
            data,
            free,
            confidence=confidence,
            n_held_out=prepared.n_held_out,
            random_state=random_state,
        )
    found = enforce_on_decisions(
        prepared.problem,
        first,
        solver,
        data.y,
        data.sample_weight,
        free,
        random_state=random_state,
    )
    return found, None


def enforce_with_confidence(
    problem: Problem,
    held_out: Sequence[CompositeFunction],
    first: Result,
    solver: Solver,
    data: TrainingData,
    unconstrained: Array,
    *,
    confidence: float,
    n_held_out: int,
    random_state: Any = None,
) -> tuple[DecisionSearch, Certificate]:
    r"""Return the most accurate model whose constraints hold with confidence, and the certificate.

    Candidates are fitted on the training rows, ever less far below the bound, and tested on the
    rows held out in that order, each with error delta = 1 - confidence, up to the first that is not
    accepted. A candidate is accepted if every constraint is: its upper bound, of the exact
    binomial limits of the cells that it compares, is at most 0. The probability that a candidate
    that violates a constraint is accepted is at most delta: the first of these in the order is
    accepted only if the bound on the constraint that it violates errs, so that no correction for
    the number of candidates or of constraints is needed; the two limits of a constraint share
    delta. Constant decisions need no test.

    References
    ----------
    C. Clopper and E. Pearson, Biometrika 26 (1934); fixed-sequence testing: A. Angelopoulos, S.
    Bates, E. Candes, M. Jordan, L. Lei, "Learn then test" (2021), section 2.3; intersection-union
    tests: R. Berger, Technometrics 24 (1982).
    """
    delta, begin = 1.0 - confidence, problem.passes
    plain = enforce_on_decisions(
        problem, first, solver, data.y, data.sample_weight, unconstrained, random_state=random_state
    )
    names = [name for part in held_out for name in _rates(part).names]
    cells = Cells.of(held_out) if names == problem.names else None
    rates = cell_rates(problem.constraints, plain.w)
    accepted: list[DecisionSearch] = []
    tested, needed, total = 0, np.inf, len(data.y) + n_held_out
    if cells is not None:
        width = cells.bounds(rates, delta) - cells.values(rates)
        room = -cells.values(np.full(len(rates), rates.mean()))
        for margin in _MARGINS:
            shifts = np.minimum(margin * width, _MOST * np.maximum(room, 0.0))
            found = enforce_on_decisions(
                problem.shifted(shifts),
                first,
                solver,
                data.y,
                data.sample_weight,
                unconstrained,
                fit=_FIT,
                random_state=random_state,
            )
            if found.constant or not found.met:
                continue
            tested += 1
            if np.any(cells.bounds(cell_rates(held_out, found.w), delta) > 0.0):
                break
            accepted.append(found)
        needed = total * _factor(cells, rates, delta, room)
    constant = constant_decisions(problem, data.y, data.sample_weight, plain)
    best = max(accepted, key=lambda one: one.accuracy, default=constant)
    if best is constant or cells is None:  # constant decisions have rates that are known
        bounds = np.full(problem.n_constraints, best.excess)
    else:
        bounds = cells.bounds(cell_rates(held_out, best.w), delta)
    certificate = Certificate(
        confidence=confidence,
        certified=bool(np.all(bounds <= 0.0)),
        bounds=bounds,
        names=problem.names,
        n_tested=tested,
        n_accepted=len(accepted),
        n_held_out=n_held_out,
        smallest=0 if cells is None else int(cells.sizes.min(initial=n_held_out)),
        rows_needed=needed,
    )
    return replace(best, data_passes=first.data_passes + problem.passes - begin), certificate


def _factor(cells: Cells, rates: Array, delta: float, room: Array) -> float:
    """Return how many times the rows let the test's width be small in the room of equal rates."""
    low, high = 0.0, 1.0

    def enough(factor: float) -> bool:
        width = cells.bounds(rates, delta, factor=factor) - cells.values(rates)
        return bool(np.all(width <= _HALF * np.maximum(room, 1e-6)))

    while not enough(high) and high < 1e9:
        low, high = high, 2.0 * high
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
