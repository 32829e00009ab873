"""Measures of fairness at the level of decisions and of ranks that fairlearn.metrics lacks.

All are called as fairlearn's are: ``metric(y_true, y_pred, *, sensitive_features,
sample_weight=None, ...)``. Where a measure is about scores, `y_pred` is what `decision_function`
returns (or a column of `predict_proba`). They cost O(n log n), times the number of groups where
groups are compared with each other. Ties count half in probabilities of pairs.
"""

from fairconstrained.metrics.distributions import (
    partial_demographic_parity_difference,
    roc_parity_difference,
    weak_partial_demographic_parity_difference,
)
from fairconstrained.metrics.errors import class_error_rates, neyman_pearson_error
from fairconstrained.metrics.pairs import (
    group_auc_difference,
    inter_group_auc_difference,
    intra_group_auc_difference,
)
from fairconstrained.metrics.rates import group_rates, rate_gaps

__all__ = [
    "class_error_rates",
    "group_auc_difference",
    "group_rates",
    "inter_group_auc_difference",
    "intra_group_auc_difference",
    "neyman_pearson_error",
    "partial_demographic_parity_difference",
    "rate_gaps",
    "roc_parity_difference",
    "weak_partial_demographic_parity_difference",
]
