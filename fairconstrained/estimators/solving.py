"""How the problem of a fit is solved: progress, other solvers and starts from samples."""

from dataclasses import replace
from typing import Any

import numpy as np

from fairconstrained.bounds import optimality_gap
from fairconstrained.exceptions import InputWarning, warn
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.shards.model import ShardedLinearModel, drawn
from fairconstrained.solvers import SOLVERS, SQP, AugmentedLagrangian, Result, Solver, Status
from fairconstrained.solvers.base import Callback, default_solver, without_kinks
from fairconstrained.solvers.result import Iterate, Measured, SolverState, Start
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.terms.cell_means import OnCells
from fairconstrained.terms.classes import MultinomialLoss
from fairconstrained.terms.head import FunctionAverages
from fairconstrained.utils.arguments import brief
from fairconstrained.utils.execution import in_fold

Solved = tuple[Result, Evaluation]  # the solution of a problem, and the evaluation there

_PASSES = 4000.0
_SHARE = 0.4  # of the tolerance: paths begin at the solution, and its errors cost them data passes


def with_beta(solver: Solver, beta: float | None) -> Solver:
    """Return a solver with `beta`, or the solver itself if it has no such parameter."""
    if beta is None:
        return solver
    if "beta" not in solver.get_params(deep=False):
        if in_fold():
            return solver
        have = [repr(name) for name, make in SOLVERS.items() if "beta" in make().get_params()]
        warn(
            f"beta={beta!r} is not used: {type(solver).__name__} has no such parameter. The "
            f"solvers {', '.join(have)} have it; that of BalancedRate is constraint__beta.",
            InputWarning,
        )
        return solver
    return solver.with_options(beta=beta)


def data_pass_limit(problem: Problem, tol: float) -> float:
    r"""Return the data passes that a fit with a solver chosen by name may make.

    :math:`4000\, (1 + \log_{10}(1 + m) / 4) \sqrt{\max(1, 10^{-4} / \mathrm{tol})}` for m
    constraints. Half of all problems need less than 50.
    """
    constraints = 1.0 + 0.25 * float(np.log10(1.0 + problem.n_constraints))
    return _PASSES * constraints * float(np.sqrt(max(1.0, 1e-4 / tol)))


def minimize_by_default(problem: Problem, near: Start | None = None) -> Result:
    """Return the solution of a problem, to a part of a solver's tolerance, from a start near it.

    It is Newton's where Hessians cost little: of few columns they take a third of the passes.
    """
    solver = SQP() if problem.twice_differentiable else default_solver(problem)
    limit = data_pass_limit(problem, solver.tol)
    return solver.minimize(problem, warm=near, tol=_SHARE * solver.tol, max_data_passes=limit)


_SEVERAL_ROWS = 200  # up to here several solutions are common, and a second solver is cheap
_FEW_PER_VARIABLE = 4  # the same, for the number of rows divided by that of variables
# With more rows, up to the second number, solutions that differ by 1% are rare: in 30 of 3,158
# generated fits. 28 of these had multipliers this many times as steep as the loss in a cell. With
# still more rows, of 290 fits, most with a rare group, 20 ended at a worse solution. In all 20 the
# multipliers were as steep, divided by half of the number of cells; in 19 the objective would be
# lower by the third number, as a share, without constraints.
_STEEP, _STEEP_ROWS, _COSTLY = 32.0, 2000, 0.2
_BEND_OF_SIGMOID = Sigmoid().curvature[1]  # losses in constraints have larger curvatures
_CLEAR_GAIN = 1e-3  # of the objective: less may be what the tolerance on the violation allows
_FEASIBLE = 1e-3  # the violation up to which a point's objective is compared with other starts'
_WIDTH = 0.1  # of the kinks that are rounded to compare starts
_LEAST_PASSES = 500.0  # that another solver may make, or twice those of the first one
_RARE = 1e-6  # the share of a class without weight
_LEVELS = np.linspace(-6.0, 6.0, 25)  # of constant scores; as log-odds, from .25% to 99.75%
_ITERATIONS = 20  # of L-BFGS for every start


