"""The outputs of one or several models on the same rows: the data of comparisons and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_held, check_labels, check_weight
from fairconstrained.inspection.scores import check_two_classes, groups_of
from fairconstrained.metrics.rates import Predictions
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    final_estimator,
    prediction_groups,
)
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike


@dataclass(frozen=True, eq=False)
class ModelOutput:
    """What a model returns for given rows.

    Parameters
    ----------
    estimator : classifier
        The fitted model; of a search its best estimator.
    decided : ndarray of bool of shape (n_rows,)
        Whether `predict` returns the positive class.
    scores : ndarray of shape (n_rows,) or None
        The values of `decision_function`, else the log-odds of `predict_proba`, in the direction of
        the positive class; None if the model has neither.
    probability : ndarray of shape (n_rows,) or None
        The probability of the positive class, if the model has `predict_proba`.
    usual_threshold : float, default=0.0
        The threshold of the scores that the model names.
    """

    estimator: Classifier
    decided: Array
    scores: Array | None
    probability: Array | None
    usual_threshold: float = 0.0

    @cached_property
    def threshold(self) -> float:
        """The threshold: a prediction is positive if its score is above; nan if there is none."""
        if self.scores is None:
            return float("nan")
        own = getattr(final_estimator(self.estimator), "score_threshold_", self.usual_threshold)
        for threshold in (float(own), self.usual_threshold):
            if np.array_equal(self.scores > threshold, self.decided):
                return threshold
        highest = self.scores[~self.decided].max(initial=-np.inf)
        lowest = self.scores[self.decided].min(initial=np.inf)
        if np.isneginf(highest):
            return float(np.nextafter(lowest, -np.inf))
        return float(highest) if lowest > highest else float("nan")

    @property
    def centred(self) -> Array:
        """Scores that are positive for positive predictions only; -1 and 1 without a threshold."""
        if self.scores is None or np.isnan(self.threshold):
            return np.where(self.decided, 1.0, -1.0)
        return self.scores - self.threshold

    def take(self, rows: Array) -> ModelOutput:
        """Return the outputs for some rows."""
        scores = None if self.scores is None else self.scores[rows]
        probability = None if self.probability is None else self.probability[rows]
        return replace(self, decided=self.decided[rows], scores=scores, probability=probability)


@dataclass(frozen=True, eq=False)
class Collected:
    """The outputs of models on rows with labels and groups. Rows of weight zero are left out.

    Parameters
    ----------
    labels : ndarray of bool of shape (n_rows,)
        Whether the label is the positive class.
    groups : Groups
        The groups, marginal ones included.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    weighted : bool
        Whether weights were given.
    positive : label
        The positive class.
    others : list of label
        The other class, or classes.
    rows : ndarray of int of shape (n_rows,)
        The positions of these rows among those that were given.
    outputs : dict of str to ModelOutput
        The outputs of each model, by name. A single model without a name is called "".
    """

    labels: Array
    groups: Groups
    weight: Array
    weighted: bool
    positive: Any
    others: list[Any]
    rows: Array
    outputs: dict[str, ModelOutput]

    def predictions(self, name: str) -> list[Predictions]:
        """Return labels and predictions of a model, once for each grouping (see `separate`)."""
        decided = self.outputs[name].decided
        return [Predictions(self.labels, decided, one, self.weight) for one in self.groups.separate]


def collect(
    models: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | Groups | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    pos_label: object = None,
    groups_missing: str | None = None,
) -> Collected:
    """Return the outputs of one or several fitted binary classifiers on the same rows.

    Parameters
    ----------
    models : classifier or mapping of str to classifier
        Fitted binary classifiers of any library, pipelines or searches; several by name.
    X : array-like, DataFrame or sparse matrix of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The labels.
    sensitive_features : array-like, DataFrame or None, default=None
        The groups; None reads them from the `sensitive_columns` of the last model that has any.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        The weights of the rows.
    pos_label : label or None, default=None
        The positive class; None takes that of the models. With several classes it is needed: the
        class is measured against the others.
    groups_missing : {"raise", "own_group", "ignore_in_constraint"} or None, default=None
        How missing values of the groups are treated; None takes the parameter of the last model
        that has one, else "raise".

    Returns
    -------
    collected : Collected
        Labels, groups, weights and outputs.

    Raises
    ------
    ValueError
        If there are no models, a model has several classes and there is no `pos_label`, the models
        have other classes or disagree on the positive one, a label is unknown, or no groups are
        known.
    NotFittedError
        If a model is not fitted.
    """
    check_same_rows(
        test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise ValueError("There are no models: pass a fitted classifier, or several by name.")
    fitted = {str(name): best_estimator(model) for name, model in named.items()}
    for model in fitted.values():
        _check_classes(model, pos_label)
    classes = _classes(fitted, y)
    positive = _positive(fitted, classes, pos_label)
    groups = groups_of(
        _knows_groups(list(fitted.values()), sensitive_features is None),
        X,
        sensitive_features,
        marginal=True,
        missing=groups_missing,
    )
    outputs = {
        name: output_of(model, X, positive, sensitive_features) for name, model in fitted.items()
    }
    n_rows = len(next(iter(outputs.values())).decided)
    groups = check_groups(groups, n_rows, combine="marginal")
    labels = check_labels("y", y, n_rows, rows="X")
    weight = check_weight("sample_weight", sample_weight, n_rows, rows="X")
    rows = np.flatnonzero(weight)
    return Collected(
        labels=labels[rows] == positive,
        groups=groups.take(rows),
        weight=weight[rows],
        weighted=sample_weight is not None,
        positive=positive,
        others=[one for one in classes if one != positive],
        rows=rows,
        outputs={name: one.take(rows) for name, one in outputs.items()},
    )


def output_of(
    model: Any, X: MatrixLike, positive: object, sensitive_features: MatrixLike | Groups | None
) -> ModelOutput:
    """Return the outputs of a fitted classifier, for a positive class.

    With several classes the score is that of the positive class minus the highest of the others.
    Models that need the groups to predict receive `sensitive_features`.
    """
    column = model.classes_.tolist().index(positive)
    groups = prediction_groups(model, sensitive_features)
    probability, scores = None, None
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(X), dtype=float)[:, column]
    if hasattr(model, "decision_function"):
        scores = _against_others(model.decision_function(X, **groups), column)
    elif probability is not None:
        inside = np.clip(model.predict_proba(X), 1e-15, 1.0 - 1e-15)
        scores = _against_others(np.log(inside), column)
    decided = np.asarray(model.predict(X, **groups)) == positive
    threshold = float(getattr(final_estimator(model), "score_threshold_", 0.0))
    return ModelOutput(model, decided, scores, probability, threshold)


def _against_others(scores: ArrayLike, column: int) -> Array:
    """Return the scores of a class minus the highest score of the others."""
    found = np.asarray(scores, dtype=float)
    if found.ndim == 1:
        return found if column == 1 else -found
    return found[:, column] - np.delete(found, column, axis=1).max(axis=1)


def _check_classes(model: Any, pos_label: object) -> None:
    """Raise unless a model is a fitted classifier of two classes, or of more with a `pos_label`."""
    n_classes = len(getattr(model, "classes_", ()))
    if n_classes > 2 and pos_label is None:
        raise ValueError(
            f"estimator: a classifier with two classes is needed; {type(model).__name__} has "
            f"{n_classes} classes. Pass pos_label: that class is then measured against the others."
        )
    if n_classes <= 2:
        check_two_classes(model)


def _classes(models: Mapping[str, Any], y: ArrayLike) -> list[Any]:
    """Return the classes of the models; raise if they differ, or a label is unknown."""
    check_held("y", y)
    labels = check_labels("y", y, len(np.ravel(np.asarray(y))), rows="y")
    (first, model), *others = models.items()
    classes: list[Any] = model.classes_.tolist()
    for name, other in others:
        if other.classes_.tolist() != classes:
            raise ValueError(
                f"The models have other classes: {first!r} has {classes}, {name!r} has "
                f"{other.classes_.tolist()}. Compare models of the same classes."
            )
    unknown = [one for one in np.unique(labels).tolist() if one not in classes]
    if unknown:
        raise ValueError(
            f"y has the label {unknown[0]!r}, which is not among the classes {classes} of the "
            "estimator."
        )
    return classes


def _positive(models: Mapping[str, Any], classes: list[Any], pos_label: object) -> Any:
    """Return the positive class: as given, of the models that name one, or the second class."""
    if pos_label is not None:
        if pos_label not in classes:
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes}.")
        return pos_label
    lasts = {name: final_estimator(model) for name, model in models.items()}
    own = {
        name: one.pos_label
        for name, one in lasts.items()
        if getattr(one, "pos_label", None) is not None
    }
    if len(set(own.values())) > 1:
        raise ValueError(
            "The models have other positive classes ("
            + ", ".join(f"{name!r}: {label!r}" for name, label in own.items())
            + "): pass pos_label."
        )
    return next(iter(own.values())) if own else classes[1]


def _knows_groups(models: list[Any], from_columns: bool) -> Any:
    """Return the last model that says how groups are read; the last model if none does."""
    name = "sensitive_columns" if from_columns else "combine"
    knowing = [one for one in models if getattr(final_estimator(one), name, None) is not None]
    return (knowing or models)[-1]
