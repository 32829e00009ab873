"""The directions in which rates of decisions change, from the rows near the threshold."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.terms.decision_rates import as_cell_means, normal_density
from fairconstrained.utils.typing import Array


def rate_slopes(part: CompositeFunction, w: Array, scores: Array, window: float) -> Array:
    """Return the gradients of the rates of decisions in cells, (n_cells, n_parameters).

    Rates of decisions change with the features of the rows at the threshold, which are weighted by
    :func:`~fairconstrained.terms.decision_rates.normal_density`.

    Parameters
    ----------
    part : CompositeFunction
        Averages over cells of a model's scores.
    w : ndarray of shape (n_variables,)
        The variables.
    scores : ndarray of shape (n_rows,)
        The scores.
    window : float
        The bandwidth.
    """
    term = as_cell_means(part.term)
    assert term is not None
    density = normal_density(scores, window)
    rows = np.flatnonzero(density)
    density = density[rows]
    near = sp.csr_array(term.cells[:, rows])
    parameters = w[: part.model.n_parameters]
    slopes = np.zeros((term.n_statistics, len(parameters)))
    for k, (start, end) in enumerate(zip(near.indptr[:-1], near.indptr[1:], strict=True)):
        members = near.indices[start:end]
        if len(members):  # else no row of the cell is near the threshold
            _, pullback = part.model.batch(rows[members]).forward(parameters)
            slopes[k] = pullback(near.data[start:end] * density[members])
    return slopes
