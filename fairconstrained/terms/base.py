"""Terms: functions of the scores that are made of averages over cells of rows.

Every objective and every constraint of the papers is one. A term is two steps (METHODS.md 1):
statistics of the scores that add up over rows, then a small function, the head, of them. Only the
first step touches rows, so batches and partitions need nothing but the statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fairconstrained.utils.typing import Array

Pullback = Callable[[Array], tuple[Array, Array]]
NO_AUXILIARY = np.zeros(0)


class Term(ABC):
    r"""A function c: scores -> (n_outputs,), with c <= 0 where it is a constraint.

    Subclasses say how the statistics come from the scores (`forward`) and how the outputs come
    from the statistics (`head`); values and derivatives follow.

    Attributes
    ----------
    n_rows : int
        The rows of the scores it takes.
    n_outputs : int
        The number of functions it holds.
    n_auxiliary : int
        The number of variables it has of its own, appended to the weights.
    auxiliary_start : ndarray of shape (n_auxiliary,)
        Where these start.
    names : sequence of str
        What each output says, for messages.
    additive : bool
        Whether the statistics are sums over rows: those of pairs and of ranks are not.
    """

    n_auxiliary: int = 0
    additive: bool = True
    offset: Any

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The rows of the scores."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The number of functions."""

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """The number of statistics."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """What each output says."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether the gradients are continuous."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether every output is convex in the scores."""

    @property
    def auxiliary_start(self) -> Array:
        """Where the auxiliary variables start: at 0 unless a subclass knows better."""
        return np.zeros(self.n_auxiliary)

    @abstractmethod
    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics and the function that pulls weights on them back.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            The scores of the term's rows.
        auxiliary : ndarray of shape (n_auxiliary,)
            The term's own variables.

        Returns
        -------
        statistics : ndarray of shape (n_statistics,)
            Sums over rows.
        pullback : callable
            u -> (d <u, statistics> / d scores, d <u, statistics> / d auxiliary).
        """

    @abstractmethod
    def head(self, statistics: Array) -> Array:
        """Return the outputs, (n_outputs,), for the statistics."""

    @abstractmethod
    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the weights on the statistics that weights `v` on the outputs amount to."""

    @abstractmethod
    def batch(self, rows: Array, weights: Array | None = None) -> Term:
        """Return the term on some rows, its statistics unbiased estimates of the full ones.

        Parameters
        ----------
        rows : ndarray of int of shape (b,)
            The rows drawn.
        weights : ndarray of shape (b,) or None, default=None
            One over the expected number of times each of them is drawn; None stands for a uniform
            draw, n_rows / b.
        """

    @abstractmethod
    def zero_one(self) -> Term:
        """Return the term with the indicator in place of the surrogate."""

    @abstractmethod
    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the outputs before the tolerance is subtracted: the gaps that kappa bounds."""

    @abstractmethod
    def convex_parts(self) -> tuple[Term, Term]:
        """Return terms (plus, minus), convex in the scores, with c = plus - minus."""

    @abstractmethod
    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the affine term that touches this one at the scores."""

    @abstractmethod
    def scaled(self, factor: float) -> Term:
        """Return the term times a factor."""

    def shifted(self, shift: Array) -> Self:
        """Return the term plus `shift`, (n_outputs,): other tolerances, and the same gaps.

        Subclasses that are no dataclasses with an `offset`, which is subtracted, override it.
        """
        return replace(self, offset=self.offset - shift)  # type: ignore[type-var]

    @abstractmethod
    def weak_curvature(self) -> Array:
        """Return row weights d >= 0: no output bends down more than d_i along score i."""

    @property
    def weakly_convex(self) -> bool:
        """Whether a quadratic in the scores can make every output convex."""
        return bool(np.all(np.isfinite(self.weak_curvature())))

    @property
    def smoothable(self) -> bool:
        """Whether `smoothed` returns a smooth term."""
        return self.smooth

    def smoothed(self, width: float) -> Term:
        """Return the term with the kinks of its functions rounded over `width`."""
        return self

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return, per output, the epsilon by which rounding moved the subgradient at the scores."""
        return np.zeros(self.n_outputs)

    def strata(self) -> Array:
        """Return codes, (n_rows,): rows with the same code belong to the same cells."""
        return np.zeros(self.n_rows, dtype=int)

    def value(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return c(scores), shape (n_outputs,)."""
        return self.head(self.forward(scores, auxiliary)[0])

    def vjp(self, scores: Array, v: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Array]:
        """Return the gradients of <v, c> with respect to the scores and the auxiliary variables."""
        statistics, pullback = self.forward(scores, auxiliary)
        return pullback(self.head_vjp(statistics, v))

    def convexify(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Term:
        """Return the convex majorant at the scores: the minus part replaced by its tangent."""
        if self.convex:
            return self
        plus, minus = self.convex_parts()
        return SumTerm((plus, minus.linearize(scores, auxiliary).scaled(-1.0)))


@dataclass(frozen=True, eq=False)
class SumTerm(Term):
    """The sum of terms on the same rows with the same number of outputs.

    Parameters
    ----------
    terms : tuple of Term
        The summands; auxiliary variables are the same for all.
    """

    terms: tuple[Term, ...]

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return self.terms[0].n_rows

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return self.terms[0].n_outputs

    @property
    def n_statistics(self) -> int:
        """The statistics of all summands."""
        return sum(term.n_statistics for term in self.terms)

    @property
    def n_auxiliary(self) -> int:  # type: ignore[override]
        """The variables of the first summand, which all of them share."""
        return self.terms[0].n_auxiliary

    @property
    def names(self) -> Sequence[str]:
        """The names of the first summand."""
        return self.terms[0].names

    @property
    def additive(self) -> bool:  # type: ignore[override]
        """Whether the statistics of every summand are."""
        return all(term.additive for term in self.terms)

    @property
    def smooth(self) -> bool:
        """Whether every summand is."""
        return all(term.smooth for term in self.terms)

    @property
    def convex(self) -> bool:
        """Whether every summand is (sufficient, not necessary)."""
        return all(term.convex for term in self.terms)

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
        """Return the summands' weights, one after the other."""
        parts = zip(self.terms, self._split(statistics), strict=True)
        return np.concatenate([term.head_vjp(part, v) for term, part in parts])

    def batch(self, rows: Array, weights: Array | None = None) -> SumTerm:
        """Return the sum of the batches."""
        return SumTerm(tuple(term.batch(rows, weights) for term in self.terms))

    def zero_one(self) -> SumTerm:
        """Return the sum of the strict versions."""
        return SumTerm(tuple(term.zero_one() for term in self.terms))

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sum of the gaps."""
        return np.sum([term.gap(scores, auxiliary) for term in self.terms], axis=0)

    def strata(self) -> Array:
        """Return codes of the cells of all summands together."""
        return joint_codes([term.strata() for term in self.terms])

    def convex_parts(self) -> tuple[Term, Term]:
        """Return the sums of the plus and of the minus parts."""
        plus, minus = zip(*(term.convex_parts() for term in self.terms), strict=True)
        return SumTerm(plus), SumTerm(minus)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SumTerm:
        """Return the sum of the tangents."""
        return SumTerm(tuple(term.linearize(scores, auxiliary) for term in self.terms))

    def scaled(self, factor: float) -> SumTerm:
        """Return the sum times a factor."""
        return SumTerm(tuple(term.scaled(factor) for term in self.terms))

    def shifted(self, shift: Array) -> Self:
        """Return the sum with the first summand raised."""
        first, *others = self.terms
        return replace(self, terms=(first.shifted(shift), *others))

    @property
    def smoothable(self) -> bool:
        """Whether every summand is."""
        return all(term.smoothable for term in self.terms)

    def smoothed(self, width: float) -> SumTerm:
        """Return the sum of the rounded summands."""
        return SumTerm(tuple(term.smoothed(width) for term in self.terms))

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sum of the subgradient error."""
        return np.sum([term.subgradient_error(scores, auxiliary) for term in self.terms], axis=0)

    def weak_curvature(self) -> Array:
        """Return the sum of the summands' bounds."""
        return np.sum([term.weak_curvature() for term in self.terms], axis=0)


def joint_codes(codes: Sequence[Array]) -> Array:
    """Return codes that agree where all of the given codes do."""
    return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel()
