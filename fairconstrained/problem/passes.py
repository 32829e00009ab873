"""Forward passes: what an evaluation reads of a model's rows, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from fairconstrained.models.base import Model, Scores
from fairconstrained.shards import scores as sharded_scores
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.terms.base import CurvedPullback, FactoredPullback, Pullback, Term
from fairconstrained.utils.quantiles import score_below_share
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

TermAt = tuple[Term, Array]  # a term, and the values of its own variables
Jacobian = tuple[Array, Array]  # rows in the parameters of a model, and in a term's own variables

_LARGEST_JACOBIAN = 1 << 21  # entries of a Jacobian of all statistics, 16 MB
_FEW_STATISTICS = 8  # whose gradients cost one product with X; a solver asks for most of them
_MOST_KEPT = 3  # gradients


@dataclass(eq=False)  # not frozen: that would double the time of making one
class TermPass:
    """A term's statistics in a pass over the rows of a model, and what its gradient needs."""

    model: Model
    term: Term
    auxiliary: Array
    statistics: Array
    pullback: Pullback | None = None
    slopes: Jacobian | None = None

    def is_of(self, model: Model, term: Term, auxiliary: Array) -> bool:
        """Return whether it is this term's, with the same variables."""
        same = self.model is model and self.term is term
        return same and (not auxiliary.size or same_values(self.auxiliary, auxiliary))


Weighted = Sequence[tuple[TermPass, Array]]  # terms of one pass with weights of their statistics


