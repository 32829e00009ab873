"""The parameters of boosted trees, checked, and their features: numbers and categories."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain
from numbers import Integral
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from fairconstrained.data.sensitive_columns import FeatureKind, SensitiveColumns, column_position
from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arguments import as_frame, import_extra
from fairconstrained.utils.arrays import Array


@dataclass(eq=False, repr=False, kw_only=True)
class TreeParameters:
    """The parameters of boosted trees."""

    n_estimators: valid.Count = 100
    learning_rate: valid.Positive = 0.1
    num_leaves: Annotated[int, valid.Number(Integral, 2, 131072, closed="both")] = 15
    max_depth: Annotated[int, valid.Number(Integral, -1, None, closed="left")] = -1
    min_child_samples: valid.Limit = 50
    min_child_weight: valid.Strength = 1e-3
    min_split_gain: valid.Strength = 0.0
    subsample: valid.PositiveShare = 1.0
    subsample_freq: valid.Limit = 0
    colsample_bytree: valid.PositiveShare = 1.0
    reg_alpha: valid.Strength = 0.0
    reg_lambda: valid.Strength = 10.0
    max_bin: Annotated[int, valid.Number(Integral, 2, 65535, closed="both")] = 255
    categorical_features: str | Sequence[str | int | bool] | None = "from_dtype"
    monotone_constraints: Sequence[int] | Mapping[str | int, int] | None = None
    early_stopping: bool = False
    validation_fraction: valid.OpenShare = 0.1
    n_iter_no_change: valid.Count = 10
    lightgbm_params: Mapping[str, Any] | None = None
    alpha: valid.Strength = 0.1
    n_fitted_trees: valid.Count | None = 25
    n_jobs: valid.Jobs = None

    @property
    def feature_kind(self) -> FeatureKind:
        """What is accepted as features, for developers: numbers, missing values and categories."""
        return TreeFeatures(self.categorical_features)


_PASSED = (  # LightGBM has these names too, for parameters with other main names
    *("learning_rate", "num_leaves", "max_depth", "min_child_samples", "min_child_weight"),
    *("min_split_gain", "subsample", "subsample_freq", "colsample_bytree", "reg_alpha"),
    *("reg_lambda", "max_bin"),
)
# set by every fit, whatever lightgbm_params says: so it may not say anything else
_SET = ("n_estimators", "n_jobs", "random_state", "categorical_features", "monotone_constraints")

_REFUSED = {  # what would break a fit
    "objective": "the loss and the constraints are the objective",
    "num_class": "only two classes are supported",
    "metric": "use early_stopping",
    "early_stopping_round": "use early_stopping and n_iter_no_change",
    "linear_tree": "leaves must have constant values",
    "boost_from_average": "the first score is set by the library",
    "boosting": "only 'gbdt' is supported; DART and random forests change the weights of earlier "
    "trees, which the multipliers of the constraints do not follow",
}


_SAFE_NAME = re.compile(r"^[^\s\[\]{}\":,]+$")  # LightGBM's text format allows these names only


def check_lightgbm_params(trees: TreeParameters) -> None:
    """Check `lightgbm_params`, which may not name what the estimator sets itself, and `n_jobs`."""
    main = main_names() if trees.lightgbm_params else {}
    of_estimator = {main.get(name, name): name for name in (*_PASSED, *_SET)}
    for name, value in (trees.lightgbm_params or {}).items():
        full = main.get(name, name)
        if full in of_estimator:
            raise ValueError(
                f"lightgbm_params must not contain {name!r}: it is the parameter "
                f"{of_estimator[full]} of {type(trees).__name__}."
            )
        if full in _REFUSED and (full != "boosting" or value not in ("gbdt", "gbrt")):
            raise ValueError(
                f"lightgbm_params must not contain {name!r}: {value!r}, because {_REFUSED[full]}."
            )
        if main and name not in main:
            close = " or ".join(map(repr, get_close_matches(str(name), main)))
            meant = f" Did you mean {close}?" if close else ""
            raise ValueError(f"lightgbm_params: LightGBM has no parameter {name!r}.{meant}")


@cache
def main_names() -> Mapping[str, str]:
    """Return LightGBM's main name for every name and alias that the installed version has.

    LightGBM's Python package has a function that lists them; it is not public. In a version without
    it the result is empty, and only main names are recognised.
    """
    import_lightgbm()
    try:
        from lightgbm.basic import _ConfigAliases

        aliases = _ConfigAliases._get_all_param_aliases()
    except (ImportError, AttributeError):
        return {}
    return {alias: name for name, others in aliases.items() for alias in (name, *others)}


def import_lightgbm() -> ModuleType:
    """Return the module lightgbm."""
    return import_extra("lightgbm", "boosting", "An estimator with boosted trees")


def for_lightgbm(estimator: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return LightGBM's parameters for an estimator, and what its data sets say of the columns."""
    trees, columns = estimator._trees, SensitiveColumns(estimator)
    seen, kept, categorical = columns.seen, columns.kept(), estimator.is_categorical_
    parameters = {
        "deterministic": True,
        "verbosity": -1,
        **{name: getattr(trees, name) for name in _PASSED},
        **(trees.lightgbm_params or {}),
        "seed": seed,
        "num_threads": thread_count(trees.n_jobs),
        "feature_pre_filter": False,
        "metric": "none",
        "objective": "none",
    }
    if trees.monotone_constraints is not None:
        signs = monotone_signs(trees.monotone_constraints, seen.tolist(), categorical)
        parameters["monotone_constraints"] = np.array(signs)[kept].tolist()
    names: list[str] | str = [str(name) for name in seen[kept]]
    if not (hasattr(estimator, "feature_names_in_") and all(map(_SAFE_NAME.match, names))):
        names = "auto"
    codes = np.flatnonzero(categorical[kept]).tolist() or "auto"
    return parameters, {"feature_name": names, "categorical_feature": codes}


