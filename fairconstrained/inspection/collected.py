"""The outputs of one or several models on the same rows: the data of comparisons and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_labels, check_same_rows, check_weight, known_labels
from fairconstrained.inspection.assessment import AssessedRows
from fairconstrained.inspection.models import groups_of
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.rates import Predictions
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator, named_models
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike


@dataclass(frozen=True, eq=False)
class Collected:
    """The outputs of models on rows with groups, for all classes or for a positive one.

    Rows of weight zero are left out.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,) or None
        The labels; of a positive class whether they are it (bool). None if they are not known.
    classes : list of label
        The classes of the models.
    groups : Groups
        The groups, marginal ones included.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    weighted : bool
        Whether weights were given.
    rows : ndarray of int of shape (n_rows,)
        The positions of these rows among those that were given.
    outputs : dict of str to Outputs
        The outputs of each model, by name. A single model without a name is called "".
    target : str, default=""
        The name of the column of labels; empty if it has none.
    positive : label or None, default=None
        The positive class.
    """

    labels: Array | None
    classes: list[Any]
    groups: Groups
    weight: Array
    weighted: bool
    rows: Array
    outputs: dict[str, Outputs]
    target: str = ""
    positive: Any = None

    def of_class(self, positive: object) -> Collected:
        """Return the rows and outputs for a positive class."""
        return replace(
            self,
            labels=None if self.labels is None else self.labels == positive,
            outputs={name: one.of_class(positive) for name, one in self.outputs.items()},
            positive=positive,
        )

    def favourable(self, pos_label: object) -> Any:
        """Return the positive class: as given, of the models that name one, or the second class.

        Raises
        ------
        ValueError
            If there are several classes and none is given, it is not a class, or models disagree.
        """
        if pos_label is not None and pos_label not in self.classes:
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {self.classes}.")
        if pos_label is None and len(self.classes) > 2:
            model = next(iter(self.outputs.values())).model
            raise ValueError(
                f"pos_label=None: {'y_pred' if model is None else type(model).__name__} has the "
                f"{len(self.classes)} classes {self.classes}, and one must be chosen. Pass "
                "pos_label: this class is compared with all others."
            )
        if pos_label is not None:
            return pos_label
        lasts = {name: final_estimator(one.model) for name, one in self.outputs.items()}
        own = {
            name: one.pos_label
            for name, one in lasts.items()
            if getattr(one, "pos_label", None) is not None
        }
        if len(set(own.values())) > 1:
            raise ValueError(
                "The models have different positive classes ("
                + ", ".join(f"{name!r}: {label!r}" for name, label in own.items())
                + "): pass pos_label."
            )
        return next(iter(own.values())) if own else self.classes[1]

    def assessed(self, output: Outputs) -> AssessedRows:
        """Return the rows on which constraints are measured, with the scores of a model."""
        favourable = True if self.labels is None else self.labels
        labels = np.where(favourable, np.ones(len(self.weight)), -1.0)
        threshold = 0.0 if np.isnan(output.threshold) else output.threshold
        return AssessedRows(
            labels, output.centred, self.groups, self.weight, threshold, output.log_odds
        )

    def predictions(self, name: str) -> list[Predictions]:
        """Return labels and predictions of a model, once for each grouping (see `separate`)."""
        decided = self.outputs[name].decided
        return [Predictions(self.labels, decided, one, self.weight) for one in self.groups.separate]


def collect(
    models: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike | None,
    sensitive_features: MatrixLike | Groups | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    pos_label: object = None,
    **options: Any,
) -> Collected:
    """Return the outputs of one or several fitted classifiers on the same rows, for a class.

    Parameters
    ----------
    models, X, y, sensitive_features, sample_weight, **options
        See :func:`collect_classes`.
    pos_label : label or None, default=None
        The positive class; None takes that of the models. With several classes it is needed: the
        class is measured against the others.

    Returns
    -------
    collected : Collected
        Labels, groups, weights and outputs.

    Raises
    ------
    ValueError
        If a model has several classes and there is no `pos_label`, or the models disagree on the
        positive class; see also :func:`collect_classes`.
    """
    found = collect_classes(models, X, y, sensitive_features, sample_weight, **options)
    return found.of_class(found.favourable(pos_label))


def collect_classes(
    models: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike | None,
    sensitive_features: MatrixLike | Groups | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    groups_missing: str | None = None,
    methods: Sequence[str] | None = None,
) -> Collected:
    """Return the outputs of one or several fitted classifiers on the same rows, for all classes.

    Parameters
    ----------
    models : classifier or mapping of str to classifier
        Fitted classifiers of any library, pipelines or searches; several by name.
    X : array-like, DataFrame or sparse matrix of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The labels.
    sensitive_features : array-like, DataFrame or None, default=None
        The groups; None reads them from the `sensitive_columns` of the last model that has any.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        The weights of the rows.
    groups_missing : {"raise", "own_group", "ignore_in_constraint"} or None, default=None
        How missing values of the groups are treated; None takes the parameter of the last model
        that has one, else "raise".
    methods : sequence of str or None, default=None
        The methods to call; None calls all that a model has.

    Returns
    -------
    collected : Collected
        Labels, groups, weights and outputs.

    Raises
    ------
    ValueError
        If there are no models, the models have other classes, a label is unknown, or no groups are
        known.
    NotFittedError
        If a model is not fitted.
    """
    check_same_rows(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    fitted = {name: best_estimator(model) for name, model in named_models(models).items()}
    try:
        labels = None if y is None else check_labels("y", y, _num_samples(X))
    except TypeError as error:
        raise TypeError(f"X: {error}") from error
    outputs = {
        name: Outputs.of(model, X, sensitive_features, y=labels, methods=methods)
        for name, model in fitted.items()
    }
    groups = groups_of(
        _knows_groups(list(fitted.values()), sensitive_features is None),
        X,
        sensitive_features,
        missing=groups_missing,
    )
    found = _collected(outputs, labels, groups, sample_weight, rows="X")
    return replace(found, target=_name(y))


def collect_predictions(
    y_true: ArrayLike | None,
    y_pred: ArrayLike | Mapping[str, ArrayLike],
    y_score: ArrayLike | Mapping[str, ArrayLike] | None,
    sensitive_features: MatrixLike | Groups,
    sample_weight: ArrayLike | None = None,
    *,
    groups_missing: str | None = None,
) -> Collected:
    """Return stored predictions as outputs of models, for all classes.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        The labels.
    y_pred : array-like of shape (n_rows,) or mapping of str to array-like
        The predicted labels; of several models by name.
    y_score : array-like of shape (n_rows,), mapping of str to array-like or None
        Their scores, which are probabilities if all are between 0 and 1.
    sensitive_features, sample_weight, groups_missing
        See :func:`collect_classes`.

    Raises
    ------
    ValueError
        If lengths differ, a label is missing, or `y_score` has other names than `y_pred`.
    """
    predicted, scores = named_models(y_pred), {} if y_score is None else named_models(y_score)
    if not set(scores) <= set(predicted):
        raise ValueError(f"y_score has the names {list(scores)}, y_pred has {list(predicted)}.")
    given = {"y_true": y_true, "sensitive_features": sensitive_features}
    for one in predicted.values():
        check_same_rows(y_pred=one, sample_weight=sample_weight, **given)
    n_rows = _num_samples(next(iter(predicted.values())))
    labels = None if y_true is None else check_labels("y_true", y_true, n_rows, rows="y_pred")
    outputs = {
        name: Outputs.stored(one, scores.get(name), labels) for name, one in predicted.items()
    }
    groups = Groups.encode(
        sensitive_features, name="sensitive_features", missing=groups_missing or "raise"
    )
    found = _collected(outputs, labels, groups, sample_weight, rows="y_pred")
    return replace(found, target=_name(y_true))


def _name(y: Any) -> str:
    """Return the name of a Series, or of the column of a frame; empty if there is none."""
    name = getattr(y, "name", None)
    columns = list(getattr(y, "columns", ()))
    return str(columns[0]) if len(columns) == 1 else "" if name is None else str(name)


def _collected(
    outputs: dict[str, Outputs],
    labels: Array | None,
    groups: Groups,
    sample_weight: ArrayLike | None,
    rows: str,
) -> Collected:
    """Return outputs of the same classes with labels, groups and weights of the rows."""
    (first, one), *others = outputs.items()
    for name, other in others:
        if other.classes != one.classes:
            raise ValueError(
                f"The models have different classes: {first!r} has {one.classes}, {name!r} has "
                f"{other.classes}. Compare models of the same classes."
            )
    assert one.labels is not None
    n_rows = len(one.labels)
    groups = check_groups(groups, n_rows, rows=rows, combine="marginal", compared=True)
    if labels is not None:
        labels = known_labels("y" if rows == "X" else "y_true", labels, one.classes)
    weight = check_weight("sample_weight", sample_weight, n_rows, rows=rows)
    counted = np.flatnonzero(weight)
    return Collected(
        labels=None if labels is None else labels[counted],
        classes=one.classes,
        groups=groups.take(counted),
        weight=weight[counted],
        weighted=sample_weight is not None,
        rows=counted,
        outputs={name: each.take(counted) for name, each in outputs.items()},
    )


def _knows_groups(models: list[Any], from_columns: bool) -> Any:
    """Return the last model that says how groups are read; the last model if none does."""
    name = "sensitive_columns" if from_columns else "combine"
    knowing = [one for one in models if getattr(final_estimator(one), name, None) is not None]
    return (knowing or models)[-1]
