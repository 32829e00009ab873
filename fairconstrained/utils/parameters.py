"""Parameters of objects that follow scikit-learn's conventions."""

from __future__ import annotations

from functools import cache

from sklearn.base import BaseEstimator


class Parametrized(BaseEstimator):
    """An object with parameters, whose names are read from its constructor once per class.

    scikit-learn reads the signature on every call of `get_params`, which takes a good part of the
    time of a fit on few rows.
    """

    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is not valid; objects with parameters override it."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())
