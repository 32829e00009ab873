"""Evaluation: a problem at a point, with one forward pass per model. The counter of rows read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.models.base import Model, Scores
from fairconstrained.penalties import Zero
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.known_gradients import KnownGradients
from fairconstrained.problem.passes import ModelPass, TermPass, forward_pass
from fairconstrained.utils.rounding import same_values, within_rounding, without_rounding
from fairconstrained.utils.typing import Array, Gaps

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem


@dataclass
class EvaluationCounter:
    """Counts the rows that forward passes have read."""

    rows: float = 0.0

    def count(self, n_rows: int) -> None:
        """Count a read of some rows."""
        self.rows += n_rows


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the Jacobian that come from one part."""

    part: CompositeFunction
    places: Array
    table: Array
    spread: Array | None


class Evaluation:
    """A problem at a point: one forward pass per model, made when first needed and kept.

    An evaluation owns everything that has the length of the rows: scores and forward passes. They
    are freed with it. Evaluations that are made from it (see `like`) share them.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    like : Evaluation or None, default=None
        An evaluation, perhaps of another problem, see :meth:`Problem.at`.
    """

    def __init__(self, problem: Problem, w: Array, *, like: Evaluation | None = None):
        self.problem = problem
        self.w = w
        shared = like is not None and like._has_parameters_of(self)
        self._models: list[ModelPass] = like._models if like is not None and shared else []
        self._terms: list[TermPass] = [*like._terms] if like is not None and shared else []
        self._found: dict[tuple[int, int, int], TermPass] = {}  # for models and terms kept in it
        self._gradients = KnownGradients()
        self._with_zero_one = False

    def _has_parameters_of(self, other: Evaluation) -> bool:
        """Return whether the models of another evaluation have the same parameters here."""
        n = max((model.n_parameters for model in other.problem.models), default=0)
        return self.w.size >= n and same_values(self.w[:n], other.w[:n])

    def with_zero_one(self) -> Evaluation:
        """Return this evaluation, which is to compute zero-one versions where it reads the rows.

        That costs rows in shards little. Without it, zero-one versions take a read of their own.
        """
        self._with_zero_one = True
        return self

    def uncounted(self) -> Evaluation:
        """Return an evaluation of the same for measurements, which count no data passes."""
        if len(self._models) == len(self.problem.models):
            return self
        return self.problem.uncounted().at(self.w, like=self)

    def without_rows(self) -> Evaluation:
        """Return the evaluation with the values known so far and without its forward passes."""
        light = Evaluation(self.problem, self.w)
        own = ("_models", "_terms", "_found")
        vars(light).update((key, value) for key, value in vars(self).items() if key not in own)
        return light

    def _model_pass(self, model: Model) -> ModelPass:
        for known in self._models:
            if known.model is model:
                return known
        self.problem.counter.rows += model.n_rows
        self._models.append(forward_pass(model, self.w[: model.n_parameters]))
        return self._models[-1]

    def scores_of(self, part: CompositeFunction) -> Scores | None:
        """Return the scores of a part's rows, None for a part without a model."""
        return None if part.model is None else self._model_pass(part.model).scores

    def score_below_share(self, part: CompositeFunction, share: float, weight: Array) -> float:
        """Return the score of a part's rows above which a share of the weight lies.

        Parameters
        ----------
        part : CompositeFunction
            With a model.
        share : float
            In (0, 1).
        weight : ndarray of shape (n_rows,)
            The weights of the rows; rows in shards have their own.
        """
        assert part.model is not None
        return self._model_pass(part.model).score_below_share(share, weight)

    def distribution(self, part: CompositeFunction) -> tuple[Scores, Array | None, Array | None]:
        """Return scores of a part with a model, see :meth:`ModelPass.distribution`."""
        assert part.model is not None
        return self._model_pass(part.model).distribution()

    def statistics_of(self, part: CompositeFunction) -> Array:
        """Return the statistics of the term of a part."""
        return self._forward(part).statistics

    def _known(self, part: CompositeFunction) -> TermPass | None:
        """Return the pass of a part's term if it was made."""
        assert part.term is not None and part.model is not None
        model_pass, auxiliary = self._model_pass(part.model), self.w[part.auxiliary]
        for one in self._terms:
            if one.is_of(model_pass, part.term, auxiliary):
                return one
        return None

    def _forward(self, part: CompositeFunction) -> TermPass:
        """Return the pass of a part's term, which is made when first needed."""
        key = id(part.model), id(part.term), part.auxiliary.start
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._known(part) or self._made(part)
        return found

    def _made(self, part: CompositeFunction) -> TermPass:
        """Return a new pass of a part's term."""
        assert part.term is not None and part.model is not None
        model_pass, needed = self._model_pass(part.model), [part]
        if model_pass.at_once:
            others = [*self.problem.parts]
            if self._with_zero_one:
                others += [one.zero_one() for one in self.problem.constraints]
            for one in others:
                new = one.model is part.model and all(one.term is not k.term for k in needed)
                if new and one.term is not None and self._known(one) is None:
                    needed.append(one)
        asked = [(one.term, self.w[one.auxiliary]) for one in needed if one.term is not None]
        made = model_pass.terms(asked)
        self._terms += made
        return made[0]

    def _outputs(self, part: CompositeFunction) -> Array:
        penalty = part.penalty.value(self.w)
        if part.term is None:
            return np.array([penalty])
        return part.term.head(self._forward(part).statistics) + penalty

    @cached_property
    def objective(self) -> float:
        """f(w)."""
        return float(self._outputs(self.problem.objective)[0])

    @cached_property
    def constraints(self) -> Array:
        """g(w), shape (n_constraints,)."""
        found = [self._outputs(part) for part in self.problem.constraints]
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0)

    @property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        return float(max(self.constraints.max(initial=0.0), 0.0))

    @property
    def zero_one_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate, shape (n_constraints,)."""
        return self._of_decisions[0]

    @cached_property
    def _of_decisions(self) -> tuple[Array, Gaps]:
        """The constraints and the gaps with the indicator in place of the surrogate."""
        parts = [part.zero_one() for part in self.problem.constraints]
        at = self.problem.with_constraints(parts).at(self.w, like=self)
        found = at.constraints, at.gaps
        new = at._terms[len(self._terms) :]
        self._terms += [one for one in new if one.model_pass.at_once]  # others cost memory
        return found

    @property
    def zero_one_violation(self) -> float:
        """max(0, max_j g_j(w)) with the indicator, 0 if it is within rounding of 0."""
        return float(without_rounding(max(self.zero_one_constraints.max(initial=0.0), 0.0)))

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
        """The gaps on scores and their bounds, by part; excess by rounding only is left out."""
        found = []
        for part in self.problem.constraints:
            gaps = bounds = np.zeros(0)
            if part.term is not None and part.model is not None:
                bounds = part.term.gap_bounds
                gaps = within_rounding(part.term.gap_of(self.statistics_of(part)), bounds)
            found.append((gaps, bounds))
        return found

    def subgradient_error(self, multipliers: Array) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        errors = [np.zeros(0)]
        for part in self.problem.parts:
            error = np.full(part.n_outputs, part.penalty.subgradient_error(self.w))
            if part.term is not None and part.model is not None:
                known = self._model_pass(part.model)
                error += known.subgradient_error(part.term, self.w[part.auxiliary])
            errors.append(error)
        return float(np.append(1.0, multipliers) @ np.concatenate(errors))

    def root_mean_square_change(self, v: Array) -> float:
        """Return how much `v` changes the scores: the root mean square of the model most changed.

        Parameters
        ----------
        v : ndarray of shape (n_variables,)
            The change of the variables.
        """
        changes = [1.0] if not self.problem.models else []
        for model in self.problem.models:
            known = self._model_pass(model)
            self.problem.counter.rows += model.n_rows
            changes.append(known.root_mean_square_change(v[: model.n_parameters]))
        return max(changes)

    def gradient(self, multipliers: Array | None = None, *, objective: float = 1.0) -> Array:
        r"""Return the gradient of :math:`f + \sum_j \lambda_j g_j`: one backward pass per model.

        If it is a combination of the last gradients at this point, no backward pass is made.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,) or None, default=None
            lambda; None for the objective alone.
        objective : float, default=1.0
            The weight of f; 0 for the constraints alone.
        """
        weights = np.zeros(1 if multipliers is None else 1 + len(multipliers))
        weights[0], weights[1:] = objective, 0.0 if multipliers is None else multipliers
        found = self._gradients.find(weights)
        if found is None:
            found = self._backward(weights)
            self._gradients.add(weights, found.copy())
        return found

    def hessian(self, multipliers: Array) -> Array:
        r"""Return the Hessian of :math:`f + \sum_j \lambda_j g_j`; it counts as a data pass.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,)
            lambda. The problem is :attr:`Problem.twice_differentiable`.
        """
        problem, weights = self.problem, np.append(1.0, multipliers)
        (model,) = problem.models
        diagonal, weighted = np.zeros(problem.n_variables), []
        for part, _, outputs in problem.places:
            weight = weights[outputs]
            if not np.count_nonzero(weight):
                continue
            if type(part.penalty) is not Zero:
                own = part.penalty.second_derivatives(problem.n_variables)
                diagonal += np.add.reduce(weight) * own
            assert part.term is not None
            known = self._forward(part)
            weighted.append((known, part.term.head_vjp(known.statistics, weight)))
        problem.counter.rows += model.n_rows
        total = self._model_pass(model).hessian(weighted)
        total.flat[:: len(total) + 1] += diagonal
        return total

    def constraint_gradients(self, which: Array) -> Array:
        """Return the gradients of some constraints, shape (len(which), n_variables).

        Each costs a backward pass, or each statistic that they depend on if these are fewer. Of
        rows in shards, all of them are one round.

        Parameters
        ----------
        which : ndarray of int
            Positions of constraints.
        """
        found = np.zeros((len(which), self.problem.n_variables))
        asked: list[list[_Rows]] = [[] for _ in self.problem.models]
        for part, index, outputs in self.problem.places[1:]:
            own = slice(outputs.start - 1, outputs.stop - 1)
            places = np.flatnonzero((which >= own.start) & (which < own.stop))
            if not len(places):
                continue
            found[places] = part.penalty.gradient(self.w)
            if part.term is not None:
                table, spread = self._weights_of_outputs(part, which[places] - own.start)
                asked[index].append(_Rows(part, places, table, spread))
        for model, requests in zip(self.problem.models, asked, strict=True):
            if not requests:
                continue
            weighted = [(self._forward(one.part), one.table) for one in requests]
            rows = self._model_pass(model).jacobian_rows(weighted)
            for one, (gradients, own_variables) in zip(requests, rows, strict=True):
                whole = np.zeros((len(one.table), self.problem.n_variables))
                whole[:, : gradients.shape[1]] = gradients
                whole[:, one.part.auxiliary] += own_variables
                found[one.places] += whole if one.spread is None else one.spread @ whole
        return found

    def _weights_of_outputs(
        self, part: CompositeFunction, outputs: Array
    ) -> tuple[Array, Array | None]:
        """Return the weights of the statistics of a part's term that some outputs need.

        Returns
        -------
        table : ndarray of shape (m, n_statistics)
            Of each output; or of each statistic that outputs depend on, if these are fewer.
        spread : ndarray of shape (n_outputs, m) or None
            The gradients of the outputs in these of statistics; None if they are the same.
        """
        assert part.term is not None
        known, unit, weights = self._forward(part), np.zeros(part.n_outputs), []
        for output in outputs:
            unit[output] = 1.0
            weights.append(part.term.head_vjp(known.statistics, unit))
            unit[output] = 0.0
        table = np.array(weights)
        used = np.flatnonzero(table.any(axis=0))
        if len(used) >= len(outputs):
            return table, None
        return np.eye(table.shape[1])[used], table[:, used]

    def _backward(self, weights: Array) -> Array:
        """Return the gradient of the functions' weighted sum; the last ones may be left out."""
        total = np.zeros(self.problem.n_variables)
        weighted: list[list[tuple[TermPass, Array]]] = [[] for _ in self.problem.models]
        owners: list[list[slice]] = [[] for _ in self.problem.models]
        for part, index, outputs in self.problem.places:
            weight = weights[outputs]
            if not np.count_nonzero(weight):  # takes a fraction of the time of any()
                continue
            if type(part.penalty) is not Zero:
                total += np.add.reduce(weight) * part.penalty.gradient(self.w)
            if part.term is not None:
                known = self._forward(part)
                weighted[index].append((known, part.term.head_vjp(known.statistics, weight)))
                owners[index].append(part.auxiliary)
        for model, terms, slices in zip(self.problem.models, weighted, owners, strict=True):
            if terms:
                gradient, own = self._model_pass(model).gradient(terms)
                total[: model.n_parameters] += gradient
                for where, change in zip(slices, own, strict=True):
                    total[where] += change
        return total


def _largest(gaps: Gaps) -> float:
    """Return the largest gap of all parts; nan if there is none."""
    every = np.concatenate([np.zeros(0), *(one for one, _ in gaps)])
    return float(every.max(initial=0.0)) if every.size else float("nan")
