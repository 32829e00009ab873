"""The losses that trees are grown for: gradients and curvatures with respect to the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.losses import Logistic
from fairconstrained.objectives import MeanLoss, Objective
from fairconstrained.terms.query_pairs import QueryPairs
from fairconstrained.utils.typing import Array

LossOf = Callable[[TrainingData], "LogLoss | PairLoss"]


class LogLoss:
    """The logistic loss of the rows of two classes, as LightGBM needs it.

    LightGBM minimises the mean loss times `total`, so that its regularisation and its least leaf
    sizes are per row. `objective_name` is LightGBM's objective that turns scores into predictions.

    Parameters
    ----------
    data : TrainingData
        The rows.
    """

    objective_name: ClassVar[str] = "binary sigmoid:1"

    def __init__(self, data: TrainingData):
        self.objective = MeanLoss(Logistic())
        self.term = self.objective.build(data)
        # LightGBM's regularisation and least leaf sizes are absolute: the mean weight is 1
        self.weight = data.loss_weight / data.loss_weight.mean()
        self.total, self.threshold = float(self.weight.sum()), data.convention.threshold
        self.targets = (data.y > 0).astype(float)
        share = float(self.weight[data.y > 0].sum()) / self.total
        self.first_score = float(logit(np.clip(share, 1e-6, 1.0 - 1e-6))) - self.threshold

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return the probabilities less the targets, and p (1 - p)."""
        p = expit(scores + self.threshold)
        return p[: len(self.targets)] - self.targets, p * (1.0 - p)


class PairLoss:
    r"""A loss of pairs within queries, with the attributes of :class:`LogLoss`.

    A row takes part in many pairs. Its second derivative is the sum over them; LambdaMART has the
    same diagonal in place of the Hessian, whose other entries are those of the pairs.

    Parameters
    ----------
    data : TrainingData
        The rows, with queries.
    objective : Objective
        Its term must average over pairs within queries.

    Raises
    ------
    ValueError
        If it is another objective, or its loss has kinks.

    References
    ----------
    C. Burges, "From RankNet to LambdaRank to LambdaMART: An overview", 2010.
    """

    objective_name: ClassVar[str] = "lambdarank"
    first_score = 0.0

    def __init__(self, data: TrainingData, objective: Objective):
        term = objective.build(data)
        if not (isinstance(term, QueryPairs) and term.function.smooth):
            raise ValueError(
                f"loss={objective!r}: trees are grown for a loss of pairs within queries that has "
                "second derivatives. Use 'query_pairs' (the logistic loss), or an object such as "
                "QueryPairLoss('squared_hinge')."
            )
        self.term, self.objective = term, objective
        self.weight, self.total = np.ones(len(data.y)), float(len(data.y))

    def derivatives(self, scores: Array) -> tuple[Array, Array]:
        """Return gradient and second derivatives, times the number of rows.

        The curvature of other rows is the mean of the training rows'.
        """
        mine = scores[: len(self.weight)]
        statistics, pullback = self.term.forward(mine)
        slopes = self.total * pullback(self.term.head_vjp(statistics, np.ones(1)))[0]
        own = self.total * self.term.curvature_by_row(mine)
        return slopes, np.append(own, np.full(len(scores) - len(own), own.mean()))
