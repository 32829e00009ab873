"""Progress of a run: a line per iteration, and scikit-learn's callbacks and their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from fairconstrained.solvers.base import Measured
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike

Passed = tuple[MatrixLike, ArrayLike, ArrayLike | None]
"""X, y and sample_weight as they were passed to `fit`."""


class FitTasks:
    """The fit of an estimator as a task of callbacks, and its parts as subtasks.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    passed : tuple
        The arguments X, y and sample_weight of `fit`.
    n_tasks : int or None, default=None
        The number of subtasks, if it is known.
    """

    def __init__(self, estimator: Any, passed: Passed, n_tasks: int | None = None):
        self.estimator, (X, y, sample_weight) = estimator, passed
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.data = {"X": X, "y": y, "metadata": metadata}
        self.fit_task = estimator._init_callback_context(max_subtasks=n_tasks)
        self.fit_task.call_on_fit_task_begin(estimator=estimator, **self.data)

    @contextmanager
    def task(self, name: str, inner: Any = None) -> Iterator[None]:
        """Report a part of the fit; callbacks that propagate see the fit of `inner`."""
        task, data = self.fit_task.subcontext(task_name=name), self.data
        takes = hasattr(inner, "set_callbacks")
        with task.propagate_callback_context(inner) if takes else nullcontext():
            task.call_on_fit_task_begin(estimator=self.estimator, **data)
            yield
        task.call_on_fit_task_end(estimator=self.estimator, **data)

    def close(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """End the task of the fit; `attributes` returns what `predict` uses."""
        self.fit_task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=attributes
        )


class Progress(FitTasks):
    """A solver's callback that prints lines and calls the estimator's callbacks.

    Every measured iterate is a task of the fit. The number of iterates is not known in advance, so
    that the begin of a task is reported just before its end; its `init_time` is when it began.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    passed : tuple
        The arguments X, y and sample_weight of `fit`.
    attributes : callable
        From the solver's variables to the attributes that `predict` uses.
    """

    def __init__(
        self, estimator: Any, passed: Passed, attributes: Callable[[Array], Mapping[str, Any]]
    ):
        super().__init__(estimator, passed)
        self.attributes = attributes
        self.iteration = self.fit_task.subcontext(task_name="iteration")

    def __call__(self, measured: Measured) -> bool:
        """Report an iterate; return whether a callback wants to stop."""
        if self.estimator.verbose:
            print(
                f"[{type(self.estimator).__name__}] iteration {measured.iterate.iteration}: "
                f"objective {measured.objective:.6f}, violation {measured.violation:.2e}, "
                f"KKT residual {measured.kkt_residual:.2e}"
            )
        self.iteration.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        w = measured.iterate.at.w
        stop: bool = self.iteration.call_on_fit_task_end(
            estimator=self.estimator,
            **self.data,
            reconstruction_attributes=lambda: self.attributes(w),
        )
        self.iteration = self.fit_task.subcontext(task_name="iteration")
        return stop
