"""Composite functions: a term of a model's scores plus a penalty on the weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fairconstrained.models.base import Model, curvature
from fairconstrained.penalties import Penalty, Zero
from fairconstrained.terms.base import Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class CompositeFunction:
    r"""The functions :math:`c(w) = \mathrm{term}(\mathrm{model}(w), w_{aux}) + p(w)`.

    The objective is a part with one output; every constraint is a part, on rows of its own if its
    model has others than the objective's.

    Parameters
    ----------
    model : Model or None
        Turns weights into scores; None for a part that is a penalty alone.
    term : Term or None
        Turns scores into outputs; None for a part that is a penalty alone (one output).
    penalty : Penalty
        A function of all the variables, added to every output.
    auxiliary : slice
        Where the term's own variables are among all.
    """

    model: Model | None
    term: Term | None
    penalty: Penalty = field(default_factory=Zero)
    auxiliary: slice = field(default_factory=lambda: slice(0, 0))

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
        curved = term is not None and term.curved and not term.n_auxiliary
        return curved and self.penalty.quadratic and getattr(model, "gram_is_cheap", False)

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

    def shifted(self, shift: Array) -> CompositeFunction:
        """Return the part with other tolerances, see :meth:`Term.shifted`."""
        if self.term is None:
            raise TypeError("A penalty alone has no tolerance that could be changed.")
        return replace(self, term=self.term.shifted(shift))

    def zero_one(self) -> CompositeFunction:
        """Return the part with the indicator in place of the surrogate."""
        return self if self.term is None else replace(self, term=self.term.zero_one())

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
        return self.penalty.modulus - curvature(self.model, bend)
