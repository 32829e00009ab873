"""Parity of rates: demographic parity and its conditional forms differ only in their cells."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.metrics.rates import RATES
from fairconstrained.terms.base import NO_AUXILIARY, Term
from fairconstrained.terms.cell_means import Ratios
from fairconstrained.terms.ordered_pairs import as_csr, identity
from fairconstrained.terms.threshold_rates import FunctionOfRates
from fairconstrained.utils.arguments import check_between
from fairconstrained.utils.arrays import Array, SparseMatrix

# The weight at which no row counts as selected, though a steep surrogate underflows to more than 0.
# Derivatives, which are divided by it, stay finite, with their multipliers as well.
_NONE = np.sqrt(np.finfo(float).tiny)


class RateParity(Constraint, kw_only=True):
    r"""Parity of the selection rates of all groups, given an event.

    .. math::
        \mathrm{rate}_k = \frac{\sum_{i \in k \cap E} w_i\, \sigma(s_i)}{\sum_{i \in k \cap E} w_i},
        \qquad \mathrm{rate}_a - \mathrm{rate}_b \le \kappa \quad \text{for all } a \ne b,

    for every event E of the class; the absolute value is split into two one-sided constraints.
    With `ratio` it is :math:`\mathrm{rate}_a \ge \text{ratio} \cdot \mathrm{rate}_b` instead.
    Subclasses name their events: labels, or None, the default, for all rows.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function :math:`\sigma` that replaces the indicator. None takes that of the estimator,
        or the sigmoid.
    against : {"pairs", "overall"} or str, default="pairs"
        Groups are compared with each other, all rows of the event, or the group of this name; with
        ``combine="marginal"`` in each attribute that has such a group.
    ratio : float or None, default=None
        In place of kappa: the least ratio allowed of any two rates that are compared, in [0, 1].
        The gap of the predictions is then the shortfall 1 - rate_a / rate_b, and its bound is 1 -
        ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity, EqualOpportunity, RateParity
    >>> class SelectionAndOpportunity(RateParity):
    ...     events = DemographicParity.events + EqualOpportunity.events
    >>> term = SelectionAndOpportunity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[::2]
    ('rate(a) - rate(b) <= 0.1', 'rate(a | label +1) - rate(b | label +1) <= 0.1')
    """

    against: str = "pairs"
    ratio: float | None = None

    events: ClassVar[tuple[int | None, ...]] = (None,)
    subtracts_kappa = True
    cannot_be_tested = ""
    bounds_rates: ClassVar[bool] = True
    compares_ratios = property(lambda self: self.ratio is not None)
    tolerance = property(lambda self: "kappa" if self.ratio is None else "ratio")

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Whether an event is about labels, or a subclass has measures of its own."""
        return self.events != (None,) or type(self)._measures is not RateParity._measures

    @property
    def gap_title(self) -> str:  # type: ignore[override]
        """The rates that are compared, as a difference or a ratio."""
        named = {"pairs": "two groups'", "overall": "a group's and all rows'"}
        of = named.get(self.against, f"another group's and {self.against}'s")
        rates = " or ".join(f"{RATES[name].title}s" for name in self.rates_compared) or "rates"
        what = "largest difference" if self.ratio is None else "1 minus the smallest ratio"
        return f"{what} of {of} {rates}"

    @property
    def averages_atoms(self) -> bool:  # type: ignore[override]
        """Whether `bind` alone makes the term, of labels, groups and weights."""
        return type(self).build is Constraint.build and type(self).parts is Constraint.parts

    def checked_kappa(self) -> float:
        """Return the largest gap allowed; a ratio is checked as well."""
        if self.ratio is not None:
            check_between("ratio", self.ratio, 0.0, 1.0, "the least ratio allowed")
            if self.kappa is not None:
                raise ValueError(
                    f"{type(self).__name__}: kappa={self.kappa!r} bounds a difference and "
                    f"ratio={self.ratio!r} a ratio; give one of them."
                )
        return super().checked_kappa()

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        families = measures.comparison(self.against, groups, self._warn)
        return self._bounded(self._measures(y, groups, weight), families)

    def _bounded(self, rates: list[Any], families: measures.Families) -> measures.Compared:
        """Return the bound on two rates."""
        kappa, ratio = self.checked_kappa(), self.ratio
        if ratio is None:
            return measures.Compared(rates, families, kappa)
        text = f"{ratio:g} * {{second}} - {{first}} <= 0"
        return measures.Compared(rates, families, 0.0, (-1.0, ratio), text, kind=Ratios)

    def _measures(self, y: Array, groups: Groups, weight: Array) -> list[measures.Measures]:
        """Return the groups' rates in every event."""
        rates = []
        for label in self.events:
            name = "" if label is None else f" | label {self.labels[label > 0]}"
            codes = groups.codes if label is None else np.where(y == label, groups.codes, -1)
            within = replace(groups, codes=codes)
            rates.append(measures.means(within, weight, self._warn, event=name))
        return rates


