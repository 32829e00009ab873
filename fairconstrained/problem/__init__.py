"""The constrained problem: composite functions, transforms, evaluation, optimality conditions.

How a problem is solved belongs in ``solvers``; what a constraint means belongs in ``constraints``.
"""

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT, kkt_residual
from fairconstrained.problem.problem import EvaluationCounter, Problem

__all__ = ["KKT", "CompositeFunction", "Evaluation", "EvaluationCounter", "Problem", "kkt_residual"]
