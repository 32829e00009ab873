"""The decisions that thresholds on given scores can make, and the best by an integer program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from fairconstrained.constraints.parity import Precisions
from fairconstrained.decisions.candidates import correct_predictions
from fairconstrained.decisions.score_line import outputs_at
from fairconstrained.functions.base import Indicator
from fairconstrained.models.trees import ThresholdModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans, rates_on_line
from fairconstrained.terms.classes import counts_predictions
from fairconstrained.terms.ordered_pairs import OrderedPairs, as_csr, n_pairs
from fairconstrained.utils.arrays import Array, SparseMatrix, at_most

_MOST_ENTRIES = 2**24  # of a table of rates; with more, not every threshold is a choice
_BLOCK = 2**12  # choices of a single threshold whose constraints are evaluated at once
_MOST_CHOICES = 600  # of all groups together in one program
_LEAST_CHOICES = 12  # of a group
_NODES = 60_000  # times choices: what branch and bound may cost
_GAP, _WIDE_GAP = 1e-9, 3e-4  # relative, at which a program with all choices, and with some, ends
_MARGINS = (0.0, 2e-6)  # the second one exceeds the tolerance of the program's solver
_FINER = 4  # how much nearer to each other the next choices are


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
    >>> round(float(band.top(0.3)), 6)
    0.4
    """

    cells: Array  # the cells, at least two, (n_cells,)
    # the factors, and l; where shifts of the constraints differ, the largest l of them
    alpha: float
    beta: float
    level: float

    def top(self, bottom: Array | float) -> Array:
        """Return h(t), the largest rate that goes with a smallest one."""
        return np.asarray((self.beta * np.asarray(bottom) - self.level) / self.alpha)


