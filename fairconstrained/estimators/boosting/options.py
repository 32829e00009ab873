"""Checks of the parameters of boosted trees, and LightGBM's parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from fairconstrained.estimators.boosting._lightgbm_names import (
    BOOSTING,
    FIXED,
    OF_THE_ESTIMATOR,
    REFUSED,
    known_names,
    main_name,
)
from fairconstrained.utils.validation import check_count, check_switch, is_number
from fairconstrained.utils.workers import check_jobs


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
        _check_other(type(estimator).__name__, name, value)


def _check_other(kind: str, name: str, value: object) -> None:
    """Check one of LightGBM's other parameters of an estimator of this kind."""
    known = main_name(name)
    if known == BOOSTING and value not in ("gbdt", "gbrt"):
        raise ValueError(
            f"lightgbm_params={{{name!r}: {value!r}}}: only 'gbdt' is supported. DART and "
            "random forests change the weights of earlier trees, which the multipliers of the "
            "constraints do not follow."
        )
    if name in OF_THE_ESTIMATOR or known in REFUSED:
        why = REFUSED.get(known, f"it is a parameter of {kind} itself")
        raise ValueError(f"lightgbm_params must not contain {name!r}: {why}.")
    if known in FIXED and value != FIXED[known]:
        raise ValueError(f"lightgbm_params={{{name!r}: {value!r}}}: it is always {FIXED[known]!r}.")
    names = known_names()
    if names and name not in names:
        close = " or ".join(map(repr, get_close_matches(name, names)))
        meant = f" Did you mean {close}?" if close else ""
        raise ValueError(f"lightgbm_params: LightGBM has no parameter {name!r}.{meant}")


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
        **FIXED,
        "metric": "none",
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
