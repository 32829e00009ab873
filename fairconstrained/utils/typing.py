"""Types that the whole package shares."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Array",
    "ArrayLike",
    "Classifier",
    "FrameLike",
    "Gaps",
    "Matrix",
    "MatrixLike",
    "RandomState",
    "SparseMatrix",
]

Array = NDArray[Any]

Gaps = list[tuple[Array, Array]]
"""Gaps and their bounds, for every part of the constraints."""

RandomState = int | np.random.RandomState | None
"""What scikit-learn's `check_random_state` accepts."""


@runtime_checkable
class FrameLike(Protocol):
    """A table with named columns: a DataFrame of pandas, polars or another library."""

    @property
    def columns(self) -> Collection[Any]:
        """The names of the columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return a column, or what else the key selects."""


MatrixLike = ArrayLike | FrameLike | sp.sparray | sp.spmatrix
"""What an estimator accepts as X: array-like, table or sparse matrix."""


class Classifier(Protocol):
    """A fitted classifier, as scikit-learn defines it."""

    classes_: Array

    def predict(self, X: Any, /) -> Array:
        """Return the class of each row."""


class Matrix(Protocol):
    """A matrix, dense or sparse: an ndarray, a CSR array or a CSC array.

    Results are untyped, since they are dense or sparse as the operands are.
    """

    @property
    def shape(self) -> tuple[Any, ...]:
        """(n_rows, n_columns)."""

    @property
    def dtype(self) -> Any:
        """The type of the entries."""

    @property
    def T(self) -> Any:
        """The transposed matrix."""

    def __matmul__(self, other: Any, /) -> Any:
        """Return the product with a vector or a matrix."""

    def __abs__(self) -> Any:
        """Return the absolute values."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return entries, rows or columns."""


class SparseMatrix(Matrix, Protocol):
    """A compressed sparse matrix: a CSR array or a CSC array."""

    data: Any
    indices: Any
    indptr: Any

    def __mul__(self, other: Any, /) -> Any:
        """Return the product with a number."""

    def __rmul__(self, other: Any, /) -> Any:
        """Return the product with a number."""

    def __neg__(self) -> Any:
        """Return minus the matrix."""

    def sum(self, axis: Any = None) -> Any:
        """Return the sums of the entries along an axis."""

    def max(self, axis: Any = None) -> Any:
        """Return the largest entries along an axis."""

    def maximum(self, other: Any) -> Any:
        """Return the larger entries of the two."""

    def multiply(self, other: Any) -> Any:
        """Return the product by entries."""

    def toarray(self) -> Any:
        """Return the dense matrix."""

    def tocsr(self) -> Any:
        """Return the matrix in CSR format."""

    def tocsc(self) -> Any:
        """Return the matrix in CSC format."""
