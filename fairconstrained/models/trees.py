"""Models of boosted trees, a coefficient for every leaf or a score for every row; thresholds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.models.linear import LinearModel, Model, Pullback, Scores
from fairconstrained.utils.arrays import Array, Matrix

_LEAST_CURVATURE = 1e-4  # of the largest one, in the preconditioner


@dataclass(frozen=True, eq=False)
class LeafFeatures:
    """The map from features to the indicators of the leaves that a row falls into.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.trees import LeafFeatures
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


@dataclass(frozen=True, eq=False, kw_only=True)
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
    grown : object, default=None
        What the estimator that grew the trees knows of them.
    """

    kind: ClassVar[str] = "model of the same trees"
    fits_features: ClassVar[bool] = True

    features: LeafFeatures
    initial: Array
    curvatures: Array | None = None
    grown: Any = None

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
        squares = np.asarray(columns.power(2).T @ (sample_weight / sample_weight.sum()))
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
        return self.initial.copy()

    def on(self, X: Matrix) -> "LeafModel":
        """Return the model of other rows, of which X are the features, not the leaves."""
        return replace(self, X=self.features(X))


@dataclass(eq=False)
class ScoreSpace:
    """The rows whose scores are variables: the training rows, and rows that constraints bring.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.trees import ScoreSpace
    >>> space = ScoreSpace([np.zeros((3, 2))])
    >>> space.add(np.ones((2, 2))).ravel(), space.n_rows
    (array([3, 4]), 5)
    """

    # the features of the rows, the training rows first
    blocks: list[Any] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """The number of scores."""
        return sum(block.shape[0] for block in self.blocks)

    def add(self, features: Any) -> Array:
        """Add rows, and return their positions as a column, shape (n_new_rows, 1)."""
        start = self.n_rows
        self.blocks.append(features)
        return np.arange(start, self.n_rows)[:, None]


class _OfPositions(Model):
    """A model of rows that are given by their positions, with the same parameters for all of them.

    Attributes
    ----------
    rows : ndarray of int of shape (n_rows,)
        The positions of this model's rows.
    """

    rows: Array

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def batch(self, rows: Array) -> Self:
        """Return the model of these rows only."""
        return replace(self, rows=self.rows[rows])  # type: ignore[type-var]

    def on(self, X: Matrix) -> Self:
        """Return the model of other rows, whose positions are X, in one or two dimensions."""
        return replace(self, rows=np.asarray(X).ravel())  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class ScoreModel(_OfPositions):
    r"""The model :math:`s(w) = w`: the parameters are the scores of the rows.

    With it, :meth:`~fairconstrained.problem.evaluation.Evaluation.gradient` is the gradient of the
    Lagrangian with respect to the scores, which is what a boosting method fits its next tree to.
    The features of its rows are positions in a :class:`ScoreSpace`, so that the models of parts of
    the rows (`on`, `batch`) have the same parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.trees import ScoreModel, ScoreSpace
    >>> model = ScoreModel(ScoreSpace([np.zeros((3, 1))]), np.array([0, 2]))
    >>> scores, pullback = model.forward(np.array([0.5, -1.0, 2.0]))
    >>> scores, pullback(np.array([1.0, 3.0]))
    (array([0.5, 2. ]), array([1., 0., 3.]))
    """

    space: ScoreSpace  # all rows
    rows: Array  # the positions of this model's rows, (n_rows,)

    linear: ClassVar[bool] = True

    n_parameters = property(attrgetter("space.n_rows"))

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return the scores of the rows, and the map that puts weights at their positions."""
        n = self.n_parameters
        if np.array_equal(self.rows, np.arange(n)):
            return w, np.asarray

        def pullback(v: Array) -> Array:
            return np.bincount(self.rows, v, minlength=n)

        return np.asarray(w[self.rows]), pullback

    def offset(self) -> Array:
        """Return ones: all scores move together."""
        return np.ones(self.n_parameters)


@dataclass(frozen=True, eq=False)
class ThresholdModel(_OfPositions):
    r"""Given scores minus thresholds, :math:`s_i(\theta) = r_i - \theta_{z_i}`.

    They are affine, not linear: scores at thresholds of 0 are not 0. A decision is positive where
    the score is above the threshold of its row. The features of the rows are their positions in the
    arrays of given scores and codes, so that the models of parts of the rows (`on`, `batch`) have
    the same parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.trees import ThresholdModel
    >>> model = ThresholdModel(np.array([0.2, 0.7, 0.9]), np.array([0, 1, 1]), 2, np.arange(3))
    >>> scores, pullback = model.forward(np.array([0.1, 0.8]))
    >>> scores.round(2), pullback(np.ones(3))
    (array([ 0.1, -0.1,  0.1]), array([-1., -2.]))
    """

    given: Array  # the scores r of all rows, (n_all_rows,)
    codes: Array  # which threshold each row has, (n_all_rows,)
    n_thresholds: int  # how many thresholds there are
    rows: Array  # the positions of this model's rows, (n_rows,)

    n_parameters = property(attrgetter("n_thresholds"))

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return the scores minus the thresholds, and minus the sums of weights by threshold."""
        codes, n = self.codes[self.rows], self.n_thresholds

        def pullback(v: Array) -> Array:
            return -np.bincount(codes, v, minlength=n)

        return np.asarray(self.given[self.rows] - w[codes]), pullback

    def offset(self) -> Array:
        """Return minus ones: all scores move together."""
        return -np.ones(self.n_thresholds)
