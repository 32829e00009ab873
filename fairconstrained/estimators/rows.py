"""The parts of the rows that are used for training, for validation and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.constraints import Constraint
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import hold_out, split
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.parametrization import FairOptions
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a fit.

    Attributes
    ----------
    training : TrainingData
        What the problem is on.
    validation : TrainingData or None
        What chooses the iterate.
    held_out : TrainingData or None
        With `confidence`: what models are tested on.
    positions : ndarray of int
        The held-out rows' positions among all.
    """

    training: TrainingData
    validation: TrainingData | None
    held_out: TrainingData | None
    positions: Array

    def moved(self, by: float) -> Rows:
        """Return the rows with a threshold that is higher by a number."""
        training, validation, held_out = (
            None if one is None else replace(one, convention=one.convention.moved(by))
            for one in (self.training, self.validation, self.held_out)
        )
        assert training is not None
        return Rows(training, validation, held_out, self.positions)

    @classmethod
    def of(
        cls, estimator: FairOptions, data: TrainingData, constraints: Sequence[Constraint]
    ) -> Rows:
        """Return the parts that an estimator's options ask for.

        Parameters
        ----------
        estimator : estimator
            Its `confidence`, `holdout` and `random_state` are read.
        data : TrainingData
            All rows.
        constraints : sequence of Constraint
            Without constraints nothing is held out.

        Raises
        ------
        ValueError
            If held-out rows cannot test a constraint.
        """
        held_out, positions = None, np.zeros(0, dtype=int)
        if estimator.confidence is not None and constraints:
            check_testable(constraints)
            share, random_state = estimator.holdout, estimator.random_state
            data, held_out, positions = hold_out(data, share, random_state, constraints)
        share = estimator.parametrization.validation_share(estimator, data)
        if share is None:
            return cls(data, None, held_out, positions)
        data, validation, _ = split(data, share, estimator.random_state)
        return cls(data, validation, held_out, positions)
