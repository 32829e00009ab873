"""A fit of thresholds: scores, the constraints on decisions, the search, and what it stores."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import HeldOut
from fairconstrained.decisions.new_rows import expected_gaps
from fairconstrained.decisions.population import Certificate, search_with_confidence
from fairconstrained.decisions.search import DecisionSearch
from fairconstrained.decisions.threshold_search import ThresholdTask, wrong_predictions
from fairconstrained.estimators import rows
from fairconstrained.estimators.solution import Bound, names_in_data
from fairconstrained.exceptions import ConstantDecisionWarning, InfeasibleConstraintWarning, warn
from fairconstrained.inspection.outputs import RESPONSES, check_model, response_of, scores_of
from fairconstrained.models.trees import ThresholdModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.utils.arguments import as_frame, is_number
from fairconstrained.utils.arrays import Array, Classifier
from fairconstrained.utils.execution import FitTasks, set_fitted, splits_of, workers
from fairconstrained.utils.meta_estimators import classes_of, final_estimator
from fairconstrained.utils.parameter_constraints import check_parameters

_BELOW_ALL = -1e-12  # a threshold that every probability is above, also 0
_FAR = 1e6  # times the largest score: above all scores


def limits(scores: Array, method: str) -> tuple[float, float]:
    """Return the thresholds that select no row and all rows, also of rows not seen yet."""
    lowest, highest = scores.min(initial=0.0), scores.max(initial=0.0)
    if method == "predict_proba" and lowest >= 0.0 and highest <= 1.0:
        return 1.0, _BELOW_ALL
    far = _FAR * (1.0 + float(np.abs(scores).max(initial=0.0)))
    return far, -far


Params = tuple[Mapping[str, Any], Mapping[str, Any]]
"""What `fit` of the classifier and `split` of the splitter are passed."""


def routed_params(estimator: Any, fit_params: Mapping[str, Any], **given: Any) -> Params:
    """Return what the inner classifier's `fit` gets, and what the splitter's `split` gets.

    The estimator routes metadata where that is enabled. Weights and groups (`given`) are for
    classifiers that take them; None stands for nothing.
    """
    splits = hasattr(estimator.cv, "split")
    if getattr(final_estimator(estimator.estimator), "constraint", True) is None:
        # It needs no groups: they may be missing.
        given = {**given, "sensitive_features": None, "control_features": None}
    passed = {name: as_frame(value) for name, value in given.items() if value is not None}
    if _routing_enabled():
        routed = process_routing(estimator, "fit", **passed, **fit_params)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    taken = {k: v for k, v in passed.items() if has_fit_parameter(estimator.estimator, k)}
    others = {k: v for k, v in fit_params.items() if not (splits and k == "groups")}
    return {**taken, **others}, {k: v for k, v in fit_params.items() if k not in others}


class ThresholdFit:
    """A classifier that is fitted here, unless it is already, and its scores of all rows.

    The features of rows are their positions in the X that `fit` was passed. Some rows are held out
    for `confidence`; of the others, some choose the thresholds.

    Parameters
    ----------
    estimator : FairThresholds
        Its parameters are valid.
    X : array-like, DataFrame or sparse matrix
        What the classifier sees of all rows.
    labels : ndarray of shape (n_samples,)
        Their labels.
    data : TrainingData
        The rows of positive weight.
    params : tuple of mapping
        See `Params`.
    tasks : FitTasks
        The fit as a task of callbacks.
    """

    def __init__(
        self, estimator: Any, X: Any, labels: Array, data: TrainingData, params: Params, tasks: Any
    ):
        self.estimator, self.X, self.labels, self.data = estimator, X, labels, data
        self.params, self.splitting = params
        self.constraints = rows.constraints_of(estimator, data)
        for constraint in self.constraints:
            if getattr(constraint, "reference", None) is not None:
                raise ValueError(
                    f"constraint: {type(constraint).__name__} has reference rows; thresholds are "
                    "chosen on the rows that are passed to fit. Leave reference at None."
                )
        rows.check_group_sizes(self.constraints, data, by_group=estimator.per_group)
        self.given, self.held = rows.without_held_out(estimator, data, self.constraints)
        # rows of weight zero that the classifier is also fitted to: of labels that no other row has
        weighted = "sample_weight" in self.params
        absent = np.setdiff1d(labels, labels[data.X]) if weighted else labels[:0]
        self.added = np.array([np.argmax(labels == label) for label in absent], dtype=int)
        self.out_of_fold = False
        # a row that may be of several groups is listed for each, and is one row of the classifier
        self.positions = np.unique(self.given.X)
        self.fitted, used, scores = self._scored(tasks)
        self.choosing = self.given.take(np.flatnonzero(np.isin(self.given.X, used)))
        self.scores = np.full(len(labels), np.nan)  # by position in X
        self.scores[used], self.used = scores, np.sort(used)
        others = np.setdiff1d(data.X, self.used)
        if len(others):  # what `predict` compares with the thresholds
            self.scores[others] = self._scores(self.fitted, others)
        self.method = response_of(self.fitted, estimator.response_method)

    def _scored(self, tasks: FitTasks) -> tuple[Classifier, Array, Array]:
        """Return the fitted classifier, the rows that choose thresholds, and their scores."""
        estimator, every = self.estimator, self.positions
        if isinstance(estimator.cv, str) or isinstance(estimator.estimator, FrozenEstimator):
            fitted = self._prefit()
            return fitted, every, self._scores(fitted, every)
        if is_number(estimator.cv, Real) and not isinstance(estimator.cv, Integral):
            options = {"stratify": self.labels[every], "random_state": estimator.random_state}
            train, rows = train_test_split(every, test_size=estimator.cv, **options)
            fitted = self._fitted(train, tasks)
            return fitted, rows, self._scores(fitted, rows)
        splits = self._splits()
        rows = np.concatenate([test for _, test in splits])
        if len(np.unique(rows)) < len(rows):
            raise ValueError(
                f"cv={estimator.cv!r}: a row may be in one test fold only; some are in several. "
                "Use KFold or StratifiedKFold."
            )
        runs = workers(estimator.n_jobs, len(every), return_as="generator")(
            delayed(self._fold)(train, test) for train, test in splits
        )
        scores = []
        for k in range(len(splits)):
            with tasks.task(f"fold {k + 1} of {len(splits)}"):
                scores.append(next(runs))
        self.out_of_fold = True
        return self._fitted(every, tasks), rows, np.concatenate(scores)

    def _prefit(self) -> Classifier:
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
            fitted: Classifier = check_model(self.estimator.estimator)
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

    def _scores(self, fitted: Classifier, positions: Array, X: Any = None) -> Array:
        """Return the scores of rows of X; `X` are their features, if these are at hand."""
        if X is None:
            X = self.X if len(positions) == len(self.labels) else _safe_indexing(self.X, positions)
        classes, method = self.given.classes, response_of(fitted, self.estimator.response_method)
        return scores_of(fitted, X, method, classes[1], np.sort(classes).tolist())

    def _splits(self) -> list[tuple[Array, Array]]:
        """Return the rows of training and test folds; rows that are not used are left out."""
        positions, cv = self.positions, self.estimator.cv
        if cv is None or isinstance(cv, Integral) or hasattr(cv, "split"):
            params = _check_method_params(self.X, dict(self.splitting), indices=positions)
            X = _safe_indexing(self.X, positions)
            splits = splits_of(cv, X, self.labels[positions], params)
            return [(positions[train], positions[test]) for train, test in splits]
        splits = splits_of(cv, self.X, self.labels, also=self.labels[self.added])
        used = [[part[np.isin(part, positions)] for part in fold] for fold in splits]
        return [(train, test) for train, test in used]

    def _fold(self, train: Array, test: Array) -> Array:
        """Return the scores of a test fold."""
        fitted = self._fitted(train)
        columns = np.append(train, self.added)  # of a precomputed kernel
        X, _ = _safe_split(fitted, self.X, self.labels, test, columns)
        return self._scores(fitted, test, X)

    def _fitted(self, rows: Array, tasks: FitTasks | None = None) -> Classifier:
        """Return a copy of the classifier fitted to some of the rows, with `tasks` as a task."""
        positions = np.append(rows, self.added)
        params = _check_method_params(self.X, dict(self.params), indices=positions)
        model = clone(self.estimator.estimator)
        X, y = _safe_split(model, self.X, self.labels, positions)
        with nullcontext() if tasks is None else tasks.task("refit", model):
            fitted: Classifier = model.fit(X, y, **params)
        return fitted

    def weighted_scores(
        self, data: TrainingData, rows: Array | None = None
    ) -> tuple[Array, TrainingData]:
        """Return scores less the classifier's threshold of positions of rows, see `FreeScores`."""
        return self.scores[data.X] - RESPONSES[self.method][0], data

    @cached_property
    def _codes(self) -> tuple[Array, int]:
        """Which threshold every row has, and how many there are; the last is of other groups."""
        groups, codes = self.data.groups, np.zeros(len(self.scores), dtype=int)
        if not self.estimator.per_group or groups is None or self.choosing.groups is None:
            return codes, 1
        names = self.choosing.groups.sensitive.names.tolist()
        codes[self.data.X] = groups.sensitive.among(names)
        return codes, len(names) + 1

    def _problem_on(
        self, data: TrainingData, like: Sequence[CompositeFunction] | None = None
    ) -> Problem:
        """Return the errors of rows and the constraints on them, by the thresholds."""
        model = ThresholdModel(self.scores, *self._codes, data.X)
        wrong = wrong_predictions(data.y, data.loss_weight)
        parts = rows.bound_parts(self.constraints, model, data, self.weighted_scores, like)
        return Problem(CompositeFunction(model, wrong), tuple(parts))

    def chosen(self) -> tuple[Problem, DecisionSearch, Certificate | None]:
        """Return the problem of the thresholds, those chosen, and what the held-out rows show."""
        data, held = self.choosing, self.held
        problem = self._problem_on(data)
        compared = data.X if held is None else np.append(data.X, held.X)
        ends = limits(self.scores[compared], self.method)
        task = ThresholdTask(problem, data.y, data.loss_weight, ends)
        model = problem.objective.model
        assert isinstance(model, ThresholdModel)
        if self.estimator.per_group:  # rows without a group have the most accurate common one
            common = replace(model, codes=np.zeros_like(model.codes), n_thresholds=1)
            objective = replace(problem.objective, model=common)
            free = replace(task, problem=Problem(objective)).search()
            task = replace(task, fixed={model.n_thresholds - 1: float(free.w[0])})
        if held is None or not problem.n_constraints:
            return problem, task.search(), None
        both, scores = (data, held), self.weighted_scores
        test = HeldOut.of(self.constraints, problem, both, model.on(held.X), scores)
        return problem, *search_with_confidence(task, test, self.estimator.confidence)

    def store(
        self, problem: Problem, search: DecisionSearch, certificate: Certificate | None
    ) -> None:
        """Set the fitted attributes of the estimator, and warn of what was not found."""
        estimator, groups = self.estimator, self.choosing.groups
        part = len(self.choosing.y) < len(self.given.y)
        reported = self._problem_on(self.given, problem.constraints) if part else problem
        at = reported.at(search.w)
        gaps = expected_gaps(at, self.given.variances, constant=search.constant)
        search = replace(search, expected_gaps=gaps)
        bound = Bound.of_decisions(at, certificate)
        attributes = {
            **names_in_data(self.choosing),
            "estimator_": self.fitted,
            "pos_label_": self.data.classes[1],
            "response_method_": self.method,
            "threshold_": float(search.w[-1]),  # of rows without a group
            "decision_gap_": at.decided.gap,
            "bound_violation_": bound.violation,
            "bound_met_": bound.met,
            "decision_search_": search,
            "certificate_": certificate,
            "constraint_choices_": rows.choices(problem.constraints),
        }
        if estimator.per_group and groups is not None:
            attributes["_by_group"] = groups.sensitive.names.tolist(), search.w[:-1]
        if part:
            attributes["validation_indices_"] = self.used
        if self.held is not None:
            attributes["holdout_indices_"] = self.held.X
        set_fitted(estimator, attributes)
        (certificate or search).warn()
        if self.out_of_fold and not search.constant:  # the classifier has other scores than folds
            levels = search.w[self._codes[0][self.used]]
            decided = self._scores(self.fitted, self.used) > levels
            if len(np.unique(decided)) == 1:
                warn(
                    f"{type(estimator).__name__}: the same class is predicted for every row. The "
                    "thresholds suit the scores of the folds, and the classifier that is fitted to "
                    "all rows has others. Use a share of the rows, such as cv=0.3, or loosen the "
                    "bound (kappa, or the constraint's own tolerance).",
                    ConstantDecisionWarning,
                )
        if certificate is None and search.met and bound.met is False:
            warn(
                f"{type(estimator).__name__}: the thresholds meet the bound on the rows that chose "
                f"them, validation_indices_; on all rows passed to fit: {bound.text}. Use a "
                "number of folds for cv, so that all rows choose, or lower kappa.",
                InfeasibleConstraintWarning,
            )


def check_threshold_options(estimator: Any) -> None:
    """Check the options that nothing else looks at; errors name the argument and what is valid."""
    needed = "predict" if isinstance(estimator.cv, str) else "fit"  # cv="prefit"
    if isinstance(estimator.estimator, type) or not hasattr(estimator.estimator, needed):
        raise TypeError(
            f"estimator must be a classifier with {needed}, such as RandomForestClassifier(); got "
            f"{estimator.estimator!r}."
        )
    check_parameters(estimator)
    # The inner classifier's own sensitive columns may not be taken out of X.
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
