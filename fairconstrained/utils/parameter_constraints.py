"""Valid values of parameters, in the form of scikit-learn's ``_parameter_constraints``."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from fairconstrained.utils.parameters import Parametrized

ParameterConstraints = dict[str, list[Any]]


class Number(Interval):
    """The numbers of an interval; True and False are not numbers."""

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is one of them."""
        return not isinstance(val, bool | np.bool_) and bool(super().is_satisfied_by(val))


class Numbers(Number):
    """Sequences of one or more numbers of an interval."""

    def __init__(self, each: Number):
        super().__init__(each.type, each.left, each.right, closed=each.closed)

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is such a sequence."""
        numbers = val.tolist() if isinstance(val, np.ndarray) else val
        if not isinstance(numbers, Sequence) or not numbers:
            return False
        return all(super(Numbers, self).is_satisfied_by(number) for number in numbers)

    def __str__(self) -> str:
        """Return the words for messages."""
        return f"a sequence of numbers, each {super().__str__()}"


POSITIVE = Number(Real, 0, None, closed="neither")
NON_NEGATIVE = Number(Real, 0, np.inf, closed="both")
STRENGTH = Number(Real, 0, None, closed="left")  # finite
SHARE = Number(Real, 0, 1, closed="both")
OPEN_SHARE = Number(Real, 0, 1, closed="neither")
LIMIT = Number(Integral, 0, None, closed="left")
COUNT = Number(Integral, 1, None, closed="left")


def one_of(*names: str) -> StrOptions:
    """Return the valid values of a parameter that is one of some strings."""
    return StrOptions(set(names))


def check_parameters(owner: Parametrized, prefix: str = "") -> None:
    """Check the parameters of an object, and those of its parameters, that have constraints.

    Parameters
    ----------
    owner : Parametrized
        The object.
    prefix : str, default=""
        The parameter that the object is, for messages.

    Raises
    ------
    ValueError, TypeError
        With the parameter's name, what is valid and what was found.
    """
    parameters, kind = owner.get_params(deep=False), type(owner)
    constraints: ParameterConstraints = {}
    for base in reversed(kind.__mro__):  # those of a parameter that a class inherits hold for it
        constraints |= vars(base).get("_parameter_constraints", {})
    check_arguments(f"{prefix}{kind.__name__}", constraints, **parameters)
    for name, value in parameters.items():
        if hasattr(type(value), "_parameter_constraints"):
            check_parameters(value, f"{name}=")


def check_arguments(caller: str, constraints: ParameterConstraints, **arguments: object) -> None:
    """Check the arguments of a function, see `check_parameters`."""
    validate_parameter_constraints(constraints, arguments, caller_name=caller)
