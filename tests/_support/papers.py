"""What the tests of `paper()` share: the points of a run, and their comparison with others."""

import numpy as np
from scipy.optimize import minimize

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Solver
from fairconstrained.solvers.base import Start

STEPS = 50
EXACT = {"rel": 0.0, "abs": 1e-10}


def points(solver: Solver, problem: Problem, w0=None, seed: int = 0) -> list[np.ndarray]:
    """Return the points that a solver offers."""
    start = Start(w=problem.start() if w0 is None else w0, random_state=np.random.RandomState(seed))
    return [one.at.w for one in solver.iterate(problem, start)]


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Return whether two runs have the same points to 1e-10, and have moved."""
    assert len(found) == len(expected) == STEPS
    assert np.linalg.norm(expected[-1] - expected[0]) > 1e-6
    return max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True)) <= 1e-10


def worst(problem: Problem, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest constraint and its gradient."""
    at = problem.at(w)
    unit = np.eye(problem.n_constraints)[at.constraints.argmax()]
    return float(at.constraints.max()), at.gradient(unit, objective=0.0)


def unconstrained(problem: Problem) -> np.ndarray:
    """Return SciPy's minimiser of a smooth objective, where the constraints are violated."""

    def value(w):
        return problem.at(w).objective

    def gradient(w):
        return problem.at(w).gradient()

    w = minimize(value, problem.start(), jac=gradient, method="BFGS").x
    assert problem.at(w).violation > 0.1
    return w


def jacobian(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return the gradients of the constraints, one in each row."""
    units = np.eye(problem.n_constraints)
    return np.array([problem.at(w).gradient(unit, objective=0.0) for unit in units])
