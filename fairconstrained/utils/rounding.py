"""The tolerance for rounding errors in comparisons of measured rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairconstrained.utils.typing import Array

ROUNDING = 1e-9
"""Largest violation on decisions that counts as none.

A rate is a sum of up to millions of normalised weights. The sum of all of them may differ from 1 by
some 1e-16 per row, so that equal rates seem to differ. A single row among a hundred million counts
ten times as much as this tolerance.
"""


def at_most(value: Any, bound: Any = 0.0) -> Any:
    """Return whether measured numbers are at most a bound, up to rounding."""
    return value <= bound + ROUNDING


def without_rounding(violation: float) -> float:
    """Return a violation, with 0 in place of rounding errors."""
    return violation if violation > ROUNDING else 0.0


def within_rounding(values: Array, bounds: Array) -> Array:
    """Return numbers, with the bound in place of those that exceed it by rounding errors only."""
    return np.where(at_most(values, bounds), np.minimum(values, bounds), values)


def same_values(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same bits: faster than ``np.array_equal`` if short.

    A negative zero is not a zero here, and nan equals itself.
    """
    return first is second or first.tobytes() == second.tobytes()
