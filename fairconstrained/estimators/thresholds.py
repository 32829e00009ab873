"""Where decisions are cut: a probability, a score, or a share of the rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin

from fairconstrained.data.labels import ScoreConvention
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.nested import DocumentedEstimator
from fairconstrained.objectives import resolve_objective
from fairconstrained.utils.validation import is_number


class SelectionRate(DocumentedEstimator):
    """A threshold at which a given share of the training rows is selected.

    Pass it as the parameter `threshold` of a classifier if the number of favourable decisions is
    limited. The threshold is then the quantile of the scores of the training rows above which the
    share `rate` of their weight lies; `threshold_` is its value. New rows are compared with the
    same value, so the share of them that is selected is about `rate` if they come from the same
    population.

    A constraint changes the scores and their quantile. The fit is therefore repeated until the
    threshold at which surrogates are centred equals the quantile of the scores. If no such
    threshold is found, a ConvergenceWarning is issued, and an InfeasibleConstraintWarning if the
    model violates the bound at the quantile. With enforce="decision" the bound is met by
    predictions that select the share, less at most two per cent of it or two rows, whichever is
    more.

    With `confidence` the threshold and all models are determined by the training rows, so the
    threshold is fixed when the held-out rows test the constraints. The certificate is a statement
    about the constraints at this threshold, not about the share of new rows. If no model is
    accepted, predictions are constant and do not select the share.

    Parameters
    ----------
    rate : float
        The share of the rows that is selected, in (0, 1).

    Examples
    --------
    >>> from fairconstrained import (
    ...     FairLogisticClassifier,
    ...     SelectionRate,
    ...     make_biased_classification,
    ... )
    >>> X, y, groups = make_biased_classification(2000, gap=0.1, random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, threshold=SelectionRate(0.2))
    >>> clf = clf.fit(X, y, sensitive_features=groups)
    >>> float(clf.predict(X).mean())
    0.2
    """

    def __init__(self, rate: float):
        self.rate = rate

    def check(self) -> float:
        """Return the rate as a float.

        Raises
        ------
        ValueError
            If it is not a number between 0 and 1.
        """
        if not (is_number(self.rate, Real) and 0.0 < self.rate < 1.0):
            raise ValueError(
                "SelectionRate: rate must be a number between 0 and 1, the share of the rows that "
                f"is selected; got {self.rate!r}."
            )
        return float(self.rate)


Threshold = float | SelectionRate | None


def is_probability(estimator: Any) -> bool:
    """Return whether an estimator's threshold is a probability: its scores are log odds."""
    return resolve_objective("loss", estimator.loss).gives_log_odds


def score_convention(estimator: Any, data: TrainingData) -> ScoreConvention:
    """Return how the scores of a fit are related to those that users see.

    The threshold is the estimator's, which is checked. Rankers show the scores of the favourable
    label, and have no threshold.
    """
    if not isinstance(estimator, ClassifierMixin):
        return ScoreConvention()
    return replace(data.convention, threshold=score_threshold(estimator))


def score_threshold(estimator: Any) -> float:
    """Return the score above which an estimator decides for the favourable class.

    It is 0 where the threshold depends on the scores. A threshold that is not valid, or that needs
    an intercept where there is none, raises a ValueError.
    """
    threshold = estimator.threshold
    if threshold is None:
        return 0.0
    score = 0.0
    moves, probability = isinstance(threshold, SelectionRate), is_probability(estimator)
    if moves:
        threshold.check()
    elif not is_number(threshold, Real) or not np.isfinite(threshold):
        raise ValueError(
            f"threshold must be None, a {'probability' if probability else 'score'} or a share of "
            f"the rows such as SelectionRate(0.2); got {threshold!r}."
        )
    elif probability and not 0.0 < threshold < 1.0:
        raise ValueError(
            "threshold must be a probability between 0 and 1, above which the favourable class is "
            f"predicted; got {threshold!r}."
        )
    else:
        score = float(logit(threshold)) if probability else float(threshold)
    if (moves or score != 0.0) and not getattr(estimator, "fit_intercept", True):
        raise ValueError(
            f"threshold={threshold!r} needs an intercept, which moves with it: use "
            "fit_intercept=True, or threshold=None."
        )
    return score


def decision_attributes(estimator: Any, data: TrainingData) -> dict[str, Any]:
    """Return the fitted attributes that say which class is favourable, and where it is decided.

    The estimator has `threshold` and `loss`, if it is no ranker; `data` has the names of the
    classes and the threshold on scores.
    """
    if data.several_classes:
        return {}
    if not isinstance(estimator, ClassifierMixin):
        return {"pos_label_": data.classes.tolist()[1]}
    score, given = data.convention.threshold, estimator.threshold
    shown = float(expit(score)) if is_probability(estimator) else score
    if is_number(given, Real):  # without rounding
        shown = float(given)
    return {"pos_label_": data.classes.tolist()[1], "threshold_": shown, "score_threshold_": score}
