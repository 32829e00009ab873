"""Composite functions: a term of a model's scores plus a penalty on the weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fairconstrained.models.base import Model
from fairconstrained.penalties import Leading, Penalty, Zero
from fairconstrained.terms.base import Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class CompositeFunction:
    r"""The functions :math:`c(w) = \mathrm{term}(\mathrm{model}(w), w_{aux}) + p(w) + A w + b`.

    The objective is a part with one output; every constraint is a part, on rows of its own if its
    model has others than the objective's.

    Parameters
    ----------
    model : Model or None
        Turns weights into scores; None for a part without a term.
    term : Term or None
        Turns scores into outputs; None for a part that is a penalty or affine (one output).
    penalty : Penalty
        A function of all the variables, added to every output.
    auxiliary : slice
        Where the term's own variables are among all.
    slopes : ndarray of shape (n_outputs or 1, n_variables) or None, default=None
        A, one row for all outputs or one for each; None for zeros.
    level : ndarray of shape (n_outputs,) or float, default=0.0
        b: what the tolerance is smaller than that of the term.
    """

    model: Model | None
    term: Term | None
    penalty: Penalty = field(default_factory=Zero)
    auxiliary: slice = field(default_factory=lambda: slice(0, 0))
    slopes: Array | None = None
    level: Array | float = 0.0

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return 1 if self.term is None else self.term.n_outputs

    @property
    def smooth(self) -> bool:
        """Whether term and penalty are."""
        return self.penalty.smooth and (self.term is None or self.term.smooth)

    @property
    def convex(self) -> bool:
        """Whether it is convex: term and penalty are, and the model is linear (sufficient)."""
        return self.penalty.convex and (self.term is None or (self._linear and self.term.convex))

    @property
    def weakly_convex(self) -> bool:
        """Whether a quadratic is known to make it convex: not known for a nonlinear model."""
        return self.term is None or (self._linear and self.term.weakly_convex)

    @property
    def _linear(self) -> bool:
        return self.model is not None and self.model.linear

    @property
    def twice_differentiable(self) -> bool:
        """Whether the Hessian is known and costs little: a curved term of a linear model."""
        term, model = self.term, self.model
        if term is None or model is None or not model.gram_is_cheap:
            return False
        return term.curved and self.penalty.quadratic and (model.in_memory or not term.n_auxiliary)

    @property
    def batchable(self) -> bool:
        """Whether the term can be estimated from batches of rows, and these can be drawn."""
        term = self.term
        if self.model is not None and not self.model.in_memory:
            return False
        return term is None or term.batchable

    @property
    def difference_of_convex(self) -> bool:
        """Whether `convexify` can be called.

        That needs convex parts, and a linear model whose scores are in memory: tangents belong to
        rows.
        """
        if self.term is None:
            return True
        if self.model is None or not self.model.linear or not self.model.in_memory:
            return False
        return self.term.difference_of_convex

    def add(self, penalty: Penalty) -> CompositeFunction:
        """Return the part with one more penalty."""
        return replace(self, penalty=self.penalty + penalty)

    def shifted(self, shift: Array | float) -> CompositeFunction:
        """Return the part plus `shift`: the same gaps with tolerances that are smaller by it."""
        level = self.level + shift
        if np.size(level) and np.ptp(level) == 0.0:  # one number: pairs need not be listed
            level = float(np.ravel(level)[0])
        return replace(self, level=level)

    def with_outputs(self, term: Term, outputs: Array) -> CompositeFunction:
        """Return the part with a term of some of its outputs."""
        return replace(self, term=term, level=_of(self.level, outputs))

    def widened(self, n_variables: int, slope: float) -> CompositeFunction:
        """Return the part with one more variable than these, of which it has the slope."""
        slopes = np.zeros((1, n_variables)) if self.slopes is None else self.slopes
        slopes = np.column_stack([slopes, np.full(len(slopes), slope)])
        penalty = self.penalty
        penalty = penalty if type(penalty) is Zero else Leading(penalty, n_variables)
        return replace(self, penalty=penalty, slopes=slopes)

    def added(self, w: Array, outputs: Array | None = None) -> Array | float:
        """Return A w + b + p(w), a number where that is the same for all outputs."""
        added = _of(self.level, outputs)
        if type(self.penalty) is not Zero:
            added = added + self.penalty.value(w)
        if self.slopes is None:
            return added
        slopes = self.slopes if outputs is None or len(self.slopes) == 1 else self.slopes[outputs]
        return added + (float(slopes[0] @ w) if len(self.slopes) == 1 else slopes @ w)

    def added_slopes(self, w: Array, outputs: Array | slice) -> Array | None:
        """Return the gradients of A w + b + p(w), (n_variables,) where all are the same.

        None where they are zero.
        """
        slopes = self.slopes
        if slopes is not None:
            slopes = slopes[0] if len(slopes) == 1 else slopes[outputs]
        if type(self.penalty) is Zero:
            return slopes
        gradient = self.penalty.gradient(w)
        return gradient if slopes is None else slopes + gradient

    def largest(
        self,
        statistics: Array | None,
        added: Array | float,
        least: float,
        most: int,
        *,
        distinct: bool = False,
    ) -> Array:
        """Return where the term's outputs plus what is added are largest, see `Term.largest`."""
        if self.term is not None and statistics is not None and np.ndim(added) == 0:
            return self.term.largest(statistics, least - float(added), most, distinct=distinct)
        values = np.atleast_1d(added)
        if self.term is not None and statistics is not None:
            values = values + self.term.head(statistics)
        order = np.argsort(-values, kind="stable")[:most]
        return order[values[order] >= least]

    def gap_bounds(self, bounds: Array) -> Array:
        """Return the largest values allowed for gaps, from those of the term."""
        level = self.level if np.size(self.level) == len(bounds) else np.max(self.level)
        return bounds - level

    def zero_one(self) -> CompositeFunction:
        """Return the part with the indicator in place of the surrogate.

        That may have other outputs: these have the largest of the levels.
        """
        if self.term is None:
            return self
        term, level = self.term.zero_one(), self.level
        if term.n_outputs != self.n_outputs:
            level = float(np.max(level, initial=0.0))
        return replace(self, term=term, level=level)

    def convexify(self, w: Array, scores: Array | None) -> CompositeFunction:
        """Return the convex majorant at `w`."""
        penalty = self.penalty.convexify(w)
        if self.term is None or scores is None:
            return replace(self, penalty=penalty)
        if not self._linear:
            raise ValueError("convexify needs a model whose scores are linear in the weights.")
        term = self.term.convexify(scores, w[self.auxiliary])
        return replace(self, term=term, penalty=penalty)

    @property
    def smoothable(self) -> bool:
        """Whether term and penalty are smooth or can be smoothed."""
        term = self.term
        return self.penalty.smoothed(1.0).smooth and (term is None or term.smoothable)

    def smoothed(self, width: float) -> CompositeFunction:
        """Return the part with its kinks rounded over `width`."""
        term = None if self.term is None else self.term.smoothed(width)
        return replace(self, term=term, penalty=self.penalty.smoothed(width))

    def modulus(self) -> float:
        """Return a lower bound on the curvature: negative if weakly convex, -inf if not known."""
        if self.term is None:
            return self.penalty.modulus
        if self.model is None or not self.model.linear:
            return -np.inf
        bend = self.term.weak_curvature()
        if not np.all(np.isfinite(bend)):
            return -np.inf
        return self.penalty.modulus - self.model.curvature(bend)


def _of(values: Array | float, outputs: Array | None) -> Array | float:
    """Return the values of some outputs, a number where it is the same for all."""
    return values if outputs is None or np.ndim(values) == 0 else np.asarray(values)[outputs]
