"""Fairness metrics of scores, ranks and predictions that fairlearn.metrics does not have.

All metrics have fairlearn's signature: ``metric(y_true, y_pred, *, sensitive_features,
sample_weight=None, ...)``. For metrics of scores, `y_pred` is the output of `decision_function`, or
a column of `predict_proba`. `method` is fairlearn's parameter: "between_groups" measures what a
constraint with ``against="pairs"`` bounds, "to_overall" one with ``against="overall"``.

The cost is O(n log n); it is multiplied by the number of groups if groups are compared with each
other. Ties count one half in pairwise probabilities.

What is measured on given scores or predictions, with intervals and tests, belongs here; what needs
a fitted model belongs in ``inspection``.
"""

from fairconstrained.metrics.impact import impact_ratios, score_impact_ratios
from fairconstrained.metrics.intervals import group_calibration
from fairconstrained.metrics.ranking import (
    mean_ndcg,
    pairwise_error,
    query_ndcg,
    query_pairwise_errors,
    query_parity_difference,
)
from fairconstrained.metrics.rates import (
    class_error_rates,
    group_rates,
    neyman_pearson_error,
    predictive_parity_difference,
    rate_gaps,
)
from fairconstrained.metrics.scores import (
    group_auc_difference,
    inter_group_auc_difference,
    intra_group_auc_difference,
    partial_demographic_parity_difference,
    roc_parity_difference,
    weak_partial_demographic_parity_difference,
)

__all__ = [
    "class_error_rates",
    "group_auc_difference",
    "group_calibration",
    "group_rates",
    "impact_ratios",
    "inter_group_auc_difference",
    "intra_group_auc_difference",
    "mean_ndcg",
    "neyman_pearson_error",
    "pairwise_error",
    "partial_demographic_parity_difference",
    "predictive_parity_difference",
    "query_ndcg",
    "query_pairwise_errors",
    "query_parity_difference",
    "rate_gaps",
    "roc_parity_difference",
    "score_impact_ratios",
    "weak_partial_demographic_parity_difference",
]
