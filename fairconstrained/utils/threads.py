"""The number of threads of the BLAS library."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from threadpoolctl import threadpool_limits

from fairconstrained.utils.typing import Matrix

_SMALL = 1 << 24  # below this many multiplications starting threads costs more than it gains


def limited_threads(X: Matrix) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread unless X is dense and large."""
    many = isinstance(X, np.ndarray) and X.size > _SMALL
    context: AbstractContextManager[object] = threadpool_limits(
        limits=None if many else 1, user_api="blas"
    )
    return context
