"""The loss and the augmented Lagrangian of scores: what the next tree is fitted to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import logit

from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.losses import Logistic
from fairconstrained.objectives import MeanLoss, Objective
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.terms.pairs import QueryPairs
from fairconstrained.utils.arrays import Array, at_most

_ON_SCORES, _ON_DECISIONS = (0.7, 0.4), (0.3, 0.1)  # the factors a and b of the steps
_N_EXACT = 8  # constraints whose gradients are computed one by one; of more, S is estimated
_N_PROBES = 4  # random directions that estimate it
_EVERY = 20  # trees between two estimates of S and of the eigenvalue
_GROWTH = 5.0  # of the number of active constraints, after which they are estimated again:
# the eigenvalue is that of the active ones, and many similar constraints become active together
_FLOOR = 0.25  # S is at least this part of its largest estimate so far
_STABLE = 0.5  # the learning rate times the curvature of the constraints' sum in the metric of the
# Hessian: where it is larger, the Hessian is multiplied by a factor


@dataclass
class ScoreLagrangian:
    r"""The augmented Lagrangian of a problem whose variables are the scores themselves.

    .. math::
        f(s) + \sum_j \frac{\max\{\lambda_j + \sigma_j g_j(s), 0\}^2}{2 \sigma_j}

    `step` returns the gradient of the sum over the constraints, at the scores of the trees so far,
    and updates the multipliers; boosting methods know the gradient of the loss. Variables of the
    terms, such as thresholds, are minimised over before each step.

    Step sizes are scaled to what one tree can change: with learning rate :math:`\eta` it moves the
    scores by about :math:`\eta H^{-1}` times the gradient, H the Hessian of the loss. With
    :math:`S_j` the squared length of constraint j's gradient in the metric :math:`H^{-1}`, and
    :math:`\rho` the largest eigenvalue of the Gram matrix of the active constraints' scaled
    gradients,

    .. math::
        \sigma_j = \frac{a}{\eta S_j \rho}, \qquad
        \lambda_j \leftarrow \max\Big\{\lambda_j + \frac{b}{\eta S_j \rho}\, g_j, 0\Big\}.

    The steps are then independent of group sizes and of the number of constraints.

    References
    ----------
    IPC, Remark 2 (the augmented Lagrangian); M. Hutchinson, "A stochastic estimator of the trace of
    the influence matrix", 1990 (the probes).
    """

    # objective and constraints as functions of the scores, see
    # `ScoreModel`
    problem: Problem
    learning_rate: float
    # the score before the first tree; variables of the terms, thresholds on scores, start at their
    # own start plus this
    first_score: float = 0.0
    # whether the multipliers follow the constraints on predictions in place of those on scores
    zero_one: bool = False
    # draws the probes
    random_state: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))

    def __post_init__(self) -> None:
        """Start with zero multipliers."""
        self.penalty, self.pace = _ON_DECISIONS if self.zero_one else _ON_SCORES
        m = self.problem.n_constraints
        self.multipliers, self.iteration = np.zeros(m), 0
        self._largest, self._squares, self._gram = np.zeros(m), np.ones(m), 1.0
        self._n_active = 0  # where the eigenvalue was estimated
        self._bend = 0.0  # the curvature of the constraints' sum per unit of its weights
        self.n_scores = max(model.n_parameters for model in self.problem.models)
        self.auxiliary = self.problem.start()[self.n_scores :] + self.first_score
        self._last: tuple[Array, Array, Evaluation] | None = None
        strict = [part.zero_one() for part in self.problem.constraints]
        self._decided = self.problem.with_constraints(strict)

    def step(
        self, scores: Array, hessian: Callable[[], Array], values: Array | None = None
    ) -> tuple[Array, float]:
        """Return the gradient of the constraints' sum, and update the multipliers."""
        if not self.problem.n_constraints:
            return np.zeros(self.n_scores), 1.0
        k = self.iteration
        self.iteration += 1
        more = self._active(self._at(scores)).sum() > max(_GROWTH * self._n_active, 1)
        metric = hessian() if more or k in (1, 2, 5, 10) or k % _EVERY == 0 else None
        if metric is not None:
            self._measure(scores, metric, first=k == 0)
        unit = self.learning_rate * self._squares * self._gram
        sigma = self.penalty / unit
        if self.auxiliary.size:
            self._minimize_auxiliary(scores, sigma)
        at = self._at(scores)
        if values is None:
            values = self._zero_one(at) if self.zero_one else at.constraints
        if k:
            self.multipliers = np.maximum(self.multipliers + self.pace / unit * values, 0.0)
        weights = np.maximum(self.multipliers + sigma * values, 0.0)
        if metric is not None:
            self._bend = self._curvature(at, weights if np.any(weights) else sigma, metric)
        length = self.learning_rate * self._bend * float(weights.sum())
        return self._gradient(at, weights), max(1.0, length / _STABLE)

    def violation(self, scores: Array) -> float:
        """Return the violation that the multipliers follow, at the scores of the trees so far.

        With `zero_one` it is 0 if the predictions meet the constraints up to rounding.
        """
        at = self._at(scores)
        values = self._zero_one(at) if self.zero_one else at.constraints
        worst = float(values.max(initial=0.0))
        return 0.0 if (self.zero_one and at_most(worst)) else worst

    def _at(self, scores: Array) -> Evaluation:
        """Return the problem at scores and the terms' own variables; the last one is kept."""
        last, auxiliary = self._last, self.auxiliary
        if last is None or last[0] is not scores or last[1] is not auxiliary:
            last = self._last = scores, auxiliary, self.problem.at(np.append(scores, auxiliary))
        return last[2]

    def _gradient(self, at: Evaluation, weights: Array) -> Array:
        return at.gradient(weights, objective=0.0)[: self.n_scores]

    def _zero_one(self, at: Evaluation) -> Array:
        """Return the constraints on predictions, shape (n_constraints,).

        A zero-one version with other outputs than the constraint on scores has its largest value
        added to the latter, less their own largest value.
        """
        strict = self._decided.at(at.w, like=at).constraints
        if len(strict) == len(at.constraints):
            return strict
        places, values = zip(self.problem.places, self._decided.places, strict=True), []
        for soft, hard in ((at.constraints[k], strict[j]) for k, j in places):
            if hard.shape != soft.shape:
                hard = soft + (hard.max(initial=-np.inf) - soft.max(initial=-np.inf))
            values.append(hard)
        return np.concatenate(values)

    def _measure(self, scores: Array, hessian: Array, *, first: bool = True) -> None:
        """Measure the constraints' squared gradients and the eigenvalue of their Gram matrix."""
        at = self._at(scores)
        if len(self.multipliers) <= _N_EXACT:
            rows = np.array([self._gradient(at, unit) for unit in np.eye(len(self.multipliers))])
            gram = (rows / hessian) @ rows.T
            squares = gram.diagonal()
        else:  # estimates from random directions
            gram, squares = None, np.zeros(len(self.multipliers))
            for _ in range(_N_PROBES):
                signs = self.random_state.choice([-1.0, 1.0], self.n_scores)
                squares += self._change(at, signs / np.sqrt(hessian)) ** 2 / _N_PROBES
        least = 0.05 * squares.max() if first else 0.0
        self._largest = np.maximum(self._largest, np.maximum(squares, least))
        self._squares = np.maximum(squares, _FLOOR * self._largest)
        self._squares[self._squares <= 0.0] = 1.0
        self._gram = self._largest_eigenvalue(at, hessian, gram)

    def _change(self, at: Evaluation, direction: Array) -> Array:
        """Return the derivative of the constraints along a direction, by a difference."""
        distance = 1e-4 / max(float(np.abs(direction).max()), 1e-300)
        return (self._beside(at, distance * direction).constraints - at.constraints) / distance

    def _beside(self, at: Evaluation, step: Array) -> Evaluation:
        return self.problem.at(np.append(at.w[: self.n_scores] + step, at.w[self.n_scores :]))

    def _largest_eigenvalue(self, at: Evaluation, hessian: Array, gram: Array | None) -> float:
        """Return the largest eigenvalue of the active constraints' Gram matrix, at least 1."""
        active = self._active(at)
        self._n_active = int(active.sum())
        if self._n_active < 2:
            return 1.0
        root = np.sqrt(self._squares[active])
        if gram is not None:
            scaled = gram[np.ix_(active, active)] / np.outer(root, root)
            return max(1.0, float(np.linalg.eigvalsh(scaled)[-1]))
        vector, length = np.full(self._n_active, self._n_active**-0.5), 1.0
        for _ in range(4):
            weights = np.zeros(len(active))
            weights[active] = vector / root
            slope = self._gradient(at, weights)
            image = self._change(at, slope / hessian)[active] / root
            length = float(np.linalg.norm(image))
            if not length > 0.0:
                return 1.0
            vector = image / length
        return max(1.0, length)

    def _active(self, at: Evaluation) -> Array:
        return np.asarray((self.multipliers > 0.0) | (at.constraints > 0.0))

    def _curvature(self, at: Evaluation, weights: Array, hessian: Array) -> float:
        """Return the largest curvature of the constraints' sum, per unit of the weights.

        It is relative to the Hessian, from power iterations with differences of gradients.
        """
        start, total = self._gradient(at, weights), float(weights.sum())
        direction, curvature = start / hessian, 0.0
        for _ in range(4):
            largest = float(np.abs(direction).max())
            if not largest > 0.0:
                return curvature
            direction = direction / largest
            beside = self._beside(at, 1e-4 * direction)
            image = (self._gradient(beside, weights) - start) / 1e-4
            length = float(direction @ (hessian * direction))
            curvature = abs(float(direction @ image)) / length / total
            if self.learning_rate * curvature * total < 0.1 * _STABLE:
                break  # too small to matter
            direction = image / hessian
        return curvature

    def _minimize_auxiliary(self, scores: Array, sigma: Array) -> None:
        """Move the terms' own variables, within 0.1 of where they are, to lower penalties."""

        def penalty(auxiliary: Array) -> tuple[float, Array]:
            at = self.problem.at(np.append(scores, auxiliary))
            weights = np.maximum(self.multipliers + sigma * at.constraints, 0.0)
            slope = at.gradient(weights, objective=0.0)[self.n_scores :]
            return float((weights**2 / (2.0 * sigma)).sum()), slope

        near = Bounds(self.auxiliary - 0.1, self.auxiliary + 0.1)
        after = minimize(penalty, self.auxiliary, jac=True, bounds=near, options={"maxiter": 8})
        if after.fun < penalty(self.auxiliary)[0]:
            self.auxiliary = after.x


