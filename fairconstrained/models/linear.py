"""What a model is, and the linear one: weights become scores, and weights on scores gradients."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self, cast

import numpy as np

from fairconstrained.models.feature_scale import FeatureScale, feature_scale, row_blocks
from fairconstrained.utils.arrays import Array, Matrix, SparseMatrix

Scores = Array
Pullback = Callable[[Array], Array]


class Model(ABC):
    r"""A map from parameters :math:`w` to the scores :math:`s(w)` of some rows.

    This is all that problems and solvers ask of a model. Evaluations own what `forward` returns;
    a model keeps nothing of it.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    n_parameters : int
        The number of parameters, the first entries of a problem's variables.
    linear : bool
        Whether :math:`s(w)` is a linear function of :math:`w`. Convexity of a term carries over to
        the weights only then.
    fits_features : bool
        Whether what its scores are computed from was fitted to the rows as well, as trees are.
    in_memory : bool
        Whether `forward` and `batch` can be called: the rows are in the memory of this process.
    gram_is_cheap : bool
        Whether `gram` can be called and costs no more than a few passes over the rows.
    """

    linear: ClassVar[bool] = False
    fits_features: ClassVar[bool] = False
    in_memory: ClassVar[bool] = True
    gram_is_cheap = False

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of parameters."""

    def start(self, random_state: np.random.RandomState) -> Array:
        """Return the parameters from which solvers start, shape (n_parameters,).

        Zeros by default; a model for which zero is a stationary point draws them.
        """
        return np.zeros(self.n_parameters)

    @abstractmethod
    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        r"""Return the scores :math:`s(w)` of parameters w, and their pullback: one forward pass.

        Scores are (n_rows,) or (n_rows, n_outputs). The pullback maps weights v of this shape to
        the gradient of :math:`\langle v, s(w) \rangle`, shape (n_parameters,): one backward pass.
        """

    def offset(self) -> Array | None:
        """Return the change of the parameters that adds one to every score, shape (n_parameters,).

        None, by default, if there is no such change that is the same for all parameters: without an
        intercept.
        """
        return None

    @abstractmethod
    def batch(self, rows: Array) -> Self:
        """Return the model of these rows only; one that occurs twice is two rows of the batch."""

    @abstractmethod
    def on(self, X: Matrix) -> Self:
        """Return the model of other rows, (n_other_rows, n_features), with the same parameters."""

    def preconditioner(self) -> Array:
        """Return the typical sizes of the parameters, shape (n_parameters,), > 0; ones if unknown.

        Quasi-Newton methods work with the parameters divided by them.
        """
        return np.ones(self.n_parameters)

    def gram(self, weights: Array) -> Array:
        r"""Return :math:`J^\top \mathrm{diag}(d) J` for the Jacobian J of a linear model.

        Its shape is (n_parameters, n_parameters); d are the weights of the rows, of any sign.
        """
        raise NotImplementedError(f"{type(self).__name__} has no products of columns.")

    def rows_times(self, weights: Array | SparseMatrix) -> Array | None:
        """Return the gradients of several weighted sums of linear scores, all in one pass.

        The weights are (m, n_rows), an array or CSC, and the gradients (m, n_parameters); None
        where one pass for each of them costs less.
        """
        return None

    def curvature(self, weights: Array) -> float:
        r"""Return an upper estimate of :math:`\lambda_{\max}(J^\top \mathrm{diag}(d) J)`.

        J is the Jacobian of the scores of a linear model, :math:`s(w) = J w`, and d are the weights
        of the rows, >= 0. After 20 power iterations the Rayleigh quotient is enlarged by 10 per
        cent. A model that is not linear raises a ValueError.
        """
        if not self.linear:
            raise ValueError("curvature: the model must be linear; no bound is known for others.")
        if not np.any(weights):
            return 0.0
        first = np.random.default_rng(0).standard_normal(self.n_parameters)
        return largest_eigenvalue(partial(self.gram_times, weights), first)

    def gram_times(self, weights: Array, v: Array) -> Array:
        r"""Return :math:`J^\top \mathrm{diag}(d) J v` for parameters v of a linear model."""
        scores, pullback = self.forward(v)
        return pullback(weights.reshape(weights.shape + (1,) * (scores.ndim - 1)) * scores)


def largest_eigenvalue(product: Callable[[Array], Array], v: Array, *, n_iter: int = 20) -> float:
    """Return an upper estimate of the size of the largest eigenvalue of a symmetric matrix.

    The last Rayleigh quotient of power iterations from `v`, which is below it, plus a tenth.
    """
    value = 0.0
    for _ in range(n_iter):
        norm = float(np.linalg.norm(v))
        if norm <= 1e-12:
            break
        unit = v / norm
        v = product(unit)
        value = abs(float(unit @ v))
    return 1.1 * value


