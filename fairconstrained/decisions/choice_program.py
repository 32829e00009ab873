"""One threshold for each group under any constraints on rates, as a mixed-integer program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from fairconstrained.decisions.threshold_choices import ThresholdChoices
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.typing import Array

_MOST_CHOICES = 600  # of all groups together in one program
_LEAST_CHOICES = 12  # of a group
_NODES = 60_000  # times choices: what branch and bound may cost
_GAP, _WIDE_GAP = 1e-9, 3e-4  # relative, at which a program with all choices, and with some, ends
_MARGINS = (0.0, 2e-6)  # the second one exceeds the tolerance of the program's solver
_FINER = 4  # how much nearer to each other the next choices are


def choose(choices: ThresholdChoices, starts: Sequence[Sequence[int]]) -> tuple[list[int], float]:
    r"""Return accurate choices that meet the constraints, and a bound on what choices can add.

    With :math:`x_{kp} = 1` where group k has choice p, the accuracy and the constraints are linear:

    .. math::
        \max \sum_{kp} \mathrm{correct}_{kp}\, x_{kp} \quad \text{s.t.} \quad
        \sum_p x_{kp} = 1, \quad R \sum_{kp} \mathrm{rates}_{kp}\, x_{kp} + l \le 0.

    With few rows the program has all choices, and its answer is the best one. With many rows it has
    choices at equal distances, then those near its answer, until these are next to each other.

    Parameters
    ----------
    choices : ThresholdChoices
        The choices and the constraints.
    starts : sequence of sequences of int
        Choices that the answer is compared with.

    Returns
    -------
    positions : list of int
        A choice for every group.
    bound : float
        No choices that meet the constraints add more to the accuracy; infinity if there is no
        proof, as with many rows.
    """
    best = max(map(list, starts), key=choices.rank)
    lengths = np.array([len(one) for one in choices.groups])
    most = max(_MOST_CHOICES // len(lengths), _LEAST_CHOICES)
    if lengths.sum() <= _MOST_CHOICES or lengths.max() <= most:
        found, bound = _solved(choices, [np.arange(n) for n in lengths])
        return max([best, *found], key=choices.rank), bound
    steps = np.maximum(lengths // most, 1)
    kept = [
        np.unique(np.append(np.arange(0, n, s), n - 1)) for n, s in zip(lengths, steps, strict=True)
    ]
    while True:
        found, _ = _solved(choices, kept)
        best = max([best, *found], key=choices.rank)
        if steps.max() == 1:
            return best, np.inf
        steps = np.maximum(steps // _FINER, 1)
        near = np.arange(-(most // 2), most // 2 + 1)
        kept = [
            np.unique(np.clip([0, *(p + s * near), n - 1], 0, n - 1))
            for p, s, n in zip(best, steps, lengths, strict=True)
        ]


def _solved(choices: ThresholdChoices, kept: Sequence[Array]) -> tuple[list[list[int]], float]:
    """Return the best of some choices in a list, empty if none was found, and the bound on them."""
    bound, whole = np.inf, sum(map(len, kept)) == sum(map(len, choices.groups))
    for margin in _MARGINS:
        shares, limit = _program(choices, kept, margin, _GAP if whole else _WIDE_GAP)
        bound = limit if margin == 0.0 else bound
        found = [int(rows[np.argmax(part)]) for rows, part in zip(kept, shares, strict=False)]
        if not found or choices.rank(found)[0]:
            return [found] if found else [], bound
    return [], bound


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
