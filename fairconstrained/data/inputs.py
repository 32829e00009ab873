"""Checks of arguments with one entry per row: the same rows, features, labels and weights.

A `FeatureMap` has the columns that a model uses, with or without cross terms of the groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairconstrained.utils.arguments import brief, is_query
from fairconstrained.utils.arrays import Array, SparseMatrix, column_range


def check_same_rows(**arguments: object) -> None:
    """Check that the row labels of pandas objects do not contradict each other.

    Rows are matched by position, as in scikit-learn. Where two objects have row labels (an index),
    the labels show whether that is right. A default index (0, 1, 2, ...) carries no information.
    Nor do integers in rising order, such as a fold of a cross-validation has, unless both objects
    have such labels and none in common. Objects without an index (arrays, lists, polars,
    sparse matrices) are not looked at.
    """
    pandas = pd.Series | pd.DataFrame
    labelled = [(name, part.index) for name, part in arguments.items() if isinstance(part, pandas)]
    for (first, index), (second, other) in combinations(labelled, 2):
        if len(index) != len(other) or index.equals(other):
            continue
        codes, _ = pd.factorize(index.append(other), use_na_sentinel=False)
        first_half, second_half = np.sort(codes.reshape(2, -1))
        reordered = np.array_equal(first_half, second_half)  # the same labels, as often
        if reordered and not (_is_default(index) or _is_default(other)):
            raise ValueError(
                f"{first} and {second} have the same row labels in another order, and rows are "
                f"matched by position. Reorder {second} (`{second}.loc[{first}.index]`), or pass "
                f"`{second}.to_numpy()` if its rows are in the order of {first}'s."
            )
        if reordered or not (_says_nothing(index, other) or _says_nothing(other, index)):
            from fairconstrained.exceptions import InputWarning, warn  # which imports scikit-learn

            what = "the same row labels in another order" if reordered else "different row labels"
            warn(
                f"{first} and {second} have {what}; their rows are matched by position. If that is "
                f"meant, pass `{second}.to_numpy()`; otherwise reorder the rows of one of them.",
                InputWarning,
            )
            return


def _is_default(index: pd.Index) -> bool:
    """Return whether row labels are those that pandas gives where none are given."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _says_nothing(index: pd.Index, other: pd.Index) -> bool:
    """Return whether row labels are a default index or, beside others, what a fold has of one."""
    rising, also = (
        pd.api.types.is_integer_dtype(labels.dtype) and labels.is_monotonic_increasing
        for labels in (index, other)
    )
    return _is_default(index) or (rising and (not also or bool(index.isin(other).any())))


_NOT_NUMBERS = ("object", "str", "categor", "enum")
_TIMES = ("date", "time", "duration", "period")  # prefixes of the names of their dtypes


def check_held(name: str, values: object) -> None:
    """Raise if an argument does not hold its rows: a string, a query not run, or masked values.

    Nor may two columns of a frame have the same name.
    """
    if isinstance(values, pd.DataFrame):
        check_titles(values.columns, name)
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} must hold one entry per row of X; got the string {values!r}.")
    kind = is_query(values)
    if kind == "LazyFrame":
        raise ValueError(
            f"{name} is a LazyFrame, a query without rows: pass the DataFrame that "
            f"`{name}.collect()` returns."
        )
    if kind == "dask":
        raise ValueError(
            f"{name} is a dask collection. The linear classifiers of fairconstrained.dask, such as "
            "fairconstrained.dask.FairLogisticClassifier, take it; for this one pass the data that "
            f"`{name}.compute()` returns."
        )
    if np.ma.is_masked(values):
        mask = np.ma.getmaskarray(cast("Array", values))
        n_masked, n_entries = np.count_nonzero(mask), mask.size
        raise ValueError(
            f"{name} is a masked array in which {n_masked} of {n_entries} entries are masked: they "
            f"have no value. Leave out these rows, or pass what `{name}.filled(...)` returns."
        )


def check_titles(titles: Sequence[Any] | pd.Index, name: str) -> None:
    """Raise if two columns have the same name."""
    index = pd.Index(titles)
    if not index.is_unique:
        repeated = ", ".join(map(repr, index[index.duplicated()].unique()[:5]))
        raise ValueError(
            f"{name} has several columns of the name {repeated}: leave out all but one of each, or "
            "rename them."
        )


def check_labels(name: str, y: object, n_rows: int, *, rows: str = "X") -> Array:
    """Return labels as an array of shape (n_rows,)."""
    check_held(name, y)
    values = y if isinstance(y, np.ndarray | pd.Series) else np.asarray(y, dtype=object)
    if values.ndim == 0:
        of = "" if rows == name else f" of {rows}"
        raise ValueError(f"{name} must hold one label per row{of}; got {y!r}.")
    try:
        labels = _column(y)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} rows, {rows} has {n_rows}: give one value per row of {rows}."
        )
    missing = int(pd.isna(labels).sum())
    if missing:
        raise ValueError(
            f"{name} has missing values (NaN or None) in {missing} of {n_rows} rows: every row "
            f"needs a value. Leave these rows out of {rows} and of everything that goes with it."
        )
    listed = y if isinstance(y, list | tuple) else labels.tolist() if labels.dtype == object else []
    if len({isinstance(label, str) for label in listed}) > 1:
        raise ValueError(
            f"{name} has labels of several types (strings and others): convert them to one type, "
            f"for instance with `{name}.astype(str)`."
        )
    return labels


