"""Data sets with groups of few rows: training rows and test rows of a split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, encode
from fairconstrained.datasets import fetch_adult, fetch_bank, fetch_compas, fetch_law_school

Split = tuple[Any, Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
_AGES = [0, 22, 30, 45, 60, 75, 200]


def _labels(target: pd.Series) -> np.ndarray:
    y = np.asarray(target)
    return (y == y.max()).astype(int)


def _adult() -> Data:
    """Five races, two of about one per cent; the race is no feature."""
    data = fetch_adult()
    features = encode(data.data.drop(columns=["race"]))
    return features, _labels(data.target), _text(data.sensitive_features["race"])


def _compas() -> Data:
    """Six races, Asian 0.5 and Native American 0.2 per cent; the race is a feature."""
    data = fetch_compas()
    return encode(data.data), _labels(data.target), _text(data.sensitive_features["race"])


def _law_school() -> Data:
    """Race and family income together: ten groups."""
    data = fetch_law_school()
    income = data.data["fam_inc"].astype(int).astype(str)
    groups = data.sensitive_features["race"].astype(str) + ", income " + income
    return encode(data.data), _labels(data.target), _text(groups)


def _bank() -> Data:
    """Six age groups, the youngest and the oldest below one per cent."""
    data = fetch_bank(version="additional")
    groups = pd.cut(data.data["age"], _AGES, right=False)
    return encode(data.data), _labels(data.target), _text(groups)


def _text(groups: pd.Series) -> np.ndarray:
    return np.asarray(groups.astype(str))


_REAL: dict[str, tuple[Callable[[], Data], int | float]] = {  # and the training rows of a split
    "adult": (_adult, 7000),
    "bank": (_bank, 7000),
    "compas": (_compas, 0.7),
    "law_school": (_law_school, 3000),
}
DATA = ("credit", *_REAL)


@cache
def _load(name: str) -> Data:
    return _REAL[name][0]()


def split_of(name: str, seed: int) -> Split:
    """Return train and test features, labels 0 and 1, and groups.

    Splits are stratified by group and label. Of large data sets few rows are for training and all
    others for tests, so that test rates are exact. The generated rows are drawn anew.
    """
    if name == "credit":
        drawn = credit(10_000, seed), credit(60_000, 1000 + seed)
        return tuple(part for pair in zip(*drawn, strict=True) for part in pair)  # type: ignore
    X, y, groups = _load(name)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=_REAL[name][1],
        random_state=seed,
        stratify=np.char.add(groups, y.astype(str)),
    )
    return X[train], X[test], y[train], y[test], groups[train], groups[test]


def credit(n_rows: int, seed: int) -> Data:
    """Return generated rows like those of a credit register: who will default.

    There are four education groups, the last one of 1.5 per cent. Of all rows 22 per cent default.
    The delays of payment in six months, most of them 0, say most about the label. They are one-hot,
    so that some features are those of few rows. The three large groups are similar; the last one
    is late less often, older, and has higher limits. The education is no feature.
    """
    rng = np.random.default_rng(seed)
    group = rng.choice(4, n_rows, p=[0.35, 0.47, 0.165, 0.015])
    late = rng.standard_normal(n_rows) + np.array([-0.02, 0.02, 0.0, -0.8])[group]
    months = late[:, None] + 0.8 * rng.standard_normal((n_rows, 6))
    delays = np.clip(np.floor(2.5 * (months - 0.6)), -2, 8).astype(int)
    limit = rng.normal(np.array([0.05, -0.05, 0.0, 1.0])[group], 1.0)
    amounts = rng.standard_normal((n_rows, 12)) + 0.5 * limit[:, None]
    age = rng.normal(np.array([-0.1, 0.0, 0.1, 1.0])[group], 1.0)
    weights = np.array([0.45, 0.2, 0.15, 0.1, 0.1, 0.1])
    owed = np.maximum(delays, 0) @ weights - 0.15 * limit + 0.1 * age + 0.1 * amounts[:, 0]
    y = (rng.random(n_rows) < expit(owed - 2.05 + 0.5 * (group == 3))).astype(int)
    X = np.column_stack([limit, age, amounts, *(delays == level for level in range(-1, 9))])
    return X, y, np.array(["graduate", "university", "high school", "others"])[group]
