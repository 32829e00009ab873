"""Objectives: what an estimator minimises, mean losses and losses of pairs.

A function of one margin belongs in ``functions``; its mean over rows or pairs belongs here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairconstrained.functions.losses import LOSSES, Loss
from fairconstrained.objectives.base import MeanLoss, Objective
from fairconstrained.objectives.pairwise import PairwiseLoss, PartialAUC, QueryPairLoss
from fairconstrained.utils.registry import resolve

__all__ = [
    "OBJECTIVES",
    "MeanLoss",
    "Objective",
    "PairwiseLoss",
    "PartialAUC",
    "QueryPairLoss",
    "resolve_objective",
]


OBJECTIVES: dict[str, Callable[[], Objective]] = {
    **{name: partial(MeanLoss, name) for name in LOSSES},
    "auc": PairwiseLoss,
    "partial_auc": PartialAUC,
    "query_pairs": QueryPairLoss,
}


def resolve_objective(argument: str, value: object) -> Objective:
    """Return the objective that a user has named or passed; a loss is averaged over all rows.

    Parameters
    ----------
    argument : str
        The argument's name, for messages.
    value : str, Loss or Objective
        What the user passed.

    Raises
    ------
    ValueError
        If a name is unknown; the message lists the valid ones. If a parameter of the loss is not
        valid.
    TypeError
        If the value is neither a name nor an instance.
    """
    if isinstance(value, Loss):
        value.check_parameters()
        return MeanLoss(value)
    return resolve(argument, value, OBJECTIVES, Objective)
