"""The data sets of the benchmarks: features, labels 0 and 1, groups; scenarios of FairGround.

Uses public names of the library only, so that `compare` can load them with another version of it.
"""

import json
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairconstrained import datasets

Data = tuple[np.ndarray | sp.csr_array, np.ndarray, np.ndarray]
_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[3] / "shared" / "data"

if _BESIDE_THE_PROJECT.is_dir():
    os.environ.setdefault("FAIRCONSTRAINED_DATA", str(_BESIDE_THE_PROJECT))


def encode(frame: pd.DataFrame, numbers=None, drop: str | None = None) -> np.ndarray:
    """Return numeric columns standardised and the others one-hot, as an array."""
    levels = OneHotEncoder(drop=drop, sparse_output=False)
    return make_column_transformer(
        (numbers or StandardScaler(), make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_exclude="number")),
    ).fit_transform(frame)


_MOST_ROWS = 8000  # of a data set: drawn with a fixed seed
_FEW_CODES, _LEVELS = 10, 30  # integers that are categories; those with more levels share one
_IDENTIFIERS = {"id", "rownum", "fnlwgt", "fold"}
_FEWEST = 20  # rows of a crossed group: smaller ones are pooled
_COARSE: dict[str, Callable[[pd.Series], pd.Series]] = {
    "AGEP": lambda age: 2 * age > age.min() + age.max(),  # ABCFair rounds ages scaled to [0, 1]
    "RAC1P": lambda race: race.where(~race.isin([2, 3, 4, 6]), 7),  # and pools these races
    "age": lambda age: pd.qcut(age, 9, labels=False),
}
_ACS = "folktables_acs{}_small:SEX*AGEP*RAC1P{}"
ABCFAIR = (_ACS.format("publiccoverage", ""), _ACS.format("mobility", "*DIS"))
MANY_GROUPS = "adult:sex*age"  # 18, as in the benchmark of humancompatible-train
DATA = ("a9a", "bank", "compas", "law_school")
_FRAMES: dict[str, tuple[Callable, list[str], int]] = {
    # What reads a data set, the sensitive columns, and how many of the largest groups are kept.
    "compas": (datasets.fetch_compas, ["race"], 2),
    "compas, three races": (datasets.fetch_compas, ["race"], 3),
    "law_school": (datasets.fetch_law_school, ["race"], 100),
    "bank": (partial(datasets.fetch_bank, version="additional"), ["age"], 100),
    "adult": (datasets.fetch_adult, ["sex"], 100),
    "adult by race": (datasets.fetch_adult, ["race"], 100),
    "adult by both": (datasets.fetch_adult, ["sex", "race"], 100),
}


