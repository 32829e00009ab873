"""Terms that are affine in averages: one head, and what follows from the function averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Self, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import ScalarFunction, SubgradientError
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.terms.head import AffineHead, as_csr
from fairconstrained.utils.typing import Array, SparseMatrix

Pushforward = Callable[[Array, Array], Array]


class FunctionAverages(AffineHead):
    """An affine head on weighted averages, with weights >= 0, of a function phi.

    Attributes
    ----------
    function : ScalarFunction
        phi, of something that is affine in the scores.
    """

    function: ScalarFunction
    batchable = True

    def _with_function(self, function: ScalarFunction) -> FunctionAverages:
        """Return the term with another phi."""
        return replace(self, function=function)  # type: ignore[call-arg]

    def zero_one(self) -> Term:
        """Return the term with the indicator."""
        return self._with_function(self.function.zero_one())

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        """Return the averages, (n_averages,), of the subgradient error of phi."""
        if not self.function.corners:
            return np.zeros(self.combination.shape[1])
        errors = self._with_function(SubgradientError(self.function.corners))
        return np.maximum(errors.forward(scores, auxiliary)[0], 0.0)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether phi is smooth."""
        return self.function.smooth or self.n_outputs == 0

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether phi is affine, or convex and no weight in R negative."""
        if self.function.curvature == (0.0, 0.0) or self.n_outputs == 0:
            return True
        return self.function.convex and not self._signed_parts[1].sum() > 0.0

    @property
    def difference_of_convex(self) -> bool:
        """Whether phi is a difference of convex functions."""
        return self.function.difference_of_convex or self.n_outputs == 0

    @property
    def smoothable(self) -> bool:
        """Whether phi can be rounded."""
        return self.function.smoothable or self.n_outputs == 0

    def smoothed(self, width: float) -> FunctionAverages:
        """Return the term with phi rounded; itself if phi has no kinks."""
        return self if self.function.smooth else self._with_function(self.function.smoothed(width))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return abs(R) times the averages of the subgradient error of phi."""
        return abs(self.combination) @ self._average_errors(scores, auxiliary)

    def convex_parts(self) -> tuple[FunctionAverages, FunctionAverages]:
        """Return terms with convex averages, whose differences are what R multiplies."""
        plus, minus = self.function.convex_parts()
        return self._with_function(plus), self._with_function(minus)

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the majorant with tangents in place of what is subtracted."""
        return self if self.convex else Majorant.of(self, scores, auxiliary)

    def pushforward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Pushforward:
        """Return the derivative at the scores, (changes of scores, of variables) -> of averages.

        This one has a row for every average; where there are many, a subclass does without.
        """
        pullback = self.forward(scores, auxiliary)[1]
        rows = [pullback(unit) for unit in np.eye(self.n_statistics)]

        def push(change: Array, own: Array) -> Array:
            return np.array([np.vdot(row, change) + on_own @ own for row, on_own in rows])

        return push

    def weak_curvature(self) -> Array:
        """Return the largest downward curvature of any output along each score."""
        return np.zeros(self.n_rows) if self.convex else self._bend()

    def _bend(self) -> Array:
        """Return that of a term that is not convex; infinite where it is not known."""
        return np.full(self.n_rows, np.inf)

    def _largest_bend(self, columns: SparseMatrix | None = None) -> Array:
        """Return the most that any output bends down per unit of each statistic's curvature.

        Parameters
        ----------
        columns : sparse matrix of shape (n_statistics, n_columns) or None, default=None
            Which statistics are added up; None keeps each on its own.
        """
        lower, upper = self.function.curvature
        sizes = max(-lower, 0.0), max(upper, 0.0)
        positive, negative = (
            as_csr(part) * size for part, size in zip(self._signed_parts, sizes, strict=True)
        )
        bend = positive + negative
        return column_maxima(bend if columns is None else bend @ columns)


class Tangent:
    """The affine function of scores and own variables that touches the averages of a term.

    Parameters
    ----------
    term : FunctionAverages
        The term.
    scores, auxiliary : ndarray
        Where it touches.
    """

    def __init__(self, term: FunctionAverages, scores: Array, auxiliary: Array):
        self.term, self.scores = term, np.array(scores)
        self.auxiliary = self._own(auxiliary).copy()

    def _own(self, auxiliary: Array) -> Array:
        return auxiliary if len(auxiliary) else self.term.auxiliary_start

    @cached_property
    def _touching(self) -> tuple[Array, Pullback, Pushforward]:
        at = self.scores, self.auxiliary
        return *self.term.forward(*at), self.term.pushforward(*at)

    def forward(self, scores: Array, auxiliary: Array) -> tuple[Array, Pullback]:
        """Return its averages and their pullback, the same everywhere."""
        averages, pullback, push = self._touching
        moved = push(scores - self.scores, self._own(auxiliary) - self.auxiliary)
        return averages + moved, pullback

    def take(self, rows: Array, weights: Array) -> Tangent:
        """Return the tangent on some rows."""
        term = cast("FunctionAverages", self.term.take(rows, weights))
        return Tangent(term, self.scores[rows], self.auxiliary)


@dataclass(frozen=True, eq=False)
class Majorant(AffineHead):
    r"""The convex majorant of a term :math:`R\,(p^+ - p^-) + d - b` with convex :math:`p^\pm`.

    With the tangents :math:`t^\pm` of :math:`p^\pm` and :math:`R = R^+ - R^-` it is

    .. math:: R^+ (p^+ - t^-) - R^- (t^+ - p^-) + d - b.

    Parameters
    ----------
    term : Term
        The term.
    plus, minus : FunctionAverages
        Terms with the averages :math:`p^+` and :math:`p^-`.
    tangents : tuple of Tangent
        :math:`t^+` and :math:`t^-`.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`; R has the weights of
        :math:`p^+, p^-, t^+, t^-`.

    References
    ----------
    IDCA, equation (21).
    """

    term: Term
    plus: FunctionAverages
    minus: FunctionAverages
    tangents: tuple[Tangent, Tangent]
    batchable = True

    @classmethod
    def of(cls, term: FunctionAverages, scores: Array, auxiliary: Array) -> Majorant:
        """Return the majorant that touches a term at the scores."""
        plus, minus = term.convex_parts()
        tangents = Tangent(plus, scores, auxiliary), Tangent(minus, scores, auxiliary)
        up, down = (as_csr(part) for part in term._signed_parts)
        return cls(
            term, plus, minus, tangents, offset=term.offset, names=term.names,
            combination=sp.csr_array(sp.hstack([up, down, -down, -up])), constant=term.constant,
        )  # fmt: skip

    n_rows = property(attrgetter("term.n_rows"))
    n_auxiliary = property(attrgetter("term.n_auxiliary"))
    auxiliary_start = property(attrgetter("term.auxiliary_start"))
    convex = True

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether both convex functions are smooth."""
        return self.plus.smooth and self.minus.smooth

    @property
    def smoothable(self) -> bool:
        """Whether the kinks of both can be rounded."""
        return self.plus.smoothable and self.minus.smoothable

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the four averages, one after the other, and their pullback."""
        parts = (self.plus, self.minus, *self.tangents)
        averages, pullbacks = zip(*(p.forward(scores, auxiliary) for p in parts), strict=True)

        def pullback(u: Array) -> tuple[Array, Array]:
            each = zip(pullbacks, np.split(u, 4), strict=True)
            on_scores, own = zip(*(pull(part) for pull, part in each), strict=True)
            return sum(on_scores), sum(own)

        return np.concatenate(averages), pullback

    def zero_one(self) -> Term:
        """Return the zero-one version of the term."""
        return self.term.zero_one()

    def take(self, rows: Array, weights: Array) -> Majorant:
        """Return the majorant on some rows."""
        first, second = self.tangents
        return replace(
            self,
            term=self.term.take(rows, weights),
            plus=cast("FunctionAverages", self.plus.take(rows, weights)),
            minus=cast("FunctionAverages", self.minus.take(rows, weights)),
            tangents=(first.take(rows, weights), second.take(rows, weights)),
        )

    strata = property(attrgetter("term.strata"))
    blocks = property(attrgetter("term.blocks"))

    def smoothed(self, width: float) -> Self:
        """Return the majorant with kinks rounded; the tangents are smooth."""
        plus, minus = self.plus.smoothed(width), self.minus.smoothed(width)
        return replace(self, plus=plus, minus=minus)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the weighted subgradient errors of both convex functions."""
        errors = [p._average_errors(scores, auxiliary) for p in (self.plus, self.minus)]
        return self.combination @ np.concatenate([*errors, np.zeros(2 * len(errors[0]))])


def column_maxima(matrix: SparseMatrix) -> Array:
    """Return the largest entry of each column."""
    return np.ravel(matrix.max(axis=0).toarray())
