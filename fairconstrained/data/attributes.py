"""The columns of sensitive attributes, from whatever a user holds them in."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_float_dtype

from fairconstrained.data.inputs import check_held, check_same_rows, check_titles
from fairconstrained.utils.arguments import as_frame
from fairconstrained.utils.arrays import Array, codes_in_blocks, unique_codes

Column = pd.Series | Array
MISSING = "missing"


def titles_of(columns: Sequence[Column], argument: str) -> list[str]:
    """Return the names of the columns of an argument, such as "sex", or what stands for one."""
    strata = argument == _ARGUMENTS[1]
    alone, several = ("stratum", "stratum {}") if strata else ("sensitive features", "attribute {}")
    unnamed = alone if len(columns) == 1 else several
    names = [getattr(column, "name", None) for column in columns]
    return [name if isinstance(name, str) else unnamed.format(k) for k, name in enumerate(names)]


def names_of_columns(values: object) -> tuple[str, ...]:
    """Return the names of a frame's columns, if they are different strings; else none."""
    names = tuple(getattr(as_frame(values), "columns", ()))
    named = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return names if named else ()


_STRATA = "groups and strata"
_ARGUMENTS = ["sensitive_features", "control_features"]


def with_strata(sensitive_features: Any, control_features: Any) -> Any:
    """Return groups and strata as a frame that can be passed wherever groups are.

    Groups are then compared among the rows of each stratum. ``fit(..., control_features=strata)``
    does the same; displays, scorers and rows for validation take the frame.

    Parameters
    ----------
    sensitive_features : array-like, DataFrame or None
        The groups; None where an estimator reads them from its `sensitive_columns`.
    control_features : array-like, DataFrame or None
        The strata: rows of equal values in all columns are a stratum. With None the groups are
        returned as they are.

    Returns
    -------
    both : DataFrame of shape (n_samples, n_columns)
        The columns of groups, then those of strata.

    Raises
    ------
    ValueError
        If the numbers of rows differ, an argument cannot be read as columns, or groups are known
        in probability.

    Examples
    --------
    >>> from fairconstrained import with_strata
    >>> from fairconstrained.metrics import roc_parity_difference
    >>> groups, strata = ["a", "b", "a", "b"], ["low", "low", "high", "high"]
    >>> scores, both = [0.1, 0.1, 0.9, 0.9], with_strata(groups, strata)
    >>> roc_parity_difference([0, 1, 0, 1], scores, sensitive_features=both)
    0.0
    """
    if control_features is None:
        return sensitive_features
    given = dict(zip(_ARGUMENTS, (sensitive_features, control_features), strict=True))
    for name, values in given.items():
        if probabilities_of(values, name) is not None:  # beside strata they would be attributes
            raise probabilities_error(name)
        if split_strata(values)[0] is not values:
            raise ValueError(
                f"{name} has groups and strata, as with_strata returns them: pass such a frame as "
                "sensitive_features, without control_features."
            )
    check_same_rows(**given)
    columns = {name: group_columns(v, name) for name, v in given.items() if v is not None}
    n_rows = [len(part[0]) for part in columns.values()]
    if n_rows[0] != n_rows[-1]:
        raise ValueError(
            f"control_features has {n_rows[-1]} rows, sensitive_features has {n_rows[0]}: give one "
            "stratum per row, in the same order."
        )
    indexes = [v.index for v in given.values() if isinstance(v, pd.Series | pd.DataFrame)]
    labels = indexes[0] if indexes else range(n_rows[0])
    parts = [
        ((name, title if isinstance(title, str) else k), pd.Series(column).set_axis(labels))
        for name, part in columns.items()
        for k, column in enumerate(part)
        for title in [getattr(column, "name", None)]  # of several levels, if it is a tuple
    ]
    return pd.concat(dict(parts), axis=1, names=[_STRATA, None])


def split_strata(values: Any) -> tuple[Any, Any]:
    """Return groups and strata, None for what there is not of them; see `with_strata`."""
    if not isinstance(values, pd.DataFrame) or values.columns.names[0] != _STRATA:
        return values, None
    groups, strata = (values.get(name) for name in _ARGUMENTS)
    return groups, strata


