"""The subproblem of sequential quadratic programming, solved through its dual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairconstrained.problem import Evaluation
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.solvers.curvature import Curvature
from fairconstrained.utils.typing import Array

_MOST = 50  # constraints that are linearised at first: each may cost a backward pass
_FEW = 4  # constraints that are all linearised: their gradients cost less than a search among them
_ENTERING = 32  # constraints of each part that enter the working set at a time; most leave again
_ROUNDS = 40  # in which constraints enter
FIRST_WIDTH = 0.1
_PROJECTIONS = 200  # of a step into a domain; most take ten
_STILL = 1e-9  # relative, of multipliers between projections
_EXACT = 1e-3  # of the tolerance: what linearised constraints may exceed those of the working set

After = tuple[Evaluation, Array]  # that at a step, and the step


@dataclass(frozen=True, eq=False)
class Step:
    """A solution of the subproblem.

    Attributes
    ----------
    s : ndarray of shape (n_variables,)
    multipliers : Multipliers
    image : ndarray of shape (n_variables,)
        (B + shift) s.
    violation : float
        By how much the linearised constraints exceed the level after the step.
    """

    s: Array
    multipliers: Multipliers
    image: Array
    violation: float

    @property
    def bent(self) -> float:
        """s'(B + shift)s."""
        return float(self.s @ self.image)


@dataclass(eq=False)
class Linearised:
    """The working set of constraints at a point, with their gradients.

    It starts with the nearly active ones; of pairs of many groups others enter as linearised values
    exceed theirs, so that of k (k - 1) pairs as many are formed as are active.

    Parameters
    ----------
    at : Evaluation
        The point.
    multipliers : Multipliers
        Constraints with the largest positive multipliers are linearised, whatever their values.
    width : float, default=0.1
        How far below the largest value a constraint may be to be linearised.
    tol : float, default=1e-4
        The tolerance of the run.
    level : float, default=0.0
        The values to which steps bring constraints.
    """

    at: Evaluation
    multipliers: Multipliers
    width: float = FIRST_WIDTH
    tol: float = 1e-4
    level: float = 0.0

    def __post_init__(self) -> None:
        """Linearise the first constraints."""
        at, multipliers = self.at, self.multipliers
        positive = multipliers.which[np.argsort(-multipliers.values, kind="stable")[:_MOST]]
        if at.problem.n_constraints <= _FEW:
            self.near = np.arange(at.problem.n_constraints)
        else:
            self.near = np.union1d(positive, at.largest(at.violation - self.width, _MOST))
        self.values = at.values(self.near)
        self.rows = at.constraint_gradients(self.near)

    def solve(
        self, curvature: Curvature, cap: float, guess: Multipliers, after: After | None = None
    ) -> Step:
        """Return the step to constraint values of at most the level.

        `after` is the evaluation at a step, and this step: constraints are as curved as they are
        there.
        """
        gradient, inverse = self.at.gradient() + curvature.extra, curvature.inverse
        images = inverse(np.column_stack([gradient, self.rows.T]))
        active = guess.of_constraints(self.near)
        for _ in range(_ROUNDS):
            values = self.values - self.level
            if after is not None:  # those that agree with the values after the step
                values = after[0].values(self.near) - self.rows @ after[1] - self.level
            active, s = self._dual(values, images[:, 0], images[:, 1:], cap, active)
            violation = float((values + self.rows @ s).max(initial=0.0))
            new = self._entering(s, violation + self.level, after)
            if not len(new):
                break
            rows = self.at.constraint_gradients(new)
            self.near = np.concatenate([self.near, new])
            self.values = np.concatenate([self.values, self.at.values(new)])
            self.rows = np.vstack([self.rows, rows])
            active = np.concatenate([active, np.zeros(len(new))])
            images = np.column_stack([images, inverse(rows.T)])
        multipliers = Multipliers.at(self.near, active, self.at.problem.n_constraints)
        return Step(s, multipliers, -(gradient + active @ self.rows), violation)

    def predicted(self, step: Step, price: float, added: float) -> float:
        """Return by how much the model of the merit function falls."""
        slope, before = float(self.at.gradient() @ step.s), self.at.violation - self.level
        fall = max(before, 0.0) - step.violation
        return -slope - 0.5 * (step.bent - added) + price * fall

    def _entering(self, s: Array, largest: float, after: After | None) -> Array:
        """Return constraints whose linearisation exceeds the largest of the working set."""
        if len(self.near) == self.at.problem.n_constraints:
            return np.zeros(0, dtype=int)
        least = largest + _EXACT * self.tol
        return np.setdiff1d(self.at.largest_after(s, least, _ENTERING, after), self.near)

    def _dual(
        self, values: Array, free: Array, columns: Array, cap: float, guess: Array
    ) -> tuple[Array, Array]:
        """Return multipliers and step, from the images of the gradients.

        In a domain the step is projected: projections shorten, so that the quadratic of the whole
        space is a minorant of the dual at any multipliers, and its maximisers rise to the dual's.
        """
        w, domain, quadratic = self.at.w, self.at.problem.domain, self.rows @ columns
        if domain.whole_space:
            active = capped_dual(quadratic, values - self.rows @ free, cap, guess)
            return active, -free - columns @ active
        active = guess
        for _ in range(_PROJECTIONS):
            s, before = domain.project(w - free - columns @ active) - w, active
            linear = values + self.rows @ s + quadratic @ before
            active = capped_dual(quadratic, linear, cap, before)
            if np.abs(active - before).max(initial=0.0) <= _STILL * (1.0 + active.sum()):
                break
        return active, s


