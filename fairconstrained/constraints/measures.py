"""The numbers that constraints compare: one per group, affine in averages over cells of rows."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
from fairconstrained.terms.head import as_csr
from fairconstrained.terms.ordered_pairs import Family, OrderedPairs, PairNames
from fairconstrained.terms.ratios import Ratios
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True)
class Event:
    """A condition on the label under which rates are compared: a name and the labels it keeps."""

    name: str
    labels: tuple[int, ...]

    def naming(self, labels: tuple[str, str]) -> Event:
        """Return the same event, called by the names of the labels -1 and +1."""
        if len(self.labels) > 1:
            return self
        return Event(f" | label {labels[self.labels[0] > 0]}", self.labels)

    def holds(self, y: Array) -> Array:
        """Return which labels it keeps."""
        return np.logical_or.reduce([y == label for label in self.labels])


Combined = tuple[Matrix, Array | float]
_SMALL = 4096  # entries up to which a combination is dense: sparse ones cost microseconds each
ALL_ROWS = Event("", (-1, 1))
POSITIVES = Event(" | label +1", (1,))
NEGATIVES = Event(" | label -1", (-1,))


@dataclass(frozen=True, eq=False)
class Measures:
    r"""A number for each group, :math:`m = M A \phi(s) + d`, for instance its rate.

    Parameters
    ----------
    cells : CSC of shape (n_cells, n_rows)
        A, as in :class:`~fairconstrained.terms.cell_means.CellMeans`.
    shares : ndarray of shape (n_groups,)
        The groups' shares of the weight: the weighted mean of the numbers is that of all rows.
    what : str
        The kind of the numbers, for messages: "rate", "error".
    groups : list of str
        The groups' names.
    event : Event
        The condition under which the numbers are computed.
    combination : CSR of shape (n_groups, n_cells) or None, default=None
        M; None is the identity: a cell for each group.
    constant : ndarray of shape (n_groups,) or float, default=0.0
        d.
    """

    cells: SparseMatrix
    shares: Array
    what: str
    groups: list[str]
    event: Event = ALL_ROWS
    combination: SparseMatrix | None = None
    constant: Array | float = 0.0

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @property
    def names(self) -> list[str]:
        """The name of each number, for instance "rate(a | label +1)"."""
        return [f"{self.what}({group}{self.event.name})" for group in self.groups]

    @property
    def overall(self) -> str:
        """The name of the number of all rows."""
        return f"{self.what}(all{self.event.name})"

    @property
    def with_overall(self) -> sp.csr_array:
        """The groups and all rows, as rows over the groups."""
        n = len(self)
        each = np.arange(n)
        entries = np.append(np.ones(n), self.shares), np.append(each, each)
        return sp.csr_array((*entries, np.append(each, [n, 2 * n])), shape=(n + 1, n))

    def combined(self, rows: Matrix) -> Combined:
        """Return rows over the groups as rows over the cells, and their constants."""
        constant = rows @ np.broadcast_to(self.constant, len(self))
        return (rows if self.combination is None else rows @ self.combination), constant


def means(
    codes: Array, weight: Array, groups: Groups, what: str, event: Event, kind: str
) -> Measures:
    """Return the mean of every group within an event; groups without rows there are left out.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The group of each row, -1 outside of the event.
    weight : ndarray of shape (n_rows,)
        The weights of the rows.
    groups : Groups
        The groups' names.
    what : str
        The kind of the mean, for messages.
    event : Event
        The condition, which messages name.
    kind : str
        The constraint, for messages.

    Warns
    -----
    VacuousConstraintWarning
        If a group has no rows; the message names the cell.
    """
    counts = np.bincount(codes + 1, minlength=len(groups) + 1)[1:]
    present = np.flatnonzero(counts)
    for k in np.flatnonzero(counts == 0):
        warn_vacuous(
            f"{kind}: the cell 'group {groups.labels[k]}{event.name}' has no rows; "
            "nothing is asked of it."
        )
    position = np.full(len(groups) + 1, -1)  # the last one is that of code -1
    position[present] = np.arange(len(present))
    if len(present) < len(groups):
        codes = position[codes]
    totals = np.bincount(codes + 1, weight, minlength=len(present) + 1)[1:]
    return Measures(
        cell_matrix(codes, weight, len(present)),
        totals / max(totals.sum(), np.finfo(float).tiny),
        what,
        [str(groups.labels[k]) for k in present],
        event,
    )


def warn_vacuous(message: str) -> None:
    """Warn that nothing is asked of a cell."""
    warnings.warn(message, VacuousConstraintWarning, stacklevel=2)


def warn_if_single(measures: Measures, kind: str) -> None:
    """Warn if fewer than two groups have rows in an event."""
    if len(measures) < 2:
        warn_vacuous(
            f"{kind}: fewer than two groups have rows in the cell 'all groups"
            f"{measures.event.name}' (found: {', '.join(measures.groups) or 'none'}); there is "
            "nothing to compare."
        )


ComparedPairs = tuple[sp.csr_array, sp.csr_array, list[tuple[str, str]]]
Comparison = Callable[[Measures], ComparedPairs]


@dataclass(frozen=True)
class GroupPairs:
    """A choice of pairs of groups, and of groups and all rows.

    Parameters
    ----------
    families : callable
        The number n of groups -> families of pairs of them, in which n stands for all rows.
    """

    families: Callable[[int], tuple[Family, ...]]

    def __call__(self, measures: Measures) -> ComparedPairs:
        """Return the two of every pair as rows over the groups, and their names."""
        pairs = OrderedPairs(1.0, 1.0, self.families(len(measures)))
        a, b = pairs.ends(np.arange(pairs.shape[0]))
        n, names = len(measures), [*measures.names, measures.overall]
        first, second = (
            _unit_rows(side, n) if side.max(initial=0) < n else measures.with_overall[side]
            for side in (a, b)
        )
        return first, second, [(names[i], names[j]) for i, j in zip(a, b, strict=True)]

    def of_all(self, measures: Sequence[Measures]) -> tuple[Family, ...]:
        """Return the families of several measures, each followed by the number of all rows."""
        found, below = [], 0
        for one in measures:
            for a, b in self.families(len(one)):
                moved = [range(side.start + below, side.stop + below) for side in (a, b)]
                found.append((moved[0], moved[1]))
            below += len(one) + 1
        return tuple(found)


def _with_the_overall(n: int) -> tuple[Family, ...]:
    """Return every group and all rows, then all rows and every group."""
    groups, every = range(n), range(n, n + 1)
    return ((groups, every), (every, groups)) if n > 1 else ()


def each_group(measures: Measures) -> ComparedPairs:
    """Return every group, compared with nothing."""
    n = len(measures)
    return _unit_rows(np.arange(n), n), sp.csr_array((n, n)), [(a, "") for a in measures.names]


COMPARISONS = {
    "pairs": GroupPairs(lambda n: ((range(n), range(n)),)),
    "overall": GroupPairs(_with_the_overall),
}


def _unit_rows(columns: Array, n_columns: int) -> sp.csr_array:
    """Return the CSR matrix with a one in each row."""
    ends = np.arange(len(columns) + 1)
    return sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(columns), n_columns))


@dataclass(frozen=True)
class Requirement:
    r"""A bound on two compared numbers: :math:`\alpha m_a + \beta m_b + d \le` bound.

    Parameters
    ----------
    first, second : float
        alpha and beta.
    bound : float
        The tolerance.
    text : str
        The inequality, with {first} and {second} for the two numbers.
    constant : float, default=0.0
        d.
    """

    first: float
    second: float
    bound: float
    text: str
    constant: float = 0.0

    def term(self, fields: dict[str, Any], first: Combined, second: Combined) -> CellMeans:
        """Return the term; `first` and `second` are rows over the cells, and constants."""
        return CellMeans(
            **fields,
            combination=self.first * first[0] + self.second * second[0],
            constant=self.first * first[1] + self.second * second[1] + self.constant,
        )


def difference(kappa: float) -> Requirement:
    """Return m_a - m_b <= kappa."""
    return Requirement(1.0, -1.0, kappa, f"{{first}} - {{second}} <= {kappa:g}")


def balanced(beta: float, bound: float) -> Requirement:
    """Return m_a + beta (1 - m_b) <= bound."""
    text = f"{{first}} + {beta:g} * (1 - {{second}}) <= {bound:g}"
    return Requirement(1.0, -beta, bound, text, constant=beta)


def at_most(bound: float) -> Requirement:
    """Return m_a <= bound."""
    return Requirement(1.0, 0.0, bound, f"{{first}} <= {bound:g}")


class RatioRequirement(Requirement):
    r"""A bound on a ratio, :math:`m_a / m_b \ge` ratio, without the division."""

    def term(self, fields: dict[str, Any], first: Combined, second: Combined) -> CellMeans:
        """Return a term whose gap is that of the ratio."""
        plain = super().term(fields, first, second)
        values = {one.name: getattr(plain, one.name) for one in dataclasses.fields(plain)}
        return Ratios(**values, ratio=self.second, whole=second[0], whole_constant=second[1])


def at_least(ratio: float) -> Requirement:
    """Return ratio m_b - m_a <= 0."""
    return RatioRequirement(-1.0, ratio, 0.0, f"{ratio:g} * {{second}} - {{first}} <= 0")


def compared(
    measures: Sequence[Measures],
    comparison: Comparison,
    requirement: Requirement,
    function: ScalarFunction,
    *,
    signs: Array | None = None,
) -> CellMeans:
    """Return the term that imposes a requirement on all pairs of numbers that are compared.

    Parameters
    ----------
    measures : sequence of Measures
        Numbers of groups, compared within each entry.
    comparison : callable
        The choice of the pairs, one of `COMPARISONS`.
    requirement : Requirement
        The bound on the two.
    function : ScalarFunction
        phi.
    signs : ndarray of shape (n_rows,) or None, default=None
        y where phi is a function of the margin.
    """
    cells = _stacked([one.cells for one in measures])
    fields = {"cells": cells, "function": function, "signs": signs}
    if isinstance(comparison, GroupPairs):
        families = comparison.of_all(measures)
        if OrderedPairs(1.0, 1.0, families).shape[0] * cells.shape[0] > _SMALL:
            return _all_pairs(measures, families, requirement, fields)
    chosen = [comparison(one) for one in measures]
    fields["offset"] = np.full(sum(len(pairs) for _, _, pairs in chosen), requirement.bound)
    fields["names"] = tuple(
        requirement.text.format(first=a, second=b) for _, _, pairs in chosen for a, b in pairs
    )
    both = []
    for sides in ([first for first, _, _ in chosen], [second for _, second, _ in chosen]):
        rows, constants = zip(
            *(m.combined(rows) for m, rows in zip(measures, sides, strict=True)), strict=True
        )
        both.append((_block_diagonal(rows), np.concatenate(constants)))
    return requirement.term(fields, *both)


def _all_pairs(
    measures: Sequence[Measures],
    families: tuple[Family, ...],
    requirement: Requirement,
    fields: dict[str, Any],
) -> CellMeans:
    """Return the term that compares many groups: pairs are not listed."""
    blocks, origins = zip(*(one.combined(one.with_overall) for one in measures), strict=True)
    numbers, constants = _block_diagonal(blocks), np.concatenate(origins)
    origin = constants if constants.any() else None
    both = [OrderedPairs(*sides, families, numbers, origin) for sides in ((1.0, 0.0), (0.0, 1.0))]
    names = [name for one in measures for name in (*one.names, one.overall)]
    fields["names"] = PairNames(both[0], requirement.text, names)
    fields["offset"] = requirement.bound
    levels = [0.0 if origin is None else replace(one, numbers=None) @ origin for one in both]
    return requirement.term(fields, *zip(both, levels, strict=True))


def _block_diagonal(blocks: Sequence[Matrix]) -> Matrix:
    """Return the matrix with these blocks: as an array if it is small, else as CSR."""
    shape = sum(one.shape[0] for one in blocks), sum(one.shape[1] for one in blocks)
    if shape[0] * shape[1] > _SMALL:
        return sp.csr_array(sp.block_diag([as_csr(one) for one in blocks], format="csr"))
    found, row, column = np.zeros(shape), 0, 0
    for one in blocks:
        below, right = row + one.shape[0], column + one.shape[1]
        found[row:below, column:right] = as_csr(one).toarray()
        row, column = below, right
    return found


def _stacked(cells: Sequence[SparseMatrix]) -> SparseMatrix:
    """Return CSC matrices one below the other; faster than scipy's way over triples."""
    if len(cells) == 1:
        return cells[0]
    shape = sum(one.shape[0] for one in cells), cells[0].shape[1]
    ends = reduce(add, [one.indptr for one in cells])
    data, indices = np.empty(ends[-1]), np.empty(ends[-1], dtype=ends.dtype)
    below, start = 0, ends[:-1]
    for one in cells:
        lengths = np.diff(one.indptr)
        places = np.arange(len(one.data)) + np.repeat(start - one.indptr[:-1], lengths)
        data[places], indices[places] = one.data, one.indices + below
        below, start = below + one.shape[0], start + lengths
    return sp.csc_array((data, indices, ends), shape=shape)


def group_rates(groups: Groups, weight: Array, kind: str) -> Measures:
    """Return the rates of all groups that have rows; warn of others, and of fewer than two groups.

    `kind` is the constraint, for messages.
    """
    measures = means(groups.codes, weight, groups, "rate", ALL_ROWS, kind)
    warn_if_single(measures, kind)
    return measures


def rates_of(measures: Measures, surrogate: Surrogate) -> CellMeans:
    """Return the groups' rates as a term, one output each."""
    n = len(measures)
    eye = sp.eye_array(n, format="csr")
    return CellMeans(measures.cells, surrogate, eye, np.zeros(n), names=tuple(measures.names))
