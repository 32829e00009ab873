"""The linear model whose rows are in shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from fairconstrained.models.base import Model, largest_eigenvalue
from fairconstrained.models.feature_scale import Features
from fairconstrained.models.linear import LinearModel
from fairconstrained.shards.rows import AtomRows
from fairconstrained.shards.scores import (
    Distribution,
    distributions,
    from_distribution,
    of_distribution,
    score_ranges,
)
from fairconstrained.shards.sums import (
    Place,
    Request,
    ShardedTerm,
    Shards,
    hessian,
    jacobian_rows,
    mean_square,
    square_gradient,
    statistics,
    subgradient_error,
    total,
)
from fairconstrained.terms.base import Shardable, Term
from fairconstrained.utils.typing import Array, Matrix

_KEPT_TERMS = 256


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics of a term and, if they came in the same round, their Jacobian.

    Attributes
    ----------
    statistics : ndarray of shape (n_statistics,)
    jacobian : tuple of ndarray or None
        In the parameters, (n_statistics, n_parameters), and in the term's own variables; None if
        gradients take a round of their own.
    """

    statistics: Array
    jacobian: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class ShardedLinearModel(Model):
    r"""A linear model with one output whose rows are in shards.

    Terms on it have one row per atom: rows of an atom have the same label and the same groups. What
    evaluations need are sums over all rows, computed shard by shard; scores are not collected.

    Parameters
    ----------
    plain : LinearModel
        The model of a table without rows: shift, scale, mean squares and the intercept.
    shards : Shards
        The rows.
    totals : ndarray of shape (n_atoms,)
        The total weight of each atom.
    positions : ndarray of int of shape (n_all_atoms,) or None, default=None
        For a model of some of the atoms: the position of every atom in it, or -1.
    """

    plain: LinearModel
    shards: Shards
    totals: Array
    positions: Array | None = None
    _sharded: dict[Term, ShardedTerm] = field(default_factory=dict, init=False, repr=False)

    linear: ClassVar[bool] = True
    in_memory: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""
        return self.shards.n_rows

    @property
    def n_coefficients(self) -> int:
        """The number of coefficients, without the intercept."""
        return self.plain.n_coefficients

    @property
    def n_parameters(self) -> int:
        """The number of parameters, intercept included."""
        return self.plain.n_parameters

    @property
    def scale(self) -> Array | None:
        """The scale of each feature."""
        return self.plain.scale

    def offset(self) -> Array | None:
        """Return one at the intercept, None if there is none."""
        return self.plain.offset()

    def preconditioner(self) -> Array:
        """Return the preconditioner of the features' mean squares."""
        return self.plain.preconditioner()

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) of the features before shift and scale."""
        return self.plain.coefficients(w)

    def variables(self, coef: Array, intercept: Array) -> Array:
        """Return the parameters that give these coefficients and intercepts (for warm starts)."""
        return self.plain.variables(coef, intercept)

    def forward(self, w: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Raise a TypeError: scores stay with the shards."""
        raise TypeError("the scores of rows in shards are not collected; only sums over them are.")

    def batch(self, rows: Array) -> ShardedLinearModel:
        """Raise a TypeError: rows are not drawn from shards."""
        raise TypeError("rows in shards cannot be drawn; use a deterministic solver.")

    def on(self, X: Any) -> Any:
        """Return the model of some of the atoms, or the linear model of other rows.

        Parameters
        ----------
        X : AtomRows, or ndarray or CSR of shape (n_other_rows, n_features)
            Atoms of this model, or rows with the same columns.
        """
        if not isinstance(X, AtomRows):
            return self.plain.on(X)
        positions = np.full(len(self.totals), -1)
        positions[X.atoms] = np.arange(len(X.atoms))
        return replace(self, totals=self.totals[X.atoms], positions=positions)

    def sharded(self, term: Term) -> ShardedTerm:
        """Return a term with what shards need of it.

        Raises
        ------
        TypeError
            If it is not a sum over rows.
        """
        if not isinstance(term, Shardable) or not term.shardable:
            raise TypeError(
                f"{type(term).__name__} is not a sum over rows, so that it cannot be computed "
                "shard by shard. Fit it with the estimator for rows in memory."
            )
        if term not in self._sharded:
            if len(self._sharded) >= _KEPT_TERMS:
                self._sharded.clear()
            self._sharded[term] = ShardedTerm(
                term, self.totals, self.positions, self.plain.X.shape[1]
            )
        return self._sharded[term]

    def model_of(self, X: Matrix) -> LinearModel:
        """Return the linear model of a few rows, with the same parameters."""
        return replace(self.plain, X=cast("Features", X), is_batch=True)

    def place(self, w: Array) -> Place:
        """Return the coefficients of X itself, (n_features,), and the intercept; linear in w."""
        coef, intercept = self.plain.coefficients(w)
        return coef[0], float(intercept[0])

    def statistics(
        self, w: Array, requests: Sequence[tuple[Term, Array]], *, derivatives: bool = True
    ) -> list[Statistics]:
        """Return the statistics of terms: one round, with derivatives where these are cheap.

        Terms that need the distribution of the scores take one more, or two if there are many rows:
        a histogram stands for these, so that the statistics are approximate.

        Parameters
        ----------
        w : ndarray of shape (n_parameters,)
            The parameters.
        requests : sequence of (Term, ndarray)
            The terms, with the values of their own variables.
        derivatives : bool, default=True
            Whether derivatives are wanted.
        """
        summed = [(self.sharded(term), own) for term, own in requests if not of_distribution(term)]
        fused = [given for given in summed if derivatives and given[0].in_one_round]
        others = [given for given in summed if not (derivatives and given[0].in_one_round)]
        found: dict[ShardedTerm, list[Statistics]] = {one: [] for one, _ in summed}
        if summed:
            sums = iter(total(self.shards, statistics, (self.place(w),), fused, others))
            for (one, _), value, rows, own in zip(fused, sums, sums, sums, strict=False):
                found[one].append(Statistics(value, (self.gradient(rows), own)))
            for (one, _), value in zip(others, sums, strict=True):
                found[one].append(Statistics(value))
        scores = self.own(self.distribution(w)) if len(summed) < len(requests) else None
        return [
            Statistics(from_distribution(term, auxiliary, *scores, self.totals))
            if scores is not None and of_distribution(term)
            else found[self.sharded(term)].pop(0)
            for term, auxiliary in requests
        ]

    def own(self, distribution: Distribution) -> Distribution:
        """Return the part of a distribution that this model's atoms have, by their positions."""
        if self.positions is None:
            return distribution
        scores, atoms, weight = distribution
        inside = self.positions[atoms] >= 0
        return scores[inside], self.positions[atoms[inside]], weight[inside]

    def gradient(self, sums: Array) -> Array:
        """Return the gradients in the parameters for some in coefficients of X and intercept.

        Parameters
        ----------
        sums : ndarray of shape (m, n_features + 1)
            The derivatives with respect to coefficients of X and intercept.
        """
        slopes, total = sums[:, :-1], sums[:, -1:]
        if self.plain.shift is not None:
            slopes = slopes - total * self.plain.shift
        if self.plain.scale is not None:
            slopes = slopes / self.plain.scale
        return np.hstack([slopes, total]) if self.plain.fit_intercept else slopes

    def jacobian_rows(
        self, w: Array, requests: Sequence[tuple[Term, Array]], tables: Sequence[Array]
    ) -> list[tuple[Array, Array]]:
        """Return the gradients of several <weights, statistics> of each term: one round.

        Parameters
        ----------
        w, requests
            See `statistics`.
        tables : sequence of ndarray of shape (m, n_statistics)
            The weights; m may differ between the terms.

        Returns
        -------
        rows : list of (ndarray of shape (m, n_parameters), ndarray of shape (m, n_auxiliary))
            For each term the gradients in the parameters and in its own variables.
        """
        asked: list[Request] = [(self.sharded(term), own) for term, own in requests]
        sums = total(self.shards, jacobian_rows, (self.place(w),), asked, list(tables))
        n = len(asked)
        return [(self.gradient(one), own) for one, own in zip(sums[:n], sums[n:], strict=True)]

    @property
    def gram_is_cheap(self) -> bool:
        """Whether there are few columns, so that Hessians cost little."""
        return self.plain.gram_is_cheap

    def hessian(
        self, w: Array, requests: Sequence[tuple[Term, Array]], weights: Sequence[Array]
    ) -> Array:
        """Return the Hessian of <weights, statistics> of curved terms: one round.

        Parameters
        ----------
        w, requests
            See `statistics`.
        weights : sequence of ndarray of shape (n_statistics,)
            Of every term.
        """
        asked: list[Request] = [(self.sharded(term), own) for term, own in requests]
        return total(self.shards, hessian, (self.place(w),), asked, list(weights), self.plain)[0]

    def subgradient_error(self, w: Array, term: Term, auxiliary: Array) -> Array:
        """Return the subgradient error of a term, shape (n_outputs,): one round."""
        asked = (self.sharded(term), auxiliary)
        return total(self.shards, subgradient_error, (self.place(w),), asked)[0]

    def root_mean_square(self, v: Array) -> float:
        """Return the root mean square of the scores' change along `v`."""
        (squares,) = total(self.shards, mean_square, (self.place(v),))
        return float(np.sqrt(squares[0] / self.totals.sum()))

    def _along(self, w: Array) -> tuple[Place, Place, Array]:
        return self.place(w), self.place(np.zeros_like(w)), np.zeros(1)

    def distribution(self, w: Array) -> Distribution:
        """Return the distribution of the scores of every atom, see :func:`distributions`."""
        return distributions(self.shards, *self._along(w), self.n_all_atoms)[0]

    def score_range(self, w: Array) -> tuple[float, float]:
        """Return the least and the largest score: a round."""
        low, high = score_ranges(self.shards, *self._along(w))
        return float(low[0]), float(high[0])

    @property
    def n_all_atoms(self) -> int:
        """The number of atoms in the shards, those of other models included."""
        return len(self.totals) if self.positions is None else len(self.positions)

    def curvature(self, weights: Array, *, n_iter: int = 20) -> float:
        """Each power iteration is a round; the weights are those of the atoms, (n_atoms,)."""
        if not np.any(weights):
            return 0.0
        shares = weights / self.totals
        if self.positions is not None:
            shares = np.append(shares, 0.0)[self.positions]

        def product(v: Array) -> Array:
            (sums,) = total(self.shards, square_gradient, (self.place(v),), shares)
            return self.gradient(sums[None])[0]

        return largest_eigenvalue(product, self.n_parameters, n_iter=n_iter)
