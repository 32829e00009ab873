"""Losses of several classes: multinomial, of margins between classes, and shares of errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.terms.affine import FunctionAverages
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Shardable
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.head import AffineHead
from fairconstrained.utils.typing import Array, Matrix

Losses = tuple[Array, Callable[[Array], Array]]


@dataclass(frozen=True, eq=False)
class ClassTerm(AffineHead, Shardable):
    r"""Affine functions :math:`R\, r + d - b` of weighted sums of losses of rows.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The class of each row, the column of its own score.
    weights : ndarray of shape (n_rows,)
        The weights of the rows, >= 0; those of a sum are one in total on the full data.
    classes : ndarray of int of shape (n_classes_used,) or None, default=None
        The classes that have a sum over their rows each; None for one sum over all rows.
    offset : ndarray of shape (n_outputs,), default=0
        b, the tolerance.
    names : sequence of str
        A description of each output.
    combination : sparse matrix of shape (n_outputs, n_classes_used) or None, default=None
        R; None is the identity.
    constant : ndarray of shape (n_outputs,) or float, default=0.0
        d, the constant part of the gap.
    """

    labels: Array
    weights: Array
    classes: Array | None = None
    offset: Array = field(default_factory=lambda: np.zeros(1))
    names: Sequence[str] = field(default=("loss",), repr=False)
    combination: Matrix = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]
    constant: Array | float = field(default=0.0, kw_only=True)

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return len(self.labels)

    @property
    def n_statistics(self) -> int:
        """The number of sums."""
        return 1 if self.classes is None else len(self.classes)

    @cached_property
    def _rows(self) -> Array:
        """The rows of the classes used."""
        used = self.classes is None or np.isin(self.labels, self.classes)
        return np.flatnonzero(np.broadcast_to(used, self.n_rows))

    @cached_property
    def _positions(self) -> Array:
        """The position of the sum that each of these rows is in."""
        if self.classes is None:
            return np.zeros(self.n_rows, dtype=int)
        order = np.argsort(self.classes)
        found = np.searchsorted(self.classes, self.labels[self._rows], sorter=order)
        return order[found]

    def _sums(self, by_row: Array) -> Array:
        """Return the weighted sums over the rows of each class."""
        weighted = self.weights[self._rows] * by_row
        return np.bincount(self._positions, weighted, minlength=self.n_statistics)

    def _of_rows(self, scores: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return the scores of the rows of the classes used, and where their own ones are."""
        rows = self._rows
        some = scores if len(rows) == len(scores) else scores[rows]
        return some, (np.arange(len(rows)), self.labels[rows])

    @abstractmethod
    def _losses(self, scores: Array, own: tuple[Array, Array]) -> Losses:
        """Return the losses of rows, and what maps weights of the losses to those of the scores."""

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the sums of losses and their pullback."""
        losses, slopes = self._losses(*self._of_rows(scores))

        def pullback(u: Array) -> tuple[Array, Array]:
            of_rows = slopes(u[self._positions] * self.weights[self._rows])
            if len(self._rows) == len(scores):
                return of_rows, NO_AUXILIARY
            back = np.zeros(scores.shape)
            back[self._rows] = of_rows
            return back, NO_AUXILIARY

        return self._sums(losses), pullback

    def zero_one(self) -> ErrorRates:
        """Return the share of the rows of each class that are predicted to be of another class."""
        return ErrorRates(
            self.labels, self.weights, self.classes, self.offset, self.names,
            combination=self.combination, constant=self.constant,
        )  # fmt: skip

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; class sizes stay those of the full data."""
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * weights)

    def strata(self) -> Array:
        """Return the classes of the rows, -1 for those that are not used."""
        if self.classes is None:
            return self.labels
        codes = np.full(self.n_rows, -1)
        codes[self._rows] = self._positions
        return codes


class MultinomialLoss(ClassTerm):
    r"""The weighted mean of the multinomial logistic loss; parameters of :class:`ClassTerm`.

    .. math:: \sum_i v_i \Bigl(\log \sum_k e^{s_{ik}} - s_{i, y_i}\Bigr), \qquad \sum_i v_i = 1.
    """

    smooth = True
    convex = True

    def _losses(self, scores: Array, own: tuple[Array, Array]) -> Losses:
        total = logsumexp(scores, axis=1)

        def slopes(weights: Array) -> Array:
            back = np.exp(scores - total[:, None])
            back[own] -= 1.0
            back *= weights[:, None]
            return back

        return total - scores[own], slopes


