"""Types that the whole package shares."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

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


SparseMatrix = Any
"""A CSR or CSC array; the stubs of SciPy know less of them than the library uses."""

Matrix = Array | SparseMatrix
