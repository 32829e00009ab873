"""Non-negative least squares that always returns a solution."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from fairconstrained.utils.compat import nnls
from fairconstrained.utils.typing import Array


def nonnegative_least_squares(A: Array, b: Array) -> Array:
    r"""Return the x >= 0 that minimises ``|A x - b|``.

    The active set method may not end if columns are nearly dependent. Then an interior point method
    is used, which is less exact.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        The matrix.
    b : ndarray of shape (m,)
        The target.

    Examples
    --------
    >>> from fairconstrained.utils.least_squares import nonnegative_least_squares
    >>> nonnegative_least_squares(np.eye(2), np.array([1.0, -2.0])).tolist()
    [1.0, 0.0]
    """
    if A.shape[1] == 0:  # SciPy's routine corrupts memory
        return np.zeros(0)
    try:
        return np.asarray(nnls(A, b)[0])
    except RuntimeError:  # the limit of iterations
        return np.asarray(lsq_linear(A, b, (0.0, np.inf), method="trf", tol=1e-12).x)
