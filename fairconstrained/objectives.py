"""Objectives: what an estimator minimises, mean losses and losses of pairs.

A function of one margin belongs in ``functions``; its mean over rows or pairs belongs here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from fairconstrained.data.labels import Queries, pairs_within
from fairconstrained.data.validation import TrainingData
from fairconstrained.exceptions import warn
from fairconstrained.functions.losses import LOSSES, Hinge, Loss, Quadratic, SquaredHinge
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import average, cell_matrix
from fairconstrained.terms.classes import MultinomialLoss
from fairconstrained.terms.pairs import PairMeans, QuadraticPairs, QueryPairs, TopPairs, differences
from fairconstrained.utils.arguments import Parametrized, check_option, check_ranks, resolve
from fairconstrained.utils.arrays import Array

__all__ = [
    "OBJECTIVES",
    "MeanLoss",
    "Objective",
    "PairwiseLoss",
    "PartialAUC",
    "QueryPairLoss",
    "resolve_objective",
]


class Objective(ABC):
    """An objective: hyperparameters, and `bind`, which returns its term for given data.

    Attributes
    ----------
    gives_log_odds : bool
        Whether the scores of the least value are log odds; see
        :class:`~fairconstrained.functions.losses.Loss`. Losses of pairs leave the intercept
        undetermined, so that their scores are not.
    determines_intercept : bool
        Whether the objective changes if a number is added to all scores.
    """

    gives_log_odds: bool = False
    determines_intercept: ClassVar[bool] = True

    @abstractmethod
    def bind(self, y: Array, sample_weight: Array) -> Term:
        """Return the term, with one output, that is small where the scores suit the labels.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The labels, -1 or +1.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0.
        """

    def build(self, data: TrainingData) -> Term:
        """Return the term for training rows; objectives of queries read them as well.

        Parameters
        ----------
        data : TrainingData
            The rows: `y`, `loss_weight` and perhaps `query`.
        """
        return self.bind(data.y, data.loss_weight)


class MeanLoss(Parametrized, Objective):
    r"""The weighted mean of a loss over all rows.

    .. math::
        f(s) = \frac{\sum_i v_i\, \ell(y_i s_i)}{\sum_i v_i}

    Parameters
    ----------
    loss : str or Loss
        The loss :math:`\ell`, a function of the margin, or its name.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.functions import Hinge
    >>> from fairconstrained.objectives import MeanLoss
    >>> y, scores = np.array([-1.0, 1.0]), np.array([0.0, 0.5])
    >>> MeanLoss(Hinge()).bind(y, np.ones(2)).value(scores)
    array([0.75])
    """

    loss: str | Loss

    @property
    def loss_function(self) -> Loss:
        """The loss, also where `loss` is a name."""
        return resolve("loss", self.loss, LOSSES, Loss)

    gives_log_odds = property(attrgetter("loss_function.gives_log_odds"))

    def bind(self, y: Array, sample_weight: Array) -> Term:
        """Return the term with the mean of the loss."""
        return average(self.loss_function, y, sample_weight)

    def build(self, data: TrainingData) -> Term:
        """Return the term for training rows, whose scores are measured from the threshold."""
        if data.several_classes:
            cells = cell_matrix(np.zeros(len(data.y), dtype=int), data.loss_weight, 1)
            return MultinomialLoss(cells, data.class_positions)
        term = average(self.loss_function, data.y, data.loss_weight)
        return replace(term, shift=data.convention.threshold)


def _by_label(y: Array, sample_weight: Array) -> Any:
    """Return the cells of the negative and of the positive rows, none of which may be empty."""
    labels = (y > 0).astype(int)
    counts = np.bincount(labels, minlength=2)
    if not counts.all():
        raise ValueError(
            f"An AUC objective needs rows of both classes; got {counts[0]} negative and "
            f"{counts[1]} positive ones."
        )
    return cell_matrix(labels, sample_weight, 2)


class PairwiseLoss(Parametrized, Objective):
    r"""The AUC loss: the mean of a loss over all pairs of a positive and a negative row.

    .. math::
        f(s) = \frac{\sum_{i: y_i = 1} \sum_{j: y_j = -1} v_i v_j\, \ell(s_i - s_j)}
        {\sum_{i: y_i = 1} v_i \sum_{j: y_j = -1} v_j}

    It measures how well scores rank. Adding a number to all scores does not change it, so that **it
    does not determine the intercept**, which keeps its initial value unless a constraint changes
    it. If the domain is the whole space, the estimators centre the features, and this is the value
    at which the scores of the training rows have mean zero: `predict` selects the rows with scores
    above the mean. Use the scores, or choose a threshold afterwards
    (:class:`sklearn.model_selection.TunedThresholdClassifierCV`). Constraints on rates, and on the
    scores at given thresholds, can also be met by moving all scores to one side of the threshold.
    Constraints on rankings cannot.

    Parameters
    ----------
    loss : {"quadratic", "squared_hinge", "hinge", "logistic"} or Loss, default="quadratic"
        The loss of a pair's difference. The quadratic loss costs O(n), by moments. The hinge and
        the squared hinge are computed exactly in O(n log n), by sorting, smooth losses on a grid.
    max_pairs : deprecated
        Not used: no pairs are sampled any more.

        .. deprecated:: 0.3

    References
    ----------
    IDCA, equation (48).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.objectives import PairwiseLoss
    >>> y, scores = np.array([1, 1, -1]), np.array([0.0, 2.0, 0.5])
    >>> PairwiseLoss("hinge").bind(y, np.ones(3)).value(scores)
    array([0.75])
    >>> PairwiseLoss().bind(y, np.ones(3)).value(scores)
    array([0.625])
    """

    determines_intercept: ClassVar[bool] = False

    loss: str | Loss = "quadratic"
    _: KW_ONLY
    max_pairs: int | None = None

    def bind(self, y: Array, sample_weight: Array) -> PairMeans:
        """Return the term with the mean over pairs.

        Raises a ValueError if a class has no rows, or the loss's name is unknown.
        """
        loss = resolve("loss", self.loss, LOSSES, Loss)
        if self.max_pairs is not None:
            message = "PairwiseLoss: max_pairs is not used any more; version 0.4 removes it."
            warn(message, FutureWarning)
        cells, names = _by_label(y, sample_weight), ("AUC loss",)
        if isinstance(loss, Quadratic):  # (1 - s_i + s_j)^2 / 2 : the negative comes first
            return QuadraticPairs(cells, np.array([[0, 1]]), names=names)
        return PairMeans(cells, np.array([[1, 0]]), names=names, function=loss)


class PartialAUC(Parametrized, Objective):
    r"""The partial AUC loss: the mean over pairs whose negative row has a rank in a given range.

    With :math:`u_j(\beta)` the weight of negative j that is among the highest-scored share
    :math:`\beta` of the negatives (all of it, none, or a part for the one on the boundary; the
    weights of the negatives sum to one) and :math:`L_j = \sum_i a_i\, \ell(s_i - s_j)`,

    .. math::
        f(s) = \frac{T_\beta - T_\alpha}{\beta - \alpha}, \qquad
        T_\beta(s) = \sum_j u_j(\beta)\, L_j
        = \max\Big\{\sum_j u_j L_j : 0 \le u_j \le b_j,\ \sum_j u_j = \beta\Big\}.

    Where :math:`\beta n_-` and :math:`\alpha n_-` are whole numbers and weights are equal, this is
    IDCA's formula, which rounds them up otherwise. The maximum is attained at the highest scores if
    the loss is not increasing; then both sums are convex and f is a difference of convex functions,
    convex if :math:`\alpha = 0`. For a loss that is not monotone, such as the quadratic one, they
    are not even weakly convex, contrary to IDCA's example B.2: two negative rows that change places
    far below a positive row make a concave kink. Such a loss raises an error.

    The intercept is not determined, as in :class:`PairwiseLoss`. Estimates from batches are
    consistent, not unbiased, because the ranks depend on all scores.

    Parameters
    ----------
    ranks : tuple of two floats, default=(0.0, 0.3)
        The range (alpha, beta) of false positive rates, 0 <= alpha < beta <= 1.
    loss : {"hinge", "squared_hinge"} or one of their instances, default="hinge"
        The loss of a pair's difference; exact in O(n log n), by sorting. With the squared hinge and
        alpha > 0 only the slow solvers for general problems can be used.

    Notes
    -----
    If no model ranks the positive rows above most negative rows of the range, fits converge slowly
    to equal scores. Choose a wider range then.

    References
    ----------
    IDCA, equation (50).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.objectives import PartialAUC
    >>> y, scores = np.array([1, -1, -1]), np.array([0.0, -2.0, 0.5])
    >>> PartialAUC(ranks=(0.0, 0.5), loss="hinge").bind(y, np.ones(3)).value(scores)
    array([1.5])
    """

    determines_intercept: ClassVar[bool] = False

    ranks: tuple[float, float] = (0.0, 0.3)
    _: KW_ONLY
    loss: str | Loss = "hinge"

    def bind(self, y: Array, sample_weight: Array) -> TopPairs:
        """Return the term.

        Raises
        ------
        ValueError
            If a class has no rows, or `ranks` are not two numbers 0 <= alpha < beta <= 1.
        TypeError
            If the loss is not one of those listed.
        """
        low, high = check_ranks(self.ranks)
        loss = resolve("loss", self.loss, _EXACT, Loss)
        if not isinstance(loss, tuple(_EXACT.values())):
            raise TypeError(
                f"PartialAUC: loss={self.loss!r} is not available. It must not increase with the "
                "difference and be summed exactly over pairs: use 'squared_hinge' or 'hinge'."
            )
        levels = np.array([high, low] if low > 0 else [high])
        combination = np.array([[1.0, -1.0]])[:, : len(levels)] / (high - low)
        cells, pairs = _by_label(y, sample_weight), np.tile([1, 0], (len(levels), 1))
        names = ("partial AUC loss",)
        return TopPairs(cells, pairs, levels, function=loss, combination=combination, names=names)


_EXACT = {"squared_hinge": SquaredHinge, "hinge": Hinge}
_AVERAGE = {"pairs": "every pair counts the same", "queries": "every query counts the same"}


class QueryPairLoss(Parametrized, Objective):
    r"""The mean of a loss over all pairs of a positive and a negative row of the same query.

    .. math::
        f(s) = \sum_q \omega_q \sum_{i, j \in q:\, y_i = 1,\, y_j = -1}
        v_i v_j\, \ell(s_i - s_j),

    with sample weights v. With ``average="pairs"`` all :math:`\omega_q` are equal, so that queries
    with many pairs count more; with "queries" every query with a pair has the same total weight.
    The weights of all pairs sum to one. Adding a number to the scores of a query does not change
    the loss. The pairs are held in memory, some 50 bytes each, and the cost of an evaluation is
    linear in their number.

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

    loss: str | Loss = "logistic"
    _: KW_ONLY
    average: str = "pairs"

    def bind(self, y: Array, sample_weight: Array, query: Any = None) -> QueryPairs:
        """Return the term, see :meth:`Objective.bind`; no `query` stands for one of all rows.

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
        cells = cell_matrix(np.zeros(len(first), dtype=int), weights, 1)
        pairs, names = differences(first, second, len(y)), ("loss of pairs",)
        return QueryPairs(cells, pairs, queries.codes, loss, names=names)

    def build(self, data: TrainingData) -> QueryPairs:
        """Return the term for training rows with queries."""
        return self.bind(data.y, data.loss_weight, data.queries_for(f"loss={self!r}"))


OBJECTIVES: dict[str, Callable[[], Objective]] = {
    **{name: partial(MeanLoss, name) for name in LOSSES},
    "auc": PairwiseLoss,
    "partial_auc": PartialAUC,
    "query_pairs": QueryPairLoss,
}


def resolve_objective(argument: str, value: object) -> Objective:
    """Return the objective that a user has named or passed; a loss is averaged over all rows.

    Parameters
    ----------
    argument : str
        The argument's name, for messages.
    value : str, Loss or Objective
        What the user passed.

    Raises
    ------
    ValueError, TypeError
        If a name is unknown, a parameter of the loss is not valid, or it is neither of these.
    """
    if isinstance(value, Loss):
        value.check_parameters()
        return MeanLoss(value)
    return resolve(argument, value, OBJECTIVES, Objective)
