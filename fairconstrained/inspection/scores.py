"""Scores by group, from a fitted model or from arrays: the data of plots and reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.inspection.collected import collect
from fairconstrained.inspection.deciding import MOST_GROUPS, shown_groups, stacked
from fairconstrained.inspection.models import check_model, response_of
from fairconstrained.metrics.inputs import check_score_rows
from fairconstrained.utils.meta_estimators import final_estimator
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.validation import check_finite

Ranks = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Scores of rows, with their groups and weights.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The scores. A prediction is positive if its score is above the threshold.
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights, > 0.
    threshold : float
        The decision threshold.
    unit : str
        The name of the scores, for axis labels.
    labels : ndarray or None, default=None
        The labels, if known.
    """

    scores: Array
    groups: Groups
    weight: Array
    threshold: float
    unit: str
    labels: Array | None = None

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike | None,
        scores: ArrayLike,
        sensitive_features: MatrixLike | Groups,
        sample_weight: ArrayLike | None = None,
        threshold: float | None = None,
        unit: str = "score",
    ) -> GroupScores:
        """Check scores and groups, and drop the rows of weight zero.

        With ``threshold=None`` the threshold is 1/2 if all scores are between 0 and 1, and else 0.
        """
        rows = check_score_rows(
            y_true, scores, sensitive_features, None, sample_weight, optional="y_true"
        )
        labels, scores, groups, weight = rows.labels, rows.values, rows.groups, rows.weight
        if not np.isfinite(scores).all():
            raise ValueError(
                f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite: "
                "every row needs a score."
            )
        if threshold is None:
            threshold = 0.5 if scores.min() >= 0.0 and scores.max() <= 1.0 else 0.0
        return cls(scores, groups, weight, check_finite("threshold", threshold), unit, labels)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: MatrixLike,
        y: ArrayLike | None,
        sensitive_features: MatrixLike | Groups | None,
        sample_weight: ArrayLike | None = None,
        *,
        response_method: str = "auto",
        threshold: float | None = None,
        marginal: bool = False,
        pos_label: object = None,
    ) -> GroupScores:
        """Return the scores of a fitted classifier.

        With `marginal`, for a classifier with ``combine="marginal"``, each row is listed once for
        each attribute. `pos_label` is the positive class; None takes that of the classifier. Of
        several classes it is needed: the scores are those of this class, or the logarithms of its
        probabilities, minus the highest of the others.
        """
        method = response_of(check_model(estimator), response_method)
        methods = ["predict", method]
        every = collect(estimator, X, y, sensitive_features, sample_weight, methods=methods)
        collected = every.against_rest(pos_label)
        scores, usual, unit = collected.outputs[""].response(method)
        threshold = usual if threshold is None else check_finite("threshold", threshold)
        if np.isnan(threshold):
            raise ValueError(
                f"response_method={response_method!r}: {type(estimator).__name__} does not predict "
                f"by a threshold on {method}. Pass threshold=, or response_method='auto'."
            )
        rows, groups = np.arange(len(scores)), replace(collected.groups, marginal=False)
        if marginal and collected.groups.marginal:
            rows, groups = stacked(collected.groups)
        labels = None if collected.labels is None else collected.labels[rows]
        return cls(scores[rows], groups, collected.weight[rows], threshold, unit, labels)

    def of_group(self, k: int, mask: Array | None = None) -> tuple[Array, Array]:
        """Return the scores of a group in ascending order, and their weights, which sum to one.

        Rows are those in the mask, None for all.
        """
        member = self.groups.codes == k
        rows = np.flatnonzero(member if mask is None else member & mask)
        rows = rows[np.argsort(self.scores[rows], kind="stable")]
        weight = self.weight[rows]
        return self.scores[rows], weight / max(weight.sum(), np.finfo(float).tiny)

    def chosen(self, keep: int | None = None) -> GroupScores:
        """Return the scores with the groups to show, of many groups, and the others as one group.

        Up to eight groups are all shown, in their order. Beyond, the groups are chosen and sorted
        by their selection rates; see `choose_groups`. The group `keep` is shown in any case.
        """
        if len(self.groups) <= MOST_GROUPS:
            return self
        selected = self.scores > self.threshold
        return replace(self, groups=shown_groups(self.groups, selected, self.weight, keep=keep))


def ranks_of(estimator: object) -> Ranks:
    """Return the range of ranks of the model's constraint; None if it has no range."""
    constraint = getattr(final_estimator(estimator), "constraint", None)
    for each in constraint if isinstance(constraint, list | tuple) else [constraint]:
        if isinstance(each, Constraint) and each.rank_range is not None:
            return each.rank_range
    return None
