"""Fitted models of any library, and what they return for given rows."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from fairconstrained.data.attributes import split_strata
from fairconstrained.data.inputs import known_labels
from fairconstrained.exceptions import InputWarning, warn
from fairconstrained.metrics.inputs import check_predicted, two_classes
from fairconstrained.utils.arguments import check_option
from fairconstrained.utils.arrays import Array, ArrayLike, some_of
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    classes_of,
    favourable_label,
    final_estimator,
    last_step,
)

# For each method: the usual threshold, the attribute that has another one, and the axis label.
RESPONSES = {
    "predict_proba": (0.5, "threshold_", "probability of the positive class"),
    "decision_function": (0.0, "score_threshold_", "score"),
    "decision_margin": (0.0, "", "score minus the threshold"),
}
_REVERSED = 0.25  # scores with a smaller area under the curve of predictions are reversed
_METHODS = "predict_proba", "decision_function"


def check_predicts(model: Any) -> Any:
    """Return the model that decides: a fitted one."""
    model = best_estimator(model)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        kind = "a class" if isinstance(model, type) else f"of type {type(model).__name__}"
        raise TypeError(
            f"estimator must be a fitted model with a method predict; got {model!r}, {kind}."
        )
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return model


def check_model(model: Any) -> Any:
    """Return the model that decides: a fitted one that predicts labels."""
    model = check_predicts(model)
    last = final_estimator(model)
    if getattr(last, "needs_queries", False):
        raise ValueError(
            f"{type(last).__name__} ranks the rows of queries and predicts no classes: use "
            "compare_rankers(models, X, y, groups, query=...)."
        )
    return model


def response_of(model: Any, response_method: str = "auto") -> str:
    """Return the name of the method that gives a model's scores."""
    check_option("response_method", response_method, ("auto", *_METHODS))
    decides = getattr(final_estimator(model), "decided_on_", None)
    if response_method == "auto" and decides is not None:
        return str(decides)
    names = _METHODS if response_method == "auto" else (response_method,)
    for name in names:
        if hasattr(model, name):
            return name
    raise ValueError(
        f"estimator: {type(model).__name__} has no scores: it lacks the method "
        f"{' or '.join(names)}."
    )


def methods_of(model: Any) -> list[str]:
    """Return the methods that a model has; its decisions are those of the last one."""
    by_row = getattr(final_estimator(model), "decided_on_", None) == "decision_margin"
    names = ["predict", "predict_proba", *([] if by_row else ["decision_function"])]
    return [*(name for name in names if hasattr(model, name)), *(["decision_margin"] * by_row)]


def output_of(model: Any, method: str, X: Any, sensitive_features: Any) -> Array:
    """Return the output of a method.

    Groups are passed to methods that take them. A model whose predictions are random gets a seed.
    """
    last = final_estimator(model)
    try:
        taken = set(inspect.signature(getattr(last, method)).parameters)
    except (AttributeError, TypeError, ValueError):  # compiled methods may have no signature
        taken = set()
    given: dict[str, Any] = {"random_state": 0} if "random_state" in taken else {}
    if "sensitive_features" in taken and getattr(last, "groups_at_prediction", True):
        given["sensitive_features"], _ = split_strata(sensitive_features)
    if given or method == "decision_margin":  # pipelines pass such arguments on only if routed
        model, X = last_step(model, X)
    output = np.asarray(getattr(model, method)(X, **given))
    return output[:, 0] if method == "predict" and output.shape[1:] == (1,) else output


