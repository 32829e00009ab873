"""The groups' rates as a term: what constraints at several thresholds are made of."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.cells import CellMeans
from fairconstrained.constraints.measures import ALL_ROWS, Measures, means, warn_if_alone
from fairconstrained.groups import Groups
from fairconstrained.scalar import Array
from fairconstrained.surrogates import Surrogate


def group_rates(groups: Groups, weight: Array, kind: str) -> Measures:
    """Return the rates of all groups that have rows; warn of others, and if one is alone.

    Parameters
    ----------
    groups : Groups
        The groups.
    weight : ndarray of shape (n_rows,)
        The weights of the rows.
    kind : str
        The constraint, for messages.
    """
    measures = means(groups.codes, weight, groups, "rate", ALL_ROWS, kind)
    warn_if_alone(measures, kind)
    return measures


def rates_of(measures: Measures, surrogate: Surrogate) -> CellMeans:
    """Return the groups' rates as a term, one output each."""
    n = len(measures)
    eye = sp.eye_array(n, format="csr")
    return CellMeans(measures.cells, surrogate, eye, np.zeros(n), names=tuple(measures.names))


def check_count(argument: str, value: Any) -> int:
    """Return a number of thresholds.

    Raises
    ------
    ValueError
        If it is not an integer >= 1.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument} must be an integer >= 1; got {value!r}.")
    return int(value)
