"""What terms that are made of another term have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairconstrained.terms.base import Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class WrappedTerm(Term):
    """A term made of another one, with its rows, outputs and properties unless it differs.

    Parameters
    ----------
    term : Term
        The other term.
    """

    term: Term

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
