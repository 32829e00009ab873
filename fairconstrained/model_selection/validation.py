"""Rows that models of a path are measured on: training rows, and rows held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.inputs import check_labels, check_weight
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.fit import Prepared, constrained
from fairconstrained.estimators.linear.base import FairLinearClassifier
from fairconstrained.objectives import resolve_objective
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that models are measured on."""

    problem: Problem
    data: TrainingData

    def accuracy(self, w: Array) -> float:
        """Return the share that is decided right."""
        scores = self.problem.at(w).scores_of(self.problem.objective)
        assert scores is not None
        right = (scores > 0) == (self.data.y > 0)
        return float(np.average(right, weights=self.data.sample_weight))

    def measured(self, w: Array) -> dict[str, float]:
        """Return what the model is worth here."""
        at = self.problem.at(w[: self.problem.n_variables])
        return {
            "val_accuracy": self.accuracy(w),
            "val_loss": at.objective,
            "val_gap": at.gap,
            "val_decision_gap": at.decision_gap,
        }


def held_out(
    prepared: Prepared, base: FairLinearClassifier, X: Any, y: Any, sample_weight: Any, groups: Any
) -> Rows | None:
    """Return rows that are not the training rows, None without them.

    Parameters
    ----------
    prepared : Prepared
        What the training rows have become.
    base : FairLinearClassifier
        Its constraints are what gaps are gaps of.
    X, y, sample_weight, groups : array-like or None
        The rows; those of weight zero are left out.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what to do.
    """
    if X is None and y is None:
        if groups is not None or sample_weight is not None:
            raise ValueError("validation rows need X_val and y_val.")
        return None
    if X is None or y is None:
        raise ValueError("validation rows need both X_val and y_val; one of them is None.")
    check_same_rows(
        X_val=X, y_val=y, sensitive_features_val=groups, sample_weight_val=sample_weight
    )
    features, members = prepared.data.others(X, groups, "sensitive_features_val", "X_val")
    n_rows = features.shape[0]
    labels = check_labels("y_val", y, n_rows, rows="X_val")
    unknown = np.setdiff1d(labels, prepared.data.classes)
    if unknown.size:
        raise ValueError(f"y_val has labels that y has not: {unknown.tolist()}.")
    if members is None and prepared.data.groups is not None:
        raise ValueError("sensitive_features_val is missing: the gaps of X_val need its groups.")
    signs = np.where(labels == prepared.data.classes[1], 1.0, -1.0)
    weight = check_weight("sample_weight_val", sample_weight, n_rows)
    counted = np.flatnonzero(weight)
    if len(counted) < n_rows:
        features, signs, weight = features[counted], signs[counted], weight[counted]
        members = None if members is None else members.take(counted)
    data = replace(prepared.data, X=features, y=signs, groups=members, sample_weight=weight)
    model = prepared.model.on(features)
    loss = resolve_objective("loss", base.loss)
    alone = Problem(CompositeFunction(model, loss.bind(signs, weight)))
    scores = model.scores(prepared.unconstrained.result.w[: model.n_parameters])
    reference = SimpleNamespace(scores=scores)
    return Rows(constrained(alone, base._constraints(data), data, reference), data)
