"""Types that the whole package shares."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray

Array = NDArray[Any]

Gaps = list[tuple[Array, Array]]
"""Gaps and their bounds, for every part of the constraints."""

RandomState = int | np.random.RandomState | None
"""What scikit-learn's `check_random_state` accepts."""


MatrixLike = ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix
"""What an estimator accepts as X: array-like, table or sparse matrix.

Tables of other libraries are array-like too: they have the method ``__array__``.
"""


class Classifier(Protocol):
    """A fitted classifier, as scikit-learn defines it."""

    classes_: Array

    def predict(self, X: Any, /) -> Array:
        """Return the class of each row."""


SparseMatrix = Any
"""A CSR or CSC array; the stubs of SciPy know less of them than the library uses."""

Matrix = Array | SparseMatrix
