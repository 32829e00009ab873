"""Gaps of predictions, by NumPy alone, and rows held out for them."""

import numpy as np


def gap_of(values, groups):
    """Return the largest difference of the means of groups."""
    return float(np.ptp([values[groups == name].mean() for name in np.unique(groups)]))


def divided(held, **arrays):
    """Return arguments of `fit` or of a path: the rows that are held out, and the others."""
    inside = np.setdiff1d(np.arange(len(arrays["y"])), held)
    others = {f"{name}_val": values[held] for name, values in arrays.items()}
    return {name: values[inside] for name, values in arrays.items()} | others


def rate_gap(y_true, y_pred, *, sensitive_features):
    """The largest difference of selection rates, under a name that fairlearn does not have."""
    return gap_of(np.asarray(y_pred) == 1, np.asarray(sensitive_features))
