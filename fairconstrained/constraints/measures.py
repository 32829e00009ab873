"""The numbers that constraints compare: one per group, affine in averages over cells of rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag

from fairconstrained.data.groups import Groups
from fairconstrained.exceptions import of_no_rows
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
from fairconstrained.terms.head import AffineHead
from fairconstrained.terms.ordered_pairs import Family, OrderedPairs, PairNames, as_csr
from fairconstrained.utils.arrays import Array, Matrix, SparseMatrix, unique_codes
from fairconstrained.utils.execution import in_fold

Warn = Callable[[str], None]
_SMALL = 4096  # entries up to which matrices are dense, and names are listed


@dataclass(frozen=True, eq=False)
class Measures:
    r"""A number for each group, :math:`m = M A \phi(s) + d`, for instance its rate."""

    # the cell of each row, -1 for none: A averages over the rows of each cell, (n_rows,)
    codes: Array
    weight: Array  # the weights of the rows, (n_rows,)
    shares: Array  # the groups' shares of the weight, (n_groups,)
    what: str  # the kind of the numbers, for messages: "rate", "error"
    groups: list[str]  # the groups' names
    numbers: Matrix  # m; the last row is that of the number of all rows, (n_groups + 1, n_cells)
    event: str = ""  # the condition under which the numbers are computed, as names end with it
    constant: Array | float = 0.0  # d, (n_groups + 1,)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @property
    def names(self) -> list[str]:
        """The name of each number, for instance "rate(a | label +1)"; the last is of all rows."""
        return [f"{self.what}({group}{self.event})" for group in (*self.groups, "all")]

    @cached_property
    def cells(self) -> SparseMatrix:
        """A, as in :class:`~fairconstrained.terms.cell_means.CellMeans`."""
        return cell_matrix(self.codes, self.weight, int(self.numbers.shape[1]))


Families = Callable[[Measures], tuple[Family, ...]]
"""From measures of n groups to families of pairs of these, in which n stands for all rows."""


def means(
    groups: Groups, weight: Array, warn: Warn, what: str = "rate", event: str | None = ""
) -> Measures:
    """Return the mean of every group within an event; groups without rows there are left out.

    Rows without the event have no group. It is None for means that are not compared.
    """
    counts = np.bincount(groups.codes + 1, minlength=len(groups) + 1)[1:]
    lacking = dict.fromkeys(np.flatnonzero(counts == 0).tolist(), event or "")
    names, codes = with_rows(groups, groups.codes, lacking, warn, event)
    totals = np.bincount(codes + 1, weight, minlength=len(names) + 1)[1:]
    shares = totals / max(totals.sum(), np.finfo(float).tiny)
    return Measures(codes, weight, shares, what, names, _with_mean(shares), event or "")


def errors(y: Array, rates: Measures) -> Measures:
    """Return the groups' error rates, from the rates of their positives and negatives."""
    codes = unique_codes(2 * rates.codes + (y > 0))[1]  # every row is in the cell of its group
    signed = sp.csr_array((np.where(y > 0, -1.0, 1.0), codes, np.arange(len(y) + 1)))
    numbers, positive = rates.numbers @ (rates.cells @ signed), rates.cells @ (y > 0)
    return replace(rates, codes=codes, numbers=numbers, constant=rates.numbers @ positive)


def with_rows(
    groups: Groups, codes: Array, lacking: Mapping[int, str], warn: Warn, event: str | None = ""
) -> tuple[list[str], Array]:
    """Return the names of the groups that lack no rows, and codes of these; warn of the others.

    `lacking` has the event of which a group has no rows; `event` is that of `means`.
    """
    present = [k for k in range(len(groups)) if k not in lacking]
    names = [str(groups.labels[k]) for k in present]
    if event is not None and len(names) < 2:
        warn(
            f"fewer than two groups have rows in the cell 'all groups{event}' (found: "
            f"{', '.join(map('group {}'.format, names)) or 'none'}); there is nothing to compare."
        )
    if lacking:
        warn(of_no_rows([f"group {groups.labels[k]}{missed}" for k, missed in lacking.items()]))
        position = np.full(len(groups) + 1, -1)  # the last one is that of code -1
        position[present] = np.arange(len(present))
        codes = position[codes]
    return names, codes


def _with_mean(shares: Array) -> Matrix:
    """Return the identity with a row below it for the mean of all groups."""
    n = len(shares)
    if n * n <= _SMALL:
        return np.vstack([np.eye(n), shares])
    return sp.csr_array(sp.vstack([sp.eye_array(n), sp.csr_array(shares[None, :])]))


def _with_each_other(part: Measures) -> tuple[Family, ...]:
    return ((range(len(part)), range(len(part))),)


def _with_the_overall(part: Measures) -> tuple[Family, ...]:
    """Return every group and all rows, then all rows and every group."""
    (sides,) = each_group(part)
    return (sides, sides[::-1]) if len(part) > 1 else ()


def each_group(part: Measures) -> tuple[Family, ...]:
    """Return every group and all rows, for a requirement on groups, or on these two in order."""
    return ((range(len(part)), range(len(part), len(part) + 1)),)


def _with_a_group(name: str, part: Measures) -> tuple[Family, ...]:
    """Return every group and the one of a name, then this one and every group."""
    if name not in part.groups:
        return ()
    k = list(part.groups).index(name)
    others, it = (range(k), range(k + 1, len(part))), range(k, k + 1)
    sides = [(side, it) for side in others if side] + [(it, side) for side in others if side]
    return tuple(sides)


