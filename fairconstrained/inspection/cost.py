"""What a model costs against another one on the same rows: accuracy, and changed predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairconstrained.inspection.collected import Collected
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import effective_size
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


def cost_of(rows: Collected, first: str, second: str, confidence: float) -> Cost:
    """Return what the second model costs against the first, for all classes or a positive one.

    Parameters
    ----------
    rows : Collected
        The outputs of the models.
    first, second : str
        The names of the models.
    confidence : float
        The confidence level.
    """
    models = [rows.outputs[name] for name in (first, second)]
    if rows.positive is None:
        before, after = (np.asarray(one.labels) for one in models)
        moved = before != after
        changes = {str(one): int(np.sum(moved & (after == one))) for one in rows.classes}
    else:
        before, after = (one.decided for one in models)
        changes = {
            "newly_selected": int(np.sum(after & ~before)),
            "no_longer_selected": int(np.sum(before & ~after)),
        }
    right = [np.asarray(one == rows.labels) for one in (before, after)]
    return Cost(*accuracy_change(right[0], right[1], rows.weight, confidence), changes)


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
    n = effective_size(weight)
    total = n + 2.0
    centre = n * (gained - lost) / total
    spread = n * (gained + lost) + 1.0 - total * centre**2
    half = float(norm.ppf(0.5 + 0.5 * confidence)) * np.sqrt(max(spread, 0.0)) / total
    return gained - lost, max(-1.0, centre - half), min(1.0, centre + half)


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
    share = rows.weight / rows.weight.sum()
    found: dict[str, float] = {}
    if rows.positive is None:
        return found if rows.labels is None else _of_classes(rows.labels, share, output)
    if rows.labels is not None:
        found["accuracy"] = float(share @ (output.decided == rows.labels))
        if output.ranking is not None:
            found["AUC"] = _auc(rows.labels, output.ranking, share)
        if output.probability is not None:
            found["Brier score"] = float(share @ (output.probability - rows.labels) ** 2)
    found["selection rate"] = float(share @ output.decided)
    return found


def _of_classes(labels: Array, share: Array, output: Outputs) -> dict[str, float]:
    """Return accuracy, balanced accuracy and log loss."""
    correct = output.labels == labels
    order = np.argsort(output.classes)
    codes = order[np.searchsorted(output.classes, labels, sorter=order)]
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
