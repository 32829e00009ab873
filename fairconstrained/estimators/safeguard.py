"""What keeps fits from running on without end, and from answers worse than a constant model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fairconstrained.estimators.constant_models import ConstantModels, least_constant_loss
from fairconstrained.estimators.solving import SolverOptions
from fairconstrained.models import Model
from fairconstrained.models.leaves import LeafModel
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IPC, ExactPenalty, Result, Smoothing, Solver, default_solver
from fairconstrained.solvers.base import Callback, Iterate, Measured, Start
from fairconstrained.solvers.result import Status

_PASSES = 4000.0
_MAX_SENSITIVITY = 1e-3  # relative change of the objective if constraints change by the tolerance
_FEW_ROWS = 200  # with at most so many there are often several local solutions
_FEW_PER_VARIABLE = 40  # the same, for the number of rows divided by that of variables
_HALVINGS = 12  # of a line from a constant model to one that violates the constraints
_CLEAR_GAIN = 0.02  # relative gain for which an answer that has not converged is preferred
_OTHER_PASSES = 1000.0  # data passes of another solver
_OTHER_PASSES_IN_DOMAIN = 100.0  # steps need many projections
_CHEAP_PASS = 1000  # rows times constraints up to which data passes are not limited further
_ALL_OTHER_FITS = 2.0  # data passes of all other solvers, relative to those of a usual fit


def data_pass_limit(problem: Problem, tol: float) -> float:
    r"""Return the data passes that a fit with a solver chosen by name may make.

    :math:`4000\, (1 + \log_{10}(1 + m) / 4) \sqrt{\max(1, 10^{-4} / \mathrm{tol})}` for m
    constraints. Half of all problems need less than 50.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    tol : float
        The tolerance.
    """
    constraints = 1.0 + 0.25 * float(np.log10(1.0 + problem.n_constraints))
    return _PASSES * constraints * float(np.sqrt(max(1.0, 1e-4 / tol)))


def may_have_local_solutions(n_rows: int, n_variables: int) -> bool:
    """Return whether a problem with constraints is likely to have several local solutions.

    Parameters
    ----------
    n_rows, n_variables : int
        The size of the problem.
    """
    return n_rows <= max(_FEW_ROWS, _FEW_PER_VARIABLE * n_variables)


def solve(
    solver: Solver,
    problem: Problem,
    options: SolverOptions,
    *,
    like: Evaluation | None = None,
    warm: Start | Result | None = None,
    callback: Callback | None = None,
    known: tuple[Result, Evaluation] | None = None,
) -> tuple[Result, Evaluation]:
    """Return a solution that is not worse than a constant model, and its evaluation.

    Solvers that are chosen by name make no more data passes than `data_pass_limit` says, or more in
    proportion where `max_iter` is above the solver's own. One that is passed as an object has
    limits of its own.

    Where a solver ends at a point that violates the constraints, others are tried
    (:class:`~fairconstrained.solvers.ExactPenalty`, :class:`~fairconstrained.solvers.IPC`, then the
    default solver) and the best answer is kept. The same is done for solvers chosen by name where
    poor local solutions are likely: if the problem is not convex, and has at most 200 rows, or at
    most 40 for each variable, or multipliers so large that the objective would change by more than
    0.1 per cent when the constraints change by the tolerance. If a user sets `max_iter` and a limit
    is reached, no other solver is tried.

    Where the answer still violates the constraints although a constant model meets them, or is
    worse than the best constant model that does, the problem is solved again from that model, by
    the default solver. In a domain, this fit may make 1,000 data passes, or what is left of the
    limit if that is more. If it is not better either, the last feasible model on the line from the
    constant model to the answer is returned, or the constant model if that is better.

    `solver` of the result is the solver that found the answer. Where that is not the solver of the
    fit, or where another model is returned, `replaces` and the message say so. The answer of a
    solver that is not replaceable (a penalty of given strength, or an object with
    ``polish=False``, such as those of ``paper()``) is kept.

    Parameters
    ----------
    solver : Solver
        With the estimator's options.
    problem : Problem
        What is to be minimised.
    options : estimator
        Its `solver`, `max_iter` and `random_state`.
    like, warm, callback
        See :meth:`~fairconstrained.solvers.Solver.solve`.
    known : tuple of Result and Evaluation or None, default=None
        The solver's solution, where there is one already.
    """
    passes = _data_passes(problem, solver, options)
    result, at = known or solver.solve(
        problem,
        like=like,
        warm=warm,
        callback=callback,
        random_state=options.random_state,
        max_data_passes=passes,
    )
    named = isinstance(options.solver, str)  # `max_iter` alone may have switched polishing off
    replaceable = solver.seeks_feasibility if named else solver.replaceable
    if result.status is Status.STOPPED or not replaceable:
        return result, at
    found, there = _best_of_others(problem, result, at, options, passes, warm)
    if not _below_constants(problem, found, there):
        constant = _best_constant(problem, found)
        if constant is not None and _is_better(problem, constant, found, there):
            outside, tol = there, found.solver.tol
            found, there = _from_constant(problem, constant, found, options, passes)
            if there is constant.iterate.at:
                begin = problem.passes
                between = _towards(problem, constant, outside, tol)
                used = found.data_passes + problem.passes - begin
                found = replace(found, data_passes=used)
                if between is constant:
                    return _in_place_of(result, found, "The model is constant"), there
                found, there = found.with_point(between, Status.STALLED), between.iterate.at
                what = "The model lies between a constant model and that of the solver"
                return _in_place_of(result, found, what), there
    if not _are_the_same(found.solver, result.solver):
        found = _in_place_of(result, found, f"The model is that of {type(found.solver).__name__}")
    return found, there


def _are_the_same(first: Solver, second: Solver) -> bool:
    """Return whether two solvers have the same class and the same parameters."""
    return first is second or repr(first) == repr(second)


def _in_place_of(result: Result, found: Result, what: str) -> Result:
    """Return an answer that says what it is, and how the solver of the fit ended."""
    ended = f"objective {result.objective:.6g}, violation {result.violation:.2e}"
    own = type(result.solver).__name__
    message = f"{found.message} {what}; {own} ended at {ended}."
    return replace(found, message=message, replaces=result.solver)


def _best_of_others(
    problem: Problem,
    result: Result,
    at: Evaluation,
    options: SolverOptions,
    limit: float | None,
    warm: Start | Result | None,
) -> tuple[Result, Evaluation]:
    """Return the result, or a better one of another solver where the first is doubtful."""
    tol, start = result.solver.tol, warm if isinstance(warm, Start) else None
    proven = problem.convex and result.status is Status.INFEASIBLE
    ended = result.status in (Status.CONVERGED, Status.INFEASIBLE)
    limited = options.max_iter is not None and not ended
    if proven or limited or _model_of_rows(problem) is None:
        return result, at
    violates, named = result.violation > tol, isinstance(options.solver, str)
    if not (violates or (named and _may_be_poor(problem, result))):
        return result, at
    most = _other_passes(problem, tol, limit)
    total = max(most, _ALL_OTHER_FITS * data_pass_limit(problem, tol))
    best = _Best(result, at, options, most, total)
    for other in _others(problem, tol):
        if violates and best.result.violation <= tol:
            break
        if _are_the_same(other, result.solver):  # its answer is known
            continue
        unfinished = best.solve(other, start)
        if unfinished is not None:
            best.solve(result.solver, unfinished)
    return replace(best.result, data_passes=best.passes), best.at


class _Best:
    """The best result of several solvers.

    Parameters
    ----------
    result : Result
        The first one.
    at : Evaluation
        The problem there.
    options : estimator
        Its `random_state`.
    most, left : float
        The most data passes of one further run and of all of them.
    """

    def __init__(
        self, result: Result, at: Evaluation, options: SolverOptions, most: float, left: float
    ):
        self.result, self.at, self.passes = result, at, result.data_passes
        self._random_state, self._most, self._left = options.random_state, most, left
        self._solver = result.solver

    def solve(self, solver: Solver, warm: Start | None) -> Start | None:
        """Solve the problem with another solver, unless it cannot or no data passes are left.

        Returns
        -------
        unfinished : Start or None
            A better feasible point at which the solver stopped short of its tolerance, from which
            the solver of the fit may go on.
        """
        problem, tol = self.at.problem, self._solver.tol
        if solver.missing(problem) or self._left <= 0.0:
            return None
        found, there = solver.solve(
            problem,
            warm=warm,
            random_state=self._random_state,
            max_data_passes=min(self._most, self._left),
        )
        self.passes += found.data_passes
        self._left -= found.data_passes
        better = found.violation <= tol and found.objective < self.result.objective
        if _is_preferred(found, self.result):
            self.result, self.at = replace(found, state=None), there
        return Start(found.w, found.multipliers) if better and not found.converged else None


def _others(problem: Problem, tol: float) -> Iterator[Solver]:
    """Yield the solvers that are tried where an answer is doubtful."""
    for steps in (ExactPenalty(tol=tol), IPC(tol=tol)):
        yield Smoothing(steps, tol=tol) if steps.missing(problem) else steps
    yield default_solver(problem).with_options(tol=tol)


def _other_passes(problem: Problem, tol: float, limit: float | None) -> float:
    """Return the limit on the data passes of one other solver."""
    if not problem.domain.whole_space:
        most = _OTHER_PASSES_IN_DOMAIN
    elif problem.n_rows * problem.n_constraints <= _CHEAP_PASS:
        most = data_pass_limit(problem, tol)
    else:
        most = _OTHER_PASSES
    return most if limit is None else min(most, limit)


def _may_be_poor(problem: Problem, result: Result) -> bool:
    """Return whether a feasible result may well be a poor local solution."""
    model, objective = _model_of_rows(problem), abs(result.objective)
    if problem.convex or model is None or objective <= result.solver.tol:
        return False
    change = float(result.multipliers.sum()) * result.solver.tol
    sensitive = change > _MAX_SENSITIVITY * objective and not problem.in_epigraph_form
    few = may_have_local_solutions(model.n_rows, problem.n_variables)
    near = isinstance(model, LeafModel)  # leaf values that stay near the boosted ones
    return (few and not near) or sensitive


def _is_preferred(found: Result, result: Result) -> bool:
    """Return whether another result is better: feasible first, then by objective.

    One that has not converged is better than a converged one only if the difference is clear.
    """
    tol = result.solver.tol
    if max(found.violation, result.violation) > tol:
        return found.violation < result.violation
    clear = _CLEAR_GAIN * max(abs(found.objective), abs(result.objective))
    more_certain = int(found.converged) - int(result.converged)
    return found.objective < result.objective + more_certain * clear


def _data_passes(problem: Problem, solver: Solver, options: SolverOptions) -> float | None:
    """Return the data passes that a fit may make, None for a solver with limits of its own."""
    if not isinstance(options.solver, str):
        return None
    limit = data_pass_limit(problem, solver.tol)
    if options.max_iter is None:
        return limit
    inner = getattr(solver, "solver", None) or solver  # of a solver that rounds kinks for it
    return limit * max(1.0, options.max_iter / type(inner)().max_iter)


def _model_of_rows(problem: Problem) -> Model | None:
    """Return the linear model of the objective or, for the least unfairness, of the constraints."""
    model = problem.models[0] if problem.in_epigraph_form else problem.objective.model
    return model if model is not None and model.linear else None


def _below_constants(problem: Problem, result: Result, at: Evaluation) -> bool:
    """Return whether a result is feasible, and better than all constants or not comparable."""
    model, term = _model_of_rows(problem), problem.objective.term
    if model is None or term is None:
        return True
    if result.violation > result.solver.tol:
        return False
    return _objective_of_scores(problem, at) <= least_constant_loss(term, model)


def _objective_of_scores(problem: Problem, at: Evaluation) -> float:
    """Return the objective, for trees without the penalty on changes of the boosted leaf values.

    This penalty keeps leaf values near the boosted ones. It is large for a constant model, although
    it does not say whether the scores are good.
    """
    trees = isinstance(problem.objective.model, LeafModel)
    return at.objective - (problem.objective.penalty.value(at.w) if trees else 0.0)


def _best_constant(problem: Problem, result: Result) -> Measured | None:
    """Return the best constant model that meets the constraints, None if there is none."""
    model = _model_of_rows(problem)
    assert model is not None
    w = ConstantModels(problem, model, result.solver.tol).best()
    if w is None:
        return None
    return Measured.of(Iterate(problem.at(w), None, result.n_iter), result.solver.tol)


def _is_better(problem: Problem, constant: Measured, result: Result, at: Evaluation) -> bool:
    """Return whether a feasible constant model is better than a result."""
    tol = result.solver.tol
    gain = _objective_of_scores(problem, at) - _objective_of_scores(problem, constant.iterate.at)
    return result.violation > tol or gain > tol


def _from_constant(
    problem: Problem,
    constant: Measured,
    result: Result,
    options: SolverOptions,
    passes: float | None,
) -> tuple[Result, Evaluation]:
    """Return the solution from a constant model, or that model itself."""
    if options.max_iter is None:
        if passes is not None and not problem.domain.whole_space:  # the second fit costs as much
            passes = max(_OTHER_PASSES, passes - result.data_passes)
        solver: Any = default_solver(problem).with_options(tol=result.solver.tol)
        again, at = solver.solve(
            problem,
            constant.iterate.at.w,
            random_state=options.random_state,
            max_data_passes=passes,
        )
        used = result.data_passes + again.data_passes
        least = _objective_of_scores(problem, constant.iterate.at)
        if again.violation <= result.solver.tol and _objective_of_scores(problem, at) <= least:
            return replace(again, data_passes=used), at
        result = replace(result, data_passes=used)
    ended = Status.CONVERGED if constant.kkt.holds(result.solver.tol) else Status.STALLED
    status = Status.ITERATION_LIMIT if options.max_iter is not None else ended
    return result.with_point(constant, status), constant.iterate.at


def _towards(problem: Problem, constant: Measured, outside: Evaluation, tol: float) -> Measured:
    """Return a feasible model on the line from a constant one to another, found by bisection.

    Where the constraints are convex it is the last feasible one. The constant model is returned
    where its objective is smaller.
    """
    best, low, high = constant, 0.0, 1.0
    start = constant.iterate.at.w
    if not np.all(np.isfinite(outside.w)):
        return constant
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        at = problem.at(start + middle * (outside.w - start))
        if at.violation > tol:
            high = middle
            continue
        low = middle
        if _objective_of_scores(problem, at) < _objective_of_scores(problem, best.iterate.at):
            best = Measured.of(Iterate(at, None, constant.iterate.iteration), tol)
    return best
