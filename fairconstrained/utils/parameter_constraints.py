"""Valid values of parameters, in the form of scikit-learn's ``_parameter_constraints``.

Parameters have them in their types, such as ``eta: Positive | None = None``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from inspect import get_annotations, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import RandomState

ParameterConstraints = dict[str, list[Any]]
P = ParamSpec("P")
T = TypeVar("T")


class Number(Interval):
    """The numbers of an interval; True and False are not numbers."""

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is one of them."""
        return not isinstance(val, bool | np.bool_) and bool(super().is_satisfied_by(val))

    def __repr__(self) -> str:
        """Return the words for messages: `help` shows them."""
        return str(self)


class Numbers(Number):
    """Sequences of one or more numbers of an interval, or also of none."""

    def __init__(self, each: Number, *, empty: bool = False):
        super().__init__(each.type, each.left, each.right, closed=each.closed)
        self.empty = empty

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value is such a sequence."""
        numbers = val.tolist() if isinstance(val, np.ndarray) else val
        if not isinstance(numbers, Sequence) or isinstance(numbers, str):
            return False
        valid = all(super(Numbers, self).is_satisfied_by(number) for number in numbers)
        return valid and (self.empty or len(numbers) > 0)

    def __str__(self) -> str:
        """Return the words for messages."""
        return f"a sequence of numbers, each {super().__str__()}"


POSITIVE = Number(Real, 0, None, closed="neither")
NON_NEGATIVE = Number(Real, 0, np.inf, closed="both")

Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NON_NEGATIVE]
AboveOne = Annotated[float, Number(Real, 1, None, closed="neither")]
Strength = Annotated[float, Number(Real, 0, None, closed="left")]  # finite
Share = Annotated[float, Number(Real, 0, 1, closed="both")]
OpenShare = Annotated[float, Number(Real, 0, 1, closed="neither")]
PositiveShare = Annotated[float, Number(Real, 0, 1, closed="right")]
BelowOne = Annotated[float, Number(Real, 0, 1, closed="left")]
Limit = Annotated[int, Number(Integral, 0, None, closed="left")]
Count = Annotated[int, Number(Integral, 1, None, closed="left")]
Several = Annotated[int, Number(Integral, 2, None, closed="left")]
Jobs = Annotated[int, Number(Integral, None, -1, closed="right")] | Count | None
Text = Annotated[str, str]
Splits = Annotated[Any, "cv_object"]
LayerSizes = Annotated[Sequence[int], Numbers(Number(Integral, 1, None, closed="left"), empty=True)]
Seed = Annotated[RandomState, "random_state"]
Verbosity = Annotated[int, "verbose"]


def one_of(*names: str) -> StrOptions:
    """Return the valid values of a parameter that is one of some strings."""
    return StrOptions(set(names))


@cache
def constraints_of(kind: Any) -> ParameterConstraints:
    """Return what the types of the parameters of a class or function say about valid values."""
    hints, constraints = dict[str, Any](), ParameterConstraints()
    bases = getattr(kind, "__mro__", ())
    for source in (*reversed(bases), kind.__init__ if bases else kind):
        with suppress(NameError):  # annotations that only type checkers can read say nothing
            hints |= get_annotations(source, eval_str=True)
    for name, hint in hints.items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
        valid = [_constraint(part) for part in parts]
        if all(constraint is not ... for constraint in valid):
            constraints[name] = valid
    return constraints


def _constraint(part: Any) -> Any:
    """Return the constraint of a type, an ellipsis where it says nothing."""
    origin = get_origin(part)
    if origin is Annotated:
        return get_args(part)[1]
    if origin is Literal:
        return one_of(*get_args(part))
    if origin in (Callable, Mapping, list):
        return origin
    if part is NoneType:
        return None
    if part is bool:
        return "boolean"
    return part if isinstance(part, type) and part not in (int, float, str, Any) else ...


def check_parameters(owner: Any, prefix: str = "") -> None:
    """Check the parameters of an object, and those of its parameters.

    Those of an estimator are its fields, whichever of them a subclass of the user's names.
    """
    kind: Any = type(owner)
    of_estimator = is_dataclass(kind) and not isinstance(owner, Parametrized)
    names = [each.name for each in fields(kind)] if of_estimator else kind._get_param_names()
    # the defaults of a dataclass are valid, and most values are defaults
    others = {
        name: value
        for name in names
        if (value := getattr(owner, name)) is not getattr(kind, name, ...)
    }
    validate_parameter_constraints(constraints_of(kind), others, f"{prefix}{kind.__name__}")
    if isinstance(owner, Parametrized):
        owner.check_parameters()
    for name, value in others.items():
        if isinstance(value, Parametrized):
            check_parameters(value, f"{name}=")


def check_arguments(called: Any, **arguments: object) -> None:
    """Check arguments of a function or of a class, see `check_parameters`."""
    validate_parameter_constraints(constraints_of(called), arguments, called.__name__)
    for value in arguments.values():
        if isinstance(value, Parametrized):
            check_parameters(value)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that checks its arguments by their types."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        check_arguments(function, **signature(function).bind(*args, **options).arguments)
        return function(*args, **options)

    return call
