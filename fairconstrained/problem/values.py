"""The values of a problem at a point, and the passes over the rows that they come from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.models.base import Model, Scores
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.passes import ModelPass, TermPass, forward_pass
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.rounding import same_values, within_rounding, without_rounding
from fairconstrained.utils.typing import Array, Gaps

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem

_MOST_ACTIVE = 300  # constraints whose gradients are wanted: each may cost a backward pass
_MOST_LISTED = 1000  # constraints, whose values cost little: of more only some are computed


class Values:
    """The values of a problem at a point: one forward pass per model, made when first needed.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    like : Evaluation or None, default=None
        An evaluation, perhaps of another problem, see :meth:`Problem.at`.
    """

    def __init__(self, problem: Problem, w: Array, *, like: Values | None = None):
        self.problem = problem
        self.w = w
        shared = like if like is not None and like._has_parameters_of(problem, w) else None
        # The same list for all that share passes: what one of them reads serves the others.
        self._models: list[ModelPass] = [] if shared is None else shared._models
        self._terms: list[TermPass] = [] if shared is None else [*shared._terms]
        self._of_part: list[TermPass | None] = [None] * len(problem.parts)

    def _has_parameters_of(self, problem: Problem, w: Array) -> bool:
        """Return whether the models of a problem have the same parameters here."""
        n = max((model.n_parameters for model in problem.models), default=0)
        return self.w.size >= n and same_values(self.w[:n], w[:n])

    def model_pass(self, model: Model | None) -> ModelPass:
        """Return the pass over the rows of a model."""
        for one in self._models:
            if one.model is model:
                return one
        assert model is not None, "the part has no model"
        self.problem.counter.rows += model.n_rows
        self._models.append(forward_pass(model, self.w[: model.n_parameters]))
        return self._models[-1]

    def _term(self, k: int) -> TermPass:
        """Return the pass of the term of a part, by its position."""
        of_part = self._of_part[k]
        if of_part is None:
            part = self.problem.parts[k]
            of_part = self._of_part[k] = self._made(part) or self._make(part)
        return of_part

    def _made(self, part: CompositeFunction) -> TermPass | None:
        """Return the pass of a part's term if it was made."""
        assert part.term is not None and part.model is not None
        self.model_pass(part.model)
        for one in self._terms:
            if one.is_of(part.model, part.term, self.w[part.auxiliary]):
                return one
        return None

    def _make(self, part: CompositeFunction) -> TermPass:
        """Return a new pass of a part's term."""
        model_pass, needed = self.model_pass(part.model), [part]
        if model_pass.at_once:
            decided = (one.zero_one() for one in self.problem.constraints)
            cheap = (one for one in decided if isinstance(one.term, CellMeans))
            for one in (*self.problem.parts, *cheap):
                new = one.model is part.model and all(one.term is not k.term for k in needed)
                if new and one.term is not None and self._made(one) is None:
                    needed.append(one)
        asked = [(one.term, self.w[one.auxiliary]) for one in needed if one.term is not None]
        made = model_pass.terms(asked)
        self._terms += made
        return made[0]

    def scores_of(self, part: CompositeFunction) -> Scores | None:
        """Return the scores of a part's rows, None for a part without a model."""
        return None if part.model is None else self.model_pass(part.model).scores

    def statistics_of(self, part: CompositeFunction) -> Array:
        """Return the statistics of the term of a part of the problem."""
        return self._term(self.problem.parts.index(part)).statistics

    def _outputs(self, k: int) -> Array:
        part = self.problem.parts[k]
        added = part.added(self.w)
        if part.term is None:
            return np.atleast_1d(added)
        return part.term.head(self._term(k).statistics) + added

    @cached_property
    def objective(self) -> float:
        """f(w)."""
        return float(self._outputs(0)[0])

    @cached_property
    def constraints(self) -> Array:
        """g(w), shape (n_constraints,)."""
        outputs = [self._outputs(k) for k in range(1, len(self.problem.parts))]
        if len(outputs) == 1:
            return outputs[0]
        return np.concatenate(outputs) if outputs else np.zeros(0)

    @cached_property
    def _listed(self) -> bool:
        """Whether all constraints are computed where some of them are asked for."""
        return self.problem.n_constraints <= _MOST_LISTED

    @cached_property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        values = self.constraints if self._listed else self.values(self.largest(-np.inf, 1))
        return float(values.max(initial=0.0))

    def values(self, which: Array) -> Array:
        """Return the values of some constraints, by their positions."""
        if self._listed:
            return self.constraints[which]
        values = np.zeros(len(which))
        for k, places, outputs in self._by_part(which):
            part = self.problem.parts[k]
            values[places] = part.added(self.w, outputs)
            if part.term is not None:
                values[places] += part.term.values_of(self._term(k).statistics, outputs)
        return values

    def _by_part(self, which: Array) -> Iterator[tuple[int, Array, Array]]:
        """Yield parts, where constraints of theirs are in an array, and their outputs."""
        if len(self.problem.parts) == 2 and len(which):
            yield 1, np.arange(len(which)), which
            return
        for k, outputs in enumerate(self.problem.places):
            places = np.flatnonzero((which >= outputs.start) & (which < outputs.stop))
            if len(places):
                yield k, places, which[places] - outputs.start

    def largest(self, least: float, most: int = _MOST_ACTIVE) -> Array:
        """Return where the largest constraints of at least `least` are, in falling order."""
        if self._listed:
            order = np.argsort(-self.constraints, kind="stable")[:most]
            return order[self.constraints[order] >= least]
        positions = [np.zeros(0, int)]
        for k, part in enumerate(self.problem.constraints, 1):
            statistics = None if part.term is None else self._term(k).statistics
            largest = part.largest(statistics, part.added(self.w), least, most)
            positions.append(largest + self.problem.places[k].start)
        which = np.concatenate(positions)
        return which[np.argsort(-self.values(which), kind="stable")[:most]]

    @property
    def zero_one_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate, shape (n_constraints,)."""
        return self._decided().constraints

    def _decided(self) -> Values:
        """Return the evaluation with the indicator in place of the surrogate."""
        parts = [part.zero_one() for part in self.problem.constraints]
        return self.problem.with_constraints(parts).at(self.w, like=self)

    @cached_property
    def _of_decisions(self) -> tuple[float, Gaps]:
        """The violation and the gaps with the indicator in place of the surrogate."""
        at = self._decided()
        figures = at.violation, at.gaps
        new = at._terms[len(self._terms) :]
        self._terms += [one for one in new if one.pullback is None]  # others cost memory
        return figures

    @property
    def zero_one_violation(self) -> float:
        """max(0, max_j g_j(w)) with the indicator, 0 if it is within rounding of 0."""
        return float(without_rounding(self._of_decisions[0]))

    @property
    def decision_gap(self) -> float:
        """The largest gap that the decisions 1{score > 0} show; nan without constraints."""
        return _largest(self.decision_gaps)

    @property
    def decision_gaps(self) -> Gaps:
        """The gaps that the decisions show and their bounds, for every part."""
        return self._of_decisions[1]

    @property
    def gap(self) -> float:
        """The largest gap on scores, before any tolerance; nan without constraints."""
        return _largest(self.gaps)

    @cached_property
    def gaps(self) -> Gaps:
        """The gaps on scores and their bounds, by part; excess by rounding only is left out.

        Of all pairs of many groups with one bound only the largest gap is there.
        """
        found = []
        for k, part in enumerate(self.problem.constraints, 1):
            gaps = bounds = np.zeros(0)
            if part.term is not None:
                statistics = self._term(k).statistics
                gaps, bounds = part.term.largest_gaps(statistics)
                if np.ndim(part.level):
                    gaps, bounds = part.term.gap_of(statistics), part.term.gap_bounds
                bounds = part.gap_bounds(bounds)
                gaps = within_rounding(gaps, bounds)
            found.append((gaps, bounds))
        return found


def _largest(gaps: Gaps) -> float:
    """Return the largest gap of all parts; nan if there is none."""
    every = np.concatenate([np.zeros(0), *(one for one, _ in gaps)])
    return float(every.max(initial=0.0)) if every.size else float("nan")