class DemographicParity(RateParity):
    r"""Demographic parity: the selection rate is equal in all groups.

    :math:`|E[\sigma(s) \mid a] - E[\sigma(s) \mid b]| \le \kappa` for all groups a, b.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes that of the estimator, or 0.05.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        The function that replaces the prediction 1{score > 0}. None takes that of the estimator, or
        the sigmoid.
    against : {"pairs", "overall"} or str, default="pairs"
        Groups are compared with each other, the overall rate, or the group of this name.
    ratio : float or None, default=None
        In place of kappa: the least ratio allowed, in [0, 1]; see :class:`RateParity`.

    References
    ----------
    PLADA, equation (15); 3S-Econ, equation (42).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> term = DemographicParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names
    ('rate(a) - rate(b) <= 0.1', 'rate(b) - rate(a) <= 0.1')
    >>> term.value(np.array([0.0, 0.0, 1.0, 1.0])).round(3)
    array([-0.331,  0.131])
    """

    rates_compared = ("selection_rate",)


class EqualOpportunity(RateParity):
    r"""Equal opportunity: the true positive rate is equal in all groups.

    :math:`|E[\sigma(s) \mid a, y = 1] - E[\sigma(s) \mid b, y = 1]| \le \kappa` for all a, b.

    Parameters
    ----------
    kappa, surrogate, against, ratio
        See :class:`DemographicParity`.

    References
    ----------
    PLADA, section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import EqualOpportunity
    >>> term = EqualOpportunity(kappa=0.1, against="overall").bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'rate(a | label +1) - rate(all | label +1) <= 0.1'
    """

    events = (1,)
    rates_compared = ("true_positive_rate",)


class PredictiveEquality(RateParity):
    r"""Predictive equality: the false positive rate is equal in all groups.

    :math:`|E[\sigma(s) \mid a, y = -1] - E[\sigma(s) \mid b, y = -1]| \le \kappa` for all a, b.

    Parameters
    ----------
    kappa, surrogate, against, ratio
        See :class:`DemographicParity`.

    References
    ----------
    PLADA, equation (17), second half.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import PredictiveEquality
    >>> term = PredictiveEquality().bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'rate(a | label -1) - rate(b | label -1) <= 0.05'
    """

    events = (-1,)
    rates_compared = ("false_positive_rate",)


