"""What depends on the version of scikit-learn, in one place.

scikit-learn 1.9 has callbacks (`set_callbacks`). With older versions the estimators have no
callbacks; all else is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["CallbackSupportMixin", "with_callbacks"]


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
