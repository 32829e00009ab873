"""Partial demographic parity: fairness among the rows whose rank is in a range."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint, WeightedScores
from fairconstrained.data.groups import Groups
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Surrogate
from fairconstrained.metrics.scores import distances, distribution, part_within, within_ranks
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.cell_means import OnCells, rows_by_cell
from fairconstrained.terms.threshold_rates import ClippedRates, ThresholdRates
from fairconstrained.utils.arguments import check_count, check_ranks
from fairconstrained.utils.arrays import Array

_WIDTH, _STEP = 0.25, 0.05  # of the ranges that ranks="auto" chooses among
_TIE = 1e-9  # a difference of gaps that may come from rounding
_DOUBLINGS, _HALVINGS = 40, 30  # of the interval in which a threshold lies

# A sigmoid of scale 1 is as wide as the whole distribution of the scores, so that it cannot
# resolve a range of ranks. 0.25 follows the predictions; 0.15 is not better.
SHARP: Mapping[str, Callable[[], Surrogate]] = {"sigmoid": partial(Sigmoid, 0.25), "ramp": Ramp}


@dataclass(frozen=True, eq=False)
class RankGaps(OnCells):
    r"""The gaps of predictions in a range of ranks, for every pair of cells, minus kappa.

    .. math::
        \max_\theta \big| \Pr(s > \theta \mid k, \bar F_k(s) \in I) -
        \Pr(s > \theta \mid k', \bar F_{k'}(s) \in I) \big|,

    where :math:`\bar F_k(s)` is the share of cell k with scores above s. The gaps are piecewise
    constant, so that their derivatives are zero, and their statistics are not sums over rows.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        See :class:`OnCells`.
    ranks : tuple of float
        I = [alpha, beta).
    n_auxiliary : int, default=0
        The number of auxiliary variables of the term whose zero-one version this is; the gaps do
        not depend on them.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`.

    References
    ----------
    IDCA, equation (6).
    """

    ranks: tuple[float, float]
    n_auxiliary: int = 0
    of_differences = True

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the gaps; their pullback gives zeros."""
        inside = [within_ranks(scores[rows], w, self.ranks) for rows, w in self._rows_by_cell]
        zeros = np.zeros(self.n_rows), np.zeros(self.n_auxiliary)
        return distances(inside), lambda u: zeros

    def zero_one(self) -> "RankGaps":
        """Return the term: it has no surrogate."""
        return self


@dataclass(frozen=True, eq=False)
class PartialRates(ThresholdRates):
    """Rates at free thresholds that are to be near given ranks in all groups."""

    rates: tuple[str, ...] = ()
    ranks: tuple[float, float] = (0.0, 1.0)
    kappa: float = 0.0

    def auxiliary_for(self, value: Callable[[Array], Array]) -> Array:
        """Return the thresholds at which the largest outputs are least, by bisection.

        The bounds p <= rate are violated more for higher thresholds, the bounds on the other side
        for lower ones.
        """

        def too_low(thresholds: Array) -> Array:
            below, above = value(thresholds).reshape(2, max(len(self.rates), 1), -1).max(axis=1)
            return np.asarray(below < above)

        return _bisected(too_low, self.auxiliary_start)

    def zero_one(self) -> Term:
        """Return the gaps of decisions in the range, whatever the thresholds are."""
        inside = f" | rank in [{self.ranks[0]:g}, {self.ranks[1]:g})"
        names = tuple(
            f"|{a} - {b}|{inside} <= {self.kappa:g}" for a, b in combinations(self.rates, 2)
        )
        offset = np.full(len(names), self.kappa)
        return RankGaps(self.cells, self.ranks, self.n_auxiliary, offset=offset, names=names)

    @property
    def gap_bounds(self) -> Array:
        """Kappa, for every threshold."""
        return np.full(self.n_auxiliary, self.kappa)

    def gap_of(self, statistics: Array) -> Array:
        """Return, for every threshold, how far apart the groups' rates are, in units of kappa."""
        return np.ptp(statistics.reshape(len(self.rates), -1), axis=0) / np.ptp(self.ranks)


def _bisected(too_low: Callable[[Array], Array], start: Array) -> Array:
    """Return the thresholds above which they are not too low, from intervals about a start."""
    for width in 2.0 ** np.arange(_DOUBLINGS):
        low, high = start - width, start + width
        if np.all(too_low(low) & ~too_low(high)):
            break
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        up = too_low(middle)
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return 0.5 * (low + high)


class _RankConstraint(Constraint, kw_only=True):
    """A constraint on a range of ranks, which it may choose."""

    ranks: str | tuple[float, float] = "auto"

    gap_title = "largest difference of two groups' selection rates within the ranks, per width"
    scores_title = "steep sigmoids"
    cannot_be_tested = ""
    needs_labels = False
    _functions: ClassVar = SHARP
    _claimed: ClassVar[Mapping[str, Any]] = {}

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        kappa, (low, high) = self.checked_kappa(), self._ranks(y, weight)
        ends = f", {low:g}, {high:g})"
        text = f"(clip({{first}}{ends} - clip({{second}}{ends}) / {high - low:g} <= {{bound}}"
        return measures.Compared(
            [measures.means(groups, weight, self._warn)],
            measures.COMPARISONS["pairs"],
            kappa,
            (1.0 / (high - low), -1.0 / (high - low)),
            text,
            kind=partial(ClippedRates, ends=(low, high)),
            chosen={"ranks": (low, high)},
            claimed={"ranks": (low, high), **self._claimed},
        )

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: ranks="auto" chooses the range in `fit`."""
        chosen = "ranks='auto' chooses the range on the training rows; give ranks"
        return chosen if self.rank_range is None else ""

    @property
    def rank_range(self) -> tuple[float, float] | None:  # type: ignore[override]
        """The range of ranks, None for "auto"."""
        auto = isinstance(self.ranks, str) and self.ranks == "auto"
        return None if auto else check_ranks(self.ranks, '"auto" or ')

    def settled(self, scores: WeightedScores) -> Self:
        """Return the constraint with a range chosen by the model without constraints, if "auto"."""
        if self.rank_range is not None:
            return self
        values, rows = scores()
        weight = rows.sample_weight
        assert rows.groups is not None, "estimators ask for groups if the constraint needs them"
        cells = rows_by_cell(measures.means(rows.groups, weight, self._warn).cells)
        ranges = _ranges_around(float(np.average(values > 0.0, weights=weight)))
        groups = [distribution(values[k], w) for k, w in cells]
        parts = ([part_within(*group, ranks) for group in groups] for ranks in ranges)
        gaps = np.array([distances(part).max(initial=0.0) for part in parts])
        ranks = ranges[int(np.argmax(gaps >= gaps.max() - _TIE))]  # the first of equal ones
        return self.with_defaults().set_params(ranks=ranks)

    def _ranks(self, y: Array, weight: Array) -> tuple[float, float]:
        """Return the range; "auto" takes the one around the share of positive labels."""
        ranges = _ranges_around(float(np.average(y > 0, weights=weight)))
        return ranges[0] if self.rank_range is None else self.rank_range


def _ranges_around(share: float) -> list[tuple[float, float]]:
    """Return the ranges that contain a share, the one it is nearest to the middle of first.

    Of two that are equally near the one of the lower scores is first.
    """
    lows = np.arange(round((1.0 - _WIDTH) / _STEP) + 1) * _STEP
    ranges = [(round(float(low), 10), round(float(low + _WIDTH), 10)) for low in lows]
    around = [(low, high) for low, high in ranges if low - _TIE <= share <= high + _TIE]
    return sorted(around, key=lambda ends: (round(abs(0.5 * sum(ends) - share), 9), -ends[0]))


class PartialDemographicParity(_RankConstraint, kw_only=True):
    r"""Partial demographic parity: equal score distributions in a range of ranks.

    Among the rows whose ranks within their group are between alpha and beta, the selection rates of
    the groups differ by at most kappa at any threshold. This holds if for every p of a grid of
    `n_ranks` points in [alpha, beta - kappa (beta - alpha)) there is a threshold :math:`\theta_p`
    with

    .. math::
        p \le \frac{\sum_{i \in k} w_i\, \sigma(s_i - \theta_p)}{\sum_{i \in k} w_i}
        \le p + \kappa\, (\beta - \alpha) \quad \text{for every group } k.

    The thresholds are additional variables; they start where the inequalities hold for w = 0.
    Outputs are divided by beta - alpha, so that violations are in units of kappa. `decision_gap_`
    is the gap of the predictions, :math:`\max_\theta |\Pr(s > \theta \mid k, \text{rank} \in I) -
    \Pr(s > \theta \mid k', \text{rank} \in I)|`.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function :math:`\sigma` that replaces the indicator. None takes that of the estimator,
        or the sigmoid. If it is given by name, the sigmoid has scale 0.25 here: with scale 1 it is
        too smooth for a range of ranks.
    ranks : "auto" or tuple of float, default="auto"
        The range [alpha, beta) of ranks, 0 <= alpha < beta <= 1, where 0 is the highest score.
        "auto" takes, among the ranges of width 0.25 (by steps of 0.05) that contain the rate of
        positive decisions of the model without constraints, the one in which that model is most
        unfair. `bind` does not have that model and takes the range whose middle is nearest to the
        share of positive labels.
    n_ranks : int, default=10
        The number of points p: the midpoints of as many equal parts of the interval.

    References
    ----------
    IDCA, equation (13), lemma 5.1; section 4 for the choice of the range.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import PartialDemographicParity
    >>> constraint = PartialDemographicParity(0.1, ranks=(0.0, 0.5), n_ranks=2)
    >>> term = constraint.bind(np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4))
    >>> term.names[:2]
    ('rate(a, s > theta_1) >= 0.1125', 'rate(a, s > theta_2) >= 0.3375')
    >>> term.auxiliary_start.round(3), bool(np.all(term.value(np.zeros(4)) < 0))
    (array([0.459, 0.141]), True)
    >>> term.zero_one().gap(np.array([0.0, 4.0, 0.0, 3.0]))  # the upper halves, 4 against 3
    array([1.])
    """

    n_ranks: int = 10

    _claimed: ClassVar = {"thresholds": None, "one_output": False}

    def _term(self, y: Array, groups: Groups, weight: Array) -> PartialRates:
        kappa, count = self.checked_kappa(), check_count("n_ranks", self.n_ranks)
        low, high = self._ranks(y, weight)
        rates, width = measures.means(groups, weight, self._warn), high - low
        p = low + (np.arange(count) + 0.5) / count * (1.0 - kappa) * width
        if kappa == 1.0 or len(rates) < 2:  # nothing can be violated
            p = p[:0]
        surrogate, tops, n_groups = self._function(), p + kappa * width, len(rates)
        middles = 0.5 * (p + tops)
        names = [
            f"{name[:-1]}, s > theta_{j + 1}) {sign} {bound:g}"
            for sign, bounds in ((">=", p), ("<=", tops))
            for name in rates.names[:-1]
            for j, bound in enumerate(bounds)
        ]
        eye = sp.eye_array(n_groups * len(p), format="csr") / width
        return PartialRates(
            cells=rates.cells,
            function=surrogate,
            # Where scores of 0 have the rates in the middle.
            thresholds=_bisected(lambda theta: surrogate.value(-theta) > middles, np.zeros(len(p))),
            combination=sp.csr_array(sp.vstack([-eye, eye], format="csr")),
            offset=np.concatenate([np.tile(-p, n_groups), np.tile(tops, n_groups)]) / width,
            free=True,
            names=tuple(names),
            rates=tuple(rates.names[:-1]),
            ranks=(low, high),
            kappa=kappa,
            chosen={"ranks": (low, high)},
        )


class WeakPartialDemographicParity(_RankConstraint):
    r"""Weak partial demographic parity: equal selection rates in a range of ranks.

    .. math::
        \big| \mathrm{clip}(\mathrm{rate}_k, \alpha, \beta)
        - \mathrm{clip}(\mathrm{rate}_{k'}, \alpha, \beta) \big| \le \kappa\, (\beta - \alpha),
        \qquad \mathrm{rate}_k = \frac{\sum_{i \in k} w_i\, \sigma(s_i)}{\sum_{i \in k} w_i}

    for all groups k, k'; both sides are divided by beta - alpha, so that violations are in units of
    kappa. (min{r, beta} - min{r, alpha} in the paper is clip(r, alpha, beta) - alpha.) The clipping
    has kinks; its convex parts are those of the paper's appendix B.3.

    Parameters
    ----------
    kappa, surrogate, ranks
        See :class:`PartialDemographicParity`.

    References
    ----------
    IDCA, equation (17), lemma 5.2, appendix B.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import WeakPartialDemographicParity
    >>> term = WeakPartialDemographicParity(0.1, ranks=(0.0, 0.5)).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    '(clip(rate(a), 0, 0.5) - clip(rate(b), 0, 0.5)) / 0.5 <= 0.1'
    >>> term.zero_one().gap(np.array([1.0, 1.0, 1.0, -1.0]))  # rates 1 and 0.5
    array([0., 0.])
    """

    subtracts_kappa = True
