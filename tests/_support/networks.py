"""A small network in NumPy as a model, and problems that train it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairconstrained import DemographicParity, make_biased_classification
from fairconstrained.functions.losses import Hinge, Logistic, Loss
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.models import Model
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import average


@dataclass(frozen=True, eq=False)
class TanhNetwork(Model):
    r"""Scores :math:`\tanh(X W + 1 b^\top) a + c` of one hidden layer.

    The parameters are W (n_features, n_hidden), b, a (n_hidden,) and c, in this order.
    """

    X: np.ndarray
    n_hidden: int = 4

    @property
    def n_rows(self):
        return len(self.X)

    @property
    def n_parameters(self):
        return (self.X.shape[1] + 2) * self.n_hidden + 1

    def _split(self, w):
        n, h = self.X.shape[1], self.n_hidden
        inner, shift, outer, offset = np.split(w, np.cumsum([n * h, h, h]))
        return inner.reshape(n, h), shift, outer, offset

    def start(self, random_state):
        """Return random weights: at zero the gradient of the inner layer vanishes."""
        w = random_state.standard_normal(self.n_parameters)
        w[: self.X.shape[1] * self.n_hidden] /= np.sqrt(self.X.shape[1])
        w[-1] = 0.0
        return w

    def forward(self, w):
        inner, shift, outer, offset = self._split(w)
        units = np.tanh(self.X @ inner + shift)
        return units @ outer + offset, partial(self._back, units, outer)

    def _back(self, units, outer, v):
        back = np.outer(v, outer) * (1.0 - units**2)
        return np.concatenate([(self.X.T @ back).ravel(), back.sum(axis=0), units.T @ v, [v.sum()]])

    def batch(self, rows):
        return replace(self, X=self.X[rows])

    def on(self, X):
        return replace(self, X=X)

    def offset(self):
        direction = np.zeros(self.n_parameters)
        direction[-1] = 1.0
        return direction


def network_problem(
    kappa: float = 0.05, loss: Loss | None = None, surrogate: Ramp | None = None
) -> Problem:
    """Return the training of a network on labels that no linear score separates."""
    X, y, groups = make_biased_classification(300, 3, gap=0.4, class_sep=1.0, random_state=0)
    signs = np.where((y > 0) ^ (np.abs(X[:, 2]) > 1.2), 1.0, -1.0)
    weight = np.ones(len(y))
    model: Model = TanhNetwork(X)
    constraint = (
        DemographicParity(kappa)
        if surrogate is None
        else DemographicParity(kappa, surrogate=surrogate)
    )
    objective = average(loss or Logistic(), signs, weight)
    return Problem(
        CompositeFunction(model, objective, Leading(L2(1e-3), model.n_parameters)),
        (CompositeFunction(model, constraint.bind(signs, groups, weight)),),
    )


NETWORKS = {
    "smooth": network_problem,
    "hinge and ramp": lambda: network_problem(loss=Hinge(), surrogate=Ramp()),
}
