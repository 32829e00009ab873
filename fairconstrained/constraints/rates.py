"""Further constraints on rates: errors, the four-fifths rule, two-sided balance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.measures import (
    ALL_ROWS,
    Measures,
    Requirement,
    at_least,
    balanced,
    means,
)
from fairconstrained.constraints.parity import RateParity
from fairconstrained.data.groups import Groups
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.utils.codes import unique_codes
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_between


class ErrorRateParity(RateParity):
    r"""Error rate parity: the rate of wrong predictions is equal in all groups.

    With the groups' shares :math:`p_k^\pm` of positive and negative labels,

    .. math::
        \mathrm{error}_k = p_k^-\, E[\sigma(s) \mid k, y = -1]
        + p_k^+\, (1 - E[\sigma(s) \mid k, y = 1]), \qquad
        |\mathrm{error}_a - \mathrm{error}_b| \le \kappa.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall error rate.
    ratio : float or None, default=None
        In place of kappa: the least ratio allowed of two error rates, in [0, 1]; see
        :class:`~fairconstrained.constraints.parity.RateParity`.

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

    rates = ("error_rate",)

    def _measures(self, y: Array, groups: Groups, weight: Array) -> list[Measures]:
        """Return the groups' error rates, from the rates of their positives and negatives."""
        return [error_rates(y, groups, weight, "error", type(self).__name__)]


def error_rates(y: Array, groups: Groups, weight: Array, what: str, kind: str) -> Measures:
    """Return the share of wrong predictions in every group, see :func:`means`."""
    measures = means(groups.codes, weight, groups, what, ALL_ROWS, kind)
    cells = measures.codes  # every row is in the cell of its group
    present, codes = unique_codes(2 * cells + (y > 0))
    group, positive = np.divmod(present, 2)
    inside = np.bincount(codes, weight) / np.bincount(cells, weight)[group]
    signed = np.where(positive == 1, -inside, inside)
    shape = len(measures), len(present)
    return replace(
        measures,
        codes=codes,
        combination=sp.csr_array((signed, (group, np.arange(len(present)))), shape=shape),
        constant=np.bincount(group, positive * inside, minlength=len(measures)),
    )


class DisparateImpact(RateParity):
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
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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

    events = (ALL_ROWS,)
    rates = ("selection_rate",)
    kappa = 0.0  # no tolerance: that of an estimator does not apply
    tolerance = "ratio"

    def __init__(
        self,
        ratio: float = 0.8,
        *,
        surrogate: str | Surrogate | None = None,
        against: str = "pairs",
    ):
        self.ratio = ratio
        self.surrogate = surrogate
        self.against = against

    def _requirement(self) -> Requirement:
        """Return the bound on two rates."""
        return at_least(check_between("ratio", self.ratio, 0.0, 1.0, "the least ratio allowed"))


@dataclass(eq=False, repr=False)
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
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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
    surrogate: str | Surrogate | None = None
    against: str = "pairs"

    events = (ALL_ROWS,)
    ratio: ClassVar[None] = None  # type: ignore[misc]  # no ratio: the bound is r
    tolerance = "r"
    gap_title = "largest selection rate of a group plus beta times the rejection rate of another"

    @property
    def tolerance_slope(self) -> float | None:
        """As for every constraint; 0 with `r`, which takes the place of kappa."""
        return super().tolerance_slope if self.r is None else 0.0

    def _requirement(self) -> Requirement:
        """Return the bound on two rates."""
        beta = check_between("beta", self.beta, np.finfo(float).tiny, 1e6, "what balances rates")
        if self.r is None:
            return balanced(beta, beta + self.checked_kappa())
        reach = "no model has less, none can have more"
        return balanced(beta, check_between("r", self.r, min(1.0, beta), 1.0 + beta, reach))
