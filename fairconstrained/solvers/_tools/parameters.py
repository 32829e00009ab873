"""Checks of the parameters that solvers share by name."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

from fairconstrained.utils.validation import check_switch, is_number

_COUNTS = {"max_iter", "max_inner", "check_every", "memory", "max_doublings"}
_NUMBERS = {
    "beta", "c", "c1", "c2", "decay", "delta", "epsilon", "extrapolation", "first", "gamma_0",
    "growth", "margin", "margin_rate", "mu", "nu", "radius", "reach", "rho", "shrink", "sigma",
    "strength", "tau", "tol", "u_max", "width",
}  # fmt: skip
_SWITCHES = {"accelerate", "adapt", "exact", "linearized", "polish", "repair", "safeguard"}


def check_parameters(kind: str, parameters: Mapping[str, object]) -> None:
    """Check the parameters of a solver; None stands for what the solver chooses itself.

    Parameters
    ----------
    kind : str
        The name of the solver.
    parameters : mapping from str to object
        The parameters. Those with other names are not checked here.

    Raises
    ------
    ValueError
        With the parameter's name, what was found and what is valid.
    """
    for name, value in parameters.items():
        if value is None:
            continue
        if name in _SWITCHES:
            check_switch(f"{kind}: {name}", value)
        elif name in _COUNTS and not (is_number(value, Integral) and value >= 0):
            raise ValueError(f"{kind}: {name} must be an integer >= 0 or None; got {value!r}.")
        elif name in _NUMBERS and not (is_number(value, Real) and not np.isnan(value)):
            raise ValueError(f"{kind}: {name} must be a number or None; got {value!r}.")
        elif name in _NUMBERS and value < 0.0:  # type: ignore[operator]
            raise ValueError(f"{kind}: {name} must be at least 0; got {value!r}.")
