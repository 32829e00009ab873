"""Solvers of constrained problems: the engine, and the methods of the papers by idea.

How a problem is solved belongs here; what the problem is belongs in ``problem``. A solver knows
no estimator, constraint or group.
"""

from fairconstrained.solvers.base import SOLVERS, Solver, available_solvers, default_solver
from fairconstrained.solvers.primal_dual import PLADA, LagrangianDescentAscent
from fairconstrained.solvers.result import Result, Status, Trace
from fairconstrained.solvers.smoothing import NearStationarity, Smoothing, near_stationarity
from fairconstrained.solvers.sqp import SQP, AugmentedLagrangian, ExactPenalty
from fairconstrained.solvers.subgradient import ConEx, OnlineStochastic, ThreeSEcon
from fairconstrained.solvers.successive import IDCA, IPC
from fairconstrained.solvers.switching_subgradient import (
    DiminishingTolerance,
    PolyakSteps,
    Regularization,
    StaticTolerance,
    StepRule,
    StochasticSwitchingSubgradient,
    StronglyConvexSteps,
    SwitchingSubgradient,
)

__all__ = [
    "IDCA",
    "IPC",
    "PLADA",
    "SOLVERS",
    "SQP",
    "AugmentedLagrangian",
    "ConEx",
    "DiminishingTolerance",
    "ExactPenalty",
    "LagrangianDescentAscent",
    "NearStationarity",
    "OnlineStochastic",
    "PolyakSteps",
    "Regularization",
    "Result",
    "Smoothing",
    "Solver",
    "StaticTolerance",
    "Status",
    "StepRule",
    "StochasticSwitchingSubgradient",
    "StronglyConvexSteps",
    "SwitchingSubgradient",
    "ThreeSEcon",
    "Trace",
    "available_solvers",
    "default_solver",
    "near_stationarity",
]
