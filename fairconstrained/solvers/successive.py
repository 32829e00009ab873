"""IPC and IDCA: sequences of convex subproblems, in one loop, solved by the engine or an oracle."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.result import Result, SolverState, Status
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.sqp import SQP
from fairconstrained.solvers.subgradient import ConEx, OnlineStochastic
from fairconstrained.solvers.switching_subgradient import (
    StaticTolerance,
    StronglyConvexSteps,
    SwitchingSubgradient,
)
from fairconstrained.utils.parameter_constraints import Limit, Positive

# Subproblems are solved more and more accurately. Solutions violate the constraints by at most a
# third of the tolerance: from a feasible point on, those of majorants are feasible.
_FIRST_TOL, _TIGHTEN, _LAST_TOL = 3.0, 0.3, 0.5  # the first and the last in units of tol
_MOST_PASSES = 100  # of a subproblem
_HARDER = 10.0  # times rho^ where an answer is refused
_MOST_REFUSALS = 6  # in a row: rho^ has then grown a million times
_GAINED = ("weakly_convex", "difference_of_convex")  # the properties that subproblems have always
_SMALL = 1e-5  # rho^ for oracles that need smoothness, not convexity
_NOT_CONVEX = (
    "By the bound on the modulus of the functions the subproblems are not convex with this rho^."
)
_PAPER_EPSILON = 1e-2  # eps^ of algorithm 2: it takes 1 / eps^2 steps
PAPER_RHO = 10**-2.5  # rho^ as tuned in appendix A.5; it is 2 rho there, rho the modulus


class SuccessiveSolver(Solver):
    r"""Base of the methods whose next point solves a convex model of the problem at the last one.

    Attributes
    ----------
    oracle : Solver or None
        A parameter: the solver of the subproblems. None takes the engine: :class:`SQP` if they are
        smooth, :class:`Smoothing` with it if kinks can be rounded, otherwise ConEx with 100 steps.
    safeguard : bool
        A parameter. If False, every answer is the next point, and only the point is passed on: the
        algorithm as published. Otherwise multipliers are passed on, subproblems are solved more and
        more accurately, and answers that are no better are refused.
    """

    oracle: Solver | None = None
    _: KW_ONLY
    safeguard: bool = True
    polish: bool = True

    @abstractmethod
    def subproblem(self, at: Evaluation, rho: float) -> Problem:
        """Return the convex model at a point."""

    def first_rho(self, problem: Problem) -> float:
        """Return rho^; 0 for models without it."""
        return 0.0

    def _oracle_for(self, problem: Problem) -> Solver:
        if self.oracle is not None:
            return self.oracle.unpolished()
        if problem.smooth:
            return SQP()
        return Smoothing(SQP()) if problem.smoothable else ConEx(max_iter=100, polish=False)

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or its subproblems for the oracle."""
        of_oracle = [] if self.oracle is None else self.oracle.missing(problem)
        return super().missing(problem) or [name for name in of_oracle if name not in _GAINED]

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers to the subproblems, without safeguard all of them."""
        oracle, at, refusals = self._oracle_for(problem), start.at(problem), 0
        last = start.left_by(SuccessiveSolver, self.first_rho(problem))
        rho, printed = last.parameter, replace(start, multipliers=None, state=None)
        begin = replace(start, tol=_FIRST_TOL * start.tol, state=last.subproblem)
        concave = rho > 0.0 and not self.safeguard and problem.modulus + rho < 0.0
        for t in range(1, self.max_iter + 1):
            model, end = self.subproblem(at, rho), at
            if not self.safeguard:
                for iterate in oracle.iterate(model, replace(printed, w=at.w, like=at)):
                    end = iterate.at
                at = problem.at(end.w, like=end)
                yield Iterate(at, None, t, note=_NOT_CONVEX if concave else "")
                continue
            last_pass = min(start.last_pass, problem.passes + _MOST_PASSES)
            begin = replace(begin, w=at.w, like=at, last_pass=last_pass)
            answer, end = oracle.run(model, begin)
            after = problem.at(answer.w, like=end)
            begin = replace(begin, tol=max(_LAST_TOL * start.tol, _TIGHTEN * begin.tol))
            if _acceptable(answer, at, after, start.tol):
                at, refusals, state, rounded = after, 0, answer.state, None
                last = SolverState(SuccessiveSolver, rho, subproblem=state)
                begin = replace(begin, multipliers=answer.multipliers, state=state)
                if state is not None and state.kind is Smoothing:
                    rounded = problem.smoothed(state.parameter).at(at.w, like=at)
                yield Iterate(at, answer.multipliers, t, last, rounded=rounded)
                continue
            refusals += 1
            used_up = start.passes_used_up(problem)
            if rho == 0.0 or refusals > _MOST_REFUSALS or used_up:
                # A point that violates constraints is left to the test of infeasibility.
                stalled = not used_up and at.violation <= start.tol
                yield Iterate(at, None, t, status=Status.STALLED if stalled else None)
                return
            rho *= _HARDER


def _acceptable(answer: Result, before: Evaluation, after: Evaluation, tol: float) -> bool:
    """Return whether an oracle solved its subproblem, or at least found a better point."""
    if before.violation > tol:  # a model without a feasible point has one of least violation
        return after.violation < 0.9 * before.violation
    return answer.converged or (after.violation <= tol and after.objective < before.objective)


class IPC(SuccessiveSolver, kw_only=True):
    r"""Inexact proximally constrained method.

    .. math::
        w_{t+1} \approx \arg\min_{y \in W} f(y) + \tfrac{\hat\rho}{2} \|y - w_t\|^2
        \quad \text{s.t.} \quad g_j(y) + \tfrac{\hat\rho}{2} \|y - w_t\|^2 \le 0.

    The oracle, another solver, solves each subproblem. It is warm-started with the current
    multipliers, and its tolerance decreases to `tol`. Where a subproblem has no feasible point, its
    point of least violation is the next one.

    Parameters
    ----------
    oracle : Solver or None, default=None
        The solver of the subproblems; None takes :class:`SQP`, for problems with kinks
        :class:`Smoothing` with it.
    rho : float or None, default=None
        The proximal parameter :math:`\hat\rho > 0`. None takes the value of the paper, or a smaller
        number if the oracle only needs smooth functions. If the oracle fails on a subproblem, the
        parameter is multiplied by ten for the rest of the run.
    max_iter : int, default=100
        The maximum number of subproblems.
    safeguard : bool, default=True
        Whether solutions of subproblems are checked, rho^ is increased and multipliers are passed
        on. False runs algorithm 1 as published: every solution of the oracle is the next point.
    tol, polish
        See :class:`Solver`.

    References
    ----------
    IPC, algorithm 1, equation (9).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import IPC, SwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=IPC()).fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value
    'converged'
    >>> IPC.paper().oracle
    SwitchingSubgradient(check_every=10000, max_iter=10000,
                         steps=StronglyConvexSteps(epsilon=0.0001,
                                                   modulus=0.0015811388300841897))
    """

    requires: ClassVar[tuple[str, ...]] = ("weakly_convex",)

    rho: Positive | None = None
    max_iter: Limit = 100

    @classmethod
    def paper(cls, *, steps: int = 10_000, **options: Any) -> "IPC":
        r"""Return algorithm 1 with algorithm 2 as its oracle, rho^ = 10^-2.5 and eps^ = 1e-2.

        A subproblem takes K = 1 / eps^2 steps of length :math:`2 / ((\hat\rho - \rho)(k + 2))` with
        :math:`\rho = \hat\rho / 2`, and its answer is the average of the points with
        :math:`G(z_k) \le \hat\epsilon^2`, weighted by k + 1. The paper takes this rho^ although a
        bound on the modulus of its problems (:attr:`Problem.modulus`) is larger, so that
        subproblems need not be convex; so does this. Where no point of a subproblem is feasible,
        the paper leaves the answer undefined; here it is the last point.

        The theory's output is a random iterate. The points of all subproblems are offered here, and
        the run returns the best feasible one.

        With this oracle the method takes :math:`O(\epsilon^{-4})` subgradients to a nearly
        epsilon-stationary point (theorems 1 and 2), which is out of reach for the default tolerance
        of 1e-4. The default oracle uses that the functions are smooth (Remark 2). For the printed
        coordinates see :meth:`PLADA.paper`.

        Parameters
        ----------
        steps : int, default=10000
            K, the steps of a subproblem.
        **options
            Further hyperparameters of :class:`IPC`. With another ``rho`` the steps follow.
        """
        rho = options.get("rho") or PAPER_RHO
        rule = StronglyConvexSteps(0.5 * rho, epsilon=_PAPER_EPSILON**2)
        oracle = SwitchingSubgradient(rule, max_iter=steps, check_every=steps)
        setting = {"oracle": oracle, "rho": rho, "safeguard": False, "polish": False}
        return cls(**{**setting, **options})

    def first_rho(self, problem: Problem) -> float:
        """Return rho^.

        Bounds on the weak convexity constant (:attr:`Problem.modulus`) are safe but, on data, a
        hundred times larger than what is needed, and the method slows down in proportion. Smooth
        oracles need no convexity: rho^ only has to keep steps short.
        """
        smooth = self.oracle is None or "smooth" in self.oracle.requires
        return (_SMALL if smooth else PAPER_RHO) if self.rho is None else self.rho

    def subproblem(self, at: Evaluation, rho: float) -> Problem:
        """Return the problem with the proximal term."""
        return at.problem.proximal(at.w, rho)


def ipp_ssg(**options: Any) -> IPC:
    """Return IPC with the switching subgradient oracle, known as IPP-SSG."""
    return IPC(SwitchingSubgradient(max_iter=100), **{"max_iter": 8, **options})


def ipp_conex(**options: Any) -> IPC:
    """Return IPC with the constraint extrapolation oracle, known as IPP-ConEx."""
    return IPC(ConEx(max_iter=80), **{"max_iter": 6, **options})


class IDCA(SuccessiveSolver, kw_only=True):
    r"""Inexact difference-of-convex algorithm.

    All functions are differences of convex ones, :math:`f = f^+ - f^-` and :math:`g_j = g_j^+ -
    g_j^-`. Linearising the subtracted functions gives convex majorants that are equal to the
    functions at the current point,

    .. math::
        w_{t+1} \approx \arg\min_{v \in W} f^+(v) - f^-(w_t) - \langle \nabla f^-(w_t), v - w_t
        \rangle \quad \text{s.t.} \quad g_j^+(v) - g_j^-(w_t) - \langle \nabla g_j^-(w_t), v - w_t
        \rangle \le 0,

    so all iterates after a feasible one are feasible. Where a majorant has no feasible point, its
    point of least violation is the next one. The functions define their convex parts: for a ramp
    the two positive parts, for a weakly convex function a split by a quadratic, see
    :meth:`ScalarFunction.convex_parts`.

    Parameters
    ----------
    oracle : Solver or None, default=None
        The solver of the subproblems, warm-started with the current multipliers. None takes
        :class:`SQP` if they are smooth, :class:`Smoothing` with it if their kinks can be rounded,
        otherwise ConEx with 100 steps.
    max_iter : int, default=10
        The maximum number of subproblems.
    safeguard : bool, default=True
        Whether solutions of subproblems are checked and multipliers are passed on. False runs
        algorithm 1 as published: every solution of the oracle is the next point.
    tol, polish
        See :class:`Solver`.

    References
    ----------
    IDCA, algorithm 1, equation (21).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import IDCA
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, surrogate="ramp", solver=IDCA(tol=0.01))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> IDCA.paper().oracle
    SwitchingSubgradient(check_every=150, max_iter=150,
                         steps=StaticTolerance())
    """

    requires: ClassVar[tuple[str, ...]] = ("difference_of_convex",)

    max_iter: Limit = 10

    @classmethod
    def paper(cls, *, steps: int = 150, epsilon: float = 1e-3, **options: Any) -> "IDCA":
        """Return algorithm 1 with algorithm 2: K = 100 subproblems of T = 150 steps.

        The start must be feasible: the answer of a subproblem is the best of its nearly feasible
        points, of which the first is one, so that all points are then nearly feasible.

        Algorithm 2 solves a subproblem to the tolerance of its steps, 1e-3 here. The number of them
        grows at least with the inverse of that (proposition 6.4, for strongly convex functions), so
        that the default tolerance of 1e-4 is out of reach.
        `tol` is therefore that of the steps, too: the answer is the best point that violates the
        constraints by at most that much. The default oracle uses that majorants are smooth or can
        be rounded. For the printed coordinates see :meth:`PLADA.paper`.

        Parameters
        ----------
        steps : int, default=150
            T; the paper tries 150 and 200.
        epsilon : float, default=1e-3
            The tolerance of the steps; the paper tries 5e-4, 1e-3, 2e-3 and 5e-3.
        **options
            Further hyperparameters of :class:`IDCA`. The paper tunes K in {100, ..., 400}.
        """
        oracle = SwitchingSubgradient(StaticTolerance(epsilon), max_iter=steps, check_every=steps)
        setting = {"oracle": oracle, "max_iter": 100, "safeguard": False, "polish": False}
        return cls(**{**setting, "tol": epsilon, **options})

    def subproblem(self, at: Evaluation, rho: float) -> Problem:
        """Return the convex majorant."""
        return at.problem.convexify(at.w, like=at)


def idca_stochastic(**options: Any) -> IDCA:
    """Return IDCA whose subproblems are solved on mini-batches."""
    return IDCA(OnlineStochastic(batch_size=1000, max_iter=200), **{"max_iter": 5, **options})
