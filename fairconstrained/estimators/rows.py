"""The rows of a fit, checked, and their parts for training, for validation and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairconstrained.constraints import Constraint
from fairconstrained.data.queries import given_queries
from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.held_out import hold_out, split
from fairconstrained.decisions.population import check_testable
from fairconstrained.estimators.binding import constraints_of
from fairconstrained.estimators.options import (
    check_group_sizes,
    check_options,
    check_several_classes,
)
from fairconstrained.estimators.thresholds import score_convention
from fairconstrained.shards.in_memory import rows_by_atom


def checked_data(
    estimator: Any, passed: tuple[Any, ...], *, path: bool
) -> tuple[TrainingData, list[Constraint]]:
    """Return the rows that a user passes to `fit`, with the model's features, and the constraints.

    Parameters
    ----------
    estimator, passed, path
        See :meth:`~fairconstrained.estimators.fit.Fit.of`.

    Returns
    -------
    data : TrainingData
        All rows of positive weight; one row per atom where there are many rows and every evaluation
        can be made in one read of them.
    constraints : list of Constraint
        With the estimator's tolerance where they have none of their own.

    Raises
    ------
    ValueError
        If a parameter of the estimator or an argument is not valid.
    """
    if estimator.needs_queries:
        given_queries(estimator, passed[-1], "fit")
    check_options(estimator)
    by_atom = not path and estimator._reads_by_atom()
    data = TrainingData.check(estimator, *passed, narrow=by_atom)
    data = replace(data, convention=score_convention(estimator, data))
    constraints = constraints_of(estimator, data)
    if data.several_classes:
        check_several_classes(estimator, constraints)
    check_group_sizes(constraints, data)
    data = estimator._prepared(data)
    found = None
    if data.narrow and all(one.averages_atoms for one in constraints):
        found = rows_by_atom(data)
    return data.widened() if found is None else found, constraints


@dataclass(frozen=True, eq=False)
class RowSplit:
    """The rows of a fit.

    Attributes
    ----------
    training : TrainingData
        What the problem is on.
    split : tuple of TrainingData or None
        Of these rows, those that the model is trained on and those that choose the iterate.
    held_out : TrainingData or None
        With `confidence`: what models are tested on.
    """

    training: TrainingData
    split: tuple[TrainingData, TrainingData] | None
    held_out: TrainingData | None

    def moved(self, by: float) -> RowSplit:
        """Return the rows with a threshold that is higher by a number."""
        held_out = None if self.held_out is None else self.held_out.moved(by)
        return RowSplit(self.training.moved(by), moved_split(self.split, by), held_out)

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, constraints: Sequence[Constraint]) -> RowSplit:
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
        data, held_out = without_held_out(estimator, data, constraints)
        aside = estimator._validation_share(data)
        if aside is None:
            return cls(data, None, held_out)
        trained, validation, _ = split(data, aside, estimator.random_state)
        return cls(data, (trained, validation), held_out)


def without_held_out(
    estimator: Any, data: TrainingData, constraints: Sequence[Constraint]
) -> tuple[TrainingData, TrainingData | None]:
    """Return the rows to train on, and those held out for `confidence`; see `RowSplit.of`."""
    if estimator.confidence is None or not constraints:
        return data, None
    check_testable(constraints)
    share, random_state = estimator.holdout, estimator.random_state
    return hold_out(data, share, random_state, constraints)[:2]


def moved_split(
    rows: tuple[TrainingData, TrainingData] | None, by: float
) -> tuple[TrainingData, TrainingData] | None:
    """Return the two parts of the rows with a threshold that is higher by a number."""
    return None if rows is None else (rows[0].moved(by), rows[1].moved(by))
