"""Forward passes: what an evaluation reads of a model's rows, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from typing import cast
from weakref import ref

import numpy as np

from fairconstrained.models.base import Model, Pullback, Scores
from fairconstrained.shards import scores as sharded_scores
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.terms.base import CurvedPullback, FactoredPullback, Term
from fairconstrained.terms.base import Pullback as TermPullback
from fairconstrained.utils.quantiles import score_below_share
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

TermAt = tuple[Term, Array]  # a term, and the values of its own variables
Jacobian = tuple[Array, Array]  # rows in the parameters of a model, and in a term's own variables


@dataclass(eq=False)  # not frozen: that would double the time of making one
class TermPass:
    """A term's statistics in a pass over the rows of a model, and what its gradient needs."""

    term: Term
    auxiliary: Array
    statistics: Array
    model_pass: ModelPass
    pullback: TermPullback | None = None
    jacobian: Array | None = None
    slopes: Jacobian | None = None

    def is_of(self, model_pass: ModelPass, term: Term, auxiliary: Array) -> bool:
        """Return whether it is this term's, with the same variables."""
        same = self.model_pass is model_pass and self.term is term
        return same and (not auxiliary.size or same_values(self.auxiliary, auxiliary))


_LARGEST_JACOBIAN = 1 << 21  # entries of a Jacobian of all statistics, 16 MB
_MOST_KEPT = 3  # gradients

_Weighted = tuple["ref[TermPass]", bytes]  # a pass is not kept alive by what is known of it


def _is_for(asked: Sequence[_Weighted], weighted: Sequence[tuple[TermPass, Array]]) -> bool:
    """Return whether a gradient that was asked for is that of these terms and weights."""
    return len(asked) == len(weighted) and all(
        of() is known and bits == weights.tobytes()
        for (of, bits), (known, weights) in zip(asked, weighted, strict=True)
    )


