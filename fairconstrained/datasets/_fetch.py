"""Loaders of benchmark data sets of the fairness literature.

The ``fetch_*`` functions read files from the folder in the environment variable
``FAIRCONSTRAINED_DATA``. If it is not set, they download the data from OpenML. Both sources give
the same table, with the rows in the same order.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse as sp
from sklearn.datasets import fetch_openml, load_svmlight_file
from sklearn.utils import Bunch

from fairconstrained.utils.parameter_constraints import checked

_FOLDER = "FAIRCONSTRAINED_DATA"
_N_TRAIN, _N_TEST, _TRAIN_POSITIVES = 32561, 16281, 7841  # UCI's split of Adult
_SUBSETS = {"all": slice(None), "train": slice(_N_TRAIN), "test": slice(_N_TRAIN, None)}
_Part = Literal["all", "train", "test"]
_Dir = str | os.PathLike[str] | None


@dataclass(frozen=True)
class _Source:
    """The source of a data set, and how to convert its table to data, target and groups."""

    descr: str
    files: tuple[str, ...]
    label: str
    sensitive: Callable[[Any], pd.DataFrame | pd.Series]
    positive: Callable[[pd.Series], pd.Series] = lambda label: pd.to_numeric(label) > 0
    target_names: tuple[str, str] = ("no", "yes")
    features: str = ""  # if empty: all columns of the table except those in `drop`
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
_BANK = _Source(
    descr="Bank Marketing, UCI, https://archive.ics.uci.edu/dataset/222, licence CC BY 4.0.",
    files=("bank-full.csv.gz",),
    label="y",
    sensitive=_bank_groups,
    positive=lambda y: y.isin(["yes", "2"]),  # OpenML's copy has the labels 1 and 2
    openml={"data_id": 1461},
    openml_columns="age job marital education default balance housing loan contact day month "
    "duration campaign pdays previous poutcome",
)
_BANK_ADDITIONAL = replace(_BANK, files=("bank-additional-full.csv.gz",), openml=None)
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


def _fetch(source: _Source, return_X_y: bool, data_home: _Dir, subset: str = "all") -> Any:
    """Load a data set, select its rows and convert it to the result of a ``fetch_*`` function."""
    folder = os.environ.get(_FOLDER)
    table, label = _from_folder(source, Path(folder)) if folder else _from_openml(source, data_home)
    target = source.positive(label).astype(int).rename(source.label)
    index = _train_first(target)[_SUBSETS[subset]] if source.uci_split else np.arange(len(target))
    if source.rows is not None:
        index = index[source.rows(table)]
    data, target = _select(source, table, index), target.iloc[index].reset_index(drop=True)
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
                f"No file {name!r} in {str(folder)!r}, the folder in the environment variable "
                f"{_FOLDER}. The source of the file: {source.descr}"
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
            f"{' and '.join(source.files)} must be comma-separated and have a header row with "
            f"the label {source.label!r}; found the columns {list(table.columns[:5])} ..."
        )
    return table, table.pop(source.label)


def _from_openml(source: _Source, data_home: _Dir) -> tuple[Any, pd.Series]:
    advice = (
        f"To read it from a folder instead, save it there as {' and '.join(source.files)} and set "
        f"the environment variable {_FOLDER} to the folder. The source: {source.descr}"
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
    """Return the order of rows with UCI's training part first. The order differs among copies."""
    rows = np.arange(len(target))
    for order in (rows, np.roll(rows, -_N_TEST)):
        figures = len(rows), target.iloc[order[:_N_TRAIN]].sum()
        if figures == (_N_TRAIN + _N_TEST, _TRAIN_POSITIVES):
            return order
    raise ValueError(
        f"Expected UCI's {_N_TRAIN} training rows, {_TRAIN_POSITIVES} of them positive, and its "
        f"{_N_TEST} test rows, in either order; found {len(rows)} rows, {target.sum()} positive."
    )


def _select(
    source: _Source, table: pd.DataFrame | sp.csr_matrix, index: np.ndarray
) -> pd.DataFrame | sp.csr_matrix:
    """Return the features of some rows, with numeric and categorical columns."""
    if not isinstance(table, pd.DataFrame):
        return sp.csr_matrix(table, dtype=float)[index]
    names = source.features.split() or table.columns.difference(source.drop.split(), sort=False)
    data = pd.DataFrame(
        {name: _numeric_or_categorical(table[name].astype(object)) for name in names}
    )
    data = data.iloc[index].reset_index(drop=True)
    return data.dropna(axis="columns") if source.drop_missing else data


def _numeric_or_categorical(column: pd.Series) -> Any:
    try:
        return pd.to_numeric(column).to_numpy()
    except ValueError:
        return pd.Categorical(column)


