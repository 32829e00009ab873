"""Near-stationarity: how far a point is from the solution of its proximal subproblem."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np

from fairconstrained.exceptions import ConvergenceWarning, warn
from fairconstrained.problem import Problem
from fairconstrained.solvers.base import Solver, check_point
from fairconstrained.solvers.registry import default_solver
from fairconstrained.solvers.result import Measured, Status
from fairconstrained.solvers.switching_subgradient import SwitchingSubgradient
from fairconstrained.utils.parameter_constraints import NonNegative, Positive, checked
from fairconstrained.utils.registry import FieldParameters
from fairconstrained.utils.typing import Array

_LEAST = 1e-2  # of rho, where the functions are convex and any will do


@checked
def near_stationarity(
    problem: Problem,
    w: Array,
    rho: Positive | None = None,
    *,
    constraint_rho: NonNegative | None = None,
    tol: NonNegative = 1e-4,
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
    >>> from fairconstrained.solvers.stationarity import near_stationarity
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


class NearStationarity(FieldParameters):
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

    distance: NonNegative = 1e-3
    _: KW_ONLY
    rho: Positive | None = None
    constraint_rho: NonNegative | None = None
    tol: NonNegative = 1e-4
    solver: Solver | None = None

    def __call__(self, measured: Measured) -> Status | None:
        """Return the status of a run that ends at an iterate, None where it goes on."""
        at, options = measured.iterate.at, self.get_params(deep=False)
        sufficient = options.pop("distance")
        near = near_stationarity(at.problem, at.w, **options) <= sufficient
        return Status.NEARLY_STATIONARY if near else None
