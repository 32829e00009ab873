"""Smoothing: a sequence of problems whose kinks are rounded over decreasing widths."""

from __future__ import annotations

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Solver
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.rounded_kinks import RoundedKinks


class Smoothing(RoundedKinks):
    r"""Smoothing method: solves problems with rounded kinks, over decreasing widths.

    Every kink of a function (hinge, ramp, L1 and SCAD penalties) is replaced by an arc of a given
    width (see :class:`~fairconstrained.functions.base.Rounded`). The smooth problem is solved for
    decreasing widths, each warm-started from the previous one, until the certificate of the
    *original* problem holds: the gradient at the solution is an :math:`\epsilon`-subgradient of the
    Lagrangian, and epsilon counts as complementarity (see
    :meth:`~fairconstrained.problem.kkt.KKT.of`).

    For a solver that does not converge to such tolerances only three widths are used, and its
    solutions are moved to the nearest points that meet the constraints of the original problem.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of the smooth problems; None takes :class:`ExactPenalty` for the least unfairness
        (``goal="fairness"``), else :class:`AugmentedLagrangian`.
    width : float, default=1.0
        The first width, > 0. With a width as large as that of the ramp the first problems have
        fewer local minima, so that solutions are often better.
    shrink : float, default=0.1
        The factor by which the width is multiplied from one problem to the next, in (0, 1).
    max_iter : int, default=12
        The maximum number of smooth problems.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).

    Examples
    --------
    >>> from fairconstrained import FairHingeClassifier, make_biased_classification
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairHingeClassifier(kappa=0.1, solver="smoothing").fit(
    ...     X, y, sensitive_features=groups
    ... )
    >>> clf.result_.status.value
    'converged'
    """

    def __init__(
        self,
        solver: Solver | None = None,
        *,
        width: float = 1.0,
        shrink: float = 0.1,
        max_iter: int = 12,
        tol: float = 1e-4,
    ):
        self.solver = solver
        self.width = width
        self.shrink = shrink
        self.max_iter = max_iter
        self.tol = tol

    @property
    def seeks_feasibility(self) -> bool:
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.seeks_feasibility

    @property
    def replaceable(self) -> bool:
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.replaceable

    def _solver_for(self, smooth: Problem) -> Solver:
        """Return the solver of the smooth problems."""
        if self.solver is not None:
            return self.solver
        return ExactPenalty() if smooth.in_epigraph_form else AugmentedLagrangian()
