"""Models: how weights become scores, and how weights on scores become gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from fairconstrained.utils.typing import Array

_BLOCK = 1 << 16  # entries of X that are converted at a time: a block fits into the cache


def _row_blocks(X: Array) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield slice(start, start + step)


@dataclass(frozen=True, eq=False)
class LinearModel:
    r"""Scores :math:`S = (X - 1 c^\top) \mathrm{diag}(q)^{-1} W^\top + 1 b^\top`.

    The shift c and the scale q (see :func:`spread`) change the units of the variables, not the
    model; they are applied to the weights, so that X is neither copied nor made dense. Where X is
    sparse its transpose is kept: the backward pass then costs what the forward pass does.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        The features, float64 or float32. float32 rows are converted block by block, so that scores
        and gradients have double precision while X keeps its size.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    n_outputs : int, default=1
        How many scores a row has; with one the scores have shape (n_rows,).
    shift, scale : ndarray of shape (n_features,) or None
        c and q; None stands for zeros and ones.
    full_rows : int or None
        The rows of the whole data when `X` is a batch of them.
    mean_squares : ndarray of shape (n_features,) or None
        The mean squares of the features after shift and scale, if known: solvers that can make use
        of it work in units in which the variables are of one size.

    Notes
    -----
    The variables are the coefficients, output by output, followed by the intercepts.
    """

    X: Any
    fit_intercept: bool = True
    n_outputs: int = 1
    shift: Array | None = None
    scale: Array | None = None
    full_rows: int | None = None
    mean_squares: Array | None = None

    linear = True

    @cached_property
    def _transpose(self) -> Any:
        """The transpose of a sparse X: as CSR, unless it is a batch that is used a few times."""
        return self.X.T if self.full_rows else self.X.T.tocsr()

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def n_coefficients(self) -> int:
        """The number of coefficients, without the intercepts."""
        return int(self.X.shape[1]) * self.n_outputs

    @property
    def n_parameters(self) -> int:
        """The number of variables, intercepts included."""
        return self.n_coefficients + self.n_outputs * self.fit_intercept

    @property
    def sizes(self) -> Array:
        """The mean square of what each variable multiplies, (n_parameters,); 1 if not known."""
        out = np.ones(self.n_parameters)
        if self.mean_squares is not None:
            out[: self.n_coefficients] = np.tile(self.mean_squares, self.n_outputs)
        return out

    def _split(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients in the units of X (n_outputs, n_features) and intercepts."""
        coef = w[: self.n_coefficients].reshape(self.n_outputs, -1)
        if self.scale is not None:
            coef = coef / self.scale
        intercept = w[self.n_coefficients :] if self.fit_intercept else np.zeros(self.n_outputs)
        if self.shift is not None:
            intercept = intercept - coef @ self.shift
        return coef, intercept

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) for rows in the units of X.

        Parameters
        ----------
        w : ndarray of shape (n_parameters,)
            The variables.

        Returns
        -------
        coef : ndarray of shape (n_outputs, n_features)
        intercept : ndarray of shape (n_outputs,)
        """
        coef, intercept = self._split(w)
        return np.array(coef), np.array(intercept)

    def variables(self, coef: Array, intercept: Array) -> Array:
        """Return the variables that give these coefficients and intercepts (for warm starts)."""
        intercept = np.array(intercept, dtype=float)
        if self.shift is not None:
            intercept = intercept + coef @ self.shift
        scaled = coef if self.scale is None else coef * self.scale
        return np.concatenate([np.ravel(scaled), intercept[: self.n_outputs * self.fit_intercept]])

    def scores(self, w: Array) -> Array:
        """Return the scores, (n_rows,) or (n_rows, n_outputs): one forward pass."""
        coef, intercept = self._split(w)
        if self.X.dtype == np.float32 and not sp.issparse(self.X):
            out = np.empty((self.n_rows, self.n_outputs))
            for rows in _row_blocks(self.X):
                out[rows] = self.X[rows].astype(float) @ coef.T
        else:
            out = self.X @ (coef[0] if self.n_outputs == 1 else coef.T)
        out = out.reshape(self.n_rows, self.n_outputs)
        out += intercept
        return out[:, 0] if self.n_outputs == 1 else out

    def vjp(self, w: Array, v: Array) -> Array:
        """Return the gradient of sum(v * scores(w)) with respect to w: one backward pass.

        Parameters
        ----------
        w : ndarray of shape (n_parameters,)
            The variables (a linear model's gradient does not depend on them).
        v : ndarray of the shape of the scores
            The weights of the scores.
        """
        if sp.issparse(self.X):
            back = self._transpose @ v
        elif self.X.dtype == np.float32:
            back = sum(self.X[rows].T.astype(float) @ v[rows] for rows in _row_blocks(self.X))
        else:
            back = self.X.T @ v
        back = back.reshape(-1, self.n_outputs).T
        total = np.atleast_1d(v.sum(axis=0))
        if self.shift is not None:
            back = back - np.outer(total, self.shift)
        if self.scale is not None:
            back = back / self.scale
        return np.concatenate([back.ravel(), total] if self.fit_intercept else [back.ravel()])

    def on(self, X: Any) -> LinearModel:
        """Return the model of other rows: the same variables in the same units.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_other_rows, n_features)
            The rows, with the same columns.
        """
        return replace(self, X=X, full_rows=None)

    def batch(self, rows: Array) -> LinearModel:
        """Return the model of these rows only."""
        return replace(self, X=self.X[rows], full_rows=self.full_rows or self.n_rows)

    def curvature(self, weights: Array, *, n_iter: int = 20) -> float:
        r"""Return an upper estimate of :math:`\lambda_{\max}(\tilde X^\top \mathrm{diag}(d) X~)`.

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            The row weights d >= 0.
        n_iter : int, default=20
            Power iterations; the last Rayleigh quotient is enlarged by 10 per cent.
        """
        if not np.any(weights):
            return 0.0
        shape = (self.n_rows, 1) if self.n_outputs > 1 else (self.n_rows,)
        v = np.random.default_rng(0).standard_normal(self.n_parameters)
        value = 0.0
        for _ in range(n_iter):
            v /= np.linalg.norm(v)
            forward = self.scores(v)
            image = self.vjp(v, weights.reshape(shape) * forward)
            value = float(v @ image)
            if not np.any(image):
                return 0.0
            v = image
        return 1.1 * value


@dataclass(frozen=True)
class Spread:
    """What is known of each feature: its weighted mean and variance, and its scale.

    Attributes
    ----------
    mean, variance, scale : ndarray of shape (n_features,)
        See :func:`spread`.
    """

    mean: Array
    variance: Array
    scale: Array


def spread(X: Any, sample_weight: Array) -> Spread:
    r"""Return mean, variance and scale of each feature, the scale being the solvers' unit.

    The scale of a column is the distance of its two values when it has just two (so that 0/1
    columns keep their units), its standard deviation otherwise (so that standardised columns keep
    theirs), and the size of its value when it is constant (1 if that is zero): Gelman's (2008) rule
    for putting inputs on one scale, without his factor 2. A column has two values exactly when its
    variance meets the Bhatia-Davis bound (max - mean)(mean - min).

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        The features.
    sample_weight : ndarray of shape (n_rows,)
        The weights of the rows, > 0.

    References
    ----------
    A. Gelman, "Scaling regression inputs by dividing by two standard deviations", Statistics in
    Medicine 27 (2008).
    """
    low, high = _range(X)
    mean, variance = _mean_and_variance(X, sample_weight)
    reach = high - low
    scale = np.sqrt(variance)
    bound = (high - mean) * (mean - low)
    rounding = np.sqrt(np.finfo(X.dtype).eps)
    two_values = np.abs(bound - variance) <= rounding * bound
    scale = np.where(two_values, reach, scale)
    constant = reach <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    scale = np.where(constant, np.abs(high), scale)
    scale = np.where(scale > 0, scale, 1.0)
    return Spread(mean, variance, scale)


def _range(X: Any) -> tuple[Array, Array]:
    """Return the minimum and the maximum of every column."""
    if isinstance(X, np.ndarray):
        return X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    np.minimum.at(low, X.indices, X.data)
    np.maximum.at(high, X.indices, X.data)
    has_zeros = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    low[has_zeros] = np.minimum(low[has_zeros], 0.0)
    high[has_zeros] = np.maximum(high[has_zeros], 0.0)
    return low, high


def _mean_and_variance(X: Any, sample_weight: Array) -> tuple[Array, Array]:
    """Return the weighted mean and the weighted variance of every column."""
    if not isinstance(X, np.ndarray):
        weights = sample_weight.astype(X.dtype)
        mean, variance = mean_variance_axis(X, axis=0, weights=weights)
        return mean.astype(float), variance.astype(float)
    total = sample_weight.sum()
    mean = np.zeros(X.shape[1])
    for rows in _row_blocks(X):
        mean += sample_weight[rows] @ X[rows].astype(float)
    mean /= total
    variance = np.zeros(X.shape[1])
    for rows in _row_blocks(X):
        variance += sample_weight[rows] @ (X[rows].astype(float) - mean) ** 2
    return mean, variance / total
