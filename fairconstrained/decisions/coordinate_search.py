"""One threshold for each group under any constraints on rates: search by coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from fairconstrained.decisions.threshold_choices import ThresholdChoices
from fairconstrained.utils.rounding import ROUNDING, at_most
from fairconstrained.utils.typing import Array

_N_STARTS = 6
_N_QUANTILES = 33
_PRICES = (0.3, 1.0, 4.0, 1e3)  # what a unit of violation costs in accuracy, the lowest first
_MOST_SWEEPS = 12
_MOST_ENTRIES = 2**21


def coordinate_search(
    choices: ThresholdChoices, starts: Sequence[Sequence[int]], *, equal_rates: bool = True
) -> list[int]:
    """Return accurate choices that meet the constraints, those of least violation if none do.

    From every start the choice of one group after the other is the best one for the given choices
    of the others: accuracy minus a price for the violation, at rising prices. The starts are those
    that are given, and the choices of equal selection rates in all groups, of which the most
    promising are used.

    Parameters
    ----------
    choices : ThresholdChoices
        The choices, and the constraints.
    starts : sequence of sequences of int
        Choices for every group to start from.
    equal_rates : bool, default=True
        Whether choices of equal selection rates are further starts.
    """
    tried = [list(one) for one in starts]
    if equal_rates:
        equal = sorted(_equal_rates(choices), key=lambda one: -_merit(choices, one, 1.0))
        tried += equal[:_N_STARTS]
    ended = [one for start in tried for one in (start, _improved(choices, start))]
    return max(ended, key=lambda one: _rank(choices, one))


def is_better(choices: ThresholdChoices, one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether choices are better than others: the constraints first, then the accuracy."""
    return _rank(choices, one) > _rank(choices, other)


def _rank(choices: ThresholdChoices, positions: Sequence[int]) -> tuple[bool, float, float]:
    """Return what is larger for better choices: bound first, then accuracy."""
    violation = choices.violation(choices.rates(positions))
    met = bool(at_most(violation))
    accuracy = choices.correct(positions)
    return met, accuracy if met else -violation, accuracy


def _merit(choices: ThresholdChoices, positions: Sequence[int], price: float) -> float:
    violation = choices.violation(choices.rates(positions))
    return choices.correct(positions) - price * max(violation, 0.0)


def _equal_rates(choices: ThresholdChoices) -> Iterator[list[int]]:
    """Yield choices at which the groups select equal shares of their choices."""
    for share in np.linspace(0.0, 1.0, _N_QUANTILES):
        yield [round(share * (len(one) - 1)) for one in choices.groups]


def _improved(choices: ThresholdChoices, start: Sequence[int]) -> list[int]:
    """Return better choices near a start."""
    positions, best = list(start), list(start)
    for price in _PRICES:
        for _ in range(_MOST_SWEEPS):
            if not _sweep(choices, positions, price):
                break
        if _rank(choices, positions) > _rank(choices, best):
            best = list(positions)
    return best


def _sweep(choices: ThresholdChoices, positions: list[int], price: float) -> bool:
    """Choose anew for every group; return whether anything changed."""
    rates, changed = choices.rates(positions), False
    for k, one in enumerate(choices.groups):
        p = positions[k]
        others = rates.copy()
        others[one.cells] -= one.rates[:, p]
        base = choices.combination @ others + choices.level
        slope = sp.csr_array(choices.combination[:, one.cells])
        worst = _worst(base, slope, one.rates)
        merit = one.correct - price * np.maximum(worst, 0.0)
        q = int(np.argmax(merit))
        if merit[q] > merit[p] + ROUNDING:
            positions[k], changed = q, True
            rates = others
            rates[one.cells] += one.rates[:, q]
    return changed


def _worst(base: Array, slope: sp.csr_array, rates: Array) -> Array:
    """Return the largest constraint for every choice of a group, (n_choices,)."""
    if not len(base):
        return np.full(rates.shape[1], -np.inf)
    touched = np.flatnonzero(np.diff(slope.indptr))
    fixed = np.delete(base, touched).max(initial=-np.inf)
    most = np.full(rates.shape[1], fixed)
    step = max(_MOST_ENTRIES // max(len(touched), 1), 1)
    rows = sp.csr_array(slope[touched])
    for start in range(0, rates.shape[1], step):
        here = slice(start, start + step)
        values = rows @ rates[:, here] + base[touched][:, None]
        most[here] = np.maximum(most[here], values.max(axis=0, initial=-np.inf))
    return most
