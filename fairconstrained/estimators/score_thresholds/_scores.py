"""The scores that thresholds are chosen on: of a fitted classifier, or cross-validated ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from fairconstrained.estimators.callbacks import FitTasks
from fairconstrained.estimators.score_thresholds._rows import CheckedRows
from fairconstrained.inspection.models import check_model, response_of
from fairconstrained.inspection.outputs import scores_of
from fairconstrained.utils.meta_estimators import classes_of, final_estimator
from fairconstrained.utils.parameter_constraints import check_parameters
from fairconstrained.utils.splits import splits_of
from fairconstrained.utils.typing import Array, Classifier
from fairconstrained.utils.validation import is_number
from fairconstrained.utils.workers import check_jobs, workers

_BELOW_ALL = -1e-12  # a threshold that every probability is above, also 0
_FAR = 1e6  # times the largest score: above all scores


def limits(scores: Array, method: str) -> tuple[float, float]:
    """Return the thresholds that select no row and all rows, also of rows not seen yet."""
    lowest, highest = scores.min(initial=0.0), scores.max(initial=0.0)
    if method == "predict_proba" and lowest >= 0.0 and highest <= 1.0:
        return 1.0, _BELOW_ALL
    far = _FAR * (1.0 + float(np.abs(scores).max(initial=0.0)))
    return far, -far


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A fitted classifier and the rows that choose thresholds on its scores.

    Attributes
    ----------
    estimator : classifier
        It is used when predicting.
    rows : ndarray of int of shape (n_rows,)
        The positions of the rows.
    scores : ndarray of shape (n_rows,)
        Their scores.
    method : str
        What returned the scores.
    """

    estimator: Classifier
    rows: Array
    scores: Array
    method: str


@dataclass(frozen=True, eq=False)
class Scoring:
    """How scores are made: by a FairThresholds, of a label, with arguments of its splitter."""

    owner: Any
    pos_label: object
    splitting: Mapping[str, Any]

    def of(self, given: CheckedRows, fit_params: Mapping[str, Any], tasks: FitTasks) -> ScoredRows:
        """Return the fitted classifier and the scores of the rows that choose thresholds.

        Parameters
        ----------
        given : CheckedRows
            The rows to fit to and to choose by.
        fit_params : mapping
            What `fit` of the estimator is passed, such as weights, for all rows of X.
        tasks : FitTasks
            Reports the folds and the last fit to callbacks.
        """
        every = np.arange(len(given.positions))
        if is_fitted_already(self.owner.estimator, self.owner.cv):
            estimator = check_fitted(self.owner.estimator)
            _check_labels_known(estimator, given.labels)
            method = response_of(estimator, self.owner.response_method)
            scores = self._scores(estimator, given.features, given.labels)
            return ScoredRows(estimator, every, scores, method)
        if is_number(self.owner.cv, Real) and not isinstance(self.owner.cv, Integral):
            return self._single_split(given, fit_params, tasks)
        return self._cross_validated(given, fit_params, tasks)

    def _single_split(
        self, given: CheckedRows, fit_params: Mapping[str, Any], tasks: FitTasks
    ) -> ScoredRows:
        """Return a classifier fitted to some rows, and the scores of the others."""
        splitter = StratifiedShuffleSplit(
            1, test_size=self.owner.cv, random_state=self.owner.random_state
        )
        train, rows = next(splitter.split(given.positions, given.data.y))
        fitted = self._fitted(given, fit_params, train, tasks)
        method = response_of(fitted, self.owner.response_method)
        X = _safe_indexing(given.X, given.positions[rows])
        return ScoredRows(fitted, rows, self._scores(fitted, X, given.labels), method)

    def _splits(self, given: CheckedRows) -> list[tuple[Array, Array]]:
        """Return the rows of training and test folds; rows that are not used are left out."""
        positions, cv = given.positions, self.owner.cv
        if cv is None or isinstance(cv, Integral) or hasattr(cv, "split"):
            params = _check_method_params(given.X, dict(self.splitting), indices=positions)
            return splits_of(cv, given.features, given.labels[positions], params)
        place = {int(position): k for k, position in enumerate(positions)}

        def here(rows: Array) -> Array:
            asked = np.asarray(rows).tolist()
            return np.array([place[row] for row in asked if row in place], dtype=int)

        return [(here(train), here(test)) for train, test in cv]

    def _cross_validated(
        self, given: CheckedRows, fit_params: Mapping[str, Any], tasks: FitTasks
    ) -> ScoredRows:
        """Return a classifier fitted to all rows, and scores of those fitted to other folds."""
        splits, every = self._splits(given), np.arange(len(given.positions))
        runs = workers(self.owner.n_jobs, len(every), return_as="generator")(
            delayed(self._fold)(given, fit_params, train, test) for train, test in splits
        )
        found = []
        for k in range(len(splits)):
            with tasks.task(f"fold {k + 1} of {len(splits)}"):
                found.append(next(runs))
        rows = np.concatenate([test for _, test in splits])
        if len(np.unique(rows)) < len(rows):
            raise ValueError(
                f"cv={self.owner.cv!r}: every row may be in one test fold; some are in several. "
                "Use KFold or StratifiedKFold."
            )
        fitted = self._fitted(given, fit_params, every, tasks)
        order = np.argsort(rows)
        method = response_of(fitted, self.owner.response_method)
        return ScoredRows(fitted, rows[order], np.concatenate(found)[order], method)

    def _fold(
        self, given: CheckedRows, fit_params: Mapping[str, Any], train: Array, test: Array
    ) -> Array:
        fitted, test = self._fitted(given, fit_params, train), given.positions[test]
        columns = _rows_to_fit(given, fit_params, train)  # of a precomputed kernel
        X, _ = _safe_split(fitted, given.X, given.labels, test, columns)
        return self._scores(fitted, X, given.labels)

    def _fitted(
        self,
        given: CheckedRows,
        fit_params: Mapping[str, Any],
        rows: Array,
        tasks: FitTasks | None = None,
    ) -> Classifier:
        """Return a copy of the estimator fitted to some of the rows, with `tasks` as a task."""
        rows = _rows_to_fit(given, fit_params, rows)
        own = _check_method_params(given.X, dict(fit_params), indices=rows)
        model = clone(self.owner.estimator)
        X_rows, y_rows = _safe_split(model, given.X, given.labels, rows)
        with nullcontext() if tasks is None else tasks.task("refit", model):
            fitted: Classifier = model.fit(X_rows, y_rows, **own)
        return fitted

    def _scores(self, estimator: Any, X: Any, y: Array) -> Array:
        method = response_of(estimator, self.owner.response_method)
        return scores_of(estimator, X, method, self.pos_label, np.unique(y).tolist())


