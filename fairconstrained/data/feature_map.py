"""The features of a model: the columns that it uses, with or without cross terms of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class FeatureMap:
    r"""The features of a model: x alone, or with group cross terms.

    With G groups the features are :math:`(x,\ z_1 x, \dots, z_G x,\ z_1, \dots, z_G)`, where
    :math:`z_k` says whether the row is in group k. IDCA's (1, x, z, z x) spans the same functions;
    here there is no reference group, so that the penalty is the same for all groups in any order.

    References
    ----------
    IDCA, section 5 (linear model with interactions).
    """

    kept: Array  # the columns of X that are x, (n_kept,)
    n_features: int  # the number of columns of X
    n_groups: int = 0  # g; 0 for a model without cross terms

    def expand(self, X: Any, codes: Array) -> Any:
        """Return the features of the rows: `X` itself without cross terms, else CSR."""
        if not self.n_groups:
            return X
        rows = sp.csr_array(X)
        membership = sp.csr_array(
            (np.ones(rows.shape[0], rows.dtype), codes, np.arange(rows.shape[0] + 1)),
            shape=(rows.shape[0], self.n_groups),
        )
        return sp.hstack([rows, _products(membership, rows), membership], format="csr")

    def fold(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return the coefficients and the intercept of every group, or of every score."""
        d, n_rows = len(self.kept), self.n_groups or len(coef)
        full = np.zeros((n_rows, self.n_features))
        full[:, self.kept] = coef[:, :d]
        levels = np.repeat(intercept, n_rows // len(coef))
        if self.n_groups:
            by_group, shifts = np.split(coef[0, d:], [d * self.n_groups])
            full[:, self.kept] += by_group.reshape(self.n_groups, d)
            levels += shifts
        return full, levels

    def unfold(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients of the features of `expand`, from those of every group.

        Of all coefficients with the same scores they have the least L2 penalty.
        """
        rows = coef[:, self.kept]
        if not self.n_groups:
            return rows, intercept
        base, level = rows.sum(axis=0) / (self.n_groups + 1), intercept.mean()
        flat = np.concatenate([base, np.ravel(rows - base), intercept - level])
        return flat[None, :], np.array([level])


def _products(membership: Any, rows: Any) -> Any:
    """Return the products of every row with its group's indicator, (n_rows, G d) as CSR.

    A row's entries move to the columns of its group: nothing is multiplied.
    """
    shift = np.repeat(membership.indices * rows.shape[1], np.diff(rows.indptr))
    shape = (rows.shape[0], membership.shape[1] * rows.shape[1])
    return sp.csr_array((rows.data, rows.indices + shift, rows.indptr), shape=shape)