def _column(y: Any) -> Array:
    """Return labels in one dimension, by scikit-learn unless they are numbers in one already."""
    dtype = getattr(y, "dtype", None)
    if not (isinstance(dtype, np.dtype) and dtype.kind in "biu" and np.ndim(y) == 1):
        from sklearn.utils import column_or_1d  # workers import this module without it

        y = column_or_1d(y, warn=True)
    labels = np.asarray(y)
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)  # pandas reads no other order


def known_labels(argument: str, labels: Array, classes: list[Any]) -> Array:
    """Return labels; raise a ValueError unless all of them are among the classes."""
    unknown = [label for label in np.unique(labels).tolist() if label not in classes]
    if unknown:
        raise ValueError(
            f"{argument} has the label {unknown[0]!r}, which is not among the classes {classes}."
        )
    return labels


def check_weight(
    name: str, weight: object, n_rows: int, *, rows: str = "X", narrow: bool = False
) -> Array:
    """Return weights as floats of shape (n_rows,); ones where there are none."""
    how = f"must be None or hold one number >= 0 per row of {rows}"
    if isinstance(weight, str | bytes):
        raise ValueError(
            f"{name} {how}; got the string {weight!r}. Balanced weights are returned by "
            "sklearn.utils.class_weight.compute_sample_weight('balanced', y)."
        )
    check_held(name, weight)
    if weight is None:
        return np.broadcast_to(np.ones(()), n_rows) if narrow else np.ones(n_rows)
    try:
        if np.asarray(weight).dtype.kind == "c":
            raise TypeError("these are complex numbers")
        values = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} {how}; got {brief(weight)}: {error}.") from error
    if values.ndim and values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape}, expected {(n_rows,)}: {name} {how}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity: {name} {how}.")
    if values.min(initial=0.0) < 0.0:
        raise ValueError(f"Negative values in data passed to `{name}`: {name} {how}.")
    if not values.any():
        raise ValueError(f"{name} must contain at least one non-zero number.")
    checked = values if values.ndim else np.full(n_rows, float(values))
    with np.errstate(over="ignore"):
        total, squares = checked.sum(), np.square(checked).sum()  # `@` would start BLAS threads
    if not np.isfinite(total + squares):
        raise ValueError(f"{name} is too large: the sum of its squares overflows; divide it.")
    if total > 0.0 and squares < np.finfo(float).tiny:
        raise ValueError(f"{name} is too small: the sum of its squares underflows; multiply it.")
    return checked


def check_features(X: object) -> None:
    """Raise if X has columns of dates or times."""
    times = [title for title, kind in _dtypes(X) if kind.lower().startswith(_TIMES)]
    if times:
        raise ValueError(
            f"X has dates or times in {_columns(times)}: convert them to numbers, for instance the "
            "days since a date, or leave these columns out."
        )


def explain_text(X: object, error: ValueError | TypeError, advice: str) -> ValueError | TypeError:
    """Return an error that names the columns of X that are not numbers, else the error itself."""
    if not any(part in str(error) for part in ("could not convert", "float() argument")):
        return error
    others = [title for title, kind in _dtypes(X) if kind.lower().startswith(_NOT_NUMBERS)]
    where = f" in {_columns(others)}" if others else ""
    return type(error)(
        f"X has values that are not numbers{where}: {error}. {advice}, convert dates to numbers, "
        "or leave these columns out."
    )


