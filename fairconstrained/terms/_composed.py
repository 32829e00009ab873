"""What terms that are made of other terms on the same rows have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairconstrained.terms.base import Term
from fairconstrained.utils.codes import joint_codes
from fairconstrained.utils.typing import Array


class Composed(Term):
    """A term that has the abilities that all of its `terms` on the same rows have."""

    terms: tuple[Term, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return self.terms[0].n_rows

    @property
    def smooth(self) -> bool:
        """Whether all terms are smooth."""
        return all(term.smooth for term in self.terms)

    @property
    def batchable(self) -> bool:
        """Whether all terms are batchable."""
        return all(term.batchable for term in self.terms)

    @property
    def smoothable(self) -> bool:
        """Whether all terms are smooth or can be rounded."""
        return all(term.smoothable for term in self.terms)

    def strata(self) -> Array:
        """Return codes of the cells of all terms together."""
        return joint_codes([term.strata() for term in self.terms])


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