def frame(name: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features as they are, labels, and groups as strings."""
    fetch, columns, largest = _FRAMES[name]
    data = fetch()
    groups = pd.DataFrame(data.sensitive_features)[columns].astype(str).agg(" ".join, axis=1)
    rows = groups.isin(groups.value_counts().index[:largest])
    return data.data[rows], np.asarray(data.target[rows]), groups[rows].to_numpy(str)


def signs(y: np.ndarray) -> np.ndarray:
    """Return labels -1 and +1; the larger label becomes +1."""
    return np.where(y == np.max(y), 1.0, -1.0)


@cache
def load(name: str) -> Data:
    """Return features, labels 0 and 1 (the larger label is 1), and groups as strings.

    A name with a colon is that of a scenario.
    """
    if ":" in name:
        return _scenario(name)
    if name == "a9a":
        X, y, groups = _arrays(datasets.fetch_a9a())
    else:
        columns, y, groups = frame(name)
        X = encode(columns)
    return X, (y == y.max()).astype(int), groups.astype(str)


@cache
def parts(name: str) -> tuple[Data, Data]:
    """Return two thirds of a data set and the other third, as 3S-Econ's experiments have them.

    The files of a9a are such parts. COMPAS is split at random, Caucasian against all others: the
    paper's 16 features are not named, so that its figures cannot be compared with.
    """
    if name == "a9a":
        first, second = datasets.fetch_a9a(), datasets.fetch_a9a(subset="test")
        return _arrays(first), _arrays(second)
    data = datasets.fetch_compas()
    caucasian = (data.sensitive_features["race"] == "Caucasian").to_numpy()
    X = np.column_stack([encode(data.data), np.ones(len(caucasian))])
    split = train_test_split(X, data.target.to_numpy(), caucasian, test_size=1 / 3, random_state=0)
    return tuple(split[::2]), tuple(split[1::2])  # type: ignore[return-value]


def _arrays(bunch) -> Data:
    return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)


def generated(n_rows: int) -> Data:
    """Return generated rows on which every constraint of the library is active at 0.05.

    There are two groups. A feature that is irrelevant for the label differs between them, and a
    third of the labels of the first group is drawn again, so that losses, error rates and rankings
    differ as well.
    """
    options = {"gap": 0.3, "class_sep": 4.0, "flip_y": 0.05, "random_state": 0}
    X, y, groups = datasets.make_biased_classification(n_rows, **options)
    rng = np.random.default_rng(0)
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


def scenarios() -> dict[str, Mapping]:
    """Return the scenarios by name; none where the data are not there."""
    file = _folder() / "index.json"
    if not file.is_file():
        return {}
    return {each["scenario"]: each for each in json.loads(file.read_text())["scenarios"]}


def _scenario(name: str) -> Data:
    """Return features without the sensitive columns, labels and groups of a scenario.

    `index.json` has the label, its favourable values and the features of every data set, and the
    sensitive columns of every scenario. Groups are FairGround's binary ones: rows whose sensitive
    columns all have their most frequent values, against all others. The crossed groups of other
    benchmarks are all combinations of such columns. Others than FairGround's are named in the same
    way, "dataset:column;column", and "dataset:column*column" with crossed groups.
    """
    dataset, _, columns = name.partition(":")
    listed_columns = columns.replace("*", ";").split(";")
    scenario = scenarios().get(name, {"dataset": dataset, "sensitive": listed_columns})
    about = json.loads((_folder() / "index.json").read_text())["datasets"][scenario["dataset"]]
    frame = pd.read_csv(_folder() / about["file"])
    if len(frame) > _MOST_ROWS:
        frame = frame.sample(_MOST_ROWS, random_state=0).reset_index(drop=True)
    listed, sensitive = about["features"].lstrip("-").split(";"), scenario["sensitive"]
    left_out = {about["label"], *sensitive}
    but = about["features"].startswith("-")  # the features are all others
    names = [each for each in frame if each not in left_out and (each in listed) != but]
    columns = (_column(frame[each]) for each in names if each.lower() not in _IDENTIFIERS)
    kept = [column for column in columns if column.nunique() > 1]
    groups = _crossed(frame[sensitive]) if "*" in name else _binary(frame[sensitive])
    return encode(pd.concat(kept, axis=1)), _favourable(frame[about["label"]], about), groups


def _binary(columns: pd.DataFrame) -> np.ndarray:
    text = columns.astype(str)
    return np.where((text == text.mode().iloc[0]).all(axis=1), "most", "others")


def _crossed(columns: pd.DataFrame) -> np.ndarray:
    coarse = [_COARSE.get(str(name), pd.Series)(column) for name, column in columns.items()]
    groups = pd.concat(coarse, axis=1).astype(str).agg(" ".join, axis=1)
    rows = groups.map(groups.value_counts())
    return groups.where(rows >= _FEWEST, "others").to_numpy(str)


def _folder() -> Path:
    return Path(os.environ.get("FAIRCONSTRAINED_DATA", "")) / "fairground"


def _column(column: pd.Series) -> pd.Series:
    """Return a column of numbers without gaps, or of at most 30 categories and one for the rest."""
    few_codes = column.dtype.kind in "iu" and 2 < column.nunique() <= _FEW_CODES
    if column.dtype.kind in "iuf" and not few_codes:
        mostly_missing = column.isna().mean() > 0.5
        return column.iloc[:0] if mostly_missing else column.astype(float).fillna(column.median())
    text = column.astype(str)
    return text.where(text.isin(text.value_counts().index[:_LEVELS]), "other")


def _favourable(column: pd.Series, about: Mapping) -> np.ndarray:
    """Return labels: 1 for the favourable value, for one of several, or by a comparison."""
    rule, text = about["positive"], column.astype(str).str.strip()
    if rule[:2] in ("<=", ">=") and rule not in set(text):
        number, values = float(rule[2:]), pd.to_numeric(column)
        return (values <= number if rule[0] == "<" else values >= number).to_numpy(int)
    return text.isin({rule, *rule.split(",")}).to_numpy(int)
