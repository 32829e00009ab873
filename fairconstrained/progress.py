"""What is shown while a solver runs: a line per iteration, scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairconstrained.scalar import Array
from fairconstrained.solvers.base import Measured


class Progress:
    """A solver's callback that prints lines and calls the estimator's callbacks.

    Every measured iterate ends a task of the fit; the next one begins at once.

    Parameters
    ----------
    estimator : estimator
        Being fitted; has `verbose`, and callbacks if the user set any.
    X, y : array-like
        What was passed to its fit.
    attributes : callable
        From the solver's variables to the attributes that make the estimator ready to predict.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, attributes: Callable[[Array], dict[str, Any]]
    ):
        self.estimator = estimator
        self.data = {"X": X, "y": y}
        self.attributes = attributes
        self.fit_task = estimator._init_callback_context(max_subtasks=None)
        self.fit_task.call_on_fit_task_begin(estimator=estimator, **self.data)
        self._begin()

    def _begin(self) -> None:
        self.task = self.fit_task.subcontext(task_name="iteration")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def __call__(self, measured: Measured) -> bool:
        """Report an iterate; return whether a callback wants to stop."""
        if self.estimator.verbose:
            print(
                f"[{type(self.estimator).__name__}] iteration {measured.iterate.iteration}: "
                f"objective {measured.objective:.6f}, violation {measured.violation:.2e}, "
                f"KKT residual {measured.kkt_residual:.2e}"
            )
        self.latest = measured.iterate.at.w
        stop = self.task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=self._attributes
        )
        self._begin()
        return stop

    def _attributes(self) -> dict[str, Any]:
        return self.attributes(self.latest)

    def close(self) -> None:
        """End the tasks that are still open."""
        self.task.call_on_fit_task_end(estimator=self.estimator)
        self.fit_task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=self._attributes
        )