def capped_dual(quadratic: Array, linear: Array, cap: float, guess: Array) -> Array:
    r"""Return the maximiser of :math:`b^\top x - x^\top Q x / 2` over x >= 0, sum(x) <= cap.

    A primal active set method: from a feasible point to the maximiser on the free variables, as far
    as the constraints allow; whoever reaches zero is fixed there. One variable is freed at a time:
    gradients of pairs of groups are dependent, and several at once make faces without a maximiser.

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
    # Dependent gradients make Q singular. What is added is far below any tolerance.
    Q.flat[:: m + 1] += 1e-11 * max(float(np.trace(Q)), 1e-300)
    x = np.maximum(guess, 0.0)
    x *= min(1.0, cap / max(float(x.sum()), 1e-300))
    free, tight = x > 0.0, False
    small = 1e-10 * float(np.abs(linear).max())  # relative: large shifts make all slopes small
    for _ in range(20 * m + 20):  # rounding errors could make it cycle
        level, index = 0.0, np.flatnonzero(free)
        if len(index):
            now, total = x[index], cap if tight else None
            target, level = _on_face(Q[index[:, None], index], linear[index], total)
            if target.min() < 0.0 or (not tight and target.sum() > cap):
                move = target - now
                falling, rise = move < 0.0, float(move.sum())
                room = np.full(len(index), np.inf)
                room[falling] = -now[falling] / move[falling]
                left = (cap - now.sum()) / rise if not tight and rise > 0.0 else np.inf
                length = min(1.0, float(room.min()), left)
                x[index] = np.maximum(now + length * move, 0.0)
                tight = tight or left <= length
                hit = index[room <= length]
                x[hit], free[hit] = 0.0, False
                continue
            x[index] = target
        if tight and level < -small:  # the sum need not be as large
            tight = False
            continue
        slope = linear - Q @ x - level
        slope[index] = -np.inf
        best = int(slope.argmax())
        if slope[best] <= small:
            break
        free[best] = True
    return x


def _on_face(Q: Array, b: Array, total: float | None) -> tuple[Array, float]:
    """Return the maximiser on the free variables, with a given sum, and the sum's multiplier."""
    if total is None:
        return np.linalg.solve(Q, b), 0.0
    free, ones = np.linalg.solve(Q, np.column_stack([b, np.ones(len(b))])).T
    level = float((free.sum() - total) / ones.sum())
    return free - level * ones, level
