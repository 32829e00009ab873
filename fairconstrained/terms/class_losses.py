"""Losses of several classes: multinomial, of margins between classes, and shares of errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import logsumexp

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.base import NO_AUXILIARY, Pullback
from fairconstrained.terms.cell_means import OnCells, cell_matrix
from fairconstrained.terms.head import FunctionAverages
from fairconstrained.utils.typing import Array, SparseMatrix

Losses = tuple[Array, Callable[[Array], Array]]


@dataclass(frozen=True, eq=False)
class ClassTerm(OnCells):
    r"""Affine functions :math:`R\, r + d - b` of weighted sums of losses of rows.

    Parameters
    ----------
    cells : CSC of shape (n_sums, n_rows)
        The weights of the rows in each sum, >= 0, one in total on the full data. A sum is over the
        rows of a class, or over all rows.
    labels : ndarray of int of shape (n_rows,)
        The class of each row, the column of its own score.
    combination, offset, names, constant
        See :class:`~fairconstrained.terms.head.AffineHead`.
    """

    labels: Array

    shardable = True

    @cached_property
    def _rows(self) -> Array | slice:
        """The rows that are in a sum."""
        inside = np.diff(self.cells.indptr) > 0
        return slice(None) if inside.all() else np.flatnonzero(inside)

    @cached_property
    def _weights(self) -> SparseMatrix:
        """The weights of these rows."""
        return self.cells[:, self._rows]

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """Where the scores of these rows for their classes are."""
        labels = self.labels[self._rows]
        return np.arange(len(labels)), labels

    @abstractmethod
    def _losses(self, scores: Array) -> Losses:
        """Return the losses of rows, and what maps weights of the losses to those of the scores."""

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the sums of losses and their pullback."""
        losses, slopes = self._losses(scores[self._rows])

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(scores.shape)
            back[self._rows] = slopes(self._weights.T @ u)
            return back, NO_AUXILIARY

        return self._weights @ losses, pullback

    def zero_one(self) -> ErrorRates:
        """Return the share of the rows of each class that are predicted to be of another class."""
        return ErrorRates(**{each.name: getattr(self, each.name) for each in fields(ClassTerm)})

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; class sizes stay those of the full data."""
        return replace(super().take(rows, weights), labels=self.labels[rows])

    def strata(self) -> Array:
        """Return the classes of the rows, -1 for those that are in no sum."""
        codes = np.full(self.n_rows, -1)
        codes[self._rows] = self.labels[self._rows]
        return codes


class MultinomialLoss(ClassTerm):
    r"""The weighted mean of the multinomial logistic loss; parameters of :class:`ClassTerm`.

    .. math:: \sum_i v_i \Bigl(\log \sum_k e^{s_{ik}} - s_{i, y_i}\Bigr), \qquad \sum_i v_i = 1.
    """

    smooth = True
    convex = True

    def _losses(self, scores: Array) -> Losses:
        total = logsumexp(scores, axis=1)

        def slopes(weights: Array) -> Array:
            back = np.exp(scores - total[:, None])
            back[self._own] -= 1.0
            back *= weights[:, None]
            return back

        return total - scores[self._own], slopes


class ErrorRates(ClassTerm):
    """The share of the rows of each class, or of all, whose largest score is another class's."""

    def _losses(self, scores: Array) -> Losses:
        wrong = scores.argmax(axis=1) != self._own[1]
        return wrong.astype(float), lambda weights: np.zeros(scores.shape)


@dataclass(frozen=True, eq=False)
class PairwiseMargins(ClassTerm, FunctionAverages):
    r"""The mean loss of the margins between a class and every other class.

    .. math::
        r_k(S) = \sum_{i:\, y_i = k} v_i \sum_{l \ne k} \phi(S_{ik} - S_{il}),
        \qquad c = R\, r + d - b, \qquad \sum_{i:\, y_i = k} v_i = 1,

    for some of the classes k, with scores S of shape (n_rows, n_classes) and phi not increasing.

    Parameters
    ----------
    cells, labels, combination, offset, names, constant
        See :class:`ClassTerm`: the weights v of the rows in the sum of each class k, their classes.
    function : ScalarFunction
        phi.
    left_out : tuple of int, default=()
        Classes l that the sums do not contain. The papers' problem leaves out the class that has
        priority, whose loss is the objective: its constraints sum over the other classes only.

    References
    ----------
    IPC, section 1.1; 3S-Econ, equation (3).
    """

    function: ScalarFunction
    left_out: tuple[int, ...] = ()

    def _counted(self, values: Array) -> Array:
        """Make values for pairs of classes 0 where no sum contains them."""
        values[self._own] = 0.0
        values[:, list(self.left_out)] = 0.0
        return values

    def _losses(self, scores: Array) -> Losses:
        margins = scores[self._own][:, None] - scores
        value = self.function.value(margins)

        def slopes(weights: Array) -> Array:
            slope = self._counted(-self.function.derivative(margins, value))
            slope *= weights[:, None]
            slope[self._own] = -slope.sum(axis=1)
            return slope

        return self._counted(value.copy()).sum(axis=1), slopes

    def _bend(self) -> Array:
        """Return v_i times the downward curvature of R phi times K.

        Along a direction d the curvature is that of phi times the sum over l of (d_k - d_l)^2,
        which is at most K times |d|^2.
        """
        n_classes = max(int(self.labels.max(initial=0)), self.n_statistics) + 1
        return n_classes * (self.cells.T @ self._largest_bend())


def class_losses(
    function: ScalarFunction,
    labels: Array,
    sample_weight: Array,
    classes: Sequence[int],
    bounds: Sequence[float],
    names: Sequence[str] = (),
    *,
    left_out: Sequence[int] = (),
) -> PairwiseMargins:
    """Return the mean losses of some classes minus their bounds."""
    codes = np.full(max(int(labels.max()), *classes) + 1, -1)
    codes[np.array(classes, dtype=int)] = np.arange(len(classes))
    cells = cell_matrix(codes[labels], sample_weight, len(classes))
    return PairwiseMargins(
        cells, labels, function, tuple(left_out), offset=np.array(bounds, dtype=float), names=names
    )


def correct_share(labels: Array, sample_weight: Array) -> ErrorRates:
    """Return the share of rows whose largest score is that of their class: 1 - error rate."""
    cells = cell_matrix(np.zeros(len(labels), dtype=int), sample_weight, 1)
    return ErrorRates(cells, labels, combination=np.array([[-1.0]]), constant=1.0)