def _rows_to_fit(given: CheckedRows, fit_params: Mapping[str, Any], rows: Array) -> Array:
    """Return the positions in X of rows, with weights also a row of each label that has none."""
    uncounted = given.uncounted if "sample_weight" in fit_params else given.uncounted[:0]
    return np.append(given.positions[rows], uncounted)


def is_fitted_already(estimator: object, cv: object) -> bool:
    """Return whether an estimator is used as it is: cv="prefit", or a frozen one."""
    return (isinstance(cv, str) and cv == "prefit") or isinstance(estimator, FrozenEstimator)


def check_fitted(estimator: Any) -> Any:
    """Return a fitted classifier.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    TypeError
        If it has no method `predict`.
    """
    try:
        return check_model(estimator)
    except NotFittedError as error:
        raise NotFittedError(
            "estimator is not fitted: with cv='prefit' and FrozenEstimator it must be. Fit it "
            "first, or use another cv."
        ) from error


def _check_labels_known(estimator: Any, y: Array) -> None:
    """Raise a ValueError if labels are not among the classes of a fitted classifier."""
    labels = np.unique(y).tolist()
    classes = classes_of(estimator) or labels
    if not set(labels) <= set(classes):
        raise ValueError(
            f"estimator: {type(estimator).__name__} is fitted to the classes {classes}, and y has "
            f"the labels {labels}: pass labels with the names of these classes."
        )


def check_cv_option(cv: object) -> None:
    """Check `cv`.

    Raises
    ------
    ValueError
        With what was found and what is valid.
    """
    known = cv is None or hasattr(cv, "split") or hasattr(cv, "__iter__")
    text = isinstance(cv, str) and cv != "prefit"
    number = is_number(cv, Real)
    if number and isinstance(cv, Integral):
        known = int(cv) >= 2
    elif number:
        known = 0.0 < float(cv) < 1.0  # type: ignore[arg-type]
    if text or not known:
        raise ValueError(
            "cv must be None (five folds), a number of folds >= 2, a share of the rows between 0 "
            f"and 1, a splitter, or 'prefit'; got {cv!r}."
        )


def check_threshold_options(estimator: Any) -> None:
    """Check the options that nothing else looks at.

    Raises
    ------
    ValueError, TypeError
        With the argument's name, what was found and what is valid.
    """
    fitted = isinstance(estimator.cv, str) and estimator.cv == "prefit"
    needed = "predict" if fitted else "fit"
    if isinstance(estimator.estimator, type) or not hasattr(estimator.estimator, needed):
        raise TypeError(
            f"estimator must be a classifier with {needed}, such as RandomForestClassifier(); got "
            f"{estimator.estimator!r}."
        )
    check_jobs(estimator.n_jobs)
    check_cv_option(estimator.cv)
    check_parameters(estimator)
    _check_columns(estimator)


def _check_columns(estimator: Any) -> None:
    """Check that the inner classifier's own sensitive columns are not taken out of X."""
    inner = final_estimator(estimator.estimator)
    own, inside = (
        set() if columns is None or callable(columns) else set(np.ravel(np.array(columns, object)))
        for columns in (estimator.sensitive_columns, getattr(inner, "sensitive_columns", None))
    )
    if own & inside and not estimator.use_sensitive:
        raise ValueError(
            f"sensitive_columns={estimator.sensitive_columns!r} with use_sensitive=False are taken "
            f"out of X, and the classifier has sensitive_columns={inner.sensitive_columns!r}: use "
            "use_sensitive=True, or a classifier without sensitive_columns."
        )
