"""Parity of rates: demographic parity and its conditional forms differ in their cells only."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.cells import CellMeans, cell_matrix
from fairconstrained.constraints.base import Constraint, check_kappa
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.groups import Groups, check_groups
from fairconstrained.registry import check_option, resolve
from fairconstrained.scalar import Array
from fairconstrained.surrogates import SURROGATES, Surrogate


@dataclass(frozen=True)
class Event:
    """A condition on the label under which rates are compared: a name and the labels it keeps."""

    name: str
    labels: tuple[int, ...]


ALL_ROWS = Event("", (-1, 1))
POSITIVES = Event(" | label +1", (1,))
NEGATIVES = Event(" | label -1", (-1,))


def _against_pairs(shares: Array, rates: list[str], overall: str) -> tuple[Any, list[str]]:
    """Return the rows e_a - e_b for every ordered pair of groups, and what they say."""
    n = len(shares)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    ends = np.arange(0, 2 * len(first) + 1, 2)
    signs = np.tile([1.0, -1.0], len(first))
    rows = sp.csr_array((signs, np.column_stack([first, second]).ravel(), ends), (len(first), n))
    return rows, [f"{rates[a]} - {rates[b]}" for a, b in zip(first, second, strict=True)]


def _against_overall(shares: Array, rates: list[str], overall: str) -> tuple[Any, list[str]]:
    """Return the rows +-(e_a - shares) for every group, and what they say."""
    n = len(shares)
    if n < 2:
        return sp.csr_array((0, n)), []
    gaps = np.eye(n) - shares
    says = [f"{rate} - {overall}" for rate in rates] + [f"{overall} - {rate}" for rate in rates]
    return sp.csr_array(np.concatenate([gaps, -gaps])), says


Comparison = Callable[[Array, list[str], str], tuple[Any, list[str]]]
_COMPARISONS: dict[str, Comparison] = {"pairs": _against_pairs, "overall": _against_overall}


class RateParity(Constraint):
    r"""Rates of positive decisions that are to be alike in all groups, given an event.

    .. math::
        \mathrm{rate}_k = \frac{\sum_{i \in k \cap E} w_i\, \sigma(s_i)}{\sum_{i \in k \cap E} w_i},
        \qquad \mathrm{rate}_a - \mathrm{rate}_b \le \kappa \quad \text{for all } a \ne b,

    for every event E of the class; the absolute value is split into two one-sided constraints.
    Subclasses name their events.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        sigma. None takes the estimator's, or the sigmoid outside of one.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the rate of all rows of the event.
    """

    events: ClassVar[tuple[Event, ...]] = ()

    def __init__(
        self, kappa: float | None = None, *, surrogate: Any = None, against: str = "pairs"
    ):
        self.kappa = kappa
        self.surrogate = surrogate
        self.against = against

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> CellMeans:
        """Return the term with one output per event and ordered pair of groups.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        groups : Groups or array-like of shape (n_rows,)
            The groups.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If kappa, the surrogate's name or `against` is not valid, or groups are missing.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows in an event, or an event has fewer than two groups.
        """
        groups = check_groups(groups, len(y))
        kappa = check_kappa(0.05 if self.kappa is None else self.kappa)
        surrogate = resolve("surrogate", self.surrogate or "sigmoid", SURROGATES, Surrogate)
        compare = check_option("against", self.against, _COMPARISONS)
        bound = [self._bind_event(e, y, groups, sample_weight, compare) for e in self.events]
        cells, combinations, says = zip(*bound, strict=True)
        combination = sp.csr_array(sp.block_diag(combinations, format="csr"))
        return CellMeans(
            cells=sp.csc_array(sp.vstack(cells, format="csc")),
            function=surrogate,
            combination=combination,
            offset=np.full(combination.shape[0], kappa),
            names=tuple(f"{name} <= {kappa:g}" for names in says for name in names),
        )

    def _bind_event(
        self, event: Event, y: Array, groups: Groups, sample_weight: Array, compare: Comparison
    ) -> tuple[Any, Any, list[str]]:
        """Return the cells of an event, how they combine, and what the combinations say."""
        inside = np.isin(y, event.labels)
        counts = np.bincount(groups.codes[inside], minlength=len(groups))
        present = np.flatnonzero(counts)
        self._warn_if_vacuous(event, groups, counts)
        position = np.full(len(groups), -1)
        position[present] = np.arange(len(present))
        codes = np.where(inside, position[groups.codes], -1)
        cells = cell_matrix(codes, sample_weight, len(present))
        totals = np.bincount(codes[inside], sample_weight[inside], minlength=len(present))
        shares = totals / max(totals.sum(), np.finfo(float).tiny)
        rates = [f"rate({groups.names[k]}{event.name})" for k in present]
        return cells, *compare(shares, rates, f"rate(all{event.name})")

    def _warn_if_vacuous(self, event: Event, groups: Groups, counts: Array) -> None:
        kind = type(self).__name__
        for k in np.flatnonzero(counts == 0):
            warnings.warn(
                f"{kind}: the cell 'group {groups.names[k]}{event.name}' has no rows; "
                "nothing is asked of it.",
                VacuousConstraintWarning,
                stacklevel=2,
            )
        if np.count_nonzero(counts) < 2:
            found = [str(groups.names[k]) for k in np.flatnonzero(counts)]
            warnings.warn(
                f"{kind}: fewer than two groups have rows in the cell 'all groups{event.name}' "
                f"(found: {', '.join(found) or 'none'}); there is nothing to compare.",
                VacuousConstraintWarning,
                stacklevel=2,
            )


class DemographicParity(RateParity):
    r"""Demographic parity: the rate of positive decisions is alike in all groups.

    :math:`|E[\sigma(s) \mid a] - E[\sigma(s) \mid b]| \le \kappa` for all groups a, b.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        What stands for the decision. None takes the estimator's, or the sigmoid outside of one.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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

    events = (ALL_ROWS,)


class EqualOpportunity(RateParity):
    r"""Equal opportunity: the true positive rate is alike in all groups.

    :math:`|E[\sigma(s) \mid a, y = 1] - E[\sigma(s) \mid b, y = 1]| \le \kappa` for all a, b.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        What stands for the decision. None takes the estimator's, or the sigmoid outside of one.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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

    events = (POSITIVES,)


class PredictiveEquality(RateParity):
    r"""Predictive equality: the false positive rate is alike in all groups.

    :math:`|E[\sigma(s) \mid a, y = -1] - E[\sigma(s) \mid b, y = -1]| \le \kappa` for all a, b.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        What stands for the decision. None takes the estimator's, or the sigmoid outside of one.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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

    events = (NEGATIVES,)


class EqualizedOdds(RateParity):
    r"""Equalized odds: true and false positive rates are alike in all groups.

    Equal opportunity and predictive equality together, with one tolerance.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap allowed, in [0, 1]. None takes the estimator's, or 0.05 outside of one.
    surrogate : {"sigmoid", "ramp"}, Surrogate or None, default=None
        What stands for the decision. None takes the estimator's, or the sigmoid outside of one.
    against : {"pairs", "overall"}, default="pairs"
        Whether groups are compared with each other or with the overall rate.

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

    events = (POSITIVES, NEGATIVES)
