"""Evaluation: a problem at a point, with its values and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.models.base import Scores
from fairconstrained.penalties import Zero
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.forward import ForwardPasses
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.problem.passes import ModelPass, TermPass
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.rounding import within_rounding, without_rounding
from fairconstrained.utils.typing import Array, Gaps, Matrix

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem

_MOST_ACTIVE = 300  # constraints whose gradients are wanted: each may cost a backward pass
_FIRST = np.zeros(1, dtype=int)  # the output of an objective
_FEW_ROWS = 4  # gradients of constraints that cost no more than those of all statistics


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
        shared: ForwardPasses | None = None if like is None else like.passes
        self.passes: ForwardPasses = ForwardPasses(problem, w, like=shared)
        self._gradients: list[tuple[Multipliers | None, float, Array]] = []

    def with_zero_one(self) -> Evaluation:
        """Return this evaluation, which is to compute zero-one versions where it reads the rows.

        That costs rows in shards little. Without it, zero-one versions take a read of their own.
        """
        self.passes.with_zero_one = True
        return self

    def uncounted(self) -> Evaluation:
        """Return an evaluation of the same for measurements, which count no data passes."""
        if len(self.passes.models) == len(self.problem.models):
            return self
        return self.problem.uncounted().at(self.w, like=self)

    def scores_of(self, part: CompositeFunction) -> Scores | None:
        """Return the scores of a part's rows, None for a part without a model."""
        return None if part.model is None else self.passes.model(part.model).scores

    def score_below_share(self, part: CompositeFunction, share: float, weight: Array) -> float:
        """Return the score of a part's rows above which a share of their weight lies."""
        assert part.model is not None
        return self.passes.model(part.model).score_below_share(share, weight)

    def distribution(self, part: CompositeFunction) -> tuple[Scores, Array | None, Array | None]:
        """Return scores of a part with a model, see :meth:`ModelPass.distribution`."""
        assert part.model is not None
        return self.passes.model(part.model).distribution()

    def statistics_of(self, part: CompositeFunction) -> Array:
        """Return the statistics of the term of a part."""
        return self.passes.term(part).statistics

    def _outputs(self, part: CompositeFunction) -> Array:
        added = part.added(self.w)
        if part.term is None:
            return np.atleast_1d(added)
        return part.term.head(self.passes.term(part).statistics) + added

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

    @cached_property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        parts = self.problem.constraints
        return max(max((self._greatest_of(part) for part in parts), default=0.0), 0.0)

    def _greatest_of(self, part: CompositeFunction) -> float:
        """Return the largest output of a part, nan where one is."""
        added = part.added(self.w)
        if part.term is None or np.ndim(added):
            return float(self._outputs(part).max(initial=-np.inf))
        return part.term.greatest(self.passes.term(part).statistics) + float(added)

    def values(self, which: Array) -> Array:
        """Return the values of some constraints, by their positions."""
        values = np.zeros(len(which))
        for part, places, outputs in self._by_part(which):
            values[places] = part.added(self.w, outputs)
            if part.term is not None:
                values[places] += part.term.values_of(self.passes.term(part).statistics, outputs)
        return values

    def _by_part(self, which: Array) -> Iterator[tuple[CompositeFunction, Array, Array]]:
        """Yield parts, where constraints of theirs are in an array, and their outputs."""
        for part, _, outputs in self.problem.places[1:]:
            first = outputs.start - 1
            places = np.flatnonzero((which >= first) & (which < outputs.stop - 1))
            if len(places):
                yield part, places, which[places] - first

    def largest(self, least: float, most: int = _MOST_ACTIVE) -> Array:
        """Return where the largest constraints of at least `least` are, in falling order."""
        positions = [np.zeros(0, int)]
        for part, _, outputs in self.problem.places[1:]:
            statistics = None if part.term is None else self.passes.term(part).statistics
            largest = part.largest(statistics, part.added(self.w), least, most)
            positions.append(largest + outputs.start - 1)
        which = np.concatenate(positions)
        return which[np.argsort(-self.values(which), kind="stable")[:most]]

    def largest_after(
        self, s: Array, least: float, most: int, after: tuple[Evaluation, Array] | None = None
    ) -> Array:
        """Return the positions of constraints whose linearisation is largest after a step.

        Of parts whose statistics have gradients that cost little, and of pairs those that do not
        share groups: at least `least`, at most `most` of each part, to enter a working set. Values
        are taken from `after`, an evaluation at another step, and this step.
        """
        positions = [np.zeros(0, int)]
        there, step = (self, s) if after is None else (after[0], s - after[1])
        for part, _, outputs in self.problem.places[1:]:
            if part.term is None or part.model is None:
                continue
            slopes = self.passes.model(part.model).slopes(self.passes.term(part))
            if slopes is not None:
                on_model, on_own = slopes
                statistics = there.statistics_of(part) + on_model @ step[: on_model.shape[1]]
                statistics += on_own @ step[part.auxiliary]
                added, rows = part.added(there.w), part.added_slopes(self.w, slice(None))
                added = added if rows is None else added + rows @ step
                largest = part.largest(statistics, added, least, most, distinct=True)
                positions.append(largest + outputs.start - 1)
        return np.concatenate(positions)

    @property
    def zero_one_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate, shape (n_constraints,)."""
        return self._decided().constraints

    def _decided(self) -> Evaluation:
        """Return the evaluation with the indicator in place of the surrogate."""
        parts = [part.zero_one() for part in self.problem.constraints]
        return self.problem.with_constraints(parts).at(self.w, like=self)

    @cached_property
    def _of_decisions(self) -> tuple[float, Gaps]:
        """The violation and the gaps with the indicator in place of the surrogate."""
        at = self._decided()
        found = at.violation, at.gaps
        new = at.passes.terms[len(self.passes.terms) :]
        self.passes.terms += [one for one in new if one.model_pass.at_once]  # others cost memory
        return found

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
        for part in self.problem.constraints:
            gaps = bounds = np.zeros(0)
            if part.term is not None and part.model is not None:
                term, statistics = part.term, self.statistics_of(part)
                gaps, bounds = term.largest_gaps(statistics)
                if np.ndim(part.level):
                    gaps, bounds = term.gap_of(statistics), term.gap_bounds
                bounds = part.gap_bounds(bounds)
                gaps = within_rounding(gaps, bounds)
            found.append((gaps, bounds))
        return found

    def subgradient_error(self, multipliers: Array | Multipliers) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        errors = []
        for part in self.problem.parts:
            error = np.full(part.n_outputs, part.penalty.subgradient_error(self.w))
            if part.term is not None and part.model is not None:
                known = self.passes.model(part.model)
                error += known.subgradient_error(part.term, self.w[part.auxiliary])
            errors.append(error)
        objective, *constraints = errors
        active = Multipliers.of(multipliers)
        every = np.concatenate([np.zeros(0), *constraints])
        return float(objective[0] + active.values @ every[active.which])

    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square by which `v` changes the scores of the model most changed."""
        changes = [1.0] if not self.problem.models else []
        for model in self.problem.models:
            known = self.passes.model(model)
            self.problem.counter.rows += model.n_rows
            changes.append(known.root_mean_square_change(v[: model.n_parameters]))
        return max(changes)

    def _weighted(
        self, multipliers: Array | Multipliers | None, objective: float = 1.0
    ) -> Iterator[tuple[CompositeFunction, int, Multipliers, Array | None]]:
        """Yield the parts of a Lagrangian, their models, and the weights of their functions.

        The latter are those of the outputs and those of the term's statistics.
        """
        if objective:
            part, index, _ = self.problem.places[0]
            weights, weight = None, np.array([objective])
            if part.term is not None:
                weights = part.term.head_vjp(self.passes.term(part).statistics, weight)
            yield part, index, Multipliers(_FIRST, weight, 1), weights
        if multipliers is None:
            return
        known = Multipliers.of(multipliers)
        for part, index, outputs in self.problem.places[1:]:
            own = known.part(outputs.start - 1, outputs.stop - 1)
            if not len(own.which):
                continue
            weights = None
            if part.term is not None:
                statistics = self.passes.term(part).statistics
                weights = part.term.vjp_of(statistics, own.which, own.values)
            yield part, index, own, weights

    def gradient(
        self, multipliers: Array | Multipliers | None = None, *, objective: float = 1.0
    ) -> Array:
        r"""Return the gradient of :math:`f + \sum_j \lambda_j g_j`: one backward pass per model.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,), Multipliers or None, default=None
            lambda; None for the objective alone.
        objective : float, default=1.0
            The weight of f; 0 for the constraints alone.
        """
        for known, weight, gradient in self._gradients:
            if known is multipliers and weight == objective:
                return gradient.copy()
        gradient = self._gradient(multipliers, objective)
        if multipliers is None or isinstance(multipliers, Multipliers):  # arrays may be changed
            kept = multipliers, objective, gradient.copy()
            self._gradients = [kept, *self._gradients[:1]]
        return gradient

    def _gradient(self, multipliers: Array | Multipliers | None, objective: float) -> Array:
        total = np.zeros(self.problem.n_variables)
        weighted: list[list[tuple[TermPass, Array]]] = [[] for _ in self.problem.models]
        owners: list[list[slice]] = [[] for _ in self.problem.models]
        for part, index, weight, on_statistics in self._weighted(multipliers, objective):
            slopes = part.added_slopes(self.w, weight.which)
            if slopes is not None:
                total += weight.total * slopes if slopes.ndim == 1 else weight.values @ slopes
            if on_statistics is not None:
                weighted[index].append((self.passes.term(part), on_statistics))
                owners[index].append(part.auxiliary)
        for model, terms, slices in zip(self.problem.models, weighted, owners, strict=True):
            if terms:
                gradient, own = self.passes.model(model).gradient(terms)
                total[: model.n_parameters] += gradient
                for where, change in zip(slices, own, strict=True):
                    total[where] += change
        return total

    def hessian(self, multipliers: Array | Multipliers) -> Array:
        r"""Return the Hessian of :math:`f + \sum_j \lambda_j g_j`; it counts as a data pass.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,) or Multipliers
            lambda. The problem is :attr:`Problem.twice_differentiable`.
        """
        problem = self.problem
        (model,) = problem.models
        diagonal, weighted, owned = np.zeros(problem.n_variables), [], []
        for part, _, weight, on_statistics in self._weighted(multipliers):
            if type(part.penalty) is not Zero:
                diagonal += weight.total * part.penalty.second_derivatives(problem.n_variables)
            assert on_statistics is not None
            weighted.append((self.passes.term(part), on_statistics))
            owned.append(part.auxiliary)
        problem.counter.rows += model.n_rows
        n, total = model.n_parameters, np.zeros((problem.n_variables, problem.n_variables))
        total[:n, :n], own = self.passes.model(model).hessian(weighted)
        for where, (mixed, squares) in zip(owned, own, strict=True):
            total[where, :n], total[:n, where] = mixed, mixed.T
            total[where, where] = np.diag(squares)
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
        asked: dict[ModelPass, list[tuple[TermPass, Array]]] = {}
        spreads: dict[ModelPass, list[tuple[Array, Matrix, slice]]] = {}
        for part, places, outputs in self._by_part(which):
            slopes = part.added_slopes(self.w, outputs)
            if slopes is not None:
                found[places] = slopes
            if part.term is None or part.model is None:
                continue
            known, model_pass = self.passes.term(part), self.passes.model(part.model)
            weights = part.term.rows_of(known.statistics, outputs)
            jacobian = model_pass.slopes(known) if len(outputs) > _FEW_ROWS else known.slopes
            if jacobian is not None:
                on_model, on_own = jacobian
                found[places, : on_model.shape[1]] += weights @ on_model
                found[places, part.auxiliary] += weights @ on_own
                continue
            table, spread = _of_statistics(weights)
            asked.setdefault(model_pass, []).append((known, table))
            spreads.setdefault(model_pass, []).append((places, spread, part.auxiliary))
        for model_pass, weighted in asked.items():
            rows = zip(spreads[model_pass], model_pass.jacobian_rows(weighted), strict=True)
            for (places, spread, auxiliary), (gradients, own) in rows:
                found[places, : gradients.shape[1]] += spread @ gradients
                found[places, auxiliary] += spread @ own
        return found


def _of_statistics(weights: Matrix) -> tuple[Array, Matrix]:
    """Return the weights of some sums of statistics, and those of the sums in outputs.

    The sums are the outputs, or the statistics that they depend on where these are fewer.
    """
    table = weights if isinstance(weights, np.ndarray) else as_csr(weights).toarray()
    used = np.flatnonzero(table.any(axis=0))
    if len(used) >= len(table):
        return table, np.eye(len(table))
    return np.eye(table.shape[1])[used], table[:, used]


def _largest(gaps: Gaps) -> float:
    """Return the largest gap of all parts; nan if there is none."""
    every = np.concatenate([np.zeros(0), *(one for one, _ in gaps)])
    return float(every.max(initial=0.0)) if every.size else float("nan")
