"""Composite functions, a term of a model's scores plus a penalty on weights; their multipliers."""

from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.base import Parabola
from fairconstrained.models.linear import LinearModel, Model
from fairconstrained.penalties import Leading, Penalty, Zero
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.arguments import every
from fairconstrained.utils.arrays import Array

# The model without rows and parameters, of functions that are only penalties or affine.
NO_MODEL = LinearModel(np.zeros((0, 0)), fit_intercept=False)
# The zero function of no rows, with one output.
NO_TERM = CellMeans(
    sp.csc_array((0, 0)), Parabola(0.0), combination=np.zeros((1, 0)), names=("penalty",)
)


@dataclass(frozen=True, eq=False)
class CompositeFunction:
    r"""Functions :math:`c(w) = \mathrm{term}(\mathrm{model}(w), w_{aux}) + p(w) + a^\top w + b`.

    The objective is a part with one output; every constraint is a part, on rows of its own if its
    model has others than the objective's.

    Attributes
    ----------
    n_outputs : int
        The number of functions.
    smooth, smoothable : bool
        Whether term and penalty are smooth, or can be smoothed.
    convex : bool
        Whether it is convex: term and penalty are, and the model is linear (sufficient).
    weakly_convex : bool
        Whether a quadratic is known to make it convex: not known for a nonlinear model.
    batchable : bool
        Whether the term can be estimated from batches of rows, and these can be drawn.
    difference_of_convex : bool
        Whether `convexify` can be called. That needs convex parts, and a linear model whose scores
        are in memory: tangents belong to rows.
    """

    # turns weights into scores; none for a part that is a penalty or affine
    model: Model = NO_MODEL
    # turns scores into outputs; the zero function for a part that is a penalty or affine
    term: Term = NO_TERM
    # a function of all the variables, added to every output
    penalty: Penalty = field(default_factory=Zero)
    # where the term's own variables are among all
    auxiliary: slice = field(default_factory=lambda: slice(0, 0))
    slope: Array | None = None  # a; None for zeros, (n_variables,)
    # b: what the tolerance is smaller than that of the term, (n_outputs,)
    level: Array | float = 0.0
    source: int = 0  # which of an estimator's constraints it is a part of

    n_outputs = property(attrgetter("term.n_outputs"))
    smooth = every("penalty.smooth", "term.smooth")
    convex = every("penalty.convex", "model.linear", "term.convex")
    weakly_convex = every("model.linear", "term.weakly_convex")
    batchable = every("model.in_memory", "term.batchable")
    difference_of_convex = every("model.linear", "model.in_memory", "term.difference_of_convex")
    smoothable = property(lambda part: part.penalty.smoothed(1.0).smooth and part.term.smoothable)

    def add(self, penalty: Penalty) -> "CompositeFunction":
        """Return the part with one more penalty."""
        return replace(self, penalty=self.penalty + penalty)

    def shifted(self, shift: Array | float) -> "CompositeFunction":
        """Return the part plus `shift`: the same gaps with tolerances that are smaller by it."""
        level = self.level + shift
        if np.size(level) and np.ptp(level) == 0.0:  # one number: pairs need not be listed
            level = float(np.ravel(level)[0])
        return replace(self, level=level)

    def widened(self, n_variables: int, slope: float) -> "CompositeFunction":
        """Return the part with one more variable than these, of which it has the slope."""
        before = np.zeros(n_variables) if self.slope is None else self.slope
        penalty = Leading(self.penalty, n_variables)
        return replace(self, penalty=penalty, slope=np.append(before, slope))

    def level_of(self, outputs: Array) -> Array:
        """Return b of some outputs."""
        return np.broadcast_to(self.level, self.n_outputs)[outputs]

    def added(self, w: Array) -> Array | float:
        """Return a'w + b + p(w), a number where that is the same for all outputs."""
        added = self.level + self.penalty.value(w)
        return added if self.slope is None else added + float(self.slope @ w)

    def added_gradient(self, w: Array) -> Array:
        """Return the gradient of a'w + b + p(w)."""
        gradient = self.penalty.gradient(w)
        return gradient if self.slope is None else self.slope + gradient

    def gap_bounds(self, bounds: Array) -> Array:
        """Return the largest values allowed for gaps, from those of the term."""
        level = self.level if np.size(self.level) == len(bounds) else np.max(self.level)
        return bounds - level

    def zero_one(self) -> "CompositeFunction":
        """Return the part with the indicator in place of the surrogate.

        That may have other outputs: these have the largest of the levels.
        """
        term, level = self.term.zero_one(), self.level
        if term.n_outputs != self.n_outputs:
            level = float(np.max(level, initial=0.0))
        return replace(self, term=term, level=level)

    def convexify(self, w: Array, scores: Array) -> "CompositeFunction":
        """Return the convex majorant at `w`."""
        if not self.model.linear:
            raise ValueError("convexify needs a model whose scores are linear in the weights.")
        term = self.term.convexify(scores, w[self.auxiliary])
        return replace(self, term=term, penalty=self.penalty.convexify(w))

    def smoothed(self, width: float) -> "CompositeFunction":
        """Return the part with its kinks rounded over `width`."""
        return replace(self, term=self.term.smoothed(width), penalty=self.penalty.smoothed(width))

    @property
    def modulus(self) -> float:
        """A lower bound on the curvature: negative if weakly convex, -inf if not known."""
        bend = self.term.weak_curvature()
        if not self.model.linear or not np.all(np.isfinite(bend)):
            return -np.inf
        return self.penalty.modulus - self.model.curvature(bend)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The multipliers that are not zero."""

    which: Array  # the positions of their constraints, in rising order, (n_active,)
    values: Array  # the multipliers, (n_active,)
    size: int  # the number of constraints

    @classmethod
    def of(cls, multipliers: "Dual | None", size: int = 0) -> "Multipliers":
        """Return the multipliers of all constraints in this form; None stands for `size` zeros."""
        if isinstance(multipliers, Multipliers):
            return multipliers
        given = np.zeros(0) if multipliers is None else multipliers
        which = np.flatnonzero(given)
        return cls(which, given[which], max(len(given), size))

    @classmethod
    def at(cls, which: Array, values: Array, size: int) -> "Multipliers":
        """Return the multipliers of some constraints, in any order, which may be zero."""
        order = np.argsort(which)
        order = order[values[order] != 0.0]
        return cls(which[order], values[order], size)

    @property
    def total(self) -> float:
        """Their sum."""
        return float(np.add.reduce(self.values))

    def of_constraints(self, which: Array) -> Array:
        """Return the multipliers of some constraints."""
        if not len(self.which):
            return np.zeros(len(which))
        places = np.minimum(np.searchsorted(self.which, which), len(self.which) - 1)
        return np.where(self.which[places] == which, self.values[places], 0.0)

    def dense(self) -> Array:
        """Return the multipliers of all constraints."""
        full = np.zeros(self.size)
        full[self.which] = self.values
        return full


Dual = Array | Multipliers
"""The multipliers of all constraints, or those that are not zero."""