@dataclass(frozen=True, eq=False)
class Outputs:
    """Labels, scores and probabilities of a model for given rows, and its threshold.

    Scores, probabilities and the threshold are those of a positive class, see `of_class`.
    """

    model: Any  # the fitted model; of a search its best estimator. None for stored predictions
    classes: list[Any]  # the classes
    labels: Array | None  # the labels that `predict` returns, if they were asked for, (n_rows,)
    # the values of `predict_proba`, if the model has it, (n_rows, n_classes)
    probabilities: Array | None = None
    # the values of `decision_function`, of `decision_margin` of a model whose thresholds differ
    # between rows, or of a `predict_proba` that returns scores, (n_rows,) or (n_rows, n_classes)
    decision: Array | None = None
    positive: Any = None  # the positive class

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        sensitive_features: Any = None,
        *,
        y: Array | None = None,
        classes: Sequence[Any] | None = None,
        methods: Sequence[str] | None = None,
    ) -> "Outputs":
        """Return the outputs of a fitted classifier of any library, a pipeline or a search.

        `y`, the labels of the rows, has the classes of a model without `classes_`, or `classes` has
        them. Models get `sensitive_features` whose `predict` takes them. `methods` are those to
        call; None calls all that the model has.
        """
        model = check_model(model)
        asked = methods_of(model) if methods is None else methods
        raw = {method: output_of(model, method, X, sensitive_features) for method in asked}
        n_rows = _num_samples(X)
        for name, values in raw.items():
            if len(values) != n_rows:
                raise ValueError(
                    f"{type(model).__name__}.{name} must return one entry per row: it returned "
                    f"{len(values)} for {n_rows} rows."
                )
        labels, known_classes = raw.pop("predict", None), classes_of(model)
        if known_classes is None:
            known_classes = _classes_in(model, labels, y) if classes is None else list(classes)
        if len(known_classes) < 2:
            raise ValueError(
                "estimator: a classifier with two classes is needed; "
                f"{type(model).__name__} has {len(known_classes)} classes."
            )
        if labels is not None:
            labels = _checked_labels(model, labels, known_classes)
        read = cls(model, known_classes, labels)
        for name, values in raw.items():
            where = f"{type(model).__name__}.{name}"
            read = read._with_scores(where, values, may_be_probabilities=name == "predict_proba")
        return read

    @classmethod
    def stored(cls, labels: Array, y_score: ArrayLike | None, seen: Array) -> "Outputs":
        """Return stored predictions as the outputs of a model, perhaps with scores.

        Scores are probabilities if all are between 0 and 1. The labels seen have the classes.
        """
        n_rows, classes = len(labels), _classes_in(None, labels, seen)
        read = cls(None, classes, _checked_labels(None, labels, classes))
        if y_score is None:
            return read
        if np.shape(y_score)[:1] != (n_rows,):
            raise ValueError(f"y_score has {_num_samples(y_score)} rows, y_pred has {n_rows}.")
        scored = read._with_scores("y_score", y_score, may_be_probabilities=True)
        second, values = labels == classes[-1], np.ravel(y_score)
        both = 0 < second.sum() < n_rows == len(values)
        if both and roc_auc_score(second, values) < _REVERSED:
            warn(
                f"y_score: rows that are predicted as {classes[-1]!r} have lower scores than the "
                f"others. Pass the scores of {classes[-1]!r}, the second of the sorted classes, "
                "whatever pos_label is.",
                InputWarning,
            )
        return scored

    def _with_scores(self, where: str, output: Any, *, may_be_probabilities: bool) -> "Outputs":
        """Return the outputs with finite scores, or with probabilities: of rows, or of classes."""
        n_classes = len(self.classes)
        try:
            scores = np.asarray(output, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where} must hold numbers: {error}.") from error
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.shape[1:] != (n_classes,) and (scores.ndim != 1 or n_classes > 2):
            raise ValueError(
                f"{where} must have a column for each of the {n_classes} classes"
                f"{' or one column' * (n_classes == 2)}; got the shape {scores.shape}."
            )
        if not np.isfinite(scores).all():
            n_missing = int((~np.isfinite(scores)).sum())
            raise ValueError(
                f"{where}: {n_missing} of {scores.size} values are not finite: every row needs a "
                "score."
            )
        if may_be_probabilities and np.all((scores >= 0.0) & (scores <= 1.0)):
            if scores.ndim == 1:
                scores = np.column_stack([1.0 - scores, scores])
            return replace(self, probabilities=scores)
        return replace(self, decision=scores)  # LightGBM's predict_proba, with its own objective

    def of_class(self, positive: object) -> "Outputs":
        """Return the outputs for a positive class."""
        return replace(self, positive=positive)

    def take(self, rows: Array) -> "Outputs":
        """Return the outputs for some rows."""
        return replace(self, **some_of(self, ("labels", "probabilities", "decision"), rows))

    @property
    def decided(self) -> Array:
        """Whether `predict` returns the positive class."""
        return np.asarray(self.labels == np.asarray(self.positive))

    @property
    def probability(self) -> Array | None:
        """The probability of the positive class; None if the model has no probabilities."""
        return None if self.probabilities is None else self.probabilities[:, self._column]

    @cached_property
    def scores(self) -> Array | None:
        """The score of the positive class, else its log odds; None if the model has neither.

        Of several classes it is the score, or the logarithm of the probability, minus the highest
        of the others.
        """
        if self.decision is not None:
            return against_others(self.decision, self._column)
        if self.probabilities is None:
            return None
        inside = np.log(np.clip(self.probabilities, 1e-15, 1.0 - 1e-15))
        return against_others(inside, self._column)

    @property
    def log_odds(self) -> Array | None:
        """With several classes and probabilities: the log odds of the positive class."""
        if self.probability is None or len(self.classes) <= 2:
            return None
        return np.asarray(logit(np.clip(self.probability, 1e-15, 1.0 - 1e-15)))

    @property
    def ranking(self) -> Array | None:
        """The scores by which rows are ranked: the log odds, else the scores."""
        return self.scores if self.log_odds is None else self.log_odds

    @cached_property
    def threshold(self) -> float:
        """The threshold: a prediction is positive if its score is above; nan if there is none."""
        return self._separates(self.scores, "decision_function")

    @cached_property
    def probability_threshold(self) -> float:
        """The same for probabilities."""
        return self._separates(self.probability, "predict_proba")

    @property
    def centred(self) -> Array:
        """Scores that are positive for positive predictions only; -1 and 1 without a threshold."""
        if self.scores is None or np.isnan(self.threshold):
            return np.where(self.decided, 1.0, -1.0)
        return self.scores - self.threshold

    def response(self, method: str) -> tuple[Array, float, str]:
        """Return what a method returns for the positive class, the threshold, and the axis label.

        The threshold is nan where predictions were not asked for, or there is none.
        """
        unit = RESPONSES[method][2]
        if len(self.classes) > 2:
            unit = f"score of class {self.positive} minus the highest of the others"
        elif method == "predict_proba" and self.probability is not None:
            return self.probability, self.probability_threshold, unit
        assert self.scores is not None
        return self.scores, self.threshold, unit

    @property
    def _column(self) -> int:
        return self.classes.index(self.positive)

    def _separates(self, scores: Array | None, method: str) -> float:
        """Return a threshold that has the positive predictions above: the model's, if it has."""
        if scores is None or self.labels is None:
            return float("nan")
        usual, attribute, _ = RESPONSES[method]
        stated = float(getattr(final_estimator(self.model), attribute, usual))
        if self.positive != favourable_label(self.model, self.classes):
            stated = 2.0 * usual - stated
        for threshold in (stated, usual):
            if np.array_equal(scores > threshold, self.decided):
                return threshold
        highest = scores[~self.decided].max(initial=-np.inf)
        lowest = scores[self.decided].min(initial=np.inf)
        if np.isneginf(highest):
            return float(np.nextafter(lowest, -np.inf))
        return float(highest) if lowest > highest else float("nan")


