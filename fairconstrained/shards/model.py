"""The linear model of rows in shards, and rows in the memory of this process as one shard."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np

from fairconstrained.data.validation import TrainingData
from fairconstrained.models.feature_scale import FeatureScale, feature_scale
from fairconstrained.models.linear import LinearModel
from fairconstrained.shards import sums
from fairconstrained.terms.base import Term
from fairconstrained.utils.arrays import Array, codes_in_blocks


@dataclass(frozen=True, eq=False)
class ShardedLinearModel(LinearModel):
    """A linear model with one output whose rows are in shards; `X` has their columns and no rows.

    Terms on it have one row per atom: rows of an atom have the same label and the same groups. What
    evaluations need are sums over all rows, computed shard by shard; scores are not collected.

    `totals` have the total weight of each atom. `atoms` are those that terms on the model have as
    rows, all of them or some. All else is as in
    :class:`~fairconstrained.models.linear.LinearModel`.
    """

    shards: sums.Shards = field(kw_only=True)
    totals: Array = field(kw_only=True)
    atoms: Array = field(kw_only=True)
    _of_atoms: WeakKeyDictionary[Term, Term] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    in_memory: ClassVar[bool] = False

    @classmethod
    def of(cls, model: LinearModel, shards: sums.Shards, totals: Array) -> "ShardedLinearModel":
        """Return the model with the parameters of another one, whose rows do not matter."""
        scales = model.shift, model.scale, model.mean_squares
        rows: Any = {"shards": shards, "totals": totals, "atoms": np.arange(len(totals))}
        return cls(model.X[:0], model.fit_intercept, 1, *scales, **rows)

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""
        return self.shards.n_rows

    @property
    def only_shard(self) -> sums.Shard | None:
        """The rows, where they are one shard in the memory of this process."""
        shards = self.shards.shards if isinstance(self.shards, sums.LocalShards) else ()
        return shards[0] if len(shards) == 1 else None

    def forward(self, w: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Raise a TypeError: scores stay with the shards."""
        raise TypeError("the scores of rows in shards are not collected; only sums over them are.")

    def batch(self, rows: Array) -> Any:
        """Raise a TypeError: rows are not drawn from shards."""
        raise TypeError("rows in shards cannot be drawn; use a deterministic solver.")

    def on(self, X: Any) -> Any:
        """Return the model of some of the atoms, or the linear model of other rows."""
        if isinstance(X, sums.AtomRows):
            theirs = X.shards not in (None, self.shards)
            model = ShardedLinearModel.of(self, X.shards, X.totals) if theirs else self
            return replace(model, atoms=model.atoms[X.atoms])
        return LinearModel(X, self.fit_intercept, 1, self.shift, self.scale, self.mean_squares)

    def of_atoms(self, term: Term) -> Term:
        """Return a term on rows that are the atoms of the shards, each of unit weight.

        Row i of atom a has the share w_i / W_a of the atom's row, W the totals of the weights: on
        rows of the shards it is ``take(their atoms, their weights)``.
        """
        if term not in self._of_atoms:
            rows, factors = np.zeros(len(self.totals), int), np.zeros(len(self.totals))
            rows[self.atoms] = np.arange(len(self.atoms))
            factors[self.atoms] = 1.0 / self.totals[self.atoms]
            self._of_atoms[term] = term.take(rows, factors)
        return self._of_atoms[term]

    def on_rows(self, parts: Sequence[Any], rows: Any, factors: Any = 1.0) -> list[Any]:
        """Return functions on this model on some rows of its only shard, weighted by factors."""
        shard = self.only_shard
        assert shard is not None
        few, atoms, weight = self.on(shard.X[rows]), shard.atoms[rows], factors * shard.weight[rows]
        return [
            replace(part, model=few, term=self.of_atoms(part.term).take(atoms, weight))
            for part in parts
        ]

    def summed(self, term: Term) -> Term:
        """Return `of_atoms` of a term; a TypeError if its statistics are no sums over rows."""
        if not term.shardable:
            raise TypeError(
                f"{type(term).__name__} is not a sum over rows, so that it cannot be computed "
                "shard by shard. Fit it with the estimator for rows in memory."
            )
        return self.of_atoms(term)

    def place(self, w: Array) -> sums.Place:
        """Return the coefficients of X itself, (n_features,), and the intercept; linear in w."""
        coef, intercept = self.coefficients(w)
        return coef[0], float(intercept[0])

    def total(
        self, function: sums.BlockSum, at: Sequence[Array], *rest: Any, **options: Any
    ) -> sums.Sums:
        """Return a sum over all blocks at some parameters: a round, see :meth:`Shards.total`."""
        return self.shards.total(function, [self.place(w) for w in at], *rest, **options)

    def gradient(self, slopes: Array) -> Array:
        """Return the gradients in the parameters for some in coefficients of X and intercept."""
        return self.in_parameters(slopes[:, :-1], slopes[:, -1:])

    def gram_times(self, weights: Array, v: Array) -> Array:
        """Return the product: a round. The weights are those of the atoms, (n_atoms,)."""
        shares = np.zeros(len(self.totals))
        shares[self.atoms] = weights / self.totals[self.atoms]
        return self.gradient(self.total(sums.square_gradient, [v], shares)[0][None])[0]


