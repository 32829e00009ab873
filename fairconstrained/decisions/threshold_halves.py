"""Two thresholds for each group, for halves of its rows that differ by chance only."""

from __future__ import annotations

import numpy as np

from fairconstrained.decisions.choice_program import choose, mixed_rates
from fairconstrained.decisions.threshold_choices import Choices, ThresholdChoices
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_SIDE = 300  # choices of each half that are compared at the same time
_N_MARGINS = 6
_EXPECTED = 0.1  # weight of a difference of expected rates; that of the rates themselves is 1


def choose_in_halves(
    choices: ThresholdChoices, single: ThresholdChoices, positions: list[int]
) -> list[int]:
    """Return accurate choices for the halves of the groups that meet the constraints.

    The rates of a group are the means of the rates of its halves. Two thresholds can therefore give
    a group every pair of true and false positive rates that random thresholds can give it. The
    search starts from the best single thresholds, and from two thresholds whose rates are nearest
    to those of the best random thresholds. If the latter start violates the constraints, it is
    computed again with a margin. Halves of small groups differ by chance, so that expected rates
    may violate the constraints by as much as they do at that start.

    Parameters
    ----------
    choices : ThresholdChoices
        Those of the halves, from :meth:`ThresholdChoices.in_parts`.
    single : ThresholdChoices
        Those of the groups.
    positions : list of int
        The best single choices, repeated for the halves.

    References
    ----------
    M. Hardt, E. Price, N. Srebro, "Equality of opportunity in supervised learning" (2016), section
    3.2, for random thresholds.
    """
    n, margin = len(single.level), 0.0
    for _ in range(_N_MARGINS):
        wanted = mixed_rates(single.with_level(single.level + margin))
        if not wanted:
            break
        found = list(positions)
        for k, rates in enumerate(wanted[:-1]):
            halves = choices.groups[2 * k], choices.groups[2 * k + 1]
            found[2 * k : 2 * k + 2] = _nearest(*halves, np.concatenate([rates, rates]))
        values = choices.combination @ choices.rates(found) + choices.level
        violation, expected = float(values[:n].max()), float(values[n:].max())
        if at_most(violation):
            loosened = np.append(np.zeros(n), np.full(n, max(expected, 0.0)))
            return choose(choices.with_level(choices.level - loosened), [found, positions])[0]
        margin += violation
    return choose(choices, [positions])[0]


def _nearest(first: Choices, second: Choices, wanted: Array) -> tuple[int, int]:
    """Return the choices of two halves whose rates together are nearest to some rates.

    Parameters
    ----------
    first, second : Choices
        The halves, with the same cells.
    wanted : ndarray of shape (n_own_cells,)
        The rates. Differences of those in the second half, the expected ones, count less.
    """
    n, weights = len(first), np.repeat([1.0, _EXPECTED], len(wanted) // 2)
    centre, width = (n // 2, n // 2), n
    while True:
        kept = [_around(one, width, n) for one in centre]
        distance = np.zeros((len(kept[0]), len(kept[1])))
        for one, other, rate, weight in zip(
            first.rates, second.rates, wanted, weights, strict=True
        ):
            total = one[kept[0], None] + other[kept[1]]
            np.maximum(distance, weight * np.abs(total - rate), out=distance)
        p, q = np.unravel_index(np.argmin(distance), distance.shape)
        centre = int(kept[0][p]), int(kept[1][q])
        if width <= _SIDE:
            return centre
        width = max(width // 16, _SIDE)


def _around(centre: int, width: int, n: int) -> Array:
    """Return at most `_SIDE` choices at equal distances, within half the width of the centre."""
    low, high = max(centre - width // 2, 0), min(centre + width // 2 + 1, n)
    return np.unique(np.linspace(low, high - 1, min(high - low, _SIDE)).astype(int))
