"""Checks of arguments: each raises an error that names the argument and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def is_number(value: Any, kind: Any) -> bool:
    """Return whether a value is a number of a kind; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def check_kappa(kappa: Any) -> float:
    """Return kappa as a float.

    Raises
    ------
    ValueError
        If it is not a number between 0 and 1.
    """
    if not isinstance(kappa, Real) or isinstance(kappa, bool) or not 0.0 <= float(kappa) <= 1.0:
        raise ValueError(
            f"kappa must be a number between 0 and 1 (the largest gap allowed); got {kappa!r}."
        )
    return float(kappa)


def check_between(argument: str, value: Any, low: float, high: float, what: str) -> float:
    """Return a number as a float.

    Raises
    ------
    ValueError
        If it is not a number in [low, high]; the message says what it is for.
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and low <= float(value) <= high):
        raise ValueError(
            f"{argument} must be a number between {low:g} and {high:g} ({what}); got {value!r}."
        )
    return float(value)


def check_count(argument: str, value: Any) -> int:
    """Return a number of thresholds.

    Raises
    ------
    ValueError
        If it is not an integer >= 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument} must be an integer >= 1; got {value!r}.")
    return int(value)


def check_ranks(ranks: Any) -> tuple[float, float]:
    """Return the two ends of a range of ranks.

    Raises
    ------
    ValueError
        If they are not two numbers 0 <= alpha < beta <= 1.
    """
    ends = list(ranks) if isinstance(ranks, Sequence | np.ndarray) else []
    numbers = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or isinstance(ranks, str) or not numbers or not 0 <= ends[0] < ends[1] <= 1:
        raise ValueError(
            "ranks must be two numbers 0 <= alpha < beta <= 1, shares counted from the highest "
            f"score, such as (0.05, 0.3); got {ranks!r}."
        )
    return float(ends[0]), float(ends[1])


def check_confidence(confidence: float) -> float:
    """Return the confidence as a float.

    Raises
    ------
    ValueError
        If it is not a number between 0 and 1.
    """
    valid = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not valid or not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be a number between 0 and 1; got {confidence!r}.")
    return float(confidence)
