"""Forward passes: what an evaluation reads of a model's rows, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from fairconstrained.models.base import Model, Scores
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores, of_distribution
from fairconstrained.shards.sums import (
    hessian,
    in_one_round,
    jacobian_rows,
    statistics,
    subgradient_error,
)
from fairconstrained.terms.base import CurvedPullback, FactoredPullback, Pullback, Term
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.numerics import score_below_share
from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

TermAt = tuple[Term, Array]  # a term, and the values of its own variables
Jacobian = tuple[Array, Array]  # rows in the parameters of a model, and in a term's own variables

_LARGEST_JACOBIAN = 1 << 21  # entries of a Jacobian of all statistics, 16 MB
_FEW_STATISTICS = 8  # whose gradients cost one product with X; a solver asks for most of them
_FEW_ROWS = 4  # gradients of constraints that cost no more than those of all statistics
_MOST_KEPT = 3  # gradients


@dataclass(eq=False)  # not frozen: that would double the time of making one
class TermPass:
    """A term's statistics in a pass over the rows of a model, and what its gradient needs."""

    term: Term
    auxiliary: Array
    statistics: Array
    pullback: Pullback | None = None
    slopes: Jacobian | None = None


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
    """

    def __init__(self, model: Model, w: Array):
        self.model, self.w = model, w
        self._terms: dict[Term, TermPass] = {}
        self._gradients: dict[tuple[tuple[TermPass, bytes], ...], tuple[Array, list[Array]]] = {}
        self._read()

    def _read(self) -> None:
        self._scores, self._pullback = self.model.forward(self.w)

    @property
    def scores(self) -> Scores:
        """The scores of the rows."""
        return self._scores

    def term(
        self, term: Term, auxiliary: Array, beside: Callable[[], Iterable[TermAt]]
    ) -> TermPass:
        """Return the pass of a term, with the values of its variables.

        `beside` returns terms that will probably be asked for as well.
        """
        made = self._terms.get(term)
        if made is None or not same_values(made.auxiliary, auxiliary):
            (made,) = self._make([(term, auxiliary)])
            self._terms[term] = made
        return made

    def _make(self, asked: Sequence[TermAt]) -> list[TermPass]:
        return [
            TermPass(term, auxiliary, *term.forward(self.scores, auxiliary))
            for term, auxiliary in asked
        ]

    def gradient(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradient of a weighted sum of statistics: one backward pass."""
        asked = tuple((of, weights.tobytes()) for of, weights in weighted)
        if asked not in self._gradients:
            if len(self._gradients) == _MOST_KEPT:
                del self._gradients[next(iter(self._gradients))]
            on_scores: Array | None = None
            on_auxiliary, total = [], np.zeros(self.model.n_parameters)
            for of, weights in weighted:
                if of.slopes is not None:
                    total += weights @ of.slopes[0]
                    on_auxiliary.append(weights @ of.slopes[1])
                    continue
                back, auxiliary = cast("Pullback", of.pullback)(weights)
                on_scores = back if on_scores is None else on_scores + back
                on_auxiliary.append(auxiliary)
            if on_scores is not None:
                total = total + self._pullback(on_scores)
            self._gradients[asked] = total, on_auxiliary
        return self._gradients[asked]

    def slopes(self, of: TermPass, beside: TermPass | None, n_asked: int) -> Jacobian | None:
        """Return the gradients of all statistics of a term, None where they cost much.

        Those of few statistics are one product with X, together with those of the term `beside`.
        Those of many are found where more than a few are asked for, if they are made of few sums
        over rows.
        """
        if of.slopes is None:
            alone = beside is None or beside is of or beside.slopes is not None
            terms = [of] if alone else [of, cast("TermPass", beside)]
            sizes = [len(each.statistics) for each in terms]
            if sum(sizes) <= _FEW_STATISTICS:
                if self.model.linear and self.scores.ndim == 1:
                    units = zip(terms, map(np.eye, sizes), strict=True)
                    for each, slopes in zip(terms, self.jacobian_rows([*units]), strict=True):
                        each.slopes = slopes
            elif n_asked > _FEW_ROWS and isinstance(of.pullback, FactoredPullback):
                small = sizes[0] * self.model.n_parameters <= _LARGEST_JACOBIAN
                basis = of.pullback.basis() if small else None
                products = [self.model.rows_times(part) for part in basis or ()]
                if products and all(one is not None for one in products):
                    of.slopes = of.pullback.jacobian(cast("list[Array]", products))
        return of.slopes

    def rows(self, of: TermPass, outputs: Array, beside: TermPass | None) -> Jacobian:
        """Return the gradients of some outputs of a term."""
        slopes = self.slopes(of, beside, len(outputs))
        weights = of.term.rows_of(of.statistics, outputs)
        if slopes is not None:
            on_model, on_own = slopes
            return np.asarray(weights @ on_model), np.asarray(weights @ on_own)
        table = weights if isinstance(weights, np.ndarray) else as_csr(weights).toarray()
        used = np.flatnonzero(table.any(axis=0))
        if len(used) >= len(table):
            return self.jacobian_rows([(of, table)])[0]
        ((on_model, on_own),) = self.jacobian_rows([(of, np.eye(table.shape[1])[used])])
        return table[:, used] @ on_model, table[:, used] @ on_own

    def jacobian_rows(self, weighted: Weighted) -> list[Jacobian]:
        """Return the gradients of several weighted sums of the statistics of each term."""
        every = [(of, row) for of, table in weighted for row in table]
        gradients, owns = np.zeros((len(every), self.model.n_parameters)), []
        for start in range(0, len(every), _FEW_STATISTICS):  # each has the length of the rows
            some = slice(start, start + _FEW_STATISTICS)
            backs = [cast("Pullback", of.pullback)(row) for of, row in every[some]]
            gradients[some] = self._pulled(np.array([back for back, _ in backs]))
            owns += [own for _, own in backs]
        jacobians, end = [], 0
        for of, table in weighted:
            start, end = end, end + len(table)
            own = np.reshape(owns[start:end], (len(table), of.term.n_auxiliary))
            jacobians.append((gradients[start:end], own))
        return jacobians

    def _pulled(self, on_scores: Array) -> Array:
        """Return the gradients of sums with these weights of the scores, in one pass if it can."""
        rows = self.model.rows_times(on_scores)
        return np.array([self._pullback(row) for row in on_scores]) if rows is None else rows

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian of a weighted sum of statistics of curved terms."""
        total, own = np.zeros(self.model.n_rows), []
        for of, weights in weighted:
            pullback = cast("CurvedPullback", of.pullback)
            mixed, squares = np.zeros((0, self.model.n_parameters)), np.zeros(0)
            if of.auxiliary.size:
                by_variable = pullback.by_variable(weights)
                total += by_variable.sum(axis=1)
                mixed, squares = -self._pulled(by_variable.T), by_variable.sum(axis=0)
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
        the terms are atoms, see :meth:`ShardedScores.distributions`.
        """
        return self.scores, None, None

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term, see :meth:`Term.subgradient_error`."""
        return term.subgradient_error(self.scores, auxiliary)


class ShardsPass(ModelPass):
    """A pass over rows in shards: sums over the rows come back, scores do not."""

    model: ShardedLinearModel

    def _read(self) -> None:
        """Read nothing: rows stay with the shards."""
        self._rows = ShardedScores(self.model, self.w)

    @property
    def scores(self) -> Scores:
        """Raise a TypeError: scores stay with the shards."""
        return self.model.forward(self.w)[0]

    def term(
        self, term: Term, auxiliary: Array, beside: Callable[[], Iterable[TermAt]]
    ) -> TermPass:
        """Return the pass of a term, which is made in one round with those beside it."""
        if term not in self._terms:
            asked = {term: auxiliary}
            asked |= {other: own for other, own in beside() if other not in self._terms}
            self._terms |= zip(asked, self._make([*asked.items()]), strict=True)
        return super().term(term, auxiliary, beside)

    def _make(self, asked: Sequence[TermAt]) -> list[TermPass]:
        """Return the statistics of terms, with their gradients where these are cheap: one round.

        Terms that need the distribution of the scores take one more, or two if there are many rows.
        """
        model, n = self.model, self.model.n_coefficients
        terms = [(model.summed(term), own) for term, own in asked if not of_distribution(term)]
        summed = [(term, own, in_one_round(term, n)) for term, own in terms]
        sums = iter(model.total(statistics, [self.w], summed) if summed else ())
        others = [(term, own[None]) for term, own in asked if of_distribution(term)]
        values = iter(self._rows.statistics(others, np.zeros(1)))
        made = []
        for term, own in asked:
            if of_distribution(term):
                made.append(TermPass(term, own, next(values)[0]))
                continue
            made.append(TermPass(term, own, next(sums)))
            if in_one_round(model.summed(term), n):
                made[-1].slopes = model.gradient(next(sums)), next(sums)
        return made

    def gradient(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradient: from what came with the statistics, and a round for other terms."""
        rows = self.jacobian_rows([(of, weights[None]) for of, weights in weighted])
        total = sum((row[0] for row, _ in rows), np.zeros(self.model.n_parameters))
        return total, [own[0] for _, own in rows]

    def slopes(self, of: TermPass, beside: TermPass | None, n_asked: int) -> Jacobian | None:
        """Return those that came with the statistics, which are cheap."""
        return of.slopes

    def _weighted(self, weighted: Weighted) -> list[tuple[Term, Array, Array]]:
        """Return what shards need of terms and weights of their statistics."""
        return [(self.model.summed(of.term), of.auxiliary, weights) for of, weights in weighted]

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian: a round."""
        (products,) = self.model.total(hessian, [self.w], self._weighted(weighted))
        half = self.model.gradient(products)
        none = np.zeros((0, self.model.n_parameters)), np.zeros(0)
        return self.model.gradient(half.T), [none for _ in weighted]

    def jacobian_rows(self, weighted: Weighted) -> list[Jacobian]:
        """Return the gradients: from those of statistics, and a round for all other terms."""
        later = self._weighted([(of, table) for of, table in weighted if of.slopes is None])
        sums = iter(self.model.total(jacobian_rows, [self.w], later) if later else ())
        return [
            (self.model.gradient(next(sums)), next(sums))
            if of.slopes is None
            else (table @ of.slopes[0], table @ of.slopes[1])
            for of, table in weighted
        ]

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term: one round for rounded terms."""
        asked = self.model.summed(term), auxiliary
        return self.model.total(subgradient_error, [self.w], asked)[0]

    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the rows' own weight lies: a few rounds."""
        return self._rows.score_below_share(share)

    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return the scores, or the bins of a histogram, of the atoms: a round or two."""
        return self._rows.distributions(np.zeros(1))[0]


def forward_pass(model: Model, w: Array) -> ModelPass:
    """Return the pass of a model at its parameters."""
    return ShardsPass(model, w) if isinstance(model, ShardedLinearModel) else ModelPass(model, w)
