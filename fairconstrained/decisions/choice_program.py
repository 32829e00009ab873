"""One threshold for each group under any constraints on rates, as a mixed-integer program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from fairconstrained.decisions.coordinate_search import coordinate_search, is_better
from fairconstrained.decisions.threshold_choices import ThresholdChoices
from fairconstrained.terms.head import as_csr
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_MOST_CHOICES = 600  # of all groups together in one program
_LEAST_CHOICES = 12  # of a group
_NODES = 60_000  # times choices: what branch and bound may cost
_GAP, _WIDE_GAP = 1e-9, 3e-4  # relative, at which a program with all choices, and with some, ends
_MARGINS = (0.0, 2e-6)  # the second one exceeds the tolerance of the program's solver
_N_REFINEMENTS = 2


def choose(choices: ThresholdChoices, starts: Sequence[Sequence[int]]) -> tuple[list[int], float]:
    r"""Return accurate choices that meet the constraints, and a bound on what choices can add.

    With :math:`x_{kp} = 1` where group k has choice p, the accuracy and the constraints are linear:

    .. math::
        \max \sum_{kp} \mathrm{correct}_{kp}\, x_{kp} \quad \text{s.t.} \quad
        \sum_p x_{kp} = 1, \quad R \sum_{kp} \mathrm{rates}_{kp}\, x_{kp} + l \le 0.

    With few rows the program has all choices, and its answer is the best one. With many rows it has
    choices at equal distances, and then those near its answer. Choices of a search by coordinates
    are kept if they are better.

    Parameters
    ----------
    choices : ThresholdChoices
        The choices and the constraints.
    starts : sequence of sequences of int
        Where the search by coordinates starts.

    Returns
    -------
    positions : list of int
        A choice for every group.
    bound : float
        No choices that meet the constraints add more to the accuracy; infinity if there is no
        proof, as with many rows.
    """
    best = coordinate_search(choices, starts)
    lengths = np.array([len(one) for one in choices.groups])
    most = max(_MOST_CHOICES // len(lengths), _LEAST_CHOICES)
    if lengths.sum() <= _MOST_CHOICES or lengths.max() <= most:
        found, bound = _solved(choices, [np.arange(n) for n in lengths])
        return (found if found and is_better(choices, found, best) else best), bound
    spread = [_spread(n, most) for n in lengths]
    for _ in range(1 + _N_REFINEMENTS):
        found, _ = _solved(choices, spread)
        if found:
            best = coordinate_search(choices, [best, found], equal_rates=False)
        around = [max(len(one) // 4, 1) for one in spread]
        spread = [
            _near(p, old, n, most, step)
            for p, old, n, step in zip(best, spread, lengths, around, strict=True)
        ]
    return best, np.inf


def _near(position: int, old: Array, n: int, most: int, step: int) -> Array:
    """Return choices around one, closer to each other than the old ones."""
    place = int(np.searchsorted(old, position))
    low = old[max(place - step, 0)]
    high = old[min(place + step, len(old) - 1)]
    points = np.linspace(low, high, min(int(high - low) + 1, most)).astype(int)
    return np.unique(np.concatenate([points, [0, position, n - 1]]))


def _solved(choices: ThresholdChoices, kept: Sequence[Array]) -> tuple[list[int], float]:
    """Return the best of some choices, an empty list if none was found, and the bound on them."""
    bound = np.inf
    gap = _GAP if sum(map(len, kept)) == sum(map(len, choices.groups)) else _WIDE_GAP
    for margin in _MARGINS:
        shares, limit = _program(choices, kept, margin, gap)
        bound = limit if margin == 0.0 else bound
        found = [int(rows[np.argmax(part)]) for rows, part in zip(kept, shares, strict=False)]
        if not found or at_most(choices.violation(choices.rates(found))):
            return found, bound
    return [], bound


def _spread(n_choices: int, most: int) -> Array:
    """Return choices at equal distances."""
    return np.unique(np.linspace(0, n_choices - 1, min(n_choices, most)).astype(int))


def _program(
    choices: ThresholdChoices, kept: Sequence[Array], margin: float, gap: float
) -> tuple[list[Array], float]:
    """Return the share of every choice in its group, nothing if there is no answer, and the bound.

    The last variables are the cells' rates.
    """
    sizes = [len(one) for one in kept]
    n, n_cells = sum(sizes), choices.n_cells
    pairs = list(zip(choices.groups, kept, strict=True))
    cost = -np.concatenate([one.correct[rows] for one, rows in pairs])
    one_each = sp.block_diag([as_csr(np.ones((1, size))) for size in sizes])
    added = sp.hstack([_rates(one.cells, one.rates[:, rows], n_cells) for one, rows in pairs])
    nothing = sp.csr_array((len(sizes), n_cells))
    fixed = sp.vstack([sp.hstack([one_each, nothing]), sp.hstack([added, -sp.eye_array(n_cells)])])
    target = np.append(np.ones(len(sizes)), np.zeros(n_cells))
    limits = sp.hstack([sp.csr_array((len(choices.level), n)), as_csr(choices.combination)])
    answer = milp(
        np.append(cost, np.zeros(n_cells)),
        constraints=[
            LinearConstraint(sp.csc_array(fixed), target, target),
            LinearConstraint(sp.csc_array(limits), -np.inf, -choices.level - margin),
        ],
        bounds=Bounds(
            np.append(np.zeros(n), np.full(n_cells, -np.inf)),
            np.append(np.ones(n), np.full(n_cells, np.inf)),
        ),
        integrality=np.append(np.ones(n), np.zeros(n_cells)),
        options={"node_limit": max(_NODES // n, 1), "mip_rel_gap": gap},
    )
    limit = np.inf if answer.mip_dual_bound is None else -float(answer.mip_dual_bound)
    if answer.x is None:
        return [], limit
    return np.split(answer.x[:n], np.cumsum(sizes)[:-1]), limit


def _rates(cells: Array, rates: Array, n_cells: int) -> sp.csr_array:
    """Return rates of some cells as rows of a matrix of all cells."""
    place = sp.csr_array(
        (np.ones(len(cells)), (cells, np.arange(len(cells)))), shape=(n_cells, len(cells))
    )
    return sp.csr_array(place @ sp.csr_array(rates))