class Choices:
    """The thresholds that one group of rows may have, from the highest to the lowest.

    The first one selects no row, the last one all rows. `cells` are those of these rows; the first
    one is the accuracy's.
    """

    def __init__(self, scores: Array, cells: SparseMatrix, thresholds: Sequence[float] | Array):
        present = np.unique(np.append(0, cells.indices))
        self.cells = present[1:] - 1  # those of the constraints that have rows of this group
        falling = np.asarray(thresholds, dtype=float)
        most = max(_MOST_ENTRIES // len(present), 256)
        if len(falling) > most:
            falling = falling[np.linspace(0, len(falling) - 1, most).astype(int)]
        self.thresholds = falling
        term = CellMeans(sp.csc_array(as_csr(cells)[present]), Indicator())
        (rates,) = rates_on_line([term], scores, np.ones(len(scores)), -falling)
        # what the group's decisions add to the accuracy, and to the rates of its cells
        self.correct, self.rates = rates[0], rates[1:]

    def __len__(self) -> int:
        """Return the number of choices."""
        return len(self.thresholds)


class ThresholdChoices:
    """All choices of the thresholds of a problem, and the constraints on the rates they add up to.

    The model of the problem is a :class:`~fairconstrained.models.trees.ThresholdModel`. The limits
    are the thresholds that select no row and all rows; `fixed` thresholds are given. A constraint
    that is not a function of the decisions raises a ValueError.
    """

    def __init__(
        self,
        problem: Problem,
        y: Array,
        sample_weight: Array,
        limits: tuple[float, float],
        fixed: Mapping[int, float],
    ):
        model = problem.objective.model
        assert isinstance(model, ThresholdModel)
        # the constraints, whose cells follow each other
        self.parts: list[Any] = [_counted(part, model) for part in problem.constraints]
        # the first cell of every constraint, and the number of cells
        self.ends = np.cumsum([0, *(part.term.n_statistics for part in self.parts)])
        self.n_cells = int(self.ends[-1])
        terms = [correct_predictions(y, sample_weight), *(part.term for part in self.parts)]
        cells = sp.csc_array(sp.vstack([as_csr(term.cells) for term in terms]))
        scores, codes = model.given[model.rows], model.codes[model.rows]
        self.groups: list[Choices] = []  # one entry for every threshold
        for k in range(model.n_thresholds):
            rows = np.flatnonzero(codes == k)
            falling = np.sort(scores[rows])[::-1]
            at = [fixed[k]] if k in fixed else _between(falling, limits)
            self.groups.append(Choices(scores[rows], cells[:, rows], at))

    @cached_property
    def bands(self) -> tuple[Band, ...] | None:
        """The constraints as bands; None if some are others."""
        bands = []
        for part, below in zip(self.parts, self.ends, strict=False):
            level, stop = _level(part), 0
            pairs = part.term.combination
            if not isinstance(pairs, OrderedPairs):
                return None
            numbers = as_csr(pairs.numbers)
            for a, b in pairs.families:
                rows, start, stop = numbers[list(a)], stop, stop + n_pairs(a, b)
                if a != b or np.any(rows.sum(axis=1) != 1.0) or np.any(np.diff(rows.indptr) != 1):
                    return None
                if start < stop:
                    factors = max(pairs.first, pairs.second), -min(pairs.first, pairs.second)
                    largest = float(level[start:stop].max())
                    bands.append(Band(int(below) + rows.indices, *factors, largest))
        return tuple(bands)

    def correct(self, positions: Sequence[int]) -> float:
        """Return what the choices add to the accuracy."""
        return float(sum(group.correct[p] for group, p in zip(self.groups, positions, strict=True)))

    def thresholds(self, positions: Sequence[int]) -> Array:
        """Return the thresholds that are chosen."""
        chosen = zip(self.groups, positions, strict=True)
        return np.array([group.thresholds[p] for group, p in chosen])

    def violations(self, rates: Array) -> Array:
        """Return the largest constraint at rates of shape (n_cells, n_points), (n_points,)."""
        blocks = []
        for k in range(0, rates.shape[1], _BLOCK):
            each = np.split(rates[:, k : k + _BLOCK], self.ends[1:-1])
            outputs = [outputs_at(part, some) for part, some in zip(self.parts, each, strict=False)]
            blocks.append(np.vstack([each[0][:0], *outputs]).max(axis=0, initial=-np.inf))
        return np.concatenate(blocks)

    def rank(self, positions: Sequence[int]) -> tuple[bool, float]:
        """Return what is larger for better choices: the bound first, then the accuracy."""
        rates = np.zeros((self.n_cells, 1))
        for group, p in zip(self.groups, positions, strict=True):
            rates[group.cells, 0] += group.rates[:, p]
        (violation,) = self.violations(rates)
        met = bool(at_most(violation))
        return met, self.correct(positions) if met else -float(violation)


def _counted(part: CompositeFunction, model: ThresholdModel) -> CompositeFunction:
    """Return a constraint with the indicator, which counts decisions in cells of rows."""
    strict = part.zero_one()
    counted = counts_predictions(strict.term) and getattr(strict.term, "signs", None) is None
    counted |= isinstance(strict.term, Precisions) and model.n_thresholds == 1
    if not counted or part.model is not model:
        name = str(strict.term.names[0]) if strict.n_outputs else "a constraint"
        raise ValueError(
            f"thresholds bound the decisions, and {name!r} is not a bound on rates of decisions in "
            "groups of the rows: use 'demographic_parity', 'equal_opportunity', 'equalized_odds'. "
            "Precisions, ratios of two rates, need per_group=False."
        )
    return strict


def _level(part: CompositeFunction) -> Array:
    """Return the outputs for rates of zero."""
    return np.asarray(part.term.head(np.zeros(part.term.n_statistics)) + part.level)


def _between(ordered: Array, limits: tuple[float, float]) -> Array:
    """Return thresholds in falling order, between scores and beyond them; for no row the first."""
    none, every = limits
    ends = np.flatnonzero(ordered[1:] < ordered[:-1])
    above, below = ordered[ends], ordered[ends + 1]
    middle = 0.5 * (above + below)
    inner = np.where((middle < above) & (middle >= below), middle, below)
    return np.concatenate([[none], inner, [every]])[: None if len(ordered) else 1]


def choose(choices: ThresholdChoices, starts: Sequence[Sequence[int]]) -> tuple[list[int], float]:
    r"""Return accurate choices that meet the constraints, and a bound on what choices can add.

    With :math:`x_{kp} = 1` where group k has choice p, the accuracy and the constraints are linear:

    .. math::
        \max \sum_{kp} \mathrm{correct}_{kp}\, x_{kp} \quad \text{s.t.} \quad
        \sum_p x_{kp} = 1, \quad R \sum_{kp} \mathrm{rates}_{kp}\, x_{kp} + l \le 0.

    With few rows the program has all choices, and its answer is the best one. With many rows it has
    choices at equal distances, then those near its answer, until these are next to each other.

    Parameters
    ----------
    choices : ThresholdChoices
        The choices and the constraints.
    starts : sequence of sequences of int
        Choices that the answer is compared with.

    Returns
    -------
    positions : list of int
        A choice for every group.
    bound : float
        No choices that meet the constraints add more to the accuracy; infinity if there is no
        proof, as with many rows.
    """
    best = max(map(list, starts), key=choices.rank)
    lengths = np.array([len(group) for group in choices.groups])
    most = max(_MOST_CHOICES // len(lengths), _LEAST_CHOICES)
    few = lengths.sum() <= _MOST_CHOICES or lengths.max() <= most
    steps = np.ones_like(lengths) if few else np.maximum(lengths // most, 1)
    kept = [np.append(np.arange(0, n - 1, s), n - 1) for n, s in zip(lengths, steps, strict=True)]
    while True:
        answers, bound = _solved(choices, kept)
        best = max([best, *answers], key=choices.rank)
        if steps.max() == 1:
            return best, bound if few else np.inf
        steps = np.maximum(steps // _FINER, 1)
        near = np.arange(-(most // 2), most // 2 + 1)
        kept = [
            np.unique(np.clip([0, *(p + s * near), n - 1], 0, n - 1))
            for p, s, n in zip(best, steps, lengths, strict=True)
        ]


def _solved(choices: ThresholdChoices, kept: Sequence[Array]) -> tuple[list[list[int]], float]:
    """Return the best of some choices in a list, empty if none was found, and the bound on them."""
    bound, whole = np.inf, sum(map(len, kept)) == sum(map(len, choices.groups))
    for margin in _MARGINS:
        shares, limit = _program(choices, kept, margin, _GAP if whole else _WIDE_GAP)
        bound = limit if margin == 0.0 else bound
        positions = [int(rows[np.argmax(part)]) for rows, part in zip(kept, shares, strict=False)]
        if not positions or choices.rank(positions)[0]:
            return [positions] if positions else [], bound
    return [], bound


def _program(
    choices: ThresholdChoices, kept: Sequence[Array], margin: float, gap: float
) -> tuple[list[Array], float]:
    """Return the share of every choice in its group, nothing if there is no answer, and a bound."""
    sizes, pairs = [len(group) for group in kept], list(zip(choices.groups, kept, strict=True))
    combination = as_csr(sp.block_diag([as_csr(part.term.combination) for part in choices.parts]))
    level = np.concatenate([_level(part) for part in choices.parts])
    each = [combination[:, g.cells] @ sp.csc_array(g.rates[:, rows]) for g, rows in pairs]
    one_each = sp.block_diag([as_csr(np.ones((1, size))) for size in sizes])
    answer = milp(
        -np.concatenate([group.correct[rows] for group, rows in pairs]),
        constraints=[
            LinearConstraint(sp.csc_array(one_each), 1.0, 1.0),
            LinearConstraint(sp.csc_array(sp.hstack(each)), -np.inf, -level - margin),
        ],
        bounds=Bounds(0.0, 1.0),
        integrality=np.ones(sum(sizes), dtype=int),
        options={"node_limit": max(_NODES // sum(sizes), 1), "mip_rel_gap": gap},
    )
    bound = np.inf if answer.mip_dual_bound is None else -float(answer.mip_dual_bound)
    return [] if answer.x is None else np.split(answer.x, np.cumsum(sizes)[:-1]), bound
