"""Fits on many rows start from the solution on a sample of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from fairconstrained.penalties.base import Linear
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.solvers import Result, Solver, Status
from fairconstrained.terms.base import Shiftable
from fairconstrained.utils.ranges import grouped
from fairconstrained.utils.typing import Array

_LEAST_ROWS = 1 << 17
_PART = 16  # of the rows: their solution costs as much as one or two evaluations of all of them
_MOST_ROWS = 1 << 16
_FEW = 2000  # rows of a cell, of which all are taken: cells of few rows move the solution most


class AutomaticOptions(Protocol):
    """The parameters of an estimator that decide whether its fits start from a sample."""

    solver: str | Solver
    max_iter: int | None


def sampled_start(solver: Solver, problem: Problem, options: AutomaticOptions) -> Result | None:
    r"""Return the solution on a sample of the rows, None where a fit does not start from one.

    On n rows a solver needs some twenty evaluations. On a sample of m rows, at most a part of 1/16,
    these cost as much as one or two on all rows. With w the solution on the sample, and f, g
    functions of all rows, f_m, g_m those of the sample, the sample's problem is solved again as

    .. math::
        \min_v f_m(v) + \langle \nabla f(w) - \nabla f_m(w), v \rangle
        \quad \text{s.t.} \quad g_m(v) + g(w) - g_m(w) \le 0,

    which takes one evaluation of all rows. That solution is a fraction of :math:`\|v - w\|` from
    the one of all rows, and its multipliers and curvature pairs let the solver finish in a few
    evaluations. The certificate is that of all rows, so that the sample decides how long a fit
    takes, not where it ends.

    Rows are drawn without replacement from every cell of the constraints, in proportion, but all
    rows of small cells are taken. They are the same in every fit.

    Parameters
    ----------
    solver : Solver
        The solver of the fit.
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
    rows, weights = _drawn(problem.strata()[0], min(problem.n_rows // _PART, _MOST_ROWS))
    if len(rows) > problem.n_rows // 4:
        return None
    part = replace(problem.uncounted().batch(rows, weights=[weights]), full_rows=0)
    first = solver.solve(part)[0]
    if first.status is not Status.CONVERGED:
        return None
    result = solver.solve(_corrected(part, problem, first.w), warm=first)[0]
    if result.status is not Status.CONVERGED:
        return None
    passes = (first.data_passes + result.data_passes) * len(rows) / problem.n_rows
    return replace(result, data_passes=passes + 1.0)


def _corrected(part: Problem, problem: Problem, w: Array) -> Problem:
    """Return a sample's problem with the values and the slope of all rows at a point."""
    here, there = part.at(w), problem.uncounted().at(w)
    tilted = part.objective.add(Linear(there.gradient() - here.gradient()))
    changed = replace(part, objective=tilted)
    if not problem.constraints:
        return changed
    return changed.shifted(there.constraints - here.constraints)


def _drawn(codes: Array, size: int) -> tuple[Array, Array]:
    """Return rows from every stratum, in rising order, and one over the share that was drawn."""
    order, starts = grouped(codes)
    sizes = np.diff(starts)
    counts = np.minimum(np.maximum(np.round(size * sizes / len(codes)).astype(int), _FEW), sizes)
    source = np.random.default_rng(0)
    drawn = [
        order[start + source.choice(n, count, replace=False, shuffle=False)]
        for start, n, count in zip(starts, sizes, counts, strict=False)
    ]
    rows = np.sort(np.concatenate(drawn))
    return rows, (sizes / counts)[codes[rows]]


def _is_large(problem: Problem) -> bool:
    """Return whether a problem has many rows, all of one linear model, that can be sampled."""
    if len(problem.models) != 1 or problem.n_rows < _LEAST_ROWS:
        return False
    model = problem.models[0]
    known = model.linear and not isinstance(model, ShardedLinearModel)
    shiftable = all(isinstance(part.term, Shiftable) for part in problem.constraints)
    sampled = problem.batchable and shiftable and problem.blocks() == [None]
    return known and problem.smooth and sampled
