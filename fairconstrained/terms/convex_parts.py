"""Differences of convex terms, and the sums of terms that they are split into."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fairconstrained.terms._composed import Composed, with_ability
from fairconstrained.terms.base import (
    NO_AUXILIARY,
    Batchable,
    Pullback,
    Shardable,
    Shiftable,
    Term,
    common_blocks,
    smoothed,
    subgradient_error,
)
from fairconstrained.utils.typing import Array


class DifferenceOfConvex(Term):
    """A term that is a difference of two terms that are convex in the scores."""

    @property
    def difference_of_convex(self) -> bool:
        """Whether `convex_parts` can be called; it may depend on the term's function."""
        return True

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """The number of statistics, by which a sum of terms tells their statistics apart."""

    @abstractmethod
    def convex_parts(self) -> tuple[DifferenceOfConvex, DifferenceOfConvex]:
        """Return terms (plus, minus), convex in the scores, with c = plus - minus."""

    @abstractmethod
    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> DifferenceOfConvex:
        """Return the affine term that touches this one at the scores."""

    @abstractmethod
    def scaled(self, factor: float) -> DifferenceOfConvex:
        """Return the term times a factor."""

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the convex majorant at the scores: the minus part replaced by its tangent."""
        if self.convex:
            return self
        plus, minus = self.convex_parts()
        return SumTerm((plus, minus.linearize(scores, auxiliary).scaled(-1.0)))


@dataclass(frozen=True, eq=False)
class SumTerm(Composed, Shiftable, Shardable, DifferenceOfConvex):
    """The sum of terms on the same rows with the same number of outputs.

    It has the abilities that all its summands have.

    Parameters
    ----------
    terms : tuple of DifferenceOfConvex
        The summands; they share their auxiliary variables.
    """

    terms: tuple[DifferenceOfConvex, ...]

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return self.terms[0].n_outputs

    @property
    def n_auxiliary(self) -> int:
        """The number of variables of the first summand, which all of them share."""
        return self.terms[0].n_auxiliary

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of the first summand."""
        return self.terms[0].auxiliary_start

    @property
    def names(self) -> Sequence[str]:
        """The names of the first summand."""
        return self.terms[0].names

    @property
    def convex(self) -> bool:
        """Whether every summand is convex (sufficient, not necessary)."""
        return all(term.convex for term in self.terms)

    @property
    def n_statistics(self) -> int:
        """The number of statistics of all summands."""
        return sum(term.n_statistics for term in self.terms)

    @property
    def shardable(self) -> bool:
        """Whether every summand is shardable."""
        return all(isinstance(term, Shardable) and term.shardable for term in self.terms)

    @property
    def difference_of_convex(self) -> bool:
        """Whether every summand is a difference of convex terms."""
        return all(term.difference_of_convex for term in self.terms)

    def _split(self, statistics: Array) -> list[Array]:
        ends = np.cumsum([term.n_statistics for term in self.terms])[:-1]
        return np.split(statistics, ends)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the summands' statistics, one after the other."""
        passes = [term.forward(scores, auxiliary) for term in self.terms]

        def pullback(u: Array) -> tuple[Array, Array]:
            parts = zip(passes, self._split(u), strict=True)
            on_scores, own = zip(*(back(part) for (_, back), part in parts), strict=True)
            return np.sum(on_scores, axis=0), np.sum(own, axis=0)

        return np.concatenate([statistics for statistics, _ in passes]), pullback

    def head(self, statistics: Array) -> Array:
        """Return the sum of the heads."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.sum([term.head(part) for term, part in parts], axis=0)

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradients of the summands, one after the other."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.concatenate([term.head_vjp(part, v) for term, part in parts])

    def zero_one(self) -> SumTerm:
        """Return the sum of the zero-one versions, the sum itself if they cannot be added.

        The latter are majorants of class losses, whose predictions are measured without them.
        """
        versions = [term.zero_one() for term in self.terms]
        if not all(isinstance(term, DifferenceOfConvex) for term in versions):
            return self
        return SumTerm(with_ability(DifferenceOfConvex, versions))

    def gap_of(self, statistics: Array) -> Array:
        """Return the sum of the gaps."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.sum([term.gap_of(part) for term, part in parts], axis=0)

    def shifted(self, shift: Array) -> Self:
        """Return the sum with the first summand shifted."""
        (first,) = with_ability(Shiftable, self.terms[:1])
        (moved,) = with_ability(DifferenceOfConvex, [first.shifted(shift)])
        return replace(self, terms=(moved, *self.terms[1:]))

    def weak_curvature(self) -> Array:
        """Return the sum of the bounds of the summands."""
        return np.sum([term.weak_curvature() for term in self.terms], axis=0)

    def take(self, rows: Array, weights: Array) -> SumTerm:
        """Return the sum of the summands on some rows."""
        taken = [term.take(rows, weights) for term in with_ability(Batchable, self.terms)]
        return SumTerm(with_ability(DifferenceOfConvex, taken))

    def blocks(self) -> Array | None:
        """Return the blocks of the summands."""
        return common_blocks(self.terms)

    def convex_parts(self) -> tuple[SumTerm, SumTerm]:
        """Return the sums of the plus and of the minus parts."""
        plus, minus = zip(*(term.convex_parts() for term in self.terms), strict=True)
        return SumTerm(plus), SumTerm(minus)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SumTerm:
        """Return the sum of the tangents."""
        return SumTerm(tuple(term.linearize(scores, auxiliary) for term in self.terms))

    def scaled(self, factor: float) -> SumTerm:
        """Return the sum times a factor."""
        return SumTerm(tuple(term.scaled(factor) for term in self.terms))

    def smoothed(self, width: float) -> SumTerm:
        """Return the sum of the rounded summands."""
        rounded = [smoothed(term, width) for term in self.terms]
        return SumTerm(with_ability(DifferenceOfConvex, rounded))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sum of the summands' subgradient errors."""
        return np.sum([subgradient_error(t, scores, auxiliary) for t in self.terms], axis=0)
