"""The numbers that constraints compare: one per group, affine in averages over cells of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag

from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
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


_SMALL = 4096  # entries up to which pairs are listed: many small products cost more than a few
ALL_ROWS = Event("", (-1, 1))
POSITIVES = Event(" | label +1", (1,))
NEGATIVES = Event(" | label -1", (-1,))


@dataclass(frozen=True, eq=False)
class Measures:
    r"""A number for each group, :math:`m = M A \phi(s) + d`, for instance its rate.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The cell of each row, -1 for none: A averages over the rows of each cell.
    weight : ndarray of shape (n_rows,)
        The weights of the rows.
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

    codes: Array
    weight: Array
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
    def n_cells(self) -> int:
        """The number of cells of rows."""
        return len(self) if self.combination is None else int(self.combination.shape[1])

    @cached_property
    def cells(self) -> SparseMatrix:
        """A, as in :class:`~fairconstrained.terms.cell_means.CellMeans`."""
        return cell_matrix(self.codes, self.weight, self.n_cells)

    def numbers(self) -> tuple[Matrix, Array]:
        """Return M and d with a row below them for all rows."""
        n, each = len(self), np.arange(len(self))
        rows: Any
        if n * n <= _SMALL:
            rows = np.vstack([np.eye(n), self.shares])
        else:
            entries = np.append(np.ones(n), self.shares), np.append(each, each)
            rows = sp.csr_array((*entries, np.append(each, [n, 2 * n])), shape=(n + 1, n))
        constant = rows @ np.broadcast_to(self.constant, n)
        return rows if self.combination is None else rows @ self.combination, constant


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
        codes,
        weight,
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


@dataclass(frozen=True)
class Comparison:
    """A choice of pairs of groups, and of groups and all rows.

    Parameters
    ----------
    families : callable
        The number n of groups -> families of pairs of them, in which n stands for all rows.
    """

    families: Callable[[int], tuple[Family, ...]]

    def pairs(self, measures: Sequence[Measures], first: float, second: float) -> OrderedPairs:
        """Return first m_a + second m_b for all pairs, within each entry of the measures."""
        families, below = [], 0
        for one in measures:
            for pair in self.families(len(one)):
                a, b = (range(side.start + below, side.stop + below) for side in pair)
                families.append((a, b))
            below += len(one) + 1
        blocks, constants = zip(*(one.numbers() for one in measures), strict=True)
        numbers = blocks[0]
        if len(blocks) > 1:
            dense = all(isinstance(one, np.ndarray) for one in blocks)
            numbers = block_diag(*blocks) if dense else sp.block_diag(blocks, format="csr")
        origin = np.concatenate(constants)
        return OrderedPairs(
            first, second, tuple(families), numbers, origin if origin.any() else None
        )

    def named(self, measures: Measures) -> list[tuple[int, int, str, str]]:
        """Return the positions and the names of all pairs of one entry."""
        pairs = OrderedPairs(1.0, 1.0, self.families(len(measures)))
        names = [*measures.names, measures.overall]
        ends = (side.tolist() for side in pairs.ends(np.arange(pairs.shape[0])))
        return [(a, b, names[a], names[b]) for a, b in zip(*ends, strict=True)]


def _with_the_overall(n: int) -> tuple[Family, ...]:
    """Return every group and all rows, then all rows and every group."""
    groups, every = range(n), range(n, n + 1)
    return ((groups, every), (every, groups)) if n > 1 else ()


COMPARISONS = {
    "pairs": Comparison(lambda n: ((range(n), range(n)),)),
    "overall": Comparison(_with_the_overall),
}
EACH_GROUP = Comparison(lambda n: ((range(n), range(n, n + 1)),))  # for a requirement on m_a alone


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
    of_ratios : bool, default=False
        Whether it is a bound on m_a / m_b without the division, with beta the least ratio.
    """

    first: float
    second: float
    bound: float
    text: str
    constant: float = 0.0
    of_ratios: bool = False


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


def at_least(ratio: float) -> Requirement:
    """Return ratio m_b - m_a <= 0."""
    text = f"{ratio:g} * {{second}} - {{first}} <= 0"
    return Requirement(-1.0, ratio, 0.0, text, of_ratios=True)


class Compared(NamedTuple):
    """Numbers of groups, compared within each entry, the choice of the pairs, and the bound."""

    measures: Sequence[Measures]
    comparison: Comparison
    requirement: Requirement


def compared_term(
    compared: Compared, function: ScalarFunction, *, signs: Array | None = None
) -> CellMeans:
    """Return the term that imposes a requirement on all pairs of numbers that are compared.

    Parameters
    ----------
    compared : Compared
        The numbers, the pairs and the bound.
    function : ScalarFunction
        phi.
    signs : ndarray of shape (n_rows,) or None, default=None
        y where phi is a function of the margin.
    """
    measures, comparison, requirement = compared
    pairs = comparison.pairs(measures, requirement.first, requirement.second)
    every = [name for one in measures for name in (*one.names, one.overall)]
    names: Sequence[str] = PairNames(pairs, requirement.text, every)
    whole: Any = replace(pairs, first=0.0, second=1.0)
    combination: Any = pairs
    bound: Any = requirement.bound
    constant: Array | float = 0.0
    of_whole: Array | float = 0.0
    listed = pairs.shape[0] * pairs.shape[1] <= _SMALL
    if listed or pairs.origin is not None:
        a, b = pairs.ends(np.arange(len(names)))
        if pairs.origin is not None:
            of_whole = pairs.origin[b]
            constant = pairs.first * pairs.origin[a] + pairs.second * of_whole
        if listed:
            numbers, named = cast("Array", pairs.numbers), np.array(every, dtype=object)
            whole, bound = numbers[b], np.full(len(names), bound)
            combination = pairs.first * numbers[a] + pairs.second * whole
            ends = zip(named[a], named[b], strict=True)
            names = tuple(requirement.text.format(first=i, second=j) for i, j in ends)
    fields: dict[str, Any] = {
        "cells": _stacked(measures),
        "function": function,
        "combination": combination,
        "offset": bound,
        "signs": signs,
        "names": names,
        "constant": constant + requirement.constant,
    }
    if requirement.of_ratios:
        return Ratios(**fields, ratio=requirement.second, whole=whole, whole_constant=of_whole)
    return CellMeans(**fields)


def _stacked(measures: Sequence[Measures]) -> SparseMatrix:
    """Return the cells of all measures, one below the other."""
    if len(measures) == 1:
        return measures[0].cells
    inside = [one.codes >= 0 for one in measures]
    if np.sum(inside, axis=0).max(initial=0) > 1:
        return sp.vstack([cast("sp.csc_array", one.cells) for one in measures], format="csc")
    codes, below = np.full(len(inside[0]), -1), 0  # disjoint events: one pass over the rows
    for one, rows in zip(measures, inside, strict=True):
        codes[rows] = one.codes[rows] + below
        below += one.n_cells
    return cell_matrix(codes, measures[0].weight, below)


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