class ErrorRates(ClassTerm):
    """The share of the rows of each class, or of all, whose largest score is another class's."""

    def _losses(self, scores: Array, own: tuple[Array, Array]) -> Losses:
        wrong = scores.argmax(axis=1) != own[1]
        return wrong.astype(float), lambda weights: np.zeros(scores.shape)

    @cached_property
    def by_class(self) -> tuple[CellMeans, ...]:
        """For every class, the share of all rows that are of this class and predicted so."""
        n_classes = int(self.labels.max()) + 1
        return tuple(
            CellMeans(
                sp.csc_array((self.weights * (self.labels == k))[None, :]),
                Indicator(), np.ones((1, 1)), np.zeros(1),
            )
            for k in range(n_classes)
        )  # fmt: skip

    def outputs_at(self, shares: Sequence[Array]) -> Array:
        """Return the outputs for shares of predictions, (n_outputs, n_points).

        Parameters
        ----------
        shares : sequence of ndarray of shape (1, n_points)
            The averages of `by_class`.
        """
        wrong = self.weights.sum() - sum(one[0] for one in shares)
        level = self.head(np.zeros(1))
        return np.asarray(level[:, None] + (self.head(np.ones(1)) - level)[:, None] * wrong)


@dataclass(frozen=True, eq=False)
class PairwiseMargins(ClassTerm, FunctionAverages):
    r"""The mean loss of the margins between a class and every other class.

    .. math::
        r_k(S) = \sum_{i:\, y_i = k} v_i \sum_{l \ne k} \phi(S_{ik} - S_{il}),
        \qquad c = R\, r + d - b, \qquad \sum_{i:\, y_i = k} v_i = 1,

    for some of the classes k, with scores S of shape (n_rows, n_classes) and phi not increasing.

    Parameters
    ----------
    labels, weights, classes, offset, names, combination, constant
        The classes and weights of the rows, the classes k, b, the names, R and d.
    function : ScalarFunction
        phi.
    left_out : tuple of int, default=()
        Classes l that the sums do not contain. The papers' problem leaves out the class that has
        priority, whose loss is the objective: its constraints sum over the other classes only.

    References
    ----------
    IPC, section 1.1; 3S-Econ, equation (3).
    """

    function: ScalarFunction = field(kw_only=True)
    left_out: tuple[int, ...] = field(default=(), kw_only=True)

    def _with_function(self, function: ScalarFunction) -> PairwiseMargins:
        return replace(self, function=function)

    def _counted(self, values: Array, own: tuple[Array, Array]) -> Array:
        """Make values for pairs of classes 0 where no sum contains them."""
        values[own] = 0.0
        values[:, list(self.left_out)] = 0.0
        return values

    def _losses(self, scores: Array, own: tuple[Array, Array]) -> Losses:
        margins = scores[own][:, None] - scores
        value = self.function.value(margins)

        def slopes(weights: Array) -> Array:
            slope = self._counted(-self.function.derivative(margins, value), own)
            slope *= weights[:, None]
            slope[own] = -slope.sum(axis=1)
            return slope

        return self._counted(value.copy(), own).sum(axis=1), slopes

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        some, own = self._of_rows(scores)
        errors = self.function.subgradient_error(some[own][:, None] - some)
        return self._sums(self._counted(errors, own).sum(axis=1))

    def weak_curvature(self) -> Array:
        """Return v_i times the downward curvature of R phi times K.

        Along a direction d the curvature is that of phi times the sum over l of (d_k - d_l)^2,
        which is at most K times |d|^2.
        """
        bend = np.zeros(self.n_rows)
        if not self.convex:
            known = self.labels if self.classes is None else np.append(self.classes, self.labels)
            n_classes = int(known.max(initial=0)) + 1
            by_row = self._largest_bend()[self._positions]
            bend[self._rows] = n_classes * by_row * self.weights[self._rows]
        return bend


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
    """Return the mean losses of some classes minus their bounds.

    Parameters
    ----------
    function : ScalarFunction
        phi, not increasing.
    labels : ndarray of int of shape (n_rows,)
        The classes of the rows; none is empty.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows, > 0.
    classes : sequence of int
        The classes that have an output.
    bounds : sequence of float
        The bounds on their mean losses.
    names : sequence of str
        A description of each output.
    left_out : sequence of int, default=()
        Classes that no row is compared with, see :class:`PairwiseMargins`.
    """
    weights = sample_weight / np.bincount(labels, sample_weight)[labels]
    return PairwiseMargins(
        labels, weights, np.array(classes, dtype=int), np.array(bounds, dtype=float), names,
        function=function, left_out=tuple(left_out),
    )  # fmt: skip


def correct_share(labels: Array, sample_weight: Array) -> ErrorRates:
    """Return the share of rows whose largest score is that of their class: one less the error rate.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The classes of the rows.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows.
    """
    weights = sample_weight / sample_weight.sum()
    return ErrorRates(labels, weights, combination=np.array([[-1.0]]), constant=1.0)
