"""The augmented Lagrangian in score space: what the next tree of a boosted model is fitted to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array


@dataclass(frozen=True)
class MultiplierRule:
    r"""Step sizes of the multipliers, scaled to what one tree can change.

    A tree with learning rate :math:`\eta` moves the scores by about :math:`\eta H^{-1}` times the
    gradient, H the Hessian of the loss. With :math:`S_j` the squared length of constraint j's
    gradient in the metric :math:`H^{-1}`, and :math:`\rho` the largest eigenvalue of the Gram
    matrix of the active constraints' scaled gradients,

    .. math::
        \sigma_j = \frac{a}{\eta S_j \rho}, \qquad
        \lambda_j \leftarrow \max\Big\{\lambda_j + \frac{b}{\eta S_j \rho}\, g_j, 0\Big\}.

    The steps are then independent of group sizes and of the number of constraints.

    Attributes
    ----------
    penalty : float
        a, the factor of the penalty parameters :math:`\sigma_j`.
    step : float
        b, the factor of the multipliers' steps.
    n_probes : int
        Random directions that estimate :math:`S_j`.
    every : int
        Trees between two estimates of :math:`S_j` and :math:`\rho`.
    floor : float
        :math:`S_j` is at least this part of its largest estimate so far.
    stable : float
        The largest product of the learning rate and the curvature of the constraints' sum in the
        metric of the Hessian. Where it is larger, the Hessian is multiplied by a factor.
    """

    penalty: float = 0.7
    step: float = 0.4
    n_probes: int = 4
    every: int = 20
    floor: float = 0.25
    stable: float = 0.5


@dataclass
class ScoreLagrangian:
    r"""The augmented Lagrangian of a problem whose variables are the scores themselves.

    .. math::
        f(s) + \sum_j \frac{\max\{\lambda_j + \sigma_j g_j(s), 0\}^2}{2 \sigma_j}

    `step` returns the gradient of the sum over the constraints, at the scores of the trees so far,
    and updates the multipliers; boosting methods know the gradient of the loss. Variables of the
    terms, such as thresholds, are minimised over before each step.

    Parameters
    ----------
    problem : Problem
        Objective and constraints as functions of the scores, see
        :class:`~fairconstrained.models.scores.ScoreModel`.
    learning_rate : float
        The learning rate of the trees.
    first_score : float, default=0.0
        The score before the first tree; variables of the terms, thresholds on scores, start at
        their own start plus this.
    rule : MultiplierRule
        The step sizes.
    zero_one : bool
        Whether the multipliers follow the constraints on predictions in place of those on scores.
    random_state : RandomState
        Draws the probes.

    References
    ----------
    IPC, Remark 2 (the augmented Lagrangian); M. Hutchinson, "A stochastic estimator of the trace of
    the influence matrix", 1990 (the probes).
    """

    problem: Problem
    learning_rate: float
    first_score: float = 0.0
    rule: MultiplierRule = field(default_factory=MultiplierRule)
    zero_one: bool = False
    random_state: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))

    def __post_init__(self) -> None:
        """Start with zero multipliers."""
        m = self.problem.n_constraints
        self.multipliers, self.iteration = np.zeros(m), 0
        self._largest, self._squares, self._gram = np.zeros(m), np.ones(m), 1.0
        self._bend = 0.0  # the curvature of the constraints' sum per unit of its weights
        self.n_scores = max(model.n_parameters for model in self.problem.models)
        self.own = self.problem.start()[self.n_scores :] + self.first_score
        self._last: Evaluation | None = None

    def step(self, scores: Array, hessian: Array) -> tuple[Array, float]:
        """Return the gradient of the constraints' sum, and update the multipliers.

        Parameters
        ----------
        scores : ndarray of shape (n_scores,)
            The scores of the trees so far.
        hessian : ndarray of shape (n_scores,)
            The second derivatives of the objective, > 0.

        Returns
        -------
        gradient : ndarray of shape (n_scores,)
        factor : float
            What the Hessian has to be multiplied by, >= 1, so that the constraints' curvature does
            not make the steps too long.
        """
        if not self.problem.n_constraints:
            return np.zeros(self.n_scores), 1.0
        measured = self.iteration in (0, 1, 2, 5, 10) or self.iteration % self.rule.every == 0
        if measured:
            self._measure(scores, hessian)
        unit = self.learning_rate * self._squares * self._gram
        sigma = self.rule.penalty / unit
        if self.own.size:
            self._minimize_own(scores, sigma)
        at = self._at(scores)
        values = self._zero_one(at) if self.zero_one else at.constraints
        if self.iteration:
            self.multipliers = np.maximum(self.multipliers + self.rule.step / unit * values, 0.0)
        self.iteration += 1
        weights = np.maximum(self.multipliers + sigma * values, 0.0)
        if measured:
            self._bend = self._curvature(at, weights if np.any(weights) else sigma, hessian)
        gradient = at.gradient(weights, objective=0.0)[: self.n_scores]
        length = self.learning_rate * self._bend * float(weights.sum())
        return gradient, max(1.0, length / self.rule.stable)

    def violation(self, scores: Array) -> float:
        """Return the violation that the multipliers follow, at the scores of the trees so far.

        With `zero_one` it is 0 if the predictions meet the constraints up to rounding.
        """
        if not self.problem.n_constraints:
            return 0.0
        at = self._at(scores)
        if not self.zero_one:
            return at.violation
        worst = float(self._zero_one(at).max())
        return 0.0 if at_most(worst) else worst

    def _at(self, scores: Array) -> Evaluation:
        w = np.append(scores, self.own)
        if self._last is None or not np.array_equal(self._last.w, w):
            self._last = self.problem.at(w)
        return self._last

    def _zero_one(self, at: Evaluation) -> Array:
        """Return the constraints on predictions, shape (n_constraints,).

        A zero-one version with other outputs than the constraint on scores has its largest value
        added to the latter, less their own largest value.
        """
        found, start = [], 0
        strict = self.problem.with_constraints([p.zero_one() for p in self.problem.constraints])
        outputs = strict.at(at.w, like=at).constraints
        smooth = np.split(
            at.constraints, np.cumsum([p.n_outputs for p in self.problem.constraints])
        )
        for values, part in zip(smooth[:-1], strict.constraints, strict=True):
            exact = outputs[start : start + part.n_outputs]
            start += part.n_outputs
            shifted = values + (exact.max(initial=-np.inf) - values.max(initial=-np.inf))
            found.append(exact if exact.shape == values.shape else shifted)
        return np.concatenate(found)

    def _measure(self, scores: Array, hessian: Array) -> None:
        """Estimate the constraints' squared gradients and the eigenvalue of their Gram matrix."""
        at = self._at(scores)
        base, squares = at.constraints, np.zeros(len(self.multipliers))
        for _ in range(self.rule.n_probes):
            signs = self.random_state.choice([-1.0, 1.0], self.n_scores)
            squares += self._change(scores, base, signs / np.sqrt(hessian)) ** 2
        squares /= self.rule.n_probes
        least = 0.05 * squares.max() if self.iteration == 0 else 0.0
        self._largest = np.maximum(self._largest, np.maximum(squares, least))
        self._squares = np.maximum(squares, self.rule.floor * self._largest)
        self._squares[self._squares <= 0.0] = 1.0
        self._gram = self._largest_eigenvalue(at, base, hessian)

    def _change(self, scores: Array, base: Array, direction: Array) -> Array:
        """Return the derivative of the constraints along a direction, by a difference."""
        distance = 1e-4 / max(float(np.abs(direction).max()), 1e-300)
        return (self._at(scores + distance * direction).constraints - base) / distance

    def _largest_eigenvalue(self, at: Evaluation, base: Array, hessian: Array) -> float:
        """Return the largest eigenvalue of the active constraints' Gram matrix, at least 1."""
        active = (self.multipliers > 0.0) | (base > 0.0)
        if active.sum() < 2:
            return 1.0
        root = np.sqrt(self._squares[active])
        vector, length = np.full(active.sum(), active.sum() ** -0.5), 1.0
        for _ in range(4):
            weights = np.zeros(len(base))
            weights[active] = vector / root
            slope = at.gradient(weights, objective=0.0)[: self.n_scores]
            image = self._change(at.w[: self.n_scores], base, slope / hessian)[active] / root
            length = float(np.linalg.norm(image))
            if not length > 0.0:
                return 1.0
            vector = image / length
        return max(1.0, length)

    def _curvature(self, at: Evaluation, weights: Array, hessian: Array) -> float:
        """Return the largest curvature of the constraints' sum, per unit of the weights.

        It is relative to the Hessian, from power iterations with differences of gradients.
        """
        start = at.gradient(weights, objective=0.0)[: self.n_scores]
        direction, found = start / hessian, 0.0
        for _ in range(4):
            largest = float(np.abs(direction).max())
            if not largest > 0.0:
                return found
            direction = direction / largest
            beside = self.problem.at(at.w + 1e-4 * np.append(direction, np.zeros(self.own.size)))
            slope = beside.gradient(weights, objective=0.0)[: self.n_scores]
            image = (slope - start) / 1e-4
            length = float(direction @ (hessian * direction))
            found = abs(float(direction @ image)) / length / float(weights.sum())
            if self.learning_rate * found * float(weights.sum()) < 0.1 * self.rule.stable:
                break  # far from making a difference
            direction = image / hessian
        return found

    def _minimize_own(self, scores: Array, sigma: Array) -> None:
        """Move the terms' own variables, within 0.1 of where they are, to lower penalties."""

        def penalty(own: Array) -> tuple[float, Array]:
            at = self.problem.at(np.append(scores, own))
            weights = np.maximum(self.multipliers + sigma * at.constraints, 0.0)
            slope = at.gradient(weights, objective=0.0)[self.n_scores :]
            return float((weights**2 / (2.0 * sigma)).sum()), slope

        before = penalty(self.own)[0]
        bounds = [(value - 0.1, value + 0.1) for value in self.own]
        found = minimize(
            penalty, self.own, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 8}
        )
        if found.fun < before:
            self.own = found.x
