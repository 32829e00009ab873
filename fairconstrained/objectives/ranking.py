"""The objective of rankers: a loss of pairs of rows of the same query."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.data.queries import Queries
from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.objectives.base import Objective
from fairconstrained.terms.query_pairs import QueryPairs, RowPairs, pairs_within
from fairconstrained.utils.registry import check_option, resolve
from fairconstrained.utils.typing import Array, ArrayLike

_AVERAGE = {"pairs": "every pair counts the same", "queries": "every query counts the same"}


class QueryPairLoss(BaseEstimator, Objective):
    r"""The mean of a loss over all pairs of a positive and a negative row of the same query.

    .. math::
        f(s) = \sum_q \omega_q \sum_{i, j \in q:\, y_i = 1,\, y_j = -1}
        v_i v_j\, \ell(s_i - s_j),

    with sample weights v. With ``average="pairs"`` all :math:`\omega_q` are equal, so that queries
    with many pairs count more; with "queries" every query with a pair has the same total weight.
    The weights of all pairs sum to one. Adding a number to the scores of a query does not change
    the loss. The pairs are held in memory, 32 bytes each, and the cost of an evaluation is linear
    in their number.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge", ...} or Loss, default="logistic"
        The loss of a pair's difference.
    average : {"pairs", "queries"}, default="pairs"
        Whether all pairs or all queries have the same weight.

    References
    ----------
    C. Burges et al., "Learning to rank using gradient descent", ICML 2005; PLADA, appendix D.3.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.objectives import QueryPairLoss
    >>> y, query = np.array([1, -1, 1, -1, -1]), np.array([0, 0, 1, 1, 1])
    >>> scores = np.array([0.5, 0.0, 1.0, 0.0, 2.0])
    >>> QueryPairLoss("hinge").bind(y, np.ones(5), query).value(scores)  # (0.5 + 0 + 2) / 3
    array([0.83333333])
    >>> QueryPairLoss("hinge", average="queries").bind(y, np.ones(5), query).value(scores)
    array([0.75])
    """

    determines_intercept: ClassVar[bool] = False

    def __init__(self, loss: str | Loss = "logistic", *, average: str = "pairs"):
        self.loss = loss
        self.average = average

    def bind(
        self, y: Array, sample_weight: Array, query: Queries | ArrayLike | None = None
    ) -> QueryPairs:
        """Return the term.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.
        query : Queries, array-like of shape (n_rows,) or None, default=None
            The query of each row; None stands for one query of all rows.

        Raises
        ------
        ValueError
            If the loss or `average` is unknown, or no query has rows of both classes.
        """
        loss = resolve("loss", self.loss, LOSSES, Loss)
        check_option("average", self.average, _AVERAGE)
        queries, weight = Queries.encode(query, len(y)), np.asarray(sample_weight, dtype=float)
        first, second = pairs_within(np.asarray(y) > 0, queries.codes)
        if not len(first):
            counts = np.bincount(np.asarray(y) > 0, minlength=2)
            raise ValueError(
                f"A loss of pairs within queries needs rows of both classes; got {counts[0]} "
                f"negative and {counts[1]} positive ones, and none of the {len(queries)} queries "
                "has both."
            )
        weights = weight[first] * weight[second]
        if self.average == "queries":
            of_pair = queries.codes[first]
            weights = weights / np.bincount(of_pair, weights)[of_pair]
        pairs = RowPairs(first, second, np.zeros(len(first), dtype=int), weights / weights.sum())
        one = np.ones((1, 1))
        return QueryPairs(pairs, queries.codes, loss, one, np.zeros(1), ("loss of pairs",))

    def build(self, data: TrainingData) -> QueryPairs:
        """Return the term for training rows with queries.

        Raises
        ------
        ValueError
            If the rows have no queries: the estimator is no ranker.
        """
        if data.query is None:
            raise ValueError(
                f"loss={self!r} compares rows of the same query, and this estimator's fit takes no "
                "queries: use FairRanker."
            )
        return self.bind(data.y, data.loss_weight, data.query)