class LogLoss:
    """The logistic loss of the rows of two classes, as LightGBM needs it.

    LightGBM minimises the mean loss times `total`, so that its regularisation and its least leaf
    sizes are per row. `objective_name` is LightGBM's objective that turns scores into predictions.
    """

    objective_name: ClassVar[str] = "binary sigmoid:1"

    def __init__(self, data: TrainingData):
        self.objective = MeanLoss(Logistic())
        self.term = self.objective.build(data)
        # LightGBM's regularisation and least leaf sizes are absolute: the mean weight of a row is 1
        self.weight = data.loss_weight / (data.loss_weight.mean() * data.listed)
        self.total, self.threshold = float(self.weight.sum()), data.convention.threshold
        self.targets = (data.y > 0).astype(float)
        share = float(self.weight[data.y > 0].sum()) / self.total
        self.first_score = float(logit(np.clip(share, 1e-6, 1.0 - 1e-6))) - self.threshold

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return the probabilities less the targets, and p (1 - p)."""
        with np.errstate(over="ignore"):  # half the time of scipy's expit
            p = 1.0 / (1.0 + np.exp(-self.threshold - scores))
        return p[: len(self.targets)] - self.targets, p * (1.0 - p)


class PairLoss:
    r"""A loss of pairs within queries, with the attributes of :class:`LogLoss`.

    A row takes part in many pairs. Its second derivative is the sum over them; LambdaMART has the
    same diagonal in place of the Hessian, whose other entries are those of the pairs.

    References
    ----------
    C. Burges, "From RankNet to LambdaRank to LambdaMART: An overview", 2010.
    """

    objective_name: ClassVar[str] = "lambdarank"
    first_score = 0.0

    def __init__(self, data: TrainingData, objective: Objective):
        term = objective.build(data)
        if not (isinstance(term, QueryPairs) and term.function.smooth):
            raise ValueError(
                f"loss={objective!r}: trees are grown for a loss of pairs within queries that has "
                "second derivatives. Use 'query_pairs' (the logistic loss), or an object such as "
                "QueryPairLoss('squared_hinge')."
            )
        self.term, self.objective = term, objective
        self.weight, self.total = np.ones(len(data.y)), float(len(data.y))

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and second derivatives, times the number of rows.

        The curvature of other rows is the mean of the training rows'.
        """
        mine = scores[: len(self.weight)]
        slopes = self.total * self.term.vjp(mine, np.ones(1))[0]
        curvatures = self.total * self.term.curvature_by_row(mine)
        return slopes, np.append(curvatures, np.full(len(scores) - len(mine), curvatures.mean()))
