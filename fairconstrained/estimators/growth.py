"""Growing trees for the Lagrangian of a constrained problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import split
from fairconstrained.decisions.tightening import steeper_part
from fairconstrained.estimators.binding import ScoresByRow, bound_parts
from fairconstrained.estimators.score_lagrangian import (
    ConstraintsAt,
    MultiplierRule,
    ScoreLagrangian,
)
from fairconstrained.estimators.tree_parameters import import_lightgbm
from fairconstrained.estimators.trees import LogLoss, LossOf, Trees, as_lightgbm_data
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models import Model
from fairconstrained.models.scores import ScoreModel, ScoreSpace
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Start
from fairconstrained.utils.typing import Array

ON_SCORES = MultiplierRule(penalty=0.7, step=0.4)
ON_DECISIONS = MultiplierRule(penalty=0.3, step=0.1)
_STEEPER = 2.0  # the surrogate's factor for constraints on predictions
_ALLOWED = 2e-3  # the violation up to which early stopping considers an iteration
_FINAL = 0.25  # the share of the iterations, the last ones, that may meet the bound
_LEAST_HESSIAN = 1e-6


@dataclass(frozen=True)
class Growing:
    """How trees are grown.

    Attributes
    ----------
    n_trees : int
        The largest number of trees.
    learning_rate : float
        The learning rate.
    parameters : mapping
        LightGBM's parameters.
    names : list of str or "auto"
        The names of the features.
    is_categorical : ndarray of bool of shape (n_features,)
        Which features hold codes of categories.
    categories : list of list
        The categories of the columns of pandas' category dtype that the booster accepts.
    share_aside : float or None
        The share of the rows of every group and label that trees are not grown on.
    patience : int or None
        Growing stops once as many iterations, of those that meet the constraints nearly, have not
        lowered the loss on the rows set aside; None grows all trees.
    follows_others : bool
        Whether the multipliers follow the constraints on the rows set aside.
    zero_one : bool
        Whether the constraints are on predictions.
    n_fitted : int or None
        The number of trees whose leaf values are variables of the leaf fit.
    seed : int
        Draws the probes of the multiplier rule and the rows for early stopping.
    loss : callable
        Returns the loss of training rows.
    """

    n_trees: int
    learning_rate: float
    parameters: Mapping[str, Any]
    names: list[str] | str
    is_categorical: Array
    categories: list[list[Any]] = field(default_factory=list)
    share_aside: float | None = None
    patience: int | None = None
    follows_others: bool = False
    zero_one: bool = False
    n_fitted: int | None = None
    seed: int = 0
    loss: LossOf = LogLoss


@dataclass(frozen=True, eq=False)
class Grown:
    """Boosted trees, with the multipliers of the constraints that they were grown under.

    Attributes
    ----------
    trees : Trees
        The trees that are kept.
    multipliers : ndarray of shape (n_constraints,)
        The multipliers after the last iteration.
    own : ndarray
        The values of the variables of the constraints' terms.
    curvature : float
        The mean second derivative of the loss in the scores, before the last iteration.
    scores : ndarray of shape (n_rows,) or None
        The scores of the training rows, if growing ended with the trees that are kept.
    meets : bool
        With constraints on predictions: whether the predictions of the kept trees on the training
        rows meet them.
    held : TrainingData or None
        The rows that trees were not grown on, None if there are none.
    constrained : TrainingData or None
        The rows whose constraints the multipliers followed, None for all training rows.
    first : Start or None
        The boosted leaf values, the variables of the constraints' terms and the multipliers.
    """

    trees: Trees
    multipliers: Array
    own: Array
    curvature: float
    scores: Array | None = None
    meets: bool = False
    held: TrainingData | None = None
    constrained: TrainingData | None = None
    first: Start | None = None

    def moved(self, by: float, model: Model) -> Grown:
        """Return the same trees for scores measured from a threshold that is higher by a number."""
        offset = model.offset()
        assert self.first is not None and offset is not None
        w = self.first.w.copy()
        w[: len(offset)] -= by * offset
        w[len(offset) :] -= by  # thresholds on scores
        return replace(self, first=replace(self.first, w=w), meets=False)


def grow(how: Growing, data: TrainingData, constraints: Sequence[Constraint]) -> Grown:
    """Return trees grown under constraints.

    Parameters
    ----------
    how : Growing
        The options.
    data : TrainingData
        The rows.
    constraints : sequence of Constraint
        All must hold; their tolerances are set.
    """
    source = np.random.RandomState(how.seed)
    held, share = None, how.share_aside
    if share is not None:
        data, held, _ = split(data, share, source)
    grown = _Growth(how, data, constraints, held, source).run()
    return replace(grown, held=held, constrained=held if how.follows_others else None)


def _scores_of_free_trees(how: Growing, data: TrainingData, X: Any) -> Array:
    """Return the scores of rows by trees grown without constraints."""
    how = replace(how, zero_one=False, share_aside=None, patience=None, follows_others=False)
    trees = grow(how, data, ()).trees
    return trees.first_score + trees.scores(X)


@dataclass(eq=False)
class _Growth:
    """One run of the boosting iterations.

    Rows that constraints bring with them are rows of the data set without a loss.
    """

    how: Growing
    data: TrainingData
    constraints: Sequence[Constraint]
    held: TrainingData | None
    source: np.random.RandomState
    violations: list[float] = field(default_factory=list)  # before each tree
    losses: list[float] = field(default_factory=list)  # on the held-out rows, after each tree
    outside: Array | None = None  # constraints on held-out rows, where multipliers follow these

    def __post_init__(self) -> None:
        """Bind the constraints to the scores, and make the data set."""
        data, self.loss = self.data, self.how.loss(self.data)
        self.first_score = self.loss.first_score
        space = ScoreSpace([data.X])
        problem = Problem(
            CompositeFunction(ScoreModel(space, np.arange(len(data.y))), self.loss.term),
            self._parts(data, space),
        )
        self.elsewhere = self._parts_elsewhere(problem)
        others = np.full(space.n_rows - len(data.y), self.loss.total / len(data.y))
        self.weight = np.append(self.loss.weight, others)
        self.held_loss = None if self.held is None else self.loss.objective.build(self.held)
        rule = ON_DECISIONS if self.how.zero_one else ON_SCORES
        self.lagrangian = ScoreLagrangian(
            problem,
            self.how.learning_rate,
            self.first_score,
            rule,
            self.how.zero_one,
            np.random.RandomState(self.source.randint(2**31 - 1)),
        )
        self.booster = self._booster(space)

    def _parts(self, rows: TrainingData, space: ScoreSpace) -> tuple[CompositeFunction, ...]:
        """Return the constraints on rows as functions of their scores.

        Warnings of cells without rows are given when the leaf values' problem is bound.
        """
        n = len(rows.y)
        placed = rows.with_features(np.arange(n)[:, None], lambda features, X: space.add(features))
        free = ScoresByRow(partial(_scores_of_free_trees, self.how, self.data, rows.X))
        with without_vacuous_warnings():
            parts = bound_parts(self.constraints, ScoreModel(space, np.arange(n)), placed, free)
        return tuple(steeper_part(part, _STEEPER) if self.how.zero_one else part for part in parts)

    def _parts_elsewhere(self, problem: Problem) -> tuple[CompositeFunction, ...]:
        """Return the constraints on the held-out rows, if these are what multipliers follow.

        Raises
        ------
        ValueError
            If the rows for growing have other constraints.
        """
        if self.held is None or not self.how.follows_others:
            return ()
        space = ScoreSpace([self.held.X])
        parts = self._parts(self.held, space)
        names = [
            [part.term.names for part in some if part.term] for some in (parts, problem.constraints)
        ]
        if names[0] != names[1] or space.n_rows > len(self.held.y):
            raise ValueError(
                f"constraint_fraction={self.how.share_aside!r}: multipliers that follow "
                "the constraints on other rows need the same constraints there. "
                "QueryParity(average=True) has them; a constraint for every query, or one with "
                "thresholds or rows of its own, has not. Use constraint_fraction=None."
            )
        return parts

    def _booster(self, space: ScoreSpace) -> Any:
        """Return a LightGBM booster without trees."""
        lightgbm, data, first = import_lightgbm(), self.data, self.first_score
        options = {**self.how.parameters, "objective": "none"}
        columns = np.flatnonzero(self.how.is_categorical).tolist()
        labels = np.append(data.y > 0, np.zeros(space.n_rows - len(data.y)))
        stack = sp.vstack if hasattr(data.X, "indptr") else np.vstack
        X = data.X if len(space.blocks) == 1 else stack(space.blocks)
        train = lightgbm.Dataset(
            as_lightgbm_data(X),
            labels,
            init_score=np.full(len(labels), first),
            params=options,
            feature_name=self.how.names,
            categorical_feature=columns or "auto",
        )
        booster = lightgbm.Booster(options, train)
        if self.held is not None:
            y = self.held.y
            valid = lightgbm.Dataset(
                as_lightgbm_data(self.held.X),
                (y > 0).astype(float),
                init_score=np.full(len(y), first),
                reference=train,
                params=options,
            )
            booster.add_valid(valid, "held out")
        return booster

    def _gradients(self, scores: Array, _: object) -> tuple[Array, Array]:
        """Return LightGBM's gradient and Hessian, and record the violation."""
        scores = np.array(scores, dtype=float)  # LightGBM writes the next scores into its own array
        total = self.loss.total
        slopes, curvatures = self.loss.derivatives(scores)
        self.curvatures = curvatures

        def metric() -> Array:
            return self.weight / total * np.maximum(curvatures, 1e-3)

        gradient, factor = self.lagrangian.step(scores, metric, self.outside)
        gradient *= total
        slopes *= self.weight[: len(slopes)]
        gradient[: len(slopes)] += slopes
        hessian = np.maximum(curvatures, _LEAST_HESSIAN)
        hessian *= self.weight if factor == 1.0 else factor * self.weight
        needed = self.how.zero_one or self.held is not None
        self.violations.append(self._violation(scores) if needed else np.nan)
        return gradient, hessian

    def run(self) -> Grown:
        """Grow the trees and choose how many are kept."""
        n_trees = 0
        for _ in range(self.how.n_trees):
            ended = self.booster.update(fobj=self._gradients)
            n_trees += 1
            if self.held is not None:
                self.booster.eval_valid(feval=self._measure_held)
            if ended or self._stops():
                break
        self.booster.eval_train(feval=self._measure_last)
        kept = self._kept(min(n_trees, self.booster.num_trees()))
        trees = Trees.of(
            self.booster,
            kept,
            self.first_score,
            self.loss.objective_name,
            categories=self.how.categories,
            num_threads=self.how.parameters["num_threads"],
            n_fitted=self.how.n_fitted,
        )
        meets = self.how.zero_one and self.violations[kept] <= 0.0
        n_rows = len(self.data.y)
        whole = self.held is None and kept == len(self.violations) - 1
        scores = self.scores[:n_rows] if whole else None
        curvature = float(np.average(self.curvatures, weights=self.weight))
        multipliers, own = self.lagrangian.multipliers, self.lagrangian.own
        return Grown(trees, multipliers, own, curvature, scores, meets)

    def _violation(self, scores: Array) -> float:
        """Return the violation on the rows whose constraints the multipliers follow."""
        if self.outside is None:
            return self.lagrangian.violation(scores)
        return max(float(self.outside.max(initial=0.0)), 0.0)

    def _measure_held(self, scores: Array, _: object) -> tuple[str, float, bool]:
        assert self.held_loss is not None
        self.losses.append(float(self.held_loss.value(scores)[0]))
        if self.elsewhere:
            scores = np.array(scores, dtype=float)
            at = ConstraintsAt(self.elsewhere, scores, self.lagrangian.own)
            self.outside = at.constraints
        return "loss", self.losses[-1], False

    def _measure_last(self, scores: Array, _: object) -> tuple[str, float, bool]:
        self.scores = np.array(scores, dtype=float)
        self.violations.append(self._violation(self.scores))
        return "violation", self.violations[-1], False

    def _allowed(self) -> Array:
        """Return which numbers of trees, from 1, violate the constraints little enough."""
        limit = 0.0 if self.how.zero_one else _ALLOWED
        return np.array(self.violations[1:]) <= limit

    def _stops(self) -> bool:
        """Return whether the loss on the held-out rows has stopped falling."""
        if self.how.patience is None:
            return False
        allowed = np.flatnonzero(self._allowed())
        if not len(allowed):
            return False
        best = allowed[np.argmin(np.array(self.losses)[allowed])]
        return int((allowed > best).sum()) >= self.how.patience

    def _kept(self, n_trees: int) -> int:
        """Return the number of trees to keep."""
        allowed = np.flatnonzero(self._allowed()[:n_trees])
        if self.how.patience is not None and len(allowed):
            return int(allowed[np.argmin(np.array(self.losses)[allowed])]) + 1
        final = allowed[allowed + 1 > (1.0 - _FINAL) * n_trees]
        if self.how.zero_one and len(final):
            return int(final[-1]) + 1
        return n_trees
