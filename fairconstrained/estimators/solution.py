"""What a fit found, and whether its bound was met."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result
from fairconstrained.utils.rounding import without_rounding
from fairconstrained.utils.typing import Gaps


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


@dataclass(frozen=True)
class Bound:
    """The bound that was asked for, and whether it is met.

    Attributes
    ----------
    violation : float
        By how much it is exceeded; 0 without a constraint.
    met : bool or None
        Whether it is met; None without a constraint.
    text : str
        The same in words, with figures if it is not met; empty without a constraint.
    """

    violation: float
    met: bool | None
    text: str

    @classmethod
    def of_scores(cls, at: Evaluation, result: Result, *, on_loss: bool = False) -> Bound:
        """Return the bound on scores, which is met up to the solver's tolerance.

        Parameters
        ----------
        at : Evaluation
            The problem whose constraints are reported, at the solution.
        result : Result
            The solution.
        on_loss : bool, default=False
            Whether the bound is that of the loss, which the result has been solved with.
        """
        violation = result.violation if on_loss else at.violation
        return cls._of(at, violation, violation <= result.solver.tol, [] if on_loss else at.gaps)

    @classmethod
    def of_decisions(cls, at: Evaluation, certificate: Certificate | None) -> Bound:
        """Return the bound on decisions, which is met exactly, or on those in the population."""
        if certificate is not None:
            return cls._of_population(certificate)
        violation = at.zero_one_violation
        return cls._of(at, violation, violation == 0.0, at.decided.gaps)

    @classmethod
    def _of_population(cls, certificate: Certificate) -> Bound:
        """Return the bound on decisions in the population, with the certificate's confidence."""
        violation = without_rounding(max(float(certificate.bounds.max(initial=0.0)), 0.0))
        verdict = "bound met" if certificate.certified else "bound not met: not shown"
        level = f"with {100.0 * certificate.confidence:g}% confidence"
        return cls(violation, certificate.certified, f"{verdict} {level}")

    @classmethod
    def _of(cls, at: Evaluation, violation: float, met: bool, gaps: Gaps) -> Bound:
        if not at.problem.n_constraints:
            return cls(violation, None, "")
        return cls(violation, met, "bound met" if met else _not_met(violation, gaps))

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes."""
        return {"bound_violation_": self.violation, "bound_met_": self.met}

    def stated(self, result: Result) -> Result:
        """Return a result that states it, without the solver's state, which may be large."""
        return replace(result, state=None, bound=self.text)


def _not_met(violation: float, gaps: Gaps) -> str:
    """Return a sentence with the gap that exceeds its bound most, in digits that show it."""
    pairs = [(gap, bound) for part in gaps for gap, bound in zip(*part, strict=True)]
    gap, bound = max(pairs, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    if gap <= bound:
        return f"bound not met: exceeded by {violation:.3g}"
    digits = max(3, 1 - int(np.floor(np.log10(gap - bound))))
    return f"bound not met: {gap:.{digits}f} > {bound:.{digits}f}"


def names_in_data(data: TrainingData) -> dict[str, Any]:
    """Return the fitted attributes that name classes, groups and the columns of groups."""
    groups = data.groups
    listed = np.array([]) if groups is None else groups.listed
    names = {"classes_": np.unique(data.classes), "groups_": listed}
    if groups is not None and groups.column_names:
        names["sensitive_names_in_"] = np.array(groups.column_names, dtype=object)
    return names


def measures(
    problem: Problem, solution: Solution, like: Evaluation | None, *, on_loss: bool
) -> dict[str, Any]:
    """Return the fitted attributes that report a solution.

    Parameters
    ----------
    problem : Problem
        The problem whose objective and gaps are reported.
    solution : Solution
        The solution.
    like : Evaluation or None
        An evaluation at the solution, see :meth:`Problem.at`.
    on_loss : bool
        See :meth:`Bound.of_scores`.
    """
    result = solution.result
    at = like
    if at is None or at.problem is not problem or at.w is not result.w:
        at = problem.uncounted().at(result.w[: problem.n_variables], like=like)
    if solution.search is not None:
        bound = Bound.of_decisions(at, solution.certificate)
    else:
        bound = Bound.of_scores(at, result, on_loss=on_loss)
    return {
        "n_iter_": result.n_iter,
        "multipliers_": result.multipliers,
        "objective_": at.objective,
        "violation_": result.violation,
        "kkt_residual_": result.kkt_residual,
        "gap_": at.gap,
        "decision_gap_": at.decided.gap,
        **bound.attributes,
        "result_": bound.stated(result),
    }
