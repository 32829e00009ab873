"""The tables of the notebooks: real where their files are, else generated with the same columns."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairconstrained import make_biased_classification
from fairconstrained.datasets import fetch_adult, fetch_bank, fetch_communities, fetch_law_school

_FOLDER = "FAIRCONSTRAINED_DATA"
_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[2] / "shared" / "data"


class Table(NamedTuple):
    """Rows of a data set; the groups are a column of X as well."""

    X: pd.DataFrame
    y: pd.Series
    groups: pd.Series
    source: str


@dataclass(frozen=True)
class _Source:
    fetch: Callable
    numeric: tuple[str, ...]
    categories: tuple[str, ...]
    group: str
    names: tuple[str, str]  # of the groups; the second is favoured
    shares: tuple[float, float]  # of the groups' rows in generated tables


_SOURCES = {
    "adult": _Source(
        fetch_adult,
        ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        ("workclass", "marital-status", "occupation", "relationship"),
        "sex",
        ("Female", "Male"),
        (0.33, 0.67),
    ),
    "bank": _Source(
        fetch_bank,
        ("balance", "day", "campaign", "pdays", "previous"),
        ("job", "marital", "education", "default", "housing", "loan", "contact", "poutcome"),
        "age_group",
        ("25-60", "other"),
        (0.85, 0.15),
    ),
    "law school": _Source(
        fetch_law_school,
        ("decile1b", "decile3", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc", "tier"),
        (),
        "race",
        ("Non-White", "White"),
        (0.2, 0.8),
    ),
}


def load(name: str, n_rows: int = 6000, random_state: int = 0) -> Table:
    """Return rows drawn from a data set.

    Parameters
    ----------
    name : {"adult", "bank", "law school"}
        The data set. Its files are looked for in the folder that the environment variable
        FAIRCONSTRAINED_DATA names, else in ../shared/data beside the project; where there is no
        such folder, the rows are generated.
    n_rows : int, default=6000
        How many.
    random_state : int, default=0
        The seed.
    """
    source = _SOURCES[name]
    folder = Path(os.environ.setdefault(_FOLDER, str(_BESIDE_THE_PROJECT)))
    rng = np.random.default_rng(random_state)
    X, y = _real(source, n_rows, rng) if folder.is_dir() else _generated(source, n_rows, rng)
    where = f"{n_rows} rows of {name}" if folder.is_dir() else f"{n_rows} generated rows"
    return Table(X, y, X[source.group], where)


def _real(source: _Source, n_rows: int, rng: np.random.Generator) -> tuple:
    bunch = source.fetch()
    rows = np.sort(rng.choice(len(bunch.target), size=n_rows, replace=False))
    table = bunch.data
    if source.group not in table:
        table = table.assign(**{source.group: bunch.sensitive_features.iloc[:, 0]})
    columns = [*source.numeric, *source.categories, source.group]
    X = table[columns].iloc[rows].reset_index(drop=True)
    X = X.astype(dict.fromkeys((*source.categories, source.group), object))
    return X, bunch.target.iloc[rows].reset_index(drop=True)


def _generated(source: _Source, n_rows: int, rng: np.random.Generator) -> tuple:
    """Return as many rows of each group as its share, their categories the thirds of a feature."""
    names = [*source.numeric, *source.categories]
    values, labels, groups = make_biased_classification(
        4 * n_rows, len(names), gap=0.4, random_state=int(rng.integers(2**31))
    )
    rows = np.concatenate(
        [
            np.flatnonzero(groups == g)[: round(share * n_rows)]
            for g, share in enumerate(source.shares)
        ]
    )
    rows = rng.permutation(rows)
    X = pd.DataFrame(values[rows], columns=names)
    for name in source.categories:
        thirds = np.digitize(X[name], X[name].quantile([1 / 3, 2 / 3]))
        X[name] = np.array(["low", "middle", "high"], dtype=object)[thirds]
    X[source.group] = np.array(source.names, dtype=object)[groups[rows]]
    return X, pd.Series(labels[rows], name="label")


_KNOWN = ["zfygpa", "lsat", "ugpa", "fam_inc", "fulltime", "tier"]
_THIRDS = ["tutoring", "regular", "honours"]


def law_school_grades(n_rows: int = 4000, random_state: int = 0) -> Table:
    """Return what is known of students after a year, and the third of their final grades.

    Parameters
    ----------
    n_rows : int, default=4000
        How many.
    random_state : int, default=0
        The seed.

    Returns
    -------
    table : Table
        The columns of X do not include the group. The label is "tutoring" for the lowest third of
        the final grades, "regular" or "honours". Final grades of generated rows are those of the
        first year with noise.
    """
    X, _, groups, source = load("law school", n_rows, random_state)
    grades = X["zgpa"]
    if "generated" in source:
        first_year = X["zfygpa"] + 0.5 * X["lsat"] - 1.5 * (groups == "Non-White")
        X = X.assign(zfygpa=first_year)
        grades = first_year + 0.6 * grades
    y = pd.qcut(grades, 3, labels=_THIRDS).astype(object)
    return Table(X[_KNOWN], y.rename("final_grade"), groups, source)


_PERCENTAGES = ["racepctblack", "racePctAsian", "racePctHisp"]


class Communities(NamedTuple):
    """Rows of Communities and Crime and the percentages that groups are made of."""

    X: pd.DataFrame
    y: pd.Series
    percentages: pd.DataFrame
    source: str


def communities(random_state: int = 0) -> Communities:
    """Return Communities and Crime, or generated rows where its file is not there.

    Parameters
    ----------
    random_state : int, default=0
        The seed of generated rows.
    """
    folder = Path(os.environ.setdefault(_FOLDER, str(_BESIDE_THE_PROJECT)))
    if folder.is_dir():
        bunch = fetch_communities()
        X, y = bunch.data.reset_index(drop=True), bunch.target.reset_index(drop=True)
        return Communities(X, y, X[_PERCENTAGES], f"{len(y)} communities")
    values, labels, _ = make_biased_classification(2000, 20, gap=0.4, random_state=random_state)
    names = [*_PERCENTAGES, *(f"x{k}" for k in range(17))]
    X = pd.DataFrame(values, columns=names)
    y = pd.Series(labels, name="label")
    return Communities(X, y, X[_PERCENTAGES], f"{len(y)} generated rows")
