"""IDCA: a sequence of convex majorants, solved by an oracle of the user's choice."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.online_stochastic import OnlineStochastic
from fairconstrained.solvers.step_rules import StaticTolerance
from fairconstrained.solvers.successive import SuccessiveSolver
from fairconstrained.solvers.switching_subgradient import SwitchingSubgradient


@dataclass(eq=False, repr=False)
class IDCA(SuccessiveSolver):
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
        Whether solutions of subproblems are checked and multipliers are passed on, and a run with
        `polish` begins at the minimiser without constraints. False runs algorithm 1 as published:
        every solution of the oracle is the next point.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

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

    _: KW_ONLY
    max_iter: int = 10

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

    def subproblem(self, at: Evaluation, rho: float) -> Problem:
        """Return the convex majorant."""
        return at.problem.convexify(at.w, like=at)


def idca_stochastic(**options: Any) -> IDCA:
    """Return IDCA whose subproblems are solved on mini-batches."""
    oracle = OnlineStochastic(batch_size=1000, max_iter=200)
    return IDCA(oracle, **{"max_iter": 5, **options})