def against_others(scores: Array, column: int) -> Array:
    """Return the scores of a class minus the highest score of the others.

    Scores of two classes may be those of the second one, (n_rows,).
    """
    if scores.ndim == 1:
        return scores if column == 1 else -scores
    return np.asarray(scores[:, column] - np.delete(scores, column, axis=1).max(axis=1))


def scores_of(
    model: Any, X: Any, method: str, positive: object, classes: Sequence[Any] | None = None
) -> Array:
    """Return what a method of a model of two classes returns for the positive one, (n_rows,)."""
    outputs = Outputs.of(model, X, classes=classes, methods=[method])
    if len(outputs.classes) > 2:
        raise ValueError(
            "estimator: a classifier with two classes is needed; "
            f"{type(model).__name__} has {len(outputs.classes)} classes."
        )
    return outputs.of_class(positive).response(method)[0]


def _classes_in(model: Any, labels: Array | None, y: Array | None) -> list[Any]:
    """Return the classes of a model without `classes_`: the labels of the rows."""
    parts = [some for some in (y, labels) if some is not None]
    classes: list[Any] = np.unique(parts[0]).tolist() if parts else []
    if len(classes) == 1 and len(parts) > 1 and parts[0].dtype.kind == parts[1].dtype.kind:
        classes = np.unique(np.concatenate(parts)).tolist()
    if len(classes) == 1 and classes[0] in (-1, 0, 1):
        return [min(classes[0], 0), 1]
    if len(classes) < 2:
        lacks = "" if model is None else f"{type(model).__name__} lacks the attribute classes_: "
        raise ValueError(f"{lacks}the labels of these rows are {classes}; two classes are needed.")
    return classes


def _checked_labels(model: Any, labels: Array, classes: list[Any]) -> Array:
    """Return predicted labels, all of them among the classes."""
    try:
        labels = check_predicted(labels, len(labels), like=np.asarray(classes))
        if len(classes) == 2:
            two_classes(np.concatenate([np.asarray(classes), labels]))
        return known_labels("y_pred", labels, classes)
    except ValueError as error:
        if model is None:
            raise
        raise ValueError(f"predictions of {type(model).__name__}: {error}") from error
