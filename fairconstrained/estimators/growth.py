"""Growing trees for the Lagrangian of a problem, and LightGBM's boosters as linear models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.smooth_rounds import steeper_part
from fairconstrained.estimators import tree_parameters
from fairconstrained.estimators.rows import asked_of, bound_parts
from fairconstrained.estimators.score_lagrangian import ScoreLagrangian
from fairconstrained.exceptions import without_vacuous_warnings
from fairconstrained.models.trees import LeafFeatures, ScoreModel, ScoreSpace
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.solvers.base import Start
from fairconstrained.terms.base import Term
from fairconstrained.utils.arrays import Array

_STEEPER = 2.0  # the surrogate's factor for constraints on predictions
_ALLOWED = 2e-3  # the violation up to which early stopping considers an iteration
_FINAL = 0.25  # the share of the iterations, the last ones, that may meet the bound
_LEAST_HESSIAN = 1e-6


Booster = Any  # lightgbm.Booster, which is imported when it is used


def as_lightgbm_data(X: Any) -> Any:
    """Return features in a form that LightGBM accepts: sparse arrays become sparse matrices."""
    return sp.csr_matrix(X) if hasattr(X, "indptr") else X


class Trees:
    """The first trees that were grown, which are kept, and what is known of them.

    The variables are a factor of the first trees, if there are such, the leaf values of the others,
    tree after tree, and the score before the first tree.
    """

    def __init__(self, growth: "Growth", n_trees: int):
        options, lagrangian = growth.trees, growth.lagrangian
        self.booster, self.n_trees = growth.booster, n_trees
        # the score before the first tree, which the booster does not contain
        self.first_score = growth.loss.first_score + growth.shifts[n_trees]
        # LightGBM's objective that turns scores into predictions
        self.objective = growth.loss.objective_name
        # the categories of the columns of pandas' category dtype that the booster accepts, in order
        self.categories = tree_parameters.plain_categories(growth.estimator)
        self.num_threads = tree_parameters.thread_count(options.n_jobs)  # for predictions
        # the number of trees whose leaf values have a common factor
        self.n_before = 0 if growth.n_fitted is None else max(n_trees - growth.n_fitted, 0)
        # whether the variable of each of the other trees is a factor of its leaf values, which
        # keeps their order
        self.monotone = options.monotone_constraints is not None
        # the boosted values of their variables and of those of the constraints' terms, and the
        # multipliers of the constraints that they were grown under
        values = self.values() if growth.fits_intercept else self.values()[:-1]
        self.first = Start(np.append(values, lagrangian.auxiliary), lagrangian.multipliers)
        # the mean second derivative of the loss in the scores, before the last iteration
        self.curvature = float(np.average(growth.curvatures, weights=growth.weight))
        # the scores of the training rows, if growing ended with these trees, (n_rows,)
        whole = growth.held is None and n_trees == len(growth.violations) - 1
        self.last_scores = growth.scores[: len(growth.data.y)] if whole else None
        # with constraints on predictions: whether those of the training rows meet them
        self.meets = growth.zero_one and growth.violations[n_trees] <= 0.0
        self.threshold = growth.data.convention.threshold  # from which scores were measured

    @cached_property
    def text(self) -> str:
        """LightGBM's model file."""
        text: str = self.booster.model_to_string(num_iteration=self.n_trees)
        place = "\nmax_feature_idx="
        return text.replace(place, f"\nobjective={self.objective}{place}", 1)

    def _of_text(self, name: str) -> str:
        """Return what follows ``name=`` at the start of lines; faster than a regular expression."""
        parts = self.text.split(f"\n{name}=")[1:]
        return " ".join(part.partition("\n")[0] for part in parts)

    @cached_property
    def sizes(self) -> Array:
        """The number of leaves of each tree."""
        return np.array(self._of_text("num_leaves").split(), dtype=int)

    @cached_property
    def _leaf_values(self) -> tuple[Array, Array]:
        """The boosted values of the leaves of the trees with a common factor, and of the others."""
        values = np.array(self._of_text("leaf_value").split(), dtype=float)
        before, others = np.split(values, [int(self.sizes[: self.n_before].sum())])
        return before, others

    @property
    def _fitted_sizes(self) -> Array:
        return self.sizes[self.n_before :]

    def _predicted(self, X: Any, **options: Any) -> Array:
        X = as_lightgbm_data(X)
        return np.asarray(self.booster.predict(X, num_threads=self.num_threads, **options))

    def scores(self, X: Any) -> Array:
        """Return the scores of all trees, without the first score, shape (n_rows,)."""
        return self._predicted(X, raw_score=True, num_iteration=self.n_trees)

    def features(self) -> LeafFeatures:
        """Return the map from features to those of the linear model in the variables."""
        start, n_fitted = self.n_before, self.n_trees - self.n_before

        def leaves(X: Any) -> Array:
            options = {"start_iteration": start, "num_iteration": n_fitted}
            return self._predicted(X, pred_leaf=True, **options)

        def base(X: Any) -> Array:
            return self._predicted(X, raw_score=True, num_iteration=start)

        outputs = self._leaf_values[1] if self.monotone else None
        return LeafFeatures(leaves, self._fitted_sizes, base if start else None, outputs)

    def values(self) -> Array:
        """Return the boosted variables."""
        fitted = np.ones(len(self._fitted_sizes)) if self.monotone else self._leaf_values[1]
        return np.concatenate([np.ones(int(self.n_before > 0)), fitted, [self.first_score]])

    @property
    def lengths(self) -> Array:
        """The Euclidean norm of the leaf values that each coefficient multiplies, or one."""
        lengths = np.ones(len(self.values()) - 1)
        if self.monotone:
            starts = np.cumsum(self._fitted_sizes) - self._fitted_sizes
            norms = np.sqrt(np.add.reduceat(self._leaf_values[1] ** 2, starts))
            lengths[len(lengths) - len(norms) :] = norms
        return lengths

    def with_values(self, values: Array) -> Booster:
        """Return a booster with other variables; its first tree contains the first score."""
        before, boosted = self._leaf_values
        fitted = values[int(self.n_before > 0) : -1]
        if self.monotone:
            fitted = boosted * np.repeat(fitted, self._fitted_sizes)
        leaves = np.append(before * values[0], fitted)
        leaves[: self.sizes[0]] += values[-1]
        booster: Booster = tree_parameters.import_lightgbm().Booster(model_str=self.text)
        starts = np.cumsum(self.sizes) - self.sizes
        changed = np.flatnonzero(leaves != np.append(before, boosted))
        trees = np.searchsorted(starts, changed, side="right") - 1
        places = trees, changed - starts[trees], leaves[changed]
        for tree, leaf, value in zip(*map(np.ndarray.tolist, places), strict=True):
            booster.set_leaf_output(tree, leaf, value)
        booster.pandas_categorical = self.categories
        return booster


