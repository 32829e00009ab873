"""Margins between pairs of classes: what Neyman-Pearson classification bounds class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fairconstrained.functions.base import ScalarFunction
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class _ByClass(Term):
    """Sums, class by class, over rows of several scores, less an offset.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The class of each row: which of its scores is its own.
    weights : ndarray of shape (n_rows,)
        Of the rows; those of a class sum to one on the full data.
    classes : ndarray of int of shape (n_outputs,)
        Which classes have an output.
    offset : ndarray of shape (n_outputs,)
        What is subtracted.
    names : sequence of str
        What each output says.
    """

    labels: Array
    weights: Array
    classes: Array
    offset: Array
    names: Sequence[str] = field(default=(), repr=False)

    @property
    def n_rows(self) -> int:
        """The rows of the scores."""
        return len(self.labels)

    @property
    def n_outputs(self) -> int:
        """The number of classes that count."""
        return len(self.classes)

    @property
    def n_statistics(self) -> int:
        """One per output."""
        return len(self.classes)

    @cached_property
    def _rows(self) -> Array:
        """The rows of the classes that count."""
        return np.flatnonzero(np.isin(self.labels, self.classes))

    @cached_property
    def _outputs(self) -> Array:
        """The output that each of these rows belongs to."""
        order = np.argsort(self.classes)
        found = np.searchsorted(self.classes, self.labels[self._rows], sorter=order)
        return order[found]

    def _sums(self, by_row: Array) -> Array:
        """Return the weighted sums of the outputs' rows."""
        weighted = self.weights[self._rows] * by_row
        return np.bincount(self._outputs, weighted, minlength=self.n_outputs)

    def head(self, statistics: Array) -> Array:
        """Return the sums less the offset."""
        return statistics - self.offset

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return `v`."""
        return v

    def gap(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the sums: the losses that the offset bounds."""
        return self.value(scores, auxiliary) + self.offset

    def batch(self, rows: Array, weights: Array | None = None) -> Term:
        """Return the term on some rows; class sizes stay those of the full data."""
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        return self._take(rows, factor)

    def _take(self, rows: Array, factor: Array) -> Term:
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * factor)

    def scaled(self, factor: float) -> Term:
        """Return the term times a factor."""
        return replace(self, weights=factor * self.weights, offset=factor * self.offset)

    def strata(self) -> Array:
        """Return the output that each row belongs to, -1 for none."""
        codes = np.full(self.n_rows, -1)
        codes[self._rows] = self._outputs
        return codes

    def weak_curvature(self) -> Array:
        """Return zeros unless a subclass bends down."""
        return np.zeros(self.n_rows)


