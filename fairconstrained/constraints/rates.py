"""Further constraints on rates: errors, the four-fifths rule, balance, rates above thresholds."""

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import WeightedScores
from fairconstrained.constraints.parity import DemographicParity, RateParity
from fairconstrained.data.groups import Groups
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.arguments import check_between, check_count, check_numbers
from fairconstrained.utils.arrays import Array, ArrayLike


class ErrorRateParity(RateParity):
    r"""Error rate parity: the rate of wrong predictions is equal in all groups.

    With the groups' shares :math:`p_k^\pm` of positive and negative labels,

    .. math::
        \mathrm{error}_k = p_k^-\, E[\sigma(s) \mid k, y = -1]
        + p_k^+\, (1 - E[\sigma(s) \mid k, y = 1]), \qquad
        |\mathrm{error}_a - \mathrm{error}_b| \le \kappa.

    Parameters
    ----------
    kappa, surrogate, against, ratio
        See :class:`DemographicParity`; "overall" is the error rate of all rows.

    References
    ----------
    The constraint of the same name in ``fairlearn.reductions``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import ErrorRateParity
    >>> term = ErrorRateParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'error(a) - error(b) <= 0.1'
    >>> term.zero_one().gap(np.array([1.0, 1.0, 1.0, -1.0]))  # a: one of two is wrong; b: none
    array([ 0.5, -0.5])
    """

    rates_compared = ("error_rate",)

    def _measures(self, y: Array, groups: Groups, weight: Array) -> list[measures.Measures]:
        """Return the groups' error rates, from the rates of their positives and negatives."""
        return [measures.errors(y, measures.means(groups, weight, self._warn, "error"))]


class DisparateImpact(DemographicParity):
    r"""The four-fifths rule: no group's rate is below `ratio` times that of another.

    .. math:: \text{ratio} \cdot \mathrm{rate}_b - \mathrm{rate}_a \le 0
        \quad \text{for all } a \ne b.

    It is the same as ``DemographicParity(ratio=0.8)``. The gap of the predictions is the shortfall
    :math:`1 - \mathrm{rate}_a / \mathrm{rate}_b`: with the default, predictions meet the rule if
    their gap is at most 0.2.

    Parameters
    ----------
    ratio : float, default=0.8
        The least ratio allowed of two rates, in [0, 1].
    surrogate, against
        See :class:`DemographicParity`.

    References
    ----------
    Uniform Guidelines on Employee Selection Procedures, 29 CFR 1607.4 D (1978).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DisparateImpact
    >>> term = DisparateImpact().bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names
    ('0.8 * rate(b) - rate(a) <= 0', '0.8 * rate(a) - rate(b) <= 0')
    >>> term.zero_one().gap(np.array([1.0, -1.0, 1.0, 1.0]))  # a: one of two; b: both
    array([ 0.5, -1. ])
    """

    ratio: float = 0.8
    kappa: ClassVar[None] = None  # type: ignore[misc]  # no tolerance but the ratio


class CalibrationParity(RateParity):
    r"""Calibration in the large: mean prediction minus mean label is equal in all groups.

    With the share :math:`p_k^+` of positive labels of a group,

    .. math::
        \mathrm{excess}_k = E[\sigma(s) \mid k] - p_k^+, \qquad
        |\mathrm{excess}_a - \mathrm{excess}_b| \le \kappa.

    With the sigmoid and the logistic loss :math:`\sigma(s)` is the predicted probability. The gap
    of the predictions compares selection rates with the shares of positive labels.

    Parameters
    ----------
    kappa, surrogate, against
        See :class:`DemographicParity`.

    References
    ----------
    Van Calster et al. (2016), "A calibration hierarchy for risk models was defined": calibration in
    the large is the mean of the labels minus that of the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import CalibrationParity
    >>> term = CalibrationParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, 1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'excess(a) - excess(b) <= 0.1'
    >>> term.gap(np.zeros(4))  # all probabilities are 1/2; half of a and all of b are positive
    array([ 0.5, -0.5])
    """

    ratio: ClassVar[None] = None  # type: ignore[misc]  # an excess may be negative

    cannot_be_tested = "held-out rows have other shares of positive labels"
    gap_title = "largest difference of two groups' mean predictions minus shares of positive labels"

    def _measures(self, y: Array, groups: Groups, weight: Array) -> list[measures.Measures]:
        """Return the groups' mean predictions minus their shares of positive labels."""
        means = measures.means(groups, weight, self._warn, "excess")
        return [replace(means, constant=-(means.numbers @ (means.cells @ (y > 0.0))))]


