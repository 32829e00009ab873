"""Gradients of weighted sums of functions at a point, from which others are combined."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.rounding import same_values
from fairconstrained.utils.typing import Array

_MOST_KEPT = 3
_WEIGHT_ACCURACY = 1e-14  # relative to the largest weight
_LARGEST_SHARE = 100.0  # errors of rounding grow with it


class KnownGradients:
    """The last gradients of weighted sums of the same functions at one point.

    The gradient is linear in the weights: where the weights that are asked for are a combination of
    known ones, no backward pass is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.problem.known_gradients import KnownGradients
    >>> known = KnownGradients()
    >>> known.add(np.array([1.0, 0.5]), np.array([3.0, 1.0]))
    >>> known.add(np.array([0.0, 1.0]), np.array([2.0, 0.0]))
    >>> known.find(np.array([1.0, 1.0])).round(12)
    array([4., 1.])
    >>> known.find(np.array([1.0, 0.5, 0.2])) is None
    True
    """

    def __init__(self) -> None:
        self._weights: list[Array] = []
        self._gradients: list[Array] = []

    def add(self, weights: Array, gradient: Array) -> None:
        """Keep a gradient; the oldest one goes if there are three.

        Parameters
        ----------
        weights : ndarray of shape (n_functions,)
            The weights of the functions.
        gradient : ndarray of shape (n_variables,)
            The gradient of their weighted sum.
        """
        self._weights = [*self._weights, weights][-_MOST_KEPT:]
        self._gradients = [*self._gradients, gradient][-_MOST_KEPT:]

    def find(self, weights: Array) -> Array | None:
        """Return a new array with the gradient for some weights, None if it is not known.

        Parameters
        ----------
        weights : ndarray of shape (n_functions,)
            The weights.
        """
        for known, gradient in zip(self._weights, self._gradients, strict=True):
            if same_values(known, weights):
                return gradient.copy()
        return self._combined(weights)

    def _combined(self, weights: Array) -> Array | None:
        """Return the gradient as a combination of known ones, None if it is not one."""
        same = [k for k, known in enumerate(self._weights) if known.shape == weights.shape]
        if len(same) < 2:
            return None
        table = np.array([self._weights[k] for k in same]).T
        if not (np.all(np.isfinite(table)) and np.all(np.isfinite(weights))):
            return None
        shares = np.linalg.lstsq(table, weights, rcond=None)[0]
        error = np.abs(table @ shares - weights).max()
        if (
            error > _WEIGHT_ACCURACY * np.abs(weights).max()
            or np.abs(shares).max() > _LARGEST_SHARE
        ):
            return None
        combined: Array = shares @ np.array([self._gradients[k] for k in same])
        return combined
