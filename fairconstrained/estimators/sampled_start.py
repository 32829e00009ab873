"""Fits on many rows start from the solution on a sample of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairconstrained.models import Model
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.in_memory import drawn
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import LocalShards
from fairconstrained.solvers import SQP, Result, Solver, Status, default_solver
from fairconstrained.utils.typing import Array

_MANY_ROWS = 1 << 17  # of fewer, the sample would be too small or cost as much as it saves
_PART = 48  # of the rows: twenty evaluations of them cost less than one of all rows
_LITTLE = 64  # a sample of such a part of the rows is kept in double precision
_LEAST_SAMPLE, _MOST_SAMPLE = 1 << 13, 1 << 16
_COARSE, _LEAST_CELL = 8, 200  # one over a part of a sample; rows of a cell, see _FEW
_COARSE_TOL = 0.02  # about how far the solution of such a part is from that of the sample
_FEW = 2000  # rows of a cell, of which all are taken: cells of few rows move the solution most
_NEAR = 0.02  # constraints within this of their bound have their slopes corrected
_MOST_SLOPES = 8  # each costs a backward pass
_CORRECTIONS = 6
_ROUGH = 1e-3  # the tolerance of the sample's own solution, which is farther off anyway
_SHARE, _FALL = 0.3, 0.02  # of the tolerance, of the KKT residual: what corrections are solved to
_LEAST_FALL = 0.3  # of the KKT residual, from one correction to the next


@dataclass(frozen=True, eq=False)
class SampledStart:
    """Where a fit starts.

    Attributes
    ----------
    result : Result
        Point, multipliers and state.
    at : Evaluation
        The problem on all rows at the point.
    data_passes : float
        What was read for it, in passes over all rows.
    """

    result: Result
    at: Evaluation
    data_passes: float


def sampled_start(solver: Solver, problem: Problem, options: Any) -> SampledStart | None:
    r"""Return a start from a sample of the rows, None where a fit does not start from one.

    On n rows a solver needs some twenty evaluations. On a sample of m rows, usually a part of 1/48,
    these cost less than one on all rows. With w the solution on the sample, and f, g
    functions of all rows, f_m, g_m those of the sample, the sample's problem is solved again as

    .. math::
        \min_v f_m(v) + \langle \nabla f(w) - \nabla f_m(w), v \rangle
        \quad \text{s.t.} \quad g_m(v) + g(w) - g_m(w)
        + \langle \nabla g(w) - \nabla g_m(w), v - w \rangle \le 0,

    which takes one evaluation of all rows. All functions have their values and slopes on all rows
    at w, so that only second derivatives are those of the sample: the distance from the solution
    on all rows falls by a factor of about :math:`\sqrt{d / m}`, d the number of variables. This is
    repeated until the point is optimal on all rows, or no longer gets nearer. Slopes of
    constraints that are far from their bounds are not corrected.

    The certificate is that of all rows, so that the sample decides how long a fit takes, not where
    it ends.

    Rows are drawn without replacement from every cell of the constraints, in proportion, but all
    rows of small cells are taken. They are the same in every fit.

    Parameters
    ----------
    solver : Solver
        The solver of the fit. Problems of the sample are solved by :class:`SQP` where that is
        possible, else by the default solver.
    problem : Problem
        The problem on all rows.
    options : estimator
        Its solver must be "auto" without a limit of iterations: a method that is asked for by name
        starts where its paper says.

    References
    ----------
    M. Jordan, J. Lee, Y. Yang, "Communication-efficient distributed statistical inference", Journal
    of the American Statistical Association 114 (2019), for problems without constraints.
    """
    if options.solver != "auto" or options.max_iter is not None or not _is_large(problem):
        return None
    part = _sample(problem)
    if part.n_rows > problem.n_rows // 4:
        return None
    of_sample = default_solver(part) if SQP().missing(part) else SQP()
    of_sample = of_sample.with_options(tol=solver.tol)
    first = _rough_solution(of_sample, part, max(_ROUGH, solver.tol))
    if first.status is not Status.CONVERGED:
        return None
    return _corrections(of_sample, problem.uncounted(), part, first)


def _rough_solution(solver: Solver, part: Problem, tol: float) -> Result:
    """Return the solution on a sample, from that on a few of its rows."""
    strata = part.strata()[0]
    rows, weights = drawn(strata, np.arange(strata.max() + 1), part.n_rows // _COARSE, _LEAST_CELL)
    few = replace(part.batch(rows, weights=[weights]), full_rows=0)
    warm = solver.solve(few, tol=max(_COARSE_TOL, tol))[0]
    return solver.solve(part, warm=warm if warm.status is Status.CONVERGED else None, tol=tol)[0]


def _corrections(
    solver: Solver, problem: Problem, part: Problem, first: Result
) -> SampledStart | None:
    """Return where corrections lead from the solution on a sample, None if the first one fails."""
    at, found, last = problem.at(first.w), first, None
    kkt = KKT.of(at, found.multipliers)
    for k in range(_CORRECTIONS):
        before = _error(kkt)
        corrected = _corrected(part, at, found.multipliers)
        tol = max(_SHARE * solver.tol * kkt.scale, _FALL * before)
        found = solver.solve(corrected, warm=found, tol=tol)[0]
        if found.status is not Status.CONVERGED:
            return last
        at = problem.at(found.w, zero_one=k > 0)  # the first one is not the last
        kkt = KKT.of(at, found.multipliers)
        if _error(kkt) > before:
            return last
        last = SampledStart(found, at, problem.passes + part.counter.rows / problem.n_rows)
        if kkt.holds(solver.tol) or _error(kkt) > _LEAST_FALL * before:
            return last
    return last


def _error(kkt: KKT) -> float:
    """Return what a correction is to reduce."""
    return max(kkt.residual, 3.0 * kkt.violation)


def _corrected(part: Problem, there: Evaluation, multipliers: Array) -> Problem:
    """Return a sample's problem with the values and the slopes of all rows at a point."""
    here = part.at(there.w)
    shifts = there.constraints - here.constraints
    near = (multipliers > 0.0) | (there.constraints >= -_NEAR)
    slopes = np.zeros((len(near), part.n_variables))
    if near.sum() <= _MOST_SLOPES:
        which = np.flatnonzero(near)
        slopes[which] = there.constraint_gradients(which) - here.constraint_gradients(which)
    tilt = there.gradient(multipliers) - here.gradient(multipliers) - multipliers @ slopes
    shifted = part.shifted(shifts - slopes @ there.w)
    parts = [
        replace(one, slopes=rows if rows.any() else None)
        for one, rows in zip(shifted.constraints, part.by_part(slopes), strict=True)
    ]
    objective = replace(part.objective, slopes=tilt[None])
    return replace(part.with_constraints(parts), objective=objective)


