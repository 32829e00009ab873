"""What to expect on new rows: rates of few rows are estimated from more rows, gaps from noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, ndtr

from fairconstrained.constraints.parity import Precisions
from fairconstrained.functions.base import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, OnCells, Ratios
from fairconstrained.terms.classes import class_terms
from fairconstrained.terms.ordered_pairs import OrderedPairs, as_csr, n_pairs
from fairconstrained.utils.arrays import ROUNDING, Array, SparseMatrix

_SOFT_ROWS = 300.0  # as many rows of a cell count as much as its soft labels
_FEW_ROWS = 3000.0  # cells of more rows have no soft labels
# The regression takes so many steps at most, and ends when no probability changes by more.
_NEWTON_STEPS, _STILL = 100, 1e-6

_N_POINTS = 1001  # at which distributions are summed
_FAR = 6.0  # standard deviations, beyond which they are 0 or 1
_LEAST = 1e-9  # of a standard deviation


class SoftLabels:
    r"""The rows of a fit with the probability of the favourable label.

    A true positive rate of a group with few positive rows is a mean of few predictions, and a
    search among many models finds one that meets a bound on it by chance. All rows of the group,
    weighted by the probability that their label is positive, estimate the same rate,

    .. math:: \sum_{i \in a} v_i p_i 1\{s_i > 0\} / \sum_{i \in a} v_i p_i,

    and are more rows. It is the expectation of the rate over labels drawn with these probabilities.

    The probabilities p are those of a logistic regression on the `scores` of a model that was
    fitted without constraints, with an intercept for every group, which is shrunk: labels of few
    rows change it little. `y` are the labels, -1 or +1; `codes` are -1 where the group of a row is
    not known.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.decisions.new_rows import SoftLabels
    >>> y, groups = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0, 0, 1, 1])
    >>> labels = SoftLabels(np.array([2.0, -2.0, 1.0, -1.0]), y, groups, np.ones(4))
    >>> labels.probability.round(2)
    array([0.88, 0.12, 0.73, 0.27])
    """

    def __init__(self, scores: Array, y: Array, codes: Array, weight: Array):
        self.y, self.codes, self.weight = y, codes, weight
        X, counted = np.column_stack([scores, np.ones(len(y))]), weight / weight.mean()
        places, n_groups = codes + 1, int(codes.max()) + 2
        # For 1,000 rows scikit-learn's logistic regression takes seven times as long.
        w, p = np.zeros(2 + n_groups), np.zeros(len(y))
        for _ in range(_NEWTON_STEPS):
            before, p = p, expit(X @ w[:2] + w[2:][places])
            if np.abs(p - before).max() <= _STILL:
                break
            errors, bends = counted * (p - (y > 0.0)), counted * p * (1.0 - p)
            each = np.array([errors, *(bends * X.T), bends])
            slope, *mixed, sizes = (np.bincount(places, part, n_groups) for part in each)
            shared = (X.T * bends) @ X
            curvature = np.block([[shared, np.array(mixed)], [np.transpose(mixed), np.diag(sizes)]])
            w = w - np.linalg.solve(curvature + np.eye(len(w)), np.append(errors @ X, slope) + w)
        self.probability = p  # of the label +1

    def constraints(self, problem: Problem) -> tuple[CompositeFunction, ...]:
        """Return the constraints on rates of few rows, with soft labels.

        True and false positive rates and error rates are averages over the rows of a label in some
        groups; selection rates and others have no such estimate. Rates of groups of one label have
        none either: there are no more rows of these groups.
        """
        model, softened_parts = problem.objective.model, []
        for part in problem.constraints:
            if isinstance(part.term, CellMeans) and part.model is model:
                softened = self._softened(part, part.term)
                softened_parts += [] if softened is None else [softened]
        return tuple(softened_parts)

    def _softened(self, part: CompositeFunction, term: CellMeans) -> CompositeFunction | None:
        """Return the part with soft labels in cells of few rows, None if there are none.

        There are none for error rates, which depend on cells of both labels.
        """
        cells, sizes = as_csr(term.cells), effective_rows(term)
        soft_cells, soft, positive = self._soft_cells(cells, sizes)
        used = abs(as_csr(term.combination))
        of_both = (used @ positive > 0.0) & (used @ ~positive > 0.0)
        if of_both.any() or not np.any(used @ soft):
            return None
        share = 1.0 / (1.0 + np.divide(_SOFT_ROWS, sizes, out=np.zeros(len(sizes)), where=soft))
        mixed = sp.csc_array(cells * share[:, None] + soft_cells * (1.0 - share)[:, None])
        return replace(part, term=replace(term, cells=mixed))

    def _soft_cells(self, cells: SparseMatrix, sizes: Array) -> tuple[SparseMatrix, Array, Array]:
        """Return cells of soft labels alone, which cells have them, and which are of positive ones.

        They are those of few rows, all rows with a label in some groups that have rows of the other
        label, too. Others may be those of selection rates, and there are no rows to add.
        """
        members = _members(self.codes)[:, 1:]
        labels = np.column_stack([self.y < 0.0, self.y > 0.0]).astype(float)
        every, inside = members.T @ labels, sp.csr_array(cells.sign())
        counts, soft, total = inside @ labels, np.zeros(len(sizes), dtype=bool), 0.0 * cells
        for k, chance in enumerate((1.0 - self.probability, self.probability)):
            groups = sp.csr_array((inside @ (members * labels[:, [k]])).sign())
            there = groups @ every  # the rows of these groups, by label
            some = (there[:, k] == counts[:, k]) & (counts[:, 1 - k] == 0.0) & (sizes < _FEW_ROWS)
            some &= there[:, 1 - k] > 0.0
            rows = sp.csr_array(groups @ members.T * (self.weight * chance))
            whole = np.divide(some, rows.sum(axis=1), out=np.zeros(len(sizes)), where=some)
            total = total + rows * whole[:, None]
            soft |= some
        return total, soft, counts[:, 1] > 0.0


def _members(codes: Array) -> sp.csr_array:
    """Return a column for every group, the first one for rows of no group."""
    n_rows = len(codes)
    entries = np.ones(n_rows), codes + 1, np.arange(n_rows + 1)
    return sp.csr_array(entries, shape=(n_rows, int(codes.max()) + 2))


def has_few_rows(problem: Problem) -> bool:
    """Return whether a constraint on averages has a cell whose rate soft labels change."""
    terms = [part.term for part in problem.constraints if isinstance(part.term, CellMeans)]
    return any(bool(np.any(effective_rows(term) < _FEW_ROWS)) for term in terms)


def effective_rows(term: OnCells, squares: Array | None = None) -> Array:
    """Return the effective number of rows of every cell, infinity where it has none.

    `squares` are what each row adds to variances, over its squared weight
    (`TrainingData.variances`).
    """
    cells = term.cells
    each = np.ones(term.n_rows) if squares is None else squares
    weights = cells.data**2 * np.repeat(each, np.diff(cells.indptr))
    total = np.bincount(cells.indices, weights, minlength=term.n_statistics)
    whole = cells.sum(axis=1)  # one; of errors by class a share: they are averages over all rows
    return np.divide(whole, total, out=np.full(len(total), np.inf), where=total > 0.0)


@dataclass(frozen=True)
class ExpectedGap:
    r"""The gap of a rate of decisions on the training rows, and the one expected on new rows.

    The rate r of a group with n rows differs on as many new rows by about :math:`2 r (1 - r) / n`
    in variance. The expected gap is that of normal rates with these variances,

    .. math::
        E[\max_a r_a - \min_a r_a] = \int 1 - \prod_a \Phi_a(x) - \prod_a (1 - \Phi_a(x))\, dx,

    over the values that rates can have. It is more than the gap of their means. For the
    variance, rates of few rows are moved towards that of all rows. A search among many models finds
    one that meets a bound by chance, so that rates on the training rows are biased. This matters
    for at most 20,000 rows, for trees and networks, and where the bound costs more than .02 of the
    accuracy. Of smooth linear models the rates are then those on rows that are left out of the fit,
    to first order (:func:`~fairconstrained.decisions.left_out.score_changes`).

    There is no such formula for trees, networks, several classes and hinge losses, and where the
    bound costs so much accuracy, the model is too far from the fit on scores for it. Then the fit
    is repeated on half of the rows, and measured on the other half. Let d be its gap there minus
    its expected gap. Then :math:`d / \sqrt 2` is added, because noise falls with the root of the
    number of rows. The result is at least the training gap, and it is raised at most to the gap on
    the other half. This is not done with `confidence`, which has a test of its own, and for
    constant predictions, thresholds, a `SelectionRate`, `constraint_data` and rows in shards.

    Attributes
    ----------
    name : str
        The numbers whose gap is the largest one of the rate, such as "rate(1) - rate(0)".
    training : float
        Its gap on the training rows, of balanced rates less min(1, beta), the least of equal rates.
    expected : float
        The gap of the rate that is expected on as many new rows, less the same.
    bound : float
        The largest gap allowed, less the same.
    uncertain : str
        The rates whose gap may be the largest on new rows, for example of a group of few rows.
    """

    name: str
    training: float
    expected: float
    bound: float
    uncertain: str = field(kw_only=True)


def expected_gaps(
    at: Evaluation,
    squares: Array | None = None,
    *,
    constant: bool = False,
    likely: Sequence[Array] | None = None,
) -> tuple[ExpectedGap, ...]:
    """Return the gaps of all rates of decisions that constraints compare.

    For `squares` see :func:`effective_rows`. `constant` is whether the same class is predicted for
    every row. `likely` are the statistics of the constraints that are expected on new rows, by
    default those on the training rows.
    """
    decided, gaps = at.decided, []
    for k, part in enumerate(decided.problem.constraints):
        term, bounds = part.term, part.gap_bounds(part.term.gap_bounds)
        training = decided.statistics_of(part)
        each_likely, first, output = training if likely is None else likely[k], 0, 0
        for each in class_terms(term):
            some = slice(first, first + each.n_statistics)
            rates = training[some], each_likely[some]
            for pairs, *values, least in _gaps(each, *rates, squares, constant):
                end = f" - {least:g}" if least else ""
                # Without the bound in the name: another point of a path has another bound.
                name, other = (term.names[output + i].partition(" <= ")[0] + end for i in pairs)
                figures = *values, float(bounds[output + pairs[0]])
                gaps.append(ExpectedGap(name, *(x - least for x in figures), uncertain=other))
            first, output = first + each.n_statistics, output + each.n_outputs
    return tuple(gaps)


def corrected_by(
    gaps: Sequence[ExpectedGap], at: Evaluation, on_others: Evaluation, squares: Array | None = None
) -> tuple[ExpectedGap, ...]:
    """Return the gaps, corrected by what is found of a model of half of the rows on the others.

    `at` is its evaluation on these rows, whose `squares` are given, `on_others` that on the other
    half.
    """
    seen, unseen = expected_gaps(at, squares), expected_gaps(on_others)
    if not len(gaps) == len(seen) == len(unseen):
        return tuple(gaps)  # a stratum has no rows in a half
    corrected = []
    for gap, old, new in zip(gaps, seen, unseen, strict=True):
        expected = gap.expected + (new.training - old.expected) / 2.0**0.5
        most = max(gap.expected, new.training)
        corrected.append(replace(gap, expected=max(min(expected, most), gap.training)))
    return tuple(corrected)


def _gaps(
    term: Term, statistics: Array, likely: Array, squares: Array | None, constant: bool
) -> Iterator[tuple[tuple[int, int], float, float, float]]:
    """Yield the outputs, the largest gap and the expected gap of every family of pairs.

    The outputs are those of the largest gap and of the gap that may be the largest on new rows. The
    last number is the least gap of equal rates, other than 0 where a rate of rejections counts.
    """
    if not (isinstance(term, CellMeans | Precisions) and isinstance(term.function, Indicator)):
        return
    pairs: Any = term.combination
    if not isinstance(pairs, OrderedPairs):
        return
    gaps, stop, sizes = term.gap_of(statistics), 0, effective_rows(term, squares)
    level = 0.0 if pairs.origin is not None else float(np.min(term.constant))
    least = level and level + min(pairs.first + pairs.second, 0.0)
    exact, moments = (
        _moments(term, pairs, rates, sizes, constant) for rates in (statistics, likely)
    )
    exact[1].fill(0.0)
    of_cells = term.shares if isinstance(term, Precisions) else pairs.numbers
    wide = gaps + np.sqrt(sum(moments[1][ends] for ends in pairs.ends()))
    for family in pairs.families:
        start, stop = stop, stop + n_pairs(*family)
        if start < stop:
            which, other = (start + int(np.argmax(each[start:stop])) for each in (gaps, wide))
            sides = _sides(of_cells, *map(list, family))
            now, later = (
                _gap(term, [_extremes(*(part[side] for part in each)) for side in sides])
                for each in (exact, moments)
            )
            training = float(gaps[which])
            yield (which, other), training, training + later - now, least


def _sides(of_cells: Any, a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
    """Return the numbers on both sides of a family; those of different rows may be on either."""
    if a == b or (abs(of_cells[a]) @ abs(of_cells[b]).T).sum() > 0.0:
        return a, b
    return a + b, a + b


def _moments(
    term: Any, pairs: OrderedPairs, statistics: Array, sizes: Array, constant: bool
) -> tuple[Array, ...]:
    """Return the means, variances, least and largest values of the numbers that pairs compare."""
    rates = term.averages(statistics)
    if isinstance(term, Precisions):
        selected = np.where(np.isfinite(sizes), sizes, 0.0) * statistics  # rows of every cell
        sizes = term.shares.sign() @ selected
    sure = constant & (np.minimum(rates, 1.0 - rates) <= ROUNDING)  # on new rows as well
    variances, some = np.zeros(len(rates)), np.isfinite(sizes) & (sizes > 0.0) & ~sure
    numbers = as_csr(sp.eye_array(len(rates)) if pairs.numbers is None else pairs.numbers)
    for family in pairs.families:
        # A rate of few rows is moved towards that of all rows, and is never exactly 0 or 1.
        used = some & (abs(numbers[np.unique(np.concatenate(family))]).sum(axis=0) > 0.0)
        inside, n = rates[used].clip(0.0, 1.0), sizes[used]
        likely = (inside * n + 2.0 * (inside @ n + 1.0) / (n.sum() + 2.0)) / (n + 2.0)
        variances[used] = 2.0 * likely * (1.0 - likely) / n
    origin = 0.0 if pairs.origin is None else pairs.origin
    least, largest = (
        origin + part.sum(axis=1) for part in (numbers.minimum(0), numbers.maximum(0))
    )
    return numbers @ rates + origin, (numbers * numbers) @ variances, least, largest


def _extremes(means: Array, variances: Array, least: Array, largest: Array) -> tuple[float, float]:
    """Return the expectations of the least and of the largest of independent normal numbers.

    Numbers are between the least and the largest of their limits: rates between 0 and 1.
    """
    deviations = np.sqrt(variances)
    low = max((means - _FAR * deviations).min(), least.min())
    high = min((means + _FAR * deviations).max(), largest.max())
    if not deviations.any():
        return float(low), float(high)
    x = np.linspace(low, high, _N_POINTS)
    below = ndtr((x[:, None] - means) / np.maximum(deviations, _LEAST))
    first = low + np.trapezoid((1.0 - below).prod(axis=1), x)
    return float(first), float(high - np.trapezoid(below.prod(axis=1), x))


def _gap(term: CellMeans | Precisions, ends: Sequence[tuple[float, float]]) -> float:
    """Return the largest gap of pairs of numbers with these extremes."""
    pairs: Any = term.combination
    first, second = ends[0][pairs.first > 0.0], ends[1][pairs.second > 0.0]
    if isinstance(term, Ratios):
        return 1.0 - first / second if second > 0.0 else 0.0
    return float(pairs.first * first + pairs.second * second)
