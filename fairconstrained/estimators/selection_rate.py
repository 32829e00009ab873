"""Fits whose threshold selects a given share of the rows: the threshold follows the scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairconstrained.decisions.search import LOOSEN
from fairconstrained.estimators.fit import Fit, moved_variables
from fairconstrained.estimators.rows import loss_part
from fairconstrained.estimators.solution import Solution
from fairconstrained.exceptions import (
    ConvergenceWarning,
    InputWarning,
    warn,
    without_vacuous_warnings,
)
from fairconstrained.problem import KKT, Evaluation, Problem
from fairconstrained.solvers import Result, Status
from fairconstrained.solvers.base import Iterate, Measured, Start
from fairconstrained.solvers.result import describe
from fairconstrained.utils.execution import in_fold

_SETTLED = 1e-6  # the distance of the threshold from the quantile at which it is one
_NEAR = 0.02  # the distance above which a warning is issued; rates change by a quarter of it
_LONG = 1e-3  # longer steps of the threshold are extrapolated
_FAR = 0.1  # the part of the share from which the share that is selected may differ
_ROOM = 1.1  # the last move of the threshold may change a solution by a part of the tolerance


def moved(fit: Fit, by: float) -> Fit:
    """Return the fit with a threshold that is higher; see `moved_variables` for its variables.

    The model without constraints is what it was, with its scores measured from that threshold.
    """
    data, old = fit.data.moved(by), fit.problem
    objective = loss_part(fit.estimator, fit.model, data).add(old.objective.penalty)
    free = Problem(objective, domain=old.domain)
    split = None if fit.split is None else (fit.split[0].moved(by), fit.split[1].moved(by))
    made = Fit.free(fit.estimator, data, free, split)
    if "result" in vars(fit.unconstrained):
        result = fit.unconstrained.result
        w = moved_variables(fit.unconstrained.problem, result.w, by)
        made.unconstrained.result = replace(result, w=w)
    with without_vacuous_warnings():
        return replace(made.constrained(fit.constraints), held_out=fit.held_out)


def settled(fit: Fit, first: Start | None = None) -> tuple[Fit, Problem, Start | None, float]:
    r"""Return the fit at the threshold that selects its share, what is to be solved, and a start.

    The last number is that of the data passes made, from the start `first` where that is given.

    With the solution :math:`w(t)` for the threshold t and the quantile q of its scores, t is a
    fixed point, :math:`t = q(w(t))`. Iterations start from the quantile of the model without
    constraints, and each solve from the last solution. Where solutions jump as the threshold moves
    there may be no fixed point; the threshold nearest to the quantile is taken.
    """
    problem, start = fit.wanted()
    tried: list[tuple[float, float]] = []
    warm = start if first is None else first
    passes, best, nearest = 0.0, (fit, problem, warm), np.inf
    if fit.unconstrained.selects is None:
        return *best, passes
    for _ in range(fit.estimator.most_thresholds):
        result, at = fit.solve(problem, warm=warm)
        passes += result.data_passes
        distance = fit.unconstrained.cut_of(at)
        if abs(distance) < nearest:
            same = Start(result.w, result.multipliers) if start is None else start
            best, nearest = (fit, problem, same), abs(distance)
        if nearest <= _SETTLED:
            break
        tried.append((fit.data.convention.threshold, distance))
        step = _next_step(tried)
        w = moved_variables(fit.problem, result.w, step)
        fit = moved(fit, step)
        problem, start = fit.wanted()
        warm = Start(w, result.multipliers) if start is None else start
    if nearest > _NEAR:
        warn(
            f"threshold={fit.estimator.threshold!r}: the search for the threshold did not "
            f"converge. Surrogates are centred at a score that differs from it by {nearest:.2g}. "
            f"Give a number as threshold, or {LOOSEN}.",
            ConvergenceWarning,
        )
    return *best, passes


def _next_step(tried: Sequence[tuple[float, float]]) -> float:
    """Return the next step from the thresholds tried, with the distances of the quantiles there.

    It is a secant step, kept inside the interval in which the distance changes its sign.
    """
    threshold, step = tried[-1]
    low = max((at for at, distance in tried if distance > 0.0), default=-np.inf)
    high = min((at for at, distance in tried if distance <= 0.0), default=np.inf)
    if len(tried) > 1 and abs(step) > _LONG and tried[-2][1] != step:
        change, gain = np.subtract(tried[-1], tried[-2])
        step *= float(np.clip(-change / gain, 0.3, 3.0))
    if not low < threshold + step < high and np.isfinite(high - low):
        step = 0.5 * (low + high) - threshold
    return float(step)


def cut_exactly(
    fit: Fit, result: Result, at: Evaluation, passes: float
) -> tuple[Fit, Result, Evaluation]:
    """Return the fit, the solution and the evaluation there, with the share selected exactly.

    The threshold is then the quantile of the solution's scores. The figures, the status and the
    message are those of the solution at this threshold, after as many `passes` before it.
    """
    if fit.unconstrained.selects is None:
        return fit, result, at
    result = replace(result, data_passes=result.data_passes + passes)
    distance = fit.unconstrained.cut_of(at)
    if distance == 0.0:
        return fit, result, at
    w = moved_variables(fit.problem, result.w, distance)
    fit = moved(fit, distance)
    n = fit.problem.n_variables
    if w.size > n:  # goal="fairness" has a variable more, the level of the constraints
        w[n] = fit.problem.uncounted().at(w[:n]).constraints.max()
    here = fit.wanted()[0].uncounted().at(w)
    measured = Measured.of(Iterate(here, result.multipliers, result.n_iter), result.solver.tol)
    smooth = here.problem.smooth or abs(distance) > _NEAR
    shown = result.with_point(measured, _status_of(measured.kkt, result, smooth))
    figures = result.objective, result.violation, result.kkt_residual, result.n_iter
    said = describe(result.status, *figures)
    message = result.message.replace(said, shown.message)
    return fit, replace(shown, message=message, state=result.state), here


def warn_of_share(fit: Fit, solution: Solution) -> None:
    """Warn if another share of the training rows is selected, where nothing else is said of it."""
    search, certificate = solution.search, solution.certificate
    limits = fit.unconstrained.limits(fit.estimator, fit.model, fit.data)
    warned = search is not None and (search.constant or certificate is None)
    if fit.unconstrained.selects is None or warned or in_fold():
        return
    share, weight = fit.unconstrained.selects
    problem = fit.problem.with_constraints(limits).uncounted()
    at = problem.at(solution.result.w[: problem.n_variables]).decided
    selected = float(at.statistics_of(at.problem.constraints[0])[0])
    two_rows = 2.0 * float(fit.data.largest_weight / weight.sum())
    if abs(selected - share) > max(_FAR * share, two_rows):
        why = "many rows have equal scores. Use features, or more trees, that tell them apart"
        if certificate is not None:
            why = f"no model of this share passed the test. Use more rows, or {LOOSEN}"
        warn(
            f"threshold={fit.estimator.threshold!r}: {100.0 * selected:.1f}% of the training rows "
            f"are selected, because {why}.",
            InputWarning,
        )


def _status_of(kkt: KKT, result: Result, smooth: bool) -> Status:
    """Return the status of a run whose threshold has moved after its end.

    A short move leaves the kinks on which a solution may lie, and the KKT residual jumps there. It
    is compared with the tolerance only if the problem is `smooth`, or the move is not short.
    Boosted trees that are kept as they are have converged without a KKT point.
    """
    tol = result.solver.tol
    if result.status not in (Status.CONVERGED, Status.INFEASIBLE):
        return result.status
    if kkt.violation > tol:  # a solution that met the bound has lost it on the way
        return Status.STALLED if result.converged else Status.INFEASIBLE
    compared = smooth and result.kkt_residual <= tol
    optimal = kkt.error <= _ROOM * tol if compared else result.converged
    return Status.CONVERGED if optimal else Status.STALLED
