"""What a model costs against another one on the same rows: accuracy, and changed predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import recall_score, roc_auc_score

from fairconstrained.inspection.collected import Collected
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import accuracy_change


@dataclass(frozen=True)
class Cost:
    """The difference of two models on the same rows.

    Attributes
    ----------
    accuracy : float
        The accuracy of the second model minus that of the first.
    low, high : float
        The confidence interval of this difference.
    changes : dict of str to int
        The rows whose prediction changes: `newly_selected` to and `no_longer_selected` from the
        positive class; of several classes, to which class.
    """

    accuracy: float
    low: float
    high: float
    changes: dict[str, int]

    @property
    def changed(self) -> int:
        """The rows whose prediction changes."""
        return sum(self.changes.values())


def cost_of(rows: Collected, first: str, second: str, confidence: float) -> Cost:
    """Return what the second model costs against the first, for all classes or a positive one."""
    before, after = (rows.outputs[name] for name in (first, second))
    if rows.positive is None:
        moved = np.asarray(after.labels)[np.asarray(before.labels != after.labels)]
        changes = {str(label): int(np.sum(moved == label)) for label in rows.classes}
    else:
        changes = {
            "newly_selected": int(np.sum(after.decided & ~before.decided)),
            "no_longer_selected": int(np.sum(before.decided & ~after.decided)),
        }
    right = rows.right(before), rows.right(after)
    change = accuracy_change(*right, rows.weight, confidence)
    return Cost(float(change.value), float(change.low), float(change.high), changes)


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
            loss = -share @ np.log(np.maximum(chances, np.finfo(float).eps))
            measures["log loss"] = float(loss)
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
