"""Checks of the parameters that only network classifiers have."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from fairconstrained.models.modules import ACTIVATIONS, DEVICES
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.validation import is_number

_ROWS_FOR_VALIDATION = 500  # with fewer rows, a tenth of them is too few to choose an iterate


def uses_validation(estimator: Any, n_rows: int) -> bool:
    """Return whether rows are held back that choose the iterate."""
    if estimator.early_stopping == "auto":
        return n_rows >= _ROWS_FOR_VALIDATION
    return bool(estimator.early_stopping)


def check_network_options(estimator: Any) -> None:
    """Check the layers and how they are trained.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what is valid.
    TypeError
        If `module` cannot be called.
    """
    _check_layers(estimator.hidden_layer_sizes)
    check_option("activation", estimator.activation, ACTIVATIONS)
    check_option("device", estimator.device, DEVICES)
    if estimator.module is not None and not callable(estimator.module):
        raise TypeError(
            "module must be None or a callable that takes the number of features and returns a "
            f"torch.nn.Module; got {estimator.module!r}."
        )
    for name in ("max_epochs", "n_iter_no_change"):
        _check_count(name, getattr(estimator, name))
    if estimator.batch_size is not None:
        _check_count("batch_size", estimator.batch_size, " or None for all rows")
    rate = estimator.learning_rate
    if rate is not None and not (is_number(rate, Real) and 0.0 < rate < np.inf):
        raise ValueError(f"learning_rate must be a number > 0 or None; got {rate!r}.")
    stopping = estimator.early_stopping
    if not (isinstance(stopping, bool | np.bool_) or stopping == "auto"):
        raise ValueError(f"early_stopping must be True, False or 'auto'; got {stopping!r}.")
    share = estimator.validation_fraction
    if not (is_number(share, Real) and 0.0 < share < 1.0):
        raise ValueError(f"validation_fraction must be a number between 0 and 1; got {share!r}.")


def _check_layers(sizes: object) -> None:
    given = isinstance(sizes, Sequence | np.ndarray) and not isinstance(sizes, str)
    if not given or not all(is_number(one, Integral) and one >= 1 for one in list(sizes)):  # type: ignore[call-overload]
        raise ValueError(
            "hidden_layer_sizes must be a sequence of integers >= 1, such as (64, 64), or () for "
            f"linear scores; got {sizes!r}."
        )


def _check_count(name: str, value: object, also: str = "") -> None:
    if not (is_number(value, Integral) and value >= 1):
        raise ValueError(f"{name} must be an integer >= 1{also}; got {value!r}.")
