"""Benchmark data sets of the fairness literature.

Every ``fetch_*`` function reads its files from the folder that the environment variable
``FAIRCONSTRAINED_DATA`` names and, where that is not set, asks OpenML. Both give the same table,
with its rows in the same order. Generated data are in :mod:`fairconstrained.generators`.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import sparse as sp
from sklearn.datasets import fetch_openml, load_svmlight_file
from sklearn.utils import Bunch

from fairconstrained.datasets._synthetic import make_biased_classification

__all__ = [
    "fetch_a9a",
    "fetch_adult",
    "fetch_bank",
    "fetch_communities",
    "fetch_compas",
    "fetch_law_school",
    "make_biased_classification",
]

_FOLDER = "FAIRCONSTRAINED_DATA"
_N_TRAIN, _N_TEST, _TRAIN_POSITIVES = 32561, 16281, 7841  # UCI's split of Adult
_SUBSETS = {"all": slice(None), "train": slice(_N_TRAIN), "test": slice(_N_TRAIN, None)}
_Dir = str | os.PathLike[str] | None
_Fetcher = TypeVar("_Fetcher", bound=Callable[..., Any])


def _above_zero(label: pd.Series) -> pd.Series:
    return pd.to_numeric(label) > 0


@dataclass(frozen=True)
class _Source:
    """Where a data set comes from and how its table becomes data, target and groups."""

    descr: str
    files: tuple[str, ...]
    label: str
    sensitive: Callable[[Any], pd.DataFrame | pd.Series]
    positive: Callable[[pd.Series], pd.Series] = _above_zero
    target_names: tuple[str, str] = ("no", "yes")
    features: str = ""  # none named: every column of the table but those in `drop`
    drop: str = ""
    drop_missing: bool = False
    rows: Callable[[pd.DataFrame], pd.Series] | None = None
    uci_split: bool = False
    sparse: bool = False
    openml: Mapping[str, Any] | None = None
    openml_columns: str = ""  # names for OpenML's anonymous columns


def _standard_compas_filter(table: pd.DataFrame) -> pd.Series:
    in_time = table["days_b_screening_arrest"].between(-30, 30)
    no_traffic = table["c_charge_degree"] != "O"
    return in_time & no_traffic & (table["is_recid"] != -1) & table["score_text"].notna()


def _bank_groups(data: pd.DataFrame) -> pd.DataFrame:
    age = np.where(data["age"].between(25, 60), "25-60", "other")
    marital = np.where(data["marital"] == "single", "single", "not single")
    return pd.DataFrame({"age": age, "marital": marital})


def _a9a_sex(data: sp.csr_matrix) -> pd.Series:
    female, male = data[:, [71, 72]].toarray().T
    if not np.array_equal(female + male, np.ones(len(male))):
        raise ValueError("a9a: features 72 (female) and 73 (male) are not exclusive.")
    return pd.Series(np.where(female > 0, "Female", "Male"), name="sex")


_ADULT = _Source(
    descr="Adult, UCI, https://archive.ics.uci.edu/dataset/2/adult, licence CC BY 4.0.",
    files=("adult.csv.gz",),
    label="income",
    sensitive=lambda data: data[["sex", "race"]],
    positive=lambda income: income == ">50K",
    target_names=("<=50K", ">50K"),
    drop="split",
    uci_split=True,
    openml={"name": "adult", "version": 2},
)
_BANK_FULL = _Source(
    descr="Bank Marketing, UCI, https://archive.ics.uci.edu/dataset/222, licence CC BY 4.0.",
    files=("bank-full.csv.gz",),
    label="y",
    sensitive=_bank_groups,
    positive=lambda y: y.isin(["yes", "2"]),  # OpenML's copy says 1 and 2
    openml={"data_id": 1461},
    openml_columns="age job marital education default balance housing loan contact day month "
    "duration campaign pdays previous poutcome",
)
_BANK = {
    "full": _BANK_FULL,
    "additional": replace(_BANK_FULL, files=("bank-additional-full.csv.gz",), openml=None),
}
_COMPAS = _Source(
    descr="COMPAS, https://github.com/propublica/compas-analysis (compas-scores-two-years.csv), "
    "no licence stated.",
    files=("compas-two-years.csv.gz",),
    label="two_year_recid",
    sensitive=lambda data: data[["race", "sex"]],
    features="age age_cat sex race juv_fel_count juv_misd_count juv_other_count priors_count "
    "c_charge_degree",
    rows=_standard_compas_filter,
)
_LAW_SCHOOL = _Source(
    descr="Law School, LSAC, cleaned by Le Quy et al. (2022), no licence stated, "
    "https://github.com/tailequy/fairness_dataset (law_school_clean.csv).",
    files=("law-school.csv.gz",),
    label="pass_bar",
    sensitive=lambda data: data[["race", "male"]],
)
_COMMUNITIES = _Source(
    descr="Communities and Crime, UCI, https://archive.ics.uci.edu/dataset/183, licence CC BY 4.0.",
    files=("communities.csv.gz",),
    label="ViolentCrimesPerPop",
    sensitive=lambda data: (data["racepctblack"] > 0.06).map({True: "high", False: "low"}),
    positive=lambda rate: rate > rate.quantile(0.7),
    target_names=("at most the 70th percentile", "above the 70th percentile"),
    drop="state county community communityname fold",
    openml={"name": "us_crime", "version": 1},
)
_A9A = _Source(
    descr="a9a, https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html, from UCI's "
    "Adult, licence CC BY 4.0.",
    files=("a9a.svmlight.gz", "a9a.t.svmlight.gz"),
    label="income",
    sensitive=_a9a_sex,
    target_names=("<=50K", ">50K"),
    features=" ".join(f"x{i}" for i in range(1, 124)),
    uci_split=True,
    sparse=True,
    openml={"name": "a9a", "version": 1},
)


def _check_choice(name: str, value: object, valid: Iterable[str]) -> None:
    if value not in list(valid):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}; got {value!r}.")


def _fetch(source: _Source, return_X_y: bool, data_home: _Dir, subset: str = "all") -> Any:
    """Load, select, convert: the one road from a source to what a ``fetch_*`` returns."""
    _check_choice("subset", subset, _SUBSETS)
    folder = os.environ.get(_FOLDER)
    table, label = _from_folder(source, Path(folder)) if folder else _from_openml(source, data_home)
    target = source.positive(label).astype(int).rename(source.label)
    index = _train_first(target)[_SUBSETS[subset]] if source.uci_split else np.arange(len(target))
    if source.rows is not None:
        index = index[source.rows(table)]
    data, target = _tidy(source, table, index), target.iloc[index].reset_index(drop=True)
    if return_X_y:
        return data, target
    bunch = Bunch(
        data=data,
        target=target,
        sensitive_features=source.sensitive(data),
        feature_names=list(getattr(data, "columns", source.features.split())),
        target_names=list(source.target_names),
        frame=None,
        DESCR=source.descr,
    )
    if source.uci_split:
        split = np.repeat(["train", "test"], [_N_TRAIN, _N_TEST])[_SUBSETS[subset]]
        bunch.split = pd.Series(split, name="split")
    return bunch


def _from_folder(source: _Source, folder: Path) -> tuple[Any, pd.Series]:
    for name in source.files:
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"No file {name!r} in {str(folder)!r}, the folder that the environment variable "
                f"{_FOLDER} names. It is from: {source.descr}"
            )
    paths = [folder / name for name in source.files]
    if source.sparse:
        width = len(source.features.split())
        parts = [load_svmlight_file(path, n_features=width) for path in paths]
        matrices, labels = zip(*parts, strict=True)
        return sp.vstack(matrices, format="csr"), pd.Series(np.concatenate(labels))
    table = pd.concat([pd.read_csv(path, na_values=["?"]) for path in paths], ignore_index=True)
    if source.label not in table:
        raise ValueError(
            f"{' and '.join(source.files)} must be comma-separated with a header row that names "
            f"the label {source.label!r}; found the columns {list(table.columns[:5])} ..."
        )
    return table, table.pop(source.label)


def _from_openml(source: _Source, data_home: _Dir) -> tuple[Any, pd.Series]:
    advice = (
        f"To read it from a folder instead, save it there as {' and '.join(source.files)} and set "
        f"the environment variable {_FOLDER} to the folder. It is from: {source.descr}"
    )
    if source.openml is None:
        raise FileNotFoundError(f"OpenML has no usable copy of this data set. {advice}")
    try:
        bunch = fetch_openml(**source.openml, data_home=data_home, as_frame=not source.sparse)
    except OSError as error:
        error.add_note(advice)
        raise
    table = bunch.data
    if source.openml_columns:
        table = table.set_axis(source.openml_columns.split(), axis="columns")
    return table, pd.Series(bunch.target)


def _train_first(target: pd.Series) -> np.ndarray:
    """Order of the rows that puts UCI's training part first; copies differ in this."""
    rows = np.arange(len(target))
    for order in (rows, np.roll(rows, -_N_TEST)):
        found = len(rows), target.iloc[order[:_N_TRAIN]].sum()
        if found == (_N_TRAIN + _N_TEST, _TRAIN_POSITIVES):
            return order
    raise ValueError(
        f"Expected UCI's {_N_TRAIN} training rows, {_TRAIN_POSITIVES} of them positive, and its "
        f"{_N_TEST} test rows, in either order; found {len(rows)} rows, {target.sum()} positive."
    )