class ModelPass:
    """A pass over the rows of a model at some parameters; the rows are in memory.

    It keeps the last gradients: those of the objective and of a Lagrangian are asked for more than
    once, the latter by a subproblem and then by the problem.

    Parameters
    ----------
    model : Model
        The model.
    w : ndarray of shape (n_parameters,)
        Its parameters.

    Attributes
    ----------
    at_once : bool
        Whether terms are cheaper together: all are computed when one of them is needed.
    """

    at_once = False

    def __init__(self, model: Model, w: Array):
        self.model, self.w = model, w
        self._scores, self._pullback = model.forward(w)
        self._last: list[tuple[list[tuple[TermPass, bytes]], tuple[Array, list[Array]]]] = []

    @property
    def scores(self) -> Scores:
        """The scores of the rows."""
        return self._scores

    def terms(self, asked: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms of the scores, with the values of their variables."""
        return [
            TermPass(self.model, term, auxiliary, *term.forward(self.scores, auxiliary))
            for term, auxiliary in asked
        ]

    def gradient(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradient of a weighted sum of statistics: one backward pass.

        Returns
        -------
        gradient : ndarray of shape (n_parameters,)
            In the parameters of the model.
        own : list of ndarray of shape (n_auxiliary,)
            In the variables of each term.
        """
        if all(of.slopes is not None for of, _ in weighted):
            return self._gradient(weighted)
        asked = [(of, weights.tobytes()) for of, weights in weighted]
        for before, gradient in self._last:
            if len(before) == len(asked) and all(
                one is other and bits == others
                for (one, bits), (other, others) in zip(before, asked, strict=True)
            ):
                return gradient
        gradient = self._gradient(weighted)
        self._last = [(asked, gradient), *self._last[: _MOST_KEPT - 1]]
        return gradient

    def _gradient(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        on_scores: Array | None = None
        owns, total = [], np.zeros(self.model.n_parameters)
        for of, weights in weighted:
            if of.slopes is not None:
                total += weights @ of.slopes[0]
                owns.append(weights @ of.slopes[1])
                continue
            assert of.pullback is not None
            back, own = of.pullback(weights)
            on_scores = back if on_scores is None else on_scores + back
            owns.append(own)
        return total if on_scores is None else total + self._pullback(on_scores), owns

    def find_slopes(self, of: TermPass, others: Sequence[TermPass], *, many: bool) -> None:
        """Find the gradients of all statistics of a term where they cost little.

        Those of few statistics are one product with X, together with those of others. Those of many
        are found where `many` asks for them, if they are made of few sums over rows.
        """
        terms = [of, *(one for one in others if one.slopes is None)]
        sizes = [len(one.statistics) for one in terms]
        if sum(sizes) <= _FEW_STATISTICS:
            units = zip(terms, map(np.eye, sizes), strict=True)
            backs = [cast("Pullback", one.pullback)(row) for one, eye in units for row in eye]
            # A constraint whose cells have no rows may have no statistics.
            on_scores = [back for back, _ in backs] or np.zeros((0, self.model.n_rows))
            products = self.model.rows_times(np.asarray(on_scores))
            ends = np.cumsum(sizes)
            for one, size, end in zip(terms, sizes, ends, strict=True):
                if products is not None:
                    own = [own for _, own in backs[end - size : end]]
                    shaped = np.reshape(own, (size, one.term.n_auxiliary))
                    one.slopes = products[end - size : end], shaped
        elif many and isinstance(of.pullback, FactoredPullback):
            small = sizes[0] * self.model.n_parameters <= _LARGEST_JACOBIAN
            basis = of.pullback.basis() if small else None
            several = [self.model.rows_times(part) for part in basis or ()]
            if several and all(one is not None for one in several):
                of.slopes = of.pullback.jacobian(cast("list[Array]", several))

    def jacobian_rows(self, weighted: Weighted) -> list[Jacobian]:
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
        jacobians = []
        for of, table in weighted:
            backs = [cast("Pullback", of.pullback)(weights) for weights in table]
            rows = np.array([self._pullback(back) for back, _ in backs])
            rows = rows.reshape(len(table), self.model.n_parameters)
            own = np.array([own for _, own in backs]).reshape(len(table), of.term.n_auxiliary)
            jacobians.append((rows, own))
        return jacobians

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian of a weighted sum of statistics of curved terms.

        Returns
        -------
        hessian : ndarray of shape (n_parameters, n_parameters)
            In the parameters of the model: second derivatives in the scores, then products of
            columns.
        own : list of (ndarray, ndarray)
            For each term, in its variables and the parameters, (n_auxiliary, n_parameters), and in
            each of its variables, (n_auxiliary,).
        """
        total, own = np.zeros(self.model.n_rows), []
        for of, weights in weighted:
            pullback = cast("CurvedPullback", of.pullback)
            mixed, squares = np.zeros((0, self.model.n_parameters)), np.zeros(0)
            if of.auxiliary.size:
                by_variable = pullback.by_variable(weights)
                total += by_variable.sum(axis=1)
                mixed = -np.array([self._pullback(column) for column in by_variable.T])
                squares = by_variable.sum(axis=0)
            else:
                total += pullback.second_derivatives(weights)
            own.append((mixed, squares))
        return self.model.gram(total), own

    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the weight of the rows lies."""
        return score_below_share(self.scores, weight, share)

    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return scores, the rows that have them, and their weights.

        The last two are None where the scores are those of all rows. Of rows in shards, the rows of
        the terms are atoms, see :meth:`ShardedLinearModel.distribution`.
        """
        return self.scores, None, None

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term, see :meth:`Term.subgradient_error`."""
        return term.subgradient_error(self.scores, auxiliary)

    def root_mean_square_change(self, v: Array) -> float:
        """Return the root mean square of the scores' change if the parameters change by `v`."""
        return float(np.sqrt(np.mean((self.model.forward(self.w + v)[0] - self.scores) ** 2)))


class ShardsPass(ModelPass):
    """A pass over rows in shards: sums over the rows come back, scores do not."""

    at_once = True
    model: ShardedLinearModel

    def __init__(self, model: ShardedLinearModel, w: Array):
        self.model, self.w = model, w

    @property
    def scores(self) -> Scores:
        """Raise a TypeError: scores stay with the shards."""
        return self.model.forward(self.w)[0]

    def terms(self, asked: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms, with their gradients where these are cheap: one round."""
        return [
            TermPass(self.model, term, own, sums.statistics, slopes=sums.jacobian)
            for (term, own), sums in zip(asked, self.model.statistics(self.w, asked), strict=True)
        ]

    def gradient(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradient: from what came with the statistics, and a round for other terms."""
        rows = self.jacobian_rows([(of, weights[None]) for of, weights in weighted])
        total = sum((row[0] for row, _ in rows), np.zeros(self.model.n_parameters))
        return total, [own[0] for _, own in rows]

    def find_slopes(self, of: TermPass, others: Sequence[TermPass], *, many: bool) -> None:
        """Do nothing: those that are cheap came with the statistics."""

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian: a round."""
        asked = [(of.term, of.auxiliary) for of, _ in weighted]
        hessian = self.model.hessian(self.w, asked, [weights for _, weights in weighted])
        return hessian, [(np.zeros((0, self.model.n_parameters)), np.zeros(0)) for _ in weighted]

    def jacobian_rows(self, weighted: Weighted) -> list[Jacobian]:
        """Return the gradients: from those of statistics, and a round for all other terms."""
        later = [(of, table) for of, table in weighted if of.slopes is None]
        asked = [(of.term, of.auxiliary) for of, _ in later]
        tables = [table for _, table in later]
        sums = iter(self.model.jacobian_rows(self.w, asked, tables) if later else ())
        return [
            next(sums) if of.slopes is None else (table @ of.slopes[0], table @ of.slopes[1])
            for of, table in weighted
        ]

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


def forward_pass(model: Model, w: Array) -> ModelPass:
    """Return the pass of a model at its parameters."""
    return ShardsPass(model, w) if isinstance(model, ShardedLinearModel) else ModelPass(model, w)
