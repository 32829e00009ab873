"""A term whose outputs have affine functions of the variables added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from fairconstrained.terms.base import NO_AUXILIARY, CurvedPullback, Pullback, Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Tilted(Term):
    r"""The function :math:`c(s) + b + A w` of scores and variables.

    As part of a problem its own variables are all of them: ``auxiliary=slice(0, n_variables)``.

    Parameters
    ----------
    term : Term
        c, without variables of its own.
    slopes : ndarray of shape (n_outputs, n_variables)
        A.
    level : ndarray of shape (n_outputs,)
        b.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions.losses import Quadratic
    >>> from fairconstrained.terms.cell_means import average
    >>> from fairconstrained.terms.tilted import Tilted
    >>> loss = average(Quadratic(), np.array([1.0, -1.0]), np.ones(2))
    >>> Tilted(loss, np.array([[2.0, 0.0]]), np.array([1.0])).value(np.zeros(2), np.array([3.0, 4]))
    array([7.5])
    """

    term: Term
    slopes: Array
    level: Array

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return self.term.n_rows

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return self.term.n_outputs

    @property
    def names(self) -> Sequence[str]:
        """The names of the term's outputs."""
        return self.term.names

    @property
    def smooth(self) -> bool:
        """Whether the term is smooth."""
        return self.term.smooth

    @property
    def convex(self) -> bool:
        """Whether the term is convex."""
        return self.term.convex

    def weak_curvature(self) -> Array:
        """Return what makes every output of the term convex."""
        return self.term.weak_curvature()

    @property
    def weakly_convex(self) -> bool:
        """Whether the term is weakly convex."""
        return self.term.weakly_convex

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the term's statistics followed by the affine functions, and their pullback."""
        statistics, pullback = self.term.forward(scores)
        affine = self.slopes @ auxiliary + self.level
        return np.concatenate([statistics, affine]), _TiltedPullback(pullback, self.slopes)

    @property
    def curved(self) -> bool:
        """Whether the term has second derivatives; those of affine functions are zero."""
        return self.term.curved

    def head(self, statistics: Array) -> Array:
        """Return the sums of the term's outputs and the affine functions."""
        return self.term.head(statistics[: -self.n_outputs]) + statistics[-self.n_outputs :]

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return the gradient of <v, outputs> with respect to the statistics."""
        return np.concatenate([self.term.head_vjp(statistics[: -self.n_outputs], v), v])

    @cached_property
    def _zero_one(self) -> Tilted:
        return Tilted(self.term.zero_one(), self.slopes, self.level)

    def zero_one(self) -> Tilted:
        """Return the same of the zero-one version."""
        return self._zero_one


@dataclass(eq=False)
class _TiltedPullback:
    pullback: Pullback
    slopes: Array

    def __call__(self, u: Array) -> tuple[Array, Array]:
        n = len(u) - len(self.slopes)
        return self.pullback(u[:n])[0], u[n:] @ self.slopes

    def second_derivatives(self, u: Array) -> Array:
        of_term = cast("CurvedPullback", self.pullback)
        return of_term.second_derivatives(u[: len(u) - len(self.slopes)])
