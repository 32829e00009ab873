"""Estimates of the constraints on mini-batches, corrected at a point where they are known."""

from __future__ import annotations

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.utils.typing import Array


class ConstraintEstimate:
    r"""Estimates of the constraints from batches, corrected at a reference point.

    With a batch B and the estimate u(a) at the reference point a,

    .. math::
        u(w) = u(a) + g(w; B) - g(a; B).

    The noise vanishes with the distance of w from a. With a fixed reference at which all rows have
    been read this is SVRG's estimate; with the reference moved to w after every batch
    (:meth:`follow`) it is SPIDER's.

    Attributes
    ----------
    values : ndarray of shape (n_constraints,)
        u(a).
    w : ndarray of shape (n_variables,)
        a.

    References
    ----------
    R. Johnson, T. Zhang, "Accelerating stochastic gradient descent using predictive variance
    reduction", NIPS 2013; C. Fang, C. Li, Z. Lin, T. Zhang, "SPIDER: near-optimal non-convex
    optimization via stochastic path-integrated differential estimator", NeurIPS 2018.
    """

    def __init__(self) -> None:
        self.values = self.w = np.zeros(0)

    def reset(self, at: Evaluation) -> None:
        """Take the evaluation, on all rows or a large batch, as the reference."""
        self.values, self.w = at.constraints, at.w

    def at(self, batch: Evaluation) -> Array:
        """Return the estimate at the point of an evaluation on a batch."""
        here = batch.constraints
        return self.values + here - batch.problem.at(self.w).constraints

    def follow(self, batch: Evaluation) -> None:
        """Move the reference to the point of an evaluation on a batch."""
        self.values, self.w = self.at(batch), batch.w
