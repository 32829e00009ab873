"""Partial demographic parity: fairness among the rows whose rank is in a range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fairconstrained.constraints._partial_rates import PartialRates, partial_term
from fairconstrained.constraints.base import Constraint, HasScores
from fairconstrained.constraints.claims import Claim
from fairconstrained.constraints.measures import (
    COMPARISONS,
    Compared,
    Requirement,
    group_rates,
    rates_of,
)
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Surrogate
from fairconstrained.models.base import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import rows_by_cell
from fairconstrained.terms.clipped_rates import ClippedRates
from fairconstrained.terms.head import as_csr
from fairconstrained.terms.rank_gaps import distances, distribution, part_within
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_count, check_ranks

_WIDTH, _STEP = 0.25, 0.05  # of the ranges that ranks="auto" chooses among
_TIE = 1e-9  # a difference of gaps that may come from rounding

# A sigmoid of scale 1 is as wide as the whole distribution of the scores, so that it cannot
# resolve a range of ranks. 0.25 follows the predictions; 0.15 is not better.
SHARP: Mapping[str, Callable[[], Surrogate]] = {"sigmoid": partial(Sigmoid, 0.25), "ramp": Ramp}


class _RankConstraint(Constraint):
    """A constraint on a range of ranks, which it may choose."""

    gap_title = "largest difference of two groups' selection rates within the ranks, per width"
    scores_title = "steep sigmoids"
    bounds_rates = False
    ranks: str | tuple[float, float]
    cannot_be_tested = ""
    _all_thresholds: ClassVar[bool] = True  # whether it compares rates at all of them

    def claims(self, y: Array, groups: Groups | Array, sample_weight: Array) -> list[Claim]:
        """Return a claim for every ordered pair of groups, on rates clipped to the range.

        That is the gap of decisions where no scores are equal; equal scores are taken to be in
        random order.

        Parameters
        ----------
        y, groups, sample_weight
            See :meth:`Constraint.claims`.
        """
        changes: dict[str, Any] = {"ranks": self._ranks(y, sample_weight), "one_output": False}
        found = [replace(one, **changes) for one in super().claims(y, groups, sample_weight)]
        if not self._all_thresholds:
            return found
        return [replace(one, thresholds=None, name=f"{one.name}, all thresholds") for one in found]

    def _compared(self, y: Array, groups: Groups, weight: Array) -> Compared:
        kappa, (low, high) = self.checked_kappa(), self._ranks(y, weight)
        ends = f", {low:g}, {high:g})"
        text = f"(clip({{first}}{ends} - clip({{second}}{ends}) / {high - low:g} <= {kappa:g}"
        factor = 1.0 / (high - low)
        rates = group_rates(groups, weight, type(self).__name__)
        return Compared([rates], COMPARISONS["pairs"], Requirement(factor, -factor, kappa, text))

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: ranks="auto" chooses the range in `fit`."""
        chosen = "the range of ranks was chosen on the training rows (ranks='auto')"
        return chosen if _is_auto(self.ranks) else ""

    @property
    def rank_range(self) -> tuple[float, float] | None:  # type: ignore[override]
        """The range of ranks, None for "auto"."""
        return None if _is_auto(self.ranks) else check_ranks(self.ranks, '"auto" or ')

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
        rates, ranges = rates_of(measures, Sigmoid()), _ranges_around(share)
        cells = [distribution(scores[k], w) for k, w in rows_by_cell(rates.cells)]
        parts = ([part_within(*cell, ranks) for cell in cells] for ranks in ranges)
        gaps = np.array([distances(part).max(initial=0.0) for part in parts])
        ranks = ranges[int(np.argmax(gaps >= gaps.max() - _TIE))]  # the first of equal ones
        fixed = self.with_defaults().set_params(ranks=ranks)
        return fixed.build(model, data, unconstrained)

    def _ranks(self, y: Array, sample_weight: Array) -> tuple[float, float]:
        """Return the range; "auto" takes the one around the share of positive labels."""
        if not _is_auto(self.ranks):
            return check_ranks(self.ranks, '"auto" or ')
        return _ranges_around(float(np.average(np.asarray(y) > 0, weights=sample_weight)))[0]


def _is_auto(ranks: object) -> bool:
    return isinstance(ranks, str) and ranks == "auto"


def _ranges_around(share: float) -> list[tuple[float, float]]:
    """Return the ranges that contain a share, the one it is nearest to the middle of first.

    Of two that are equally near the one of the lower scores is first.
    """
    lows = np.arange(round((1.0 - _WIDTH) / _STEP) + 1) * _STEP
    ranges = [(round(float(low), 10), round(float(low + _WIDTH), 10)) for low in lows]
    around = [(low, high) for low, high in ranges if low - _TIE <= share <= high + _TIE]
    return sorted(around, key=lambda ends: (round(abs(0.5 * sum(ends) - share), 9), -ends[0]))


@dataclass(eq=False, repr=False)
class PartialDemographicParity(_RankConstraint):
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

    kappa: float | None = None
    _: KW_ONLY
    surrogate: str | Surrogate | None = None
    ranks: str | tuple[float, float] = "auto"
    n_ranks: int = 10

    def chosen(self, term: Term) -> dict[str, Any]:
        """Return the range of the term."""
        assert isinstance(term, PartialRates)
        return {"ranks": term.ranks}

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
        kappa = self.checked_kappa()
        count = check_count("n_ranks", self.n_ranks)
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SHARP, Surrogate)
        low, high = self._ranks(y, sample_weight)
        measures = group_rates(groups, np.asarray(sample_weight), type(self).__name__)
        width = high - low
        share = (np.arange(count) + 0.5) / count
        ranks = low + share * (1.0 - kappa) * width
        if kappa == 1.0 or len(measures) < 2:  # nothing can be violated
            ranks = ranks[:0]
        return partial_term(measures, surrogate, ranks, kappa, (low, high))


@dataclass(eq=False, repr=False)
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
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function :math:`\sigma` that replaces the indicator. None takes that of the estimator,
        or the sigmoid. If it is given by name, the sigmoid has scale 0.25 here, see
        :class:`PartialDemographicParity`.
    ranks : "auto" or tuple of float, default="auto"
        The range [alpha, beta) of ranks; see :class:`PartialDemographicParity`.

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

    kappa: float | None = None
    _: KW_ONLY
    surrogate: str | Surrogate | None = None
    ranks: str | tuple[float, float] = "auto"

    subtracts_kappa = True
    _all_thresholds = False

    def chosen(self, term: Term) -> dict[str, Any]:
        """Return the range of the term."""
        assert isinstance(term, ClippedRates)
        return {"ranks": term.ends}

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
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SHARP, Surrogate)
        groups = check_groups(groups, len(y))
        (measures,), comparison, bound = self._compared(y, groups, np.asarray(sample_weight))
        pairs = [(first, second) for *_, first, second in comparison.named(measures)]
        return ClippedRates(
            rates_of(measures, surrogate),
            self._ranks(y, sample_weight),
            as_csr(comparison.pairs([measures], bound.first, bound.second)),
            np.full(len(pairs), bound.bound),
            tuple(bound.text.format(first=a, second=b) for a, b in pairs),
        )
