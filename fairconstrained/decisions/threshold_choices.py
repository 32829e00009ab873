"""The decisions that thresholds on given scores can make, counted for every threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.decisions.candidates import correct_predictions
from fairconstrained.functions.base import Indicator
from fairconstrained.models.scores import ThresholdModel
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import OrderedPairs, as_csr, n_pairs
from fairconstrained.utils.numerics import at_most
from fairconstrained.utils.typing import Array, SparseMatrix

_MOST_ENTRIES = 2**24  # of a table of rates; with more, not every threshold is a choice
_MOST_OUTPUTS = 2**22  # of constraints at several thresholds that are evaluated at once


@dataclass(frozen=True, eq=False)
class Band:
    r"""The constraints :math:`\alpha r_a - \beta r_b + l \le 0` for all cells a and b, a not b.

    With alpha, beta > 0 they hold if and only if there is a level t with :math:`t \le r_a \le h(t)`
    for all a, where :math:`h(t) = (\beta t - l) / \alpha` increases with t. Differences of rates
    (:math:`h(t) = t + \kappa`), ratios (:math:`h(t) = t / \text{ratio}`) and balanced rates have
    this form.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.threshold_choices import Band
    >>> band = Band(np.array([0, 1, 2]), alpha=1.0, beta=1.0, level=-0.1)
    >>> round(float(band.top(0.3)), 6), band.violation(np.array([0.3, 0.35, 0.45])).round(6)
    (0.4, np.float64(0.05))
    """

    cells: Array  # the cells, at least two, (n_cells,)
    # the factors, and l; where shifts of the constraints differ, the largest l of them
    alpha: float
    beta: float
    level: float

    def top(self, bottom: Array | float) -> Array:
        """Return h(t), the largest rate that goes with a smallest one."""
        return np.asarray((self.beta * np.asarray(bottom) - self.level) / self.alpha)

    def violation(self, rates: Array) -> Array:
        """Return the largest constraint for rates of shape (n_cells, ...)."""
        largest, least = rates.max(axis=0), rates.min(axis=0)
        return np.asarray(self.alpha * largest - self.beta * least + self.level)


def bands_of(terms: Sequence[CellMeans], levels: Sequence[Array]) -> tuple[Band, ...] | None:
    """Return the bands that constraints on rates are; None if some are others.

    Parameters
    ----------
    terms : sequence of CellMeans
        The constraints; their cells follow each other.
    levels : sequence of ndarray of shape (n_outputs,)
        Their values for rates of zero.
    """
    bands, below = [], 0
    for term, level in zip(terms, levels, strict=True):
        pairs: Any = term.combination
        if not isinstance(pairs, OrderedPairs):
            return None
        numbers, stop = as_csr(pairs.numbers), 0
        for a, b in pairs.families:
            rows, start, stop = numbers[list(a)], stop, stop + n_pairs(a, b)
            if a != b or np.any(rows.sum(axis=1) != 1.0) or np.any(np.diff(rows.indptr) != 1):
                return None
            if start < stop:
                factors = max(pairs.first, pairs.second), -min(pairs.first, pairs.second)
                bands.append(Band(below + rows.indices, *factors, float(level[start:stop].max())))
        below += term.n_statistics
    return tuple(bands)


@dataclass(frozen=True, eq=False)
class Choices:
    """The thresholds that one group of rows may have, from the highest to the lowest."""

    thresholds: Array  # in falling order. The first selects no row, the last all rows, (n_choices,)
    correct: Array  # what the group's decisions add to the accuracy, (n_choices,)
    cells: Array  # the cells of the constraints that have rows of this group, (n_own_cells,)
    # what the group's decisions add to the rates of these cells, (n_own_cells, n_choices)
    rates: Array

    def __len__(self) -> int:
        """Return the number of choices."""
        return len(self.thresholds)


@dataclass(frozen=True, eq=False)
class ThresholdChoices:
    r"""All choices, and constraints :math:`R \sum_k \mathrm{rates}_k(p_k) + l \le 0` on them."""

    groups: tuple[Choices, ...]  # one entry for every threshold
    combination: SparseMatrix  # r, (n_constraints, n_cells)
    level: Array  # l, (n_constraints,)
    bands: tuple[Band, ...] | None  # the constraints as bands, None if some are not

    @classmethod
    def of(
        cls,
        problem: Problem,
        y: Array,
        sample_weight: Array,
        limits: tuple[float, float],
        fixed: Mapping[int, float] | None = None,
    ) -> ThresholdChoices:
        """Return the choices of the thresholds of a problem.

        Parameters
        ----------
        problem : Problem
            Its model is a :class:`~fairconstrained.models.scores.ThresholdModel`.
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows.
        limits : tuple of float
            The thresholds that select no row and all rows.
        fixed : mapping from int to float or None, default=None
            Thresholds that are given.
        """
        model = problem.objective.model
        assert isinstance(model, ThresholdModel)
        terms = counted_terms(problem)
        counted = [
            correct_predictions(y, sample_weight),
            *terms,
        ]  # the first cell is the accuracy's
        cells = sp.csc_array(sp.vstack([as_csr(term.cells) for term in counted]))
        scores, codes = model.given[model.rows], model.codes[model.rows]
        known, groups = {} if fixed is None else fixed, []
        for k in range(model.n_thresholds):
            rows = np.flatnonzero(codes == k)
            at = _between(np.sort(scores[rows])[::-1], limits)
            groups.append(_choices(scores, rows, cells, [known[k]] if k in known else at))
        blocks = [as_csr(one.combination) for one in terms] or [sp.csr_array((0, 0))]
        combination = as_csr(sp.block_diag(blocks))
        asked = zip(terms, problem.constraints, strict=True)
        levels = [term.head(np.zeros(term.n_statistics)) + part.level for term, part in asked]
        level = np.concatenate([np.zeros(0), *levels])
        return cls(tuple(groups), combination, level, bands_of(terms, levels))

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return int(self.combination.shape[1])

    def rates(self, positions: Sequence[int]) -> Array:
        """Return the rates of the cells, (n_cells,), for a choice in every group."""
        total = np.zeros(self.n_cells)
        for one, p in zip(self.groups, positions, strict=True):
            total[one.cells] += one.rates[:, p]
        return total

    def correct(self, positions: Sequence[int]) -> float:
        """Return what the choices add to the accuracy."""
        return float(sum(one.correct[p] for one, p in zip(self.groups, positions, strict=True)))

    def thresholds(self, positions: Sequence[int]) -> Array:
        """Return the thresholds that are chosen."""
        return np.array([one.thresholds[p] for one, p in zip(self.groups, positions, strict=True)])

    def violations(self, rates: Array) -> Array:
        """Return the largest constraint at rates of shape (n_cells, n_points), (n_points,)."""
        if self.bands is not None:
            values = [band.violation(rates[band.cells]) for band in self.bands]
            return np.max([np.full(rates.shape[1], -np.inf), *values], axis=0)
        step = max(_MOST_OUTPUTS // max(len(self.level), 1), 1)
        blocks = [
            self.combination @ rates[:, k : k + step] + self.level[:, None]
            for k in range(0, rates.shape[1], step)
        ]
        return np.concatenate([one.max(axis=0, initial=-np.inf) for one in blocks])

    def rank(self, positions: Sequence[int]) -> tuple[bool, float]:
        """Return what is larger for better choices: the bound first, then the accuracy."""
        (violation,) = self.violations(self.rates(positions)[:, None])
        met = bool(at_most(violation))
        return met, self.correct(positions) if met else -float(violation)


def counted_terms(problem: Problem) -> list[CellMeans]:
    """Return the constraints' terms with the indicator, which count decisions in cells of rows.

    Raises
    ------
    ValueError
        If a constraint is not a function of the decisions.
    """
    found = []
    for part in problem.constraints:
        term = part.term.zero_one()
        if not _is_counted(term) or part.model is not problem.objective.model:
            name = str(term.names[0]) if term.n_outputs else "a constraint"
            raise ValueError(
                f"thresholds bound the decisions, and {name!r} is not a bound on rates of "
                "decisions in groups of the rows: use a constraint such as 'demographic_parity', "
                "'equal_opportunity' or 'equalized_odds'."
            )
        assert isinstance(term, CellMeans)
        found.append(term)
    return found


def _is_counted(term: Term) -> bool:
    """Return whether a term is affine in rates of decisions."""
    return (
        isinstance(term, CellMeans) and isinstance(term.function, Indicator) and term.signs is None
    )


def _between(ordered: Array, limits: tuple[float, float]) -> Array:
    """Return thresholds in falling order, between scores and beyond them; for no row the first."""
    none, every = limits
    ends = np.flatnonzero(ordered[1:] < ordered[:-1])
    above, below = ordered[ends], ordered[ends + 1]
    middle = 0.5 * (above + below)
    inner = np.where((middle < above) & (middle >= below), middle, below)
    return np.concatenate([[none], inner, [every]])[: None if len(ordered) else 1]


def _choices(
    scores: Array, rows: Array, cells: SparseMatrix, thresholds: Sequence[float] | Array
) -> Choices:
    """Return the choices of the threshold of some rows; the first cell is the accuracy's."""
    own = sp.csc_array(cells[:, rows])
    present, place = np.unique(np.append(0, own.indices), return_inverse=True)
    falling = np.asarray(thresholds, dtype=float)
    most = max(_MOST_ENTRIES // len(present), 256)
    if len(falling) > most:
        falling = falling[np.linspace(0, len(falling) - 1, most).astype(int)]
    n = len(falling)
    first = np.searchsorted(-falling, -scores[rows], side="right")  # the choice that selects it
    column = np.repeat(first, np.diff(own.indptr))
    size = len(present) * (n + 1)
    added = np.bincount(place[1:].astype(np.int64) * (n + 1) + column, own.data, minlength=size)
    rates = np.cumsum(added.reshape(len(present), n + 1)[:, :n], axis=1)
    return Choices(falling, rates[0], present[1:] - 1, rates[1:])
