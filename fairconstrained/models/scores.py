"""Models whose parameters are the scores themselves, for methods that fit trees to gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from fairconstrained.models.base import Model, Pullback, Scores
from fairconstrained.utils.typing import Array, Matrix


@dataclass(eq=False)
class ScoreSpace:
    """The rows whose scores are variables: the training rows, and rows that constraints bring.

    Attributes
    ----------
    blocks : list of ndarray or CSR
        The features of the rows, the training rows first.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.scores import ScoreSpace
    >>> space = ScoreSpace([np.zeros((3, 2))])
    >>> space.add(np.ones((2, 2))).ravel(), space.n_rows
    (array([3, 4]), 5)
    """

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


@dataclass(frozen=True, eq=False)
class ScoreModel(Model):
    r"""The model :math:`s(w) = w`: the parameters are the scores of the rows.

    With it, :meth:`~fairconstrained.problem.evaluation.Evaluation.gradient` is the gradient of the
    Lagrangian with respect to the scores, which is what a boosting method fits its next tree to.
    The features of its rows are positions in a :class:`ScoreSpace`, so that the models of parts of
    the rows (`on`, `batch`) have the same parameters.

    Parameters
    ----------
    space : ScoreSpace
        All rows.
    rows : ndarray of int of shape (n_rows,)
        The positions of this model's rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.scores import ScoreModel, ScoreSpace
    >>> model = ScoreModel(ScoreSpace([np.zeros((3, 1))]), np.array([0, 2]))
    >>> scores, pullback = model.forward(np.array([0.5, -1.0, 2.0]))
    >>> scores, pullback(np.array([1.0, 3.0]))
    (array([0.5, 2. ]), array([1., 0., 3.]))
    """

    space: ScoreSpace
    rows: Array

    linear: ClassVar[bool] = True

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

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

    def batch(self, rows: Array) -> ScoreModel:
        """Return the model of these rows only."""
        return replace(self, rows=self.rows[rows])

    def on(self, X: Matrix) -> ScoreModel:
        """Return the model of other rows.

        Parameters
        ----------
        X : ndarray of int of shape (n_other_rows, 1)
            Their positions in the space.
        """
        return replace(self, rows=np.asarray(X)[:, 0])
