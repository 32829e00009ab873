"""The subproblem of sequential quadratic programming: matrices B, the working set, and the dual."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from fairconstrained.problem import Evaluation
from fairconstrained.problem.composite import Multipliers
from fairconstrained.utils.arrays import Array, capped_dual

# gamma, tried in turn, in units of the mean curvature: the smallest that is enough disturbs the
# conditioning of the matrix least.
_CONVEXIFYING = (10.0, 100.0, 1000.0)
# A pivot at rounding level is a direction without curvature, not one of much descent.
_LEAST_PIVOT = 1e-10
# Powell's damping: a pair keeps at least this share of the curvature that B has along the step.
_DAMPED = 0.2
_MIN_COSINE = 1e-10  # between step and change of the gradient, for a pair to be stored
# The least curvature of a term's own variables, such as thresholds: while their constraints are
# inactive they have none, and should not move.
_AUXILIARY = 1e-2


class Curvature:
    r"""The matrix B of the model :math:`\langle g, s \rangle + \tfrac12 s^\top B s`.

    This one is a multiple of the identity (Barzilai and Borwein). The shift stretches it, by 1 +
    shift. If it is `exact`, B is the Hessian of the Lagrangian, so that it has to be computed
    again. If it `projects`, steps into a domain are projections; others are for points inside of
    it. `extra` is added to g, and `matrix` is B without shift, where it is computed.
    """

    exact, projects = False, True
    extra: Array | float = 0.0
    matrix: Any = None
    shift, _length, _least = 0.0, 1.0, 0.0

    def prepare(self, model: "Linearised", multipliers: Multipliers) -> None:
        """Take the curvature of a point, at which constraints are linearised."""

    def shifted(self, shift: float) -> float:
        """Take B + shift for B; return the shift that made it positive."""
        self.shift = shift
        return shift

    def inverse(self, columns: Array) -> Array:
        """Return (B + shift)^-1 columns."""
        return self._length / (1.0 + self.shift) * columns

    def added(self, s: Array) -> float:
        """Return what s'Bs contains beyond the curvature of the Lagrangian."""
        return 0.0

    def update(self, s: Array, change: Array, image: Array) -> None:
        """Learn from a step, the change of the Lagrangian's gradient along it, and B s."""
        product = float(s @ change)
        # Negative curvature says nothing about lengths; the last length that was safe is kept.
        if product > _MIN_COSINE * float(np.linalg.norm(change) * np.linalg.norm(s)):
            self._length = float(s @ s) / product

    def raised(self, shift: float, s: Array, bent: float) -> float:
        """Return the shift after a step s, with s'Bs = `bent`, that was too long.

        The stretch is four times as large: steps are a quarter as long.
        """
        return 4.0 * shift + 3.0

    def lowered(self, shift: float) -> float:
        """Return the shift after a step that went as predicted: a quarter of the stretch."""
        return max(0.25 * (1.0 + shift) - 1.0, self._least)


class ExactHessian(Curvature):
    r"""The Hessian of the Lagrangian, where it costs little.

    It may be indefinite at a minimum, but not along the active constraints. Let R be their
    gradients, and c their values less the level that steps bring them to. Then
    :math:`\tfrac{\gamma}{2} \|R s + c\|^2` makes the matrix positive. This term is zero after the
    step, so that the solution of the subproblem stays what it is. A shift is the second resort,
    since it shortens steps. The first step uses the `matrix` of a problem nearby, if it is given.
    """

    exact, projects = True, False

    def __init__(self, matrix: Array | None = None):
        self._nearby = matrix

    def prepare(self, model: "Linearised", multipliers: Multipliers) -> None:
        """Compute the Hessian, unless that of a problem nearby is there for the first step."""
        active = multipliers.of_constraints(model.near) > 0.0
        # c, see the class: with another level the term would change the multipliers
        self._rows = model.rows[active]
        self._values = model.at.values(model.near[active]) - model.level
        self.extra, self._gamma, self._weight = 0.0, 0.0, 0.0
        nearby, self._nearby, self._factor = self._nearby, None, None  # of Cholesky
        self.matrix = model.at.hessian(multipliers) if nearby is None else nearby
        owned = np.arange(len(self.matrix)) >= model.at.problem.models[0].n_parameters
        self._floor = np.where(owned, _AUXILIARY, 0.0)

    def shifted(self, shift: float) -> float:
        """Factorise B + shift I; where it is not positive, convexify it, then raise the shift."""
        if self._factor is None or shift:
            size = max(abs(float(np.trace(self.matrix))) / len(self.matrix), 1e-300)
            while True:
                shifted = self.matrix.copy()
                shifted.flat[:: len(shifted) + 1] += shift + self._floor
                factor, info = dpotrf(shifted, lower=1, overwrite_a=1)
                if not info and np.diagonal(factor).min() ** 2 > _LEAST_PIVOT * size:
                    break
                if len(self._rows) and self._gamma < _CONVEXIFYING[-1]:
                    self._gamma = next(value for value in _CONVEXIFYING if value > self._gamma)
                    squares = max(float(np.square(self._rows).sum()), 1e-300)
                    self._weigh(self._gamma * size * len(self._rows) / squares)
                else:  # the smallest shift that does is not worth more factorisations
                    shift = max(4.0 * shift, 1e-3 * size, 1e-8)
            self._factor = factor
        return shift

    def inverse(self, columns: Array) -> Array:
        """Solve with the factor."""
        return np.asarray(dpotrs(self._factor, columns, lower=1)[0])

    def _weigh(self, weight: float) -> None:
        """Take a multiple of the term of the active constraints."""
        self.matrix = self.matrix + (weight - self._weight) * (self._rows.T @ self._rows)
        self._weight, self.extra = weight, weight * (self._values @ self._rows)

    def raised(self, shift: float, s: Array, bent: float) -> float:
        """Return a larger shift; it replaces the term of constraints that need not stay active."""
        if self._weight:
            self._weigh(0.0)
            self._gamma = _CONVEXIFYING[-1]
        # At least a tenth of the model's curvature along s: less would hardly shorten the step.
        return max(4.0 * shift, 0.1 * bent / max(float(s @ s), 1e-300), 1e-6)

    def lowered(self, shift: float) -> float:
        """Return a smaller shift; if it never vanished, steps would not become Newton's."""
        return 0.0 if shift < 1e-4 else 0.25 * shift

    def added(self, s: Array) -> float:
        """Return the curvature of the term of the active constraints along s."""
        return self._weight * float(np.square(self._rows @ s).sum()) if self._weight else 0.0