class BalancedRate(RateParity):
    r"""Balanced rates: no group is mostly selected while another group is mostly rejected.

    .. math::
        E[\sigma(s) \mid a] + \beta\, (1 - E[\sigma(s) \mid b]) \le r \quad \text{for all } a \ne b;

    with symmetric surrogates, :math:`1 - \sigma(s) = \sigma(-s)`. With beta = 1 it is demographic
    parity with :math:`\kappa = r - 1`. The gap of the predictions is the left-hand side, to be
    compared with r.

    Parameters
    ----------
    r : float or None, default=None
        The bound, in [min(1, beta), 1 + beta]. With equal rates the left-hand side is between 1 and
        beta. None takes beta + kappa, so that the constraint is :math:`\mathrm{rate}_a \le \beta\,
        \mathrm{rate}_b + \kappa`.
    beta : float, default=1.0
        The weight of the rejection rate, > 0.
    kappa : float or None, default=None
        The number that is added to beta if `r` is None. None takes that of the estimator, or 0.05
        without an estimator.
    surrogate, against
        See :class:`DemographicParity`.

    References
    ----------
    IPC, section 1.1 (data-driven constraints), for the pairs (M, F) and (F, M).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import BalancedRate
    >>> term = BalancedRate(r=0.6, beta=0.5).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'rate(a) + 0.5 * (1 - rate(b)) <= 0.6'
    >>> term.value(np.zeros(4)).round(2)  # all rates are 1/2
    array([0.15, 0.15])
    """

    r: float | None = None
    beta: float = 1.0
    _: KW_ONLY
    kappa: float | None = None

    ratio: ClassVar[None] = None  # type: ignore[misc]  # no ratio: the bound is r
    tolerance = "r"
    gap_title = "largest selection rate of a group plus beta times the rejection rate of another"

    def _bounded(self, rates: list[Any], families: measures.Families) -> measures.Compared:
        """Return the bound on two rates."""
        beta = check_between("beta", self.beta, np.finfo(float).tiny, 1e6, "what balances rates")
        if self.r is None:
            bound = beta + self.checked_kappa()
        else:
            reach = "no model has less, none can have more"
            bound = check_between("r", self.r, min(1.0, beta), 1.0 + beta, reach)
        text = f"{{first}} + {beta:g} * (1 - {{second}}) <= {{bound}}"
        return measures.Compared(rates, families, bound, (1.0, -beta), text, beta)


class ROCParity(RateParity, kw_only=True):
    r"""ROC (strong demographic) parity: the rates above every threshold of a grid are equal.

    .. math::
        \Big| \frac{\sum_{i \in a} w_i\, \sigma(s_i - \theta)}{\sum_{i \in a} w_i}
        - \frac{\sum_{i \in b} w_i\, \sigma(s_i - \theta)}{\sum_{i \in b} w_i} \Big| \le \kappa
        \quad \text{for all } \theta \text{ of a grid and all groups } a, b,

    two one-sided constraints for each. In an estimator the grid is `n_thresholds` equally spaced
    points from lo - (hi - lo) / 2 to hi + (hi - lo) / 2, where lo and hi are the smallest and the
    largest score of a training row under the model without constraints. All thresholds together
    cost a few times as much as one (see :mod:`fairconstrained.terms.threshold_rates`).

    Parameters
    ----------
    kappa, surrogate, against
        See :class:`DemographicParity`.
    thresholds : array-like of shape (n_thresholds,) or None, default=None
        The grid, of scores minus the decision threshold. None takes the grid above.
    n_thresholds : int, default=400
        The number of thresholds of that grid.

    References
    ----------
    3S-Econ, equation (5); section 4.1 for the grid (Problem 1).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import ROCParity
    >>> term = ROCParity(kappa=0.1, thresholds=[-1.0, 1.0]).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[:2]
    ('rate(a, s > -1) - rate(b, s > -1) <= 0.1', 'rate(a, s > 1) - rate(b, s > 1) <= 0.1')
    >>> term.zero_one().gap(np.array([0.0, 2.0, -2.0, 0.0]))
    array([ 0.5,  0.5, -0.5, -0.5])
    """

    ratio: ClassVar[None] = None  # type: ignore[misc]  # rates far from the threshold may be 0
    thresholds: ArrayLike | None = None
    n_thresholds: int = 400

    averages_atoms = False
    gap_title = "largest difference of two groups' selection rates at any of the thresholds"
    scores_title = "sigmoids of scores minus thresholds"
    bounds_rates = False

    @property
    def bound_to_training_rows(self) -> str:  # type: ignore[override]
        """Why it cannot be measured on other rows: the grid may come from the training rows."""
        chosen = "its thresholds are chosen on the training rows; give thresholds"
        return chosen if self.thresholds is None else ""

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        if self.thresholds is None:
            raise ValueError(
                "ROCParity: thresholds=None takes its grid from the scores of the model without "
                "constraints, which bind does not have; give thresholds, or use it in an estimator."
            )
        thresholds = check_numbers("thresholds", self.thresholds, -np.inf, np.inf)
        return replace(
            super()._compared(y, groups, weight),
            kind=partial(ThresholdRates, thresholds=thresholds),
            marks=[f", s > {theta:g}" for theta in thresholds],
            chosen={"thresholds": thresholds},
            claimed={"thresholds": thresholds, "one_output": False},
        )

    def settled(self, scores: WeightedScores) -> Self:
        """Return the constraint with a grid made of the scores of the model without constraints."""
        if self.thresholds is not None:
            return self
        count = check_count("n_thresholds", self.n_thresholds)
        values, _ = scores()
        low, high = values.min(), values.max()
        half = 0.5 * (high - low)
        return self.with_defaults(thresholds=np.unique(np.linspace(low - half, high + half, count)))
