"""Margins between pairs of classes, class by class: the terms of Neyman-Pearson classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.affine import FunctionAverages
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Shardable
from fairconstrained.terms.head import AffineHead
from fairconstrained.utils.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class _ByClass(AffineHead, Shardable):
    r"""Affine functions :math:`R\, r + d - b` of sums over the rows of a class.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The class of each row, the column of its own score.
    weights : ndarray of shape (n_rows,)
        The weights of the rows, >= 0; those of a class sum to one on the full data.
    classes : ndarray of int of shape (n_classes_used,)
        The classes that have a statistic each.
    offset : ndarray of shape (n_outputs,)
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
    classes: Array
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)
    combination: Matrix = field(default=None, kw_only=True, repr=False)  # type: ignore[assignment]
    constant: Array | float = field(default=0.0, kw_only=True)

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return len(self.labels)

    @property
    def n_statistics(self) -> int:
        """The number of classes used."""
        return len(self.classes)

    @cached_property
    def _rows(self) -> Array:
        """The rows of the classes used."""
        return np.flatnonzero(np.isin(self.labels, self.classes))

    @cached_property
    def _positions(self) -> Array:
        """The position among the classes used of the class of each of these rows."""
        order = np.argsort(self.classes)
        found = np.searchsorted(self.classes, self.labels[self._rows], sorter=order)
        return order[found]

    def _sums(self, by_row: Array) -> Array:
        """Return the weighted sums over the rows of each class."""
        weighted = self.weights[self._rows] * by_row
        return np.bincount(self._positions, weighted, minlength=self.n_statistics)

    def take(self, rows: Array, weights: Array) -> Self:
        """Return the term on some rows; class sizes stay those of the full data."""
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * weights)

    def strata(self) -> Array:
        """Return the position of the class of each row, -1 for classes that are not used."""
        codes = np.full(self.n_rows, -1)
        codes[self._rows] = self._positions
        return codes


@dataclass(frozen=True, eq=False)
class PairwiseMargins(_ByClass, FunctionAverages):
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

    def _margins(self, scores: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return S_ik - S_il for the rows of the classes used, and where l = k."""
        rows = self._rows
        own = np.arange(len(rows)), self.labels[rows]
        some = scores if len(rows) == len(scores) else scores[rows]
        return some[own][:, None] - some, own

    def _of_margins(self, scores: Array, name: str) -> tuple[Array, Array, tuple[Array, Array]]:
        """Return margins and a function of them, 0 where l = k."""
        margins, own = self._margins(scores)
        values = getattr(self.function, name)(margins)
        values[own] = 0.0
        values[:, self._absent] = 0.0
        return margins, values, own

    @property
    def _absent(self) -> list[int]:
        """The columns that no sum contains."""
        return list(self.left_out)

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the classes' losses and their pullback."""
        margins, own = self._margins(scores)
        value = self.function.value(margins)
        counted = value.sum(axis=1) - value[own]
        for column in self._absent:
            counted = counted - np.where(own[1] == column, 0.0, value[:, column])
        statistics = self._sums(counted)

        def pullback(u: Array) -> tuple[Array, Array]:
            slope = -self.function.derivative(margins, value)
            slope *= (u[self._positions] * self.weights[self._rows])[:, None]
            slope[own] = 0.0
            slope[:, self._absent] = 0.0
            slope[own] = -slope.sum(axis=1)
            if len(self._rows) == len(scores):
                return slope, NO_AUXILIARY
            back = np.zeros(scores.shape)
            back[self._rows] = slope
            return back, NO_AUXILIARY

        return statistics, pullback

    def _average_errors(self, scores: Array, auxiliary: Array) -> Array:
        return self._sums(self._of_margins(scores, "subgradient_error")[1].sum(axis=1))

    def zero_one(self) -> ErrorRates:
        """Return the share of the rows of each class that are predicted to be of another class."""
        return ErrorRates(
            self.labels,
            self.weights,
            self.classes,
            self.offset,
            self.names,
            combination=self.combination,
            constant=self.constant,
        )

    def weak_curvature(self) -> Array:
        """Return v_i times the downward curvature of R phi times K.

        Along a direction d the curvature is that of phi times the sum over l of (d_k - d_l)^2,
        which is at most K times |d|^2.
        """
        bend = np.zeros(self.n_rows)
        if not self.convex:
            n_classes = int(max(self.labels.max(initial=0), self.classes.max(initial=0))) + 1
            by_row = self._largest_bend()[self._positions]
            bend[self._rows] = n_classes * by_row * self.weights[self._rows]
        return bend


@dataclass(frozen=True, eq=False)
class ErrorRates(_ByClass):
    """The share of the rows of each class whose largest score is that of another class."""

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the error rates; their pullback is zero, as the derivative is."""
        wrong = scores[self._rows].argmax(axis=1) != self.labels[self._rows]
        return self._sums(wrong.astype(float)), lambda u: (np.zeros(scores.shape), NO_AUXILIARY)

    def zero_one(self) -> ErrorRates:
        """Return the term: it has no surrogate."""
        return self


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
