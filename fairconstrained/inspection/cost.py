"""What a model costs against another one on the same rows: accuracy, and changed predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairconstrained.inspection.collected import Collected, CollectedClasses
from fairconstrained.inspection.outputs import ClassOutputs, ModelOutput
from fairconstrained.utils.typing import Array


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


def cost_of(collected: Collected, first: str, second: str, confidence: float) -> Cost:
    """Return what the second model costs against the first, for a positive class.

    Parameters
    ----------
    collected : Collected
        The outputs of the models.
    first, second : str
        The names of the models.
    confidence : float
        The confidence level.
    """
    before, after = (collected.outputs[name].decided for name in (first, second))
    correct = before == collected.labels, after == collected.labels
    changes = {
        "newly_selected": int(np.sum(after & ~before)),
        "no_longer_selected": int(np.sum(before & ~after)),
    }
    return Cost(*accuracy_change(*correct, collected.weight, confidence), changes)


def cost_of_classes(rows: CollectedClasses, first: str, second: str, confidence: float) -> Cost:
    """Return what the second model costs against the first, for all classes.

    Parameters
    ----------
    rows : CollectedClasses
        The outputs of the models.
    first, second, confidence
        See :func:`cost_of`.
    """
    before, after = (rows.outputs[name].predicted for name in (first, second))
    moved = before != after
    changes = {str(one): int(np.sum(moved & (after == one))) for one in rows.classes}
    correct = before == rows.labels, after == rows.labels
    return Cost(*accuracy_change(*correct, rows.weight, confidence), changes)


def accuracy_change(
    before: Array, after: Array, weight: Array, confidence: float
) -> tuple[float, float, float]:
    r"""Return the difference of two accuracies on the same rows, with its confidence interval.

    The interval is that of Agresti and Min: with :math:`n_{10}` rows that only the second model
    predicts correctly, :math:`n_{01}` that only the first does, one half added to all four counts,
    and :math:`N = n + 2`,

    .. math::
        d = (n_{10} - n_{01}) / N, \qquad
        d \pm z \sqrt{\left(n_{10} + n_{01} + 1 - N d^2\right)} / N.

    With weights, n is the effective sample size of Kish.

    Parameters
    ----------
    before, after : ndarray of bool of shape (n_rows,)
        Which predictions of the two models are correct.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    confidence : float
        The confidence level.

    References
    ----------
    Agresti, Min (2005), Simple improved confidence intervals for comparing matched proportions.
    """
    share = weight / weight.sum()
    gained, lost = float(share @ (after & ~before)), float(share @ (before & ~after))
    n = float(weight.sum() ** 2 / (weight @ weight))
    total = n + 2.0
    centre = n * (gained - lost) / total
    spread = n * (gained + lost) + 1.0 - total * centre**2
    half = float(norm.ppf(0.5 + 0.5 * confidence)) * np.sqrt(max(spread, 0.0)) / total
    return gained - lost, max(-1.0, centre - half), min(1.0, centre + half)


def overall(collected: Collected, output: ModelOutput) -> dict[str, float]:
    """Return accuracy, AUC, Brier score and selection rate of a model on all rows.

    AUC and Brier score are left out for models without scores or without probabilities; the AUC is
    nan if all rows have the same label.
    """
    share = collected.weight / collected.weight.sum()
    found = {"accuracy": float(share @ (output.decided == collected.labels))}
    if output.ranking is not None:
        found["AUC"] = _auc(collected.labels, output.ranking, share)
    if output.probability is not None:
        found["Brier score"] = float(share @ (output.probability - collected.labels) ** 2)
    found["selection rate"] = float(share @ output.decided)
    return found


def overall_of_classes(rows: CollectedClasses, output: ClassOutputs) -> dict[str, float]:
    """Return accuracy, balanced accuracy and log loss of a model on all rows.

    The balanced accuracy is the mean over the classes that have rows of the share of their rows
    that is predicted correctly. The log loss, the mean of minus the logarithm of the probability of
    the label, is left out for models without probabilities.
    """
    share = rows.weight / rows.weight.sum()
    correct = output.predicted == rows.labels
    codes = np.searchsorted(rows.classes, rows.labels)
    sizes, right = (np.bincount(codes, weights) for weights in (share, share * correct))
    found = {
        "accuracy": float(share @ correct),
        "balanced accuracy": float(np.mean(right[sizes > 0.0] / sizes[sizes > 0.0])),
    }
    if output.probabilities is not None:
        own = output.probabilities[np.arange(len(codes)), codes]
        found["log loss"] = float(-share @ np.log(np.maximum(own, np.finfo(float).eps)))
    return found


def _auc(labels: Array, scores: Array, weight: Array) -> float:
    if labels.all() or not labels.any():
        return float("nan")
    return float(roc_auc_score(labels, scores, sample_weight=weight))
