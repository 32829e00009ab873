"""What is shown while a solver runs: a line per iteration, scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairconstrained.solvers.base import Measured
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike


class Progress:
    """A solver's callback that prints lines and calls the estimator's callbacks.

    Every measured iterate is a task of the fit. Only when it is measured is it known that there is
    one more, so its begin is told just before its end; the task's `init_time` is when it began.

    Parameters
    ----------
    estimator : estimator
        Being fitted; has `verbose`, and callbacks if the user set any.
    X, y, sample_weight : array-like
        What was passed to its fit.
    attributes : callable
        From the solver's variables to the attributes that make the estimator ready to predict.
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
        """End the fit's task at the solver's answer."""
        self._end(self.fit_task, w)