def _dtypes(X: object) -> list[tuple[Any, str]]:
    """Return the name (or position) and the name of the dtype of every column that has one."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return [(title, str(dtype)) for title, dtype in zip(X.columns, X.dtypes, strict=True)]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "mM":
        return [(k, str(X.dtype)) for k in range(X.shape[1])]
    return []


def check_squares(X: Array | SparseMatrix, total: float, names: Array | None = None) -> None:
    """Raise if the values of a column are so large or so small that they cannot be squared.

    Means of squares are what feature scales and curvatures are made of.
    """
    if not X.shape[0]:
        return
    # Dense float32 rows are converted before they are squared; sparse ones are not, but their
    # weights have a mean of one.
    dense, n_rows = isinstance(X, np.ndarray), X.shape[0]
    if dense and X.dtype == np.float32:  # all their squares are within the range of float64
        return
    limits = np.finfo(np.float64 if dense else X.dtype)
    most = max(total, n_rows) if dense else n_rows
    least, largest = (float(limits.tiny) * most) ** 0.5, (float(limits.max) / most) ** 0.5 / 4.0
    if not dense:  # entries take less time than columns
        sizes = np.abs(X.data[X.data != 0.0])
        if least < sizes.min(initial=np.inf) and sizes.max(initial=0.0) < largest:
            return
    lowest, highest = column_range(X)
    size = np.maximum(highest, -lowest).astype(float)
    large, small = size >= largest, (size > 0.0) & (size <= least)
    for what, where in (("large", large), ("small", small)):
        if where.any():
            places = np.flatnonzero(where)
            titles = (places if names is None else np.asarray(names)[places]).tolist()
            raise ValueError(
                f"X has values that are too {what} to be squared in {_columns(titles)} (the "
                f"largest is {size[places[0]]:.3g} in the first of them): correct them if they are "
                "errors, or change the units of these columns, for instance with "
                "sklearn.preprocessing.MaxAbsScaler."
            )


def _columns(titles: Sequence[object]) -> str:
    """Return columns in words, the first five by name."""
    shown = ", ".join(repr(title) for title in titles[:5])
    more = f" and {len(titles) - 5} more" if len(titles) > 5 else ""
    return f"the column{'s' * (len(titles) > 1)} {shown}{more}"


def check_three(constraint_data: Any, groups: Any = None) -> tuple[Any, Any, Any]:
    """Return the three parts of `constraint_data`; raise if the rows of X have groups as well."""
    if groups is not None:
        raise ValueError(
            "sensitive_features and control_features describe the rows of X, and with "
            "constraint_data no constraint is on these rows. Do not pass them. If a scorer needs "
            "them, set_fit_request(sensitive_features=False) keeps them from fit. For strata, the "
            "groups of constraint_data are with_strata(groups, strata)."
        )
    listed = isinstance(constraint_data, tuple | list)
    if listed and len(constraint_data) == 3:
        X, y, groups = constraint_data
        return X, y, groups
    given = f"{len(constraint_data)} parts" if listed else type(constraint_data).__name__
    raise ValueError(
        "constraint_data must be (X, y, groups) of the rows that constraints apply to; y may be "
        f"None for constraints that need no labels. Got {given}."
    )


@dataclass(frozen=True, eq=False)
class FeatureMap:
    r"""The features of a model: x alone, or with group cross terms.

    With G groups the features are :math:`(x,\ z_1 x, \dots, z_G x,\ z_1, \dots, z_G)`, where
    :math:`z_k` says whether the row is in group k. IDCA's (1, x, z, z x) spans the same functions;
    here there is no reference group, so that the penalty is the same for all groups in any order.

    References
    ----------
    IDCA, section 7.1 (linear model with cross terms).
    """

    kept: Array  # the columns of X that are x, (n_kept,)
    n_features: int  # the number of columns of X
    # the names of the groups, those of the rows that were passed to `fit`; none without cross terms
    groups: Array = field(default_factory=lambda: np.empty(0))

    @property
    def n_groups(self) -> int:
        """G; 0 for a model without cross terms."""
        return len(self.groups)

    def expand(self, X: Any, codes: Array) -> Any:
        """Return the features of the rows with the cross terms of their groups, CSR."""
        rows = sp.csr_array(X)
        membership = sp.csr_array(
            (np.ones(rows.shape[0], rows.dtype), codes, np.arange(rows.shape[0] + 1)),
            shape=(rows.shape[0], self.n_groups),
        )
        return sp.hstack([rows, _products(membership, rows), membership], format="csr")

    def fold(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return the coefficients and the intercept of every group, or of every score."""
        d, n_rows = len(self.kept), self.n_groups or len(coef)
        full = np.zeros((n_rows, self.n_features))
        full[:, self.kept] = coef[:, :d]
        levels = np.repeat(intercept, n_rows // len(coef))
        if self.n_groups:
            by_group, shifts = np.split(coef[0, d:], [d * self.n_groups])
            full[:, self.kept] += by_group.reshape(self.n_groups, d)
            levels += shifts
        return full, levels

    def unfold(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients of the features of `expand`, from those of every group.

        Of all coefficients with the same scores they have the least L2 penalty.
        """
        rows = coef[:, self.kept]
        if not self.n_groups:
            return rows, intercept
        base, level = rows.sum(axis=0) / (self.n_groups + 1), intercept.mean()
        flat = np.concatenate([base, np.ravel(rows - base), intercept - level])
        return flat[None, :], np.array([level])


def _products(membership: Any, rows: Any) -> Any:
    """Return the products of every row with its group's indicator, (n_rows, G d) as CSR.

    A row's entries move to the columns of its group: nothing is multiplied.
    """
    shift = np.repeat(membership.indices * rows.shape[1], np.diff(rows.indptr))
    shape = (rows.shape[0], membership.shape[1] * rows.shape[1])
    return sp.csr_array((rows.data, rows.indices + shift, rows.indptr), shape=shape)
