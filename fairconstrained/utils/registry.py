"""Parameters of objects, objects by name, and modules of optional dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from itertools import repeat
from operator import attrgetter, call
from types import ModuleType
from typing import Any, Self, TypeVar, dataclass_transform

from fairconstrained.utils.validation import brief


class Parametrized:
    """An object whose parameters are the arguments of its constructor, as in scikit-learn.

    `sklearn.base.clone`, searches and nested parameters such as ``surrogate__tau`` work with it. It
    needs nothing of scikit-learn itself: workers of a cluster receive such objects, and would have
    to import scikit-learn, which takes some 50 MB. The signature of the constructor is read once
    per class.
    """

    def check_parameters(self) -> None:
        """Raise a ValueError if parameters are not valid in a way that their types do not say."""

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Return the defaults of the arguments of the constructor, by name in sorted order."""
        if cls.__init__ is object.__init__:
            return {}
        given = list(signature(cls.__init__).parameters.values())[1:]
        named = {arg.name: arg.default for arg in given if arg.kind is not Parameter.VAR_KEYWORD}
        return dict(sorted(named.items()))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the arguments of the constructor, sorted."""
        return list(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the parameters of parameters, by names such as ``surrogate__tau``.

        Returns
        -------
        params : dict
        """
        params = {name: getattr(self, name) for name in self._defaults()}
        if not deep:
            return params
        nested: dict[str, Any] = {}
        for name, value in params.items():
            if hasattr(value, "get_params") and not isinstance(value, type):
                nested |= {f"{name}__{key}": part for key, part in value.get_params().items()}
        return params | nested

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parameters, by names such as ``surrogate__tau``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no parameter of a name.
        """
        names, nested = self._get_param_names(), dict[str, dict[str, Any]]()
        for key, value in params.items():
            name, has_parts, part = key.partition("__")
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for {self}. Valid parameters are: {names}."
                )
            if has_parts:
                nested.setdefault(name, {})[part] = value
            else:
                setattr(self, name, value)
        for name, parts in nested.items():
            getattr(self, name).set_params(**parts)
        return self

    def __repr__(self) -> str:
        """Return the constructor with the parameters that differ from their defaults.

        Of rows, such as reference rows, it has the first characters only.
        """
        defaults = self._defaults()
        values = self.get_params(deep=False)
        rows = {name for name, value in values.items() if len(getattr(value, "shape", ())) > 0}
        given = {name: (brief if name in rows else repr)(value) for name, value in values.items()}
        shown = [f"{name}={text}" for name, text in given.items() if text != repr(defaults[name])]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass_transform(eq_default=False)
class FieldParameters(Parametrized):
    """A parametrized object whose parameters are fields: every subclass becomes a dataclass.

    Fields of the bases come first; ``class Name(Base, kw_only=True)`` takes those of a class by
    name only. Class attributes that are no parameters are a `ClassVar`.
    """

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        super().__init_subclass__()
        dataclass(cls, eq=False, repr=False, kw_only=kw_only)


T = TypeVar("T")


def every(*abilities: str) -> Any:
    """Return the property that is true where all of these are, by their dotted names."""
    each = [attrgetter(name) for name in abilities]
    return property(lambda whole: all(map(call, each, repeat(whole))))


def joined(
    parts: str, name: str, join: Callable[[Any], Any] = all, kind: Callable[..., Any] = property
) -> Any:
    """Return the property that joins an attribute of all objects that are parts of one.

    `kind` makes it, such as `cached_property` for an object that does not change.
    """
    each = attrgetter(name)
    return kind(lambda whole: join(map(each, getattr(whole, parts))))


def resolve(
    argument: str,
    value: object,
    table: Mapping[str, Callable[..., T]],
    base: type[T],
    **defaults: object,
) -> T:
    """Return `value` if it is an instance of `base`, else what `table` makes of the name.

    Messages name the argument and list the names of the table. `defaults` are passed to what makes
    the instance.
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
    """Return ``options[value]``; the message of a ValueError lists the options."""
    if isinstance(value, str) and value in options:
        return options[value]
    names = ", ".join(repr(name) for name in options)
    raise ValueError(f"{argument}={value!r} is unknown. Valid values: {names}.")


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module of an optional dependency.

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