class EqualizedOdds(RateParity):
    r"""Equalized odds: true and false positive rates are equal in all groups.

    Equal opportunity and predictive equality together, with one tolerance.

    Parameters
    ----------
    kappa, surrogate, against, ratio
        See :class:`DemographicParity`.

    References
    ----------
    PLADA, equation (17).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import EqualizedOdds
    >>> term = EqualizedOdds().bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.n_outputs
    4
    """

    events = (1, -1)
    rates_compared = ("true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class Precisions(FunctionOfRates):
    r"""Affine functions of precisions, the shares of positive labels among what is selected.

    A number's precision is :math:`\sum_{c +} h_c r_c / \sum_c h_c r_c` with the rates r of its
    cells and their shares h of the weight. Where no row is selected it is that of all rows: such a
    group sets no gap.
    """

    # h; the last row is that of all rows, and every second cell has positive labels,
    # (n_numbers, n_cells)
    shares: SparseMatrix

    difference_of_convex = False
    convexify = Term.convexify

    def other_starts(self, statistics: Array) -> tuple[float, ...]:
        """Return equal scores: from rates that differ the nearest solution may be a poor one."""
        return (0.0,) if self.n_outputs else ()

    @classmethod
    def compared(cls, cells: Any, function: Any, *, combination: Any, **others: Any) -> Self:
        """Return the term of pairs of numbers, which are given as shares of the weight."""
        shares = combination.numbers
        pairs = replace(combination, numbers=identity(shares.shape[0]))
        return cls(cells, function, shares, combination=pairs, **others)

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """The number of cells."""
        return int(self.shares.shape[1])

    def averages(self, statistics: Array) -> Array:
        """Return the precisions, at one point or at several."""
        positive = (statistics.T * (np.arange(self.n_statistics) % 2)).T
        selected, hits = self.shares @ statistics, self.shares @ positive
        overall = hits[-1] / np.where(selected[-1] > _NONE, selected[-1], np.inf)
        return np.divide(hits, selected, out=overall + 0.0 * hits, where=selected > _NONE)

    def _slopes(self, statistics: Array) -> Any:
        """Return the derivatives of the precisions in the rates."""
        shares, selected = as_csr(self.shares), self.shares @ statistics
        scale = np.divide(1.0, selected, out=np.zeros(len(selected)), where=selected > _NONE)
        of_each = np.repeat([scale, self.averages(statistics)], np.diff(shares.indptr), axis=1)
        slopes = shares.data * of_each[0] * (shares.indices % 2 - of_each[1])
        return sp.csr_array((slopes, shares.indices, shares.indptr), shape=shares.shape)

    def averages_vjp(self, statistics: Array, weights: Any) -> Any:
        """Return the weights times the derivatives of the precisions."""
        listed = weights if isinstance(weights, np.ndarray) else as_csr(weights)
        return listed @ self._slopes(statistics)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sizes of the derivatives times the averages of the subgradient error."""
        slopes = abs(self._slopes(self.forward(scores)[0]))
        return abs(self.combination) @ (slopes @ self._rates.subgradient_error(scores))


class PredictiveParity(RateParity):
    r"""Predictive parity: the share of positive labels of selected rows is equal in all groups.

    .. math::
        \mathrm{precision}_k = \frac{\sum_{i \in k, y_i = 1} w_i\, \sigma(s_i)}
        {\sum_{i \in k} w_i\, \sigma(s_i)}, \qquad
        |\mathrm{precision}_a - \mathrm{precision}_b| \le \kappa.

    With the sigmoid and the logistic loss :math:`\sigma(s)` is the predicted probability p, and the
    precision is the mean of the labels, weighted by p. The precision of predictions is the share of
    positive labels among the selected rows; a group without selected rows is left out.

    Parameters
    ----------
    kappa, surrogate, against
        See :class:`DemographicParity`.

    References
    ----------
    A. Chouldechova, "Fair prediction with disparate impact", Big Data 5 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import PredictiveParity
    >>> term = PredictiveParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, 1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'precision(a) - precision(b) <= 0.1'
    >>> term.zero_one().gap(np.ones(4))  # half of the selected rows of a and all of b are positive
    array([-0.5,  0.5])
    """

    ratio: ClassVar[None] = None  # type: ignore[misc]  # a precision may be 0

    rates_compared = ("precision",)

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        compared = super()._compared(y, groups, weight)
        return replace(compared, kind=Precisions.compared, claimed={"labels": y})

    def _measures(self, y: Array, groups: Groups, weight: Array) -> list[measures.Measures]:
        """Return the groups' shares of the weight by label, in whose rates precisions are."""
        means = measures.means(groups, weight, self._warn, "precision")
        inside = means.codes >= 0
        codes, n = np.where(inside, 2 * means.codes + (y > 0), -1), 2 * len(means)
        masses = np.bincount(codes[inside], weight[inside], n) / weight[inside].sum()
        both = sp.kron(means.numbers != 0.0, np.ones((1, 2)))  # cells of a group, of all groups
        numbers = sp.csr_array(both @ sp.diags_array(masses))
        return [replace(means, codes=codes, numbers=numbers)]
