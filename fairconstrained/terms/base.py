"""What a term is: functions of the scores in two steps, and the abilities that a term may have.

Every objective and every constraint is a term. The first step computes statistics of the scores,
the second one, the head, a few outputs from the statistics. Only the first step reads rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from fairconstrained.utils.arrays import Array, SparseMatrix, largest_first

Pullback = Callable[[Array], tuple[Array, Array]]
NO_AUXILIARY = np.zeros(0)


class Term(ABC):
    r"""A function c: scores -> (n_outputs,), with c <= 0 where it is a constraint.

    Subclasses define `n_rows`, `n_outputs`, `names`, `forward`, `head`, `head_vjp` and `zero_one`.
    Values and derivatives follow. A term declares further abilities by its properties, and defines
    the methods that they name.

    Attributes
    ----------
    n_rows, n_outputs, n_statistics : int
        The numbers of rows of the scores, of outputs and of statistics.
    names : sequence of str
        A description of each output.
    n_auxiliary : int
        The number of the term's own variables.
    chosen : mapping
        The parameters of the constraint that were chosen on the rows of the term, by name.
    smooth : bool
        Whether the gradients are continuous.
    convex : bool
        Whether every output is convex in the scores.
    smoothable, difference_of_convex : bool
        Whether `smoothed` returns a smooth term, and whether `convexify` can be called; by default
        where the term is smooth, or convex.
    batchable : bool
        Whether `take` is defined, so that the term can be put on some of its rows.
    curved : bool
        Whether pullbacks know the second derivatives, see :class:`FactoredPullback`.
    shardable : bool
        Whether the statistics are sums over rows, so that shards of the rows can be merged: for any
        partition they are the sums of those of ``take(rows_k, 1)``, and batches are unbiased. Rows
        that agree in all their cells and signs are an atom. A term on one row per atom, weighted by
        the atom's total W, gives the term on all rows: ``take(atoms, weights / W[atoms])``.
    of_rates : bool
        Whether the statistics are averages of a function of the scores over cells.
    of_differences : bool
        Whether the outputs stay the same where all scores change by the same number.
    factored : bool
        Whether pullbacks of a shardable term are a :class:`FactoredPullback`.
    output_blocks : ndarray of int of shape (n_outputs,) or None
        The block whose rows determine each output; None if outputs depend on several blocks.
    """

    n_rows: int
    n_outputs: int
    n_statistics: int
    names: Sequence[str]
    n_auxiliary: int = 0
    chosen: Mapping[str, Any] = MappingProxyType({})
    smooth: bool = False
    convex: bool = False
    batchable: bool = False
    curved: bool = False
    shardable: bool = False
    of_rates: bool = False
    of_differences: bool = False
    factored: bool = False
    output_blocks: Array | None = None

    smoothable = property(attrgetter("smooth"))
    difference_of_convex = property(attrgetter("convex"))

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of the auxiliary variables: zeros."""
        return np.zeros(self.n_auxiliary)

    def auxiliary_for(self, value: Callable[[Array], Array]) -> Array:
        """Return auxiliary variables that suit given scores; by default the initial values.

        `value` maps auxiliary variables to the outputs at the given scores, shape (n_outputs,).
        """
        return self.auxiliary_start

    @abstractmethod
    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics, (n_statistics,), and the function that pulls weights on them back.

        That is u -> (d <u, statistics> / d scores, d <u, statistics> / d auxiliary). The scores are
        (n_rows,) or (n_rows, n_classes), the term's own variables (n_auxiliary,).
        """

    @abstractmethod
    def head(self, statistics: Array) -> Array:
        """Return the outputs, (n_outputs,), for the statistics."""

    @abstractmethod
    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient of <v, outputs> with respect to the statistics."""

    def values_of(self, statistics: Array, outputs: Array) -> Array:
        """Return some outputs, shape (n_chosen,), by their positions."""
        return self.head(statistics)[outputs]

    def vjp_of(self, statistics: Array, outputs: Array, v: Array) -> Array:
        """Return the gradient of <v, some outputs> with respect to the statistics."""
        full = np.zeros(self.n_outputs)
        full[outputs] = v
        return self.head_vjp(statistics, full)

    def rows_of(self, statistics: Array, outputs: Array) -> Any:
        """Return the gradients of some outputs in the statistics, (n_chosen, n_statistics).

        They are an array, sparse, or :class:`~fairconstrained.terms.ordered_pairs.OrderedPairs`.
        """
        units = np.equal.outer(outputs, np.arange(self.n_outputs)).astype(float)
        rows = [self.head_vjp(statistics, unit) for unit in units]
        return np.reshape(rows, (len(outputs), len(statistics)))

    def largest(
        self, statistics: Array, least: float, most: int, *, added: Any = 0, distinct: bool = False
    ) -> Array:
        """Return the positions of the largest outputs that are at least `least`, the largest first.

        There are at most `most`; something may be added to the outputs. Of all pairs of many
        numbers, `distinct` asks for pairs that do not share numbers.
        """
        values = self.head(statistics) + added
        order = largest_first(values, most)
        return order[values[order] >= least]

    def gap_of(self, statistics: Array) -> Array:
        """Return the gaps for the statistics: the outputs, for a term without a tolerance."""
        return self.head(statistics)

    @property
    def gap_bounds(self) -> Array:
        """The largest value allowed for each gap: 0 for a term without a tolerance."""
        return np.zeros(self.n_outputs)

    def largest_gaps(self, statistics: Array) -> tuple[Array, Array]:
        """Return gaps and their bounds, among them the largest gap and the largest excess."""
        return self.gap_of(statistics), self.gap_bounds

    @abstractmethod
    def zero_one(self) -> "Term":
        """Return the zero-one version: the term with the indicator in place of the surrogate."""

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the gaps that a tolerance bounds, shape (n_outputs,) unless a subclass differs."""
        return self.gap_of(self.forward(scores, auxiliary)[0])

    def smoothed(self, width: float) -> "Term":
        """Return the term with the kinks of its functions rounded over `width`."""
        return self

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        r"""Return :math:`\epsilon`, (n_outputs,), for which gradients are epsilon-subgradients.

        It is positive only for a term that `smoothed` returned; its gradients at the scores are
        :math:`\epsilon`-subgradients of the term before rounding.
        """
        return np.zeros(self.n_outputs)

    def take(self, rows: Array, weights: Array) -> "Term":
        """Return the term on some rows, each multiplied by a weight.

        Rows may be repeated. The weight is the factor of the row's share in the statistics.
        """
        raise TypeError(f"{type(self).__name__} has no batches of rows.")

    def strata(self) -> Array:
        """Return codes, (n_rows,), that are equal for rows of the same cells; all equal here."""
        return np.zeros(self.n_rows, dtype=int)

    def blocks(self) -> Array | None:
        """Return codes from 0, (n_rows,), of rows that batches hold together, such as queries."""
        return None

    def take_outputs(self, rows: Array, outputs: Array) -> "Term":
        """Return some outputs on the rows of the blocks that determine them.

        `rows` are all rows of some blocks, `outputs` those that these determine. Their values are
        exact, not estimates, since no other rows count.
        """
        raise TypeError(f"{type(self).__name__} has no outputs by blocks.")

    def other_starts(self, statistics: Array) -> tuple[float, ...]:
        """Return constant scores near which there are local solutions of another kind than these.

        `statistics` are those of a local solution.
        """
        return ()

    def value(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return c(scores), shape (n_outputs,)."""
        return self.head(self.forward(scores, auxiliary)[0])

    def vjp(self, scores: Array, v: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Array]:
        """Return the gradients of <v, c> with respect to the scores and the auxiliary variables."""
        statistics, pullback = self.forward(scores, auxiliary)
        return pullback(self.head_vjp(statistics, v))

    def weak_curvature(self) -> Array:
        """Return d >= 0, (n_rows,): adding sum_i d_i s_i^2 / 2 makes every output convex.

        Zeros for a convex term, infinity for any other one unless a subclass knows a bound.
        """
        return np.zeros(self.n_rows) if self.convex else self._bend()

    def _bend(self) -> Array:
        """Return the largest downward curvature of any output along each score."""
        return np.full(self.n_rows, np.inf)

    @property
    def weakly_convex(self) -> bool:
        """Whether a quadratic in the scores can make every output convex."""
        return bool(np.all(np.isfinite(self.weak_curvature())))

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> "Term":
        """Return a convex majorant that touches the term at the scores; itself if it is convex.

        A term that is not known as a difference of convex functions raises a TypeError.
        """
        if not self.convex:
            raise TypeError(f"convexify needs a difference of convex functions; got {self!r}.")
        return self