@dataclass(frozen=True, eq=False)
class PairwiseMargins(_ByClass):
    r"""How far rows of a class are from being told apart from every other class.

    .. math::
        c_k(S) = \sum_{i:\, y_i = k} v_i \sum_{l \ne k} \phi(S_{ik} - S_{il}) - \kappa_k,
        \qquad \sum_{i:\, y_i = k} v_i = 1,

    for some of the classes k, with scores S of shape (n_rows, n_classes) and phi not increasing.

    Parameters
    ----------
    labels, weights, classes, offset, names
        Rows, their classes, the classes k, and kappa.
    function : ScalarFunction
        phi.

    References
    ----------
    IPC, section 1.1; 3S-Econ, equation (3).
    """

    function: ScalarFunction = field(kw_only=True)

    @property
    def smooth(self) -> bool:
        """Whether phi is."""
        return self.function.smooth

    @property
    def convex(self) -> bool:
        """Whether phi is: the margins are linear in the scores."""
        return self.function.convex and bool(np.all(self.weights >= 0.0))

    @property
    def smoothable(self) -> bool:
        """Whether phi is."""
        return self.function.smoothable

    def smoothed(self, width: float) -> PairwiseMargins:
        """Return the term with phi rounded."""
        return replace(self, function=self.function.smoothed(width))

    def _margins(self, scores: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return S_ik - S_il for the rows that count, and where l = k."""
        rows = self._rows
        own = np.arange(len(rows)), self.labels[rows]
        some = scores if len(rows) == len(scores) else scores[rows]
        return some[own][:, None] - some, own

    def _of_margins(self, scores: Array, name: str) -> tuple[Array, Array, tuple[Array, Array]]:
        """Return margins and a function of them, 0 where l = k."""
        margins, own = self._margins(scores)
        values = getattr(self.function, name)(margins)
        values[own] = 0.0
        return margins, values, own

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the classes' losses and their pullback."""
        margins, own = self._margins(scores)
        value = self.function.value(margins)
        statistics = self._sums(value.sum(axis=1) - value[own])

        def pullback(u: Array) -> tuple[Array, Array]:
            slope = -self.function.derivative(margins, value)
            slope *= (u[self._outputs] * self.weights[self._rows])[:, None]
            slope[own] = 0.0
            slope[own] = -slope.sum(axis=1)
            if len(self._rows) == len(scores):
                return slope, NO_AUXILIARY
            back = np.zeros(scores.shape)
            back[self._rows] = slope
            return back, NO_AUXILIARY

        return statistics, pullback

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return the averages of phi's subgradient error."""
        return self._sums(self._of_margins(scores, "subgradient_error")[1].sum(axis=1))

    def zero_one(self) -> ErrorRates:
        """Return the share of a class's rows that are given to another class."""
        return ErrorRates(self.labels, self.weights, self.classes, self.offset, self.names)

    def convex_parts(self) -> tuple[Term, Term]:
        """Split phi: the margins are linear in the scores."""
        plus, minus = self.function.convex_parts()
        none = np.zeros_like(self.offset)
        return replace(self, function=plus), replace(self, function=minus, offset=none)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SlopesByClass:
        """Return the tangent."""
        margins, values, own = self._of_margins(scores, "value")
        slopes = -self.function.derivative(margins, self.function.value(margins))
        slopes[own] = 0.0
        slopes[own] = -slopes.sum(axis=1)
        full = np.zeros(scores.shape)
        full[self._rows] = slopes
        intercepts = values.sum(axis=1) - (slopes * scores[self._rows]).sum(axis=1)
        offset = self.offset - self._sums(intercepts)
        return SlopesByClass(
            self.labels, self.weights, self.classes, offset, self.names, slopes=full
        )

    def weak_curvature(self) -> Array:
        """Return v_i times phi's downward curvature times K.

        Along a direction d the curvature is that of phi times the sum over l of (d_k - d_l)^2,
        which is at most K times |d|^2.
        """
        bend = np.zeros(self.n_rows)
        down = max(-self.function.curvature[0], 0.0)
        if down:
            n_classes = int(max(self.labels.max(initial=0), self.classes.max(initial=0))) + 1
            bend[self._rows] = n_classes * down * np.abs(self.weights[self._rows])
        return bend


@dataclass(frozen=True, eq=False)
class SlopesByClass(_ByClass):
    """The affine function sum_i v_i <slopes_i, S_i> - offset of the scores: what tangents are.

    Parameters
    ----------
    labels, weights, classes, offset, names
        As for :class:`PairwiseMargins`.
    slopes : ndarray of shape (n_rows, n_classes)
        Of each row.
    """

    slopes: Array = field(kw_only=True)
    smooth = True
    convex = True

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the sums and their pullback."""

        def pullback(u: Array) -> tuple[Array, Array]:
            back = np.zeros(scores.shape)
            weight = u[self._outputs] * self.weights[self._rows]
            back[self._rows] = weight[:, None] * self.slopes[self._rows]
            return back, NO_AUXILIARY

        return self._sums((self.slopes * scores)[self._rows].sum(axis=1)), pullback

    def _take(self, rows: Array, factor: Array) -> Term:
        labels, weights = self.labels[rows], self.weights[rows] * factor
        return replace(self, labels=labels, weights=weights, slopes=self.slopes[rows])

    def zero_one(self) -> SlopesByClass:
        """Return the term itself."""
        return self

    def convex_parts(self) -> tuple[Term, Term]:
        """Return the term and nothing."""
        none = np.zeros_like(self.offset)
        return self, replace(self, slopes=0.0 * self.slopes, offset=none)

    def linearize(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> SlopesByClass:
        """Return the term itself."""
        return self


@dataclass(frozen=True, eq=False)
class ErrorRates(SlopesByClass):
    """The share of every class's rows whose largest score is another class's: decisions."""

    slopes: Array = field(kw_only=True, default_factory=lambda: np.zeros((0, 0)))
    smooth = False
    convex = False

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the error rates; their pullback is zero, as the derivative is."""
        wrong = scores[self._rows].argmax(axis=1) != self.labels[self._rows]
        return self._sums(wrong.astype(float)), lambda u: (np.zeros(scores.shape), NO_AUXILIARY)

    def _take(self, rows: Array, factor: Array) -> Term:
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * factor)

    def zero_one(self) -> ErrorRates:
        """Return the term itself."""
        return self


def class_losses(
    function: ScalarFunction,
    labels: Array,
    sample_weight: Array,
    classes: Sequence[int],
    bounds: Sequence[float],
    names: Sequence[str] = (),
) -> PairwiseMargins:
    """Return the losses of some classes, less their bounds, averaged over the classes' rows.

    Parameters
    ----------
    function : ScalarFunction
        phi, not increasing.
    labels : ndarray of int of shape (n_rows,)
        The classes of the rows, each of them with a row at least.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows, > 0.
    classes : sequence of int
        Which classes have an output.
    bounds : sequence of float
        What is subtracted from each.
    names : sequence of str
        What each output says.
    """
    weights = sample_weight / np.bincount(labels, sample_weight)[labels]
    return PairwiseMargins(
        labels, weights, np.array(classes, dtype=int), np.array(bounds, dtype=float), names,
        function=function,
    )  # fmt: skip
