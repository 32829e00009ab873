"""The step of the exact penalty method: linearised constraints within a trust region."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.capped_simplex import CappedSimplex
from fairconstrained.solvers._tools.lbfgs import InverseHessian
from fairconstrained.solvers._tools.projected import spectral_projected_gradient
from fairconstrained.utils.compat import nnls
from fairconstrained.utils.typing import Array

_MIN_COSINE = 1e-10  # between step and change of the gradient, for a usable step length
_TINY = 1e-300  # avoids divisions by zero
_MOST = 50  # constraints that are linearised: each costs a backward pass


class Curvature:
    r"""The inverse H of B: damped L-BFGS on the whole space, else a multiple of the identity.

    Parameters
    ----------
    problem : Problem
        Gives the preconditioner and the domain.
    n_pairs : int
        The number of pairs stored; with 0, H stays the identity and the model is linear.
    """

    def __init__(self, problem: Problem, n_pairs: int):
        self.linear = n_pairs == 0
        self.free = problem.domain.whole_space
        scale = problem.preconditioner if self.free and not self.linear else 1.0
        self.diagonal = scale**2 * np.ones(problem.n_variables)
        self.step_length = 1.0  # H is this times the identity on bounded domains
        self._hessian = InverseHessian(size=max(n_pairs, 1))

    def apply(self, columns: Array) -> Array:
        """Return H times columns, shape (n_variables, n_columns), on the whole space."""
        return self._hessian.apply(columns, self.diagonal)

    def update(self, step: Step, change: Array) -> None:
        """Add a step and the change of the gradient of the Lagrangian along it."""
        s, quadratic = step.s, step.size**2
        product = float(s @ change)
        if self.linear or quadratic <= _TINY:
            return
        if not self.free:
            if product > _MIN_COSINE * np.linalg.norm(change) * np.linalg.norm(s):
                self.step_length = product / float(change @ change)
            return
        if product < 0.2 * quadratic:  # B s is a multiple of the slope at the model's solution
            share = 0.8 * quadratic / (quadratic - product)
            change = share * change - (1.0 - share) * (step.slope / step.stretch)
        self._hessian.add(s, change)


class Step:
    """A solution of the model.

    Attributes
    ----------
    s : ndarray of shape (n_variables,)
        The step.
    size : float
        Its norm in B.
    stretch : float
        The factor of B that keeps the step in the trust region.
    slope : ndarray of shape (n_variables,)
        The gradient of the Lagrangian where the step begins.
    multipliers : ndarray of shape (n_constraints,)
        The multipliers of the linearised constraints.
    violation : float
        That of the linearised constraints after the step.
    promise : float
        By how much the model of Phi falls.
    """

    def __init__(self, model: Model, multipliers: Array, rho: float, stretch: float):
        self.stretch = stretch
        self.s, self.size = model.move(multipliers, stretch)
        self.slope = model.gradient + multipliers @ model.rows
        self.multipliers = np.zeros(model.at.problem.n_constraints)
        self.multipliers[model.near] = multipliers
        after = model.values + model.rows @ self.s
        self.violation = max(float(after.max(initial=0.0)), 0.0)
        bend = 0.0 if model.curvature.linear else 0.5 * self.size**2
        fall = model.violation - self.violation
        self.promise = rho * fall - float(model.gradient @ self.s) - bend

    def pushes(self, rho: float) -> bool:
        """Return whether the penalty holds the step back from feasibility."""
        return self.violation > 0.0 and self.multipliers.sum() >= 0.99 * rho


def _largest(values: Array, least: float) -> Array:
    """Return the positions of the largest values that are at least `least`: at most `_MOST`."""
    order = np.argsort(-values)[:_MOST]
    return order[values[order] >= least]


class Model:
    """The linearisation at a point, with the rows of the constraints that are nearly active.

    Parameters
    ----------
    at : Evaluation
        The point.
    curvature : Curvature
        The term in B.
    width : float
        How far below the largest value a constraint may be to be looked at.
    multipliers : ndarray or None
        Where the search for the multipliers starts. The constraints with the largest positive
        multipliers are linearised, whatever their values.
    stretch : float, default=1.0
        Where the search for the factor of B starts, if the model is linear.
    """

    def __init__(
        self,
        at: Evaluation,
        curvature: Curvature,
        width: float,
        multipliers: Array | None,
        stretch: float = 1.0,
    ):
        n = at.problem.n_constraints
        self.at, self.curvature = at, curvature
        self.violation = at.violation
        self.guess = np.zeros(n) if multipliers is None else multipliers.copy()
        self.stretch = stretch if curvature.linear else 1.0
        self.near = self._nearly_active(at.constraints, at.violation - width)
        self.values = at.constraints[self.near]
        self.gradient = at.gradient()
        self.rows = at.constraint_gradients(self.near)
        self.product: Array | None = None
        self.move = self._free() if curvature.free else self._projected

    def _nearly_active(self, values: Array, level: float) -> Array:
        """Return the constraints that are linearised, by their multipliers and their values."""
        return np.union1d(_largest(self.guess, _TINY), _largest(values, level))

    def _free(self) -> Callable[[Array, float], tuple[Array, float]]:
        """Return (multipliers, stretch) -> the step -H slope / stretch and its norm in B."""
        columns = np.column_stack([self.gradient, *self.rows])
        image = self.curvature.apply(columns)
        product = self.product = columns.T @ image

        def move(multipliers: Array, stretch: float) -> tuple[Array, float]:
            weights = np.append(1.0, multipliers)
            squared = max(float(weights @ product @ weights), 0.0)
            return -(image @ weights) / stretch, float(np.sqrt(squared)) / stretch

        return move

    def _projected(self, multipliers: Array, stretch: float) -> tuple[Array, float]:
        length = self.curvature.step_length
        slope = self.gradient + multipliers @ self.rows
        s = self.at.problem.domain.project(self.at.w - (length / stretch) * slope) - self.at.w
        return s, float(np.linalg.norm(s)) / np.sqrt(length)

    def solve(self, rho: float, radius: float) -> Step:
        """Return the step within the trust region, to a fifth of its radius."""
        least, stretch = (1e-12 if self.curvature.linear else 1.0), self.stretch
        for _ in range(20):
            step = Step(self, self._dual(rho, stretch), rho, stretch)
            short = step.size < 0.8 * radius and stretch > least
            if step.size <= _TINY or not (short or step.size > 1.2 * radius):
                break
            stretch = max(stretch * step.size / radius, least)
        return step

    def _dual(self, rho: float, stretch: float) -> Array:
        """Return the multipliers: maximise over lambda >= 0 that add up to at most rho."""
        if not self.near.size:
            return np.zeros(0)
        if self.product is not None:
            with suppress(RuntimeError):  # too many changes of the active set
                return self._quadratic_dual(rho, stretch)

        def negative(multipliers: Array) -> tuple[float, Array]:
            s, size = self.move(multipliers, stretch)
            slope = self.gradient + multipliers @ self.rows
            value = slope @ s + 0.5 * stretch * size**2 + multipliers @ self.values
            return -float(value), -(self.values + self.rows @ s)

        simplex = CappedSimplex(rho)
        first = simplex.project(self.guess[self.near])
        found = spectral_projected_gradient(negative, first, simplex, tol=1e-6, max_iter=50)
        self.guess[self.near] = found
        return found

    def _quadratic_dual(self, rho: float, stretch: float) -> Array:
        """Return the multipliers where steps are free: least squares with a slack variable.

        The dual is then a quadratic function; a row of large weight holds the sum of multipliers
        and slack variable at rho.
        """
        assert self.product is not None
        quadratic = self.product[1:, 1:] / stretch
        linear = self.values - self.product[1:, 0] / stretch
        scale = max(float(np.trace(quadratic)), _TINY)
        powers, vectors = np.linalg.eigh(quadratic)
        roots = np.sqrt(np.maximum(powers, 1e-9 * scale))
        m, heavy = self.near.size, 1e2 * np.sqrt(scale)
        rows = np.zeros((m + 1, m + 1))
        rows[:m, :m] = roots[:, None] * vectors.T
        rows[m] = heavy
        target = np.append(vectors.T @ linear / roots, heavy * rho)
        found = nnls(rows, target, maxiter=5 * m)[0][:m]
        return CappedSimplex(rho).project(found)
