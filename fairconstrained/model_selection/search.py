"""What searches need: folds, progress, and a rule that selects the best of fair candidates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from fairconstrained.exceptions import warn
from fairconstrained.utils.arguments import is_number
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike
from fairconstrained.utils.execution import FitTasks, Passed, splits_of
from fairconstrained.utils.parameter_constraints import Strength, Text, checked


def folds_of(
    search: Any, X: MatrixLike, y: ArrayLike, weight: Array | None, params: Mapping[str, Any]
) -> list[tuple[Array, Array]]:
    """Return the rows to train on and the rows to measure on, for every fold of a search.

    All rows of weight zero are among those to train on: the classes are those of all labels.
    """
    cv, random_state = search.cv, search.random_state
    stratified = cv is None or is_number(cv, int)
    if stratified and random_state is not None:
        cv = StratifiedKFold(cv or 5, shuffle=True, random_state=random_state)
    absent = np.zeros(0, int) if weight is None else np.flatnonzero(weight == 0.0)
    also = _safe_indexing(y, absent)
    if stratified and weight is not None:
        rows = np.flatnonzero(weight)
        inside = splits_of(cv, rows, _safe_indexing(y, rows), also=also)
        folds = [(rows[training], rows[test]) for training, test in inside]
    else:
        folds = splits_of(cv, X, y, params, also)
    if weight is None:
        return folds
    for k, fold in enumerate(folds):
        for what, rows in zip(("training", "test"), fold, strict=True):
            if not weight[rows].any():
                raise ValueError(
                    f"sample_weight is zero for all {what} rows of fold {k + 1} of {len(folds)}: "
                    "shuffle the rows, pass another cv, or leave rows of weight zero out."
                )
    return [(np.union1d(training, absent), test) for training, test in folds]


class SearchProgress(FitTasks):
    """Prints lines, and calls the callbacks of an estimator that follows paths.

    The fit of the estimator is a task. Its subtasks are the paths, on the training rows of every
    fold, and the last fit. The subtasks of a path are its points. They are reported once the path
    is known, in this process, wherever it was computed.
    """

    def __init__(self, estimator: Any, passed: Passed, n_paths: int):
        super().__init__(estimator, passed, n_paths + 1)
        self.n_paths, self.n_done = n_paths, 0

    def path(self, name: str, kappas: Array, measures: Mapping[str, Array]) -> None:
        """Report a path."""
        self.n_done += 1
        columns = {"kappa": kappas, **measures}.items()
        ranges = [f"{what} {values.min():.4g} to {values.max():.4g}" for what, values in columns]
        self.say(
            f"path {self.n_done} of {self.n_paths}, {name}: {len(kappas)} points, "
            f"{', '.join(ranges)}"
        )
        for k in range(len(kappas)) if self.estimator.verbose > 1 else ():
            worth = ", ".join(f"{what} {values[k]:.4g}" for what, values in measures.items())
            self.say(f"  kappa {kappas[k]:.4g}: {worth}")
        task = self.fit_task.subcontext(task_name=name, max_subtasks=len(kappas))
        task.call_on_fit_task_begin(estimator=self.estimator)
        for kappa in kappas:
            point = task.subcontext(task_name=f"kappa={kappa:.4g}")
            point.call_on_fit_task_begin(estimator=self.estimator)
            point.call_on_fit_task_end(estimator=self.estimator)
        task.call_on_fit_task_end(estimator=self.estimator)


@dataclass(frozen=True, repr=False)
class BestScoreWithin:
    """A rule for GridSearchCV's `refit`: what :func:`best_score_within` returns."""

    gap: str
    limit: float
    score: str
    at_least: bool = False

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the best candidate."""
        gaps = np.abs(self._column(cv_results, self.gap))  # scorers of gaps are negated
        if np.all(np.isnan(gaps)):
            raise ValueError(
                f"{self.gap} is nan for all candidates, so that none can be selected: check the "
                "scorer."
            )
        unfair, limit = (-gaps, -self.limit) if self.at_least else (gaps, self.limit)
        allowed = np.flatnonzero(unfair <= limit)
        if allowed.size:
            worth = np.nan_to_num(self._column(cv_results, self.score)[allowed], nan=-np.inf)
            return int(allowed[np.lexsort((unfair[allowed], -worth))[0]])
        best = int(np.nanargmin(unfair))
        warn(
            f"no candidate has a mean {self.gap} of at {'least' if self.at_least else 'most'} "
            f"{self.limit:g}; the fairest one, with {gaps[best]:.3g}, is selected. Change the "
            "limit, or add candidates.",
            UserWarning,
        )
        return best

    @staticmethod
    def _column(cv_results: Mapping[str, Any], name: str) -> Array:
        key = f"mean_test_{name}"
        if key not in cv_results:
            has = sorted(k.removeprefix("mean_test_") for k in cv_results if k[:10] == "mean_test_")
            raise ValueError(f"cv_results_ has no score {name!r}; it has {has}: see scoring=.")
        return np.asarray(cv_results[key], dtype=float)

    def __repr__(self) -> str:
        """Return how the rule was made."""
        ratio = ", at_least=True" if self.at_least else ""
        return f"best_score_within({self.gap!r}, {self.limit!r}, score={self.score!r}{ratio})"


@checked
def best_score_within(
    gap: Text, limit: Strength, *, score: Text = "accuracy", at_least: bool = False
) -> BestScoreWithin:
    """Return a rule for ``GridSearchCV(refit=...)``: the best score whose gap is small enough.

    Parameters
    ----------
    gap : str
        The name in `scoring` of the gap. Its absolute value is bounded, so a scorer may negate it.
    limit : float
        The largest mean over the folds that is allowed, >= 0.
    score : str, default="accuracy"
        The name in `scoring` of the score that is maximised.
    at_least : bool, default=False
        Whether `limit` is the smallest mean that is allowed, for metrics such as ratios that should
        be large.

    Returns
    -------
    rule : callable
        A function from `cv_results_` to the position of the selected candidate. If no candidate is
        within the limit, it issues a warning and selects the one with the smallest gap.

    Raises
    ------
    ValueError
        If the limit is not a number >= 0.

    Examples
    --------
    >>> from fairconstrained import best_score_within
    >>> rule = best_score_within("gap", 0.05)
    >>> rule({"mean_test_accuracy": [0.9, 0.8, 0.7], "mean_test_gap": [-0.2, -0.04, -0.01]})
    1
    """
    return BestScoreWithin(gap, limit, score, at_least)
