"""The data sets of IDCA's experiments, their splits (appendix D.1) and ranges of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, load, parts

RANKS = {"a9a": (0.05, 0.30), "bank": (0.0, 0.25), "law_school": (0.70, 1.0)}
_SHARES = {"bank": (0.6, 0.2), "law_school": (0.5625, 0.25)}  # of training and test rows
TEST_TO_TRAIN = {
    "a9a": 16281 / (0.9 * 32561),
    **{name: test / train for name, (train, test) in _SHARES.items()},
}


def split(name: str, seed: int) -> tuple[Data, Data]:
    """Return training and test rows in the paper's shares; its validation rows are unused."""
    if name == "a9a":
        train, test = parts("a9a")
        rows = train_test_split(np.arange(len(train[1])), train_size=0.9, random_state=seed)[0]
        return _take(train, rows), test
    data = load(name)
    train_size, test_size = _SHARES[name]
    rows, rest = train_test_split(
        np.arange(len(data[1])), train_size=train_size, random_state=seed, stratify=data[2]
    )
    return _take(data, rows), _take(data, rest[: round(test_size * len(data[1]))])


def _take(data: Data, rows: np.ndarray) -> Data:
    X, y, groups = data
    return X[rows], y[rows], groups[rows]


def with_group(X: Any, groups: np.ndarray) -> Any:
    """Return X with the group as a last column, 0 or 1."""
    column = (groups == np.unique(groups)[-1]).astype(float)[:, None]
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(column)]))
    return np.column_stack([X, column])
