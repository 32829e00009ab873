"""The outputs of models on the same rows, what they measure, and what one costs against another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.utils.validation import _num_samples

from fairconstrained.data import attributes
from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_labels, check_same_rows, check_weight, known_labels
from fairconstrained.data.labels import ScoreConvention
from fairconstrained.data.sensitive_columns import SensitiveColumns
from fairconstrained.data.validation import TrainingData
from fairconstrained.inspection.assessment import AssessedRows
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import Interval, accuracy_change, weighted_share
from fairconstrained.metrics.rates import Predictions
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike, equal_weights
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    final_estimator,
    last_step,
    named_models,
)


@dataclass(frozen=True, eq=False)
class Collected:
    """The outputs of models on rows with groups, for all classes or for a positive one.

    Rows of weight zero are left out.
    """

    # the labels; of a positive class whether they are it (bool). None if they are not known,
    # (n_rows,)
    labels: Array | None
    classes: list[Any]  # the classes of the models
    groups: Groups  # the groups, marginal ones included
    weight: Array  # the weights, > 0, (n_rows,)
    weighted: bool  # whether weights differ
    rows: Array  # the positions of these rows among those that were given, (n_rows,)
    # the outputs of each model, by name. A single model without a name is called ""
    outputs: dict[str, Outputs]
    target: str = ""  # the name of the column of labels; empty if it has none
    positive: Any = None  # the positive class
    # the features as the model with the constraints gets them, see `rows`; None for predictions
    X: Any = None

    @property
    def n_rows(self) -> int:
        """How many rows there are, each counted once."""
        return len(self.groups.once(self.weight)[0])

    def of_class(self, positive: object) -> "Collected":
        """Return the rows and outputs for a positive class."""
        return replace(
            self,
            labels=None if self.labels is None else self.labels == positive,
            outputs={name: output.of_class(positive) for name, output in self.outputs.items()},
            positive=positive,
        )

    def against_rest(self, pos_label: object) -> "Collected":
        """Return the rows and outputs for a positive class against the others.

        It is that given, else the one that the models name, else the second class.
        """
        if pos_label is not None:
            if pos_label not in self.classes:
                raise ValueError(
                    f"pos_label={pos_label!r} is not one of the classes {self.classes}."
                )
            return self.of_class(pos_label)
        if len(self.classes) > 2:
            model = next(iter(self.outputs.values())).model
            raise ValueError(
                f"pos_label=None: {'y_pred' if model is None else type(model).__name__} has the "
                f"{len(self.classes)} classes {self.classes}, and one must be chosen. Pass "
                "pos_label: this class is compared with all others."
            )
        named = {
            name: label
            for name, output in self.outputs.items()
            if (label := getattr(final_estimator(output.model), "pos_label", None)) is not None
        }
        if len(set(named.values())) > 1:
            each = ", ".join(f"{name!r}: {label!r}" for name, label in named.items())
            raise ValueError(
                f"The models have different positive classes ({each}): pass pos_label."
            )
        return self.of_class(next(iter(named.values()), self.classes[1]))

    def right(self, output: Outputs) -> Array:
        """Return which predictions of a model are those of the labels."""
        if self.positive is None:
            return np.asarray(output.labels == self.labels)
        return output.of_class(self.positive).decided == self.labels

    def accuracy(self, output: Outputs, confidence: float) -> Interval:
        """Return the accuracy of a model with its interval."""
        places, weight = self.groups.once(self.weight)
        return weighted_share(self.right(output)[places], weight, confidence)

    def assessed(self, output: Outputs) -> AssessedRows:
        """Return the rows on which constraints are measured, with the scores of a model."""
        favourable = True if self.labels is None else self.labels
        labels = np.where(favourable, np.ones(len(self.weight)), -1.0)
        classes = np.array(sorted(self.classes, key=lambda label: label == self.positive))
        threshold = 0.0 if np.isnan(output.threshold) else output.threshold
        rows = TrainingData(None, labels, classes, self.groups, self.weight)
        of_X: Any = {"passed": self.X, "positions": self.rows}
        data = replace(rows, convention=ScoreConvention(threshold=threshold), **of_X)
        return AssessedRows(data, output.centred, output.log_odds)

    def predictions(self, name: str) -> list[Predictions]:
        """Return labels and predictions of a model, once for each grouping (see `separate`)."""
        decided = self.outputs[name].decided
        return Predictions(self.labels, decided, self.groups, self.weight).separate


def groups_of(
    estimator: object,
    X: MatrixLike,
    sensitive_features: MatrixLike | Groups | None,
    *,
    missing: str | None = None,
) -> Groups:
    """Return the groups of rows, from `sensitive_features` or from the model's sensitive columns.

    `missing` determines how missing values are treated; None takes the parameter `groups_missing`
    of a classifier of this library, else "raise". Its parameter `combine` says what several
    attributes mean. Columns have the order of its fit if they have the same names.
    """
    last, name = final_estimator(estimator), "sensitive_features"
    values, strata = attributes.split_strata(sensitive_features)
    if values is None:
        name, columns = "sensitive_columns", SensitiveColumns(last)
        if columns.columns is None:
            raise ValueError(
                "No groups are known: pass sensitive_features. It may be omitted only for a "
                "classifier of this library that has sensitive_columns."
            )
        values = columns.groups(last_step(estimator, X)[1])
    names = attributes.names_in_fit(last)
    if set(names) == set(attributes.names_of_columns(values)):  # else these are other attributes
        values = attributes.in_order(values, names, name)
    combine = getattr(last, "combine", "intersection")
    missing = getattr(last, "groups_missing", "raise") if missing is None else missing
    options: Any = {"combine": combine, "missing": missing, "probable": True}
    return Groups.encode(attributes.with_strata(values, strata), name=name, **options)


def collect(
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

    Groups are read from the `sensitive_columns` of the last model that has any where they are not
    given; `methods` are those to call, None for all that a model has.
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
    says = "sensitive_columns" if sensitive_features is None else "combine"
    every = list(fitted.values())
    knowing = [model for model in every if getattr(final_estimator(model), says, None) is not None]
    last = (knowing or every)[-1]
    groups = groups_of(last, X, sensitive_features, missing=groups_missing)
    rows = _collected(outputs, y, labels, groups, sample_weight, rows="X")
    return replace(rows, X=last_step(last, X)[1])


def collect_predictions(
    y_true: ArrayLike | None,
    y_pred: ArrayLike | Mapping[str, ArrayLike],
    y_score: ArrayLike | Mapping[str, ArrayLike] | None,
    sensitive_features: MatrixLike | Groups,
    sample_weight: ArrayLike | None = None,
    *,
    groups_missing: str | None = None,
) -> Collected:
    """Return stored predictions as outputs of models, for all classes."""
    predicted, scores = named_models(y_pred), {} if y_score is None else named_models(y_score)
    if not set(scores) <= set(predicted):
        theirs, ours = ([*filter(None, given)] or "none" for given in (scores, predicted))
        raise ValueError(f"y_score has names {theirs}, y_pred {ours}: pass mappings from names.")
    given = {"y_true": y_true, "sensitive_features": sensitive_features}
    for values in predicted.values():
        check_same_rows(y_pred=values, sample_weight=sample_weight, **given)
    n_rows = _num_samples(next(iter(predicted.values())))
    labels = None if y_true is None else check_labels("y_true", y_true, n_rows, rows="y_pred")
    every = {k: check_labels("y_pred", v, n_rows, rows="y_pred") for k, v in predicted.items()}
    seen = np.concatenate(list(every.values())) if labels is None else labels
    outputs = {name: Outputs.stored(each, scores.get(name), seen) for name, each in every.items()}
    groups = Groups.encode(sensitive_features, missing=groups_missing or "raise", probable=True)
    return _collected(outputs, y_true, labels, groups, sample_weight, rows="y_pred")


def _collected(
    outputs: dict[str, Outputs],
    y: Any,
    labels: Array | None,
    groups: Groups,
    sample_weight: ArrayLike | None,
    rows: str,
) -> Collected:
    """Return outputs of the same classes with labels, groups and weights of the rows."""
    (first, output), *others = outputs.items()
    for name, other in others:
        if other.classes != output.classes:
            raise ValueError(
                f"The models have different classes: {first!r} has {output.classes}, {name!r} has "
                f"{other.classes}. Compare models of the same classes."
            )
    assert output.labels is not None
    n_rows = len(output.labels)
    groups = check_groups(
        groups, n_rows, rows=rows, combine="marginal", compared=True, probable=True
    )
    if labels is not None:
        labels = known_labels("y" if rows == "X" else "y_true", labels, output.classes)
    weight = check_weight("sample_weight", sample_weight, n_rows, rows=rows)
    names = [getattr(y, "name", None), *getattr(y, "columns", ())]  # of a series, or of a frame
    counted = np.flatnonzero(weight)
    weighted = not equal_weights(weight[counted]) or groups.probabilities is not None
    some, groups, weight = groups.take(counted).surveyed(weight[counted])
    counted = counted[some]
    return Collected(
        labels=None if labels is None else labels[counted],
        classes=output.classes,
        groups=groups,
        weight=weight,
        weighted=weighted,
        rows=counted,
        outputs={name: each.take(counted) for name, each in outputs.items()},
        target="" if names[-1] is None else str(names[-1]),
    )


def cost_of(
    rows: Collected, first: str, second: str, confidence: float
) -> tuple[Interval, dict[str, int]]:
    """Return what the second model costs against the first, for all classes or a positive one.

    It is the change of the accuracy, and the rows whose prediction changes: `newly_selected` to and
    `no_longer_selected` from the positive class; of several classes, to which class.
    """
    places, weight = rows.groups.once(rows.weight)
    before, after = (rows.outputs[name].take(places) for name in (first, second))
    was_right, is_right = (rows.right(rows.outputs[name])[places] for name in (first, second))
    if rows.positive is None:
        moved = np.asarray(after.labels)[np.asarray(before.labels != after.labels)]
        changes = {str(label): int(np.sum(moved == label)) for label in rows.classes}
    else:
        sides = (after.decided, before.decided), (before.decided, after.decided)
        new, lost = (int(np.sum(selected & ~other)) for selected, other in sides)
        changes = {"newly_selected": new, "no_longer_selected": lost}
    return accuracy_change(was_right, is_right, weight, confidence), changes


def overall(rows: Collected, output: Outputs) -> dict[str, float]:
    """Return the measures of a model on all rows.

    For a positive class these are accuracy, AUC, Brier score and selection rate. AUC and Brier
    score are left out for models without scores or without probabilities; the AUC is nan if all
    rows have the same label. Without labels it is the selection rate only.

    For all classes they are accuracy, balanced accuracy and log loss. The balanced accuracy is the
    mean over the classes that have rows of the share of their rows that is predicted correctly. The
    log loss, the mean of minus the logarithm of the probability of the label, is left out for
    models without probabilities.
    """
    share, labels = rows.weight / rows.weight.sum(), rows.labels
    measures: dict[str, float] = {}
    if labels is not None:
        measures["accuracy"] = float(share @ rows.right(output))
    if labels is not None and rows.positive is None:
        present = np.unique(labels)
        recall = recall_score(
            labels, output.labels, labels=present, average="macro", sample_weight=share
        )
        measures["balanced accuracy"] = float(recall)
        if output.probabilities is not None:
            chances = output.probabilities[labels[:, None] == np.asarray(output.classes)]
            measures["log loss"] = float(-share @ np.log(np.maximum(chances, np.finfo(float).eps)))
    elif labels is not None:
        if output.ranking is not None:
            several = labels.any() and not labels.all()
            auc = roc_auc_score(labels, output.ranking, sample_weight=share) if several else np.nan
            measures["AUC"] = float(auc)
        if output.probability is not None:
            measures["Brier score"] = float(share @ (output.probability - labels) ** 2)
    if rows.positive is not None:
        measures["selection rate"] = float(share @ output.decided)
    return measures
