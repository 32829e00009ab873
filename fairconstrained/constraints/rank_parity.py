"""Partial demographic parity: fairness among the rows whose rank is in a range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from fairconstrained.constraints.base import Constraint, HasScores
from fairconstrained.constraints.measures import COMPARISONS, Measures, group_rates, rates_of
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.clipped_rates import ClippedRates
from fairconstrained.terms.rank_gaps import RankGaps
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_count, check_kappa

_WIDTH, _STEP = 0.25, 0.05  # of the ranges that ranks="auto" chooses among
_FAR = 40.0  # scales from 0 where a surrogate is as good as 0 or 1

# A range of ranks is a part of the scores' distribution: a sigmoid of scale 1 is as wide as all
# of it and cannot tell the range from the rest. 0.25 follows the decisions; 0.15 no better.
SHARP: Mapping[str, Callable[[], Surrogate]] = {"sigmoid": partial(Sigmoid, 0.25), "ramp": Ramp}


class _RankConstraint(Constraint):
    """A constraint on a range of ranks, which it may choose."""

    ranks: str | tuple[float, float]

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: ranks="auto" chooses the range in `fit`."""
        chosen = "the range of ranks was chosen on the training rows (ranks='auto')"
        return chosen if _is_auto(self.ranks) else ""

    @property
    def rank_range(self) -> tuple[float, float] | None:  # type: ignore[override]
        """The range of ranks, None for "auto"."""
        return None if _is_auto(self.ranks) else check_ranks(self.ranks)

    def build(
        self, model: Model, data: TrainingData, unconstrained: HasScores
    ) -> CompositeFunction:
        """Return the term with a range chosen by the model without constraints, if it is "auto".

        Parameters
        ----------
        model, data, unconstrained
            See :meth:`Constraint.build`.
        """
        if not _is_auto(self.ranks):
            return super().build(model, data, unconstrained)
        assert data.groups is not None, "estimators ask for groups if the constraint needs them"
        scores, rows = unconstrained.weighted_scores(data)
        assert rows.groups is not None
        weight = rows.sample_weight
        measures = group_rates(rows.groups, weight, type(self).__name__)
        share = float(np.average(scores > 0.0, weights=weight))
        gaps = partial(_largest_gap, rates_of(measures, Sigmoid()), scores)
        ranks = max(_ranges_around(share), key=gaps)
        fixed = self.with_defaults().set_params(ranks=ranks)
        return fixed.build(model, data, unconstrained)

    def _ranks(self, y: Array, sample_weight: Array) -> tuple[float, float]:
        """Return the range; "auto" takes the one around the share of positive labels."""
        if not _is_auto(self.ranks):
            return check_ranks(self.ranks)
        return _ranges_around(float(np.average(np.asarray(y) > 0, weights=sample_weight)))[0]


def _is_auto(ranks: object) -> bool:
    return isinstance(ranks, str) and ranks == "auto"


def check_ranks(ranks: str | Iterable[float]) -> tuple[float, float]:
    """Return a range of ranks as two floats.

    Raises
    ------
    ValueError
        If it is not "auto" or two numbers 0 <= alpha < beta <= 1.
    """
    try:
        low, high = (float(end) for end in ranks)
        valid = 0.0 <= low < high <= 1.0 and not isinstance(ranks, str)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            'ranks must be "auto" or two numbers 0 <= alpha < beta <= 1, such as (0.05, 0.3) for '
            f"those between the top 5% and the top 30%; got {ranks!r}."
        )
    return low, high


def _ranges_around(share: float) -> list[tuple[float, float]]:
    """Return the ranges that contain a share, the one it is nearest to the middle of first."""
    lows = np.arange(round((1.0 - _WIDTH) / _STEP) + 1) * _STEP
    ranges = [(round(float(low), 10), round(float(low + _WIDTH), 10)) for low in lows]
    around = [(low, high) for low, high in ranges if low <= share <= high]
    return sorted(around, key=lambda ends: abs(0.5 * sum(ends) - share))


def _largest_gap(rates: CellMeans, scores: Array, ranks: tuple[float, float]) -> float:
    return float(_rank_gaps(rates, ranks, 0.0).gap(scores).max(initial=0.0))