def several_solutions(problem: Problem, solution: Solved | None = None) -> bool:
    """Return whether a problem probably has several local solutions.

    It has if it is not convex and has few rows. If a solution is given, it also has where the
    multipliers are large for cells with few rows; of many rows only if the constraints cost much of
    the objective there.
    """
    few = problem.n_rows <= _STEEP_ROWS
    most = max(_SEVERAL_ROWS, _FEW_PER_VARIABLE * problem.n_variables)
    # Functions that bend down without limit, such as ramps, make more local solutions.
    if problem.convex or problem.n_rows <= most or (few and not problem.weakly_convex):
        return not problem.convex
    if solution is None:
        return False
    result, at = solution
    for part, place in zip(problem.constraints, problem.places, strict=True):
        # Convex constraints, such as the bound on a loss, make no local solutions.
        steepness = 0.0 if part.convex else result.multipliers[place].sum()
        # Of rows in shards only sums are known, not the weight of a single row.
        averages = part.term if few or not isinstance(part.model, ShardedLinearModel) else None
        # The bend of a hinge is infinite: it counts only if there are multipliers.
        if steepness and isinstance(averages, OnCells) and isinstance(averages, FunctionAverages):
            bend = max(map(abs, averages.function.curvature)) / _BEND_OF_SIGMOID
            steepness *= problem.n_rows * averages.cells.data.max(initial=0.0) * bend
            # Cells of many equal groups are small, too, but none of them is rare.
            steepness *= 1.0 if few else 2.0 / averages.cells.shape[0]
        if steepness > _STEEP:
            return few or _is_costly(at)
    return False


def _is_costly(at: Evaluation) -> bool:
    """Return whether a model without constraints has a much lower objective."""
    problem = at.problem.uncounted().with_constraints(())
    free = minimize_by_default(problem, Start(at.w[: problem.n_variables]))
    return free.objective < (1.0 - _COSTLY) * at.objective


def _better_start(problem: Problem, at: Evaluation) -> tuple[Start | None, float]:
    """Return a start near a better local solution of another kind, and the data passes it took.

    Rates that are compared within a range only may be made equal there, or moved beyond one of its
    ends. From every constant score that a constraint proposes (`Term.other_starts`), two short
    rounds of the augmented Lagrangian method are made: after one, the multipliers are often those
    of a poor solution. The Lagrangian after them estimates the objective at the local solution to a
    few thousandths.
    """
    levels: set[float] = set()
    for part in problem.constraints:
        levels |= set(part.term.other_starts(at.statistics_of(part)))
    linear = len(problem.models) == 1 and problem.models[0].linear
    direction = problem.unit_shift() if levels and linear and problem.smoothable else None
    if direction is None:
        return None, 0.0
    smooth = (problem if problem.smooth else problem.smoothed(_WIDTH)).uncounted()
    feasible = at.violation <= _FEASIBLE
    wanted = at.objective - _CLEAR_GAIN * objective_scale(at) if feasible else np.inf
    best: Start | None = None
    for level in sorted(levels):
        solver = AugmentedLagrangian(max_iter=2, max_inner=_ITERATIONS, polish=False)
        result, there = solver.solve(smooth, warm=Start(smooth.start() + level * direction))
        value = there.objective + float(result.multipliers @ there.constraints)
        if value < wanted:
            wanted, best = value, Start(result.w, result.multipliers)
    return best, smooth.passes