class QuasiNewton(Curvature):
    r"""Damped L-BFGS, for any model: it learns from gradients of the Lagrangian alone.

    The two loops of the textbook are written as products and triangular systems, which is several
    times faster, and takes many columns at once: with S and Y the stored steps and changes (one per
    row, the oldest first), R the upper triangle of :math:`S Y^\top` and D its diagonal,

    .. math::
        R \alpha = S g, \qquad r = H_0 (g - Y^\top \alpha), \qquad
        R^\top \delta = D \alpha - Y r, \qquad H g = r + S^\top \delta,

    where :math:`H_0 = \frac{s^\top y}{y^\top P y} P` with the latest pair and a diagonal P.

    Parameters
    ----------
    diagonal : ndarray of shape (n_variables,)
        P, positive: the squares of the typical sizes of the variables. Without pairs H is P itself.
    n_pairs : int, default=30
        The largest number of pairs stored; with 0, B stays the identity.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, algorithm 7.4.
    """

    projects = False

    def __init__(self, diagonal: Array, n_pairs: int = 30):
        self.n_pairs, self.n_stored, self._oldest = n_pairs, 0, 0
        self._diagonal = diagonal if n_pairs else np.ones(len(diagonal))
        self._least = 0.0 if n_pairs else 1e-12 - 1.0  # only a linear model may be compressed
        self._steps, self._changes = np.empty((2, n_pairs, len(diagonal)))
        self._products = np.empty((n_pairs, n_pairs))  # s_i' y_j

    def inverse(self, columns: Array) -> Array:
        """Return H columns / (1 + shift): B is stretched, in the problem's units."""
        if not self.n_stored:
            return (self._diagonal * columns.T).T / (1.0 + self.shift)
        steps, changes = self._steps[: self.n_stored], self._changes[: self.n_stored]
        # New pairs take the places of the oldest: the triangle is that of the pairs by age.
        age = (self._oldest + np.arange(self.n_stored)) % self.n_stored
        triangle, latest = self._products[np.ix_(age, age)], changes[age[-1]]
        alpha, delta = np.empty((2, self.n_stored, *columns.shape[1:]))
        alpha[age] = dtrtrs(triangle, (steps @ columns)[age])[0]
        image = (self._diagonal * (columns - changes.T @ alpha).T).T
        image *= triangle[-1, -1] / (latest @ (self._diagonal * latest))
        lacking = (triangle.diagonal() * alpha[age].T).T - (changes @ image)[age]
        delta[age] = dtrtrs(triangle, lacking, trans=1)[0]
        return (image + steps.T @ delta) / (1.0 + self.shift)

    def update(self, s: Array, change: Array, image: Array) -> None:
        """Add a pair, damped so that its curvature stays positive (Powell 1978)."""
        quadratic, product = float(s @ image), float(s @ change)
        if not self.n_pairs or quadratic <= 1e-300:
            return
        if product < _DAMPED * quadratic:
            share = (1.0 - _DAMPED) * quadratic / (quadratic - product)
            change = share * change + (1.0 - share) * image
        if s @ change > _MIN_COSINE * np.linalg.norm(s) * np.linalg.norm(change):
            k, n = self._oldest, min(self.n_stored + 1, self.n_pairs)
            self._steps[k], self._changes[k] = s, change
            self._products[k, :n] = self._changes[:n] @ s
            self._products[:n, k] = self._steps[:n] @ change
            self._oldest, self.n_stored = (k + 1) % self.n_pairs, n


