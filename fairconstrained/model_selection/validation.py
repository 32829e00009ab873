"""Rows on which the models of a path are measured: training rows and validation rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.inputs import check_labels, check_weight
from fairconstrained.data.labels import encoded
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.elementary import Indicator
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
from fairconstrained.terms.class_scores import correct_share
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on which models are measured.

    Attributes
    ----------
    problem : Problem
        The loss and the constraints on the rows.
    data : TrainingData
        The rows.
    """

    problem: Problem
    data: TrainingData

    def accuracy(self, w: Array, *, like: Evaluation | None = None) -> float:
        """Return the weighted share of correct predictions."""
        at = self._accuracy.at(w[: self._accuracy.n_variables], like=like)
        return float(at.constraints[0])

    @cached_property
    def _accuracy(self) -> Problem:
        """The problem with the accuracy as its one constraint function, a sum over rows."""
        function = CompositeFunction(self.problem.objective.model, self._correct())
        return self.problem.with_constraints([function])

    def _correct(self) -> Term:
        """Return the share of correct predictions."""
        weight = self.data.sample_weight
        if self.data.several_classes:
            return correct_share(self.data.class_positions, weight)
        positive, codes = np.unique(self.data.y > 0, return_inverse=True)
        share = np.bincount(codes, weight) / weight.sum()
        return CellMeans(
            cell_matrix(codes, weight, len(share)),
            Indicator(),
            np.where(positive, share, -share)[None, :],
            np.zeros(1),
            constant=share[~positive].sum(),
        )

    def measured(self, w: Array) -> dict[str, float]:
        """Return accuracy, loss and gaps of a model."""
        at = self.problem.at(w[: self.problem.n_variables])
        return {
            "val_accuracy": self.accuracy(w, like=at),
            "val_loss": at.objective,
            "val_gap": at.gap,
            "val_decision_gap": at.decision_gap,
        }


def validation_rows(
    fit: Fit,
    X: MatrixLike | None,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    sensitive_features: MatrixLike | None,
) -> Rows | None:
    """Return rows that are not the training rows, None if there are none.

    Parameters
    ----------
    fit : Fit
        Its loss, constraints and unconstrained model are used.
    X, y, sample_weight, sensitive_features : array-like or None
        The rows; those of weight zero are left out.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what to do.
    """
    if X is None and y is None:
        if sensitive_features is not None or sample_weight is not None:
            raise ValueError("validation rows need X_val and y_val.")
        return None
    if X is None or y is None:
        raise ValueError("validation rows need both X_val and y_val; one of them is None.")
    check_same_rows(
        X_val=X, y_val=y, sensitive_features_val=sensitive_features, sample_weight_val=sample_weight
    )
    features, groups = fit.data.others(X, sensitive_features, "sensitive_features_val", "X_val")
    n_rows = features.shape[0]
    labels = check_labels("y_val", y, n_rows, rows="X_val")
    unknown = np.setdiff1d(labels, fit.data.classes)
    if unknown.size:
        raise ValueError(f"y_val has labels that y does not have: {unknown.tolist()}.")
    if groups is None and fit.data.groups is not None:
        raise ValueError("sensitive_features_val is missing: the gaps of X_val need its groups.")
    codes = encoded(labels, fit.data.classes)
    weight = check_weight("sample_weight_val", sample_weight, n_rows)
    counted = np.flatnonzero(weight)
    if len(counted) < n_rows:
        features, codes, weight = features[counted], codes[counted], weight[counted]
        groups = None if groups is None else groups.take(counted)
    data = replace(fit.data, X=features, y=codes, groups=groups, sample_weight=weight)
    return Rows(fit.problem_on(data), data)