def best_of(
    solver: Solver,
    problem: Problem,
    options: Any,
    *,
    like: Evaluation | None = None,
    warm: Start | Result | None = None,
    callback: Callback | None = None,
) -> Solved:
    """Return the solver's solution, or another solver's that is better, and the evaluation there.

    Where problems probably have several solutions, ``solver="auto"`` also tries the other one of
    :class:`~fairconstrained.solvers.SQP` and the augmented Lagrangian method, which takes another
    path; not if one data pass proves that at most a thousandth of the objective can be gained.
    Where a solver violates the constraints, or one chosen by name does not converge, the default
    solver is tried, then these two, from starts of their own (after a warm start, which may be a
    dead end, the same solver as well). Solvers chosen by name are also started near local solutions
    of other kinds that look better, see `_better_start`: from zero, where all scores are equal,
    many end at rates that are equal within a range.

    Of two answers one that meets the constraints is better, then one that converged, then one whose
    objective is smaller by more than the tolerance on the violation explains. An answer that
    converged and meets the constraints is kept if the solver was chosen by name or passed as an
    object. Always kept are those of a solver that is not replaceable (a penalty of given strength,
    or ``polish=False``), those that `max_iter` has ended, and those of models whose scores are not
    linear in the variables. Where the best constant scores that meet the constraints are better
    than all answers, they are the next start, and the answer if the run from there is worse.
    """
    passes = _data_passes(problem, solver, options)
    seed = options.random_state
    first, at = solver.solve(
        problem, like=like, warm=warm, callback=callback, random_state=seed, max_data_passes=passes
    )
    limited = options.max_iter is not None and first.status is Status.ITERATION_LIMIT
    if limited or first.status is Status.STOPPED:  # by a callback
        return first, at
    best, used = first, first.data_passes
    failed = _has_failed(first, solver, options)
    also = options.solver == "auto" and several_solutions(problem, (first, at))
    if also and not failed:
        gap = optimality_gap(at, first.multipliers, data_passes=1.0).gap
        if gap is not None and gap <= _CLEAR_GAIN:
            return first, at
    # A start may be a dead end, and a run with max_iter is not polished.
    again = failed and (warm is not None or options.max_iter is not None)
    near = warm if isinstance(warm, Start) and not again else None
    others = _others(solver, problem, options, first, again=again) if failed or also else []
    tried = [(other, near) for other in others]
    if isinstance(options.solver, str) and solver.seeks_feasibility:
        start, more = _better_start(problem, at)
        used += more
        tried += [] if start is None else [(solver, start)]
    # The other solver may do badly. Then it must not take most of the time of the fit.
    enough = passes if failed else max(_LEAST_PASSES, 2.0 * first.data_passes)
    for other, start in tried:
        most = enough if other is not solver else passes
        answer, there = other.solve(problem, warm=start, random_state=seed, max_data_passes=most)
        used += answer.data_passes
        if _is_better(answer, best, solver.tol):
            best, at = replace(answer, state=None), there
        if failed and not _has_failed(best, solver, options):
            break
    constant = _better_constant(problem, best, solver.tol, options) if tried else None
    if constant is not None:
        measured = Measured.of(Iterate(constant, None, 0), solver.tol)
        best, at = best.with_point(measured, Status.STALLED), constant
        answer, there = solver.solve(problem, warm=Start(constant.w), max_data_passes=passes)
        used += answer.data_passes
        if max(answer.violation - solver.tol, answer.objective - best.objective) <= 0.0:
            best, at = replace(answer, state=None), there
    if best.solver is not first.solver and options.solver != "auto":
        message = (
            f"{best.message} The model is that of {brief(best.solver)}; {brief(first.solver)} "
            f"ended at objective {first.objective:.6g}, violation {first.violation:.2e}."
        )
        best = replace(best, message=message, replaces=first.solver)
    return replace(best, data_passes=used), at


def _better_constant(problem: Problem, best: Result, tol: float, options: Any) -> Evaluation | None:
    """Return the best constant scores that meet the constraints, if they are better than a result.

    Models without an intercept have their start only. For several classes it is the model whose
    probabilities are the shares of the classes.
    """
    problem = problem.uncounted()
    start, direction = problem.start(options.random_state), problem.unit_shift()
    points = start[None] if direction is None else start + np.outer(_LEVELS, direction)
    if direction is not None and isinstance(problem.objective.term, MultinomialLoss):
        # At equal scores the derivative in the intercept of a class is 1 / K less its share.
        parameters = start[: problem.objective.model.n_parameters]
        classes = np.flatnonzero(direction[: parameters.size])
        shares = 1.0 / len(classes) - problem.at(start).gradient()[classes]
        parameters[classes] = np.log(np.maximum(shares, _RARE))
        points = problem.start_at(parameters)[None]
    objectives = np.array([problem.at(point).objective for point in points])
    wanted = (1.0 - _CLEAR_GAIN) * best.objective if best.violation <= tol else np.inf
    for k in np.argsort(objectives, kind="stable"):
        if objectives[k] < wanted and (at := problem.at(points[k])).violation <= tol:
            return at
    return None


def _is_better(answer: Result, best: Result, tol: float) -> bool:
    kinds = [(result.violation > tol, not result.converged) for result in (answer, best)]
    if kinds[0] != kinds[1]:
        return kinds[0] < kinds[1]
    if kinds[0][0]:
        return answer.violation < best.violation
    return answer.objective < best.objective - _CLEAR_GAIN * abs(best.objective)


def _has_failed(result: Result, solver: Solver, options: Any) -> bool:
    """Return whether a result violates the constraints or, of a named solver, did not converge."""
    named = isinstance(options.solver, str)
    return result.violation > solver.tol or (named and not result.converged)