COMPARISONS = {"pairs": _with_each_other, "overall": _with_the_overall}


def check_against(against: object, groups: Groups) -> None:
    """Raise if `against` is no way to compare, and no group of an attribute in any stratum."""
    parts = groups.sensitive.separate
    if str(against) in COMPARISONS or in_fold() or any(p.named(against) >= 0 for p in parts):
        return
    names = [str(name) for part in parts for name in part.labels]
    raise ValueError(
        f"against={against!r} is neither 'pairs' nor 'overall', nor one of the groups {names}."
    )


def comparison(against: object, groups: Groups, warn: Warn) -> Families:
    """Return which numbers are compared: as a name of COMPARISONS says, or with a named group."""
    if str(against) in COMPARISONS:
        return COMPARISONS[str(against)]
    return partial(_with_a_group, label_of(against, groups, warn))


def label_of(against: object, groups: Groups, warn: Warn) -> str:
    """Return what the group of a name is called; nothing, with a warning, if no row is in it."""
    k, labels = groups.named(against), [*map(str, groups.labels)]
    if k < 0:
        warn(f"no row of {labels} is in the group {against!r}; nothing is compared.")
    return labels[k] if k >= 0 else ""


# The factors and the text of a bound on every number, whatever the others are.
ALONE = (1.0, 0.0), "{first} <= {bound}"


@dataclass(frozen=True, eq=False)
class Compared:
    r"""Numbers of groups, those that are compared, and :math:`\alpha m_a + \beta m_b + d \le b`."""

    measures: Sequence[Measures]  # numbers are compared within each entry
    families: Families
    bound: float  # b, the tolerance
    factors: tuple[float, float] = (1.0, -1.0)  # alpha and beta
    # the inequality, with {first} and {second} for the two numbers
    text: str = "{first} - {second} <= {bound}"
    constant: float = 0.0  # d
    # makes the term, usually its class; for Ratios it is a bound on m_a / m_b without the division,
    # with beta the least ratio
    kind: Callable[..., AffineHead] = CellMeans
    # what the names of numbers end with: the kind has as many statistics for each cell
    marks: Sequence[str] = ("",)
    # the labels, where the numbers are means of a function of the margin, a loss, (n_rows,)
    signs: Array | None = None
    # the parameters of the constraint that were chosen on these rows, which the term keeps
    chosen: Mapping[str, Any] = field(default_factory=dict)
    # fields of the claims that held-out rows test, see
    # `Claim`, other than their defaults
    claimed: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> Any:
        """The matrix of all numbers, of those of all measures one below the other."""
        blocks: list[Any] = [part.numbers for part in self.measures]
        dense = all(isinstance(block, np.ndarray) for block in blocks)
        return block_diag(*blocks) if dense else sp.block_diag(blocks, format="csr")

    @cached_property
    def pairs(self) -> OrderedPairs:
        """The matrix of first m_a + second m_b for all pairs, within each entry of the measures."""
        families, below = [], 0
        for part in self.measures:
            for pair in self.families(part):
                a, b = (range(side.start + below, side.stop + below) for side in pair)
                families.append((a, b))
            below += len(part) + 1
        constants = [np.full(len(part) + 1, part.constant) for part in self.measures]
        origin = np.concatenate(constants) if any(map(np.any, constants)) else None
        return OrderedPairs(*self.factors, tuple(families), self.numbers, origin)

    def texts(self, marks: Sequence[str]) -> PairNames:
        """Return the inequality of every pair, for each mark at the end of the numbers' names."""
        names = [name for part in self.measures for name in part.names]
        text = self.text.replace("{bound}", f"{self.bound:g}")
        return PairNames(self.pairs, text, names, marks)

    @cached_property
    def cells(self) -> SparseMatrix:
        """The cells of all measures, one below the other."""
        measures = self.measures
        if len(measures) == 1:
            return measures[0].cells
        inside = [part.codes >= 0 for part in measures]
        if np.sum(inside, axis=0).max(initial=0) > 1:
            return sp.vstack([cast("sp.csc_array", part.cells) for part in measures], format="csc")
        codes, below = np.full(len(inside[0]), -1), 0  # disjoint events: one pass over the rows
        for part, rows in zip(measures, inside, strict=True):
            codes[rows] = part.codes[rows] + below
            below += part.numbers.shape[1]
        return cell_matrix(codes, measures[0].weight, below)

    def term(self, function: ScalarFunction) -> AffineHead:
        """Return the term that imposes the bound on all pairs, for averages of a function."""
        pairs, combination = self.pairs, cast("Any", self.pairs)
        if len(self.marks) != 1:
            each = sp.eye_array(len(self.marks), format="csr")
            combination = sp.csr_array(sp.kron(as_csr(pairs), each, format="csr"))
        texts, few = self.texts(self.marks), math.prod(combination.shape) <= _SMALL
        constant: Array | float = self.constant
        if pairs.origin is not None:
            a, b = pairs.ends()
            constant = constant + pairs.first * pairs.origin[a] + pairs.second * pairs.origin[b]
        signs = {} if self.signs is None else {"signs": self.signs}
        return self.kind(
            self.cells,
            function,
            **signs,
            combination=combination,
            offset=self.bound,
            names=tuple(texts) if few else texts,
            constant=constant,
            chosen=self.chosen,
        )


def of_groups(numbers: Measures, *bound: Any, **others: Any) -> Compared:
    """Return the bound on the number of every group and that of all rows, see `Compared`."""
    return Compared([numbers], each_group, *bound, **others)
