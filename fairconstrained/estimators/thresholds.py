"""Where decisions are cut: at a probability or at a score."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import expit, logit

from fairconstrained.data.validation import TrainingData
from fairconstrained.objectives import resolve_objective
from fairconstrained.utils.validation import is_number

Threshold = float | None


def is_probability(estimator: Any) -> bool:
    """Return whether an estimator's threshold is a probability: its scores are log odds."""
    return resolve_objective("loss", estimator.loss).gives_log_odds


def score_threshold(estimator: Any) -> float:
    """Return the score above which an estimator decides for the favourable class.

    Raises
    ------
    ValueError
        If the threshold is not valid, or needs an intercept and there is none.
    """
    threshold = estimator.threshold
    if threshold is None:
        return 0.0
    probability = is_probability(estimator)
    if not is_number(threshold, Real) or not np.isfinite(threshold):
        raise ValueError(
            f"threshold must be None or a {'probability' if probability else 'score'}; got "
            f"{threshold!r}."
        )
    if probability and not 0.0 < threshold < 1.0:
        raise ValueError(
            "threshold must be a probability between 0 and 1, above which the favourable class is "
            f"predicted; got {threshold!r}."
        )
    found = float(logit(threshold)) if probability else float(threshold)
    if found != 0.0 and not getattr(estimator, "fit_intercept", True):
        raise ValueError(
            f"threshold={threshold!r} needs an intercept, which moves with it: use "
            "fit_intercept=True, or threshold=None."
        )
    return found


def decision_attributes(estimator: Any, data: TrainingData) -> dict[str, Any]:
    """Return the fitted attributes that say which class is favourable, and where it is decided.

    Parameters
    ----------
    estimator : classifier
        Its `threshold` and `loss` are read.
    data : TrainingData
        The rows, with the names of the classes and the threshold on scores.
    """
    score, given = data.convention.threshold, estimator.threshold
    shown = float(expit(score)) if is_probability(estimator) else score
    if is_number(given, Real):  # without rounding
        shown = float(given)
    return {
        "pos_label_": data.classes.tolist()[1],
        "threshold_": shown,
        "score_threshold_": score,
    }
