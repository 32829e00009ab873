"""Parts: the functions a problem is made of. Evaluation: one forward pass through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.penalties import Penalty, Zero
from fairconstrained.scalar import Array
from fairconstrained.terms import Pullback, Term


@dataclass(frozen=True, eq=False)
class Latest:
    """The forward pass that was made last: a model's scores, and what terms made of them."""

    model: Any
    w: Array
    scores: Array
    passes: dict[int, tuple[Term, tuple[Array, Pullback]]] = field(default_factory=dict)


@dataclass
class Meter:
    """Counts the rows that forward passes have read, and remembers the latest one.

    Problems that transforms have made of one another share it: an outer loop that looks at its
    oracle's answer in its own problem does not read the rows again.
    """

    rows: float = 0.0
    latest: Latest | None = field(default=None, repr=False)

    def scores(self, model: Any, w: Array) -> Array:
        """Return the model's scores."""
        known = self.latest
        if known is None or known.model is not model or not np.array_equal(known.w, w):
            known = self.latest = Latest(model, w.copy(), model.scores(w))
            self.rows += model.n_rows
        return known.scores

    def forward(self, term: Term, scores: Array, auxiliary: Array) -> tuple[Array, Pullback]:
        """Return the term's forward pass."""
        if auxiliary.size or self.latest is None or self.latest.scores is not scores:
            return term.forward(scores, auxiliary)
        passes = self.latest.passes
        if id(term) not in passes:
            passes[id(term)] = term, term.forward(scores)
        return passes[id(term)][1]


@dataclass(frozen=True, eq=False)
class Part:
    r"""The functions :math:`c(w) = \mathrm{term}(\mathrm{model}(w), w_{aux}) + p(w)`.

    The objective is a part with one output; every constraint is a part, on rows of its own if its
    model has others than the objective's.

    Parameters
    ----------
    model : LinearModel or None
        Turns weights into scores; None for a part that is a penalty alone.
    term : Term or None
        Turns scores into outputs; None for a part that is a penalty alone (one output).
    penalty : Penalty
        A function of all the variables, added to every output.
    auxiliary : slice
        Where the term's own variables are among all.
    """

    model: Any
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
        """Whether term and penalty are (sufficient, not necessary)."""
        return self.penalty.convex and (self.term is None or self.term.convex)

    @property
    def difference_of_convex(self) -> bool:
        """Whether `convexify` can be called: the convex parts are known and scores are linear."""
        if self.term is None:
            return True
        try:
            self.term.convex_parts()
        except ValueError:
            return False
        return bool(self.model.linear)

    def add(self, penalty: Penalty) -> Part:
        """Return the part with one more penalty."""
        return replace(self, penalty=self.penalty + penalty)

    def raised(self, shift: Array) -> Part:
        """Return the part with other tolerances, see :meth:`Term.raised`."""
        assert self.term is not None, "a penalty alone has no tolerance"
        return replace(self, term=self.term.raised(shift))

    def strict(self) -> Part:
        """Return the part with the indicator in place of the surrogate."""
        return self if self.term is None else replace(self, term=self.term.strict())

    def convexify(self, w: Array, scores: Array | None) -> Part:
        """Return the convex majorant at `w`."""
        penalty = self.penalty.convexify(w)
        if self.term is None or scores is None:
            return replace(self, penalty=penalty)
        if not self.model.linear:
            raise ValueError("convexify needs a model whose scores are linear in the weights.")
        return replace(self, term=self.term.convexify(scores, w[self.auxiliary]), penalty=penalty)

    @property
    def smoothable(self) -> bool:
        """Whether term and penalty are."""
        return self.penalty.smoothable and (self.term is None or self.term.smoothable)

    def smoothed(self, width: float) -> Part:
        """Return the part with its kinks rounded over `width`."""
        term = None if self.term is None else self.term.smoothed(width)
        return replace(self, term=term, penalty=self.penalty.smoothed(width))

    def modulus(self) -> float:
        """Return a lower bound on the curvature: negative if weakly convex, -inf if not even so."""
        if self.term is None:
            return self.penalty.modulus
        bend = self.term.weak_curvature()
        if not np.all(np.isfinite(bend)):
            return -np.inf
        return self.penalty.modulus - self.model.curvature(bend)


