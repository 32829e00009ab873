"""Forward passes: what an evaluation reads of a model's rows, once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from fairconstrained.models.linear import Model, Pullback, Scores
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.shards import sums
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.shards.scores import ShardedScores, of_distribution
from fairconstrained.terms import base
from fairconstrained.terms.base import FactoredPullback, Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_array
from fairconstrained.utils.arrays import Array, score_below_share

Parts = Sequence[CompositeFunction]
Jacobian = tuple[Array, Array]  # rows in the parameters of a model, and in a term's own variables

_LARGEST_JACOBIAN = 1 << 21  # entries of a Jacobian of all statistics, 16 MB
_FEW_STATISTICS = 8  # whose gradients cost one product with X; a solver asks for most of them
_FEW_ROWS = 4  # gradients of constraints that cost no more than those of all statistics


@dataclass(eq=False)  # not frozen: that would double the time of making one
class TermPass:
    """A term's statistics in a pass over the rows of a model, and what its gradient needs."""

    term: Term
    auxiliary: Array
    statistics: Array
    pullback: base.Pullback | None = None
    slopes: Jacobian | None = None


Weighted = Sequence[tuple[TermPass, Array]]  # terms of one pass with weights of their statistics


class ModelPass:
    """A pass over the rows of a model at some parameters; the rows are in memory.

    Parameters
    ----------
    model : Model
        The model.
    w : ndarray of shape (n_parameters,)
        Its parameters.
    """

    def __init__(self, model: Model, w: Array):
        self.model, self.w = model, w
        self.made: dict[Term, TermPass] = {}

    @cached_property
    def _forward(self) -> tuple[Scores, Pullback]:
        return self.model.forward(self.w)

    @cached_property
    def scores(self) -> Scores:
        """The scores of the rows; a TypeError is raised where they stay with shards."""
        return self._forward[0]

    def outputs(self, part: CompositeFunction, auxiliary: Array) -> Array:
        """Return the outputs of the term of a part for some values of its variables."""
        whole = replace(part, auxiliary=slice(None))
        return part.term.head(self.make(whole, auxiliary, [whole]).statistics)

    def make(self, part: CompositeFunction, w: Array, parts: Parts) -> TermPass:
        """Return the pass of the term of a part at w, and perhaps make those of all parts."""
        term, auxiliary = part.term, w[part.auxiliary]
        self.made[term] = TermPass(term, auxiliary, *term.forward(self.scores, auxiliary))
        return self.made[term]

    def slopes(self, of: TermPass, n_asked: int) -> Jacobian | None:
        """Return the gradients of all statistics of a term, None where they cost much.

        Those of few statistics are one product with X, together with those of all terms that were
        made: the objective's gradient is wanted when a constraint's is. Those of many are found
        where more than a few are asked for, if they are made of few sums over rows.
        """
        if of.slopes is None and self.model.in_memory:
            terms = [made for made in self.made.values() if made.slopes is None]
            size = sum(len(made.statistics) for made in terms)
            if size > _FEW_STATISTICS:
                terms, size = [of], len(of.statistics)
            if size <= _FEW_STATISTICS:
                if self.model.linear and self.scores.ndim == 1:
                    units = [self._on_scores(e, np.eye(len(e.statistics))) for e in terms]
                    rows = self._pulled(np.concatenate([on_scores for on_scores, _ in units]))
                    for made, (_, on_own) in zip(terms, units, strict=True):
                        made.slopes, rows = (rows[: len(on_own)], on_own), rows[len(on_own) :]
            elif n_asked > _FEW_ROWS and isinstance(of.pullback, FactoredPullback):
                small = size * self.model.n_parameters <= _LARGEST_JACOBIAN
                basis = of.pullback.basis() if small else None
                products = [self.model.rows_times(part) for part in basis or ()]
                if products and all(product is not None for product in products):
                    of.slopes = of.pullback.jacobian(cast("list[Array]", products))
        return of.slopes

    def rows(self, of: TermPass, outputs: Array) -> Jacobian:
        """Return the gradients of some outputs of a term."""
        slopes, weights = self.slopes(of, len(outputs)), of.term.rows_of(of.statistics, outputs)
        if slopes is None:
            weights = as_array(weights)
            used = np.flatnonzero(weights.any(axis=0))
            # A sum costs a pass: one for each statistic that is used, or one for each output.
            if len(used) < len(weights):
                table = np.equal.outer(used, np.arange(weights.shape[1])).astype(float)
                weights = weights[:, used]
            else:
                table, weights = weights, np.eye(len(weights))
            rows, (on_own,) = self.pull([(of, table)])
            slopes = rows, on_own
        return np.asarray(weights @ slopes[0]), np.asarray(weights @ slopes[1])

    def pull(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradients of weighted sums of the statistics of terms.

        There is a sum for every row of the tables of weights, over all terms. The gradients are
        those in the parameters of the model, (n_sums, n_parameters), and in the variables of each
        term.
        """
        totals, by_term = [], []
        for start in range(0, max(len(weighted[0][1]), 1), _FEW_STATISTICS):
            few = slice(start, start + _FEW_STATISTICS)  # each has the length of the rows
            backs, on_own = zip(*(self._on_scores(of, w[few]) for of, w in weighted), strict=True)
            totals.append(self._pulled(sum(backs)))
            by_term.append(on_own)
        return np.concatenate(totals), [*map(np.concatenate, zip(*by_term, strict=True))]

    def _on_scores(self, of: TermPass, table: Array) -> Jacobian:
        """Return the gradients of sums of statistics in the scores and in the term's variables."""
        pullback, n = cast("base.Pullback", of.pullback), len(table)
        if isinstance(pullback, FactoredPullback):  # all at once: a row costs less than a call
            on_scores, on_own = pullback(table)
            return on_scores, on_own if on_own.size else np.zeros((n, 0))
        pulled = [pullback(weights) for weights in table]
        on_scores = np.reshape([back for back, _ in pulled], (n, *self.scores.shape))
        return on_scores, np.reshape([on_own for _, on_own in pulled], (n, of.term.n_auxiliary))

    def _pulled(self, on_scores: Array) -> Array:
        """Return the gradients of sums with these weights of the scores, in one pass if it can."""
        rows = None if len(on_scores) == 1 else self.model.rows_times(on_scores)
        if rows is None:
            rows = np.array([self._forward[1](row) for row in on_scores])
        return rows.reshape(len(on_scores), self.model.n_parameters)

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian of a weighted sum of statistics of curved terms.

        Then come, for every term with variables, their rows in the parameters and the diagonal.
        """
        total, on_own = np.zeros(self.model.n_rows), []
        for of, weights in weighted:
            pullback = cast("Any", of.pullback)
            if of.auxiliary.size:
                by_variable = pullback.by_variable(weights)
                total += by_variable.sum(axis=1)
                on_own.append((-self._pulled(by_variable.T), by_variable.sum(axis=0)))
            else:
                total += pullback.second_derivatives(weights)
        return self.model.gram(total), on_own

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

    @cached_property
    def _rows(self) -> ShardedScores:
        return ShardedScores(self.model, self.w)

    def make(self, part: CompositeFunction, w: Array, parts: Parts) -> TermPass:
        """Make the statistics of all parts, with their gradients where these are cheap: one round.

        The first round is for decisions as well where these are sums. Terms that need the
        distribution of the scores take one more, or two if there are many rows.
        """
        model, n = self.model, self.model.n_coefficients
        here = [each for each in parts if each.model is model]
        if not self.made:
            decided = [each.zero_one() for each in here if each is not parts[0]]
            here += [each for each in decided if isinstance(each.term, CellMeans)]
        new = [each for each in here if each.term not in self.made or each.term.n_auxiliary]
        asked = [(each.term, w[each.auxiliary]) for each in new]
        of_scores = [(term, at[None]) for term, at in asked if of_distribution(term)]
        summed = [(model.summed(term), at) for term, at in asked if not of_distribution(term)]
        requests = [(term, at, sums.in_one_round(term, n)) for term, at in summed]
        of_rows = iter(model.total(sums.statistics, [self.w], requests) if requests else ())
        slopes, values = iter(requests), iter(self._rows.statistics(of_scores, np.zeros(1)))
        for term, at in asked:
            spread = of_distribution(term)
            made = TermPass(term, at, next(values)[0] if spread else next(of_rows))
            if not spread and next(slopes)[2]:
                made.slopes = model.gradient(next(of_rows)), next(of_rows)
            self.made[term] = made
        return self.made[part.term]

    def _weighted(self, weighted: Weighted) -> list[tuple[Term, Array, Array]]:
        """Return what shards need of terms and weights of their statistics."""
        return [(self.model.summed(of.term), of.auxiliary, weights) for of, weights in weighted]

    def pull(self, weighted: Weighted) -> tuple[Array, list[Array]]:
        """Return the gradients: a round."""
        rows = self.model.total(sums.jacobian_rows, [self.w], self._weighted(weighted))
        return self.model.gradient(np.sum(rows[::2], axis=0)), [*rows[1::2]]

    def hessian(self, weighted: Weighted) -> tuple[Array, list[Jacobian]]:
        """Return the Hessian: a round."""
        weighted_terms, parameters = self._weighted(weighted), self.model.on(self.model.X)
        return self.model.total(sums.hessian, [self.w], weighted_terms, parameters)[0], []

    def subgradient_error(self, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term: one round for rounded terms."""
        asked = self.model.summed(term), auxiliary
        return self.model.total(sums.subgradient_error, [self.w], asked)[0]

    def score_below_share(self, share: float, weight: Array) -> float:
        """Return the score above which a share of the rows' own weight lies: a few rounds."""
        return self._rows.score_below_share(share)

    def distribution(self) -> tuple[Scores, Array | None, Array | None]:
        """Return the scores, or the bins of a histogram, of the atoms: a round or two."""
        return self._rows.distributions(np.zeros(1))[0]
