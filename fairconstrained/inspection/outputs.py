"""What models return for given rows: for all classes, and for a positive class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from fairconstrained.data.groups import Groups
from fairconstrained.inspection.scores import against_others
from fairconstrained.utils.meta_estimators import (
    decision_margin,
    final_estimator,
    prediction_groups,
)
from fairconstrained.utils.typing import Array, Classifier, MatrixLike


@dataclass(frozen=True, eq=False)
class ModelOutput:
    """What a model returns for given rows, for a positive class.

    Parameters
    ----------
    estimator : classifier
        The fitted model; of a search its best estimator.
    decided : ndarray of bool of shape (n_rows,)
        Whether `predict` returns the positive class.
    scores : ndarray of shape (n_rows,) or None
        The values of `decision_function`, else the log-odds of `predict_proba`, in the direction of
        the positive class; None if the model has neither. Of several classes it is the score of the
        positive class minus the highest of the others.
    probability : ndarray of shape (n_rows,) or None
        The probability of the positive class, if the model has `predict_proba`.
    usual_threshold : float, default=0.0
        The threshold of the scores that the model names.
    log_odds : ndarray of shape (n_rows,) or None, default=None
        With several classes and probabilities: the log odds of the positive class.
    """

    estimator: Classifier
    decided: Array
    scores: Array | None
    probability: Array | None
    usual_threshold: float = 0.0
    log_odds: Array | None = None

    @cached_property
    def threshold(self) -> float:
        """The threshold: a prediction is positive if its score is above; nan if there is none."""
        if self.scores is None:
            return float("nan")
        own = getattr(final_estimator(self.estimator), "score_threshold_", self.usual_threshold)
        for threshold in (float(own), self.usual_threshold):
            if np.array_equal(self.scores > threshold, self.decided):
                return threshold
        highest = self.scores[~self.decided].max(initial=-np.inf)
        lowest = self.scores[self.decided].min(initial=np.inf)
        if np.isneginf(highest):
            return float(np.nextafter(lowest, -np.inf))
        return float(highest) if lowest > highest else float("nan")

    @property
    def centred(self) -> Array:
        """Scores that are positive for positive predictions only; -1 and 1 without a threshold."""
        if self.scores is None or np.isnan(self.threshold):
            return np.where(self.decided, 1.0, -1.0)
        return self.scores - self.threshold

    @property
    def ranking(self) -> Array | None:
        """The scores by which rows are ranked: the log odds, else the scores."""
        return self.scores if self.log_odds is None else self.log_odds


@dataclass(frozen=True, eq=False)
class ClassOutputs:
    """What a model returns for given rows, for all classes.

    Parameters
    ----------
    estimator : classifier
        The fitted model; of a search its best estimator.
    predicted : ndarray of shape (n_rows,)
        The labels that `predict` returns.
    probabilities : ndarray of shape (n_rows, n_classes) or None
        The values of `predict_proba`, if the model has it.
    decision : ndarray of shape (n_rows,) or (n_rows, n_classes), or None
        The values of `decision_function`, or of `decision_margin` of a model whose thresholds
        differ between rows; None without both.
    """

    estimator: Classifier
    predicted: Array
    probabilities: Array | None
    decision: Array | None

    @classmethod
    def of_model(
        cls, model: Any, X: MatrixLike, sensitive_features: MatrixLike | Groups | None
    ) -> ClassOutputs:
        """Return the outputs of a fitted classifier.

        Models that need the groups to predict receive `sensitive_features`.
        """
        groups = prediction_groups(model, sensitive_features)
        by_row = getattr(final_estimator(model), "decided_on_", None) == "decision_margin"
        probabilities, decision = None, None
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(X), dtype=float)
        if by_row:
            decision = np.asarray(decision_margin(model, X, sensitive_features), dtype=float)
        elif hasattr(model, "decision_function"):
            decision = np.asarray(model.decision_function(X), dtype=float)
        return cls(model, np.asarray(model.predict(X, **groups)), probabilities, decision)

    def take(self, rows: Array) -> ClassOutputs:
        """Return the outputs for some rows."""
        some = [
            None if one is None else one[rows]
            for one in (self.predicted, self.probabilities, self.decision)
        ]
        return ClassOutputs(self.estimator, np.asarray(some[0]), some[1], some[2])

    def of_class(self, positive: object) -> ModelOutput:
        """Return the outputs for a positive class."""
        classes = self.estimator.classes_.tolist()
        column, several = classes.index(positive), len(classes) > 2
        probability, scores, log_odds = None, None, None
        if self.probabilities is not None:
            probability = self.probabilities[:, column]
            if several:
                log_odds = logit(np.clip(probability, 1e-15, 1.0 - 1e-15))
        if self.decision is not None:
            scores = against_others(self.decision, column)
        elif self.probabilities is not None:
            inside = np.log(np.clip(self.probabilities, 1e-15, 1.0 - 1e-15))
            scores = against_others(inside, column)
        threshold = float(getattr(final_estimator(self.estimator), "score_threshold_", 0.0))
        decided = self.predicted == positive
        return ModelOutput(self.estimator, decided, scores, probability, threshold, log_odds)
