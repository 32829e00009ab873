"""Communities and Crime with hundreds of intersectional groups, and a network (PLADA, 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.datasets import fetch_communities
from fairconstrained.functions.losses import Hinge
from fairconstrained.models.network import TorchModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import average

PERCENTAGES = ("racepctblack", "racePctAsian", "racePctHisp")
QUANTILES = np.arange(0.05, 1.0, 0.1)
EPSILON, LEAST = 0.01, 0.01
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Rows:
    """A part of the data: features, labels -1 and +1, and members, (n_groups, n_rows)."""

    X: np.ndarray
    y: np.ndarray
    members: sp.csr_array

    def measures(self, scores: np.ndarray) -> dict[str, float]:
        """Return the error, and how far errors of groups are above it, less epsilon."""
        wrong = ((scores > 0) != (self.y > 0)).astype(float)
        groups = self.members @ wrong / self.members.sum(axis=1)
        excess = groups - wrong.mean() - EPSILON
        return {
            "error": float(wrong.mean()),
            "average": float(excess.mean()),
            "largest": float(excess.max()),
            "99th percentile": float(np.quantile(excess, 0.99)),
        }


@dataclass(frozen=True)
class Communities:
    """The three parts, and the thresholds that define the groups, (n_groups, 3)."""

    parts: dict[str, Rows]
    thresholds: np.ndarray

    @classmethod
    def split(cls, seed: int) -> Communities:
        """Return a random split into 50, 25 and 25 per cent.

        A group is the rows above one threshold in each percentage; those with more than one per
        cent of the rows of every part are kept. Missing values are 0, and there is a column for
        every pattern in which they occur.
        """
        bunch = fetch_communities(drop_missing=False)
        y = np.where(np.asarray(bunch.target) > 0, 1.0, -1.0)
        missing = bunch.data.isna().to_numpy()
        patterns = np.unique(missing[:, missing.any(axis=0)], axis=1)
        X = np.column_stack([bunch.data.fillna(0.0).to_numpy(float), patterns])
        order = np.random.RandomState(seed).permutation(len(y))
        rows = np.split(order, [len(y) // 2, 3 * len(y) // 4])
        Z = bunch.data[list(PERCENTAGES)].to_numpy(float)
        cuts = np.quantile(Z[rows[0]], QUANTILES, axis=0)
        a, b, c = (Z[:, k, None] > cuts[:, k] for k in range(3))
        members = (a[:, :, None, None] & b[:, None, :, None] & c[:, None, None, :]).reshape(
            len(y), -1
        )
        kept = np.all([members[part].mean(axis=0) > LEAST for part in rows], axis=0)
        grid = np.stack(np.meshgrid(*cuts.T, indexing="ij"), axis=-1).reshape(-1, 3)
        parts = {
            name: Rows(X[part], y[part], sp.csr_array(members[part][:, kept].T.astype(float)))
            for name, part in zip(PARTS, rows, strict=True)
        }
        return cls(parts, grid[kept])

    def problem(self, reading: str | None, *, width: int = 64) -> Problem:
        """Return the training of a network with five hidden layers and the mean hinge loss.

        With "average" the mean over the groups of their excess loss is bounded, with "each" that of
        every group; with None nothing is.
        """
        rows = self.parts["train"]
        weight = np.ones(len(rows.y))
        model = TorchModel.standardized(
            rows.X, weight, hidden_layer_sizes=(width,) * 5, dtype="float32"
        )
        free = Problem(CompositeFunction(model, average(Hinge(), rows.y, weight)))
        if reading is None:
            return free
        parity = IntersectionalLossParity(
            EPSILON, membership="columns", min_share=0.0, average=reading == "average"
        )
        term = parity.bind(rows.y, rows.members.T.toarray() > 0, weight)
        return free.with_constraints([CompositeFunction(model, term)])
