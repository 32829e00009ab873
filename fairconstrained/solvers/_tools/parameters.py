"""What the parameters of solvers and step rules may be; most parameters share their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import ClassVar, Protocol

import numpy as np

from fairconstrained.utils.parameters import Parametrized
from fairconstrained.utils.validation import is_number


class Valid(Protocol):
    """The valid values of a parameter; its string is a description, such as "a number > 0"."""

    error: ClassVar[type[Exception]]

    def contains(self, value: object) -> bool:
        """Return whether a value is valid."""


@dataclass(frozen=True)
class Range:
    """The numbers of a kind in an interval.

    Attributes
    ----------
    low, high : float
        The ends of the interval.
    open_ends : bool
        Whether the ends themselves are excluded.
    kind : type
        Real or Integral.
    names : tuple of str
        Strings that are valid as well.
    """

    low: float = 0.0
    high: float = np.inf
    open_ends: bool = False
    kind: type = Real
    names: tuple[str, ...] = ()

    error: ClassVar[type[Exception]] = ValueError

    def contains(self, value: object) -> bool:
        """Return whether a value is valid."""
        if isinstance(value, str):
            return value in self.names
        if not is_number(value, self.kind):
            return False
        if self.open_ends:
            return bool(self.low < value < self.high)
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        """Return the description."""
        what = "an integer" if self.kind is Integral else "a number"
        above, below = (">", "<") if self.open_ends else (">=", "<=")
        limits = [f"{above} {self.low:g}"]
        if self.high < np.inf:
            limits.append(f"{below} {self.high:g}")
        return " or ".join([f"{what} {' and '.join(limits)}", *map(repr, self.names)])


@dataclass(frozen=True)
class Switch:
    """True and False."""

    error: ClassVar[type[Exception]] = ValueError

    def contains(self, value: object) -> bool:
        """Return whether a value is valid."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        """Return the description."""
        return "True or False"


@dataclass(frozen=True)
class Choice:
    """One of several strings.

    Attributes
    ----------
    names : tuple of str
        The strings.
    """

    names: tuple[str, ...]

    error: ClassVar[type[Exception]] = ValueError

    def contains(self, value: object) -> bool:
        """Return whether a value is valid."""
        return isinstance(value, str) and value in self.names

    def __str__(self) -> str:
        """Return the description."""
        return " or ".join(f'"{name}"' for name in self.names)


@dataclass(frozen=True)
class InstanceOf:
    """The instances of a class.

    Attributes
    ----------
    kind : type
        The class.
    description : str
        With an example.
    checked : bool
        Whether the parameters of the instance are checked as well; a solver checks its own.
    """

    kind: type
    description: str
    checked: bool = False

    error: ClassVar[type[Exception]] = TypeError

    def contains(self, value: object) -> bool:
        """Return whether a value is valid."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        """Return the description."""
        return self.description


_POSITIVE = Range(open_ends=True)

# The valid values in every class with a parameter of this name, unless the class has its own entry.
PARAMETERS: Mapping[str, Valid] = {
    **dict.fromkeys(("max_iter", "max_inner", "memory"), Range(kind=Integral)),
    **dict.fromkeys(("batch_size", "check_every", "epoch", "n_sampled"), Range(1, kind=Integral)),
    **dict.fromkeys(
        ("beta", "decay", "epsilon", "first", "margin", "power", "tol", "u_max"), Range()
    ),
    **dict.fromkeys(
        (
            "V", "alpha", "c", "c1", "c2", "delta", "eta", "gamma_0", "modulus", "mu", "nu",
            "offset", "radius", "reach", "rho", "sigma", "size", "strength", "tau", "width",
        ),
        _POSITIVE,
    ),
    **dict.fromkeys(("extrapolation", "margin_rate"), Range(0.0, 1.0)),
    **dict.fromkeys(
        (
            "accelerate", "adapt", "best", "exact", "linearized", "own_tolerance", "polish",
            "repair", "safeguard", "variance_reduction",
        ),
        Switch(),
    ),
    "factor": Range(0.0, 2.0, open_ends=True),
    "growth": Range(1.0, open_ends=True),
    "shrink": Range(0.0, 1.0, open_ends=True),
}  # fmt: skip


@cache
def _with_default_none(kind: type[Parametrized]) -> frozenset[str]:
    """Return the parameters of a class that may be None: those whose default is None."""
    parameters = signature(kind).parameters.values()
    return frozenset(one.name for one in parameters if one.default is None)


def check_parameters(
    owner: Parametrized, own: Mapping[str, Valid] | None = None, prefix: str = ""
) -> None:
    """Check the parameters of a solver or a step rule.

    Parameters
    ----------
    owner : Parametrized
        The solver or step rule.
    own : mapping from str to Valid or None, default=None
        What parameters of this class may be; those without an entry have that of the table, and
        those without any are not checked here.
    prefix : str, default=""
        The parameter that the owner is, for messages.

    Raises
    ------
    ValueError, TypeError
        With the parameter's name, what was found and what is valid.
    """
    title = f"{prefix}{type(owner).__name__}"
    optional = _with_default_none(type(owner))  # type: ignore[arg-type]
    for name, value in owner.get_params(deep=False).items():
        valid = (own or {}).get(name) or PARAMETERS.get(name)
        if valid is None or (value is None and name in optional):
            continue
        if not valid.contains(value):
            none = ", or None" if name in optional else ""
            raise valid.error(f"{title}: {name} must be {valid}{none}; got {value!r}.")
        if isinstance(valid, InstanceOf) and valid.checked:
            check_parameters(value, prefix=f"{title}: {name}=")
