"""Exact binomial limits on the rates of cells of rows, and on the constraints made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.affine import as_csr
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of held-out rows, and the constraints on their rates.

    Attributes
    ----------
    sizes : ndarray of shape (n_cells,)
        Their rows; with weights that differ within a cell, the effective sample size.
    exact : ndarray of bool of shape (n_cells,)
        Whether the weights are equal.
    combination : ndarray of shape (n_constraints, n_cells)
        R: constraints are R rate + level <= 0.
    level : ndarray of shape (n_constraints,)
        The constant.
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
            The bounds if every cell had that many times the rows.
        """
        sizes, used = self.sizes * factor, self.combination != 0.0
        total, n_used = self.level.copy(), used.sum(axis=1)
        for n in np.unique(n_used[n_used > 0]):
            low, high = self._interval(rates, sizes, delta / n)
            chosen = n_used == n
            matrix = self.combination[chosen]
            total[chosen] += np.maximum(matrix, 0.0) @ high + np.minimum(matrix, 0.0) @ low
        return total

    def _interval(self, rates: Array, sizes: Array, delta: float) -> tuple[Array, Array]:
        """Return one-sided limits: Clopper and Pearson's for equal weights, else Hoeffding's."""
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
            part.term.zero_one().forward(part.model.forward(w[: part.model.n_parameters])[0])[0]
            for part in parts
            if part.term is not None and part.model is not None
        ]
    )
