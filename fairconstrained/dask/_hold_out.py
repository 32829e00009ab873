"""Rows of collections that are held out from training, for tests of a bound in the population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairconstrained.constraints import Constraint
from fairconstrained.dask._rows import divide
from fairconstrained.dask._shards import Part, Workers
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import HeldOut, claims_on_all, expected_share
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.binding import ScoresOnRows
from fairconstrained.estimators.fit import Fit
from fairconstrained.shards.in_memory import ShardedData
from fairconstrained.shards.model import ShardedLinearModel


@dataclass(frozen=True, eq=False)
class Draw:
    """Which rows are held out: every partition draws its own.

    Attributes
    ----------
    constraints : sequence of Constraint
        What is tested.
    share : float
        The probability with which a row is held out.
    seed : int
        The partitions' generators are seeded with it and the numbers of the partitions.
    """

    constraints: Sequence[Constraint]
    share: float
    seed: int

    def divided(self, workers: Workers, prepared: Sequence[Any]) -> tuple[Part, Part]:
        """Return the training rows and the held-out rows of prepared partitions."""
        n = len(prepared)
        given = [self.share] * n, [self.seed] * n, range(n)
        training, others = workers.changed(divide, prepared, *given, n_parts=2)
        return training, others

    def tested(self, fit: Fit, training: ShardedData, held_out: ShardedData) -> Fit:
        """Return a fit that tests its models on the held-out rows.

        Parameters
        ----------
        fit : Fit
            On the training rows.
        training, held_out : ShardedData
            The rows.
        """
        assert isinstance(fit.model, ShardedLinearModel)
        model = ShardedLinearModel.of(fit.model, held_out.shards, held_out.sample_weight)
        found = HeldOut.of(
            self.constraints,
            problem=fit.problem,
            training=training,
            held_out=held_out,
            rows=None,
            model=model,
            unconstrained=ScoresOnRows(fit.unconstrained, model),
        )
        named = {"holdout_share_": self.share, "holdout_seed_": self.seed}
        return replace(fit, held_out=replace(found, attributes=named))


def held_out_of(
    estimator: Any, data: TrainingData, constraints: Sequence[Constraint]
) -> Draw | None:
    """Return the draw that an estimator's options ask for, None if all rows are for training.

    Parameters
    ----------
    estimator : estimator
        Its `confidence`, `holdout` and `random_state` are read.
    data : TrainingData
        All rows, one per atom.
    constraints : sequence of Constraint
        What is to be tested.

    Raises
    ------
    ValueError
        If held-out rows cannot test a constraint.
    """
    if estimator.confidence is None or not constraints:
        return None
    check_testable(constraints)
    share = estimator.holdout
    if isinstance(share, str):
        share = expected_share(claims_on_all(constraints, data))
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    return Draw(constraints, float(share), seed)