def plain_categories(estimator: Any) -> list[list[Any]]:
    """Return an estimator's categories if LightGBM can write them into a model file, else none.

    It can write numbers and strings. A booster without categories raises an error for columns of
    pandas' category dtype; it does not take the codes of another table for those of `fit`.
    """
    columns = SensitiveColumns(estimator)
    seen = columns.seen[columns.kept()].tolist()
    categories = [listed for name, listed in estimator.categories_.items() if name in seen]
    plain = all(isinstance(category, str | int | float) for category in chain(*categories))
    return categories if plain else []


def thread_count(n_jobs: int | None) -> int:
    """Return LightGBM's number of threads for `n_jobs`; None and 0 are its default."""
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 0
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)


# how the names of types of categories begin, in pandas, polars and arrow
_CATEGORIES = ("category", "Categorical", "Enum", "dictionary")


class TreeFeatures(FeatureKind):
    """Numbers, NaN for missing values, and categories as their codes.

    With columns of a type of categories, of text and of other values that are not numbers, the
    codes are positions in the categories seen in `fit`; categories that were not seen there are
    missing values. Other categorical columns hold integers >= 0, which are used as they are.
    """

    checks = FeatureKind.checks | {"ensure_all_finite": "allow-nan"}
    squared = False
    advice = "Name columns of text in categorical_features"

    def __init__(self, categorical_features: object = "from_dtype"):
        self.categorical_features = categorical_features

    def encode(self, estimator: Any, X: Any, *, reset: bool) -> Any:
        """Return X with codes in place of categories."""
        given, X = X, as_frame(X)
        if not isinstance(X, pd.DataFrame):
            if reset:
                estimator.categories_ = {}
            return X
        if reset:
            kinds = getattr(getattr(given, "schema", None), "types", None)
            kinds = kinds or [*getattr(given, "dtypes", X.dtypes)]
            is_category = np.array([str(kind).startswith(_CATEGORIES) for kind in kinds])
            mask = categorical_mask(self.categorical_features, list(X.columns), is_category)
            is_number = X.dtypes.map(is_numeric_dtype).to_numpy(bool)
            names = X.columns[mask & (is_category | ~is_number)]
            estimator.categories_ = {
                name: X[name].astype("category").cat.categories.tolist() for name in names
            }
        encoded = X.copy(deep=False)
        for name, categories in estimator.categories_.items():
            if name in X.columns:
                index = pd.Index(categories, tupleize_cols=False)
                codes = index.get_indexer(pd.Index(X[name])).astype(float)
                encoded[name] = np.where(codes < 0, np.nan, codes)
        return encoded


def categorical_mask(
    categorical_features: object, names: Sequence[object], is_category: Array
) -> Array:
    """Return which columns of X are categorical, shape (n_features,)."""
    n_columns = len(is_category)
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return is_category
    mask = np.zeros(n_columns, dtype=bool)
    if categorical_features is None:
        return mask
    listed = isinstance(categorical_features, Sequence | np.ndarray | pd.Index)
    if isinstance(categorical_features, str) or not listed:
        raise ValueError(
            "categorical_features must be 'from_dtype', None or a list of names or positions of "
            f"columns of X, or a mask; got {categorical_features!r}."
        )
    wanted: list[Any] = list(categorical_features)  # type: ignore[call-overload]
    if wanted and all(isinstance(entry, bool | np.bool_) for entry in wanted):
        if len(wanted) != n_columns:
            raise ValueError(
                f"categorical_features is a mask of {len(wanted)} columns; X has {n_columns}."
            )
        return np.array(wanted, dtype=bool)
    for entry in wanted:
        mask[column_position("categorical_features", entry, [*names], n_columns)] = True
    return mask


def check_codes(X: Any, is_categorical: Array, names: Sequence[object]) -> None:
    """Raise if a categorical column holds other numbers than integers >= 0 and NaN."""
    for k in np.flatnonzero(is_categorical):
        column = X[:, [k]]
        values = column.data if hasattr(column, "indptr") else np.ravel(column)
        values = values[~np.isnan(values)]
        wrong = (values < 0) | (values != np.floor(values)) | (values > np.iinfo(np.int32).max)
        if wrong.any():
            raise ValueError(
                f"categorical_features: the column {names[int(k)]!r} has the value "
                f"{values[wrong][0]:g}. Codes of categories must be integers from 0 to 2**31 - 1; "
                "convert the column with `astype('category')`, or leave it out of "
                "categorical_features."
            )


def monotone_signs(constraints: Any, names: Sequence[object], is_categorical: Array) -> list[int]:
    """Return for every column 1 where scores may not fall in it, -1 not rise, else 0."""
    n_columns = len(is_categorical)
    if isinstance(constraints, Mapping):
        signs = [0] * n_columns
        for column, sign in constraints.items():
            place = column_position("monotone_constraints", column, [*names], n_columns)
            signs[place] = sign
    else:
        signs = list(np.ravel(np.asarray(constraints, dtype=object)))
        if len(signs) != n_columns:
            raise ValueError(
                f"monotone_constraints has {len(signs)} entries; X has {n_columns} columns."
            )
    for name, sign, categories in zip(names, signs, is_categorical, strict=True):
        if isinstance(sign, bool | np.bool_) or sign not in (-1, 0, 1) or (sign and categories):
            kind = " of a categorical column" if categories else ""
            raise ValueError(
                f"monotone_constraints must be -1, 0 or 1 for every column, and 0 for categorical "
                f"ones; got {sign!r} for {name!r}{kind}."
            )
    return [int(sign) for sign in signs]
