"""Checks of the arguments of generators."""

from numbers import Integral, Real


def check_number(
    name: str, value: object, kind: type[Integral] | type[Real], low: float, high: float
) -> None:
    """Check a number in [low, high).

    Raises
    ------
    ValueError
        If it is not of the kind, or outside.
    """
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= float(value) < high:
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} in [{low}, {high}); got {value!r}.")