@checked
def fetch_adult(*, subset: _Part = "all", return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load Adult (48,842 x 14): predict whether a person earns more than 50,000 dollars a year.

    Missing values are NaN. Sensitive features: ``sex`` and ``race``.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        The part of UCI's split; "all" is the training part followed by the test part.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    data_home : str or path-like, default=None
        The cache folder for OpenML, as in :func:`sklearn.datasets.fetch_openml`.

    Returns
    -------
    Bunch or tuple
        ``data`` (the features, including the sensitive ones; text columns have dtype ``category``),
        ``target`` (0 or 1), ``sensitive_features``, ``feature_names``, ``target_names``, ``frame``
        (None), ``DESCR`` and, if the function has a parameter ``subset``, ``split`` ("train" or
        "test" for each row).

    Raises
    ------
    ValueError
        If an argument is not valid.
    FileNotFoundError
        If a file is missing in the folder ``FAIRCONSTRAINED_DATA``, or if that is not set and
        OpenML has no copy.

    Examples
    --------
    >>> from fairconstrained.datasets import fetch_adult
    >>> X, y = fetch_adult(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(_ADULT, return_X_y, data_home, subset)


@checked
def fetch_bank(
    *,
    version: Literal["full", "additional"] = "full",
    return_X_y: bool = False,
    data_home: _Dir = None,
) -> Any:
    """Load Bank Marketing: predict whether a client who is called subscribes to a deposit.

    "unknown" is a separate category, as in UCI's documentation. Sensitive features: ``age``
    ("25-60" or "other") and ``marital`` ("single" or "not single"). The feature ``duration`` is
    known only after the call. Papers use it, but a model for decisions before the call must not.

    Parameters
    ----------
    version : {"full", "additional"}, default="full"
        "full" has shape 45,211 x 16; "additional" has shape 41,188 x 20 and is not on OpenML.
    return_X_y, data_home
        See :func:`fetch_adult`, also for what is returned.
    """
    return _fetch(_BANK if version == "full" else _BANK_ADDITIONAL, return_X_y, data_home)


@checked
def fetch_compas(*, filtered: bool = True, return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load COMPAS (6,172 x 9): predict whether a defendant is charged again within two years.

    Only features that are known at the screening are kept. ProPublica's columns on later events
    contain the label, and the COMPAS scores are the output of another model. Sensitive features:
    ``race`` and ``sex``. The copies on OpenML differ: they are encoded and have 5,278 rows, or they
    have another label.

    Parameters
    ----------
    filtered : bool, default=True
        Apply ProPublica's filter: charged within 30 days of the screening, known outcome, no
        ordinary traffic offence, score present. Without the filter there are 7,214 rows.
    return_X_y, data_home
        See :func:`fetch_adult`, also for what is returned.
    """
    return _fetch(_COMPAS if filtered else replace(_COMPAS, rows=None), return_X_y, data_home)


@checked
def fetch_law_school(*, return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load Law School (20,798 x 11): predict whether a student passes the bar exam.

    Sensitive features: ``race`` (White or Non-White) and ``male`` (1 or 0). The copy on OpenML,
    law-school-admission-bianry, lacks ``zfygpa`` and ``zgpa`` and has another label.

    Parameters
    ----------
    return_X_y, data_home
        See :func:`fetch_adult`, also for what is returned.
    """
    return _fetch(_LAW_SCHOOL, return_X_y, data_home)


@checked
def fetch_communities(
    *, drop_missing: bool = True, return_X_y: bool = False, data_home: _Dir = None
) -> Any:
    """Load Communities and Crime (1,994 x 99): predict a high rate of violent crime.

    Rows are communities. The positive class is above the 70th percentile of violent crimes per
    inhabitant. Sensitive feature: ``racepctblack``, "high" if the normalized share exceeds 0.06,
    else "low".

    Parameters
    ----------
    drop_missing : bool, default=True
        Drop the 23 of 122 features that have missing values.
    return_X_y, data_home
        See :func:`fetch_adult`, also for what is returned.
    """
    return _fetch(replace(_COMMUNITIES, drop_missing=drop_missing), return_X_y, data_home)


@checked
def fetch_a9a(*, subset: _Part = "train", return_X_y: bool = False, data_home: _Dir = None) -> Any:
    """Load a9a, LIBSVM's version of Adult, as a sparse CSR matrix of 123 binary features.

    Sensitive feature: ``sex`` ("Female" or "Male").

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 32,561 training rows, the 16,281 test rows, or both in this order.
    return_X_y, data_home
        See :func:`fetch_adult`, also for what is returned.
    """
    return _fetch(_A9A, return_X_y, data_home, subset)
