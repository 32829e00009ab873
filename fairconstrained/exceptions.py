"""Warnings and errors, each with the figures that led to it."""

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
    """No model better than one that decides the same of everybody meets a bound on decisions."""


class InputWarning(UserWarning):
    """An argument is accepted, but is probably not what was meant."""


class VacuousConstraintWarning(UserWarning):
    """A cell of a constraint holds no rows, so that nothing is asked of it."""


class InfeasibleConstraintWarning(ConvergenceWarning):
    """No model was found that meets the constraints; the least unfair one is kept."""


class IncompatibleSolverError(ValueError):
    """A solver lacks what a problem needs, for instance smoothness."""
