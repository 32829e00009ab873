"""An order of the rows that depends on their content only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairconstrained.data.validation import TrainingData

_MOST_ROWS = 2_000
_MOST_VALUES = 1_000_000


def sorted_rows(data: TrainingData, *, dense: bool = False) -> TrainingData:
    """Return the rows in sorted order.

    Sums over rows are rounded in the order of the rows. If the rows are few, a search that chooses
    among models by counts of decisions can end elsewhere because of that, and a solver at another
    local solution. Sorted rows give the same result for any order of the user's rows. Rows of
    queries, more than 2,000 rows, and rows with more than 1,000,000 values stay as they are.

    Parameters
    ----------
    data : TrainingData
        The rows.
    dense : bool, default=False
        Whether sparse features become dense ones, whose sums are rounded in another way.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.data.row_order import sorted_rows
    >>> from fairconstrained.data.validation import TrainingData
    >>> data = TrainingData(
    ...     np.array([[2.0, 0.0], [1.0, 5.0], [1.0, 4.0]]),
    ...     np.array([-1.0, 1.0, 1.0]),
    ...     np.array([0, 1]),
    ...     None,
    ...     np.ones(3),
    ... )
    >>> ordered = sorted_rows(data)
    >>> ordered.X.tolist(), ordered.positions.tolist()
    ([[1.0, 4.0], [1.0, 5.0], [2.0, 0.0]], [2, 1, 0])
    """
    n_rows, n_features = data.X.shape
    few = n_rows <= _MOST_ROWS and n_rows * n_features <= _MOST_VALUES
    if not few or data.query is not None or data.counts is not None:
        return data
    values = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    codes = [] if data.groups is None else [one.codes for one in data.groups.columns]
    order = np.lexsort((data.sample_weight, *codes, data.y, *values.T[::-1]))
    return (replace(data, X=values) if dense else data).take(order)
