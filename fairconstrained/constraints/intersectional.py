"""Parity of losses over many groups, which may overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from fairconstrained.constraints._samples import Sample
from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.claims import Claim, against_all
from fairconstrained.constraints.losses import LossMeans
from fairconstrained.constraints.measures import warn_vacuous
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
from fairconstrained.utils.registry import check_option, resolve
from fairconstrained.utils.typing import Array, ArrayLike, SparseMatrix
from fairconstrained.utils.validation import check_between, check_switch

NamedGroups = Iterator[tuple[str, Array]]


def _crossed(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield the library's groups: intersections, or every attribute's with combine="marginal"."""
    for one in groups.separate:
        for k, name in enumerate(one.labels):
            yield str(name), one.codes == k


def _by_column(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield a group for every column: the rows where it is true."""
    for column in groups.columns:
        strange = [name for name in column.names.tolist() if name not in (0, 1)]
        if strange:
            raise ValueError(
                f"membership='columns' needs columns of True and False (or 1 and 0), one per "
                f"group; {column.title!r} holds {strange[0]!r}."
            )
        yield column.title, column.names.astype(bool)[column.codes] & column.known


def _above_thresholds(groups: Groups, thresholds: object) -> NamedGroups:
    """Yield the rows above one threshold in every column, for all combinations of thresholds."""
    above = [_columns_above(column, thresholds) for column in groups.columns]
    for chosen in product(*above):
        inside = chosen[0][1]
        for _, rows in chosen[1:]:
            inside = inside & rows
        yield " & ".join(name for name, _ in chosen), inside


def _columns_above(column: Groups, thresholds: object) -> list[tuple[str, Array]]:
    """Return which rows of a numeric column are above each threshold."""
    try:
        values = column.names.astype(float)
    except ValueError as error:
        raise ValueError(
            f"membership='thresholds' needs numbers; {column.title!r} holds "
            f"{column.names.tolist()[0]!r}."
        ) from error
    cuts = _cuts(values, thresholds)
    known = column.known
    return [(f"{column.title} > {cut:g}", (values > cut)[column.codes] & known) for cut in cuts]


def _cuts(values: Array, thresholds: object) -> Array:
    """Return the thresholds: as they are, or so many of equal distance over the values' range."""
    if isinstance(thresholds, Integral) and int(thresholds) >= 1 and thresholds is not True:
        return np.linspace(values.min(), values.max(), int(thresholds), endpoint=False)
    given = list(thresholds) if isinstance(thresholds, Sequence | np.ndarray) else [None]
    if not given or not all(isinstance(one, Real) and np.isfinite(float(one)) for one in given):
        raise ValueError(
            "thresholds must be an integer >= 1 (so many per column, of equal distance) or a list "
            f"of numbers; got {thresholds!r}."
        )
    return np.asarray(given, dtype=float)


_MEMBERSHIP: dict[str, Callable[[Groups, object], NamedGroups]] = {
    "crossed": _crossed,
    "columns": _by_column,
    "thresholds": _above_thresholds,
}


@dataclass(eq=False, repr=False)
class IntersectionalLossParity(Constraint):
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
    loss : {"hinge", "logistic", "truncated_logistic", "quadratic"} or Loss, default="hinge"
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
    PLADA, equation (18) and section 5.3 (the average), appendix D (thresholds).

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

    kappa: float | None = None
    _: KW_ONLY
    loss: str | Loss = "hinge"
    membership: str = "crossed"
    thresholds: int | ArrayLike = 10
    min_share: float = 0.01
    average: bool = False

    by_class: ClassVar[bool] = False
    subtracts_kappa = True
    joins_attributes = True
    gap_title = "largest error rate of a group minus that of all rows"
    scores_title = "losses"
    bounds_rates = False

    @property
    def compares_groups(self) -> bool:  # type: ignore[override]
        """Whether its groups are those of the sensitive features, and all of them count."""
        return self.membership == "crossed" and not self.average

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

        Parameters
        ----------
        groups : Groups
            See :meth:`Constraint.known_rows`.
        """
        if not groups.marginal:
            return groups.known
        return np.any([one.known for one in groups.attributes], axis=0)

    def for_all_groups(self) -> Self:
        """Return the constraint for all groups, also those that are small."""
        return clone(self).set_params(min_share=0.0)

    def claims(self, y: Array, groups: Groups | Array, sample_weight: Array) -> list[Claim]:
        """Return a claim for every group: its error rate less that of all rows is at most kappa.

        Parameters
        ----------
        y, groups, sample_weight
            See :meth:`Constraint.claims`.
        """
        weight, flipped = np.asarray(sample_weight, dtype=float), np.asarray(y) > 0
        kappa, found = self.checked_kappa(), []
        for name, inside, share in self._groups(groups, weight):
            if not self.min_share < share < 1.0:
                continue
            sides = [np.flatnonzero(one) for one in (inside, ~inside)]
            samples = [Sample(one, weight[one] / weight[one].sum(), flipped[one]) for one in sides]
            text = f"loss({name}) - loss(all) <= {kappa:g}"
            shares = np.array([share, 1.0 - share])
            found.append(against_all(text, samples, 0, shares, (1.0, -1.0), kappa))
        return found

    def bind(self, y: Array, groups: Groups | Array, sample_weight: Array) -> CellMeans:
        """Return the term with one output per group, or one for their average.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        groups : Groups or array-like of shape (n_rows,) or (n_rows, n_columns)
            The sensitive columns; their meaning depends on `membership`.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.

        Raises
        ------
        ValueError
            If a parameter is not valid, or the columns do not suit `membership`.

        Warns
        -----
        VacuousConstraintWarning
            If a group has no rows, or none has more than `min_share`.
        """
        kappa, most = self.checked_kappa(), np.nextafter(1.0, 0.0)
        least = check_between("min_share", self.min_share, 0.0, most, "a share of the weight, < 1")
        loss = resolve("loss", self.loss, LOSSES, Loss)
        check_switch("average", self.average)
        weight = np.asarray(sample_weight, dtype=float)
        names, members = self._large_groups(self._groups(groups, weight), weight, least)
        atoms, rows = _atoms(members, weight)
        if self.average and names:
            rows, names = sp.csr_array(rows.mean(axis=0)[None, :]), ["every group, on average"]
        # The mean over all rows is a cell of its own: made of the others, it would fill R.
        everybody = sp.csc_array((weight / weight.sum())[None, :])
        less_all = sp.csr_array(-np.ones((len(names), 1)))
        return LossMeans(
            cells=sp.csc_array(sp.vstack([atoms, everybody], format="csc")),
            function=loss,
            combination=sp.csr_array(sp.hstack([rows, less_all])),
            offset=np.full(len(names), kappa),
            signs=np.asarray(y, dtype=float),
            names=tuple(f"loss({name}) - loss(all) <= {kappa:g}" for name in names),
        )

    def _groups(self, groups: Groups | Array, weight: Array) -> Iterator[tuple[str, Array, float]]:
        """Yield the names of all groups, which rows they have, and their shares of the weight."""
        membership = check_option("membership", self.membership, _MEMBERSHIP)
        checked = check_groups(groups, len(weight), combine="marginal")
        for name, inside in membership(checked, self.thresholds):
            yield name, inside, float(weight[inside].sum() / weight.sum())

    def _large_groups(
        self, found: Iterator[tuple[str, Array, float]], weight: Array, least: float
    ) -> tuple[list[str], Any]:
        """Return the names and the members, (n_groups, n_rows), of the groups that are large."""
        kind, names, rows = type(self).__name__, [], [sp.csr_array((0, len(weight)))]
        for name, inside, share in found:
            if share > least:
                names.append(name)
                rows.append(sp.csr_array(inside[None, :].astype(float)))
            elif not share and self.membership != "thresholds":
                warn_vacuous(
                    f"{kind}: the cell 'group {name}' has no rows; nothing is asked of it."
                )
        if not names:
            warn_vacuous(
                f"{kind}: no group has more than min_share={least:g} of the rows; nothing is asked."
            )
        return names, sp.vstack(rows, format="csr")


def _atoms(members: SparseMatrix, weight: Array) -> tuple[Any, Any]:
    """Return cells of rows that are in the same groups, and their weights in each group.

    Parameters
    ----------
    members : CSR of shape (n_groups, n_rows)
        Ones where a row is in a group.
    weight : ndarray of shape (n_rows,)
        The weights of the rows.

    Returns
    -------
    cells : CSC of shape (n_cells, n_rows)
    rows : CSR of shape (n_groups, n_cells)
        The share of each cell in the weight of the group.
    """
    pattern = members.T @ np.random.default_rng(0).standard_normal(members.shape[0])
    _, first, codes = np.unique(pattern, return_index=True, return_inverse=True)
    codes = np.ravel(codes)
    totals = np.bincount(codes, weight)
    inside = sp.csr_array(members[:, first]) * totals[None, :]
    rows = sp.csr_array(sp.diags_array(1.0 / inside.sum(axis=1)) @ inside)
    return cell_matrix(codes, weight, len(totals)), rows
