"""What a model is: weights become scores, and weights on scores become gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from fairconstrained.utils.typing import Array, Matrix, SparseMatrix

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
    in_memory : bool
        Whether `forward` and `batch` can be called: the rows are in the memory of this process.
    gram_is_cheap : bool
        Whether `gram` can be called and costs no more than a few passes over the rows.
    """

    linear: ClassVar[bool] = False
    in_memory: ClassVar[bool] = True

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

    @property
    def gram_is_cheap(self) -> bool:
        """Whether `gram` costs no more than a few passes over the rows."""
        return False

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

    def curvature(self, weights: Array, *, n_iter: int = 20) -> float:
        r"""Return an upper estimate of :math:`\lambda_{\max}(J^\top \mathrm{diag}(d) J)`.

        J is the Jacobian of the scores of a linear model, :math:`s(w) = J w`, and d are the weights
        of the rows, >= 0. After `n_iter` power iterations the Rayleigh quotient is enlarged by 10
        per cent. A model that is not linear raises a ValueError.
        """
        if not self.linear:
            raise ValueError("curvature: the model must be linear; no bound is known for others.")
        if not np.any(weights):
            return 0.0

        def product(v: Array) -> Array:
            scores, pullback = self.forward(v)
            return pullback(weights.reshape(weights.shape + (1,) * (scores.ndim - 1)) * scores)

        first = np.random.default_rng(0).standard_normal(self.n_parameters)
        return largest_eigenvalue(product, first, n_iter=n_iter)


class NoModel(Model):
    """The model without rows and parameters, of functions that are only penalties or affine."""

    linear, n_rows, n_parameters = True, 0, 0

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return no scores."""
        return np.zeros(0), lambda v: np.zeros(0)

    def batch(self, rows: Array) -> Self:
        """Return the model."""
        return self

    def on(self, X: Matrix) -> Self:
        """Return the model."""
        return self


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
