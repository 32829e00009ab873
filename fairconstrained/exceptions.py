"""Warnings and errors of this library."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

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

    Merge small groups, use more rows, or loosen the bound (`kappa`, or the constraint's own
    tolerance).
    """


class GeneralizationWarning(UserWarning):
    """Predictions meet a bound on the training rows that they are expected to miss on new rows.

    The gap that is expected on as many new rows is more than twice the bound; `decision_search_`
    has the figures. Use more rows, merge small groups, or loosen the bound
    (`kappa`, or the constraint's own tolerance).
    """


class InputWarning(UserWarning):
    """An argument is valid, but probably not what the user intended.

    It is issued for very small groups, for pandas objects with different row labels, for a `kappa`
    that no constraint uses, for a bound on scores that leaves predictions far apart, and for a
    `SelectionRate` that predictions miss.
    """


class VacuousConstraintWarning(UserWarning):
    """A cell of a constraint has no rows, so that a part of the constraint holds trivially.

    The message names the cell, for example a group without positive labels.
    """


_NAMED = 3  # cells, strata in a warning
_PASSED_OVER = ("fairconstrained", "sklearn", "joblib")  # these call our estimators


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the user's line: the nearest one outside of the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def of_no_rows(cells: Sequence[str]) -> str:
    """Return what is said of cells without rows: a warning for all of them."""
    named = first_of([f"'{cell}'" for cell in cells])
    if len(cells) == 1:
        return f"the cell {named} has no rows; nothing is asked of it."
    return f"the cells {named} have no rows; nothing is asked of them."


def first_of(names: Sequence[str]) -> str:
    """Return the first of some names, and how many others there are."""
    more = len(names) - _NAMED
    others = f" and {more} other{'s' * (more > 1)}" * (more > 0)
    return ", ".join(names[:_NAMED]) + others


@contextmanager
def without_vacuous_warnings() -> Iterator[None]:
    """Silence warnings of cells without rows, where constraints are bound once more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousConstraintWarning)
        yield


class InfeasibleConstraintWarning(ConvergenceWarning):
    """No model that meets the constraints was found; the one with the smallest violation is kept.

    Loosen the bound (`kappa`, or the constraint's own tolerance). The constraints may contradict
    each other, or the solver may have stopped at an infeasible stationary point.
    """


class IncompatibleSolverError(ValueError):
    """A solver cannot be applied to a problem, for example because it needs smooth functions.

    The message names the missing property and the solvers that can solve the problem.
    """
