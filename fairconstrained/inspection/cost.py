"""What a model costs against another one on the same rows: accuracy, and changed predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from fairconstrained.inspection.collected import Collected, ModelOutput
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
    newly_selected, no_longer_selected : int
        The rows whose prediction changes to, and from, the positive class.
    """

    accuracy: float
    low: float
    high: float
    newly_selected: int
    no_longer_selected: int


def cost_of(collected: Collected, first: str, second: str, confidence: float) -> Cost:
    r"""Return what the second model costs against the first.

    The interval of the difference of two accuracies on the same rows is that of Agresti and Min:
    with :math:`n_{10}` rows that only the second model predicts correctly, :math:`n_{01}` that only
    the first does, one half added to all four counts, and :math:`N = n + 2`,

    .. math::
        d = (n_{10} - n_{01}) / N, \qquad
        d \pm z \sqrt{\left(n_{10} + n_{01} + 1 - N d^2\right)} / N.

    With weights, n is the effective sample size of Kish.

    Parameters
    ----------
    collected : Collected
        The outputs of the models.
    first, second : str
        The names of the models.
    confidence : float
        The confidence level.

    References
    ----------
    Agresti, Min (2005), Simple improved confidence intervals for comparing matched proportions.
    """
    before, after = (collected.outputs[name].decided for name in (first, second))
    labels, weight = collected.labels, collected.weight
    share = weight / weight.sum()
    gained = float(share @ ((after == labels) & (before != labels)))
    lost = float(share @ ((after != labels) & (before == labels)))
    n = float(weight.sum() ** 2 / (weight @ weight))
    total = n + 2.0
    centre = n * (gained - lost) / total
    spread = n * (gained + lost) + 1.0 - total * centre**2
    half = float(norm.ppf(0.5 + 0.5 * confidence)) * np.sqrt(max(spread, 0.0)) / total
    return Cost(
        gained - lost,
        max(-1.0, centre - half),
        min(1.0, centre + half),
        int(np.sum(after & ~before)),
        int(np.sum(before & ~after)),
    )


def overall(collected: Collected, output: ModelOutput) -> dict[str, float]:
    """Return accuracy, AUC, Brier score and selection rate of a model on all rows.

    AUC and Brier score are left out for models without scores or without probabilities; the AUC is
    nan if all rows have the same label.
    """
    share = collected.weight / collected.weight.sum()
    found = {"accuracy": float(share @ (output.decided == collected.labels))}
    if output.scores is not None:
        found["AUC"] = _auc(collected.labels, output.scores, share)
    if output.probability is not None:
        found["Brier score"] = float(share @ (output.probability - collected.labels) ** 2)
    found["selection rate"] = float(share @ output.decided)
    return found


def _auc(labels: Array, scores: Array, weight: Array) -> float:
    if labels.all() or not labels.any():
        return float("nan")
    return float(roc_auc_score(labels, scores, sample_weight=weight))
