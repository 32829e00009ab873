"""Arguments: objects by name, their parameters, checks of values, optional dependencies; tables.

Checks raise an error that names the argument and what was found.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from itertools import repeat
from numbers import Integral, Real
from operator import attrgetter, call
from types import ModuleType
from typing import Any, Self, TypeGuard, TypeVar, dataclass_transform

import numpy as np
import pandas as pd

from fairconstrained.utils.arrays import Array


def is_query(values: object) -> str:
    """Return "LazyFrame" or "dask" for what has no rows yet, else an empty text."""
    name, package = type(values).__name__, type(values).__module__.split(".")[0]
    return name if name == "LazyFrame" else package * (package == "dask")


def as_frame(values: Any) -> Any:
    """Return a table of polars, pyarrow or others as a frame of pandas, anything else as it is.

    A column of pandas that is no Series becomes an array: scikit-learn takes no rows of others.
    """
    if isinstance(values, pd.Index | pd.api.extensions.ExtensionArray):
        return np.asarray(values)
    if isinstance(values, pd.DataFrame) or is_query(values) or not hasattr(values, "__array__"):
        return values
    titles = getattr(values, "column_names", getattr(values, "columns", None))
    if titles is None:
        return values
    return pd.DataFrame({title: np.asarray(values[title]) for title in titles})


def brief(value: object) -> str:
    """Return a value in at most sixty characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def is_number(value: object, kind: type) -> TypeGuard[Any]:
    """Return whether a value is a number of a kind (Real or Integral); True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def check_kappa(kappa: object) -> float:
    """Return kappa as a float."""
    return check_between("kappa", kappa, 0.0, 1.0, "the largest gap allowed")


def _checked(argument: str, value: Any, valid: bool, what: str) -> Any:
    """Return a value; the message of a ValueError says what it must be."""
    if not valid:
        raise ValueError(f"{argument} must be {what}; got {value!r}.")
    return value


def check_between(argument: str, value: object, low: float, high: float, what: str) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and low <= float(value) <= high
    limits = f"between {low:g} and {high:g}" if high < np.finfo(float).max else f">= {low:g}"
    return float(_checked(argument, value, valid, f"a number {limits} ({what})"))


def check_finite(argument: str, value: object) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and bool(np.isfinite(value))
    return float(_checked(argument, value, valid, "a finite number"))


def check_positive(argument: str, value: object) -> float:
    """Return a number as a float."""
    valid = is_number(value, Real) and 0.0 < float(value) < np.inf
    return float(_checked(argument, value, valid, "a finite number > 0"))


def check_count(argument: str, value: object) -> int:
    """Return a count as an int."""
    valid = is_number(value, Integral) and value >= 1
    return int(_checked(argument, value, valid, "an integer >= 1"))


def check_switch(argument: str, value: object) -> bool:
    """Return a switch as a bool."""
    return bool(_checked(argument, value, isinstance(value, bool | np.bool_), "True or False"))


def check_confidence(confidence: object) -> float:
    """Return the confidence as a float."""
    valid = is_number(confidence, Real) and 0.0 < confidence < 1.0
    return float(_checked("confidence", confidence, valid, "a number between 0 and 1"))


def check_numbers(argument: str, values: object, low: float, high: float) -> Array:
    """Return a list of numbers as an array of shape (n_numbers,)."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    inside = np.isfinite(numbers) & (numbers >= low) & (numbers <= high)
    if numbers.ndim != 1 or not numbers.size or not inside.all() or isinstance(values, str):
        limits = "" if low == -np.inf and high == np.inf else f" between {low:g} and {high:g}"
        raise ValueError(
            f"{argument} must be a list of one or more finite numbers{limits}; got {values!r}."
        )
    return numbers


def check_ranks(ranks: object, others: str = "") -> tuple[float, float]:
    """Return the two ends of a range of ranks; the message says what `others` are valid."""
    ends = list(ranks) if isinstance(ranks, Sequence | np.ndarray) else []
    numbers = len(ends) == 2 and all(is_number(end, Real) for end in ends)
    if not numbers or not 0 <= ends[0] < ends[1] <= 1:
        raise ValueError(
            f"ranks must be {others}two numbers 0 <= alpha < beta <= 1, shares counted from the "
            f"highest score, such as (0.05, 0.3); got {ranks!r}."
        )
    return float(ends[0]), float(ends[1])


@dataclass_transform(eq_default=False)
class Parametrized:
    """An object whose parameters are the arguments of its constructor, as in scikit-learn.

    Every subclass becomes a dataclass: its parameters are fields, those of the bases first.
    ``class Name(Base, kw_only=True)`` takes those of a class by name only. Class attributes that
    are no parameters have no type, or are a `ClassVar`. A class may have a constructor of its own;
    its subclasses inherit it.

    `sklearn.base.clone`, searches and nested parameters such as ``surrogate__tau`` work with it. It
    needs nothing of scikit-learn itself: workers of a cluster receive such objects, and would have
    to import scikit-learn, which takes some 50 MB. The signature of the constructor is read once
    per class.
    """

    _own_constructor = False  # whether the class, or a base, has written its constructor

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        super().__init_subclass__()
        cls._own_constructor = "__init__" in vars(cls) or cls._own_constructor
        dataclass(cls, init=not cls._own_constructor, eq=False, repr=False, kw_only=kw_only)

    def check_parameters(self) -> None:
        """Raise a ValueError if parameters are not valid in a way that their types do not say."""

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Return the defaults of the arguments of the constructor, by name in sorted order."""
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
    argument: str, value: object, table: Mapping[str, Callable[..., T]], base: type[T]
) -> T:
    """Return `value` if it is an instance of `base`, else what `table` makes of the name.

    Messages name the argument and list the names of the table.
    """
    if isinstance(value, base):
        if isinstance(value, Parametrized):
            value.check_parameters()
        return value
    if isinstance(value, str) and value in table:
        return table[value]()
    names = ", ".join(repr(name) for name in table)
    if isinstance(value, str):
        raise ValueError(f"{argument}={value!r} is unknown. Valid names: {names}.")
    raise TypeError(
        f"{argument} must be one of {names} or an instance of {base.__name__}; got {value!r}"
        + (" (a class: add parentheses)." if isinstance(value, type) else ".")
    )


def check_unset(owner: object, why: str, **values: object) -> None:
    """Raise a ValueError with a reason if parameters of an object have other values than these."""
    for name, value in values.items():
        if (given := getattr(owner, name, value)) != value:
            raise ValueError(f"{name}={given!r} {why} {name}={value!r}.")


def check_option(argument: str, value: object, options: Collection[str]) -> str:
    """Return a value that is one of the options; the message of a ValueError lists them."""
    if isinstance(value, str) and value in options:
        return value
    names = ", ".join(repr(name) for name in options)
    raise ValueError(f"{argument}={value!r} is unknown. Valid values: {names}.")


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module of an optional dependency.

    Examples
    --------
    >>> from fairconstrained.utils.arguments import import_extra
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
