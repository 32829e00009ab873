"""The decisions that thresholds on given scores can make, counted for every threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairconstrained.decisions.bands import Band, split_bands
from fairconstrained.decisions.candidates import correct_predictions
from fairconstrained.functions.base import Indicator
from fairconstrained.models.scores import ThresholdModel
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.typing import Array, SparseMatrix

_MOST_ENTRIES = 2**24  # of a table of rates; with more, not every threshold is a choice
_MOST_OUTPUTS = 2**22  # of constraints at several thresholds that are evaluated at once


@dataclass(frozen=True, eq=False)
class Choices:
    """The thresholds that one group of rows may have, from the highest to the lowest.

    Attributes
    ----------
    thresholds : ndarray of shape (n_choices,)
        In falling order. The first selects no row, the last all rows.
    correct : ndarray of shape (n_choices,)
        What the group's decisions add to the accuracy.
    cells : ndarray of int of shape (n_own_cells,)
        The cells of the constraints that have rows of this group.
    rates : ndarray of shape (n_own_cells, n_choices)
        What the group's decisions add to the rates of these cells.
    """

    thresholds: Array
    correct: Array
    cells: Array
    rates: Array

    def __len__(self) -> int:
        """Return the number of choices."""
        return len(self.thresholds)


@dataclass(frozen=True, eq=False)
class ThresholdChoices:
    r"""All choices, and constraints :math:`R \sum_k \mathrm{rates}_k(p_k) + l \le 0` on them.

    Attributes
    ----------
    groups : tuple of Choices
        One entry for every threshold.
    combination : CSR of shape (n_constraints, n_cells)
        R.
    level : ndarray of shape (n_constraints,)
        l.
    bands : tuple of Band
        Constraints that ask the rates of some cells to be close to each other.
    others : ndarray of int
        The constraints that are in no band.
    """

    groups: tuple[Choices, ...]
    combination: SparseMatrix
    level: Array
    bands: tuple[Band, ...]
    others: Array

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
        terms, cells = _terms_and_cells(problem, y, sample_weight)
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
        bands, others = split_bands(combination, level)
        return cls(tuple(groups), combination, level, bands, others)

    def with_level(self, level: Array) -> ThresholdChoices:
        """Return the choices with other tolerances.

        Parameters
        ----------
        level : ndarray of shape (n_constraints,)
            l.
        """
        bands, others = split_bands(self.combination, level)
        return replace(self, level=level, bands=bands, others=others)

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

    def violation(self, rates: Array) -> float:
        """Return the largest constraint at rates, (n_cells,); minus infinity without any."""
        return float((self.combination @ rates + self.level).max(initial=-np.inf))

    def common_violation(self) -> Array:
        """Return the largest constraint for every choice of a single threshold, (n_choices,)."""
        (one,) = self.groups
        most = np.full(len(one), -np.inf)
        rates = np.zeros((self.n_cells, len(one)))
        rates[one.cells] = one.rates
        for band in self.bands:
            most = np.maximum(most, band.violation(rates[band.cells]))
        if not len(self.others):
            return most
        rest = as_csr(self.combination[self.others])
        step = max(_MOST_OUTPUTS // len(self.others), 1)
        for start in range(0, len(one), step):
            here = slice(start, start + step)
            found = rest @ rates[:, here] + self.level[self.others][:, None]
            most[here] = np.maximum(most[here], found.max(axis=0))
        return most


def _terms_and_cells(
    problem: Problem, y: Array, sample_weight: Array
) -> tuple[list[CellMeans], SparseMatrix]:
    """Return the constraints' terms, and the cell of the accuracy above their cells."""
    terms = counted_terms(problem)
    counted = [correct_predictions(y, sample_weight), *terms]
    return terms, sp.csc_array(sp.vstack([as_csr(term.cells) for term in counted]))


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
