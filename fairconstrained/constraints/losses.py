"""Constraints on the mean loss of groups, which may overlap."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from fairconstrained.constraints import measures
from fairconstrained.constraints.base import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.terms.cell_means import CellMeans, cell_codes
from fairconstrained.utils import arguments
from fairconstrained.utils.arrays import Array, ArrayLike

# What decisions show of a loss is whether they are wrong.
_LOSS_MEANS = partial(CellMeans, decided=True)


class _LossConstraint(Constraint, kw_only=True):
    """Base of constraints on mean losses; what decisions show of these are error rates."""

    by_class: ClassVar[bool] = False
    subtracts_kappa = True
    scores_title = "losses"
    surrogate: ClassVar[None] = None  # type: ignore[misc]  # the loss takes its place
    loss: str | Loss | None = None

    def _function(self) -> Loss:
        """Return the loss; raise an error if it is not a mean over rows, but one over pairs."""
        name = f"{type(self).__name__}: loss"
        return arguments.resolve(name, self.loss or "logistic", LOSSES, Loss)


class BoundedGroupLoss(_LossConstraint):
    r"""Bounded group loss: the mean loss of every group is at most a bound.

    .. math::
        \frac{\sum_{i \in k} w_i\, \ell(y_i s_i)}{\sum_{i \in k} w_i} \le \text{bound}
        \quad \text{for every group } k.

    The constraint is convex if the loss is. The gap of the predictions is the largest error rate of
    a group. At the default decision threshold the hinge loss, and the logistic loss divided by log
    2, are upper bounds of the error, so that a bound on them also holds for the error rates.

    Parameters
    ----------
    bound : float or None, default=None
        The largest mean loss allowed, >= 0. The logistic loss is in nats. None takes `kappa` of the
        estimator, or 0.5.
    loss : {"logistic", "hinge", "squared_hinge", ...}, Loss or None, default=None
        The loss. None takes that of the estimator, or the logistic loss.

    References
    ----------
    A. Agarwal, M. Dudik, Z. S. Wu, "Fair regression: quantitative definitions and reduction-based
    algorithms", ICML 2019; fairlearn's ``BoundedGroupLoss``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import BoundedGroupLoss
    >>> term = BoundedGroupLoss(bound=0.6).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names
    ('loss(a) <= 0.6', 'loss(b) <= 0.6')
    >>> term.value(np.zeros(4)).round(3)  # log 2 - 0.6
    array([0.093, 0.093])
    """

    cannot_be_tested = ""
    tolerance = "bound"
    gap_title = "largest error rate of a group"

    bound: float | None = None
    kappa: ClassVar = property(lambda self: self.bound)  # type: ignore[misc]  # its other name

    def checked_kappa(self) -> float:
        """Return the bound, a number >= 0; 0.5 for None."""
        bound = 0.5 if self.bound is None else self.bound
        return arguments.check_between("bound", bound, 0.0, np.finfo(float).max, "a mean loss")

    def with_defaults(self, **defaults: object) -> Self:
        """Return a copy with the values given here where it has none; kappa becomes the bound."""
        return super().with_defaults(**{"bound": defaults.get("kappa"), **defaults})

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        losses = measures.means(groups, weight, self._warn, "loss", event=None)
        bound, signs = (self.checked_kappa(), *measures.ALONE), y.astype(float)
        return measures.of_groups(losses, *bound, kind=_LOSS_MEANS, signs=signs)


NamedGroups = Iterator[tuple[str, Array]]


def _crossed(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield the library's groups: intersections, or every attribute's with combine="marginal"."""
    for attribute in groups.separate:
        for k, name in enumerate(attribute.labels):
            yield str(name), attribute.codes == k