def names_in_fit(estimator: object) -> tuple[str, ...]:
    """Return the names that the columns of the groups had in an estimator's fit, if any."""
    return tuple(getattr(estimator, "sensitive_names_in_", ()))


def in_order(values: Any, names: tuple[str, ...], name: str) -> Any:
    """Return groups with their columns in the order that they had in `fit`.

    Groups without names of columns, here or in `fit`, are matched by position.
    """
    titles = names_of_columns(values) if names else ()
    if not titles or titles == names:
        return values
    if set(titles) != set(names):
        raise ValueError(
            f"{name} has the columns {list(titles)}, and the groups in fit had {list(names)}: pass "
            "the columns of fit, or an array, whose columns are matched by position."
        )
    return as_frame(values)[list(names)]


def group_columns(values: Any, name: str) -> list[Column]:
    """Return the columns of an array, Series or frame (pandas, polars, pyarrow or lists).

    An array of numbers or strings in one dimension is its column.
    """
    if isinstance(values, str | bytes):
        raise ValueError(
            f"{name} must hold one group per row of X; got the string {values!r}. Pass the column "
            f"itself (`X[{values!r}]`), or name columns of X in the estimator's sensitive_columns."
        )
    if np.ma.is_masked(values):
        values, masked = np.array(values, dtype=object), np.ma.getmaskarray(values)
        values[masked] = None
    values = as_frame(values)
    check_held(name, values)
    if values is None:
        raise ValueError(f"{name} must hold one group per row of X; got None.")
    if hasattr(values, "toarray"):
        values = values.toarray()
    if isinstance(values, pd.Series):
        return [_native(values)]
    if not isinstance(values, pd.DataFrame):
        values = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        if values.dtype.names:
            raise ValueError(
                f"{name} is a record array with the fields {list(values.dtype.names)}: pass a "
                f"table with these columns, `pandas.DataFrame({name})`."
            )
        if values.ndim not in (1, 2):
            raise ValueError(
                f"{name} must be a column, or a table with a column per attribute; got "
                f"{f'{values.ndim} dimensions' if values.ndim else type(values.item()).__name__}."
            )
        if values.ndim == 1 and values.dtype.kind in "biufU" and values.dtype.isnative:
            return [values.astype(object) if values.dtype.kind == "U" else values]
        values = pd.DataFrame(values, copy=False).infer_objects()
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns; give at least one attribute.")
    return [_native(values.iloc[:, k]) for k in range(values.shape[1])]


PROBABILITIES = "probability of group"
GUESSED = "{}, guessed"  # columns of probabilities that do not use the known groups
_ROUNDING = 1e-6  # of the sums of a row's probabilities


def probabilities_of(values: Any, name: str) -> tuple[list[Any], Array, Array | None] | None:
    """Return names and probabilities of groups, where a frame has these, else None.

    These are columns of floats that sum to 1, or what `GroupProbabilities` returned. That may also
    have guesses for the rows of known group, which do not use this group; nan for other rows.
    """
    frame = as_frame(values)
    if not isinstance(frame, pd.DataFrame):
        return None
    titles, declared = list(frame.columns), frame.columns.names == [PROBABILITIES]
    if not declared and (len(titles) < 2 or not all(map(is_float_dtype, frame.dtypes))):
        return None
    check_titles(titles, name)
    P, guesses = frame.to_numpy(dtype=float), None
    if declared:
        half = len(titles) // 2
        if titles[half:] == list(map(GUESSED.format, titles[:half])):
            titles, P, guesses = titles[:half], P[:, :half], P[:, half:]
        check_probabilities(P, name)
    elif not _sum_to_one(P) or not np.any((P > 0.0) & (P < 1.0)):
        return None
    return titles, P, guesses


def probabilities_error(name: str) -> ValueError:
    """Return the error where groups may not be known in probability."""
    return ValueError(
        f"{name}: probabilities of groups are for rates in fit of estimators, metrics and reports, "
        "without strata. Pass groups here."
    )


def _sum_to_one(P: Array) -> bool:
    return bool(np.all(P >= 0.0) and np.all(np.abs(P.sum(axis=1) - 1.0) <= _ROUNDING))


