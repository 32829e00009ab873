"""Progress of a run: a line per iteration, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairconstrained.solvers.base import Measured
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike


class Progress:
    """A solver's callback that prints lines and calls the estimator's callbacks.

    Every measured iterate is a task of the fit. The number of iterates is not known in advance, so
    that the begin of a task is reported just before its end; its `init_time` is when it began.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    X, y, sample_weight : array-like
        The arguments of `fit`.
    attributes : callable
        From the solver's variables to the attributes that `predict` uses.
    """

    def __init__(
        self,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        attributes: Callable[[Array], Mapping[str, Any]],
    ):
        self.estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.data = {"X": X, "y": y, "metadata": metadata}
        self.attributes = attributes
        self.fit_task = estimator._init_callback_context(max_subtasks=None)
        self.fit_task.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.task = self.fit_task.subcontext(task_name="iteration")

    def __call__(self, measured: Measured) -> bool:
        """Report an iterate; return whether a callback wants to stop."""
        if self.estimator.verbose:
            print(
                f"[{type(self.estimator).__name__}] iteration {measured.iterate.iteration}: "
                f"objective {measured.objective:.6f}, violation {measured.violation:.2e}, "
                f"KKT residual {measured.kkt_residual:.2e}"
            )
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        stop = self._end(self.task, measured.iterate.at.w)
        self.task = self.fit_task.subcontext(task_name="iteration")
        return stop

    def _end(self, task: Any, w: Array) -> bool:
        return task.call_on_fit_task_end(
            estimator=self.estimator,
            **self.data,
            reconstruction_attributes=lambda: self.attributes(w),
        )

    def close(self, w: Array) -> None:
        """End the task of the fit at the solution."""
        self._end(self.fit_task, w)
