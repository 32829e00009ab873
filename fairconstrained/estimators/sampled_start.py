"""Fits on many rows start from the solution on a sample of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairconstrained.models import Model
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.shards.in_memory import drawn
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import LocalShards
from fairconstrained.solvers import SQP, Result, Solver, Status
from fairconstrained.solvers.sqp import SQPState

_MANY_ROWS = 1 << 17  # of fewer, the sample costs as much as it saves
_PART = 32  # of the rows: an evaluation of all rows costs more than the solution on the sample
_LITTLE = 64  # a sample of such a part of the rows is kept in double precision
_LEAST_SAMPLE, _MOST_SAMPLE = 1 << 13, 1 << 16
_COARSE, _LEAST_CELL = 8, 200  # one over a part of a sample; rows of a cell, see _FEW
_COARSE_TOL = 0.02  # about how far the solution of such a part is from that of the sample
_FEW = 2000  # rows of a cell, of which all are taken: cells of few rows move the solution most
_ROUGH = 1e-3  # the tolerance of the sample's own solution, which is farther off anyway


def sampled_start(solver: Solver, problem: Problem, options: Any) -> tuple[Solver, Result] | None:
    r"""Return the solution on a sample of the rows and the solver that goes on from it.

    From zero a solver needs five to ten evaluations. On a sample of m of n rows, usually a part of
    1/32, these cost less than one on all rows. With d variables the sample's solution and its
    Hessian differ from those of all rows by about :math:`\sqrt{d / m}`. Newton's steps with the
    sample's Hessian reduce the distance from the solution on all rows by that factor each, and
    :class:`SQP` takes the Hessian of all rows where they do not. The sample decides how long a fit
    takes, not where it ends.

    Rows are drawn without replacement from every cell of the constraints, in proportion, but all
    rows of small cells are taken. They are the same in every fit.

    Parameters
    ----------
    solver : Solver
        The solver of the fit; :class:`SQP` goes on where Hessians are known.
    problem : Problem
        The problem on all rows.
    options : estimator
        Its solver must be "auto" without a limit of iterations: a method that is asked for by name
        starts where its paper says.

    Returns
    -------
    start : tuple of (Solver, Result) or None
        None where a fit does not start from a sample. The data passes of the result are in passes
        over all rows.
    """
    if options.solver != "auto" or options.max_iter is not None or not _is_large(problem):
        return None
    part = _sample(problem)
    if part.n_rows > problem.n_rows // 4:
        return None
    if part.twice_differentiable:
        solver = SQP(tol=solver.tol)
    found = _rough_solution(solver, part, max(_ROUGH, solver.tol))
    if found.status is not Status.CONVERGED:
        return None
    state = found.state
    if part.twice_differentiable:
        state = SQPState.of_hessian(part.at(found.w), found.multipliers)
    passes = part.counter.rows / problem.n_rows
    return solver, replace(found, state=state, data_passes=passes)


def _rough_solution(solver: Solver, part: Problem, tol: float) -> Result:
    """Return the solution on a sample, from that on a few of its rows."""
    strata = part.strata()[0]
    rows, weights = drawn(strata, np.arange(strata.max() + 1), part.n_rows // _COARSE, _LEAST_CELL)
    few = replace(part.batch(rows, weights=[weights]), full_rows=0)
    warm = solver.solve(few, tol=max(_COARSE_TOL, tol))[0]
    return solver.solve(part, warm=warm if warm.status is Status.CONVERGED else None, tol=tol)[0]


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
    few, atoms = model.on(kept), shard.atoms[rows]
    if shard.sample_weight is not None:
        weights = weights * shard.sample_weight[rows]

    def take(part: CompositeFunction) -> CompositeFunction:
        if part.model is not model:
            return part
        return replace(part, model=few, term=model.summed(part.term).take(atoms, weights))

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
