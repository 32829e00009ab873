"""Objectives of pairs: the area under the ROC curve, all of it or a range of false positives."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.functions.losses import LOSSES, Hinge, Loss, Quadratic, SquaredHinge
from fairconstrained.objectives.base import Objective
from fairconstrained.terms.cell_means import cell_matrix
from fairconstrained.terms.pairs import PairMeans, PairTerm, QuadraticPairs
from fairconstrained.terms.top_pairs import TopPairs
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_ranks


def _by_label(y: Array, sample_weight: Array) -> Any:
    """Return the cells of the negative and of the positive rows.

    Raises
    ------
    ValueError
        If one of them is empty.
    """
    counts = np.bincount((y > 0).astype(int), minlength=2)
    if not counts.all():
        raise ValueError(
            f"An AUC objective needs rows of both classes; got {counts[0]} negative and "
            f"{counts[1]} positive ones."
        )
    return cell_matrix((y > 0).astype(int), sample_weight, 2)


class PairwiseLoss(BaseEstimator, Objective):
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
    >>> from fairconstrained.objectives.pairwise import PairwiseLoss
    >>> y, scores = np.array([1, 1, -1]), np.array([0.0, 2.0, 0.5])
    >>> PairwiseLoss("hinge").bind(y, np.ones(3)).value(scores)
    array([0.75])
    >>> PairwiseLoss().bind(y, np.ones(3)).value(scores)
    array([0.625])
    """

    determines_intercept: ClassVar[bool] = False

    def __init__(self, loss: str | Loss = "quadratic", *, max_pairs: int | None = None):
        self.loss = loss
        self.max_pairs = max_pairs

    def bind(self, y: Array, sample_weight: Array) -> PairTerm:
        """Return the term with the mean over pairs.

        Raises
        ------
        ValueError
            If a class has no rows, or the loss's name is unknown.
        """
        loss = resolve("loss", self.loss, LOSSES, Loss)
        if self.max_pairs is not None:
            warnings.warn(
                "PairwiseLoss: max_pairs is not used any more, as no pairs are sampled; it will be "
                "removed in version 0.4.",
                FutureWarning,
                stacklevel=2,
            )
        one, none, names = np.ones((1, 1)), np.zeros(1), ("AUC loss",)
        cells, positive_first = _by_label(y, sample_weight), np.array([[1, 0]])
        if isinstance(loss, Quadratic):  # (1 - s_i + s_j)^2 / 2 : the negative comes first
            return QuadraticPairs(cells, positive_first[:, ::-1], one, none, names)
        return PairMeans(cells, positive_first, one, none, names, function=loss)


class PartialAUC(BaseEstimator, Objective):
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
    If no model ranks the positive rows above most negative rows of the range, the loss is smallest
    if all scores are equal, and fits converge slowly to that point. Choose a wider range then.

    References
    ----------
    IDCA, equation (50).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.objectives.pairwise import PartialAUC
    >>> y, scores = np.array([1, -1, -1]), np.array([0.0, -2.0, 0.5])
    >>> PartialAUC(ranks=(0.0, 0.5), loss="hinge").bind(y, np.ones(3)).value(scores)
    array([1.5])
    """

    determines_intercept: ClassVar[bool] = False

    def __init__(self, ranks: tuple[float, float] = (0.0, 0.3), *, loss: str | Loss = "hinge"):
        self.ranks = ranks
        self.loss = loss

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
        cells = _by_label(y, sample_weight)
        return TopPairs(cells, loss, levels, combination, np.zeros(1), ("partial AUC loss",))


_EXACT = {"squared_hinge": SquaredHinge, "hinge": Hinge}
