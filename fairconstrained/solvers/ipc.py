"""IPC: a sequence of convex subproblems, solved by an oracle of the user's choice."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.conex import ConEx
from fairconstrained.solvers.step_rules import StronglyConvexSteps
from fairconstrained.solvers.successive import SuccessiveSolver
from fairconstrained.solvers.switching_subgradient import SwitchingSubgradient
from fairconstrained.utils.parameter_constraints import POSITIVE, ParameterConstraints

_SMALL = 1e-5  # rho^ for oracles that need smoothness, not convexity
_NOT_CONVEX = (
    "By the bound on the modulus of the functions the subproblems are not convex with this rho^."
)
_PAPER_EPSILON = 1e-2
PAPER_RHO = 10**-2.5  # rho^ as tuned in appendix A.5; it is 2 rho there, rho the modulus


@dataclass(eq=False, repr=False)
class IPC(SuccessiveSolver):
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
        on, and a run with `polish` begins at the minimiser without constraints. False runs
        algorithm 1 as published: every solution of the oracle is the next point.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

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

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "rho": [POSITIVE, None],
    }

    _: KW_ONLY
    rho: float | None = None
    max_iter: int = 100

    @classmethod
    def paper(cls, *, steps: int = 10_000, **options: Any) -> IPC:
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
        of 1e-4. The default oracle uses that the functions are smooth (Remark 2).

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

    def note(self, problem: Problem, rho: float) -> str:
        """Return whether the subproblems are known to be convex."""
        return "" if problem.modulus + rho >= 0.0 else _NOT_CONVEX


def ipp_ssg(**options: Any) -> IPC:
    """Return IPC with the switching subgradient oracle, known as IPP-SSG."""
    return IPC(SwitchingSubgradient(max_iter=100), **{"max_iter": 8, **options})


def ipp_conex(**options: Any) -> IPC:
    """Return IPC with the constraint extrapolation oracle, known as IPP-ConEx."""
    return IPC(ConEx(max_iter=80), **{"max_iter": 6, **options})
