"""Warnings and errors of this library."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConstantDecisionWarning",
    "ConvergenceWarning",
    "IncompatibleSolverError",
    "InfeasibleConstraintWarning",
    "InputWarning",
    "VacuousConstraintWarning",
]


class ConstantDecisionWarning(UserWarning):
    """The only model found within a bound on predictions predicts the same class for every row."""


class InputWarning(UserWarning):
    """An argument is valid, but probably not what the user intended."""


class VacuousConstraintWarning(UserWarning):
    """A cell of a constraint has no rows, so that the constraint holds trivially there."""


class InfeasibleConstraintWarning(ConvergenceWarning):
    """No feasible model was found; the one with the smallest violation is returned."""


class IncompatibleSolverError(ValueError):
    """A solver cannot be applied to a problem, for example because it needs smooth functions."""
