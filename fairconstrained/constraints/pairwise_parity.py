"""Parity of pairwise probabilities: which rows the scores rank above which."""

from abc import ABC, abstractmethod
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.measures import label_of, with_rows
from fairconstrained.data.groups import Groups
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import SURROGATES, ShiftedSquare
from fairconstrained.terms.cell_means import cell_matrix
from fairconstrained.terms.pairs import PairMeans, QuadraticPairs
from fairconstrained.utils.arguments import resolve
from fairconstrained.utils.arrays import Array

_SURROGATES: dict[str, Any] = {"quadratic": ShiftedSquare, **SURROGATES}
Side = list[int]  # the groups that are compared with others
Pairs = list[tuple[int, int, float]]  # a cell, a cell whose rows are to be lower, a weight


def _mix(side: Side, masses: Array) -> list[tuple[int, float]]:
    """Return the groups of a side with their shares of its rows."""
    return list(zip(side, (masses[side] / masses[side].sum()).tolist(), strict=True))


def _with_the_others(n: int) -> list[tuple[Side, Side]]:
    """Return every group and all others together, in both orders."""
    # With two groups, all others are the other group.
    sides = [([k], [j for j in range(n) if j != k]) for k in range(n if n > 2 else n - 1)]
    return [pair for group, others in sides for pair in ((group, others), (others, group))]


class PairwiseParity(Constraint, ABC, kw_only=True):
    r"""Base class: equal probabilities, across groups, that one row is scored above another.

    Every output is :math:`\sum_{AB} r_{AB}\, p_{AB} - d \le \kappa` with averages :math:`p_{AB} =
    E[\sigma(s_i - s_j) \mid i \in A, j \in B]` over pairs of rows of two cells. Subclasses define
    which.

    With the quadratic surrogate (1 + t)^2 / 2 of the papers the term is convex and costs O(n) for
    any number of pairs. This surrogate is not bounded: it limits the spread of the scores as well
    as the gap, and kappa is not a probability; the papers use values from 0.1 to 10. The sigmoid is
    in [0, 1], so that kappa is a probability. It is not convex; its averages over all pairs are
    computed on a grid, in O(n log n).

    Batches drawn by strata are unbiased, others consistent.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap of the surrogate allowed, >= 0. None takes that of the estimator, or 0.05.
    surrogate : {"quadratic", "sigmoid", "ramp"} or Surrogate, default="quadratic"
        The function :math:`\sigma` that replaces the indicator.
    against : {"pairs", "overall"} or a group, default="pairs"
        Whether groups are compared with each other, or each with all other groups together, or each
        with the group of this name.
    """

    surrogate: str | ScalarFunction = "quadratic"  # type: ignore[assignment]
    against: str = "pairs"

    _gap: ClassVar[tuple[float, str]]  # the constant d, and what the gap is called
    subtracts_kappa = True
    gap_title = "largest difference of two groups' probabilities to be scored above other rows"
    scores_title = "(1 + t)^2 / 2 of the differences t of scores"
    _largest_kappa = np.inf

    @property
    def usual_kappas(self) -> tuple[float, float] | None:  # type: ignore[override]
        """Those of the papers with the quadratic surrogate; with others kappa is a probability."""
        return (0.1, 10.0) if isinstance(self._function(), ShiftedSquare) else None

    @abstractmethod
    def _pairs(self, masses: Array, first: Side, second: Side) -> Pairs:
        """Return what an output averages; `masses` are weights of labels -1, +1, (n_groups, 2)."""

    def _function(self) -> ScalarFunction:
        return resolve("surrogate", self.surrogate, _SURROGATES, ScalarFunction)

    def _term(self, y: Array, groups: Groups, weight: Array) -> PairMeans:
        kappa, surrogate = self.checked_kappa(), self._function()
        # The groups that have the rows to be compared, and the cell of every row (-1 for none).
        n, cell = len(groups), 2 * groups.codes + (y > 0)
        counts = np.bincount(cell, minlength=2 * n).reshape(n, 2)
        masses = np.bincount(cell, weight, minlength=2 * n).reshape(n, 2)
        enough = counts.all(axis=1) if self.needs_labels else counts.any(axis=1)
        rarer = counts.argmin(axis=1)
        lacking = {k: f" | label {self.labels[rarer[k]]}" for k in np.flatnonzero(~enough).tolist()}
        names, codes = with_rows(groups, groups.codes, lacking, self._warn)
        if self.needs_labels:
            codes = np.where(codes >= 0, 2 * codes + (y > 0), -1)
        of_groups, against = masses[enough], str(self.against)
        sides = [([a], [b]) for a, b in permutations(range(len(names)), 2)]
        if against == "overall":
            sides = _with_the_others(len(names))
        elif against != "pairs":
            label = label_of(against, groups, self._warn)
            sides = [two for two in sides if label in (names[k] for (k,) in two)]
        pairs = [(k, *pair) for k, two in enumerate(sides) for pair in self._pairs(of_groups, *two)]
        table = np.reshape(np.array(pairs), (-1, 4))
        columns, column = np.unique(table[:, 1:3].astype(int), axis=0, return_inverse=True)
        entries = table[:, 3], (table[:, 0].astype(int), np.ravel(column))
        constant, title = self._gap
        titles = [[names[side[0]] if len(side) == 1 else "others" for side in two] for two in sides]
        kind = QuadraticPairs if isinstance(surrogate, ShiftedSquare) else PairMeans
        return kind(
            cell_matrix(codes, weight, int(codes.max(initial=-1)) + 1),
            columns,
            function=surrogate,
            combination=sp.csr_array(entries, shape=(len(sides), len(columns))),
            offset=kappa,
            names=tuple(f"{title.format(*two)} <= {kappa:g}" for two in titles),
            constant=np.full(len(sides), -constant),
        )