class FactoredPullback:
    """A pullback through few sums over rows: a Jacobian is one product with the rows.

    It is called with weights of the statistics, or with a table of them, and returns a row for
    every row of the table. Those of curved terms have ``second_derivatives(u)``, of <u, statistics>
    in every score, (n_rows,), and ``by_variable(u)``, what each variable of the term has of these,
    (n_rows, n_auxiliary). Variables are subtracted from scores: derivatives in a score and a
    variable are the negative of these, those in a variable their sum over the rows.
    """

    def basis(self) -> list[SparseMatrix] | None:
        """Return the weights of the rows in the sums, CSC of shape (n_sums, n_rows), in parts.

        None where these are not few.
        """
        return None

    def jacobian(self, products: list[Array]) -> tuple[Array, Array]:
        """Return the derivatives of the statistics in parameters and in own variables.

        Products are the parts of `basis` times the derivatives of the scores, (n_sums,
        n_parameters) each; by default the statistics are the sums.
        """
        rows = np.concatenate(products)
        return rows, np.zeros((len(rows), 0))


def common_blocks(terms: Iterable[Term]) -> Array | None:
    """Return the blocks of terms on the same rows, None if none of them has any.

    Terms with different blocks raise a ValueError.
    """
    every = (term.blocks() for term in terms)
    blocks = [codes for codes in every if codes is not None]
    if any(not np.array_equal(blocks[0], codes) for codes in blocks[1:]):
        raise ValueError("Terms on the same rows must have the same blocks, such as queries.")
    return blocks[0] if blocks else None