def _others(
    solver: Solver, problem: Problem, options: Any, result: Result, *, again: bool
) -> list[Solver]:
    """Return the solvers that are tried after the first one, with `again` itself as well."""
    named = isinstance(options.solver, str)
    proven = problem.convex and result.status is Status.INFEASIBLE
    replaceable = solver.seeks_feasibility if named else solver.replaceable
    if proven or not replaceable or not all(model.linear for model in problem.models):
        return []
    others = [default_solver(problem).with_options(tol=solver.tol)]
    others += [without_kinks(problem, kind(tol=solver.tol)) for kind in (SQP, AugmentedLagrangian)]
    each = {_text(other, problem): other for other in others if not other.missing(problem)}
    first = others[0] if options.solver == "auto" else solver  # without the user's max_iter
    return [other for text, other in each.items() if again or text != _text(first, problem)]


def _text(solver: Solver, problem: Problem) -> str:
    """Return what a solver is; if it rounds kinks, what solves the smooth problems."""
    if not isinstance(solver, Smoothing):
        return repr(solver)
    return repr(solver.solver_for(problem).with_options(tol=solver.tol))


def _data_passes(problem: Problem, solver: Solver, options: Any) -> float | None:
    """Return the data passes that a fit may make, None for a solver with limits of its own."""
    if not isinstance(options.solver, str):
        return None
    limit = data_pass_limit(problem, solver.tol)
    if options.max_iter is None:
        return limit
    inner = solver.solver_for(problem) if isinstance(solver, Smoothing) else solver
    return limit * max(1.0, options.max_iter / type(inner)().max_iter)


_MANY_ROWS = 1 << 17  # of fewer, the sample costs as much as it saves
_PART = 32  # of the rows: an evaluation of all rows costs more than the solution on the sample
_LEAST_SAMPLE, _MOST_SAMPLE = 1 << 13, 1 << 16
_FEW = 2000  # rows of a cell, of which all are taken: cells of few rows move the solution most
_ROUGH = 1e-3  # the tolerance of the sample's own solution, which is farther off anyway


def sampled_start(solver: Solver, problem: Problem, options: Any) -> tuple[Solver, Result] | None:
    r"""Return the solution on a sample of the rows and the solver that goes on from it.

    With d variables the solution and the Hessian of m rows differ from those of all rows by about
    :math:`\sqrt{d / m}`. Newton's steps with the sample's Hessian reduce the distance from the
    solution by that factor each, and :class:`SQP` takes the Hessian of all rows where they do not.
    The sample decides how long a fit takes, not where it ends.

    Rows are drawn without replacement from every cell of the constraints, in proportion, but all
    rows of small cells are taken. They are the same in every fit.
    """
    if options.solver != "auto" or options.max_iter is not None or not _is_large(problem):
        return None
    part = _sample(problem)
    if part.n_rows > problem.n_rows // 4:
        return None
    if part.twice_differentiable:
        solver = SQP(tol=solver.tol)
    rough = solver.solve(part, tol=max(_ROUGH, solver.tol))[0]
    if rough.status is not Status.CONVERGED:
        return None
    state = rough.state
    if part.twice_differentiable:
        hessian = part.at(rough.w).hessian(rough.multipliers)
        state = SolverState(SQP, hessian=hessian)
    return solver, replace(rough, state=state, data_passes=part.counter.rows / problem.n_rows)


def _sample(problem: Problem) -> Problem:
    size = int(np.clip(problem.n_rows // _PART, _LEAST_SAMPLE, _MOST_SAMPLE))
    model, strata = problem.models[0], problem.strata()[0]
    if not isinstance(model, ShardedLinearModel):
        rows, weights = drawn(strata, np.arange(strata.max() + 1), size, _FEW)
        return replace(problem.uncounted().batch(rows, weights=[weights]), full_rows=0)
    shard = model.only_shard
    assert shard is not None
    rows, weights = drawn(shard.atoms, strata, size, _FEW)
    objective, *constraints = model.on_rows(problem.parts, rows, weights)
    return replace(problem.uncounted(), objective=objective).with_constraints(constraints)


def _is_large(problem: Problem) -> bool:
    if len(problem.models) != 1 or problem.n_rows < _MANY_ROWS:
        return False
    model = problem.models[0]
    if isinstance(model, ShardedLinearModel):
        return problem.smooth and model.only_shard is not None
    sampled = problem.batchable and problem.blocks() == [None]
    return model.linear and problem.smooth and sampled