class ModelPass(ABC):
    """A pass over the rows of a model at some parameters.

    Attributes
    ----------
    model : Model
        The model.
    """

    model: Model

    @property
    @abstractmethod
    def scores(self) -> Scores:
        """The scores of the rows."""

    @abstractmethod
    def terms(self, wanted: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms of these scores.

        Parameters
        ----------
        wanted : sequence of (Term, ndarray)
            The terms, with the values of their own variables.
        """

    @property
    @abstractmethod
    def at_once(self) -> bool:
        """Whether terms are cheaper together: all are computed when one of them is needed."""

    @abstractmethod
    def gradient(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Array]]:
        """Return the gradient of the weighted sum of statistics.

        Parameters
        ----------
        weighted : sequence of (TermPass, ndarray)
            Terms of this pass, with a weight for each of their statistics.

        Returns
        -------
        gradient : ndarray of shape (n_parameters,)
            In the parameters of the model.
        own : list of ndarray of shape (n_auxiliary,)
            In the variables of each term.
        """

    @abstractmethod
    def jacobian_rows(self, weighted: Sequence[tuple[TermPass, Array]]) -> list[Jacobian]:
        """Return the gradients of several weighted sums of the statistics of each term.

        Parameters
        ----------
        weighted : sequence of (TermPass, ndarray of shape (m, n_statistics))
            Terms of this pass, with m weights for each of their statistics; m may differ.

        Returns
        -------
        rows : list of (ndarray of shape (m, n_parameters), ndarray of shape (m, n_auxiliary))
            For each term the gradients in the parameters of the model and in its own variables.
        """

    @abstractmethod
    def slopes(self, known: TermPass) -> Jacobian | None:
        """Return the gradients of all statistics of a term, None where they cost more than a few.

        They are in the parameters of the model, (n_statistics, n_parameters), and in the variables
        of the term.
        """

    def hessian(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian of the weighted sum of statistics.

        Parameters
        ----------
        weighted : sequence of (TermPass, ndarray)
            Curved terms of this pass, with a weight for each of their statistics.

        Returns
        -------
        hessian : ndarray of shape (n_parameters, n_parameters)
            In the parameters of the model.
        own : list of (ndarray, ndarray)
            For each term, in its variables and the parameters, (n_auxiliary, n_parameters), and in
            each of its variables, (n_auxiliary,).
        """
        raise TypeError(f"the Hessian needs rows in memory; {type(self).__name__} has none.")

    @abstractmethod
    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the weight of the rows lies.

        Parameters
        ----------
        share : float
            In (0, 1).
        weight : ndarray of shape (n_rows,)
            The weights of the rows.
        """

    @abstractmethod
    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return scores, the rows that have them, and their weights.

        The last two are None where the scores are those of all rows. Of rows in shards, the rows of
        the terms are atoms, see :meth:`ShardedLinearModel.distribution`.
        """

    @abstractmethod
    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term, see :meth:`Term.subgradient_error`."""

    @abstractmethod
    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square of the scores' change if the parameters change by `v`."""


@dataclass(eq=False)
class RowsPass(ModelPass):
    """A pass over rows whose scores are all in memory.

    It keeps the last gradients: those of the objective and of a Lagrangian are asked for more than
    once, the latter by a subproblem and then by the problem.
    """

    model: Model
    w: Array
    known: tuple[Scores, Pullback] = field(repr=False)
    _last: list[tuple[list[_Weighted], tuple[Array, list[Array]]]] = field(
        default_factory=list, repr=False
    )

    at_once = False

    @property
    def scores(self) -> Scores:
        """The scores of the rows."""
        return self.known[0]

    def terms(self, wanted: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms of the scores."""
        return [
            TermPass(term, auxiliary, statistics, self, pullback)
            for term, auxiliary in wanted
            for statistics, pullback in [term.forward(self.scores, auxiliary)]
        ]

    def gradient(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Array]]:
        """Return the gradient: weights on the scores, then one backward pass."""
        for asked, gradient in self._last:
            if _is_for(asked, weighted):
                return gradient
        gradient = self._gradient(weighted)
        asked = [(ref(known), weights.tobytes()) for known, weights in weighted]
        self._last = [(asked, gradient), *self._last[: _MOST_KEPT - 1]]
        return gradient

    def _gradient(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Array]]:
        on_scores: Array | None = None
        owns, total = [], np.zeros(self.model.n_parameters)
        for known, weights in weighted:
            if known.slopes is not None:
                total += weights @ known.slopes[0]
                owns.append(weights @ known.slopes[1])
                continue
            assert known.pullback is not None
            back, own = known.pullback(weights)
            on_scores = back if on_scores is None else on_scores + back
            owns.append(own)
        return total if on_scores is None else total + self.known[1](on_scores), owns

    def slopes(self, known: TermPass) -> Jacobian | None:
        """Return the gradients of statistics of few sums over rows, by one product with X."""
        pullback, model = known.pullback, self.model
        small = len(known.statistics) * model.n_parameters <= _LARGEST_JACOBIAN
        if known.slopes is not None or not small or not isinstance(pullback, FactoredPullback):
            return known.slopes
        basis = pullback.basis()
        if basis is not None:
            products = [model.rows_times(part) for part in basis]
            if all(part is not None for part in products):
                known.slopes = pullback.jacobian(cast("list[Array]", products))
        return known.slopes

    def jacobian_rows(self, weighted: Sequence[tuple[TermPass, Array]]) -> list[Jacobian]:
        """Return the gradients: weights on the scores, then backward."""
        jacobians = []
        for known, table in weighted:
            assert known.pullback is not None
            rows, own = np.zeros((len(table), self.model.n_parameters)), []
            for k, weights in enumerate(table):
                on_scores, on_auxiliary = known.pullback(weights)
                rows[k] = self.known[1](on_scores)
                own.append(on_auxiliary)
            jacobians.append((rows, np.array(own or np.zeros((0, known.term.n_auxiliary)))))
        return jacobians

    def hessian(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian: second derivatives in the scores, then products of columns."""
        total, own = np.zeros(self.model.n_rows), []
        for known, weights in weighted:
            pullback = cast("CurvedPullback", known.pullback)
            if known.auxiliary.size:
                by_variable = pullback.by_variable(weights)
                total += by_variable.sum(axis=1)
                mixed = -np.array([self.known[1](column) for column in by_variable.T])
                own.append((mixed, by_variable.sum(axis=0)))
            else:
                total += pullback.second_derivatives(weights)
                own.append((np.zeros((0, self.model.n_parameters)), np.zeros(0)))
        return self.model.gram(total), own

    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the weight of the rows lies."""
        return score_below_share(self.scores, weight, share)

    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return the scores of all rows."""
        return self.scores, None, None

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term."""
        return term.subgradient_error(self.scores, auxiliary)

    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square of the scores' change: one forward pass."""
        return float(np.sqrt(np.mean((self.model.forward(self.w + v)[0] - self.scores) ** 2)))


@dataclass(frozen=True, eq=False)
class ShardsPass(ModelPass):
    """A pass over rows in shards: sums over the rows come back, scores do not."""

    model: ShardedLinearModel
    w: Array

    at_once = True

    @cached_property
    def scores(self) -> Scores:
        """Raise a TypeError: scores stay with the shards."""
        return self.model.forward(self.w)[0]

    def terms(self, wanted: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms, with their Jacobian where it is cheap: one round."""
        found = self.model.statistics(self.w, wanted)
        return [
            TermPass(term, auxiliary, known.statistics, self, jacobian=known.jacobian)
            for (term, auxiliary), known in zip(wanted, found, strict=True)
        ]

    def gradient(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Array]]:
        """Return the gradient: from Jacobians that are known, and a round for the other terms."""
        rows = self.jacobian_rows([(known, weights[None]) for known, weights in weighted])
        total = sum((row[0] for row, _ in rows), np.zeros(self.model.n_parameters))
        return total, [own[0] for _, own in rows]

    def slopes(self, known: TermPass) -> Jacobian | None:
        """Return the Jacobian that came with the statistics."""
        if known.slopes is None and known.jacobian is not None:
            rows = np.array([self.model.gradient(row) for row in known.jacobian])
            known.slopes = rows, np.zeros((len(rows), 0))
        return known.slopes

    def hessian(self, weighted: Sequence[tuple[TermPass, Array]]) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian: a round."""
        asked = [(known.term, known.auxiliary) for known, _ in weighted]
        found = self.model.hessian(self.w, asked, [weights for _, weights in weighted])
        none = np.zeros((0, self.model.n_parameters)), np.zeros(0)
        return found, [none for _ in weighted]

    def jacobian_rows(self, weighted: Sequence[tuple[TermPass, Array]]) -> list[Jacobian]:
        """Return the gradients: from Jacobians that are known, and a round for all other terms."""
        later = [(known, table) for known, table in weighted if known.jacobian is None]
        sums = iter(
            self.model.jacobian_rows(
                self.w,
                [(known.term, known.auxiliary) for known, _ in later],
                [table for _, table in later],
            )
            if later
            else ()
        )
        found = []
        for known, table in weighted:
            if known.jacobian is None:
                found.append(next(sums))
            else:
                rows = np.array([self.model.gradient(row) for row in table @ known.jacobian])
                found.append((rows, np.zeros((len(table), known.term.n_auxiliary))))
        return found

    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the rows' own weight lies: a few rounds."""
        return sharded_scores.score_below_share(self.model, self.w, share)

    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return the scores, or the bins of a histogram, of the atoms: a round or two."""
        return self.model.distribution(self.w)

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term: one round for rounded terms."""
        return self.model.subgradient_error(self.w, term, auxiliary)

    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square of the scores' change: one round."""
        return self.model.root_mean_square(v)


@singledispatch
def forward_pass(model: Model, w: Array) -> ModelPass:
    """Return the pass of a model at its parameters."""
    return RowsPass(model, w, model.forward(w))


@forward_pass.register
def _(model: ShardedLinearModel, w: Array) -> ModelPass:
    return ShardsPass(model, w)
