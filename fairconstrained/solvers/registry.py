"""The names of solvers, in order of preference, and how each solver is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Solver
from fairconstrained.solvers.conex import ConEx
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.idca import IDCA
from fairconstrained.solvers.ipc import IPC
from fairconstrained.solvers.lagrangian import LagrangianDescentAscent
from fairconstrained.solvers.online_stochastic import OnlineStochastic
from fairconstrained.solvers.plada import PLADA
from fairconstrained.solvers.regularization import Regularization
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.sqp import SQP
from fairconstrained.solvers.switching_subgradient import (
    StochasticSwitchingSubgradient,
    SwitchingSubgradient,
)
from fairconstrained.solvers.table import SOLVERS
from fairconstrained.solvers.three_s_econ import ThreeSEcon

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem


def ipp_ssg(**options: Any) -> IPC:
    """Return IPC with the switching subgradient oracle, known as IPP-SSG."""
    return IPC(SwitchingSubgradient(max_iter=100), **{"max_iter": 8, **options})


def ipp_conex(**options: Any) -> IPC:
    """Return IPC with the constraint extrapolation oracle, known as IPP-ConEx."""
    return IPC(ConEx(max_iter=80), **{"max_iter": 6, **options})


def idca_stochastic(**options: Any) -> IDCA:
    """Return IDCA whose subproblems are solved on mini-batches."""
    oracle = OnlineStochastic(batch_size=1000, max_iter=200)
    return IDCA(oracle, **{"max_iter": 5, **options})


_NAMED: dict[str, Callable[..., Solver]] = {
    "sqp": SQP,
    "exact-penalty": ExactPenalty,
    "augmented-lagrangian": AugmentedLagrangian,
    "smoothing": Smoothing,
    "ipc": IPC,
    "ipp-ssg": ipp_ssg,
    "ssg": SwitchingSubgradient,
    "ssg-stochastic": StochasticSwitchingSubgradient,
    "3s-econ": ThreeSEcon,
    "3s-econ-stochastic": ThreeSEcon.stochastic,
    "plada": PLADA,
    "plada-stochastic": PLADA.stochastic,
    "idca": IDCA,
    "idca-stochastic": idca_stochastic,
    "ipp-conex": ipp_conex,
    "conex": ConEx,
    "yu-neely-wei": OnlineStochastic,
    "lagrangian": LagrangianDescentAscent,
    "multiplier-model": LagrangianDescentAscent.multiplier_model,
    "regularization": Regularization,
}
SOLVERS.update(_NAMED)


def without_kinks(problem: Problem, solver: Solver) -> Solver:
    """Return the solver if it can solve the problem, else the one that rounds the kinks for it.

    Methods that need continuous gradients are given a sequence of smooth problems in place of one
    with kinks, see :class:`Smoothing`. Where rounding does not help either, the solver is returned
    as it is: its own message says what is missing.

    Parameters
    ----------
    problem : Problem
        What is to be minimised.
    solver : Solver
        The method.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.penalties import L1
    >>> from fairconstrained.problem import CompositeFunction, Problem
    >>> from fairconstrained.solvers import SQP
    >>> from fairconstrained.solvers.registry import without_kinks
    >>> kinked = Problem(CompositeFunction(None, None, L1(1.0)), n_variables=2)
    >>> without_kinks(kinked, SQP())
    Smoothing(solver=SQP())
    """
    if not solver.missing(problem):
        return solver
    rounded = Smoothing(solver, tol=solver.tol)
    if rounded.missing(problem) or solver.missing(problem.smoothed(rounded.width)):
        return solver
    return rounded
