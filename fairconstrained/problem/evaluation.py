"""Evaluation: a problem at a point, with its values and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fairconstrained.models.linear import Model, Scores
from fairconstrained.problem.composite import NO_MODEL, CompositeFunction, Dual, Multipliers
from fairconstrained.problem.passes import ModelPass, ShardsPass, TermPass
from fairconstrained.utils.arrays import Array, Gaps, same_values, within_rounding, without_rounding

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem

KINDS = "objective", "constraints", "constraint_gradients"  # that evaluations are counted by
_MOST_ACTIVE = 300  # constraints whose gradients are wanted: each may cost a backward pass
_MOST_LISTED = 1000  # constraints, whose values cost little: of more only some are computed


class Evaluation:
    """A problem at a point: one forward pass per model, made when first needed and kept.

    It owns everything that has the length of the rows: scores and forward passes. They are freed
    with it. Evaluations that are made from it (`like`, see :meth:`Problem.at`) share them.
    `certified` has the last multipliers and their optimality conditions: a solver asks for those
    that the loop asks for again.
    """

    certified: tuple[Multipliers, Any] | None = None

    def __init__(self, problem: Problem, w: Array, *, like: Evaluation | None = None):
        self.problem, self.w = problem, w
        n = max((model.n_parameters for model in problem.models), default=0) if like else 0
        shared = like is not None and like.w.size >= n and same_values(like.w[:n], w[:n])
        # The same object for all evaluations at these parameters: what one reads serves the others.
        self._passes: dict[Model, ModelPass] = like._passes if like and shared else {}
        self._counted: set[str] = like._counted if like and shared else set()
        # Whether all constraints are computed where some of them are asked for.
        self.lists = problem.n_constraints <= _MOST_LISTED
        self._gradients: dict[tuple[Multipliers, float], Array] = {}

    def model_pass(self, model: Model) -> ModelPass:
        """Return the pass over the rows of a model."""
        made = self._passes.get(model)
        if made is None:
            self.problem.counter.rows += model.n_rows
            kind = ModelPass if model.in_memory else ShardsPass
            made = self._passes[model] = kind(cast("Any", model), self.w[: model.n_parameters])
        return made

    def with_scores(self, scores: Mapping[Model, Scores]) -> Evaluation:
        """Return the evaluation, which takes scores that are there: it does not read these rows."""
        for model, values in scores.items():
            rows = self._passes[model] = ModelPass(model, self.w[: model.n_parameters])
            rows.scores = values
        return self

    def _term(self, part: CompositeFunction, *, sloped: bool = False) -> TermPass:
        """Return the pass of the term of a part, whose value or gradient counts as evaluated."""
        kind = KINDS[(1 + sloped) * (part is not self.problem.objective)]
        if kind not in self._counted:
            self._counted.add(kind)
            self.problem.counter.functions[kind] += self.problem.function_rows[kind]
        rows, auxiliary = self.model_pass(part.model), self.w[part.auxiliary]
        made = rows.made.get(part.term)
        if made is None or (auxiliary.size and not same_values(made.auxiliary, auxiliary)):
            made = rows.make(part, self.w, self.problem.parts)
        return made

    def scores_of(self, part: CompositeFunction) -> Scores:
        """Return the scores of a part's rows."""
        return self.model_pass(part.model).scores

    def statistics_of(self, part: CompositeFunction) -> Array:
        """Return the statistics of the term of a part of the problem."""
        return self._term(part).statistics

    def _outputs(self, part: CompositeFunction) -> Array:
        return part.term.head(self._term(part).statistics) + part.added(self.w)

    @cached_property
    def objective(self) -> float:
        """f(w)."""
        return float(self._outputs(self.problem.objective)[0])

    @cached_property
    def constraints(self) -> Array:
        """g(w), shape (n_constraints,)."""
        return np.concatenate([np.zeros(0), *map(self._outputs, self.problem.constraints)])

    @cached_property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        values = self.constraints if self.lists else self.values(self.largest(-np.inf, 1))
        return float(values.max(initial=0.0))

    def values(self, which: Array) -> Array:
        """Return the values of some constraints, by their positions."""
        if self.lists:
            return self.constraints[which]
        values = np.zeros(len(which))
        for part, places, outputs in self.by_part(which):
            added = np.broadcast_to(part.added(self.w), part.n_outputs)[outputs]
            values[places] = part.term.values_of(self.statistics_of(part), outputs) + added
        return values

    def by_part(self, which: Array) -> Iterator[tuple[CompositeFunction, slice | Array, Array]]:
        """Yield parts, where constraints of theirs are in an array, and their outputs."""
        several = len(self.problem.constraints) > 1
        for part, place in zip(self.problem.constraints, self.problem.places, strict=True):
            inside = (which >= place.start) & (which < place.stop) if several else slice(None)
            outputs = which[inside] - place.start
            if len(outputs):
                yield part, inside, outputs

    def largest(self, least: float, most: int = _MOST_ACTIVE) -> Array:
        """Return where the largest constraints of at least `least` are, in falling order."""
        positions = [np.zeros(0, int)]
        for part, place in zip(self.problem.constraints, self.problem.places, strict=True):
            statistics, added = self.statistics_of(part), part.added(self.w)
            largest = part.term.largest(statistics, least, most, added=added)
            positions.append(largest + place.start)
        which = np.concatenate(positions)
        return which[np.argsort(-self.values(which), kind="stable")[:most]]

    def largest_after(
        self, s: Array, least: float, most: int, after: tuple[Evaluation, Array]
    ) -> Array:
        """Return the positions of constraints whose linearisation is largest after a step.

        Of parts whose statistics have gradients that cost little, and of pairs those that do not
        share groups: at least `least`, at most `most` of each part, to enter a working set. Values
        are taken from `after`, an evaluation at another step, and this step.
        """
        positions = [np.zeros(0, int)]
        there, step = after[0], s - after[1]
        for part, place in zip(self.problem.constraints, self.problem.places, strict=True):
            slopes = self.model_pass(part.model).slopes(self._term(part), part.n_outputs)
            if slopes is not None:
                on_model, on_own = slopes
                statistics = there.statistics_of(part) + on_model @ step[: on_model.shape[1]]
                statistics += on_own @ step[part.auxiliary]
                added = part.added(there.w) + float(part.added_gradient(self.w) @ step)
                largest = part.term.largest(statistics, least, most, added=added, distinct=True)
                positions.append(largest + place.start)
        return np.concatenate(positions)

    @cached_property
    def decided(self) -> Evaluation:
        """The problem with the indicator in place of the surrogate, at the same point."""
        parts = [part.zero_one() for part in self.problem.constraints]
        return self.problem.with_constraints(parts).at(self.w, like=self)

    @property
    def zero_one_violation(self) -> float:
        """The violation of the decisions 1{score > 0}, 0 if it is within rounding of 0."""
        return float(without_rounding(self.decided.violation))

    @property
    def gap(self) -> float:
        """The largest gap on scores, before any tolerance; nan without constraints."""
        gaps = np.concatenate([np.zeros(0), *(gaps for gaps, _ in self.gaps)])
        return float(gaps.max(initial=0.0)) if gaps.size else float("nan")

    @cached_property
    def gaps(self) -> Gaps:
        """The gaps on scores and their bounds, by part; excess by rounding only is left out.

        Of all pairs of many groups with one bound only the largest gap is there.
        """
        by_part = []
        for part in self.problem.constraints:
            statistics = self.statistics_of(part)
            gaps, bounds = part.term.largest_gaps(statistics)
            if np.ndim(part.level):
                gaps, bounds = part.term.gap_of(statistics), part.term.gap_bounds
            if part.model is NO_MODEL:  # there is nothing that decisions or scores could show
                gaps, bounds = np.zeros(0), np.zeros(0)
            bounds = part.gap_bounds(bounds)
            by_part.append((within_rounding(gaps, bounds), bounds))
        return by_part

    def subgradient_error(self, multipliers: Dual) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        errors = []
        for part in self.problem.parts:
            error = self.model_pass(part.model).subgradient_error(part.term, self.w[part.auxiliary])
            errors.append(error + part.penalty.subgradient_error(self.w))
        active, error = Multipliers.of(multipliers), np.concatenate(errors)
        return float(error[0] + active.values @ error[1:][active.which])

    def _weighted(
        self, active: Multipliers, objective: float
    ) -> Iterator[tuple[CompositeFunction, float, TermPass, Array]]:
        """Yield the parts of a Lagrangian, and the sum of the weights of their functions.

        They come with the pass of the term and the weights of its statistics.
        """
        f = self.problem.objective
        first = [(f, slice(None), np.zeros(1, int))] if objective else []
        for part, places, outputs in (*first, *self.by_part(active.which)):
            weights = np.array([objective]) if part is f else active.values[places]
            of = self._term(part, sloped=True)
            on_statistics = of.term.vjp_of(of.statistics, outputs, weights)
            yield part, float(np.add.reduce(weights)), of, on_statistics

    def gradient(self, multipliers: Dual | None = None, *, objective: float = 1.0) -> Array:
        r"""Return the gradient of :math:`f + \sum_j \lambda_j g_j`: one backward pass per model.

        Without multipliers it is that of the objective f, whose weight is `objective`: 0 for the
        constraints alone.
        """
        active = Multipliers.of(multipliers)
        if (active, objective) in self._gradients:  # a solver asks for it before the certificate
            return self._gradients[active, objective]
        total = np.zeros(self.problem.n_variables)
        asked: dict[Model, list[tuple[slice, TermPass, Array]]] = {}
        for part, size, of, on_statistics in self._weighted(active, objective):
            total += size * part.added_gradient(self.w)
            if of.slopes is None:
                asked.setdefault(part.model, []).append((part.auxiliary, of, on_statistics[None]))
            else:
                total[: part.model.n_parameters] += on_statistics @ of.slopes[0]
                total[part.auxiliary] += on_statistics @ of.slopes[1]
        for model, terms in asked.items():
            gradient, on_auxiliary = self.model_pass(model).pull([term[1:] for term in terms])
            total[: model.n_parameters] += gradient[0]
            for (where, *_), change in zip(terms, on_auxiliary, strict=True):
                total[where] += change[0]
        self._gradients[active, objective] = total
        return total

    def hessian(self, multipliers: Dual) -> Array:
        r"""Return the Hessian of :math:`f + \sum_j \lambda_j g_j`; it counts as a data pass.

        The problem is :attr:`Problem.twice_differentiable`.
        """
        problem = self.problem
        (model,) = problem.models
        diagonal, weighted, owned = np.zeros(problem.n_variables), [], []
        for part, size, of, on_statistics in self._weighted(Multipliers.of(multipliers), 1.0):
            diagonal += size * part.penalty.second_derivatives(problem.n_variables)
            weighted.append((of, on_statistics))
            owned += [part.auxiliary] if of.auxiliary.size else []
        problem.counter.rows += model.n_rows
        n, total = model.n_parameters, np.zeros((problem.n_variables, problem.n_variables))
        total[:n, :n], on_own = self.model_pass(model).hessian(weighted)
        for where, (mixed, squares) in zip(owned, on_own, strict=True):
            total[where, :n], total[:n, where] = mixed, mixed.T
            total[where, where] = np.diag(squares)
        total.flat[:: len(total) + 1] += diagonal
        return total

    def score_derivatives(self, multipliers: Dual) -> tuple[Array, Array]:
        """Return the first and second derivatives of the Lagrangian in the scores of the rows.

        They are those of the only model. Terms are curved and have no variables of their own.
        """
        first, second = np.zeros((2, self.problem.models[0].n_rows))
        for _, _, of, weights in self._weighted(Multipliers.of(multipliers), 1.0):
            pullback = cast("Any", of.pullback)
            first += pullback(weights)[0]
            second += pullback.second_derivatives(weights)
        return first, second

    def constraint_gradients(self, which: Array) -> Array:
        """Return the gradients of constraints at some positions, shape (len(which), n_variables).

        Each costs a backward pass, or each statistic that they depend on if these are fewer.
        """
        rows = np.zeros((len(which), self.problem.n_variables))
        for part, places, outputs in self.by_part(which):
            of = self._term(part, sloped=True)
            on_model, on_own = self.model_pass(part.model).rows(of, outputs)
            rows[places] = part.added_gradient(self.w)
            rows[places, : on_model.shape[1]] += on_model
            rows[places, part.auxiliary] += on_own
        return rows