def _rank_gaps(
    rates: CellMeans, ranks: tuple[float, float], kappa: float, n_auxiliary: int = 0
) -> RankGaps:
    """Return the gaps of decisions for all pairs of groups."""
    n = rates.n_outputs
    first, second = (part.tolist() for part in np.triu_indices(n, 1))
    inside = f" | rank in [{ranks[0]:g}, {ranks[1]:g})"
    names = tuple(
        f"|{rates.names[a]} - {rates.names[b]}|{inside} <= {kappa:g}"
        for a, b in zip(first, second, strict=True)
    )
    return RankGaps(rates, ranks, np.full(len(names), kappa), n_auxiliary, names)


class PartialDemographicParity(_RankConstraint):
    r"""Partial demographic parity: equal score distributions in a range of ranks.

    Among those whose scores are between the top alpha and the top beta of their group, decisions
    at any threshold are to differ by at most kappa. That is so if for every p of a grid of
    `n_ranks` in [alpha, beta - kappa (beta - alpha)) there is a threshold :math:`\theta_p` with

    .. math::
        p \le \frac{\sum_{i \in k} w_i\, \sigma(s_i - \theta_p)}{\sum_{i \in k} w_i}
        \le p + \kappa\, (\beta - \alpha) \quad \text{for every group } k.

    The thresholds are variables of the constraint's own; they start where the inequalities hold
    for w = 0. Outputs are divided by beta - alpha, so that a violation counts in units of kappa.
    `decision_gap_` is the gap of the decisions themselves,
    :math:`\max_\theta |\Pr(s > \theta \mid k, \text{rank} \in I) - \Pr(s > \theta \mid k',
    \text{rank} \in I)|`.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        sigma. None takes the estimator's, or the sigmoid outside of one. By name the sigmoid has
        scale 0.25 here: with scale 1 it is too blunt for a range of ranks.
    ranks : "auto" or tuple of float, default="auto"
        [alpha, beta), 0 being the top. "auto" takes, among the ranges of width 0.25 (by steps of
        0.05) that contain the rate of positive decisions of the model without constraints, the one
        in which that model is most unfair. `bind` does not have that model and takes the range
        whose middle is nearest to the share of positive labels.
    n_ranks : int, default=10
        The number of p's, in the middles of as many equal parts of the interval.

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

    def __init__(
        self,
        kappa: float | None = None,
        *,
        surrogate: str | Surrogate | None = None,
        ranks: str | tuple[float, float] = "auto",
        n_ranks: int = 10,
    ):
        self.kappa = kappa
        self.surrogate = surrogate
        self.ranks = ranks
        self.n_ranks = n_ranks

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> ThresholdRates:
        """Return the term with two outputs per group and p, and a variable per p.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1; they choose the range if it is "auto".
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If kappa, the surrogate's name, the ranks or their number are not valid, or groups are
            missing.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows, or there are fewer than two groups.
        """
        groups = check_groups(groups, len(y))
        kappa = check_kappa(0.05 if self.kappa is None else self.kappa)
        count = check_count("n_ranks", self.n_ranks)
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SHARP, Surrogate)
        low, high = self._ranks(y, sample_weight)
        measures = group_rates(groups, np.asarray(sample_weight), type(self).__name__)
        width = high - low
        share = (np.arange(count) + 0.5) / count
        ranks = low + share * (1.0 - kappa) * width
        if kappa == 1.0 or len(measures) < 2:  # nothing can be violated
            ranks = ranks[:0]
        return _partial_term(measures, surrogate, ranks, kappa, (low, high))


def _partial_term(
    measures: Measures, surrogate: Surrogate, p: Array, kappa: float, ranks: tuple[float, float]
) -> _PartialRates:
    """Return p <= rate <= p + kappa (beta - alpha) for all groups, over beta - alpha."""
    width, n_groups, count = ranks[1] - ranks[0], len(measures), len(p)
    eye = sp.eye_array(n_groups * count, format="csr") / width
    tops = p + kappa * width
    rates = [name[:-1] + f", s > theta_{j + 1})" for name in measures.names for j in range(count)]
    texts = [(">=", p), ("<=", tops)]
    names = tuple(
        f"{rate} {sign} {bound:g}"
        for sign, bounds in texts
        for rate, bound in zip(rates, np.tile(bounds, n_groups), strict=True)
    )
    return _PartialRates(
        rates=rates_of(measures, surrogate),
        thresholds=np.array([_threshold(surrogate, rate) for rate in 0.5 * (p + tops)]),
        combination=sp.csr_array(sp.vstack([-eye, eye], format="csr")),
        offset=np.concatenate([np.tile(-p, n_groups), np.tile(tops, n_groups)]) / width,
        free=True,
        names=names,
        ranks=ranks,
        kappa=kappa,
    )


def _threshold(surrogate: Surrogate, rate: float) -> float:
    """Return theta with sigma(-theta) = rate: where scores of 0 have that rate."""
    far = _FAR * surrogate.scale

    def excess(theta: float) -> float:
        return float(surrogate.value(np.array([-theta]))[0]) - rate

    return float(brentq(excess, -far, far, xtol=1e-12 * far))


@dataclass(frozen=True, eq=False)
class _PartialRates(ThresholdRates):
    """Rates at free thresholds that are to be near given ranks in all groups."""

    ranks: tuple[float, float] = (0.0, 1.0)
    kappa: float = 0.0

    def _summand(self) -> ThresholdRates:
        """Return the rates alone: the zero-one version of the whole is no sum."""
        return ThresholdRates(
            self.rates,
            self.thresholds,
            self.combination,
            self.offset,
            self.free,
            self.names,
            self.constant,
        )

    def zero_one(self) -> Term:
        """Return the gaps of decisions in the range, whatever the thresholds are."""
        return _rank_gaps(self.rates, self.ranks, self.kappa, self.n_auxiliary)

    @property
    def gap_bounds(self) -> Array:
        """Kappa, for every threshold."""
        return np.full(self.n_auxiliary, self.kappa)

    def gap_of(self, statistics: Array) -> Array:
        """Return, for every threshold, how far apart the groups' rates are, in units of kappa."""
        rates = statistics.reshape(self.rates.n_statistics, -1)
        return np.ptp(rates, axis=0) / (self.ranks[1] - self.ranks[0])


