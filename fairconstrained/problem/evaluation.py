"""Parts: the functions a problem is made of. Evaluation: one forward pass through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.penalties.base import Zero
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.base import Pullback, Term, subgradient_error
from fairconstrained.utils.rounding import within_rounding, without_rounding
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Latest:
    """The forward pass that was made last: a model's scores, and what terms made of them."""

    model: Any
    w: Array
    scores: Array
    passes: dict[int, tuple[Term, tuple[Array, Pullback]]] = field(default_factory=dict)


@dataclass
class EvaluationCounter:
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

    def scores_of(self, part: CompositeFunction) -> Array | None:
        """Return the scores of a part's rows, None for a part without a model."""
        model = part.model
        if model is None:
            return None
        if id(model) not in self._scores:
            w = self.w[: model.n_parameters]
            self._scores[id(model)] = self.problem.counter.scores(model, w)
        return self._scores[id(model)]

    def _forward(self, part: CompositeFunction) -> tuple[Array, Pullback]:
        if id(part) not in self._passes:
            assert part.term is not None
            scores = self.scores_of(part)
            assert scores is not None
            auxiliary = self.w[part.auxiliary]
            self._passes[id(part)] = self.problem.counter.forward(part.term, scores, auxiliary)
        return self._passes[id(part)]

    def _outputs(self, part: CompositeFunction) -> Array:
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
    def zero_one_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate, shape (n_constraints,)."""
        parts = [part.zero_one() for part in self.problem.constraints]
        strict = Evaluation(self.problem.with_constraints(parts), self.w)
        strict._scores = self._scores
        return strict.constraints

    @property
    def zero_one_violation(self) -> float:
        """max(0, max_j g_j(w)) with the indicator, 0 if it is within rounding of 0."""
        return float(without_rounding(max(self.zero_one_constraints.max(initial=0.0), 0.0)))

    @cached_property
    def decision_gap(self) -> float:
        """The largest gap that the decisions 1{score > 0} show; nan without constraints.

        A gap that exceeds its bound by rounding only is given as the bound.
        """
        return self._largest_gap([part.zero_one() for part in self.problem.constraints])

    @cached_property
    def gap(self) -> float:
        """The largest gap on scores, before any tolerance; nan without constraints."""
        return self._largest_gap(self.problem.constraints)

    def _largest_gap(self, parts: Sequence[CompositeFunction]) -> float:
        gaps = [
            within_rounding(part.term.gap(scores, self.w[part.auxiliary]), part.term.gap_bounds)
            for part in parts
            if part.term is not None and (scores := self.scores_of(part)) is not None
        ]
        gap = np.concatenate([np.zeros(0), *gaps])
        return float(gap.max(initial=0.0)) if gap.size else float("nan")

    def subgradient_error(self, multipliers: Array) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        slacks = [np.zeros(0)]
        for part in self.problem.parts:
            slack = np.full(part.n_outputs, part.penalty.subgradient_error(self.w))
            scores = self.scores_of(part)
            if part.term is not None and scores is not None:
                slack += subgradient_error(part.term, scores, self.w[part.auxiliary])
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
