"""The subproblem of sequential quadratic programming, solved through its dual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.solvers.curvature import Curvature, Inverse
from fairconstrained.utils.typing import Array

_MOST = 50  # constraints that are linearised: each costs a backward pass


@dataclass(frozen=True, eq=False)
class Step:
    """A solution of the subproblem.

    Attributes
    ----------
    s : ndarray of shape (n_variables,)
    multipliers : ndarray of shape (n_constraints,)
    image : ndarray of shape (n_variables,)
        (B + shift) s.
    violation : float
        By how much the linearised constraints exceed the level after the step.
    """

    s: Array
    multipliers: Array
    image: Array
    violation: float

    @property
    def bent(self) -> float:
        """s'(B + shift)s."""
        return float(self.s @ self.image)

    def predicted(self, at: Evaluation, price: float, added: float, level: float) -> float:
        """Return by how much the model of the merit function falls."""
        slope, violation = float(at.gradient() @ self.s), max(at.violation - level, 0.0)
        return -slope - 0.5 * (self.bent - added) + price * (violation - self.violation)


class Linearised:
    """The nearly active constraints at a point, with their gradients.

    Parameters
    ----------
    at : Evaluation
        The point.
    multipliers : ndarray of shape (n_constraints,)
        Constraints with the largest positive multipliers are linearised, whatever their values.
    width : float
        How far below the largest value a constraint may be to be linearised.
    """

    def __init__(self, at: Evaluation, multipliers: Array, width: float):
        self.at = at
        level = at.violation - width
        self.near = np.union1d(largest(multipliers, 1e-300), largest(at.constraints, level))
        self.values = at.constraints[self.near]
        self.rows = at.constraint_gradients(self.near)

    def active(self, multipliers: Array) -> tuple[Array, Array]:
        """Return the gradients and the positions of constraints with positive multipliers."""
        positive = multipliers[self.near] > 0.0
        return self.rows[positive], self.near[positive]

    def linear(self, s: Array) -> Array:
        """Return the change of all constraints that the linearisation predicts, 0 for far ones."""
        change = np.zeros(self.at.problem.n_constraints)
        change[self.near] = self.rows @ s
        return change

    def solve(
        self,
        curvature: Curvature,
        inverse: Inverse,
        cap: float,
        guess: Array,
        bend: Array | None = None,
        level: float = 0.0,
    ) -> Step:
        """Return the step to constraint values of at most `level`.

        `bend` are values to take in place of those at the point.
        """
        values = (self.values if bend is None else bend[self.near]) - level
        gradient = self.at.gradient() + curvature.extra
        if self.at.problem.domain.whole_space:
            images = inverse(np.column_stack([gradient, self.rows.T]))
            free, images = images[:, 0], images[:, 1:]
            products = self.rows @ images
            found = capped_dual(products, values - self.rows @ free, cap, guess[self.near])
            s = -free - images @ found
        else:
            found, s = self._projected(gradient, inverse, cap, guess[self.near], values)
        multipliers = np.zeros(self.at.problem.n_constraints)
        multipliers[self.near] = found
        after = float((values + self.rows @ s).max(initial=0.0))
        return Step(s, multipliers, -(gradient + found @ self.rows), after)

    def _projected(
        self, gradient: Array, inverse: Inverse, cap: float, guess: Array, values: Array
    ) -> tuple[Array, Array]:
        """Return multipliers and step within the domain, for B a multiple of the identity."""
        w, domain = self.at.w, self.at.problem.domain
        length = float(inverse(np.ones(1))[0])

        def negative(multipliers: Array) -> tuple[float, Array]:
            slope = gradient + multipliers @ self.rows
            s = domain.project(w - length * slope) - w
            value = slope @ s + 0.5 * (s @ s) / length + multipliers @ values
            return -float(value), -(values + self.rows @ s)

        found = np.zeros(0)
        if guess.size:
            room = {
                "type": "ineq",
                "fun": lambda x: cap - x.sum(),
                "jac": lambda x: -np.ones_like(x),
            }
            answer = minimize(  # type: ignore[call-overload]  # the stubs do not know jac=True here
                negative,
                np.minimum(guess, cap / guess.size),
                jac=True,
                method="SLSQP",
                bounds=[(0.0, cap)] * guess.size,
                constraints=room,
                options={"ftol": 1e-14, "maxiter": 100},
            )
            found = np.clip(answer.x, 0.0, cap)
        return found, domain.project(w - length * (gradient + found @ self.rows)) - w


def largest(values: Array, least: float) -> Array:
    """Return the positions of the largest values that are at least `least`: at most `_MOST`."""
    order = np.argsort(-values, kind="stable")[:_MOST]
    return order[values[order] >= least]


def capped_dual(quadratic: Array, linear: Array, cap: float, guess: Array) -> Array:
    r"""Return the maximiser of :math:`b^\top x - x^\top Q x / 2` over x >= 0, sum(x) <= cap.

    A primal active set method: from a feasible point to the maximiser on the free variables, as far
    as the constraints allow; whoever reaches zero is fixed there.

    Parameters
    ----------
    quadratic : ndarray of shape (m, m)
        Q, positive semi-definite: gradients of constraints may be dependent.
    linear : ndarray of shape (m,)
        b.
    cap : float
        The largest sum.
    guess : ndarray of shape (m,)
        Where the search starts.
    """
    m = len(linear)
    if m == 0:
        return np.zeros(0)
    if m == 1:
        return np.clip(linear / max(float(quadratic[0, 0]), 1e-300), 0.0, cap)
    Q = 0.5 * (quadratic + quadratic.T)
    Q.flat[:: m + 1] += 1e-11 * max(float(np.trace(Q)), 1e-300)
    x = np.maximum(guess, 0.0)
    x *= min(1.0, cap / max(float(x.sum()), 1e-300))
    free, tight = x > 0.0, False
    small = 1e-10 * float(np.abs(linear).max())  # relative: large shifts make all slopes small
    for _ in range(20 * m + 20):
        level = 0.0
        if free.any():
            index = np.flatnonzero(free)
            target, level = _on_face(
                Q[index[:, None], index], linear[index], cap if tight else None
            )
            move = target - x[index]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(move < 0.0, -x[index] / move, np.inf)
                left = (cap - x.sum()) / move.sum() if not tight and move.sum() > 0.0 else np.inf
            length = min(1.0, float(room.min()), left)
            x[index] = np.maximum(x[index] + length * move, 0.0)
            if length < 1.0:
                tight = tight or left <= length
                hit = index[room <= length]
                x[hit], free[hit] = 0.0, False
                continue
        if tight and level < -small:  # the sum need not be as large
            tight = False
            continue
        slope = np.where(free, -np.inf, linear - Q @ x - level)
        best = int(np.argmax(slope))
        if slope[best] <= small:
            break
        free[best] = True
    return x


def _on_face(Q: Array, b: Array, total: float | None) -> tuple[Array, float]:
    """Return the maximiser on the free variables, with a given sum, and the sum's multiplier."""
    if total is None:
        return np.linalg.solve(Q, b), 0.0
    both = np.linalg.solve(Q, np.column_stack([b, np.ones(len(b))]))
    level = float((both[:, 0].sum() - total) / both[:, 1].sum())
    return both[:, 0] - level * both[:, 1], level