class WeakPartialDemographicParity(_RankConstraint):
    r"""Weak partial demographic parity: equal selection rates in a range of ranks.

    .. math::
        \big| \mathrm{clip}(\mathrm{rate}_k, \alpha, \beta)
        - \mathrm{clip}(\mathrm{rate}_{k'}, \alpha, \beta) \big| \le \kappa\, (\beta - \alpha),
        \qquad \mathrm{rate}_k = \frac{\sum_{i \in k} w_i\, \sigma(s_i)}{\sum_{i \in k} w_i}

    for all groups k, k'; both sides are divided by beta - alpha, so that a violation counts in
    units of kappa. (min{r, beta} - min{r, alpha} in the paper is clip(r, alpha, beta) - alpha.) The
    clipping has kinks; its convex parts are those of the paper's appendix B.3.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        sigma. None takes the estimator's, or the sigmoid outside of one. By name the sigmoid has
        scale 0.25 here, see :class:`PartialDemographicParity`.
    ranks : "auto" or tuple of float, default="auto"
        [alpha, beta), 0 being the top; see :class:`PartialDemographicParity`.

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

    def __init__(
        self,
        kappa: float | None = None,
        *,
        surrogate: str | Surrogate | None = None,
        ranks: str | tuple[float, float] = "auto",
    ):
        self.kappa = kappa
        self.surrogate = surrogate
        self.ranks = ranks

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> ClippedRates:
        """Return the term with one output per ordered pair of groups.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1; they choose the range if it is "auto".
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If kappa, the surrogate's name or the ranks are not valid, or groups are missing.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows, or there are fewer than two groups.
        """
        groups = check_groups(groups, len(y))
        kappa = check_kappa(0.05 if self.kappa is None else self.kappa)
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SHARP, Surrogate)
        low, high = self._ranks(y, sample_weight)
        measures = group_rates(groups, np.asarray(sample_weight), type(self).__name__)
        first, second, pairs = COMPARISONS["pairs"](measures)
        width = high - low
        ends = f", {low:g}, {high:g})"
        return ClippedRates(
            rates_of(measures, surrogate),
            (low, high),
            sp.csr_array((first - second) / width),
            np.full(len(pairs), kappa),
            tuple(f"(clip({a}{ends} - clip({b}{ends}) / {width:g} <= {kappa:g}" for a, b in pairs),
        )