def _tidy(source: _Source, table: Any, index: np.ndarray) -> Any:
    if source.sparse:
        return sp.csr_matrix(table, dtype=float)[index]
    names = source.features.split() or table.columns.difference(source.drop.split(), sort=False)
    data = pd.DataFrame({name: _numbers_or_levels(table[name].astype(object)) for name in names})
    data = data.iloc[index].reset_index(drop=True)
    return data.dropna(axis="columns") if source.drop_missing else data


def _numbers_or_levels(column: pd.Series) -> Any:
    try:
        return pd.to_numeric(column).to_numpy()
    except ValueError:
        return pd.Categorical(column)


_SHARED_DOC = """
return_X_y : bool, default=False
    Return ``(data, target)`` instead of a Bunch.
data_home : str or path-like, default=None
    Cache folder for OpenML, as in :func:`sklearn.datasets.fetch_openml`.

Returns
-------
Bunch or tuple
    ``data`` (the features, sensitive ones included; text as ``category``), ``target`` (0 or 1),
    ``sensitive_features``, ``feature_names``, ``target_names``, ``frame`` (None), ``DESCR`` and,
    where there is a ``subset`` to choose, ``split`` ("train" or "test" for each row).

Raises
------
FileNotFoundError
    If the folder ``FAIRCONSTRAINED_DATA`` lacks a file, or it is not set and OpenML has no copy.

Examples
--------
>>> X, y = {name}(return_X_y=True)  # doctest: +SKIP
"""


