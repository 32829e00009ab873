"""Boosters of LightGBM: leaves, their values, copies; the losses that trees are grown for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.tree_parameters import import_lightgbm, thread_count
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.leaves import LeafFeatures
from fairconstrained.objectives import MeanLoss, Objective
from fairconstrained.terms.pairs import QueryPairs
from fairconstrained.utils.typing import Array

_SAFE_NAME = re.compile(r"^[^\s\[\]{}\":,]+$")  # LightGBM's text format allows these names only


Booster = Any  # lightgbm.Booster, which is imported when it is used


def as_lightgbm_data(X: Any) -> Any:
    """Return features in a form that LightGBM accepts: sparse arrays become sparse matrices."""
    if not hasattr(X, "indptr"):
        return X
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)


def raw_scores(booster: Booster, features: Any, n_jobs: int | None) -> Array:
    """Return the scores of rows."""
    rows, threads = as_lightgbm_data(features), thread_count(n_jobs)
    return np.asarray(booster.predict(rows, raw_score=True, num_threads=threads))


def plain_booster(booster: Booster) -> Any:
    """Return a copy of a booster, made from its model text."""
    return import_lightgbm().Booster(model_str=booster.model_to_string())


def feature_names(names: Sequence[object], n_features: int) -> list[str] | str:
    """Return the names for LightGBM, "auto" if there are none or it does not allow them."""
    texts = [str(name) for name in names]
    usable = len(texts) == n_features == len(set(texts)) and all(map(_SAFE_NAME.match, texts))
    return texts if usable else "auto"


def _values_of(text: str, name: str) -> list[str]:
    """Return what follows ``name=`` at the start of lines; faster than a regular expression."""
    return [rest.partition("\n")[0] for rest in text.split(f"\n{name}=")[1:]]


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees as text, the first score, and the categories of their features."""

    # LightGBM's model file: the trees, with the objective that turns scores to probabilities
    text: str = field(repr=False)
    first_score: float  # the score before the first tree, which the text does not contain
    # the categories of the columns of pandas' category dtype that the booster accepts, in order
    categories: list[list[Any]] = field(default_factory=list)
    num_threads: int = 0  # for predictions; 0 is LightGBM's default
    # the number of trees, the last ones, whose leaf values are variables; None for all. The trees
    # before them have a common factor, which is the first variable
    n_fitted: int | None = None
    # whether the variable of each of the last trees is a factor of its leaf values, which keeps
    # their order
    monotone: bool = False

    @classmethod
    def of(
        cls, booster: Booster, n_trees: int, first_score: float, objective: str, **options: Any
    ) -> Trees:
        """Return the first trees of a booster that was trained with a custom objective."""
        text = booster.model_to_string(num_iteration=n_trees)
        text = re.sub(
            r"^(max_feature_idx=.*)$",
            rf"\1\nobjective={objective}",
            text,
            count=1,
            flags=re.MULTILINE,
        )
        trees = cls(text, first_score, **options)
        if n_trees == booster.num_trees():
            vars(trees)["_booster"] = booster  # the text need not be read again
        return trees

    @cached_property
    def sizes(self) -> Array:
        """The number of leaves of each tree."""
        return np.array([int(size) for size in _values_of(self.text, "num_leaves")])

    @cached_property
    def _booster(self) -> Booster:
        booster: Booster = import_lightgbm().Booster(model_str=self.text)
        return booster

    @property
    def n_before(self) -> int:
        """The number of trees whose leaf values keep their proportions."""
        return 0 if self.n_fitted is None else max(len(self.sizes) - self.n_fitted, 0)

    def _predict(self, X: Any, **options: Any) -> Array:
        threads = self.num_threads
        return np.asarray(
            self._booster.predict(as_lightgbm_data(X), num_threads=threads, **options)
        )

    def leaves(self, X: Any) -> Array:
        """Return the leaf of each row in each tree with variables, shape (n_rows, n_trees)."""
        return self._predict(X, pred_leaf=True, start_iteration=self.n_before)

    def base(self, X: Any) -> Array:
        """Return the score of the trees before those with variables, shape (n_rows,)."""
        return self._predict(X, raw_score=True, num_iteration=self.n_before)

    def scores(self, X: Any) -> Array:
        """Return the scores of all trees, without the first score, shape (n_rows,)."""
        return self._predict(X, raw_score=True)

    def features(self) -> LeafFeatures:
        """Return the map from features to those of the linear model in the variables."""
        fitted, base = self.sizes[self.n_before :], self.base if self.n_before else None
        return LeafFeatures(self.leaves, fitted, base, self._fitted if self.monotone else None)

    @cached_property
    def _boosted(self) -> Array:
        """The boosted values of all leaves, tree after tree; the text has all their digits."""
        lines = _values_of(self.text, "leaf_value")
        return np.array([float(value) for line in lines for value in line.split()])

    def values(self) -> Array:
        """Return the boosted variables: the factor, the leaf values tree by tree, the first score.

        There is no factor if all leaf values are variables.
        """
        factor = np.ones(int(self.n_before > 0))
        fitted = np.ones(len(self.sizes) - self.n_before) if self.monotone else self._fitted
        return np.concatenate([factor, fitted, [self.first_score]])

    @property
    def _fitted(self) -> Array:
        """The boosted values of the leaves of the fitted trees."""
        return self._boosted[int(self.sizes[: self.n_before].sum()) :]

    @property
    def lengths(self) -> Array:
        """The Euclidean norm of the leaf values that each coefficient multiplies, or one."""
        values = self.values()[:-1]
        if self.monotone:
            fitted = self.sizes[self.n_before :]
            starts = np.cumsum(fitted) - fitted
            norms = np.sqrt(np.add.reduceat(self._fitted**2, starts))
            values[len(values) - len(norms) :] = norms
            return values
        return np.ones_like(values)

    def with_values(self, values: Array) -> Booster:
        """Return a booster with other variables; its first tree contains the first score."""
        leaves, n_before = self._boosted.copy(), int(self.sizes[: self.n_before].sum())
        scaled = int(self.n_before > 0)
        leaves[:n_before] *= values[0]
        fitted = values[scaled:-1]
        if self.monotone:
            fitted = leaves[n_before:] * np.repeat(fitted, self.sizes[self.n_before :])
        leaves[n_before:] = fitted
        leaves[: self.sizes[0]] += values[-1]
        booster: Booster = import_lightgbm().Booster(model_str=self.text)
        ends = np.cumsum(self.sizes)
        changed = np.flatnonzero(leaves != self._boosted)
        trees = np.searchsorted(ends, changed, side="right")
        places = trees, changed - (ends - self.sizes)[trees], leaves[changed]
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
