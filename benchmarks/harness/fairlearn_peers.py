"""fairlearn's methods by our names of notions; fairlearn is imported when a method is made.

This module imports NumPy only: it runs in the environment of any package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# What reductions and post-processing call a notion.
NOTIONS = {
    "demographic_parity": ("DemographicParity", "demographic_parity"),
    "equal_opportunity": ("TruePositiveRateParity", "true_positive_rate_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
}


def _moment(notion: str, **options: Any) -> Any:
    from fairlearn import reductions

    return getattr(reductions, NOTIONS[notion][0])(**options)


def reduction(estimator: Any, notion: str, bound: float) -> Any:
    """Return an ExponentiatedGradient that is not fitted yet."""
    from fairlearn.reductions import ExponentiatedGradient

    return ExponentiatedGradient(estimator, _moment(notion, difference_bound=bound))


def grid_search(estimator: Any, notion: str, grid_size: int) -> Any:
    """Return a GridSearch that is not fitted yet."""
    from fairlearn.reductions import GridSearch

    return GridSearch(estimator, _moment(notion), grid_size=grid_size)


def thresholds(estimator: Any, notion: str, **options: Any) -> Any:
    """Return a ThresholdOptimizer on probabilities that is not fitted yet."""
    from fairlearn.postprocessing import ThresholdOptimizer

    return ThresholdOptimizer(
        estimator=estimator,
        constraints=NOTIONS[notion][1],
        predict_method="predict_proba",
        **options,
    )


def chance(model: Any, X: Any, groups: Any = None) -> np.ndarray:
    """Return the probability that each row is selected; thresholds need the groups."""
    known = {} if groups is None else {"sensitive_features": groups}
    return model._pmf_predict(X, **known)[:, 1]
