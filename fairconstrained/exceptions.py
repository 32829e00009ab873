"""Warnings and errors of this library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConstantDecisionWarning",
    "ConvergenceWarning",
    "GeneralizationWarning",
    "IncompatibleSolverError",
    "InfeasibleConstraintWarning",
    "InputWarning",
    "VacuousConstraintWarning",
]


class ConstantDecisionWarning(UserWarning):
    """The only model found that meets a bound on predictions predicts one class for every row.

    Raise `kappa`, merge small groups, or use more rows.
    """


class GeneralizationWarning(UserWarning):
    """Predictions meet a bound on the training rows that they are expected to miss on new rows.

    The gap that is expected on as many new rows is more than twice the bound; `decision_search_`
    has the figures. Use more rows, merge small groups, or raise `kappa`.
    """


class InputWarning(UserWarning):
    """An argument is valid, but probably not what the user intended.

    It is issued for very small groups, for pandas objects with different row labels, for a `kappa`
    that no constraint uses, and for a bound on scores that leaves predictions far apart.
    """


class VacuousConstraintWarning(UserWarning):
    """A cell of a constraint has no rows, so that a part of the constraint holds trivially.

    The message names the cell, for example a group without positive labels.
    """


@contextmanager
def without_vacuous_warnings() -> Iterator[None]:
    """Silence warnings of cells without rows, where constraints are bound once more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousConstraintWarning)
        yield


class InfeasibleConstraintWarning(ConvergenceWarning):
    """No model that meets the constraints was found; the one with the smallest violation is kept.

    Raise `kappa`. The constraints may contradict each other, or the solver may have stopped at an
    infeasible stationary point.
    """


class IncompatibleSolverError(ValueError):
    """A solver cannot be applied to a problem, for example because it needs smooth functions.

    The message names the missing property and the solvers that can solve the problem.
    """
