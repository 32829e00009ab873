"""Rows on which the models of a path are measured: training rows and validation rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.base import Indicator
from fairconstrained.metrics import mean_ndcg
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, cell_matrix
from fairconstrained.terms.class_losses import correct_share
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on which models are measured.

    Attributes
    ----------
    problem : Problem
        The loss and the constraints on the rows.
    data : TrainingData
        The rows.
    quality : {"accuracy", "ndcg"}
        What a model is worth.
    """

    problem: Problem
    data: TrainingData
    quality: str = "accuracy"

    def worth(self, w: Array, *, like: Evaluation | None = None) -> float:
        """Return the accuracy of a classifier, the ``NDCG@10`` of a ranker."""
        measure = {"accuracy": self.accuracy, "ndcg": self.ndcg}[self.quality]
        return measure(w, like=like)

    def ndcg(self, w: Array, *, like: Evaluation | None = None) -> float:
        """Return the mean over queries of ``NDCG@10``."""
        data = self.data
        assert data.query is not None, "rankers have queries"
        at = self.problem.at(w[: self.problem.n_variables], like=like)
        scores = at.scores_of(self.problem.objective)
        assert scores is not None
        return mean_ndcg(
            data.y > 0,
            scores,
            query=data.query.codes,
            sample_weight=data.sample_weight,
        )

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
            combination=np.where(positive, share, -share)[None, :],
            constant=share[~positive].sum(),
        )

    def measured(self, w: Array) -> dict[str, float]:
        """Return what a model is worth, its loss and its gaps."""
        at = self.problem.at(w[: self.problem.n_variables])
        return {
            f"val_{self.quality}": self.worth(w, like=at),
            "val_loss": at.objective,
            "val_gap": at.gap,
            "val_decision_gap": at.decided.gap,
        }


def validation_rows(fit: Fit, *held_out: Any) -> Rows | None:
    """Return rows that are not the training rows of a fit, None if there are none.

    See :meth:`~fairconstrained.data.validation.TrainingData.validation_rows`.
    """
    data = fit.data.validation_rows(*held_out)
    return None if data is None else Rows(fit.problem_on(data), data, fit.estimator.quality)
