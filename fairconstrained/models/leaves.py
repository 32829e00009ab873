"""Sums of trees as linear models: a coefficient for every leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.models.linear import LinearModel
from fairconstrained.utils.typing import Array, Matrix

_LEAST_CURVATURE = 1e-4  # of the largest one, in the preconditioner


@dataclass(frozen=True, eq=False)
class LeafFeatures:
    """The map from features to the indicators of the leaves that a row falls into.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.leaves import LeafFeatures
    >>> features = LeafFeatures(lambda X: np.array([[0, 2], [1, 0]]), np.array([2, 3]))
    >>> features(np.zeros((2, 1))).toarray().astype(int)
    array([[1, 0, 0, 0, 1],
           [0, 1, 1, 0, 0]])
    """

    # from features to the leaf of each row in each tree, an integer array of shape (n_rows,
    # n_trees)
    leaves_of: Callable[[Any], Array]
    sizes: Array  # the number of leaves of each tree, (n_trees,)
    # from features to a score, (n_rows,), that is the first column; None for no such column. It is
    # the score of trees whose leaf values keep their proportions
    base_of: Callable[[Any], Array] | None = None
    # leaf values that keep their proportions within each tree, which then has one column, its
    # output; None for columns of indicators, (n_leaves,)
    outputs: Array | None = None

    def __call__(self, X: Matrix, base_score: Array | None = None) -> sp.csr_array:
        """Return the columns of some rows, CSR with an entry for every tree."""
        n_rows, n_trees, base = X.shape[0], len(self.sizes), self.base_of is not None
        starts = np.append(0, np.cumsum(self.sizes)) + base
        columns = np.zeros((n_rows, base + n_trees), dtype=np.int32)
        values = np.ones((n_rows, base + n_trees))
        leaves = np.asarray(self.leaves_of(X)).reshape(n_rows, n_trees)
        np.add(leaves, starts[:-1], out=columns[:, base:], casting="unsafe")
        n_columns = int(starts[-1])
        if self.outputs is not None:
            values[:, base:] = self.outputs[columns[:, base:] - base]
            columns[:], n_columns = np.arange(base + n_trees), base + n_trees
        if self.base_of is not None:
            values[:, 0] = self.base_of(X) if base_score is None else base_score
        index = np.int32 if columns.size <= np.iinfo(np.int32).max else np.int64
        rows = np.arange(0, columns.size + 1, max(base + n_trees, 1), dtype=index)
        return sp.csr_array((values.ravel(), columns.ravel(), rows), shape=(n_rows, n_columns))


@dataclass(frozen=True, eq=False)
class LeafModel(LinearModel):
    """The scores of given trees as a function of the values of their leaves, and an intercept.

    The scores are linear in the leaf values. Rows are given as raw features (see `on`), and the
    trees find their leaves.

    Parameters
    ----------
    X : CSR of shape (n_rows, n_columns)
        The indicators of the leaves.
    features : LeafFeatures
        Maps the features of other rows to theirs.
    initial : ndarray of shape (n_parameters,)
        The leaf values of the boosted trees and their intercept, from which solvers start.
    curvatures : ndarray of shape (n_parameters,) or None, default=None
        Estimates of the objective's second derivatives in the parameters, for the preconditioner;
        None for the linear model's preconditioner.
    """

    kind: ClassVar[str] = "model of the same trees"

    features: LeafFeatures | None = None
    initial: Array | None = None
    curvatures: Array | None = None

    @classmethod
    def of(
        cls,
        features: LeafFeatures,
        X: Matrix,
        sample_weight: Array,
        initial: Array,
        scores: Array | None = None,
        *,
        curvature: float | None = None,
        alpha: float | Array = 0.0,
        fit_intercept: bool = True,
    ) -> Self:
        """Return the model of some rows, whose features are (n_rows, n_features).

        `initial` has the boosted coefficients of the columns, then the intercept; without
        `fit_intercept` this is no parameter and must be zero. `scores` are those of the boosted
        trees, if they are known. The preconditioner is made of the weights of the rows, the mean
        second derivative of the loss in the scores (`curvature`, > 0, if it is known), and the
        strength of the penalty on the coefficients (`alpha`, a number or one per column).
        """
        columns = features(X, None if scores is None else np.zeros(len(scores)))
        if scores is not None and features.base_of is not None:
            columns.data[:: len(features.sizes) + 1] = scores - initial[-1] - columns @ initial[:-1]
        share = sample_weight / sample_weight.sum()
        squares = np.asarray(columns.power(2).T @ share)
        n_parameters = len(initial) if fit_intercept else len(initial) - 1
        curvatures = None
        if curvature is not None:
            curvatures = np.append(curvature * squares + alpha, curvature)[:n_parameters]
        return cls(
            columns,
            fit_intercept=fit_intercept,
            mean_squares=squares,
            features=features,
            initial=initial[:n_parameters],
            curvatures=curvatures,
        )

    def preconditioner(self) -> Array:
        """Return one over the root of the objective's second derivative in each parameter.

        The penalty has most of it, so that quasi-Newton methods need a third fewer evaluations than
        with the preconditioner of linear models.
        """
        if self.curvatures is None:
            return super().preconditioner()
        largest = float(self.curvatures.max())
        return np.asarray(np.maximum(self.curvatures, _LEAST_CURVATURE * largest) ** -0.5)

    def start(self, random_state: np.random.RandomState) -> Array:
        """Return the boosted leaf values."""
        return np.zeros(self.n_parameters) if self.initial is None else self.initial.copy()

    def on(self, X: Matrix) -> LeafModel:
        """Return the model of other rows, of which X are the features, not the leaves."""
        assert self.features is not None, "made by LeafModel.of"
        return replace(self, X=self.features(X))