class GroupAUCParity(PairwiseParity):
    r"""Group AUC parity: rows of one group rank above rows of another as often as below them.

    :math:`E[\sigma(s_i - s_j) \mid i \in a, j \in b] - \tfrac12 \le \kappa` for all groups :math:`a
    \ne b`, in both orders. Labels are not used.

    Parameters
    ----------
    kappa : float or None, default=None
        The largest gap of the surrogate allowed, >= 0; see :class:`PairwiseParity` for its unit.
        None takes that of the estimator, or 0.05.
    surrogate : {"quadratic", "sigmoid", "ramp"} or Surrogate, default="quadratic"
        The function :math:`\sigma` of the difference of two scores. The quadratic function of the
        paper is convex, and its cost is O(n).
    against : {"pairs", "overall"} or a group, default="pairs"
        Whether groups are compared with each other, or each with all other groups together, or each
        with the group of this name.

    References
    ----------
    IDCA, equations (65) to (67); Yang et al. 2023; Vogel et al. 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import GroupAUCParity
    >>> term = GroupAUCParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names
    ('Pr(a > b) - 1/2 <= 0.1', 'Pr(b > a) - 1/2 <= 0.1')
    >>> scores = np.array([0.1, 0.3, 0.0, 0.1])
    >>> term.gap(scores).round(4), term.zero_one().gap(scores)
    (array([ 0.1675, -0.1325]), array([ 0.375, -0.375]))
    """

    needs_labels = False
    _gap = 0.5, "Pr({0} > {1}) - 1/2"

    def _pairs(self, masses: Array, first: Side, second: Side) -> Pairs:
        of_groups = masses.sum(axis=1)
        others = _mix(second, of_groups)
        return [(a, b, u * v) for a, u in _mix(first, of_groups) for b, v in others]


class InterGroupAUCParity(PairwiseParity):
    r"""Inter-group AUC parity: the AUC across two groups is equal in both directions.

    :math:`\Pr(s_i > s_j \mid a+, b-) = \Pr(s_i > s_j \mid b+, a-)`: a positive row of a is above a
    negative row of b as often as a positive row of b is above a negative row of a. With a
    surrogate, for all :math:`a \ne b`,

    .. math::
        E[\sigma(s_i - s_j) \mid i \in a+, j \in b-]
        + E[\sigma(s_i - s_j) \mid i \in a-, j \in b+] - 1 \le \kappa.

    Parameters
    ----------
    kappa, surrogate, against
        See :class:`GroupAUCParity`.

    References
    ----------
    IDCA, equations (68) and (69); Kallus and Zhou 2019 (xAUC); Beutel et al. 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import InterGroupAUCParity
    >>> term = InterGroupAUCParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'Pr(a+ > b-) - Pr(b+ > a-) <= 0.1'
    >>> term.zero_one().gap(np.array([1.0, 0.0, 0.0, -1.0]))
    array([ 0.5, -0.5])
    """

    _gap = 1.0, "Pr({0}+ > {1}-) - Pr({1}+ > {0}-)"

    def _pairs(self, masses: Array, first: Side, second: Side) -> Pairs:
        return [
            (2 * a + label, 2 * b + 1 - label, u * v)
            for label in (0, 1)
            for a, u in _mix(first, masses[:, label])
            for b, v in _mix(second, masses[:, 1 - label])
        ]


class IntraGroupAUCParity(PairwiseParity):
    r"""Intra-group AUC parity: the AUC within the group is equal for all groups.

    :math:`\mathrm{AUC}_a = \Pr(s_i > s_j \mid i \in a+, j \in a-)`. With a surrogate, for all
    :math:`a \ne b`,

    .. math::
        E[\sigma(s_i - s_j) \mid i \in a+, j \in a-]
        + E[\sigma(s_i - s_j) \mid i \in b-, j \in b+] - 1 \le \kappa.

    Parameters
    ----------
    kappa, surrogate, against
        See :class:`GroupAUCParity`; "overall" is the mean AUC of the others, weighted by size.

    References
    ----------
    IDCA, equations (70) and (71); Beutel et al. 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import IntraGroupAUCParity
    >>> term = IntraGroupAUCParity(kappa=0.1).bind(
    ...     np.array([1, -1, 1, -1]), np.array(["a", "a", "b", "b"]), np.ones(4)
    ... )
    >>> term.names[0]
    'AUC(a) - AUC(b) <= 0.1'
    >>> term.zero_one().gap(np.array([1.0, 0.0, 0.0, 0.0]))
    array([ 0.5, -0.5])
    """

    _gap = 1.0, "AUC({0}) - AUC({1})"

    def _pairs(self, masses: Array, first: Side, second: Side) -> Pairs:
        of_groups = masses.sum(axis=1)
        above = [(2 * a + 1, 2 * a, share) for a, share in _mix(first, of_groups)]
        return above + [(2 * b, 2 * b + 1, share) for b, share in _mix(second, of_groups)]