_MOST_ATOMS = 32  # with more, derivatives by cell cost more than a second read of the rows


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Training data with one row per atom; the rows of the atoms are in shards."""

    shards: sums.Shards = field(kw_only=True)  # the rows
    feature_scale: FeatureScale = field(kw_only=True)  # of all rows
    largest: float = field(kw_only=True)  # the largest weight of a row

    @classmethod
    def of(cls, data: TrainingData, first: Array, totals: Iterable[Array], **rows: Any) -> Self:
        """Return data with one row per atom: that in `data` which is of the atom.

        `totals` are the number of the rows of each atom, and the sums of their weights and of their
        squared weights.
        """
        values = {each.name: getattr(data, each.name) for each in fields(data)}
        values |= zip(("counts", "sample_weight", "squares"), totals, strict=True)
        values |= {
            "X": sums.AtomRows(np.arange(len(first)), rows["shards"], values["sample_weight"]),
            "y": data.y[first].astype(float),
            "groups": None if data.groups is None else data.groups.take(first),
        }
        return cls(**values, **rows)

    @property
    def largest_weight(self) -> float:
        """The largest weight of a row."""
        return self.largest


def rows_by_atom(data: TrainingData) -> ShardedData | None:
    """Return training data with one row per atom, whose rows stay where they are.

    An evaluation then reads the features once, block by block, and keeps nothing of the length of
    the rows. The fit keeps the features, their weights where they differ, and one byte per row.
    None if there are more than a few atoms or several classes, or if rows whose group is not known
    may differ in some of its attributes.
    """
    groups, weight = data.groups, data.sample_weight
    n_codes = 2 if groups is None else 2 * (len(groups) + 1)
    unlike = groups is not None and groups.attributes and groups.codes.min() < 0
    if unlike or n_codes > _MOST_ATOMS or data.several_classes:
        return None

    def codes_of(rows: slice) -> Array:
        group = 0 if groups is None else groups.codes[rows] + 1
        return np.asarray(2 * group + (data.y[rows] > 0), dtype=np.int8)

    codes, atoms = codes_in_blocks(len(data.y), codes_of)
    all_ones = weight.min() == 1.0 == weight.max()
    powers = [None] if all_ones else [None, weight, weight**2]
    totals = [np.bincount(atoms, power).astype(float) for power in powers]
    counts, weights, squares = np.broadcast_to(totals, (3, len(codes)))
    first = np.array([np.argmax(atoms == atom) for atom in range(len(codes))])
    return ShardedData.of(
        data,
        first,
        (counts.astype(int), weights, squares),
        shards=sums.LocalShards([sums.Shard(data.X, atoms, weight)]),
        feature_scale=feature_scale(data.X, data.loss_weight),
        largest=float(weight.max()),
    )


def drawn(codes: Array, strata: Array, size: int, least: int) -> tuple[Array, Array]:
    """Return rows from every stratum, in rising order, and one over the share that was drawn."""
    of_rows = strata.astype(np.min_scalar_type(int(strata.max(initial=0))))[codes]  # short integers
    sizes = np.bincount(of_rows)
    counts = np.minimum(np.maximum(np.round(size * sizes / len(codes)).astype(int), least), sizes)
    source, parts = np.random.default_rng(0), []
    for stratum, (n, count) in enumerate(zip(sizes, counts, strict=True)):
        some = source.choice(n, count, replace=False, shuffle=False)
        parts.append(np.flatnonzero(of_rows == stratum)[some])
    rows = np.sort(np.concatenate(parts))
    return rows, (sizes / counts)[of_rows[rows]]
