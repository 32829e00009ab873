"""What an estimator minimises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from fairconstrained.data.validation import TrainingData
from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import average, cell_matrix
from fairconstrained.terms.class_losses import MultinomialLoss
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array


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


class MeanLoss(BaseEstimator, Objective):
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

    def __init__(self, loss: str | Loss):
        self.loss = loss

    @property
    def loss_function(self) -> Loss:
        """The loss, also where `loss` is a name."""
        return resolve("loss", self.loss, LOSSES, Loss)

    @property
    def gives_log_odds(self) -> bool:  # type: ignore[override]
        """Whether those of the loss are."""
        return self.loss_function.gives_log_odds

    def bind(self, y: Array, sample_weight: Array) -> Term:
        """Return the term with the mean of the loss."""
        return average(self.loss_function, y, sample_weight)

    def build(self, data: TrainingData) -> Term:
        """Return the term for training rows, whose scores are measured from the threshold."""
        if data.several_classes:
            cells = cell_matrix(np.zeros(len(data.y), dtype=int), data.loss_weight, 1)
            return MultinomialLoss(data.class_positions, cells)
        term = average(self.loss_function, data.y, data.loss_weight)
        return replace(term, shift=data.convention.threshold)
