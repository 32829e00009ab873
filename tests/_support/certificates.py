"""Certificates from outside: gradients of Lagrangians by differences of values."""

from collections.abc import Callable

import numpy as np

from fairconstrained.problem import Evaluation
from fairconstrained.problem.kkt import combined_violation, stationary_weights


def stationarity(
    lagrangian: Callable[[np.ndarray], float], w: np.ndarray, step: float = 1e-5
) -> float:
    """Return the norm of a function's gradient from central differences of its values.

    Parameters
    ----------
    lagrangian : callable
        The function of the variables.
    w : ndarray of shape (n_variables,)
        The point.
    step : float, default=1e-5
        Half the distance of the two values.
    """
    slopes = np.zeros(len(w))
    for k in range(len(w)):
        ahead, behind = w.copy(), w.copy()
        ahead[k] += step
        behind[k] -= step
        slopes[k] = (lagrangian(ahead) - lagrangian(behind)) / (2.0 * step)
    return float(np.linalg.norm(slopes))


def complementarity(multipliers: np.ndarray, constraints: np.ndarray) -> float:
    """Return how far multipliers of inactive constraints are from zero, see the glossary."""
    above, below = np.maximum(constraints, 0.0), np.maximum(-constraints, 0.0)
    return float(multipliers @ below + multipliers @ above / max(1.0, multipliers.sum()))


def residual(
    multipliers: np.ndarray,
    values: Callable[[np.ndarray], tuple[float, np.ndarray]],
    w: np.ndarray,
    step: float = 1e-5,
) -> float:
    """Return the KKT residual from the values of the objective and the constraints alone."""

    def lagrangian(w: np.ndarray) -> float:
        objective, constraints = values(w)
        return float(objective + multipliers @ constraints)

    return max(stationarity(lagrangian, w, step), complementarity(multipliers, values(w)[1]))


def slope_of_violation(at: Evaluation) -> float:
    """Return how far the largest violation is from a stationary value: 0 where it cannot fall."""
    return combined_violation(at, stationary_weights(at))[1]
