"""What a fit found."""

from __future__ import annotations

from dataclasses import dataclass

from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.solvers import Result


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a fit.

    Attributes
    ----------
    result : Result
        The model and its certificate.
    search : DecisionSearch or None
        The search, with enforce="decision".
    certificate : Certificate or None
        The statement about the population, with a confidence.
    """

    result: Result
    search: DecisionSearch | None = None
    certificate: Certificate | None = None
