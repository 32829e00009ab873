"""Models of given rows, whose parameters are their scores, or thresholds for given scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from fairconstrained.models.base import Model, Pullback, Scores
from fairconstrained.utils.typing import Array, Matrix


@dataclass(eq=False)
class ScoreSpace:
    """The rows whose scores are variables: the training rows, and rows that constraints bring.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.scores import ScoreSpace
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
    >>> from fairconstrained.models.scores import ScoreModel, ScoreSpace
    >>> model = ScoreModel(ScoreSpace([np.zeros((3, 1))]), np.array([0, 2]))
    >>> scores, pullback = model.forward(np.array([0.5, -1.0, 2.0]))
    >>> scores, pullback(np.array([1.0, 3.0]))
    (array([0.5, 2. ]), array([1., 0., 3.]))
    """

    space: ScoreSpace  # all rows
    rows: Array  # the positions of this model's rows, (n_rows,)

    linear: ClassVar[bool] = True

    @property
    def n_parameters(self) -> int:
        """The number of scores of all rows."""
        return self.space.n_rows

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
    >>> from fairconstrained.models.scores import ThresholdModel
    >>> model = ThresholdModel(np.array([0.2, 0.7, 0.9]), np.array([0, 1, 1]), 2, np.arange(3))
    >>> scores, pullback = model.forward(np.array([0.1, 0.8]))
    >>> scores.round(2), pullback(np.ones(3))
    (array([ 0.1, -0.1,  0.1]), array([-1., -2.]))
    """

    given: Array  # the scores r of all rows, (n_all_rows,)
    codes: Array  # which threshold each row has, (n_all_rows,)
    n_thresholds: int  # how many thresholds there are
    rows: Array  # the positions of this model's rows, (n_rows,)

    @property
    def n_parameters(self) -> int:
        """The number of thresholds."""
        return self.n_thresholds

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return the scores minus the thresholds, and minus the sums of weights by threshold."""
        codes, n = self.codes[self.rows], self.n_thresholds

        def pullback(v: Array) -> Array:
            return -np.bincount(codes, v, minlength=n)

        return np.asarray(self.given[self.rows] - w[codes]), pullback

    def offset(self) -> Array:
        """Return minus ones: all scores move together."""
        return -np.ones(self.n_thresholds)
