"""The number of threads of the BLAS library."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from fairconstrained.utils.typing import Matrix

_SMALL = 1 << 24  # with fewer multiplications than this, threads cost more than they gain


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Return the controller of the libraries that are loaded: finding them takes milliseconds."""
    return ThreadpoolController()


def limited_threads(X: Matrix) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread unless X is dense and large."""
    many = isinstance(X, np.ndarray) and X.size > _SMALL
    context: AbstractContextManager[object] = _controller().limit(
        limits=None if many else 1, user_api="blas"
    )
    return context
