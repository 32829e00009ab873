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
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from fairconstrained.data.validation import TrainingData
from fairconstrained.inspection.outputs import check_model, response_of, scores_of
from fairconstrained.utils.execution import FitTasks, splits_of, workers
from fairconstrained.utils.meta_estimators import classes_of, final_estimator
from fairconstrained.utils.parameter_constraints import check_parameters
from fairconstrained.utils.typing import Array, Classifier
from fairconstrained.utils.validation import is_number

_BELOW_ALL = -1e-12  # a threshold that every probability is above, also 0
_FAR = 1e6  # times the largest score: above all scores


def limits(scores: Array, method: str) -> tuple[float, float]:
    """Return the thresholds that select no row and all rows, also of rows not seen yet."""
    lowest, highest = scores.min(initial=0.0), scores.max(initial=0.0)
    if method == "predict_proba" and lowest >= 0.0 and highest <= 1.0:
        return 1.0, _BELOW_ALL
    far = _FAR * (1.0 + float(np.abs(scores).max(initial=0.0)))
    return far, -far


def has_own_columns(estimator: Any) -> bool:
    """Return whether a classifier finds the groups in columns of X itself."""
    return getattr(final_estimator(estimator), "sensitive_columns", None) is not None


def routed_params(
    estimator: Any, fit_params: Mapping[str, Any], **given: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the inner classifier's `fit` gets, and what the splitter's `split` gets.

    Parameters
    ----------
    estimator : FairThresholds
        It routes metadata where that is enabled.
    fit_params : mapping
        Further arguments of its `fit`.
    **given : object
        Weights and groups, which the classifier gets if it takes them; None stands for nothing.
    """
    splits = hasattr(estimator.cv, "split")
    if getattr(final_estimator(estimator.estimator), "constraint", True) is None:
        # It needs no groups: they may be missing.
        given = {**given, "sensitive_features": None, "control_features": None}
    passed = {name: value for name, value in given.items() if value is not None}
    if _routing_enabled():
        routed = process_routing(estimator, "fit", **passed, **fit_params)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    taken = {k: v for k, v in passed.items() if has_fit_parameter(estimator.estimator, k)}
    others = {k: v for k, v in fit_params.items() if not (splits and k == "groups")}
    return {**taken, **others}, {k: v for k, v in fit_params.items() if k not in others}


@dataclass(frozen=True, eq=False)
class Scoring:
    """How the classifier of a FairThresholds is fitted, and which rows it scores."""

    owner: Any  # its parameters are valid
    X: Any  # what the classifier sees of all rows that `fit` was passed
    labels: Array  # their labels, (n_samples,)
    rows: TrainingData  # the rows to fit to and to choose by; their features are positions in X
    # what `fit` of the classifier is passed for all rows, such as weights, and the splitter
    params: Mapping[str, Any]
    splitting: Mapping[str, Any]
    # rows of weight zero that the classifier is also fitted to: of labels that no other row has
    added: Array

    def scored(self, tasks: FitTasks) -> tuple[Classifier, Array, Array]:
        """Return the fitted classifier, the rows that choose thresholds, and their scores."""
        owner, positions = self.owner, self.rows.X
        every = np.arange(len(positions))
        if _is_prefit(owner):
            fitted = self._given()
            return fitted, every, self.scores(fitted, positions)
        if is_number(owner.cv, Real) and not isinstance(owner.cv, Integral):
            split = StratifiedShuffleSplit(1, test_size=owner.cv, random_state=owner.random_state)
            train, rows = next(split.split(every, self.rows.y))
            fitted = self._fitted(train, tasks)
            return fitted, rows, self.scores(fitted, positions[rows])
        splits = self._splits()
        rows = np.concatenate([test for _, test in splits])
        if len(np.unique(rows)) < len(rows):
            raise ValueError(
                f"cv={owner.cv!r}: every row may be in one test fold; some are in several. "
                "Use KFold or StratifiedKFold."
            )
        runs = workers(owner.n_jobs, len(every), return_as="generator")(
            delayed(self._fold)(train, test) for train, test in splits
        )
        scores = []
        for k in range(len(splits)):
            with tasks.task(f"fold {k + 1} of {len(splits)}"):
                scores.append(next(runs))
        order = np.argsort(rows)
        return self._fitted(every, tasks), rows[order], np.concatenate(scores)[order]

    def _given(self) -> Classifier:
        """Return the classifier that is fitted already.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        TypeError
            If it has no method `predict`.
        ValueError
            If labels are not among its classes.
        """
        try:
            fitted: Classifier = check_model(self.owner.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                "estimator is not fitted: with cv='prefit' and FrozenEstimator it must be. Fit it "
                "first, or use another cv."
            ) from error
        labels = np.unique(self.labels).tolist()
        classes = classes_of(fitted) or labels
        if not set(labels) <= set(classes):
            raise ValueError(
                f"estimator: {type(fitted).__name__} is fitted to the classes {classes}, and y has "
                f"the labels {labels}: pass labels with the names of these classes."
            )
        return fitted

    def scores(self, fitted: Classifier, positions: Array, X: Any = None) -> Array:
        """Return the scores of rows of X; `X` are their features, if these are at hand."""
        if X is None:
            whole = len(positions) == len(self.labels)
            X = self.X if whole else _safe_indexing(self.X, positions)
        classes, method = self.rows.classes, response_of(fitted, self.owner.response_method)
        return scores_of(fitted, X, method, classes[1], np.sort(classes).tolist())

    def _splits(self) -> list[tuple[Array, Array]]:
        """Return the rows of training and test folds; rows that are not used are left out."""
        positions, cv = self.rows.X, self.owner.cv
        if cv is None or isinstance(cv, Integral) or hasattr(cv, "split"):
            params = _check_method_params(self.X, dict(self.splitting), indices=positions)
            X = _safe_indexing(self.X, positions)
            return splits_of(cv, X, self.labels[positions], params)
        place = {int(position): k for k, position in enumerate(positions)}

        def here(rows: Array) -> Array:
            asked = np.asarray(rows).tolist()
            return np.array([place[row] for row in asked if row in place], dtype=int)

        return [(here(train), here(test)) for train, test in cv]

    def _fold(self, train: Array, test: Array) -> Array:
        """Return the scores of a test fold."""
        fitted, positions = self._fitted(train), self.rows.X[test]
        columns = np.append(self.rows.X[train], self.added)  # of a precomputed kernel
        X, _ = _safe_split(fitted, self.X, self.labels, positions, columns)
        return self.scores(fitted, positions, X)

    def _fitted(self, rows: Array, tasks: FitTasks | None = None) -> Classifier:
        """Return a copy of the classifier fitted to some of the rows, with `tasks` as a task."""
        positions = np.append(self.rows.X[rows], self.added)
        params = _check_method_params(self.X, dict(self.params), indices=positions)
        model = clone(self.owner.estimator)
        X, y = _safe_split(model, self.X, self.labels, positions)
        with nullcontext() if tasks is None else tasks.task("refit", model):
            fitted: Classifier = model.fit(X, y, **params)
        return fitted


def _is_prefit(owner: Any) -> bool:
    """Return whether the classifier is used as it is: cv="prefit", or a frozen one."""
    named = isinstance(owner.cv, str) and owner.cv == "prefit"
    return named or isinstance(owner.estimator, FrozenEstimator)


def check_threshold_options(estimator: Any) -> None:
    """Check the options that nothing else looks at.

    Raises
    ------
    ValueError, TypeError
        With the argument's name, what was found and what is valid.
    """
    named = isinstance(estimator.cv, str) and estimator.cv == "prefit"
    needed = "predict" if named else "fit"
    if isinstance(estimator.estimator, type) or not hasattr(estimator.estimator, needed):
        raise TypeError(
            f"estimator must be a classifier with {needed}, such as RandomForestClassifier(); got "
            f"{estimator.estimator!r}."
        )
    check_parameters(estimator)
    _check_columns(estimator)


def _check_columns(estimator: Any) -> None:
    """Check that the inner classifier's own sensitive columns are not taken out of X."""
    inner = final_estimator(estimator.estimator)
    outer, inside = (
        set() if columns is None or callable(columns) else set(np.ravel(np.array(columns, object)))
        for columns in (estimator.sensitive_columns, getattr(inner, "sensitive_columns", None))
    )
    if outer & inside and not estimator.use_sensitive:
        raise ValueError(
            f"sensitive_columns={estimator.sensitive_columns!r} with use_sensitive=False are taken "
            f"out of X, and the classifier has sensitive_columns={inner.sensitive_columns!r}: use "
            "use_sensitive=True, or a classifier without sensitive_columns."
        )
