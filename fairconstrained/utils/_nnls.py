"""Non-negative least squares by the active set method of Lawson and Hanson."""

from __future__ import annotations

import numpy as np

from fairconstrained.utils.typing import Array


def lawson_hanson(A: Array, b: Array, maxiter: int | None = None) -> tuple[Array, float]:
    r"""Minimise ``|A x - b|`` over x >= 0.

    The least squares problems of the method are solved by an SVD of columns of A, so that columns
    may be nearly or exactly dependent.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        The matrix.
    b : ndarray of shape (m,)
        The target.
    maxiter : int or None, default=None
        The limit of least squares problems; None for 3 n.

    Returns
    -------
    x : ndarray of shape (n,)
        The solution.
    distance : float
        ``|A x - b|``.

    Raises
    ------
    RuntimeError
        If the limit is reached.

    References
    ----------
    Lawson, Hanson (1974), *Solving least squares problems*, algorithm NNLS, chapter 23.

    Examples
    --------
    >>> x, distance = lawson_hanson(np.eye(2), np.array([1.0, -2.0]))
    >>> x.tolist(), distance
    ([1.0, 0.0], 2.0)
    """
    n = A.shape[1]
    left = 3 * n if maxiter is None else maxiter
    x, passive, refused = np.zeros(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    rounding = 10.0 * max(A.shape) * np.finfo(float).eps * np.linalg.norm(A, 1)
    while True:
        slopes = np.where(passive | refused, 0.0, A.T @ (b - A @ x))
        if not (slopes > rounding * np.linalg.norm(b - A @ x)).any():
            return x, float(np.linalg.norm(A @ x - b))
        entering = int(slopes.argmax())
        passive[entering] = True
        solution = _least_squares(A, b, passive)
        if solution[entering] <= 0.0:  # its slope is a rounding error
            passive[entering], refused[entering] = False, True
            continue
        refused[:] = False
        while passive.any() and solution[passive].min() <= 0.0:
            left -= 1
            if left < 0:
                raise RuntimeError("Maximum number of iterations reached.")
            leaving = passive & (solution <= 0.0)
            step = (x[leaving] / (x[leaving] - solution[leaving])).min()
            x = x + step * (solution - x)
            passive &= ~(leaving & (x <= rounding * x.max(initial=0.0)))
            x[~passive] = 0.0
            solution = _least_squares(A, b, passive)
        left -= 1
        if left < 0:
            raise RuntimeError("Maximum number of iterations reached.")
        x = solution


def _least_squares(A: Array, b: Array, passive: Array) -> Array:
    """Return the least squares solution with zeros outside the passive set."""
    solution = np.zeros(A.shape[1])
    solution[passive] = np.linalg.lstsq(A[:, passive], b, rcond=None)[0]
    return solution
