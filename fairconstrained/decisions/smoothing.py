"""Functions of decisions as smooth functions of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Sigmoid, Surrogate
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.class_scores import ByClass, counts_predictions
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.terms.threshold_rates import ClippedRates, ThresholdRates
from fairconstrained.utils.typing import Array

_RATE = 0.2  # widths of density estimates fall with this power of the number of rows
_STEEPER = 4.0  # the factor for surrogates of rankings


class SmoothRates(CellMeans):
    """Rates of decisions with sigmoids in their place, of other widths for other rows.

    Its `signs` are the inverse widths.
    """

    @classmethod
    def of(cls, term: CellMeans, rows: Array) -> SmoothRates:
        """Return the rates of a term; a row counts as `rows` of it in the sizes of cells."""
        indices, lengths = term.cells.indices, np.diff(term.cells.indptr)
        sizes = np.bincount(indices, np.repeat(rows, lengths), minlength=term.n_statistics)
        smallest, inside = np.full(term.n_rows, rows.sum()), lengths > 0
        if inside.any():
            smallest[inside] = np.minimum.reduceat(sizes[indices], term.cells.indptr[:-1][inside])
        kept: Any = {name: getattr(term, name) for name in ("combination", "offset", "constant")}
        return cls(term.cells, Sigmoid(), smallest**_RATE, **kept)


def smooth_parts(
    parts: Sequence[CompositeFunction], sample_weight: Array, n_rows: int
) -> list[CompositeFunction]:
    r"""Return functions of decisions with :math:`1 / (1 + e^{-s / h})` in their place.

    The width is :math:`h = n^{-1/5}` for the n rows of a cell, as in an estimate of the density of
    its scores at 0, where decisions change; a row in several cells has that of the smallest. Rates
    of the same scores become one function, whose sigmoids are computed once. Of several classes
    there are soft-max probabilities, of one width. Constraints on rankings get steeper surrogates.
    :func:`steeper_part` gives other widths.

    Parameters
    ----------
    parts : sequence of CompositeFunction
        The functions.
    sample_weight : ndarray of shape (n_weights,)
        The weights of the rows; of rows in shards those of the atoms.
    n_rows : int
        The number of rows.
    """
    weights = sample_weight * (n_rows / sample_weight.sum())
    return [_smooth(part, weights) for part in _stacked(parts)]


def _stacked(parts: Sequence[CompositeFunction]) -> Sequence[CompositeFunction]:
    """Return rates of decisions of the same scores as one function; others as they are."""
    strict = [part.zero_one() for part in parts]
    rates = [part.term for part in strict if isinstance(part.term, CellMeans)]
    if not all(map(counts_predictions, rates)) or len(rates) < len(parts):
        return parts
    if len({part.model for part in parts}) > 1:
        return parts
    each = zip(rates, strict, strict=True)
    levels = [one.head(np.zeros(one.n_statistics)) + part.level for one, part in each]
    term = CellMeans(
        sp.csc_array(sp.vstack([as_csr(one.cells) for one in rates])),
        Indicator(),
        combination=sp.csr_array(sp.block_diag([as_csr(one.combination) for one in rates])),
        constant=np.concatenate(levels),
    )
    return [replace(parts[0], term=term, level=0.0)]


def _smooth(part: CompositeFunction, weights: Array) -> CompositeFunction:
    """Return a smooth function."""
    strict = part.term.zero_one()
    if isinstance(strict, CellMeans) and counts_predictions(strict):
        rows = weights if strict.n_rows == len(weights) else np.ones(strict.n_rows)
        return replace(part, term=SmoothRates.of(strict, rows))
    if isinstance(strict, ByClass) and strict.counts_predictions:
        sizes = np.concatenate([effective_rows(one) for one in strict.by_class])
        terms = tuple(replace(one, function=Sigmoid()) for one in strict.by_class)
        soft = replace(strict, terms=terms, sharpness=float(np.median(sizes)) ** _RATE)
        return replace(part, term=soft)
    return steeper_part(part, _STEEPER)


def steeper_part(part: CompositeFunction, factor: float) -> CompositeFunction:
    """Return a function of rates with a surrogate that is steeper by a factor; others unchanged.

    Parameters
    ----------
    part : CompositeFunction
        The function.
    factor : float
        What the surrogate's scale is divided by.
    """
    return replace(part, term=_steeper(part.term, factor))


def _steeper(term: Term, factor: float) -> Term:
    """Return a term with a surrogate that is steeper; others unchanged."""
    if isinstance(term, ByClass) and term.zero_one().counts_predictions:
        return replace(term, sharpness=factor * term.sharpness)
    if not isinstance(term, CellMeans | ThresholdRates | ClippedRates):
        return term
    steep = term.function.steeper(factor) if isinstance(term.function, Surrogate) else term.function
    return replace(term, function=steep)


def effective_rows(term: CellMeans, squares: Array | None = None) -> Array:
    """Return the effective number of rows of every cell, infinity where it has none.

    Parameters
    ----------
    term : CellMeans
        The cells.
    squares : ndarray of shape (n_rows,) or None, default=None
        Where rows stand for several: the sum of their squared weights, over their squared sum.
    """
    cells = term.cells
    each = np.ones(term.n_rows) if squares is None else squares
    weights = cells.data**2 * np.repeat(each, np.diff(cells.indptr))
    total = np.bincount(cells.indices, weights, minlength=term.n_statistics)
    whole = cells.sum(axis=1)  # one; of errors by class a share: they are averages over all rows
    return np.divide(whole, total, out=np.full(len(total), np.inf), where=total > 0.0)
