"""The solution of a fit: its attributes, whether its bound was met, and warnings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fairconstrained.bounds import NOT_ASKED_FOR, OptimalityGap
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.population import Certificate
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    InfeasibleConstraintWarning,
    InputWarning,
    warn,
)
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.solvers import Result, Status
from fairconstrained.utils.arguments import brief
from fairconstrained.utils.arrays import Array, Gaps, without_rounding
from fairconstrained.utils.execution import in_fold

Excess = tuple[float, float]  # a gap, and its bound, which it exceeds

_FAR = 0.1  # a gap of predictions that is larger than kappa by this is hardly what was wanted


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a fit."""

    result: Result  # the model and its certificate
    search: DecisionSearch | None = None  # the search, with enforce="decision"
    certificate: Certificate | None = None  # the statement about the population, with a confidence
    optimality: OptimalityGap = NOT_ASKED_FOR  # how much better another model can be


@dataclass(frozen=True)
class Bound:
    """The bound that was asked for, and whether it is met."""

    violation: float  # by how much it is exceeded; 0 without a constraint
    met: bool | None  # whether it is met; None without a constraint
    text: str  # the same in words, with figures if it is not met; empty without a constraint

    @classmethod
    def of_scores(cls, at: Evaluation, result: Result) -> "Bound":
        """Return the bound on scores, or of goal="fairness" on the loss, up to the tolerance."""
        on_loss = result.w.size > at.w.size  # the level of the constraints is a variable
        violation = result.violation if on_loss else at.violation
        return cls._of(at, violation, result.solver.tol, [] if on_loss else at.gaps)

    @classmethod
    def of_decisions(cls, at: Evaluation, certificate: Certificate | None) -> "Bound":
        """Return the bound on decisions, which is met exactly, or on those in the population."""
        if certificate is None:
            return cls._of(at, at.zero_one_violation, 0.0, at.decided.gaps)
        violation = without_rounding(max(float(certificate.bounds.max(initial=0.0)), 0.0))
        verdict = "bound met" if certificate.certified else "bound not met: not shown"
        level = f"with {100.0 * certificate.confidence:g}% confidence"
        return cls(violation, certificate.certified, f"{verdict} {level}")

    @classmethod
    def _of(cls, at: Evaluation, violation: float, tol: float, gaps: Gaps) -> "Bound":
        if not at.problem.n_constraints:
            return cls(violation, None, "")
        if violation <= tol:
            return cls(violation, True, "bound met")
        # the gap that exceeds its bound most, in digits that show it
        pairs = [(gap, bound) for part in gaps for gap, bound in zip(*part, strict=True)]
        gap, bound = max(pairs, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
        if gap <= bound:
            return cls(violation, False, f"bound not met: exceeded by {violation:.3g}")
        digits = max(3, 1 - int(np.floor(np.log10(gap - bound))))
        return cls(violation, False, f"bound not met: {gap:.{digits}f} > {bound:.{digits}f}")


def names_in_data(data: TrainingData) -> dict[str, Any]:
    """Return the fitted attributes that name classes, groups and the columns of groups."""
    groups = data.groups
    listed = np.array([]) if groups is None else groups.listed
    names = {"classes_": np.sort(data.classes), "groups_": listed}
    if groups is not None and groups.column_names:
        names["sensitive_names_in_"] = np.array(groups.column_names, dtype=object)
    return names


def measures(problem: Problem, solution: Solution, like: Evaluation | None) -> dict[str, Any]:
    """Return the fitted attributes that report a solution."""
    result, at = solution.result, like
    if at is None or at.problem is not problem or at.w is not result.w:
        at = problem.uncounted().at(result.w[: problem.n_variables], like=like)
    if solution.search is not None:
        bound = Bound.of_decisions(at, solution.certificate)
        if bound.met and solution.search.constant:
            bound = replace(bound, text=f"{bound.text} by constant predictions")
    else:
        bound = Bound.of_scores(at, result)
    return {
        "n_iter_": result.n_iter,
        "multipliers_": result.multipliers,
        "objective_": at.objective,
        "violation_": result.violation,
        "kkt_residual_": result.kkt_residual,
        "gap_": at.gap,
        "decision_gap_": at.decided.gap,
        **solution.optimality.attributes,
        "bound_violation_": bound.violation,
        "bound_met_": bound.met,
        # without the solver's state, which may be large
        "result_": replace(
            result, state=None, bound=bound.text, optimality=solution.optimality.text
        ),
    }


def warn_of_fit(fit: Any, solution: Solution, result: Result, at: Evaluation) -> None:
    """Warn of what a fit did not find; `result` is the solution on scores, `at` the evaluation."""
    estimator, data, problem = fit.estimator, fit.data, fit.problem
    loss = resolve_objective("loss", estimator.loss)
    if not (loss.determines_intercept or data.several_classes):
        w = solution.result.w[: problem.n_variables]
        warn_of_one_side(problem, w, result.solver.tol)
    promised = solution.certificate or solution.search
    if promised is not None:
        warn_of_other_solver([result])
        promised.warn()
        return
    warn_of(solution.result)
    if estimator.goal == "accuracy" and not estimator.needs_queries:
        warn_of_predictions(far_predictions(fit, at))
        if loss.determines_intercept:
            warn_of_equal_predictions(fit, at)


def warn_of_other_solver(results: Sequence[Result]) -> None:
    """Warn once if other solvers' models were taken in place of those of the solver asked for."""
    replaced = [result for result in results if result.replaces is not None]
    if not replaced:
        return
    asked = {brief(result.replaces) for result in replaced}
    taken = {brief(result.solver) for result in replaced}
    where = f" of {len(replaced)} of {len(results)} fits" if len(results) > 1 else ""
    warn(
        f"solver: {', '.join(sorted(asked))} did not converge to a model that meets the "
        f"constraints; the model{where} is that of {', '.join(sorted(taken))}, which is better. "
        "Use another solver, raise max_iter, or pass the solver as an object with polish=False to "
        f"keep its own answer. {replaced[0].message}",
        ConvergenceWarning,
    )


def warn_of(result: Result) -> None:
    """Warn if a run ended short of its tolerance, or another solver's model was taken."""
    warn_of_other_solver([result])
    if result.violation > result.solver.tol:
        infeasible = result.status is Status.INFEASIBLE
        ended = "No model that meets the constraints was found"
        warn(
            f"{ended if infeasible else 'The run ended before the constraints were met'}; the "
            f"least violation is {result.violation:.3g}, and the model that has it is kept. "
            f"{result.message}",
            InfeasibleConstraintWarning if infeasible else ConvergenceWarning,
        )
    elif result.status not in (Status.CONVERGED, Status.VALIDATED):
        warn(result.message, ConvergenceWarning)


def far_predictions(fit: Any, at: Evaluation) -> list[Excess]:
    """Return the gaps of predictions that exceed their bounds on rates by far."""
    far: list[Excess] = []
    for part, gaps in zip(fit.problem.constraints, at.decided.gaps, strict=True):
        if fit.constraints[part.source].bounds_rates:
            far += [pair for pair in zip(*gaps, strict=True) if pair[0] > pair[1] + _FAR]
    return far


def warn_of_predictions(far: Sequence[Excess]) -> None:
    """Warn if predictions exceed a bound on scores by far, with the one that does so most.

    The fits to the folds of a search say nothing: the fit to all rows says it once.
    """
    if not far or in_fold():
        return
    gap, bound = max(far, key=lambda pair: pair[0] - pair[1])
    warn(
        f"The bound {bound:.3g} applies to scores: the gap of the predictions, decision_gap_, is "
        f"{gap:.3f}. To bound the gap of the predictions, use enforce='decision'.",
        InputWarning,
    )


def warn_of_one_side(problem: Problem, w: Array, tol: float) -> None:
    """Warn if constraints are met because all scores are on one side of the threshold.

    It is for losses that do not determine the intercept, such as those of pairs, which depend on
    differences of scores only. A number can be added to all scores, until a constraint on rates
    holds, and the loss does not change.
    """
    at = problem.uncounted().at(w)
    for part in problem.constraints:
        term, (scores, atoms, weight) = part.term, at.model_pass(part.model).distribution()
        if term.n_auxiliary or not scores.size:
            continue
        if atoms is not None and weight is not None:
            term = cast("ShardedLinearModel", part.model).of_atoms(term).take(atoms, weight)
        selected = scores > 0.0
        if selected.any() and not selected.all():
            continue
        least = np.maximum(term.gap(scores), term.gap_bounds)
        if np.max(term.gap(scores - np.median(scores)) - least, initial=-np.inf) > tol:
            warn(
                "All scores of the training rows are "
                f"{'above' if selected.all() else 'below'} the threshold, and the constraints are "
                "met in this way only: this loss does not determine the intercept. Use constraints "
                "on rankings, such as 'group_auc' or, for rankers, 'query_parity', or a loss that "
                "determines the intercept, such as 'logistic'.",
                ConstantDecisionWarning,
            )
            return


def warn_of_equal_predictions(fit: Any, at: Evaluation) -> None:
    """Warn if a bound on differences of scores makes all predictions equal."""
    spans = [(constraint, constraint.usual_kappas) for constraint in fit.constraints]
    small = [(c, span) for c, span in spans if span and c.checked_kappa() < span[0]]
    if not small or not _all_equal(at.model_pass(fit.model).distribution()[0]):
        return
    if _all_equal(fit.unconstrained.on(fit.model)(fit.data, None)[0]):
        return
    constraint, (low, high) = small[0]
    kind = type(constraint).__name__
    warn(
        f"The same class is predicted for every training row. {kind} with "
        f"kappa={constraint.kappa:g} bounds {constraint.scores_title}, not probabilities: values "
        f"from {low:g} to {high:g} are usual. Pass one to the constraint, such as "
        f"{kind}({np.sqrt(low * high):g}).",
        ConstantDecisionWarning,
    )


def _all_equal(scores: Array) -> bool:
    predicted = scores.argmax(axis=1) if scores.ndim == 2 else scores > 0.0
    return len(np.unique(predicted)) == 1
