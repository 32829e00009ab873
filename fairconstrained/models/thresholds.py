"""Models whose scores are given and whose parameters are thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.models.base import Model, Pullback, Scores
from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class ThresholdModel(Model):
    r"""Given scores minus thresholds, :math:`s_i(\theta) = r_i - \theta_{z_i}`.

    They are affine, not linear: scores at thresholds of 0 are not 0. A decision is positive where
    the score is above the threshold of its row. The features of the rows are their positions in the
    arrays of given scores and codes, so that the models of parts of the rows (`on`, `batch`) have
    the same parameters.

    Parameters
    ----------
    given : ndarray of shape (n_all_rows,)
        The scores r of all rows.
    codes : ndarray of int of shape (n_all_rows,)
        Which threshold each row has.
    n_thresholds : int
        How many thresholds there are.
    rows : ndarray of int of shape (n_rows,)
        The positions of this model's rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.thresholds import ThresholdModel
    >>> model = ThresholdModel(np.array([0.2, 0.7, 0.9]), np.array([0, 1, 1]), 2, np.arange(3))
    >>> scores, pullback = model.forward(np.array([0.1, 0.8]))
    >>> scores.round(2), pullback(np.ones(3))
    (array([ 0.1, -0.1,  0.1]), array([-1., -2.]))
    """

    given: Array
    codes: Array
    n_thresholds: int
    rows: Array

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

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

    def batch(self, rows: Array) -> ThresholdModel:
        """Return the model of these rows only."""
        return replace(self, rows=self.rows[rows])

    def on(self, X: Matrix) -> ThresholdModel:
        """Return the model of other rows.

        Parameters
        ----------
        X : ndarray of int of shape (n_other_rows,)
            Their positions.
        """
        return replace(self, rows=np.asarray(X))