@dataclass(eq=False)
class Growth:
    """One run of the boosting iterations.

    Rows that constraints bring with them are rows of the data set without a loss.
    """

    estimator: Any  # its options and those of its trees are read
    data: TrainingData
    constraints: Sequence[Constraint] = ()  # all must hold; their tolerances are set
    held: TrainingData | None = None  # rows that trees are not grown on
    # the number of trees, the last ones, whose leaf values are variables; None for all
    n_fitted: int | None = None

    def __post_init__(self) -> None:
        """Start without trees."""
        data, held, self.trees = self.data, self.held, self.estimator._trees
        self.zero_one = self.estimator.enforce == "decision"
        self.loss = self.estimator._tree_loss(data)
        self.fits_intercept = getattr(self.estimator, "fit_intercept", True)
        # whether the held-out rows choose the number of trees, of iterations nearly feasible
        self.chooses = self.trees.early_stopping and held is not None
        self.violations: list[float] = []  # before each tree
        self.losses: list[float] = []  # on the held-out rows, after each tree
        self.outside: Array | None = None  # constraints there, where multipliers follow these
        self.shifts = [0.0]  # of the first score, before each tree
        space = ScoreSpace([data.X])
        problem = self._problem(data, space, self.loss.term, self.constraints)
        self.elsewhere = None if held is None else self._elsewhere(held, problem)
        others = np.full(space.n_rows - len(data.y), self.loss.total / len(data.y))
        self.weight = np.append(self.loss.weight, others)
        # As in LightGBM, fits without a random_state are equal.
        source = check_random_state(self.estimator.random_state or 0)
        self.booster = self._booster(space, source.randint(2**31 - 1))
        self.lagrangian = ScoreLagrangian(
            problem,
            float(self.trees.learning_rate),
            self.loss.first_score,
            self.zero_one,
            np.random.RandomState(source.randint(2**31 - 1)),
        )

    def _problem(
        self, rows: TrainingData, space: ScoreSpace, loss: Term, constraints: Sequence[Constraint]
    ) -> Problem:
        """Return loss and constraints of rows as functions of their scores."""
        positions = np.arange(len(rows.y))
        model = ScoreModel(space, positions)
        placed = replace(rows, X=positions[:, None], expand=lambda features, X: space.add(features))

        @cache
        def of_free_trees() -> Array:
            trees = Growth(self.estimator, self.data).run()
            return trees.first_score + trees.scores(rows.asked.X)

        def free(data: TrainingData, some: Array | None) -> tuple[Array, TrainingData]:
            return of_free_trees()[slice(None) if some is None else some], data

        with without_vacuous_warnings():  # they are given when the leaf values' problem is bound
            parts = bound_parts(constraints, *asked_of(model, placed), free) if constraints else []
        if self.zero_one:
            parts = [steeper_part(part, _STEEPER) for part in parts]
        return Problem(CompositeFunction(model, loss), tuple(parts))

    def _elsewhere(self, held: TrainingData, problem: Problem) -> Problem:
        """Return the problem on the held-out rows, with constraints if multipliers follow these."""
        follows, space = self.estimator._follows_others, ScoreSpace([held.X])
        loss = self.loss.objective.build(held)
        elsewhere = self._problem(held, space, loss, self.constraints if follows else ())
        if follows and (elsewhere.names != problem.names or space.n_rows > len(held.y)):
            raise ValueError(
                f"constraint_fraction={self.trees.constraint_fraction!r}: multipliers that are "
                "updated on other rows need constraints that are the same on these rows. That of "
                "QueryParity(average=True) is; a constraint for every query, or one with "
                "thresholds or rows of its own, is not. Use constraint_fraction=None."
            )
        return elsewhere

    def _booster(self, space: ScoreSpace, seed: int) -> Any:
        lightgbm, data, held = tree_parameters.import_lightgbm(), self.data, self.held
        options, columns = tree_parameters.for_lightgbm(self.estimator, seed)
        for name, default in (("min_child_samples", 0), ("min_data_in_bin", 3)):
            options[name] = round(data.listed * options.get(name, default))
        X = data.X
        if len(space.blocks) > 1:
            X = (sp.vstack if hasattr(X, "indptr") else np.vstack)(space.blocks)

        def rows(X: Any, y: Array, **others: Any) -> Any:
            n_rows, X = X.shape[0], as_lightgbm_data(X)
            labels = np.append(y > 0, np.zeros(n_rows - len(y)))
            first = np.full(n_rows, self.loss.first_score)
            return lightgbm.Dataset(X, labels, init_score=first, params=options, **others)

        train = rows(X, data.y, **columns)
        booster = lightgbm.Booster(options, train)
        if held is not None:
            booster.add_valid(rows(held.X, held.y, reference=train), "held out")
        return booster

    def _gradients(self, scores: Array, _: object) -> tuple[Array, Array]:
        """Return LightGBM's gradient and Hessian, and record the violation."""
        scores, total = self._moved(scores), self.loss.total
        slopes, curvatures = self.loss.derivatives(scores)
        self.curvatures = curvatures

        def metric() -> Array:
            return self.weight / total * np.maximum(curvatures, 1e-3)

        gradient, factor = self.lagrangian.step(scores, metric, self.outside)
        gradient *= total
        hessian = np.maximum(curvatures, _LEAST_HESSIAN)
        hessian *= self.weight if factor == 1.0 else factor * self.weight
        # A step of the same length for all scores is no reason to split. Leaves are penalised for
        # such a step, so that LightGBM may not split at all. The first score makes it instead.
        moves = gradient / hessian
        common = self.fits_intercept * (max(moves.min(), 0.0) + min(moves.max(), 0.0))
        gradient -= common * hessian
        self.shifts.append(self.shifts[-1] - float(self.trees.learning_rate) * common)
        gradient[: len(slopes)] += slopes * self.weight[: len(slopes)]
        needed = self.zero_one or self.held is not None
        self.violations.append(self._violation(scores) if needed else np.nan)
        return gradient, hessian

    def run(self) -> Trees:
        """Grow the trees and choose how many are kept."""
        n_trees = 0
        for _ in range(self.trees.n_estimators):
            ended = self.booster.update(fobj=self._gradients)
            n_trees += 1
            if self.held is not None:
                self.booster.eval_valid(feval=self._measure_held)
            if ended or self._stops():
                break
        self.booster.eval_train(feval=self._measure_last)
        return Trees(self, self._kept(min(n_trees, self.booster.num_trees())))

    def _moved(self, scores: Array) -> Array:
        """Return LightGBM's scores from the first score; it writes the next ones into its array."""
        return np.add(scores, self.shifts[-1], dtype=float)

    def _violation(self, scores: Array) -> float:
        if self.outside is None:
            return self.lagrangian.violation(scores)
        return max(float(self.outside.max(initial=0.0)), 0.0)

    def _measure_held(self, scores: Array, _: object) -> tuple[str, float, bool]:
        assert self.elsewhere is not None
        w = np.append(self._moved(scores), self.lagrangian.auxiliary)[: self.elsewhere.n_variables]
        at = self.elsewhere.at(w)
        self.losses.append(at.objective)
        if self.elsewhere.constraints:
            self.outside = at.constraints
        return "loss", self.losses[-1], False

    def _measure_last(self, scores: Array, _: object) -> tuple[str, float, bool]:
        self.scores = self._moved(scores)
        self.violations.append(self._violation(self.scores))
        return "violation", self.violations[-1], False

    def _allowed(self) -> Array:
        """Return the trees, from 0, after which the constraints are violated little enough."""
        limit = 0.0 if self.zero_one else _ALLOWED
        return np.flatnonzero(np.array(self.violations[1:]) <= limit)

    def _best(self, allowed: Array) -> int:
        return int(allowed[np.argmin(np.array(self.losses)[allowed])])

    def _stops(self) -> bool:
        if not self.chooses or not len(allowed := self._allowed()):
            return False
        return int((allowed > self._best(allowed)).sum()) >= self.trees.n_iter_no_change

    def _kept(self, n_trees: int) -> int:
        allowed = self._allowed()
        allowed = allowed[allowed < n_trees]
        if self.chooses and len(allowed):
            return self._best(allowed) + 1
        final = allowed[allowed + 1 > (1.0 - _FINAL) * n_trees]
        return int(final[-1]) + 1 if self.zero_one and len(final) else n_trees