def _documented(fetcher: _Fetcher) -> _Fetcher:
    """Append what the documentation of all fetchers has in common."""
    doc = inspect.getdoc(fetcher) or ""
    if "Parameters\n" not in doc:
        doc += "\n\nParameters\n----------"
    fetcher.__doc__ = doc + _SHARED_DOC.format(name=fetcher.__name__)
    return fetcher


@_documented
def fetch_adult(*, subset: str = "all", return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load Adult (48,842 x 14): does a person earn more than 50,000 dollars a year.

    Missing entries are NaN. Sensitive features: ``sex`` and ``race``.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which part of UCI's split; "all" is train followed by test.
    """
    return _fetch(_ADULT, return_X_y, data_home, subset)


@_documented
def fetch_bank(*, version: str = "full", return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load Bank Marketing: does a client called by a bank subscribe a deposit.

    "unknown" is a level of its own, as in UCI's documentation. Sensitive features: ``age``
    ("25-60" or "other") and ``marital`` ("single" or "not single"). ``duration`` is known only
    after the call: papers keep it, a model to be used before the call must not.

    Parameters
    ----------
    version : {"full", "additional"}, default="full"
        "full" is 45,211 x 16; "additional" is 41,188 x 20 and not on OpenML.
    """
    _check_choice("version", version, _BANK)
    return _fetch(_BANK[version], return_X_y, data_home)


@_documented
def fetch_compas(*, filtered: bool = True, return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load COMPAS (6,172 x 9): is a defendant charged again within two years.

    Only what is known at the screening is kept: ProPublica's columns on later events hold the
    label, and the COMPAS scores are another model's answer. Sensitive features: ``race`` and
    ``sex``. The copies on OpenML are encoded and have 5,278 rows, or have another label.

    Parameters
    ----------
    filtered : bool, default=True
        Apply ProPublica's filter, without which there are 7,214 rows: charged within 30 days of
        the screening, outcome known, not for an ordinary traffic offence, score present.
    """
    return _fetch(_COMPAS if filtered else replace(_COMPAS, rows=None), return_X_y, data_home)


@_documented
def fetch_law_school(*, return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load Law School (20,798 x 11): does a student pass the bar exam.

    Sensitive features: ``race`` (White or Non-White) and ``male`` (1 or 0). The copy on OpenML,
    law-school-admission-bianry, lacks ``zfygpa`` and ``zgpa`` and has another label.
    """
    return _fetch(_LAW_SCHOOL, return_X_y, data_home)


@_documented
def fetch_communities(
    *, drop_missing: bool = True, return_X_y: bool = False, data_home: _Dir = None
) -> Any:
    """Load Communities and Crime (1,994 x 99): does a community have much violent crime.

    The positive class is above the 70th percentile of violent crimes per inhabitant. Sensitive
    feature: ``racepctblack``, "high" above 0.06 (normalised), else "low".

    Parameters
    ----------
    drop_missing : bool, default=True
        Leave out the 23 of 122 features that have missing entries.
    """
    return _fetch(replace(_COMMUNITIES, drop_missing=drop_missing), return_X_y, data_home)


@_documented
def fetch_a9a(*, subset: str = "train", return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load a9a, LIBSVM's Adult, as a sparse CSR matrix of 123 binary features.

    Sensitive feature: ``sex`` ("Female" or "Male").

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        32,561 rows, 16,281 rows, or the first followed by the second.
    """
    return _fetch(_A9A, return_X_y, data_home, subset)