def check_probabilities(P: Array, name: str) -> None:
    """Raise if the entries of rows are not probabilities of groups."""
    if not _sum_to_one(P):
        sums = P.sum(axis=1)
        raise ValueError(
            f"{name} must hold probabilities >= 0 that sum to 1 in every row; got values from "
            f"{P.min():.3g} and sums from {sums.min():.3g} to {sums.max():.3g}."
        )


def _native(column: pd.Series) -> pd.Series:
    """Return a column in the byte order of the machine, which pandas needs."""
    dtype = column.dtype
    if not isinstance(dtype, np.dtype) or dtype.isnative:
        return column
    return pd.Series(column.to_numpy().astype(dtype.newbyteorder("=")), name=column.name)


def check_alike(column: Column, name: str) -> None:
    """Raise if the values of a column are of several types, or rows of values differ in length."""
    if isinstance(column, np.ndarray) or column.dtype != object:
        return
    if isinstance(column.iloc[0], tuple | list):
        lengths = [len(row) if isinstance(row, tuple | list) else 1 for row in column]
        k = next((k for k, length in enumerate(lengths) if length != lengths[0]), 0)
        if k:
            raise ValueError(
                f"{name} has rows of several values, and they differ in length: row 0 has "
                f"{lengths[0]}, {column.iloc[0]!r}, and row {k} has {lengths[k]}, "
                f"{column.iloc[k]!r}. Give every row a value of each attribute, None where it is "
                "not known."
            )
    if infer_dtype(column) not in ("mixed", "mixed-integer"):
        return
    named = ((bool | np.bool_, "bools"), (Number, "numbers"), (str, "strings"))
    types = set(map(type, column))
    kinds = {next((what for k, what in named if issubclass(t, k)), t.__name__) for t in types}
    if len(kinds) > 1:
        raise ValueError(
            f"{name} has values of several types in one column ({', '.join(sorted(kinds))}): the "
            "same group may be written in two ways. Convert them to one type, for instance with "
            "`astype(str)`."
        )


def missing_values_error(name: str, n_missing: int, n_rows: int) -> ValueError:
    """Return the error that says what missing attributes may mean."""
    return ValueError(
        f"{name} has missing values in {n_missing} of {n_rows} rows. Leave these rows out, or give "
        "them a value. Estimators and reports have the parameter groups_missing: 'own_group' makes "
        "them a group, 'ignore_in_constraint' counts them in the loss and in no constraint."
    )


def encode_column(column: Column, name: str, missing: str, narrow: bool) -> tuple[Array, Array]:
    """Return codes and names of a column; missing values are of code -1 or the last group."""
    unknown = np.asarray(pd.isna(column))
    n_missing = int(np.count_nonzero(unknown))
    if n_missing and missing == "raise":
        raise missing_values_error(name, n_missing, len(column))
    if n_missing == len(column) > 0:
        raise ValueError(
            f"{name} has only missing values in a column of {len(column)} rows: every attribute "
            "needs some known values."
        )
    present = column[~unknown] if n_missing else column
    check_alike(present, name)
    try:
        if narrow and not n_missing:
            places = getattr(present, "iloc", present)
            names, codes = codes_in_blocks(len(present), lambda rows: np.asarray(places[rows]))
        else:
            names, codes = unique_codes(np.asarray(present))
    except TypeError as error:
        raise ValueError(
            f"{name} must hold strings, numbers, bools or categories: {error}."
        ) from error
    if names.dtype.kind in "mM":  # in lists nanoseconds are integers
        names = pd.Series(names).astype(object).to_numpy()
    if names.dtype.kind == "f":  # pandas has integers as floats where others are missing
        wide = names.astype(float)
        whole = (np.abs(wide) < 2.0**53) & (wide == np.rint(wide))
        names = wide.astype(int) if np.all(whole) else names
    if not n_missing:
        return codes, names
    every = np.full(len(column), -1)
    every[~unknown] = codes
    if missing == "ignore_in_constraint":
        return every, names
    if MISSING in names.tolist():
        raise ValueError(
            f"{name} has both missing values and a group called {MISSING!r}, the name that "
            "groups_missing='own_group' gives them; rename that group."
        )
    every[unknown] = len(names)
    return every, np.append(names.astype(object), MISSING)
