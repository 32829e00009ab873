"""LightGBM's boosters as linear models of their leaves; the losses that trees are grown for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.tree_parameters import import_lightgbm
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.leaves import LeafFeatures
from fairconstrained.objectives import MeanLoss, Objective
from fairconstrained.terms.pairs import QueryPairs
from fairconstrained.utils.typing import Array

Booster = Any  # lightgbm.Booster, which is imported when it is used


def as_lightgbm_data(X: Any) -> Any:
    """Return features in a form that LightGBM accepts: sparse arrays become sparse matrices."""
    return sp.csr_matrix(X) if hasattr(X, "indptr") else X


@dataclass(frozen=True, eq=False)
class Trees:
    """The first trees of a booster that was trained with an objective of this library.

    The variables are a factor of the first trees, if there are such, the leaf values of the others,
    tree after tree, and the score before the first tree.
    """

    booster: Booster
    n_trees: int
    first_score: float  # the score before the first tree, which the booster does not contain
    objective: str  # LightGBM's objective that turns scores into predictions
    # the categories of the columns of pandas' category dtype that the booster accepts, in order
    categories: list[list[Any]] = field(default_factory=list)
    num_threads: int = 0  # for predictions; 0 is LightGBM's default
    n_before: int = 0  # the number of trees whose leaf values have a common factor
    # whether the variable of each of the other trees is a factor of its leaf values, which keeps
    # their order
    monotone: bool = False

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
        booster: Booster = import_lightgbm().Booster(model_str=self.text)
        starts = np.cumsum(self.sizes) - self.sizes
        changed = np.flatnonzero(leaves != np.append(before, boosted))
        trees = np.searchsorted(starts, changed, side="right") - 1
        places = trees, changed - starts[trees], leaves[changed]
        for tree, leaf, value in zip(*map(np.ndarray.tolist, places), strict=True):
            booster.set_leaf_output(tree, leaf, value)
        booster.pandas_categorical = self.categories
        return booster


class LogLoss:
    """The logistic loss of the rows of two classes, as LightGBM needs it.

    LightGBM minimises the mean loss times `total`, so that its regularisation and its least leaf
    sizes are per row. `objective_name` is LightGBM's objective that turns scores into predictions.
    """

    objective_name: ClassVar[str] = "binary sigmoid:1"

    def __init__(self, data: TrainingData):
        self.objective = MeanLoss(Logistic())
        self.term = self.objective.build(data)
        # LightGBM's regularisation and least leaf sizes are absolute: the mean weight is 1
        self.weight = data.loss_weight / data.loss_weight.mean()
        self.total, self.threshold = float(self.weight.sum()), data.convention.threshold
        self.targets = (data.y > 0).astype(float)
        share = float(self.weight[data.y > 0].sum()) / self.total
        self.first_score = float(logit(np.clip(share, 1e-6, 1.0 - 1e-6))) - self.threshold

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return the probabilities less the targets, and p (1 - p)."""
        p = expit(scores + self.threshold)
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
        statistics, pullback = self.term.forward(mine)
        slopes = self.total * pullback(self.term.head_vjp(statistics, np.ones(1)))[0]
        curvatures = self.total * self.term.curvature_by_row(mine)
        return slopes, np.append(curvatures, np.full(len(scores) - len(mine), curvatures.mean()))
