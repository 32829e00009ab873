"""The outputs of one or several models on the same rows: the data of comparisons and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_labels, check_weight, known_labels
from fairconstrained.inspection.assessment import AssessedRows
from fairconstrained.inspection.outputs import ClassOutputs, ModelOutput
from fairconstrained.inspection.scores import (
    check_no_ranker,
    check_two_classes,
    checked_positive,
    groups_of,
)
from fairconstrained.metrics.rates import Predictions
from fairconstrained.utils.meta_estimators import best_estimator, final_estimator, named_models
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike


@dataclass(frozen=True, eq=False)
class Collected:
    """The outputs of models on rows with labels and groups, for a positive class.

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

    def assessed(self, output: ModelOutput) -> AssessedRows:
        """Return the rows on which constraints are measured, with the scores of a model."""
        labels = np.where(self.labels, 1.0, -1.0)
        threshold = 0.0 if np.isnan(output.threshold) else output.threshold
        return AssessedRows(
            labels, output.centred, self.groups, self.weight, threshold, output.log_odds
        )

    def predictions(self, name: str) -> list[Predictions]:
        """Return labels and predictions of a model, once for each grouping (see `separate`)."""
        decided = self.outputs[name].decided
        return [Predictions(self.labels, decided, one, self.weight) for one in self.groups.separate]


@dataclass(frozen=True, eq=False)
class CollectedClasses:
    """The outputs of models on rows with labels and groups, for all classes.

    Rows of weight zero are left out.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        The labels.
    classes : list of label
        The classes of the models.
    target : str
        The name of the column of labels; empty if it has none.
    groups, weight, weighted, rows
        See :class:`Collected`.
    outputs : dict of str to ClassOutputs
        The outputs of each model, by name. A single model without a name is called "".
    """

    labels: Array
    classes: list[Any]
    target: str
    groups: Groups
    weight: Array
    weighted: bool
    rows: Array
    outputs: dict[str, ClassOutputs]

    def of_class(self, positive: object) -> Collected:
        """Return the rows and outputs for a positive class."""
        return Collected(
            labels=self.labels == positive,
            groups=self.groups,
            weight=self.weight,
            weighted=self.weighted,
            positive=positive,
            others=[one for one in self.classes if one != positive],
            rows=self.rows,
            outputs={name: one.of_class(positive) for name, one in self.outputs.items()},
        )

    def favourable(self, pos_label: object) -> Any:
        """Return the positive class: as given, of the models that name one, or the second class.

        Raises
        ------
        ValueError
            If there are several classes and none is given, it is not a class, or models disagree.
        """
        models = {name: one.estimator for name, one in self.outputs.items()}
        if pos_label is not None or len(self.classes) > 2:
            return checked_positive(next(iter(models.values())), pos_label)
        return _positive(models, self.classes)


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
    """Return the outputs of one or several fitted classifiers on the same rows, for a class.

    Parameters
    ----------
    models, X, y, sensitive_features, sample_weight, groups_missing
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
    found = collect_classes(
        models, X, y, sensitive_features, sample_weight, groups_missing=groups_missing
    )
    return found.of_class(found.favourable(pos_label))


def collect_classes(
    models: Classifier | Mapping[str, Classifier],
    X: MatrixLike,
    y: ArrayLike,
    sensitive_features: MatrixLike | Groups | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    groups_missing: str | None = None,
) -> CollectedClasses:
    """Return the outputs of one or several fitted classifiers on the same rows, for all classes.

    Parameters
    ----------
    models : classifier or mapping of str to classifier
        Fitted classifiers of any library, pipelines or searches; several by name.
    X : array-like, DataFrame or sparse matrix of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The labels.
    sensitive_features : array-like, DataFrame or None, default=None
        The groups; None reads them from the `sensitive_columns` of the last model that has any.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        The weights of the rows.
    groups_missing : {"raise", "own_group", "ignore_in_constraint"} or None, default=None
        How missing values of the groups are treated; None takes the parameter of the last model
        that has one, else "raise".

    Returns
    -------
    collected : CollectedClasses
        Labels, groups, weights and outputs.

    Raises
    ------
    ValueError
        If there are no models, the models have other classes, a label is unknown, or no groups are
        known.
    NotFittedError
        If a model is not fitted.
    """
    check_same_rows(
        test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
    )
    fitted = {name: best_estimator(model) for name, model in named_models(models).items()}
    for model in fitted.values():
        check_no_ranker(model)
        if len(getattr(model, "classes_", ())) <= 2:
            check_two_classes(model)
    classes = _classes(fitted, y)
    groups = groups_of(
        _knows_groups(list(fitted.values()), sensitive_features is None),
        X,
        sensitive_features,
        marginal=True,
        missing=groups_missing,
    )
    outputs = {
        name: ClassOutputs.of_model(model, X, sensitive_features) for name, model in fitted.items()
    }
    n_rows = len(next(iter(outputs.values())).predicted)
    groups = check_groups(groups, n_rows, combine="marginal", compared=True)
    labels = check_labels("y", y, n_rows, rows="X")
    weight = check_weight("sample_weight", sample_weight, n_rows, rows="X")
    rows = np.flatnonzero(weight)
    return CollectedClasses(
        labels=labels[rows],
        classes=classes,
        target=_name(y),
        groups=groups.take(rows),
        weight=weight[rows],
        weighted=sample_weight is not None,
        rows=rows,
        outputs={name: one.take(rows) for name, one in outputs.items()},
    )


def _name(y: Any) -> str:
    """Return the name of a Series, or of the column of a frame; empty if there is none."""
    name = getattr(y, "name", None)
    columns = list(getattr(y, "columns", ()))
    return str(columns[0]) if len(columns) == 1 else "" if name is None else str(name)


def _classes(models: Mapping[str, Any], y: ArrayLike) -> list[Any]:
    """Return the classes of the models; raise if they differ, or a label is unknown."""
    (first, model), *others = models.items()
    classes: list[Any] = model.classes_.tolist()
    for name, other in others:
        if other.classes_.tolist() != classes:
            raise ValueError(
                f"The models have different classes: {first!r} has {classes}, {name!r} has "
                f"{other.classes_.tolist()}. Compare models of the same classes."
            )
    known_labels("y", y, classes)
    return classes


def _positive(models: Mapping[str, Any], classes: list[Any]) -> Any:
    """Return the positive class of the models that name one, else the second class."""
    lasts = {name: final_estimator(model) for name, model in models.items()}
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
    return next(iter(own.values())) if own else classes[1]


def _knows_groups(models: list[Any], from_columns: bool) -> Any:
    """Return the last model that says how groups are read; the last model if none does."""
    name = "sensitive_columns" if from_columns else "combine"
    knowing = [one for one in models if getattr(final_estimator(one), name, None) is not None]
    return (knowing or models)[-1]
