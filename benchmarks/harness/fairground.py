"""The scenarios of FairGround's fixed collections, from the folder `fairground` of the data.

`index.json` has the label, its favourable values and the features of every data set, and the
sensitive columns of every scenario. Groups are FairGround's binary ones: rows whose sensitive
columns all have their most frequent values, against all others. The crossed groups of other
benchmarks are all combinations of such columns.
"""

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness.data import Data, encode

_MOST_ROWS = 8000  # of a data set: drawn with a fixed seed
_FEW_CODES, _LEVELS = 10, 30  # integers that are categories; those with more levels share one
_IDENTIFIERS = {"id", "rownum", "fnlwgt", "fold"}
_FEWEST = 20  # rows of a crossed group: smaller ones are pooled
_COARSE: dict[str, Callable[[pd.Series], pd.Series]] = {
    "AGEP": lambda age: 2 * age > age.min() + age.max(),  # ABCFair rounds ages scaled to [0, 1]
    "RAC1P": lambda race: race.where(~race.isin([2, 3, 4, 6]), 7),  # and pools these races
    "age": lambda age: pd.qcut(age, 9, labels=False),
}
ABCFAIR = (
    "folktables_acspubliccoverage_small:SEX*AGEP*RAC1P",
    "folktables_acsmobility_small:SEX*AGEP*RAC1P*DIS",
)
MANY_GROUPS = "adult:sex*age"  # 18, as in the benchmark of humancompatible-train


def scenarios() -> dict[str, Mapping[str, Any]]:
    """Return the scenarios by name; none where the data are not there."""
    file = _folder() / "index.json"
    if not file.is_file():
        return {}
    return {each["scenario"]: each for each in json.loads(file.read_text())["scenarios"]}


@cache
def load_scenario(name: str) -> Data:
    """Return features without the sensitive columns, labels and groups of a scenario.

    Others than FairGround's are named in the same way, "dataset:column;column", and
    "dataset:column*column" with crossed groups.
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
    names = [column for column in frame if column not in left_out]
    if about["features"].startswith("-"):
        names = [column for column in names if column not in listed]
    else:
        names = [column for column in names if column in listed]
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


def _favourable(column: pd.Series, about: Mapping[str, Any]) -> np.ndarray:
    """Return labels: 1 for the favourable value, for one of several, or by a comparison."""
    rule, text = about["positive"], column.astype(str).str.strip()
    if rule[:2] in ("<=", ">=") and rule not in set(text):
        number, values = float(rule[2:]), pd.to_numeric(column)
        return (values <= number if rule[0] == "<" else values >= number).to_numpy(int)
    return text.isin({rule, *rule.split(",")}).to_numpy(int)
