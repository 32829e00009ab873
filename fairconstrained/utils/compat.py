"""What depends on the versions of scikit-learn and SciPy, in one place.

- scikit-learn 1.9 has callbacks (`set_callbacks`). With older versions the estimators have no
  callbacks; all else is the same.
- SciPy has non-negative least squares that are accurate for nearly dependent columns from 1.16 on:
  1.13 and 1.14 use the normal equations, and 1.15 may return points that are not optimal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import scipy
from sklearn.utils.fixes import parse_version

from fairconstrained.utils._nnls import lawson_hanson

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["CallbackSupportMixin", "nnls", "with_callbacks"]


class _NoCallbacks:
    """A task of a fit that nothing watches."""

    def subcontext(self, **options: Any) -> _NoCallbacks:
        """Return a task within this one."""
        return self

    def call_on_fit_task_begin(self, **options: Any) -> None:
        """Begin the task."""

    def call_on_fit_task_end(self, **options: Any) -> bool:
        """End the task; return whether a callback wants to stop."""
        return False

    def propagate_callback_context(self, sub_estimator: object) -> AbstractContextManager[None]:
        """Return a context that passes nothing to the estimator of a subtask."""
        return nullcontext()


class _WithoutCallbacks:
    """Estimators of a scikit-learn that has no callbacks."""

    def _init_callback_context(self, **options: Any) -> _NoCallbacks:
        return _NoCallbacks()


def _called_directly(method: Callable[P, T]) -> Callable[P, T]:
    """Return a method that calls `method`, with as many frames as scikit-learn's decorator."""

    @functools.wraps(method)
    def called(*args: P.args, **options: P.kwargs) -> T:
        return method(*args, **options)

    return called


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:
    CallbackSupportMixin, with_callbacks = _WithoutCallbacks, _called_directly

if TYPE_CHECKING or parse_version(scipy.__version__) >= parse_version("1.16"):
    from scipy.optimize import nnls
else:
    nnls = lawson_hanson