def _by_column(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield a group for every column: the rows where it is true."""
    for column in groups.columns:
        if strange := [name for name in column.names.tolist() if name not in (0, 1)]:
            raise ValueError(
                f"membership='columns' needs columns of True and False (or 1 and 0), one per "
                f"group; {column.title!r} holds {strange[0]!r}."
            )
        yield column.title, column.names.astype(bool)[column.codes] & column.known


def _above_thresholds(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield the rows above one threshold in every column, for all combinations of thresholds."""
    above = [_columns_above(column, thresholds) for column in groups.columns]
    for chosen in product(*above):
        inside = np.logical_and.reduce([rows for _, rows in chosen])
        yield " & ".join(name for name, _ in chosen), inside


def _columns_above(column: Groups, thresholds: object) -> list[tuple[str, Array]]:
    """Return which rows of a numeric column are above each threshold.

    An integer stands for so many thresholds of equal distance over the values' range.
    """
    try:
        values = column.names.astype(float)
    except ValueError as error:
        raise ValueError(
            f"membership='thresholds' needs numbers; {column.title!r} holds "
            f"{column.names.tolist()[0]!r}."
        ) from error
    if isinstance(thresholds, Integral):
        count = arguments.check_count("thresholds", thresholds)
        cuts = np.linspace(values.min(), values.max(), count, endpoint=False)
    else:
        cuts = arguments.check_numbers("thresholds", thresholds, -np.inf, np.inf)
    known = column.known
    return [(f"{column.title} > {cut:g}", (values > cut)[column.codes] & known) for cut in cuts]


_MEMBERSHIP = {"crossed": _crossed, "columns": _by_column, "thresholds": _above_thresholds}


class IntersectionalLossParity(_LossConstraint, kw_only=True):
    r"""Intersectional loss parity: bounds the excess loss of each of many overlapping groups.

    .. math::
        \frac{\sum_{i \in G} w_i\, \ell(y_i s_i)}{\sum_{i \in G} w_i}
        - \frac{\sum_i w_i\, \ell(y_i s_i)}{\sum_i w_i} \le \kappa
        \quad \text{for every group } G,

    or for the average of the left-hand sides over the groups. Rows that belong to the same groups
    form one cell, so that the rows are read once for any number of groups. The gap of the
    predictions is the error rate of a group minus that of all rows.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest difference allowed between the mean loss of a group and that of all rows, in [0,
        1]. None takes that of the estimator, or 0.05.
    loss : {"hinge", "logistic", "squared_hinge", ...} or Loss, default="hinge"
        The loss. The paper uses the hinge loss; a smooth loss such as "logistic" can be solved by
        more solvers.
    membership : {"crossed", "columns", "thresholds"}, default="crossed"
        How groups are defined. "crossed": as for all other constraints, rows with equal values in
        all sensitive columns (with ``combine="marginal"``: the groups of all columns). "columns":
        every sensitive column is boolean and defines one group. "thresholds": the columns are
        numeric, and a group has the rows above one threshold in each column, for all combinations
        of thresholds.
    thresholds : int or list of float, default=10
        For "thresholds": the number of equally spaced thresholds per column, starting at the
        smallest value of the column, or a list of thresholds.
    min_share : float, default=0.01
        Groups with at most this share of the total weight are left out, in [0, 1).
    average : bool, default=False
        Whether the average over the groups is bounded instead of each group.

    References
    ----------
    PLADA, equation (18) and section 5.3 (the average), appendix E (thresholds).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import IntersectionalLossParity
    >>> y, ones = np.array([1, -1, 1, -1]), np.ones(4)
    >>> members = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=bool)  # they share a row
    >>> term = IntersectionalLossParity(0.1, membership="columns").bind(y, members, ones)
    >>> term.names
    ('loss(attribute 0) - loss(all) <= 0.1', 'loss(attribute 1) - loss(all) <= 0.1')
    >>> percentages = np.array([[0.0, 0.9], [0.2, 0.8], [0.5, 0.1], [1.0, 0.0]])
    >>> parity = IntersectionalLossParity(membership="thresholds", thresholds=[0.1, 0.4])
    >>> parity.bind(y, percentages, ones).names[0]
    'loss(attribute 0 > 0.1 & attribute 1 > 0.1) - loss(all) <= 0.05'
    """

    loss: str | Loss | None = "hinge"
    membership: str = "crossed"
    thresholds: int | ArrayLike = 10
    min_share: float = 0.01
    average: bool = False

    joins_attributes = True
    gap_title = "largest error rate of a group minus that of all rows"

    compares_groups = property(lambda self: self.membership == "crossed" and not self.average)

    @property
    def cannot_be_tested(self) -> str:  # type: ignore[override]
        """Why held-out rows cannot test it."""
        if self.average:
            return "groups overlap, and average=True adds up their error rates"
        if self.membership == "thresholds" and isinstance(self.thresholds, Integral):
            return "its thresholds are chosen on the training rows; give a list"
        return ""

    def known_rows(self, groups: Groups) -> Array:
        """Return which rows the constraint is on: those whose group is known.

        With ``combine="marginal"`` these are the rows with at least one known attribute. Such a row
        counts in the mean over all rows, and in the groups of its known attributes.
        """
        return np.any([attribute.known for attribute in groups.separate], axis=0)

    def for_all_groups(self) -> Self:
        """Return the constraint for all groups, also those that are small."""
        return clone(self).set_params(min_share=0.0)

    def _compared(self, y: Array, groups: Groups, weight: Array) -> measures.Compared:
        kappa = self.checked_kappa()
        arguments.check_switch("average", self.average)
        names, members = self._large_groups(groups, weight)
        # Rows of the same groups are a cell, so that rows are read once for any number of groups.
        codes, share = cell_codes(members.tocsc()), weight / weight.sum()
        inside: Any = members @ sp.csr_array((share, codes, np.arange(len(codes) + 1)))
        totals, shares = np.bincount(codes, share), inside.sum(axis=1)
        means_of_groups: Any = sp.diags_array(1.0 / shares) @ inside
        if self.average and names:
            means_of_groups = means_of_groups.mean(axis=0)[None, :]
            names = [f"every group, on average{' | ' * bool(groups.stratum)}{groups.stratum}"]
        numbers = sp.vstack([sp.csr_array(means_of_groups), sp.csr_array(totals[None, :])])
        losses = measures.Measures(codes, weight, shares, "loss", names, numbers)
        return measures.of_groups(losses, kappa, kind=_LOSS_MEANS, signs=y.astype(float))

    def _large_groups(self, groups: Groups, weight: Array) -> tuple[list[str], sp.csr_array]:
        """Return the names and the members, (n_groups, n_rows), of the groups that are large."""
        names, rows = [], [sp.csr_array((0, len(weight)))]
        membership = _MEMBERSHIP[arguments.check_option("membership", self.membership, _MEMBERSHIP)]
        most, what = np.nextafter(1.0, 0.0), "a share of the weight, < 1"
        least = arguments.check_between("min_share", self.min_share, 0.0, most, what)
        for name, inside in membership(groups, self.thresholds):
            share = float(weight[inside].sum() / weight.sum())
            if share > least:
                names.append(name)
                rows.append(sp.csr_array(inside[None, :].astype(float)))
            elif not share and self.membership != "thresholds":
                self._warn(f"the cell 'group {name}' has no rows; nothing is asked of it.")
        if not names:
            self._warn(f"no group has more than min_share={least:g} of the rows; nothing is asked.")
        return names, sp.csr_array(sp.vstack(rows, format="csr"))
