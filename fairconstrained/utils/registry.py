"""Objects by name, and modules of optional dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from fairconstrained.utils.parameters import Parametrized

T = TypeVar("T")


def resolve(
    argument: str,
    value: object,
    table: Mapping[str, Callable[..., T]],
    base: type[T],
    **defaults: object,
) -> T:
    """Return `value` if it is an instance of `base`, else what `table` makes of the name.

    Parameters
    ----------
    argument : str
        The argument's name, for the message.
    value : str or instance of `base`
        What the user gave.
    table : mapping from str to callable
        The valid names and what makes an instance.
    base : type
        The class instances must have.
    **defaults
        Passed to what makes the instance.

    Raises
    ------
    ValueError
        If a name is not in the table; the message lists those that are. If a parameter of the
        instance is not valid.
    TypeError
        If the value is neither a string nor an instance, for instance a class.
    """
    if isinstance(value, base):
        if isinstance(value, Parametrized):
            value.check_parameters()
        return value
    if isinstance(value, str) and value in table:
        return table[value](**defaults)
    names = ", ".join(repr(name) for name in table)
    if isinstance(value, str):
        raise ValueError(f"{argument}={value!r} is unknown. Valid names: {names}.")
    raise TypeError(
        f"{argument} must be one of {names} or an instance of {base.__name__}; got {value!r}"
        + (" (a class: add parentheses)." if isinstance(value, type) else ".")
    )


def check_option(argument: str, value: object, options: Mapping[str, T]) -> T:
    """Return ``options[value]``.

    Raises
    ------
    ValueError
        If the value is not among the options; the message lists them.
    """
    if isinstance(value, str) and value in options:
        return options[value]
    names = ", ".join(repr(name) for name in options)
    raise ValueError(f"{argument}={value!r} is unknown. Valid values: {names}.")


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module of an optional dependency.

    Parameters
    ----------
    module : str
        Its name, for instance "lightgbm".
    extra : str
        The extra of this package that installs it.
    purpose : str
        What needs it, for the message.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.

    Examples
    --------
    >>> from fairconstrained.utils.registry import import_extra
    >>> import_extra("not_installed", "boosting", "FairBoostingClassifier")
    Traceback (most recent call last):
        ...
    ImportError: FairBoostingClassifier needs not_installed, which is not installed. Install it
    with: pip install "fairconstrained[boosting]"
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise
        raise ImportError(
            f"{purpose} needs {module}, which is not installed. "
            f'Install it with: pip install "fairconstrained[{extra}]"'
        ) from error
