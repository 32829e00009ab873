"""Gaps of predictions, by NumPy alone."""

import numpy as np


def demographic_parity_difference(y_true, y_pred, *, sensitive_features):
    """The largest difference of selection rates, by NumPy alone."""
    chosen, groups = np.asarray(y_pred) == 1, np.asarray(sensitive_features)
    return float(np.ptp([chosen[groups == name].mean() for name in np.unique(groups)]))


def rate_gap(y_true, y_pred, *, sensitive_features):
    """The same under a name that fairlearn does not have."""
    return demographic_parity_difference(y_true, y_pred, sensitive_features=sensitive_features)


def equal_opportunity_difference(y_true, y_pred, *, sensitive_features, label=1):
    """The largest difference of the rates of predictions `label` among rows of that label."""
    rows = np.asarray(y_true) == label
    return demographic_parity_difference(
        None,
        (np.asarray(y_pred) == label)[rows],
        sensitive_features=np.asarray(sensitive_features)[rows],
    )


def equalized_odds_difference(y_true, y_pred, *, sensitive_features):
    """The larger of the differences for the two labels."""
    return max(
        equal_opportunity_difference(
            y_true, y_pred, sensitive_features=sensitive_features, label=label
        )
        for label in (0, 1)
    )
