"""Terms that the package does not have, written as a user would write them.

They define what every term must, and the abilities that their tests use. One has auxiliary
variables, and one has the required abilities alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.functions.base import Indicator, ScalarFunction
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.terms.base import NO_AUXILIARY, Term


class Identity(ScalarFunction):
    """phi(t) = t, of which affine constraints are averages."""

    convex = True
    curvature = 0.0, 0.0

    def value(self, t):
        return t

    def derivative(self, t, value):
        return np.ones_like(t)


class ToyTerm(Term):
    """Averages minus a tolerance."""

    names = ("toy",)
    smooth = batchable = True

    def head(self, statistics):
        return statistics - self.kappa

    def head_vjp(self, statistics, v):
        return v

    def zero_one(self):
        return replace(self, function=Indicator(), smooth=False)


@dataclass(frozen=True, eq=False)
class RateAboveThreshold(ToyTerm):
    """mean over the rows of cell k of phi(s - theta_k), minus kappa: theta is auxiliary."""

    cells: np.ndarray  # (n_cells, n_rows)
    kappa: float = 0.3
    function: object = Sigmoid()
    smooth: bool = True

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

    def take(self, rows, weights):
        return replace(self, cells=self.cells[:, rows] * weights)


REQUIRED = ("n_rows", "n_outputs", "names", "forward", "head", "head_vjp", "zero_one")


class CellMeansAlone(Term):
    """Cell means that declare no ability: what is required of a term and nothing else."""

    smooth = True
    forward = head = head_vjp = zero_one = None

    def __init__(self, term):
        vars(self).update({name: getattr(term, name) for name in REQUIRED})
