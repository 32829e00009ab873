"""The gaps that are expected on new rows, beside those of the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from fairconstrained.decisions.smoothing import effective_rows
from fairconstrained.decisions.soft_labels import SoftLabels
from fairconstrained.functions.base import Indicator
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, Ratios
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.terms.ordered_pairs import OrderedPairs, n_pairs
from fairconstrained.utils.typing import Array

_N_POINTS = 1001  # at which distributions are summed
_FAR = 6.0  # standard deviations, beyond which they are 0 or 1
_LEAST = 1e-9  # of a standard deviation


@dataclass(frozen=True)
class ExpectedGap:
    r"""The gap of a rate of decisions on the training rows, and the one expected on new rows.

    The rate r of a group with n rows differs on as many new rows by about :math:`2 r (1 - r) / n`
    in variance. The expected gap is that of normal rates with these variances,

    .. math::
        E[\max_a r_a - \min_a r_a] = \int 1 - \prod_a \Phi_a(x) - \prod_a (1 - \Phi_a(x))\, dx,

    which is more than the gap of their means. A search among many models finds one that meets a
    bound by chance, so that the means are biased. Rates of true and false positives and of errors
    are therefore estimated from all rows of a group with the probabilities of their labels as well
    (:class:`~fairconstrained.decisions.soft_labels.SoftLabels`), and the larger gap is taken.
    Without these, for selection rates, several classes, thresholds and rows in shards, the expected
    gap does not know of the search.

    Attributes
    ----------
    name : str
        The constraint whose gap is the largest one of the rate.
    training : float
        Its gap on the training rows.
    expected : float
        The gap of the rate that is expected on as many new rows.
    bound : float
        The largest gap allowed.
    """

    name: str
    training: float
    expected: float
    bound: float


def expected_gaps(
    at: Evaluation, labels: SoftLabels | None, squares: Array | None = None
) -> tuple[ExpectedGap, ...]:
    """Return the gaps of all rates of decisions that constraints compare.

    Parameters
    ----------
    at : Evaluation
        The problem at the model.
    labels : SoftLabels or None
        The probabilities of the labels.
    squares : ndarray of shape (n_rows,) or None, default=None
        Where rows stand for several: the sum of their squared weights, over their squared sum.
    """
    decided, gaps = at.decided, []
    for part in decided.problem.constraints:
        term, bounds = part.term, part.gap_bounds(part.term.gap_bounds)
        every, first, output = decided.statistics_of(part), 0, 0
        for one in term.by_class if isinstance(term, ByClass) else (term,):
            rates = every[first : first + one.n_statistics]
            soft = None if labels is None else labels.statistics(one, at.scores_of(part))
            estimates = [rates] if soft is None else [rates, soft]
            for which, training, expected in _gaps(one, estimates, squares):
                k = output + which
                gaps.append(ExpectedGap(term.names[k], training, expected, float(bounds[k])))
            first, output = first + one.n_statistics, output + one.n_outputs
    return tuple(gaps)


def _gaps(
    term: Term, estimates: Sequence[Array], squares: Array | None
) -> Iterator[tuple[int, float, float]]:
    """Yield, for every family of pairs, the largest gap's output, this gap and the expected one."""
    if not (isinstance(term, CellMeans) and isinstance(term.function, Indicator)):
        return
    pairs: Any = term.combination
    if not isinstance(pairs, OrderedPairs):
        return
    gaps, stop, sizes = term.gap_of(estimates[0]), 0, effective_rows(term, squares)
    moments = [_moments(pairs, rates, sizes) for rates in estimates]
    exact = moments[0][0], np.zeros(len(moments[0][0]))
    for family in pairs.families:
        start, stop = stop, stop + n_pairs(*family)
        if start < stop:
            which = start + int(np.argmax(gaps[start:stop]))
            now, *later = (
                _gap(term, [_extremes(mean[one.start : one.stop], variance[one.start : one.stop])
                            for one in family])
                for mean, variance in (exact, *moments)
            )  # fmt: skip
            training = float(gaps[which])
            yield which, training, training + max(later) - now


def _moments(pairs: OrderedPairs, rates: Array, sizes: Array) -> tuple[Array, Array]:
    """Return the means and the variances of the numbers that pairs compare."""
    constant = rates.size and np.ptp(rates) == 0.0 and rates[0] in (0.0, 1.0)
    variances, some = np.zeros(len(rates)), np.isfinite(sizes) & (not constant)
    likely = (rates[some] * sizes[some] + 1.0) / (sizes[some] + 2.0)  # never certain
    variances[some] = 2.0 * likely * (1.0 - likely) / sizes[some]
    numbers: Any = sp.eye_array(len(rates)) if pairs.numbers is None else pairs.numbers
    origin = 0.0 if pairs.origin is None else pairs.origin
    return numbers @ rates + origin, (numbers * numbers) @ variances


def _extremes(means: Array, variances: Array) -> tuple[float, float]:
    """Return the expectations of the least and of the largest of independent normal numbers."""
    deviations = np.sqrt(variances)
    low, high = (means - _FAR * deviations).min(), (means + _FAR * deviations).max()
    if not deviations.any():
        return float(low), float(high)
    x = np.linspace(low, high, _N_POINTS)
    below = ndtr((x[:, None] - means) / np.maximum(deviations, _LEAST))
    least = low + np.trapezoid((1.0 - below).prod(axis=1), x)
    return float(least), float(high - np.trapezoid(below.prod(axis=1), x))


def _gap(term: CellMeans, ends: Sequence[tuple[float, float]]) -> float:
    """Return the largest gap of pairs of numbers with these extremes."""
    pairs: Any = term.combination
    factors = pairs.first, pairs.second
    first, second = (end[factor > 0.0] for end, factor in zip(ends, factors, strict=True))
    if isinstance(term, Ratios):
        return 1.0 - first / second if second > 0.0 else 0.0
    return float(pairs.first * first + pairs.second * second)
