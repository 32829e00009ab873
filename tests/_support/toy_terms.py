"""Terms that the package does not have, written as a user would write them.

They show that the abstraction carries variables of a term's own, and scores of several classes.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.terms.base import NO_AUXILIARY, Term


class ToyTerm(Term):
    """What the two share: averages with weights, an affine head, nothing of convexity."""

    names = ("toy",)
    function = Sigmoid()
    smooth = True
    convex = False

    def head(self, statistics):
        return statistics - self.kappa

    def head_vjp(self, statistics, v):
        return v

    def gap(self, scores, auxiliary=NO_AUXILIARY):
        return self.value(scores, auxiliary) + self.kappa

    def _none(self, *_):
        raise TypeError("a toy is solved as it is: no other term is made of it")

    zero_one = convex_parts = linearize = scaled = weak_curvature = _none

    @property
    def n_statistics(self):
        return self.n_outputs


@dataclass(frozen=True, eq=False)
class RateAboveThreshold(ToyTerm):
    """mean over the rows of cell k of phi(s - theta_k), minus kappa: theta is its own variable."""

    cells: np.ndarray  # (n_cells, n_rows)
    kappa: float = 0.3

    @property
    def n_rows(self):
        return self.cells.shape[1]

    @property
    def n_outputs(self):
        return len(self.cells)

    @property
    def n_auxiliary(self):
        return len(self.cells)

    @property
    def auxiliary_start(self):
        return np.full(self.n_auxiliary, 0.7)

    def forward(self, scores, auxiliary=NO_AUXILIARY):
        t = scores[None, :] - auxiliary[:, None]
        value = self.function.value(t)

        def pullback(u):
            back = u[:, None] * self.cells * self.function.derivative(t, value)
            return back.sum(axis=0), -back.sum(axis=1)

        return (self.cells * value).sum(axis=1), pullback

    def batch(self, rows, weights=None):
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        return replace(self, cells=self.cells[:, rows] * factor)


@dataclass(frozen=True, eq=False)
class NeymanPearson(ToyTerm):
    """For every class k: the mean over its rows of sum over l of phi(s_l - s_k), less kappa."""

    labels: np.ndarray
    weights: np.ndarray  # of the rows; those of a class sum to one
    kappa: float = 0.4
    n_classes: int = 3

    @property
    def n_rows(self):
        return len(self.labels)

    @property
    def n_outputs(self):
        return self.n_classes

    def forward(self, scores, auxiliary=NO_AUXILIARY):
        rows = np.arange(self.n_rows)
        t = scores - scores[rows, self.labels][:, None]
        value = self.function.value(t)
        value[rows, self.labels] = 0.0
        statistics = np.bincount(self.labels, self.weights * value.sum(axis=1), self.n_classes)

        def pullback(u):
            back = (u[self.labels] * self.weights)[:, None] * self.function.derivative(t, value)
            back[rows, self.labels] = 0.0
            back[rows, self.labels] = -back.sum(axis=1)
            return back, NO_AUXILIARY

        return statistics, pullback

    def batch(self, rows, weights=None):
        factor = np.full(len(rows), self.n_rows / len(rows)) if weights is None else weights
        return replace(self, labels=self.labels[rows], weights=self.weights[rows] * factor)
