"""Problems near a problem: with rounded kinks, or proximal ones, which show near-stationarity."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from typing import ClassVar

import numpy as np

from fairconstrained.exceptions import ConvergenceWarning, warn
from fairconstrained.problem import Problem
from fairconstrained.problem.kkt import FAR, is_stuck
from fairconstrained.solvers.base import Iterate, Solver, Start, check_point, default_solver
from fairconstrained.solvers.result import Measured, SolverState, Status
from fairconstrained.solvers.sqp import AugmentedLagrangian, ExactPenalty
from fairconstrained.solvers.switching_subgradient import SwitchingSubgradient
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array

_SHARE = 0.5  # of the tolerance: what the solver of a smooth problem may use up, rounding the rest
_LAST_INEXACT = 0.01  # of the first width: the narrowest where the solver does not converge


class Smoothing(Solver):
    r"""Smoothing method: solves problems with rounded kinks, over decreasing widths.

    Every kink of a function (hinge, ramp, L1 and SCAD penalties) is replaced by an arc of a given
    width (see :class:`~fairconstrained.functions.base.Rounded`). The smooth problem is solved for
    decreasing widths, each warm-started from the previous one, until the certificate of the
    *original* problem holds: the gradient at the solution is an :math:`\epsilon`-subgradient of the
    Lagrangian, and epsilon counts as complementarity (see
    :meth:`~fairconstrained.problem.kkt.KKT.of`).

    For a solver that does not converge to such tolerances only three widths are used.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of the smooth problems. If the problem is weakly convex and X has at most 100
        columns, None takes the solver of ``solver="auto"``. Otherwise it takes
        :class:`AugmentedLagrangian`, and :class:`ExactPenalty` for ``goal="fairness"``.
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

    requires: ClassVar[tuple[str, ...]] = ("smoothable",)

    solver: Solver | None = None
    _: KW_ONLY
    width: valid.Positive = 1.0
    shrink: valid.OpenShare = 0.1
    max_iter: valid.Limit = 12

    @property
    def seeks_feasibility(self) -> bool:  # type: ignore[override]
        """What the solver of the smooth problems says."""
        return self.solver is None or self.solver.seeks_feasibility

    def solver_for(self, problem: Problem) -> Solver:
        """Return the solver of the smooth problems.

        SQP takes half the data passes of the augmented Lagrangian method, with two exceptions.
        Kinks that bend down, as those of ramps, make many local solutions. Those that the augmented
        Lagrangian method finds are better, because it begins with hardly any constraints. With many
        columns, L-BFGS learns the large curvature of narrow arcs too slowly for SQP.
        """
        if self.solver is not None:
            return self.solver
        if problem.weakly_convex and problem.few_columns:
            return default_solver(problem.smoothed(self.width))
        return ExactPenalty() if problem.in_epigraph_form else AugmentedLagrangian()

    def missing(self, problem: Problem) -> list[str]:
        """Return what the problem lacks for this method, or the smooth problems for the solver."""
        if not problem.smoothable:
            return super().missing(problem)
        return self.solver_for(problem).missing(problem.smoothed(self.width))

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answers to the smooth problems, as points of the problem itself."""
        solver = self.solver_for(problem)
        last = start.left_by(Smoothing)
        width = last.parameter or self._first_width(problem, start)
        begin = replace(start, tol=_SHARE * start.tol, state=last.subproblem)
        for k in range(1, self.max_iter + 1):
            answer, end = solver.run(problem.smoothed(width), begin)
            at = problem.at(answer.w, like=end)
            last = SolverState(Smoothing, width, subproblem=answer.state)
            unmet = answer.status is Status.INFEASIBLE
            status, exact = None, (answer.multipliers, end) if answer.converged else (None, None)
            # Narrower arcs are harder, and change an inexact answer by less than it is in error.
            # Wide ones raise convex functions: a problem with little room has none when rounded.
            if not answer.converged and width <= _LAST_INEXACT * self.width:
                status = Status.INFEASIBLE if unmet else Status.STALLED
            yield Iterate(at, exact[0], k, last, status, exact[1])
            if unmet and problem.convex and is_stuck(at, start.tol, answer.multipliers, end, FAR):
                solver = ExactPenalty()  # the least violation, whatever the objective
            # Multipliers of an infeasible problem cannot be used.
            multipliers, state = (None, None) if unmet else (answer.multipliers, answer.state)
            begin = replace(begin, w=answer.w, multipliers=multipliers, state=state, like=end)
            width *= self.shrink

    def _first_width(self, problem: Problem, start: Start) -> float:
        """Return the first width over which kinks are rounded.

        Rounding increases a convex loss. If the loss has a bound near its least value, no model may
        meet this bound once the kinks are rounded over a large width. Therefore, a start that meets
        the convex constraints must also meet them when they are rounded.
        """
        width, narrowest = self.width, _LAST_INEXACT * self.width
        bounded = problem.with_constraints([part for part in problem.constraints if part.convex])
        if bounded.at(start.w).violation > start.tol:
            return width
        while width > narrowest and bounded.smoothed(width).at(start.w).violation > start.tol:
            width *= self.shrink
        return width


_LEAST = 1e-2  # of rho, where the functions are convex and any will do


@valid.checked
def near_stationarity(
    problem: Problem,
    w: Array,
    rho: valid.Positive | None = None,
    *,
    constraint_rho: valid.NonNegative | None = None,
    tol: valid.NonNegative = 1e-4,
    solver: Solver | None = None,
) -> float:
    r"""Return 3S-Econ's SVio, the distance :math:`\|\hat w - w\|` to the proximal point.

    .. math::
        \hat w = \arg\min_{v \in W} f(v) + \rho_f \|v - w\|^2 \quad\text{s.t.}\quad
        g_j(v) + \rho_g \|v - w\|^2 \le 0.

    It is zero exactly at the stationary points. Unlike the KKT residual it is continuous at kinks
    of the functions. Where neither a constraint nor the domain is active, it is the norm of a
    subgradient of f at :math:`\hat w`, divided by :math:`2 \rho_f`. The data passes of the
    subproblem are not counted.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    rho : float or None, default=None
        The proximal parameter :math:`\rho_f` of the objective, at least the weak convexity constant
        of the functions. None takes the bound ``-problem.modulus``, or 0.01 if that is smaller.
        Only values for the same parameters can be compared.
    constraint_rho : float or None, default=None
        The proximal parameter :math:`\rho_g` of the constraints, >= 0; None takes :math:`\rho_f`.
        It may be 0 if the constraints are convex.
    tol : float, default=1e-4
        The tolerance to which the subproblem is solved, and to which its constraints hold (the
        paper: 1e-2). The distance may be wrong by about ``sqrt(tol / rho)``.
    solver : Solver or None, default=None
        The solver of the subproblem. None takes that of ``solver="auto"`` if functions are smooth
        or their kinks are known, else the switching subgradient method, as the paper does.

    Returns
    -------
    distance : float
        The distance, >= 0. It is infinite if no feasible point of the subproblem was found, because
        `w` violates the constraints too much.

    Raises
    ------
    ValueError
        If the functions are not weakly convex and no rho is given, or if an argument is not valid.

    Warns
    -----
    ConvergenceWarning
        If a feasible point of the subproblem was found, but it is not solved to the tolerance.

    References
    ----------
    3S-Econ, section 4.2, "stationarity violation".

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.problem.composite import CompositeFunction
    >>> from fairconstrained.penalties import Proximity
    >>> from fairconstrained.problem.problem import Problem
    >>> from fairconstrained.solvers.smoothing import near_stationarity
    >>> bowl = Problem(
    ...     CompositeFunction(penalty=Proximity(np.array([3.0, 4.0]), 1.0)), n_variables=2
    ... )
    >>> near_stationarity(bowl, np.array([3.0, 4.0]))
    0.0
    >>> round(near_stationarity(bowl, np.zeros(2), rho=0.5), 3)  # half of the way of length 5
    2.5
    """
    check_point("w", w, problem)
    if rho is None:
        if not problem.weakly_convex:
            raise ValueError("rho: the problem is not weakly convex, so that no bound is known.")
        rho = max(-problem.modulus, _LEAST)
    if solver is None:
        solver = default_solver(problem) if problem.smoothable else SwitchingSubgradient()
    w = np.asarray(w, dtype=float)
    bound = None if constraint_rho is None else 2.0 * constraint_rho
    near = problem.uncounted().proximal(w, 2.0 * rho, bound)
    nearest = solver.minimize(near, w, tol=tol, random_state=0)
    if nearest.violation > tol:
        return np.inf
    if not nearest.converged:
        warn(
            f"near_stationarity: the subproblem was not solved to tol={tol:g}. {nearest.message} "
            "The distance is that to the best point found. Pass another solver or a larger tol.",
            ConvergenceWarning,
        )
    return float(np.linalg.norm(nearest.w - w))


class NearStationarity(Parametrized):
    r"""Ends a run at near-stationarity: pass it as `callback` to :meth:`Solver.minimize`.

    The run ends, and returns its last point, once :func:`near_stationarity` is at most `distance`.
    That is measured at every measured iterate, with the clock stopped; its data passes are not
    counted. The tolerance of the solver still ends runs as well.

    Parameters
    ----------
    distance : float, default=1e-3
        The distance that suffices, >= 0. The paper has 1e-3, and 5e-3 for stochastic methods.
    rho, constraint_rho, tol, solver
        See :func:`near_stationarity`.

    References
    ----------
    3S-Econ, section 4.4 and table 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import Proximity
    >>> from fairconstrained.problem.composite import CompositeFunction
    >>> from fairconstrained.problem.problem import Problem
    >>> from fairconstrained.solvers import NearStationarity, ThreeSEcon
    >>> bowl = Problem(
    ...     CompositeFunction(penalty=Proximity(np.array([3.0, 4.0]), 1.0)), n_variables=2
    ... )
    >>> solver = ThreeSEcon.paper(check_every=1, max_iter=10_000)
    >>> result = solver.minimize(bowl, callback=NearStationarity(0.1, rho=0.5))
    >>> result.status.value, float(np.linalg.norm(result.w - [3.0, 4.0]).round(2))
    ('nearly stationary', 0.2)
    """

    distance: valid.NonNegative = 1e-3
    _: KW_ONLY
    rho: valid.Positive | None = None
    constraint_rho: valid.NonNegative | None = None
    tol: valid.NonNegative = 1e-4
    solver: Solver | None = None

    def __call__(self, measured: Measured) -> Status | None:
        """Return the status of a run that ends at an iterate, None where it goes on."""
        at, options = measured.iterate.at, self.get_params(deep=False)
        sufficient = options.pop("distance")
        near = near_stationarity(at.problem, at.w, **options) <= sufficient
        return Status.NEARLY_STATIONARY if near else None
