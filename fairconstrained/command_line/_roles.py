"""What the columns of a table are: features, groups, weights, the target."""

import re
import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype
from pandas.tseries.api import guess_datetime_format
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fairconstrained.command_line._files import DataError
from fairconstrained.utils.arrays import Array

_IDENTIFIER = 0.5  # a column of text with more distinct values per row is not a category
_MOST_CATEGORIES = 30  # of a column; rarer ones are put together
_MOST_GROUPS = 50  # values of a sensitive column
_CHECKED_DATES = 100  # values of a column; a column is of dates if the first ones are
_NUMBER, _CATEGORY = "number", "category"
_SIGN = r"\s*[%‰$€£¥]"
_WITH_UNIT = rf"[+-]?(?:{_SIGN}\s*[+-]?\d[\d.,]*|\d[\d.,]*{_SIGN})"
_NO_VALUES = "their values are neither numbers nor text"
_UNITS = "they are numbers with a unit, such as % or $: write them as numbers"
_NO_DATES = "they are dates, which models take as numbers only, such as ages or durations"


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose columns have roles."""

    X: pd.DataFrame  # the features, and the columns in `passed`
    # the values of the target: as in the file where classifiers accept them, else as text
    y: pd.Series
    groups: pd.DataFrame  # the sensitive columns as text
    control: pd.DataFrame | None  # the columns of strata as text
    weight: pd.Series | None
    # the features by type, and the sensitive columns that the model reads groups from
    numbers: list[str]
    categories: list[str]
    passed: list[str]
    positive: Any  # the values of the target, as in `y`
    negative: Any
    left_out: list[str]  # which columns and how many rows are left out, in sentences

    def take(self, rows: Array) -> Self:
        """Return some rows."""
        kinds = pd.DataFrame | pd.Series
        parts: Any = {
            k: part.iloc[rows] for k, part in vars(self).items() if isinstance(part, kinds)
        }
        return replace(self, **parts)

    def row_data(self) -> dict[str, Any]:
        """Return what `fit` takes beside X and y; a model may read groups from X."""
        return {
            "sensitive_features": None if self.passed else self.groups,
            "control_features": self.control,
            "sample_weight": self.weight,
        }

    def encoder(self) -> ColumnTransformer:
        """Return the encoding of the features; columns with groups pass through."""
        numbers, categories = self.numbers, self.categories
        rare: Any = {"handle_unknown": "infrequent_if_exist", "max_categories": _MOST_CATEGORIES}
        encoding = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="missing"),
            OneHotEncoder(sparse_output=False, **rare),
        )
        encodings = [
            ("numbers", SimpleImputer(strategy="median"), numbers),
            ("missing", MissingIndicator(error_on_new=False), numbers),
            ("categories", encoding, categories),
        ]
        # The names of features begin with those of their encodings, so that no two are equal.
        features = ("features", ColumnTransformer(encodings), [*numbers, *categories])
        used = [features, ("sensitive", "passthrough", self.passed)]
        encoder = ColumnTransformer(used, verbose_feature_names_out=False)
        return encoder.set_output(transform="pandas")


def with_roles(frame: pd.DataFrame, options: Namespace, classifier: Any) -> Table:
    """Return the table with the roles that the options give its columns.

    The sensitive columns may be features, and the classifier may read groups from them.
    """
    frame = frame.rename(columns=str)
    _check_columns(frame, options)
    target, sensitive = options.target, list(options.sensitive)
    rows = frame[frame[target].notna()]
    counts = {"without a target": len(frame) - len(rows)}
    weight = None if options.weight is None else rows[options.weight]
    if weight is not None:
        inside = is_numeric_dtype(weight) and weight.between(0.0, np.inf, inclusive="left").all()
        if not (inside and weight.any()):
            raise DataError(
                f"--weight {options.weight}: the column must have numbers >= 0 in all rows, and "
                "not only 0."
            )
        counts["of weight 0"] = int((weight == 0.0).sum())
        rows, weight = rows[weight > 0.0], weight[weight > 0.0]
    y, positive, negative = _labels(rows[target], target, options.positive)
    others = [target, *options.drop, *([] if weight is None else [options.weight])]
    kinds: dict[str, list[str]] = {}
    for name in rows.columns.drop(others + sensitive * (not classifier.use_sensitive)):
        kinds.setdefault(_kind(name, rows[name]), []).append(name)
    numbers, categories = kinds.pop(_NUMBER, []), kinds.pop(_CATEGORY, [])
    left_out = [f"Left out, since {why}: {', '.join(names)}." for why, names in kinds.items()]
    if not numbers and not categories:
        why = " ".join(["No features are left.", *left_out])
        raise DataError(f"{why} Give a file with numbers or categories.")
    features = rows[[*numbers, *categories]].astype(dict.fromkeys(numbers, float))
    if infinite := [name for name in numbers if np.isinf(features[name]).any()]:
        raise DataError(
            f"The columns {', '.join(infinite)} have infinite values. Replace these in the file, "
            f"or leave the columns out: --drop {' '.join(map(quote, infinite))}."
        )
    features[categories] = features[categories].apply(_as_text)
    left_out += [f"Left out: {n} row{'s' * (n > 1)} {why}." for why, n in counts.items() if n]
    passed = sensitive if classifier.group_interactions else []
    X = features.assign(**rows[[name for name in passed if name not in features]])
    groups = _groups(rows[sensitive], "sensitive")
    if len(groups.drop_duplicates()) < 2:
        raise DataError(
            f"--sensitive {' '.join(sensitive)}: all rows are in one group, and groups are "
            "compared with each other. Name a column with two values or more."
        )
    control = _groups(rows[options.control], "control") if options.control else None
    return Table(
        X, y, groups, control, weight, numbers, categories, passed, positive, negative, left_out
    )


def _check_columns(frame: pd.DataFrame, options: Namespace) -> None:
    """Raise a DataError if a column is missing, or has several roles or a repeated name."""
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise DataError(
            f"The file has several columns of the name {', '.join(repeated)}: give every "
            "column a name of its own."
        )
    roles: dict[str, str] = {}
    for role in ("sensitive", "control", "target", "weight", "drop"):
        columns = getattr(options, role) or []
        for column in [columns] if isinstance(columns, str) else columns:
            where = f"--{role} {column}: "
            if column not in frame.columns:
                has = ", ".join(frame.columns)
                raise DataError(f"{where}the file has no such column. It has: {has}.")
            if column in roles:
                raise DataError(f"{where}the column is also in --{roles[column]}; choose one.")
            roles[column] = role


def _kind(name: str, column: pd.Series) -> str:
    """Return whether a column has numbers or categories, or else why it is left out."""
    values = column.dropna()
    kind = infer_dtype(values)
    try:
        distinct = pd.Series(values.unique())
    except TypeError:  # lists
        return _NO_VALUES
    if re.fullmatch(r"Unnamed: \d+", name):
        return "the file gives them no name"
    if not len(distinct):
        return "they are empty"
    if is_numeric_dtype(column) or kind in ("boolean", "decimal"):
        different = len(distinct) == len(column)
        identifies = different and _identify(distinct.astype(float))
        return "every row has another value" if identifies else _NUMBER
    if kind.startswith("timedelta"):
        return _NO_VALUES
    if kind.startswith(("date", "period")) or all(map(_is_date, distinct[:_CHECKED_DATES])):
        return _NO_DATES
    if distinct.astype(str).str.strip().str.fullmatch(_WITH_UNIT).all():
        return _UNITS
    if len(distinct) <= _IDENTIFIER * len(column):
        return _CATEGORY
    return "almost every row has another text"


def _identify(numbers: pd.Series) -> bool:
    """Return whether different numbers are identifiers: whole, and in order, dense or equally long.

    Amounts of money may be whole and different as well.
    """
    ordered = numbers.is_monotonic_increasing or numbers.is_monotonic_decreasing
    dense = np.ptp(numbers) < 2.0 * len(numbers)
    long = numbers.map("{:.0f}".format).str.len()
    return bool((numbers % 1.0 == 0.0).all() and (ordered or dense or long.nunique() == 1))


def _is_date(value: object) -> bool:
    text = str(value).strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the day comes first
        return any(guess_datetime_format(text, dayfirst=first) for first in (False, True))


def _groups(columns: pd.DataFrame, role: str) -> pd.DataFrame:
    """Return columns of groups or strata as text, without spaces around it; blanks are missing."""
    texts = columns.apply(lambda column: _as_text(column).str.strip())
    texts = texts.where(texts != "")
    for name, n_values in texts.nunique().items():
        if n_values > _MOST_GROUPS:
            raise DataError(
                f"--{role} {name}: the column has {n_values} values, and every group "
                "needs many rows. Bin its values first, for example with pandas.cut."
            )
    return texts


def _as_text(column: pd.Series) -> pd.Series:
    """Return the values as text, numbers without ".0" if all are whole; missing ones as nan."""
    values = column.convert_dtypes().astype(object)
    return values.map(str, na_action="ignore").where(column.notna(), np.nan)


def _labels(values: pd.Series, target: str, positive: str | None) -> tuple[pd.Series, Any, Any]:
    """Return the labels, the positive one and the negative one."""
    texts = values.map(_as_written)
    present = sorted(texts.unique())
    several = f"{len(present)} values ({', '.join(present[:5])}{', ...' * (len(present) > 5)})"
    if len(present) < 2:
        raise DataError(
            f"--target {target}: the column must have two values; it has "
            f"{' '.join(present) or 'missing values'} only."
        )
    if positive is None:
        positive = {("0", "1"): "1", ("False", "True"): "True"}.get(tuple(present))
    if positive is None:
        choice = " or ".join(f"--positive {quote(value)}" for value in present[:5])
        raise DataError(f"--target {target} has {several}. Name the favourable one, as {choice}.")
    positive = same_value(positive, present)
    if positive not in present:
        raise DataError(f"--positive {positive}: {target} has only the {several}.")
    spellings = [value for value in present if value.casefold() == positive.casefold()]
    if len(spellings) > 1 and len(present) > 2:  # the others would be taken for the other label
        named = " and ".join(spellings)
        raise DataError(f"--target {target} has {named}. Are they the same? Then spell them alike.")
    selected = texts == positive
    # Two values stay what they are if they are text, whole numbers or bools.
    labels = pd.Series(values.tolist(), values.index, name=target)
    if pd.api.types.is_float_dtype(labels) and (labels % 1.0 == 0.0).all():
        labels = labels.astype(int)
    kinds = set(map(type, labels.tolist()))
    if len(kinds) > 1 or not kinds < {str, int, bool} or labels.nunique() != 2:
        rest = texts if len(present) == 2 else f"not {positive}"
        labels = texts.where(selected, rest).astype(object)
    return labels, *(labels[side].iloc[[0]].tolist()[0] for side in (selected, ~selected))


def _as_written(value: object) -> str:
    """Return a value as text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def same_value(text: str, present: Sequence[str]) -> str:
    """Return the one of the values that a text means: 1.0 is 1, and true is True."""
    forms = [text, text.strip()]
    with suppress(ValueError):
        forms.append(_as_written(float(text)))
    if set(present) == {"False", "True"}:
        forms.append(text.capitalize())
    return next((form for form in forms if form in present), text)
