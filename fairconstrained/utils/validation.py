"""Checks of arguments: each raises an error that names the argument and what was found; tables."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from fairconstrained.utils.typing import Array


def is_query(values: object) -> str:
    """Return "LazyFrame" or "dask" for what has no rows yet, else an empty text."""
    name, package = type(values).__name__, type(values).__module__.split(".")[0]
    return name if name == "LazyFrame" else package * (package == "dask")


def as_frame(values: Any) -> Any:
    """Return a table of polars, pyarrow or others as a frame of pandas, anything else as it is."""
    if isinstance(values, pd.DataFrame) or is_query(values) or not hasattr(values, "__array__"):
        return values
    titles = getattr(values, "column_names", getattr(values, "columns", None))
    if titles is None:
        return values
    return pd.DataFrame({title: np.asarray(values[title]) for title in titles})


def brief(value: object) -> str:
    """Return a value in at most sixty characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def is_number(value: object, kind: type) -> TypeGuard[Any]:
    """Return whether a value is a number of a kind (Real or Integral); True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def check_kappa(kappa: object) -> float:
    """Return kappa as a float."""
    return check_between("kappa", kappa, 0.0, 1.0, "the largest gap allowed")


def _checked(argument: str, value: Any, valid: bool, what: str) -> Any:
    """Return a value; the message of a ValueError says what it must be."""
    if not valid:
        raise ValueError(f"{argument} must be {what}; got {value!r}.")
    return value


def check_between(argument: str, value: object, low: float, high: float, what: str) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and low <= float(value) <= high
    return float(
        _checked(argument, value, valid, f"a number between {low:g} and {high:g} ({what})")
    )


def check_finite(argument: str, value: object) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and bool(np.isfinite(value))
    return float(_checked(argument, value, valid, "a finite number"))


def check_positive(argument: str, value: object) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and 0.0 < float(value) < np.inf
    return float(_checked(argument, value, valid, "a finite number > 0"))


def check_count(argument: str, value: object) -> int:
    """Return a count as an int."""
    valid = is_number(value, Integral) and value >= 1
    return int(_checked(argument, value, valid, "an integer >= 1"))


def check_switch(argument: str, value: object) -> bool:
    """Return a switch as a bool."""
    return bool(_checked(argument, value, isinstance(value, bool | np.bool_), "True or False"))


def check_confidence(confidence: object) -> float:
    """Return the confidence as a float."""
    valid = is_number(confidence, Real) and 0.0 < confidence < 1.0
    return float(_checked("confidence", confidence, valid, "a number between 0 and 1"))


def check_numbers(argument: str, values: object, low: float, high: float) -> Array:
    """Return a list of numbers as an array of shape (n_numbers,)."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    inside = np.isfinite(numbers) & (numbers >= low) & (numbers <= high)
    if numbers.ndim != 1 or not numbers.size or not inside.all() or isinstance(values, str):
        limits = "" if low == -np.inf and high == np.inf else f" between {low:g} and {high:g}"
        raise ValueError(
            f"{argument} must be a list of one or more finite numbers{limits}; got {values!r}."
        )
    return numbers


def check_ranks(ranks: object, others: str = "") -> tuple[float, float]:
    """Return the two ends of a range of ranks; the message says what `others` are valid."""
    ends = list(ranks) if isinstance(ranks, Sequence | np.ndarray) else []
    numbers = len(ends) == 2 and all(is_number(end, Real) for end in ends)
    if not numbers or not 0 <= ends[0] < ends[1] <= 1:
        raise ValueError(
            f"ranks must be {others}two numbers 0 <= alpha < beta <= 1, shares counted from the "
            f"highest score, such as (0.05, 0.3); got {ranks!r}."
        )
    return float(ends[0]), float(ends[1])
