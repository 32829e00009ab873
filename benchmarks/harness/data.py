"""The data sets of the benchmarks: features, labels 0 and 1, groups.

Uses public names of the library only, so that `compare` can load them with another version of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairconstrained.datasets import (
    fetch_a9a,
    fetch_adult,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_law_school,
    make_biased_classification,
)

Data = tuple[Any, np.ndarray, np.ndarray]
_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[3] / "shared" / "data"

if _BESIDE_THE_PROJECT.is_dir():
    os.environ.setdefault("FAIRCONSTRAINED_DATA", str(_BESIDE_THE_PROJECT))


def encode(frame: pd.DataFrame) -> np.ndarray:
    """Return numeric columns standardised and the others one-hot, as an array."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
    ).fit_transform(frame)


def black_or_white() -> tuple:
    """Return COMPAS with the rows of the two largest races."""
    data = fetch_compas()
    rows = data.sensitive_features["race"].isin(["African-American", "Caucasian"])
    return data.data[rows], data.target[rows], data.sensitive_features["race"][rows]


def _grouped(fetch: Callable[..., Any], column: str, **options: Any) -> Callable[[], tuple]:
    def read() -> tuple:
        data = fetch(**options)
        groups = data.sensitive_features
        return data.data, data.target, groups[column] if groups.ndim == 2 else groups

    return read


FRAMES: dict[str, Callable[[], tuple]] = {
    "compas": black_or_white,
    "communities": _grouped(fetch_communities, "racepctblack"),
    "law_school": _grouped(fetch_law_school, "race"),
    "bank": _grouped(fetch_bank, "age", version="additional"),
    "adult": _grouped(fetch_adult, "sex"),
}
DATA = ("a9a", "bank", "compas", "law_school")
QUICK_DATA = ("compas",)


def signs(y: np.ndarray) -> np.ndarray:
    """Return labels -1 and +1; the larger label becomes +1."""
    return np.where(y == np.max(y), 1.0, -1.0)


@cache
def load(name: str) -> Data:
    """Return features, labels 0 and 1 (the larger label is 1), and groups as strings."""
    if name == "a9a":
        X, y, groups = _arrays(fetch_a9a())
    else:
        frame, y, groups = FRAMES[name]()
        X = encode(frame)
    y = np.asarray(y)
    return X, (y == y.max()).astype(int), np.asarray(groups.astype(str))


@cache
def parts(name: str) -> tuple[Data, Data]:
    """Return two thirds of a data set and the other third, as 3S-Econ's experiments have them.

    The files of a9a are such parts. COMPAS is split at random, Caucasian against all others: the
    paper's 16 features are not named, so that its figures cannot be compared with.
    """
    if name == "a9a":
        first, second = fetch_a9a(), fetch_a9a(subset="test")
        return _arrays(first), _arrays(second)
    data = fetch_compas()
    caucasian = (data.sensitive_features["race"] == "Caucasian").to_numpy()
    X = np.column_stack([encode(data.data), np.ones(len(caucasian))])
    split = train_test_split(X, data.target.to_numpy(), caucasian, test_size=1 / 3, random_state=0)
    return tuple(split[::2]), tuple(split[1::2])  # type: ignore[return-value]


PARTS = ("a9a", "compas")


def _arrays(bunch: Any) -> Data:
    return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)


def generated(n_rows: int, random_state: int = 0) -> Data:
    """Return generated rows on which every constraint of the library is active at 0.05.

    There are two groups. A feature that is irrelevant for the label differs between them, and a
    third of the labels of the first group is drawn again, so that losses, error rates and rankings
    differ as well.
    """
    X, y, groups = make_biased_classification(
        n_rows, gap=0.3, class_sep=4.0, flip_y=0.05, random_state=random_state
    )
    rng = np.random.default_rng(random_state)
    redrawn = (groups == 0) & (rng.random(n_rows) < 0.35)
    y = np.where(redrawn, rng.integers(0, 2, n_rows), y)
    X[:, -1] += 1.5 * groups
    return X, y, np.array(["a", "b"])[groups]


def generated_text(n_rows: int, n_words: int = 50_000, seed: int = 0) -> Data:
    """Return tf-idf rows of documents of some 90 words with Zipf's frequencies, as CSR.

    Labels and groups tilt the frequencies; a quarter of the rows of one group has the label 1
    whatever its words are.
    """
    rng = np.random.default_rng(seed)
    tilts = np.exp(rng.normal(size=(2, n_words)) * [[0.8], [0.5]])
    kinds = rng.integers(2, size=(2, n_rows))
    rows = np.repeat(np.arange(n_rows), np.maximum(10, rng.poisson(90, size=n_rows)))
    words = np.empty(len(rows), int)
    for kind in np.ndindex(2, 2):
        inside = np.flatnonzero((kind == kinds[:, rows].T).all(axis=1))
        frequencies = np.prod(tilts.T**kind, axis=1) / np.arange(1, n_words + 1) ** 1.05
        words[inside] = rng.choice(n_words, len(inside), p=frequencies / frequencies.sum())
    counts = sp.csr_array((np.ones(len(rows)), (rows, words)), shape=(n_rows, n_words))
    y = np.where(rng.random(n_rows) < 0.25 * kinds[1], 1, kinds[0])
    return TfidfTransformer().fit_transform(counts), y, kinds[1]
