"""IDCA: a sequence of convex majorants, solved by an oracle of the user's choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.phase_one import acceptable, phase_one
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers._tools.subproblems import OracleSolver, every_answer
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.conex import ConEx
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.result import Result, Status
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.state import RoundingState, SolverState
from fairconstrained.solvers.step_rules import StaticTolerance
from fairconstrained.solvers.switching_subgradient import SwitchingSubgradient
from fairconstrained.utils.parameter_constraints import LIMIT, ParameterConstraints

_FIRST_TOL = 3.0  # times tol: the solution of a subproblem then violates by at most tol
_TIGHTEN = 0.3
_MOST_PASSES = 100  # of a subproblem
# In order of preference; both take majorants without an interior, whose multipliers have no bound.
# With rounded kinks the augmented Lagrangian needs more passes than a subproblem has.
_ORACLES = (
    AugmentedLagrangian(polish=False),
    Smoothing(ExactPenalty()),
    ConEx(max_iter=100),
)


class IDCA(OracleSolver):
    r"""Inexact difference-of-convex algorithm.

    All functions are differences of convex ones, :math:`f = f^+ - f^-` and :math:`g_j = g_j^+ -
    g_j^-`. Linearising the subtracted functions gives convex majorants that are equal to the
    functions at the current point,

    .. math::
        w_{t+1} \approx \arg\min_{v \in W} f^+(v) - f^-(w_t) - \langle \nabla f^-(w_t), v - w_t
        \rangle \quad \text{s.t.} \quad g_j^+(v) - g_j^-(w_t) - \langle \nabla g_j^-(w_t), v - w_t
        \rangle \le 0,

    so all iterates after a feasible one are feasible. From an infeasible start the same method is
    applied to :math:`\max_j g_j` to find a feasible point (phase one); if that ends at a positive
    value, the run reports it. The functions define their convex parts: for a ramp the two positive
    parts, for a weakly convex function a split by a quadratic, see
    :meth:`ScalarFunction.convex_parts`.

    Parameters
    ----------
    oracle : Solver or None, default=None
        The solver of the subproblems, warm-started with the current multipliers. None takes the
        augmented Lagrangian if they are smooth, :class:`Smoothing` with :class:`ExactPenalty` if
        their kinks can be rounded, otherwise ConEx with 100 steps. If the oracle finds no better
        point, its iterations are doubled for the rest of the run.
    max_iter : int, default=10
        The maximum number of subproblems.
    max_doublings : int, default=1
        How often the iterations of the oracle may be doubled before the run ends as stalled.
    safeguard : bool, default=True
        Whether solutions of subproblems are checked, multipliers are passed on, oracles are limited
        to 100 data passes, and an infeasible or poor start is improved first. False runs algorithm
        1 as published: every solution of the oracle is the next point.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

    Notes
    -----
    The effect of the additions to the published algorithm, measured by ``python -m benchmarks
    additions`` on COMPAS (demographic parity 0.02, 300 data passes; gaps are relative to the best
    objective):
    the default converges after 29 passes, without `safeguard` after 144. With algorithm 2 in place
    of the augmented Lagrangian the gap is 0.24%, with `paper()` and 30 steps per subproblem 0.12%.
    With partial demographic parity of ramps, whose kinks are rounded, and up to 900 passes, the
    run converges after 178 passes. With the augmented Lagrangian in place of
    :class:`ExactPenalty`, or with ConEx, it stalls at the start, 12% above the best objective; with
    `paper()` and 30 steps the gap is 6.8%.

    References
    ----------
    IDCA, algorithm 1, equation (21).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.idca import IDCA
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, surrogate="ramp", solver=IDCA(tol=0.01))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> IDCA.paper().oracle
    SwitchingSubgradient(check_every=150, max_iter=150,
                         steps=StaticTolerance())
    """

    requires: ClassVar[tuple[str, ...]] = ("difference_of_convex",)

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        **OracleSolver._parameter_constraints,
        "oracle": [Solver, None],
        "max_doublings": [LIMIT],
    }

    def __init__(
        self,
        oracle: Solver | None = None,
        *,
        max_iter: int = 10,
        max_doublings: int = 1,
        safeguard: bool = True,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.oracle = oracle
        self.max_iter = max_iter
        self.max_doublings = max_doublings
        self.safeguard = safeguard
        self.tol = tol
        self.polish = polish

    @classmethod
    def paper(cls, *, steps: int = 150, epsilon: float = 1e-3, **options: Any) -> IDCA:
        """Return algorithm 1 with algorithm 2: K = 100 subproblems of T = 150 steps.

        The start must be feasible: the answer of a subproblem is the best of its nearly feasible
        points, of which the first is one, so that all points are then nearly feasible.

        Algorithm 2 solves a subproblem to the tolerance of its steps, 1e-3 here, and the number of
        steps grows with the inverse square of that: the default tolerance of 1e-4 cannot be met.
        `tol` is therefore that of the steps, too: the answer is the best point that violates the
        constraints by at most that much. The default oracle uses that majorants are smooth or can
        be rounded.

        Parameters
        ----------
        steps : int, default=150
            T; the paper tries 150 and 200.
        epsilon : float, default=1e-3
            The tolerance of the steps; the paper tries 5e-4, 1e-3, 2e-3 and 5e-3.
        **options
            Further hyperparameters of :class:`IDCA`. The paper tunes K in {100, ..., 400}.
        """
        rule = StaticTolerance(epsilon)
        oracle = SwitchingSubgradient(rule, max_iter=steps, check_every=steps)
        setting = {"oracle": oracle, "max_iter": 100, "safeguard": False, "polish": False}
        return cls(**{**setting, "tol": epsilon, **options})

    def _oracle_for(self, problem: Problem) -> Solver:
        if self.oracle is not None:
            return self.oracle.unpolished()
        majorant = problem.convexify(problem.start())
        return next(oracle for oracle in _ORACLES if not oracle.missing(majorant))

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or its subproblems for the oracle."""
        return super().missing(problem) or self._oracle_for(problem).missing(
            problem.convexify(problem.start())
        )

    def _published(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield all answers of the oracle: algorithm 1."""
        return every_answer(
            self._oracle_for(problem),
            problem,
            start,
            self.max_iter,
            lambda at: problem.convexify(at.w, like=at),
        )

    def _first(self, problem: Problem, start: Start) -> Evaluation:
        """Return the first point, improved if it is poor, and feasible if phase one succeeds."""
        at = start.at(problem)
        if self.polish and start.multipliers is None:
            at = _better_start(problem, at, start)
        return phase_one(self, problem, at, start) if at.violation > start.tol else at

    def _safeguarded(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the accepted answers of the oracle."""
        oracle, at = self._oracle_for(problem), self._first(problem, start)
        infeasible = at.violation > start.tol
        if infeasible or start.passes_used_up(problem):  # by phase one
            yield Iterate(at, None, int(infeasible))
            return
        last = IDCAState.of(start.state)
        warm: Start | Result = replace(start, state=None if last is None else last.subproblem)
        tol, doublings = _FIRST_TOL * start.tol, 0
        for t in range(1, self.max_iter + 1):
            convex = problem.convexify(at.w, like=at)
            answer, end = start.solve(
                oracle, convex, at.w, like=at, warm=warm, tol=tol, most_passes=_MOST_PASSES
            )
            found = problem.at(answer.w, like=end)
            if not answer.converged and self.polish:
                found = restore(found, start.feasible)
            tol = max(0.5 * start.tol, _TIGHTEN * tol)
            warm = answer
            if acceptable(answer, at, found, start.tol):
                at = found
                rounded = RoundingState.rounded(answer.state, problem, at)
                yield Iterate(at, answer.multipliers, t, IDCAState(answer.state), rounded=rounded)
                continue
            if start.passes_used_up(problem):
                yield Iterate(found, answer.multipliers, t)
                return
            oracle, doublings = oracle.with_options(max_iter=2 * oracle.max_iter), doublings + 1
            passes_bind = answer.status is Status.PASS_LIMIT  # more iterations do not help
            if doublings > self.max_doublings or passes_bind:
                yield Iterate(at, None, t, status=Status.STALLED)
                return


def _better_start(problem: Problem, at: Evaluation, start: Start) -> Evaluation:
    """Return the minimiser of the objective, moved to the constraints, if that is better.

    Majorants that touch at scores of zero may have their minimum there: where constraints clip
    rates, or where ramps end, the start is then a stationary point, though a poor one.
    """
    free = problem.with_constraints(())
    solver = AugmentedLagrangian() if free.smooth else Smoothing()
    if free.objective.term is None or not problem.n_constraints or solver.missing(free):
        return at
    limit = min(start.passes_left(problem), _MOST_PASSES)
    found = solver.minimize(free, at.w, tol=1e-3, max_data_passes=limit)
    first = problem.at(found.w)
    moved = restore(first, start.feasible, max_iter=20, last_pass=start.last_pass)
    feasible = moved.violation <= start.feasible
    return moved if feasible and moved.objective < at.objective else at


@dataclass(frozen=True, eq=False)
class IDCAState(SolverState):
    """What :class:`IDCA` leaves for a warm start.

    Attributes
    ----------
    subproblem : SolverState or None
        The state that the subproblem solver left.
    """

    subproblem: SolverState | None
