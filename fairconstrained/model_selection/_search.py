"""The folds of a cross-validation, and its progress."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from fairconstrained.utils.execution import FitTasks, Passed, splits_of
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike, RandomState
from fairconstrained.utils.validation import is_number


def folds_of(
    cv: Any,
    random_state: RandomState,
    X: MatrixLike,
    y: ArrayLike,
    weight: Array | None,
    params: Mapping[str, Any],
) -> list[tuple[Array, Array]]:
    """Return the rows to train on and the rows to measure on, for every fold.

    All rows of weight zero are among those to train on: the classes are those of all labels.
    """
    stratified = cv is None or is_number(cv, int)
    if stratified and random_state is not None:
        cv = StratifiedKFold(cv or 5, shuffle=True, random_state=random_state)
    if stratified and weight is not None:
        rows = np.flatnonzero(weight)
        inside = splits_of(cv, rows, _safe_indexing(y, rows))
        folds = [(rows[training], rows[test]) for training, test in inside]
    else:
        folds = splits_of(cv, X, y, params)
    if weight is None:
        return folds
    for k, fold in enumerate(folds):
        for what, rows in zip(("training", "test"), fold, strict=True):
            if not weight[rows].any():
                raise ValueError(
                    f"sample_weight is zero for all {what} rows of fold {k + 1} of {len(folds)}: "
                    "shuffle the rows, pass another cv, or leave rows of weight zero out."
                )
    absent = np.flatnonzero(weight == 0.0)
    return [(np.union1d(training, absent), test) for training, test in folds]


Measures = Mapping[str, Array]


class SearchProgress(FitTasks):
    """Prints lines, and calls the callbacks of an estimator that follows paths.

    The fit of the estimator is a task. Its subtasks are the paths, on the training rows of every
    fold, and the last fit. The subtasks of a path are its points. They are reported once the path
    is known, in this process, wherever it was computed.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    passed : tuple
        The arguments X, y and sample_weight of `fit`.
    n_paths : int
        The number of paths.
    """

    def __init__(self, estimator: Any, passed: Passed, n_paths: int):
        super().__init__(estimator, passed, n_paths + 1)
        self.n_paths, self.n_done = n_paths, 0

    def path(self, name: str, kappas: Array, measures: Measures) -> None:
        """Report a path."""
        self.n_done += 1
        self._print(name, kappas, measures)
        task = self.fit_task.subcontext(task_name=name, max_subtasks=len(kappas))
        task.call_on_fit_task_begin(estimator=self.estimator)
        for kappa in kappas:
            point = task.subcontext(task_name=f"kappa={kappa:.4g}")
            point.call_on_fit_task_begin(estimator=self.estimator)
            point.call_on_fit_task_end(estimator=self.estimator)
        task.call_on_fit_task_end(estimator=self.estimator)

    def _print(self, name: str, kappas: Array, measures: Measures) -> None:
        """Print a line for the path, and with verbose > 1 one for every point."""
        if not self.estimator.verbose:
            return
        ranges = [f"{what} {values.min():.4g} to {values.max():.4g}"
                  for what, values in {"kappa": kappas, **measures}.items()]  # fmt: skip
        kind = type(self.estimator).__name__
        print(
            f"[{kind}] path {self.n_done} of {self.n_paths}, {name}: {len(kappas)} points, "
            f"{', '.join(ranges)}"
        )
        for k in range(len(kappas)) if self.estimator.verbose > 1 else ():
            worth = ", ".join(f"{what} {values[k]:.4g}" for what, values in measures.items())
            print(f"[{kind}]   kappa {kappas[k]:.4g}: {worth}")

    def last_fit(self, estimator: Any) -> AbstractContextManager[None]:
        """Report the fit of an estimator, whose callbacks are those that propagate."""
        if self.estimator.verbose:
            print(
                f"[{type(self.estimator).__name__}] all rows with kappa {estimator.kappa:.4g} and "
                f"alpha {estimator.alpha}"
            )
        return self.task("refit", estimator)
