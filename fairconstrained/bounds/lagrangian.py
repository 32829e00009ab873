"""Lagrangians as sums over pooled rows of losses and sigmoids of one score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Penalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.utils.typing import Array

_MOSTLY_DIFFERENT = 0.9  # of the rows: to pool so few that are equal gains little


@dataclass(frozen=True, eq=False)
class Functions:
    """Some outputs of a part, as sums over rows of l(s), l(-s) or sigmoid(s), sigmoid(-s).

    Attributes
    ----------
    term : CellMeans
        The term of the part.
    outputs : ndarray of int of shape (n_functions,)
        Its outputs.
    level : ndarray of shape (n_functions,) or float
        What is added to them.
    """

    term: CellMeans
    outputs: Array
    level: Array | float

    @classmethod
    def of(cls, part: CompositeFunction, outputs: Array, violation: float = 0.0) -> Functions:
        """Return some outputs of a part, less a violation."""
        return cls(cast("CellMeans", part.term), outputs, part.level_of(outputs) - violation)

    @property
    def of_loss(self) -> bool:
        """Whether it is l that is averaged."""
        return isinstance(self.term.function, Logistic)

    def weights(self, multipliers: Array) -> tuple[Array, Array]:
        """Return what rows weigh in the weighted sum of the functions, by their sign, (n_rows,)."""
        on_averages = self.term.vjp_of(self._zeros, self.outputs, multipliers)
        by_row = self.term._spread(on_averages)
        if self.term.signs is None:
            return by_row, np.zeros_like(by_row)
        positive = self.term.signs > 0.0
        return np.where(positive, by_row, 0.0), np.where(positive, 0.0, by_row)

    @property
    def _zeros(self) -> Array:
        return np.zeros(self.term.n_statistics)

    @property
    def constants(self) -> Array:
        """The functions where the averages are zero."""
        return self.term.values_of(self._zeros, self.outputs) + self.level

    def values(self, up: Array, down: Array) -> Array:
        """Return the functions, for values by row of what is averaged at s and at -s."""
        by_row = up if self.term.signs is None else np.where(self.term.signs > 0.0, up, down)
        return self.term.values_of(self.term._sums(by_row), self.outputs) + self.level


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """The functions whose weighted sum it is, of pooled rows: the objective comes first.

    Attributes
    ----------
    model : LinearModel
        Of the pooled rows.
    points : ndarray of int of shape (n_rows,) or None
        Which of these every row is; None where rows are not pooled.
    parts : list of Functions
        The objective, and constraints less a violation that is allowed.
    penalty : Penalty
        An elastic net on the coefficients.
    """

    model: LinearModel
    points: Array | None
    parts: list[Functions]
    penalty: Penalty

    @classmethod
    def of(cls, at: Evaluation, chosen: Array) -> Lagrangian:
        """Return that of the objective and of some constraints, less the violation at a point."""
        problem = at.problem
        parts = [Functions.of(problem.objective, np.zeros(1, int))]
        for part, place in zip(problem.constraints, problem.places[1:], strict=True):
            outputs = chosen[(chosen >= place.start) & (chosen < place.stop)] - place.start
            parts.append(Functions.of(part, outputs, at.violation))
        model = cast("LinearModel", problem.models[0])
        return cls(model, None, parts, problem.objective.penalty)

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
        first, points = pooled
        model = replace(self.model.batch(first), is_batch=False)
        return replace(self, model=model, points=points)

    def _pool(self, by_row: Array) -> Array:
        if self.points is None:
            return by_row
        return np.bincount(self.points, by_row, minlength=self.model.n_rows)

    def combined(self, multipliers: Array) -> tuple[Array, Array, Array, float]:
        """Return the weights of l(s), l(-s) and sigmoid(s) by pooled row, and what is added."""
        p, q, c = np.zeros((3, self.model.n_rows))
        ends, level = np.cumsum([len(part.outputs) for part in self.parts])[:-1], 0.0
        each = np.split(np.append(1.0, multipliers), ends)
        for part, factors in zip(self.parts, each, strict=True):
            above, below = part.weights(factors)
            level += float(factors @ part.constants)
            if part.of_loss:
                p, q = p + self._pool(above), q + self._pool(below)
            else:  # sigmoid(-s) = 1 - sigmoid(s)
                c, level = c + self._pool(above - below), level + float(below.sum())
        return p, q, c, level

    def values(self, up: Array, down: Array, share: Array) -> Array:
        """Return the constraints where pooled rows have these values of l(s), l(-s), sigmoid(s)."""
        if self.points is not None:
            up, down, share = (each[self.points] for each in (up, down, share))
        kinds = {True: (up, down), False: (share, 1.0 - share)}
        values = [part.values(*kinds[part.of_loss]) for part in self.parts[1:]]
        return np.concatenate([np.zeros(0), *values])

    def slopes(self, on_up: Array, on_down: Array, on_share: Array) -> tuple[Array, Array]:
        """Return the derivatives of the constraints in the scores, and weights in rates alone.

        Both are of shape (n_constraints, n_points), for derivatives of l(s), l(-s) and sigmoid(s).
        """
        rows, rates = [np.zeros((0, len(on_up)))], [np.zeros((0, len(on_up)))]
        for part in self.parts[1:]:
            for unit in np.eye(len(part.outputs)):
                above, below = part.weights(unit)
                if part.of_loss:
                    row = self._pool(above) * on_up + self._pool(below) * on_down
                    rate = np.zeros_like(row)
                else:
                    rate = self._pool(above - below)
                    row = rate * on_share
                rows.append(row[None])
                rates.append(rate[None])
        return np.concatenate(rows), np.concatenate(rates)


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
