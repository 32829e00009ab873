"""Lagrangians as sums over points of losses and sigmoids of one score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.ordered_pairs import as_array
from fairconstrained.utils.typing import Array, SparseMatrix

_MOSTLY_DIFFERENT = 0.9  # of the rows: to pool so few that are equal gains little


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """The objective and constraints, as sums over points of l(s), l(-s) and sigmoid(s)."""

    model: LinearModel  # of the points: rows, or rows with the same features together
    # which functions, the objective first, are sums of l; the others are sums of the sigmoid, (1 +
    # n_constraints,)
    of_loss: Array
    up: Array  # the weights of l(s) and l(-s) in these, (n_of_loss, n_points)
    down: Array
    share: Array  # the weights of sigmoid(s) in the others, (n_others, n_points)
    level: Array  # what is added to each function, (1 + n_constraints,)
    penalty: Penalty  # an elastic net on the coefficients

    cost = 0

    @classmethod
    def of(cls, at: Evaluation, chosen: Array) -> Lagrangian:
        """Return that of the objective and of some constraints, less the violation at a point."""
        problem = at.problem
        each = [_weights(problem.objective, np.zeros(1, int))]
        for part, place in zip(problem.constraints, problem.places[1:], strict=True):
            outputs = chosen[(chosen >= place.start) & (chosen < place.stop)] - place.start
            each.append(_weights(part, outputs))
        of_loss, up, down, share, level = map(np.concatenate, zip(*each, strict=True))
        level[1:] -= at.violation
        model, penalty = cast("LinearModel", problem.models[0]), problem.objective.penalty
        return cls(model, of_loss, up, down, share, level, penalty)

    @property
    def strengths(self) -> tuple[float, float, Array | float]:
        """Those of the L1 norm and of half the squared distance, and the centre."""
        assert self.penalty.elastic_net is not None
        return self.penalty.elastic_net

    def pooled(self) -> Lagrangian:
        """Return the same with rows of equal features pooled."""
        pooled = pooled_rows(self.model)
        if pooled is None:
            return self
        first, place = pooled
        shares = sp.csr_array((np.ones(len(place)), place, np.arange(len(place) + 1)))
        return self.spread(self.model.batch(first), shares)

    def spread(self, model: LinearModel, shares: SparseMatrix) -> Lagrangian:
        """Return the same with every point spread over those of a model, (n_points, n_others)."""
        up, down, share = (each @ shares for each in (self.up, self.down, self.share))
        return replace(self, model=model, up=up, down=down, share=share)

    def combined(self, multipliers: Array) -> tuple[Array, Array, Array, float]:
        """Return the weights of l(s), l(-s) and sigmoid(s) by point, and what is added."""
        each = np.append(1.0, multipliers)
        on_loss, on_share = each[self.of_loss], each[~self.of_loss]
        return on_loss @ self.up, on_loss @ self.down, on_share @ self.share, self.level @ each

    def price(self, multipliers: Array) -> Array | float:
        """Return G: half of G times the squared parameters is to be subtracted."""
        return 0.0

    def values(self, up: Array, down: Array, share: Array) -> Array:
        """Return the constraints where points have these values of l(s), l(-s), sigmoid(s)."""
        values = self.level.copy()
        values[self.of_loss] += self.up @ up + self.down @ down
        values[~self.of_loss] += self.share @ share
        return values[1:]

    def slopes(self, on_up: Array, on_down: Array, on_share: Array) -> Array:
        """Return derivatives of the constraints in the scores, from those of their summands."""
        slopes = np.empty((len(self.level), len(on_up)))
        slopes[self.of_loss] = self.up * on_up + self.down * on_down
        slopes[~self.of_loss] = self.share * on_share
        return slopes[1:]

    @property
    def rates(self) -> Array:
        """The weights of sigmoid(s) in the constraints, zero for those on losses."""
        none = np.zeros(self.model.n_rows)
        return self.slopes(none, none, none + 1.0)


def _weights(part: CompositeFunction, outputs: Array) -> tuple[Array, ...]:
    """Return, for outputs of a part, the attributes of a Lagrangian from `of_loss` to `level`."""
    term = cast("CellMeans", part.term)
    zero, none = np.zeros(term.n_statistics), np.zeros((0, term.n_rows))
    weights = term._spread(as_array(term.rows_of(zero, outputs)))
    level = term.values_of(zero, outputs) + part.level_of(outputs)
    positive = np.ones(term.n_rows) if term.signs is None else (term.signs > 0.0).astype(float)
    up, down = weights * positive, weights * (1.0 - positive)
    if isinstance(term.function, Logistic):
        return np.ones(len(outputs), bool), up, down, none, level
    # sigmoid(-s) = 1 - sigmoid(s)
    return np.zeros(len(outputs), bool), none, none, up - down, level + down.sum(axis=1)


def pooled_rows(model: LinearModel) -> tuple[Array, Array] | None:
    """Return the positions of rows with different features, and which of them every row is.

    None if few rows have equal features. Such rows have the same score for random parameters; that
    they are equal is then checked.
    """
    scores = model.scores(np.random.default_rng(0).standard_normal(model.n_parameters))
    if np.count_nonzero(np.diff(np.sort(scores))) > _MOSTLY_DIFFERENT * len(scores):
        return None
    _, first, place = np.unique(scores, return_index=True, return_inverse=True)
    different = model.X[first][place] != model.X
    unlike = different.any() if isinstance(different, np.ndarray) else different.nnz
    return None if unlike else (first, place)