_FEW_COLUMNS = 100  # products of all pairs of columns then cost about as much as ten passes
_WIDE = 1 << 16  # columns: several sums over sparse rows together leave the cache
_LEAST_SQUARE = 1e-3  # added to mean squares: a constant feature has none


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    r"""Scores :math:`S = (X - 1 c^\top) \mathrm{diag}(q)^{-1} W^\top + 1 b^\top`.

    The shift c and the scale q (see :func:`standardized`) change the parameters, not the set of
    models; they are applied to the weights, so that X is neither copied nor made dense. Where X is
    sparse its transpose is the same arrays as CSC: both passes cost as much.

    Notes
    -----
    The parameters are the coefficients, output by output, followed by the intercepts.
    """

    # the features, float64 or float32. float32 rows are converted block by block, so that scores
    # and gradients have double precision while X keeps its size, (n_rows, n_features)
    X: Matrix
    fit_intercept: bool = True  # whether there is an intercept b
    n_outputs: int = 1  # how many scores a row has; with one the scores have shape (n_rows,)
    shift: Array | None = None  # c and q; None stands for zeros and ones, (n_features,)
    scale: Array | None = None
    # the mean squares of the features after shift and scale, for the preconditioner; None stands
    # for ones, (n_features,)
    mean_squares: Array | None = None

    linear: ClassVar[bool] = True
    kind: ClassVar[str] = "linear model"

    @classmethod
    def standardized(
        cls,
        X: Matrix,
        sample_weight: Array,
        *,
        fit_intercept: bool = True,
        n_outputs: int = 1,
        rescale: bool = True,
        scale: FeatureScale | None = None,
    ) -> "LinearModel":
        """Return the model with its features centred and divided by the feature scale.

        The scale is that of these rows, with weights > 0, unless a `scale` is given. Without an
        intercept, features are not centred. Without `rescale` the parameters are those of X itself,
        and only the preconditioner knows the features' sizes.
        """
        scale = feature_scale(X, sample_weight) if scale is None else scale
        shift = scale.mean if rescale and fit_intercept else None
        squares = scale.variance if shift is not None else scale.variance + scale.mean**2
        return cls(
            X,
            fit_intercept=fit_intercept,
            n_outputs=n_outputs,
            shift=shift,
            scale=scale.scale if rescale else None,
            mean_squares=squares / scale.scale**2 if rescale else squares,
        )

    def in_units(self, scale: Array) -> "LinearModel":
        """Return the same model with other feature scales q > 0, (n_features,)."""
        before = 1.0 if self.scale is None else self.scale
        squares = self.mean_squares
        squares = None if squares is None else squares * (before / scale) ** 2
        return replace(self, scale=scale, mean_squares=squares)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @cached_property
    def n_coefficients(self) -> int:
        """The number of coefficients, without the intercepts."""
        return int(self.X.shape[1]) * self.n_outputs

    @cached_property
    def n_parameters(self) -> int:
        """The number of parameters, intercepts included."""
        return self.n_coefficients + self.n_outputs * self.fit_intercept

    def offset(self) -> Array | None:
        """Return ones at the intercepts, None if there are none."""
        ones = np.repeat([0.0, 1.0], [self.n_coefficients, self.n_outputs])
        return ones if self.fit_intercept else None

    def preconditioner(self) -> Array:
        """Return the fourth root of one over the mean square of what each parameter multiplies.

        That lies between the parameters themselves, in which penalties are round, and parameters
        times the feature's size, in which losses are. On one-hot data quasi-Newton methods need a
        third fewer evaluations with it.
        """
        squares = np.ones(self.n_parameters)
        if self.mean_squares is not None:
            squares[: self.n_coefficients] = np.tile(self.mean_squares, self.n_outputs)
        return np.asarray((squares + _LEAST_SQUARE) ** -0.25)

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) of the features before shift and scale.

        They are of shapes (n_outputs, n_features) and (n_outputs,).
        """
        n = self.n_coefficients
        coef = w[:n].reshape(self.n_outputs, -1) / (1.0 if self.scale is None else self.scale)
        intercept = w[n:].copy() if self.fit_intercept else np.zeros(self.n_outputs)
        if self.shift is not None:
            intercept -= coef @ self.shift
        return coef, intercept

    def variables(self, coef: Array, intercept: Array) -> Array:
        """Return the parameters that give these coefficients and intercepts (for warm starts)."""
        intercept = np.array(intercept, dtype=float)
        if self.shift is not None:
            intercept = intercept + coef @ self.shift
        scaled = coef if self.scale is None else coef * self.scale
        return np.concatenate([np.ravel(scaled), intercept[: self.n_outputs * self.fit_intercept]])

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return the scores and the map from weights on them to gradients."""
        return self.scores(w), partial(self.vjp, w)

    def scores(self, w: Array) -> Scores:
        """Return the scores, (n_rows,) or (n_rows, n_outputs)."""
        coef, intercept = self.coefficients(w)
        weights = coef[0] if self.n_outputs == 1 else coef.T
        if isinstance(self.X, np.ndarray) and self.X.dtype == np.float32:
            out = np.empty((self.n_rows, *weights.shape[1:]))
            for rows in row_blocks(self.X):
                out[rows] = self.X[rows].astype(float) @ weights
        else:
            out = self.X @ weights
        out += intercept
        return out

    def vjp(self, w: Array, v: Array) -> Array:
        """Return the gradient of sum(v * scores(w)) with respect to w: one backward pass.

        The gradient of a linear model does not depend on w.
        """
        rows, n = cast("Array", self.rows_times(np.atleast_2d(v.T))), self.X.shape[1]
        return np.concatenate([rows[:, :n].ravel(), rows[:, n:].ravel()])

    def in_parameters(self, slopes: Array, totals: Array) -> Array:
        """Return gradients in the parameters of one output.

        The slopes, (m, n_features), are gradients in the coefficients of X, before shift and scale;
        the totals, (m, 1), those in the intercept.
        """
        if self.shift is not None:
            slopes = slopes - totals * self.shift
        if self.scale is not None:
            slopes = slopes / self.scale
        return np.concatenate([slopes, totals], axis=1) if self.fit_intercept else slopes

    @property
    def gram_is_cheap(self) -> bool:  # type: ignore[override]
        """Whether X has few columns, and rows have one score."""
        return self.X.shape[1] <= _FEW_COLUMNS and self.n_outputs == 1

    def gram(self, weights: Array) -> Array:
        """Return the products of all pairs of columns, intercept included, summed with weights."""
        X, n = self.X, self.n_coefficients
        total = np.zeros((n + 1, n + 1))
        total[n, n] = weights.sum()
        for rows in row_blocks(X):
            some = X[rows]
            dense = some if isinstance(some, np.ndarray) else some.toarray()
            # Centred before it is squared: sums of squares of large values would cancel.
            block = dense.astype(float, copy=False) - (0.0 if self.shift is None else self.shift)
            total[:n, :n] += block.T @ (weights[rows, None] * block)
            total[n, :n] += weights[rows] @ block
        total[:n, n] = total[n, :n]
        if self.scale is not None:
            total[:n] /= self.scale[:, None]
            total[:, :n] /= self.scale
        return total if self.fit_intercept else total[:n, :n]

    def rows_times(self, weights: Array | SparseMatrix) -> Array | None:
        """Return the gradients of several weighted sums of one score of each row."""
        X, plain = self.X, isinstance(self.X, np.ndarray) and self.X.dtype == float
        if weights.ndim > 2 or not (plain or isinstance(weights, np.ndarray)):
            return None  # of several scores, or where a pass for each costs less
        if plain:
            back = weights @ X
        elif isinstance(X, np.ndarray):
            blocks = (weights[:, rows] @ X[rows].astype(float) for rows in row_blocks(X))
            back = sum(blocks, np.zeros((weights.shape[0], X.shape[1])))
        elif X.shape[1] > _WIDE or len(weights) == 1:
            back = np.array([X.T @ row for row in weights])
        else:
            back = np.ascontiguousarray((X.T @ weights.T).T)
        return self.in_parameters(back, np.reshape(weights.sum(axis=1), (-1, 1)))

    def on(self, X: Matrix) -> "LinearModel":
        """Return the model of other rows, with the same columns, parameters, shift and scale."""
        return replace(self, X=X)

    def batch(self, rows: Array) -> "LinearModel":
        """Return the model of these rows only."""
        return replace(self, X=self.X[rows])


def finite_scores(model: LinearModel, w: Array) -> Array:
    """Return the scores of rows to predict; raise a ValueError if one overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return checked_scores(model.scores(w))


def checked_scores(scores: Array) -> Array:
    """Return scores of one or several outputs if all are finite, else raise a ValueError."""
    if not np.isfinite(scores).all():
        rows = np.flatnonzero(~np.isfinite(scores.reshape(len(scores), -1)).all(axis=1))
        raise ValueError(
            f"X has values that are too large in {len(rows)} of {len(scores)} rows (the first one "
            f"is row {rows[0]}): their scores overflow."
        )
    return scores