_MOST = 50  # constraints with multipliers that are linearised: each may cost a backward pass
_NEAR = 16  # others that are linearised at first; of 800 rates at thresholds ten stay active
_FEW = 4  # constraints that are all linearised: their gradients cost less than a search among them
_ENTERING = 16  # constraints of each part that enter the working set at a time; most leave again
_ROUNDS = 40  # in which constraints enter
_PROJECTIONS = 200  # of a step into a domain; most take ten
_STILL = 1e-9  # relative, of multipliers between projections
_EXACT = 1e-3  # of the tolerance: what linearised constraints may exceed those of the working set

After = tuple[Evaluation, Array]  # that at a step, and the step


@dataclass(frozen=True, eq=False)
class Step:
    """A solution of the subproblem."""

    s: Array
    multipliers: Multipliers
    image: Array  # (B + shift) s
    bent: float  # s'(B + shift) s
    violation: float  # by which the linearised constraints exceed the level after the step


@dataclass(eq=False)
class Linearised:
    """The working set of constraints at a point, with their gradients.

    It starts with the nearly active ones; of pairs of many groups others enter as linearised values
    exceed theirs, so that of k (k - 1) pairs as many are formed as are active.

    Constraints with the largest positive multipliers are linearised, whatever their values.
    """

    at: Evaluation
    multipliers: Multipliers
    # how far below the largest value others may be; later twice the change by a step
    width: float = 0.1
    tol: float = 1e-4  # of the run
    level: float = 0.0  # the values to which steps bring constraints

    def __post_init__(self) -> None:
        """Linearise the first constraints."""
        at, multipliers = self.at, self.multipliers
        if at.problem.n_constraints <= _FEW:
            self.near = np.arange(at.problem.n_constraints)
        else:
            positive = multipliers.which[np.argsort(-multipliers.values, kind="stable")[:_MOST]]
            self.near = np.union1d(positive, at.largest(at.violation - self.width, _NEAR))
        self.rows, self.gradient = at.constraint_gradients(self.near), at.gradient()

    def solve(
        self, curvature: Curvature, cap: float, guess: Multipliers, after: After | None = None
    ) -> Step:
        """Return the step to constraint values of at most the level.

        `after` is the evaluation at a step, and this step: constraints are as curved as they are
        there. By default it is the point itself.
        """
        gradient, inverse = self.gradient + curvature.extra, curvature.inverse
        images = inverse(np.column_stack([gradient, self.rows.T]))
        active = guess.of_constraints(self.near)
        there, moved = after = after or (self.at, np.zeros_like(self.at.w))
        for _ in range(_ROUNDS):
            values = there.values(self.near) - self.rows @ moved - self.level
            free, columns = images[:, 0], images[:, 1:]
            if curvature.projects:
                active, s = self._projected(values, free, columns, cap, active)
            else:
                active = capped_dual(self.rows @ columns, values - self.rows @ free, cap, active)
                s = -free - columns @ active
            violation = float((values + self.rows @ s).max(initial=0.0))
            if len(self.near) == self.at.problem.n_constraints:
                break
            least = violation + self.level + _EXACT * self.tol
            new = np.setdiff1d(self.at.largest_after(s, least, _ENTERING, after), self.near)
            if not len(new):
                break
            rows = self.at.constraint_gradients(new)
            self.near = np.concatenate([self.near, new])
            self.rows = np.vstack([self.rows, rows])
            active = np.concatenate([active, np.zeros(len(new))])
            images = np.column_stack([images, inverse(rows.T)])
        multipliers = Multipliers.at(self.near, active, self.at.problem.n_constraints)
        image = -(gradient + active @ self.rows)
        return Step(s, multipliers, image, float(s @ image), violation)

    def _projected(
        self, values: Array, free: Array, columns: Array, cap: float, guess: Array
    ) -> tuple[Array, Array]:
        """Return multipliers and the step into the domain.

        Projections shorten, so that the quadratic of the whole space is a minorant of the dual at
        any multipliers, and its maximisers rise to the dual's. They are extrapolated (Nesterov),
        until a step turns back (O'Donoghue and Candes 2015).
        """
        w, domain, quadratic = self.at.w, self.at.problem.domain, self.rows @ columns
        active = ahead = guess
        momentum = 1.0
        for _ in range(_PROJECTIONS):
            s = domain.project(w - free - columns @ ahead) - w
            linear = values + self.rows @ s + quadratic @ ahead
            before, active = active, capped_dual(quadratic, linear, cap, active)
            if np.abs(active - ahead).max(initial=0.0) <= _STILL * (1.0 + active.sum()):
                break
            change = active - before
            turned = (ahead - active) @ quadratic @ change > 0.0
            last, momentum = momentum, 1.0 if turned else 0.5 + np.sqrt(0.25 + momentum**2)
            ahead = active if turned else active + (last - 1.0) / momentum * change
        return active, s
