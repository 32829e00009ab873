"""Sums of trees as linear models: a coefficient for every leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from fairconstrained.models.linear import LinearModel
from fairconstrained.utils.typing import Array, Matrix, SparseMatrix


@dataclass(frozen=True, eq=False)
class LeafIndicators:
    """The map from features to the indicators of the leaves that a row falls into.

    Attributes
    ----------
    leaves_of : callable
        From features to the leaf of each row in each tree, an integer array of shape
        (n_rows, n_trees).
    sizes : ndarray of int of shape (n_trees,)
        The number of leaves of each tree.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.leaves import LeafIndicators
    >>> indicators = LeafIndicators(lambda X: np.array([[0, 2], [1, 0]]), np.array([2, 3]))
    >>> indicators(np.zeros((2, 1))).toarray().astype(int)
    array([[1, 0, 0, 0, 1],
           [0, 1, 1, 0, 0]])
    """

    leaves_of: Callable[[Any], Array]
    sizes: Array

    def __call__(self, X: Matrix) -> sp.csr_array:
        """Return the indicators, CSR of shape (n_rows, n_leaves) with a one for every tree."""
        starts = np.append(0, np.cumsum(self.sizes)).astype(np.int32)
        leaves = np.asarray(self.leaves_of(X), dtype=np.int32)
        columns = leaves.reshape(X.shape[0], len(self.sizes)) + starts[:-1]
        n_rows, n_trees = columns.shape
        index = np.int32 if columns.size <= np.iinfo(np.int32).max else np.int64
        rows = np.arange(0, columns.size + 1, max(n_trees, 1), dtype=index)
        ones = np.ones(columns.size)
        return sp.csr_array((ones, columns.ravel(), rows), shape=(n_rows, int(starts[-1])))


@dataclass(frozen=True, eq=False)
class LeafModel(LinearModel):
    """The scores of given trees as a function of the values of their leaves, and an intercept.

    The scores are linear in the leaf values. Rows are given as raw features (see `on`), and the
    trees find their leaves.

    Parameters
    ----------
    X : CSR of shape (n_rows, n_leaves)
        The indicators of the leaves.
    indicators : LeafIndicators
        Maps the features of other rows to theirs.
    initial : ndarray of shape (n_parameters,)
        The leaf values of the boosted trees and their intercept, from which solvers start.
    """

    indicators: LeafIndicators | None = None
    initial: Array | None = None

    @classmethod
    def of(
        cls, indicators: LeafIndicators, X: Matrix, sample_weight: Array, initial: Array
    ) -> LeafModel:
        """Return the model of some rows.

        Parameters
        ----------
        indicators : LeafIndicators
            The trees.
        X : ndarray or CSR of shape (n_rows, n_features)
            The features.
        sample_weight : ndarray of shape (n_rows,)
            The weights of the rows, > 0, for the preconditioner.
        initial : ndarray of shape (n_leaves + 1,)
            Leaf values and intercept.
        """
        found = indicators(X)
        shares = found.T @ (sample_weight / sample_weight.sum())
        return cls(found, mean_squares=shares, indicators=indicators, initial=initial)

    @cached_property
    def _transpose(self) -> SparseMatrix:
        """The transpose as CSC: its products write to few places, so that CSR is not faster."""
        return cast("SparseMatrix", self.X).T

    def start(self, random_state: np.random.RandomState) -> Array:
        """Return the boosted leaf values."""
        return np.zeros(self.n_parameters) if self.initial is None else self.initial.copy()

    def on(self, X: Matrix) -> LeafModel:
        """Return the model of other rows, with the same parameters.

        Parameters
        ----------
        X : ndarray or CSR of shape (n_other_rows, n_features)
            Their features, not their leaves.
        """
        assert self.indicators is not None, "made by LeafModel.of"
        return replace(self, X=self.indicators(X), is_batch=False)
