"""Solvers of constrained problems, one file per method.

A solver belongs here; what several of them share belongs in ``_tools``, unless other
packages use it.
"""

from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.base import Solver
from fairconstrained.solvers.conex import ConEx
from fairconstrained.solvers.exact_penalty import ExactPenalty
from fairconstrained.solvers.idca import IDCA
from fairconstrained.solvers.ipc import IPC
from fairconstrained.solvers.lagrangian import LagrangianDescentAscent
from fairconstrained.solvers.online_stochastic import OnlineStochastic
from fairconstrained.solvers.plada import PLADA
from fairconstrained.solvers.registry import SOLVERS, available_solvers, default_solver
from fairconstrained.solvers.regularization import Regularization
from fairconstrained.solvers.result import Result, Status, Trace
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.solvers.sqp import SQP
from fairconstrained.solvers.stationarity import near_stationarity
from fairconstrained.solvers.step_rules import (
    DiminishingTolerance,
    PolyakSteps,
    StaticTolerance,
    StepRule,
    StronglyConvexSteps,
)
from fairconstrained.solvers.switching_subgradient import (
    StochasticSwitchingSubgradient,
    SwitchingSubgradient,
)
from fairconstrained.solvers.three_s_econ import ThreeSEcon

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
