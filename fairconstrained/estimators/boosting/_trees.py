"""LightGBM's boosters: leaves, leaf values, and a booster with other leaf values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from fairconstrained.utils.extras import import_extra
from fairconstrained.utils.typing import Array

_SAFE_NAME = re.compile(r"^[^\s\[\]{}\":,]+$")  # LightGBM's text format allows these names only


def import_lightgbm() -> ModuleType:
    """Return the module lightgbm.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.
    """
    return import_extra("lightgbm", "boosting", "FairBoostingClassifier")


class Booster(Protocol):
    """What is used of lightgbm.Booster."""

    pandas_categorical: list[list[Any]] | None

    def predict(self, data: Any, **options: Any) -> Any:
        """Return predictions, scores or leaves."""

    def model_to_string(self, num_iteration: int | None = None) -> str:
        """Return the model as text."""

    def get_leaf_output(self, tree_id: int, leaf_id: int) -> float:
        """Return the value of a leaf."""

    def set_leaf_output(self, tree_id: int, leaf_id: int, value: float) -> Any:
        """Set the value of a leaf."""


def as_lightgbm_data(X: Any) -> Any:
    """Return features in a form that LightGBM accepts: sparse arrays become sparse matrices."""
    if not hasattr(X, "indptr"):
        return X
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)


def feature_names(names: Sequence[object], n_features: int) -> list[str] | str:
    """Return the names for LightGBM, "auto" if there are none or it does not allow them."""
    texts = [str(name) for name in names]
    usable = len(texts) == n_features == len(set(texts)) and all(map(_SAFE_NAME.match, texts))
    return texts if usable else "auto"


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees as text, the first score, and the categories of their features.

    Attributes
    ----------
    text : str
        LightGBM's model file: the trees, with the objective that turns scores to probabilities.
    first_score : float
        The score before the first tree, which the text does not contain.
    categories : list of list or None
        The categories of the columns of pandas' category dtype, in order.
    num_threads : int, default=0
        For predictions; 0 is LightGBM's default.
    """

    text: str = field(repr=False)
    first_score: float
    categories: list[list[Any]] | None = None
    num_threads: int = 0

    @classmethod
    def of(cls, booster: Booster, n_trees: int, first_score: float, **options: Any) -> Trees:
        """Return the first trees of a booster that was trained with a custom objective."""
        text = booster.model_to_string(num_iteration=n_trees)
        text = re.sub(
            r"^(max_feature_idx=.*)$",
            r"\1\nobjective=binary sigmoid:1",
            text,
            count=1,
            flags=re.MULTILINE,
        )
        return cls(text, first_score, **options)

    @cached_property
    def sizes(self) -> Array:
        """The number of leaves of each tree."""
        found = re.findall(r"^num_leaves=(\d+)$", self.text, flags=re.MULTILINE)
        return np.array([int(size) for size in found])

    @cached_property
    def _booster(self) -> Booster:
        booster: Booster = import_lightgbm().Booster(model_str=self.text)
        return booster

    def leaves(self, X: Any) -> Array:
        """Return the leaf of each row in each tree, shape (n_rows, n_trees)."""
        data = as_lightgbm_data(X)
        return np.asarray(self._booster.predict(data, pred_leaf=True, num_threads=self.num_threads))

    def values(self) -> Array:
        """Return the values of all leaves, tree after tree, and the first score."""
        of = self._booster.get_leaf_output
        leaves = [of(tree, leaf) for tree, size in enumerate(self.sizes) for leaf in range(size)]
        return np.array([*leaves, self.first_score])

    def scores(self, X: Any) -> Array:
        """Return the scores of the trees, without the first score, shape (n_rows,)."""
        data = as_lightgbm_data(X)
        return np.asarray(self._booster.predict(data, raw_score=True, num_threads=self.num_threads))

    def with_values(self, values: Array) -> Booster:
        """Return a booster with these leaf values; its first tree contains the first score.

        Parameters
        ----------
        values : ndarray of shape (n_leaves + 1,)
            The values of all leaves, tree after tree, and the first score.
        """
        booster: Booster = import_lightgbm().Booster(model_str=self.text)
        k = 0
        for tree, size in enumerate(self.sizes):
            for leaf in range(size):
                add = values[-1] if tree == 0 else 0.0
                booster.set_leaf_output(tree, leaf, float(values[k] + add))
                k += 1
        booster.pandas_categorical = self.categories
        return booster
