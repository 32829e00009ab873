"""Reading a table, and deciding what its columns are."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

_DELIMITERS = ",;\t|"  # a header without them may have spaces, or one column
_IDENTIFIER = 0.5  # a column of text with more distinct values per row is not a category
_MOST_CATEGORIES = 30  # of a column; rarer ones are put together
MOST_GROUPS = 50  # values of a sensitive column


class DataError(Exception):
    """The file, or an argument about it, is not usable; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose columns have roles.

    Attributes
    ----------
    X : DataFrame
        The features and the sensitive columns.
    y : Series
        The values of the target: as in the file where classifiers accept them, else as text.
    numbers, categories : list of str
        The features by type.
    left_out : list of str
        Columns of text that are neither: identifiers, dates, free text.
    no_values : list of str
        Columns whose values are neither numbers nor text: lists, durations.
    positive, negative : str, int or bool
        The values of the target, as in `y`.
    n_without_target : int
        Rows that were left out because their target is missing.
    labels_in_text : bool
        Whether numbers of the target are text in `y`: classifiers do not take fractions.
    """

    X: pd.DataFrame
    y: pd.Series
    numbers: list[str]
    categories: list[str]
    left_out: list[str]
    no_values: list[str]
    positive: Any
    negative: Any
    n_without_target: int
    labels_in_text: bool

    def encoder(self) -> ColumnTransformer:
        """Return the encoding of the features; sensitive columns pass through."""
        numbers = SimpleImputer(strategy="median")
        missing = MissingIndicator(error_on_new=False)
        categories = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="missing"),
            OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=_MOST_CATEGORIES,
                sparse_output=False,
            ),
        )
        used = [
            ("numbers", numbers, self.numbers),
            ("missing", missing, self.numbers),
            ("categories", categories, self.categories),
        ]
        # The names of features begin with those of their encodings, so that no two are equal.
        features = ColumnTransformer([one for one in used if one[2]])
        columns = [*self.numbers, *self.categories]
        sensitive = [name for name in self.X if name not in columns]
        return ColumnTransformer(
            [("features", features, columns), ("sensitive", "passthrough", sensitive)],
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")


def read_table(path: str) -> pd.DataFrame:
    """Return the table of a CSV or Parquet file.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    file = Path(path)
    try:
        if {".parquet", ".pq"} & set(file.suffixes):
            frame = pd.read_parquet(file)
        else:
            frame = _read_csv(file, _delimiter(file))
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}: check the path.") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path} is empty: give a file with the names of its columns.") from error
    except (OSError, ValueError, ImportError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV or Parquet: {error}") from error
    if not len(frame):
        raise DataError(f"{path} has no rows below the names of its columns.")
    return frame


def _read_csv(file: Path, delimiter: str) -> pd.DataFrame:
    """Return the table with the names that the file has: pandas numbers repeated ones."""
    options: dict[str, Any] = {"sep": delimiter, "engine": "python"}
    frame = pd.read_csv(file, **options)
    header = pd.read_csv(file, header=None, nrows=1, dtype=str, na_filter=False, **options)
    names = header.iloc[0].str.strip()
    return frame.set_axis(names.where(names != "", frame.columns.to_numpy()).to_list(), axis=1)


def _delimiter(file: Path) -> str:
    """Return what separates the columns: of the usual characters, the one that the header has."""
    if ".tsv" in file.suffixes:
        return "\t"
    first = pd.read_csv(
        file, sep="\0", header=None, nrows=1, dtype=str, na_filter=False, quoting=csv.QUOTE_NONE
    )
    header = re.sub(r'"[^"]*"', "", str(first.iat[0, 0])).strip()
    usual = max(_DELIMITERS, key=header.count)
    return " " if usual not in header and " " in header else usual


def _check_columns(frame: pd.DataFrame, target: str, sensitive: Sequence[str]) -> None:
    """Raise a DataError if a column is missing or named twice, or the target is sensitive too."""
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise DataError(
            f"The file has several columns of the name {', '.join(map(str, repeated))}: give every "
            "column a name of its own."
        )
    if len(set(sensitive)) < len(sensitive):
        raise DataError(f"--sensitive {' '.join(sensitive)}: name every column once.")
    for name, columns in (("--target", [target]), ("--sensitive", sensitive)):
        for column in columns:
            if column not in frame.columns:
                raise DataError(
                    f"{name} {column}: the file has no such column. It has: "
                    f"{', '.join(map(str, frame.columns))}."
                )
    if target in sensitive:
        raise DataError(
            f"--target {target}: the column is also in --sensitive; leave it out of one of them."
        )


def with_roles(
    frame: pd.DataFrame, target: str, positive: str | None, sensitive: Sequence[str]
) -> Table:
    """Return the table with the roles of its columns.

    Parameters
    ----------
    frame : DataFrame
        What was read.
    target : str
        The column to predict.
    positive : str or None
        The favourable value of the target, as it is written in the file; None if the target is
        0 and 1, or false and true.
    sensitive : sequence of str
        The columns that make the groups.

    Raises
    ------
    DataError
        If a column is missing, the target does not have two values, or a sensitive column has too
        many or only one.
    """
    _check_columns(frame, target, sensitive)
    known = frame[frame[target].notna()].rename(columns=str)
    y, labels = _labels(known[target], target, positive)
    features = known.drop(columns=[target, *sensitive])
    no_values = [name for name in map(str, features) if _no_values(features[name])]
    features = features.drop(columns=no_values)
    numbers = [name for name in map(str, features) if _is_number(features[name])]
    text = [name for name in map(str, features) if name not in numbers]
    few = [name for name in text if features[name].nunique() <= _IDENTIFIER * len(features)]
    left_out = [name for name in text if name not in few]
    if not numbers and not few:
        raise DataError(
            "No features are left: all columns are the target, sensitive, or text with a different "
            "value in most rows. Give a file with numbers or categories."
        )
    groups = known[list(sensitive)].apply(_as_text)
    for name in sensitive:
        n_values = groups[name].nunique()
        if n_values > MOST_GROUPS:
            raise DataError(
                f"--sensitive {name}: the column has {n_values} values, and every group "
                "needs many rows. Bin its values first, for example with pandas.cut."
            )
        groups[name] = groups[name].fillna("missing")
    if len(groups.drop_duplicates()) < 2:
        raise DataError(
            f"--sensitive {' '.join(sensitive)}: all rows are in one group, and groups are "
            "compared with each other. Name a column with two values or more."
        )
    features = features[[*numbers, *few]].astype(dict.fromkeys(numbers, float))
    features[few] = features[few].apply(_as_text)
    return Table(
        pd.concat([features, groups], axis=1),
        y,
        numbers,
        few,
        left_out,
        no_values,
        *labels,
        len(frame) - len(known),
        _is_number(known[target]) and y.dtype == object,
    )


def _no_values(column: pd.Series) -> bool:
    """Return whether values are durations, or cannot be compared, as lists."""
    if pd.api.types.is_timedelta64_dtype(column):
        return True
    try:
        column.nunique()
    except TypeError:
        return True
    return False


def _is_number(column: pd.Series) -> bool:
    """Return whether values are numbers, or true and false, some of them perhaps missing."""
    return pd.api.types.is_numeric_dtype(column) or infer_dtype(column) == "boolean"


def _as_text(column: pd.Series) -> pd.Series:
    """Return the values as text; missing ones as nan."""
    return column.astype(object).map(str, na_action="ignore").where(column.notna(), np.nan)


def _labels(
    values: pd.Series, target: str, positive: str | None
) -> tuple[pd.Series, tuple[Any, Any]]:
    """Return the labels, and which of them is the positive one and which the negative one."""
    texts = values.map(_as_written)
    found = sorted(texts.unique())
    if len(found) != 2:
        shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise DataError(
            f"--target {target}: the column must have two values; it has {len(found)} ({shown})."
        )
    if positive is None:
        positive = {("0", "1"): "1", ("False", "True"): "True"}.get(tuple(found))
        if positive is None:
            raise DataError(
                f"--target {target} has the values {found[0]} and {found[1]}. Name the favourable "
                f"one, for example with --positive {found[1]!r}."
            )
    positive = _same_value(positive, found)
    if positive not in found:
        raise DataError(
            f"--positive {positive}: {target} has only the values {found[0]} and {found[1]}."
        )
    labels, selected = _as_labels(values, texts), texts == positive
    sides = [labels[side].iloc[[0]].tolist()[0] for side in (selected, ~selected)]
    return labels, (sides[0], sides[1])


def _as_labels(values: pd.Series, texts: pd.Series) -> pd.Series:
    """Return the two values of the target if they are text, whole numbers or bools; else texts."""
    labels = pd.Series(values.tolist(), values.index, name=str(values.name))
    if pd.api.types.is_float_dtype(labels) and (labels % 1.0 == 0.0).all():
        labels = labels.astype(int)
    kinds = {type(label) for label in labels.tolist()}
    accepted = len(kinds) == 1 and kinds < {str, int, bool} and labels.nunique() == 2
    return labels if accepted else texts.astype(object)


def _as_written(value: object) -> str:
    """Return a value as text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _same_value(text: str, found: Sequence[str]) -> str:
    """Return the one of the values that a text means: 1.0 is 1, and true is True."""
    forms = [text, text.strip()]
    with suppress(ValueError):
        forms.append(_as_written(float(text)))
    if set(found) == {"False", "True"}:
        forms.append(text.capitalize())
    return next((form for form in forms if form in found), text)
