"""Evaluation: a problem at a point, with its values and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.penalties import Zero
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.problem.passes import Jacobian, TermPass
from fairconstrained.problem.values import Values
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.typing import Array, Matrix

if TYPE_CHECKING:
    from fairconstrained.problem.kkt import KKT

_FIRST = np.zeros(1, dtype=int)  # the output of an objective
_FEW_ROWS = 4  # gradients of constraints that cost no more than those of all statistics


class Evaluation(Values):
    """A problem at a point: one forward pass per model, made when first needed and kept.

    It owns everything that has the length of the rows: scores and forward passes. They are freed
    with it. Evaluations that are made from it (see :meth:`Problem.at`) share them.

    Attributes
    ----------
    certified : tuple of (Multipliers, KKT) or None
        The last optimality conditions: a solver asks for those that the loop asks for again.
    """

    certified: tuple[Multipliers, KKT] | None = None

    def uncounted(self) -> Evaluation:
        """Return an evaluation of the same for measurements, which count no data passes."""
        if len(self._models) == len(self.problem.models):
            return self
        return self.problem.uncounted().at(self.w, like=self)

    def subgradient_error(self, multipliers: Array | Multipliers) -> float:
        r"""Return the :math:`\epsilon` for which `gradient` is an :math:`\epsilon`-subgradient.

        It is 0 but for problems that :meth:`Problem.smoothed` made: there the gradient is one of
        the problem that was rounded, to within this.
        """
        errors = []
        for part in self.problem.parts:
            error = np.full(part.n_outputs, part.penalty.subgradient_error(self.w))
            if part.term is not None:
                of_model, own = self.model_pass(part.model), self.w[part.auxiliary]
                error += of_model.subgradient_error(part.term, own)
            errors.append(error)
        objective, *constraints = errors
        active = Multipliers.of(multipliers)
        every = np.concatenate([np.zeros(0), *constraints])
        return float(objective[0] + active.values @ every[active.which])

    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square by which `v` changes the scores of the model most changed."""
        changes = [1.0] if not self.problem.models else []
        for model in self.problem.models:
            of_model = self.model_pass(model)
            self.problem.counter.rows += model.n_rows
            changes.append(of_model.root_mean_square_change(v[: model.n_parameters]))
        return max(changes)

    def _weighted(
        self, multipliers: Array | Multipliers | None, objective: float
    ) -> Iterator[tuple[CompositeFunction, Multipliers, TermPass | None, Array]]:
        """Yield the parts of a Lagrangian and the weights of their functions.

        They come with the pass of the term, if there is one, and the weights of its statistics.
        """
        if objective:
            weights, of = (
                np.array([objective]),
                None if self.problem.objective.term is None else self._term(0),
            )
            on_statistics = weights if of is None else of.term.head_vjp(of.statistics, weights)
            yield self.problem.objective, Multipliers(_FIRST, weights, 1), of, on_statistics
        if multipliers is None:
            return
        every = Multipliers.of(multipliers)
        for k, part in enumerate(self.problem.constraints, 1):
            active = every.part(self.problem.places[k])
            if len(active.which):
                of = None if part.term is None else self._term(k)
                on_statistics = active.values
                if of is not None:
                    on_statistics = of.term.vjp_of(of.statistics, active.which, active.values)
                yield part, active, of, on_statistics

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
        for before, weight, gradient in self._gradients:
            if before is multipliers and weight == objective:
                return gradient.copy()
        gradient = self._gradient(multipliers, objective)
        if multipliers is None or isinstance(multipliers, Multipliers):  # arrays may be changed
            kept = multipliers, objective, gradient.copy()
            self._gradients = [kept, *self._gradients[:1]]
        return gradient

    @cached_property
    def _gradients(self) -> list[tuple[Multipliers | None, float, Array]]:
        return []

    def _gradient(self, multipliers: Array | Multipliers | None, objective: float) -> Array:
        total = np.zeros(self.problem.n_variables)
        asked: list[tuple[slice, TermPass, Array]] = []
        for part, weights, of, on_statistics in self._weighted(multipliers, objective):
            slopes = part.added_slopes(self.w, weights.which)
            if slopes is not None:
                total += weights.total * slopes if slopes.ndim == 1 else weights.values @ slopes
            if of is not None:
                asked.append((part.auxiliary, of, on_statistics))
        for model in self.problem.models:
            own = [one for one in asked if one[1].model is model]
            if own:
                gradient, on_auxiliary = self.model_pass(model).gradient([one[1:] for one in own])
                total[: model.n_parameters] += gradient
                for (where, *_), change in zip(own, on_auxiliary, strict=True):
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
        for part, weights, of, on_statistics in self._weighted(multipliers, 1.0):
            if type(part.penalty) is not Zero:
                diagonal += weights.total * part.penalty.second_derivatives(problem.n_variables)
            assert of is not None
            weighted.append((of, on_statistics))
            owned.append(part.auxiliary)
        problem.counter.rows += model.n_rows
        n, total = model.n_parameters, np.zeros((problem.n_variables, problem.n_variables))
        total[:n, :n], own = self.model_pass(model).hessian(weighted)
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
        rows = np.zeros((len(which), self.problem.n_variables))
        later: list[tuple[TermPass, Array, Matrix, Array, slice]] = []
        for k, places, outputs in self._by_part(which):
            part = self.problem.parts[k]
            slopes = part.added_slopes(self.w, outputs)
            if slopes is not None:
                rows[places] = slopes
            if part.term is None:
                continue
            of = self._term(k)
            weights = part.term.rows_of(of.statistics, outputs)
            jacobian = self._slopes(k, len(outputs))
            if jacobian is None:
                later.append((of, *_of_statistics(weights), places, part.auxiliary))
                continue
            on_model, on_own = jacobian
            rows[places, : on_model.shape[1]] += weights @ on_model
            rows[places, part.auxiliary] += weights @ on_own
        for model in self.problem.models:
            own = [one for one in later if one[0].model is model]
            made = self.model_pass(model).jacobian_rows([one[:2] for one in own]) if own else []
            for (_, _, spread, places, where), (gradients, on_own) in zip(own, made, strict=True):
                rows[places, : gradients.shape[1]] += spread @ gradients
                rows[places, where] += spread @ on_own
        return rows

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
        for k, part in enumerate(self.problem.constraints, 1):
            slopes = None if part.term is None else self._slopes(k, part.n_outputs)
            if slopes is not None:
                on_model, on_own = slopes
                statistics = there._term(k).statistics + on_model @ step[: on_model.shape[1]]
                statistics += on_own @ step[part.auxiliary]
                added, rows = part.added(there.w), part.added_slopes(self.w, slice(None))
                added = added if rows is None else added + rows @ step
                largest = part.largest(statistics, added, least, most, distinct=True)
                positions.append(largest + self.problem.places[k].start)
        return np.concatenate(positions)

    def _slopes(self, k: int, n_asked: int) -> Jacobian | None:
        """Return the gradients of all statistics of a part where they cost little.

        Those of the objective, which are then wanted as well, come with those of few statistics.
        """
        of = self._term(k)
        if of.slopes is None:
            with_objective = of.model is self.problem.objective.model
            others = [self._term(0)] if with_objective else []
            self.model_pass(of.model).find_slopes(of, others, many=n_asked > _FEW_ROWS)
        return of.slopes


def _of_statistics(weights: Matrix) -> tuple[Array, Matrix]:
    """Return the weights of some sums of statistics, and those of the sums in outputs.

    The sums are the outputs, or the statistics that they depend on where these are fewer.
    """
    table = weights if isinstance(weights, np.ndarray) else as_csr(weights).toarray()
    used = np.flatnonzero(table.any(axis=0))
    if len(used) >= len(table):
        return table, np.eye(len(table))
    return np.eye(table.shape[1])[used], table[:, used]
