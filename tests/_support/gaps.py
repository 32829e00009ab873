"""Gaps of predictions, by NumPy alone."""

import numpy as np


def demographic_parity_difference(y_true, y_pred, *, sensitive_features):
    """The largest difference of selection rates, by NumPy alone."""
    chosen, groups = np.asarray(y_pred) == 1, np.asarray(sensitive_features)
    return float(np.ptp([chosen[groups == name].mean() for name in np.unique(groups)]))


def rate_gap(y_true, y_pred, *, sensitive_features):
    """The same under a name that fairlearn does not have."""
    return demographic_parity_difference(y_true, y_pred, sensitive_features=sensitive_features)
