"""Which search the models of a problem need."""

from __future__ import annotations

from fairconstrained.decisions.candidates import CandidateSearch
from fairconstrained.decisions.several_classes import ClassCandidateSearch
from fairconstrained.decisions.sharded import ShardedCandidateSearch
from fairconstrained.problem.problem import Problem

_KINDS = (ClassCandidateSearch, ShardedCandidateSearch, CandidateSearch)


def search_kind(problem: Problem) -> type[CandidateSearch]:
    """Return the first search that is for a problem; the last one is for all others."""
    return next(one for one in _KINDS if one.searches(problem))