def _sample(problem: Problem) -> Problem:
    """Return the problem of a sample of the rows."""
    size = int(np.clip(problem.n_rows // _PART, _LEAST_SAMPLE, _MOST_SAMPLE))
    model, strata = problem.models[0], problem.strata()[0]
    if not isinstance(model, ShardedLinearModel):
        rows, weights = drawn(strata, np.arange(strata.max() + 1), size, _FEW)
        return replace(problem.uncounted().batch(rows, weights=[weights]), full_rows=0)
    shard = _rows_of(model)
    assert shard is not None
    rows, weights = drawn(shard.atoms, strata, size, _FEW)
    kept = shard.X[rows]
    if len(rows) <= problem.n_rows // _LITTLE:  # else it would be a part of the data that counts
        kept = kept.astype(float)  # once, not in every pass
    few = model.model_of(kept)
    atoms = shard.atoms[rows]
    shares = weights / model.totals[atoms]
    if shard.sample_weight is not None:
        shares *= shard.sample_weight[rows]

    def take(part: CompositeFunction) -> CompositeFunction:
        if part.term is None:
            return part
        return replace(part, model=few, term=model.sharded(part.term).term.take(atoms, shares))

    parts = [take(part) for part in problem.parts]
    return replace(problem.uncounted(), objective=parts[0]).with_constraints(parts[1:])


def _rows_of(model: Model) -> Shard | None:
    """Return the rows of a linear model in memory that are read once per evaluation."""
    if not isinstance(model, ShardedLinearModel) or not isinstance(model.shards, LocalShards):
        return None
    return model.shards.shards[0] if len(model.shards.shards) == 1 else None


def _is_large(problem: Problem) -> bool:
    """Return whether a problem has many rows, all of one linear model, that can be sampled."""
    if len(problem.models) != 1 or problem.n_rows < _MANY_ROWS:
        return False
    model = problem.models[0]
    if isinstance(model, ShardedLinearModel):
        return problem.smooth and _rows_of(model) is not None
    sampled = problem.batchable and problem.blocks() == [None]
    return model.linear and problem.smooth and sampled
