"""Rows on which the models of a path are measured: training rows and validation rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairconstrained.data.inputs import check_labels, check_same_rows, check_weight
from fairconstrained.data.labels import Queries, encoded
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


def validation_rows(
    fit: Fit,
    X: MatrixLike | None,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    sensitive_features: MatrixLike | None,
    query: ArrayLike | None = None,
) -> Rows | None:
    """Return rows that are not the training rows, None if there are none.

    Parameters
    ----------
    fit : Fit
        Its loss, constraints and unconstrained model are used.
    X, y, sample_weight, sensitive_features, query : array-like or None
        The rows; those of weight zero are left out.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what to do.
    """
    if X is None and y is None:
        if not all(one is None for one in (sensitive_features, sample_weight, query)):
            raise ValueError("validation rows need X_val and y_val.")
        return None
    if X is None or y is None:
        raise ValueError("validation rows need both X_val and y_val; one of them is None.")
    check_same_rows(
        X_val=X,
        y_val=y,
        sensitive_features_val=sensitive_features,
        sample_weight_val=sample_weight,
        query_val=query,
    )
    features, groups = fit.data.others(X, sensitive_features, "sensitive_features_val", "X_val")
    n_rows = features.shape[0]
    labels = check_labels("y_val", y, n_rows, rows="X_val")
    unknown = np.setdiff1d(labels, fit.data.classes)
    if unknown.size:
        raise ValueError(f"y_val has labels that y does not have: {unknown.tolist()}.")
    if groups is None and fit.data.groups is not None:
        raise ValueError("sensitive_features_val is missing: the gaps of X_val need its groups.")
    queries = _queries(fit, query, n_rows)
    codes = encoded(labels, fit.data.classes)
    weight = check_weight("sample_weight_val", sample_weight, n_rows)
    own = {"X": features, "y": codes, "groups": groups, "sample_weight": weight, "query": queries}
    data = replace(fit.data, **own, positions=None).counted()
    return Rows(fit.problem_on(data), data, fit.estimator.quality)


def _queries(fit: Fit, query: ArrayLike | None, n_rows: int) -> Queries | None:
    """Return the queries of validation rows, None for classifiers."""
    if (query is None) != (fit.data.query is None):
        raise ValueError(
            "query_val must hold the query of each row of X_val, as query does for X."
            if query is None
            else "query_val is given without query: only FairRanker has queries."
        )
    return None if query is None else Queries.encode(query, n_rows, rows="X_val")
