"""Checks of the parameters of boosted trees, and LightGBM's parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from fairconstrained.utils.validation import check_count, check_jobs, check_switch, is_number


@dataclass(frozen=True)
class _Number:
    """What a parameter must be.

    Attributes
    ----------
    kind : type
        Integral or Real.
    low, high : float
        The range.
    open_low : bool
        Whether `low` itself is excluded.
    """

    kind: type
    low: float
    high: float = np.inf
    open_low: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError unless the value is such a number."""
        good = is_number(value, self.kind) and self.low <= value <= self.high
        if good and np.isfinite(value) and not (self.open_low and value == self.low):
            return
        what = "an integer" if self.kind is Integral else "a number"
        above = f"{'>' if self.open_low else '>='} {self.low:g}"
        most = "" if self.high == np.inf else f" and <= {self.high:g}"
        raise ValueError(f"{name} must be {what} {above}{most}; got {value!r}.")


_NUMBERS = {
    "n_estimators": _Number(Integral, 1),
    "learning_rate": _Number(Real, 0.0, open_low=True),
    "num_leaves": _Number(Integral, 2, 131072),
    "max_depth": _Number(Integral, -1),
    "min_child_samples": _Number(Integral, 0),
    "min_child_weight": _Number(Real, 0.0),
    "min_split_gain": _Number(Real, 0.0),
    "subsample": _Number(Real, 0.0, 1.0, open_low=True),
    "subsample_freq": _Number(Integral, 0),
    "colsample_bytree": _Number(Real, 0.0, 1.0, open_low=True),
    "reg_alpha": _Number(Real, 0.0),
    "reg_lambda": _Number(Real, 0.0),
    "max_bin": _Number(Integral, 2, 65535),
    "alpha": _Number(Real, 0.0),
}

_PASSED = (
    "learning_rate",
    "num_leaves",
    "max_depth",
    "min_child_samples",
    "min_child_weight",
    "min_split_gain",
    "subsample",
    "subsample_freq",
    "colsample_bytree",
    "reg_alpha",
    "reg_lambda",
    "max_bin",
)

_PASSED_NAMES = {
    *_PASSED,
    *("eta", "shrinkage_rate", "num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
    *("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"),
    *("min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian"),
    *("min_gain_to_split", "bagging_fraction", "sub_row", "bagging", "bagging_freq"),
    *("feature_fraction", "sub_feature", "lambda_l1", "l1_regularization"),
    *("lambda_l2", "lambda", "l2_regularization", "max_bins"),
}  # with LightGBM's aliases

_OWN = {
    "objective": "the loss and the constraints are the objective",
    "num_class": "only two classes are supported",
    "metric": "use early_stopping",
    "linear_tree": "leaves must have constant values",
    "early_stopping_round": "use early_stopping and n_iter_no_change",
    "num_iterations": "use n_estimators",
    "num_threads": "use n_jobs",
    "seed": "use random_state",
    "categorical_feature": "use categorical_features",
    "boost_from_average": "the first score is set by the library",
    "refit_decay_rate": "leaf values are fitted by the library",
}
_ALIASES: dict[str, str] = {
    **dict.fromkeys(("objective_type", "app", "application", "loss"), "objective"),
    **dict.fromkeys(("num_classes",), "num_class"),
    **dict.fromkeys(("metrics", "metric_types"), "metric"),
    **dict.fromkeys(("linear_trees",), "linear_tree"),
    **dict.fromkeys(
        ("early_stopping_rounds", "early_stopping", "n_iter_no_change"), "early_stopping_round"
    ),
    **dict.fromkeys(
        (
            "num_iteration",
            "n_iter",
            "num_tree",
            "num_trees",
            "num_round",
            "num_rounds",
            "nrounds",
            "num_boost_round",
            "n_estimators",
            "max_iter",
        ),
        "num_iterations",
    ),
    **dict.fromkeys(("num_thread", "nthread", "nthreads", "n_jobs"), "num_threads"),
    **dict.fromkeys(("random_seed", "random_state"), "seed"),
    **dict.fromkeys(
        ("cat_feature", "categorical_column", "cat_column", "categorical_features"),
        "categorical_feature",
    ),
}
_BOOSTING = ("boosting", "boosting_type", "boost")


def check_boosting_options(estimator: Any) -> None:
    """Check the parameters that only boosted trees have.

    Raises
    ------
    ValueError
        With the parameter's name, what was found and what is valid.
    """
    for name, wanted in _NUMBERS.items():
        wanted.check(name, getattr(estimator, name))
    check_switch("early_stopping", estimator.early_stopping)
    fraction = estimator.validation_fraction
    if not (is_number(fraction, Real) and 0.0 < fraction < 1.0):
        raise ValueError(f"validation_fraction must be a number > 0 and < 1; got {fraction!r}.")
    check_count("n_iter_no_change", estimator.n_iter_no_change)
    if estimator.n_fitted_trees is not None:
        check_count("n_fitted_trees", estimator.n_fitted_trees)
    check_jobs(estimator.n_jobs)
    _check_others(estimator, estimator.lightgbm_params)


def _check_others(estimator: Any, given: object) -> None:
    """Check `lightgbm_params`: a mapping without what the estimator sets itself."""
    if given is None:
        return
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ValueError(
            "lightgbm_params must be None or a dict of LightGBM's other parameters, such as "
            f"{{'path_smooth': 1.0}}; got {given!r}."
        )
    for name, value in given.items():
        if name in _BOOSTING and value not in ("gbdt", "gbrt"):
            raise ValueError(
                f"lightgbm_params={{{name!r}: {value!r}}}: only 'gbdt' is supported. DART and "
                "random forests change the weights of earlier trees, which the multipliers of the "
                "constraints do not follow."
            )
        known = _ALIASES.get(str(name), str(name))
        if name in _PASSED_NAMES or known in _OWN:
            why = _OWN.get(known, f"it is a parameter of {type(estimator).__name__} itself")
            raise ValueError(f"lightgbm_params must not contain {name!r}: {why}.")


def lightgbm_parameters(estimator: Any, seed: int, num_threads: int) -> dict[str, Any]:
    """Return LightGBM's parameters for an estimator.

    Parameters
    ----------
    estimator : FairBoostingClassifier
        Its parameters are valid.
    seed : int
        For the subsamples of rows and features.
    num_threads : int
        0 is LightGBM's default.
    """
    return {
        **{name: getattr(estimator, name) for name in _PASSED},
        **(estimator.lightgbm_params or {}),
        "seed": seed,
        "num_threads": num_threads,
        "deterministic": True,
        "feature_pre_filter": False,
        "metric": "none",
        "verbosity": -1,
    }


def thread_count(n_jobs: int | None) -> int:
    """Return LightGBM's number of threads for scikit-learn's `n_jobs`; None and 0 are its default.

    Examples
    --------
    >>> from fairconstrained.estimators.boosting.options import thread_count
    >>> thread_count(None), thread_count(3)
    (0, 3)
    """
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 0
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