class Evaluation:
    """A problem at a point: one forward pass per model, made when first needed and kept.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    """

    def __init__(self, problem: Any, w: Array):
        self.problem = problem
        self.w = w
        self._scores: dict[int, Array] = {}
        self._passes: dict[int, tuple[Array, Pullback]] = {}
        self._gradient: tuple[Array, Array] | None = None

    def release(self) -> None:
        """Forget what has the length of the rows; values known already stay known."""
        self._scores.clear()
        self._passes.clear()

    def scores_of(self, part: Part) -> Array | None:
        """Return the scores of a part's rows, None for a part without a model."""
        model = part.model
        if model is None:
            return None
        if id(model) not in self._scores:
            w = self.w[: model.n_parameters]
            self._scores[id(model)] = self.problem.meter.scores(model, w)
        return self._scores[id(model)]

    def _forward(self, part: Part) -> tuple[Array, Pullback]:
        if id(part) not in self._passes:
            assert part.term is not None
            scores = self.scores_of(part)
            assert scores is not None
            auxiliary = self.w[part.auxiliary]
            self._passes[id(part)] = self.problem.meter.forward(part.term, scores, auxiliary)
        return self._passes[id(part)]

    def _outputs(self, part: Part) -> Array:
        penalty = part.penalty.value(self.w)
        if part.term is None:
            return np.array([penalty])
        return part.term.head(self._forward(part)[0]) + penalty

    @cached_property
    def objective(self) -> float:
        """f(w)."""
        return float(self._outputs(self.problem.objective)[0])

    @cached_property
    def constraints(self) -> Array:
        """g(w), shape (n_constraints,)."""
        parts = self.problem.constraints
        return np.concatenate([self._outputs(part) for part in parts]) if parts else np.zeros(0)

    @property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        return float(max(self.constraints.max(initial=0.0), 0.0))

    @cached_property
    def strict_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate, shape (n_constraints,)."""
        parts = [part.strict() for part in self.problem.constraints]
        strict = Evaluation(self.problem.with_constraints(parts), self.w)
        strict._scores = self._scores
        return strict.constraints

    @property
    def strict_violation(self) -> float:
        """max(0, max_j g_j(w)) with the indicator in place of the surrogate."""
        return float(max(self.strict_constraints.max(initial=0.0), 0.0))

    @cached_property
    def decision_gap(self) -> float:
        """The largest gap that the decisions 1{score > 0} show; nan without constraints."""
        return self._largest_gap([part.strict() for part in self.problem.constraints])

    @cached_property
    def gap(self) -> float:
        """The largest gap on scores, before any tolerance; nan without constraints."""
        return self._largest_gap(self.problem.constraints)

    def _largest_gap(self, parts: Sequence[Part]) -> float:
        gaps = [
            part.term.gap(scores, self.w[part.auxiliary])
            for part in parts
            if part.term is not None and (scores := self.scores_of(part)) is not None
        ]
        gap = np.concatenate([np.zeros(0), *gaps])
        return float(gap.max(initial=0.0)) if gap.size else float("nan")

    def slack(self, multipliers: Array) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        slacks = [np.zeros(0)]
        for part in self.problem.parts:
            slack = np.full(part.n_outputs, part.penalty.slack(self.w))
            scores = self.scores_of(part)
            if part.term is not None and scores is not None:
                slack += part.term.slack(scores, self.w[part.auxiliary])
            slacks.append(slack)
        return float(np.append(1.0, multipliers) @ np.concatenate(slacks))

    def gradient(self, multipliers: Array | None = None, *, objective: float = 1.0) -> Array:
        r"""Return the gradient of :math:`f + \sum_j \lambda_j g_j`: one backward pass per model.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,) or None, default=None
            lambda; None for the objective alone.
        objective : float, default=1.0
            The weight of f; 0 for the constraints alone.
        """
        weights = np.append(objective, np.zeros(0) if multipliers is None else multipliers)
        if self._gradient is None or not np.array_equal(self._gradient[0], weights):
            self._gradient = weights, self._backward(weights)
        return self._gradient[1].copy()

    def _backward(self, weights: Array) -> Array:
        """Return the gradient of the functions' weighted sum; the last ones may be left out."""
        total = np.zeros(self.problem.n_variables)
        cotangents: dict[int, Array] = {}
        ends = np.cumsum([part.n_outputs for part in self.problem.parts])
        for part, weight in zip(self.problem.parts, np.split(weights, ends[:-1]), strict=True):
            if not np.any(weight):
                continue
            if not isinstance(part.penalty, Zero):
                total += weight.sum() * part.penalty.gradient(self.w)
            if part.term is not None:
                statistics, pullback = self._forward(part)
                on_scores, own = pullback(part.term.head_vjp(statistics, weight))
                total[part.auxiliary] += own
                if id(part.model) in cotangents:
                    cotangents[id(part.model)] += on_scores
                else:
                    cotangents[id(part.model)] = on_scores
        for model in self.problem.models:
            if id(model) in cotangents:
                back = model.vjp(self.w[: model.n_parameters], cotangents[id(model)])
                total[: model.n_parameters] += back
        return total
