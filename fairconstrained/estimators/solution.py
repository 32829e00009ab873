"""What a fit found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.estimators.solving import without_state
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
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


def measures(problem: Problem, result: Result, like: Evaluation | None) -> dict[str, Any]:
    """Return the fitted attributes that report a solution.

    Parameters
    ----------
    problem : Problem
        The problem whose objective and gaps are reported.
    result : Result
        The solution.
    like : Evaluation or None
        An evaluation at the solution, see :meth:`Problem.at`.
    """
    if like is not None and like.problem is problem and like.w is result.w:
        at = like.uncounted()
    else:
        at = problem.uncounted().at(result.w[: problem.n_variables], like=like)
    return {
        "n_iter_": result.n_iter,
        "multipliers_": result.multipliers,
        "objective_": at.objective,
        "violation_": result.violation,
        "kkt_residual_": result.kkt_residual,
        "gap_": at.gap,
        "decision_gap_": at.decision_gap,
        "result_": without_state(result),
    }
