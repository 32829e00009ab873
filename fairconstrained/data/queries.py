"""Queries: the lists of rows within which a ranker compares scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairconstrained.data.inputs import check_labels
from fairconstrained.utils.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Queries:
    """Which query each row belongs to.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The position of each row's query in `names`.
    names : ndarray of shape (n_queries,)
        The queries, in the order of their first rows.

    Examples
    --------
    >>> from fairconstrained.data.queries import Queries
    >>> queries = Queries.encode(["q7", "q2", "q7"], 3)
    >>> queries.names.tolist(), queries.codes.tolist()
    (['q7', 'q2'], [0, 1, 0])
    """

    codes: Array
    names: Array

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.names)

    @classmethod
    def encode(cls, query: ArrayLike | Queries | None, n_rows: int, *, rows: str = "X") -> Queries:
        """Return the queries of `n_rows` rows.

        Parameters
        ----------
        query : array-like of shape (n_rows,), Queries or None
            Strings, numbers or other labels; rows need not be sorted by them. None stands for one
            query of all rows.
        n_rows : int
            How many rows there are.
        rows : str, default="X"
            What messages call the rows.

        Raises
        ------
        ValueError
            If the number of labels is not that of the rows, or labels are missing or cannot be
            compared.
        """
        if isinstance(query, Queries):
            return query
        if query is None:
            return cls(np.zeros(n_rows, dtype=int), np.array(["all rows"]))
        labels = check_labels("query", query, n_rows, rows=rows)
        try:
            codes, names = pd.factorize(labels)
        except TypeError as error:  # dictionaries and lists
            raise ValueError(
                f"query must hold strings, numbers or other labels, one per row of {rows}: {error}."
            ) from error
        return cls(codes, np.asarray(names))

    def take(self, rows: Array) -> Queries:
        """Return the queries of some rows; a query that none of them has is left out."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Queries(codes.ravel(), self.names[present])


def given_queries(ranker: object, query: ArrayLike | None, method: str) -> ArrayLike:
    """Return the queries that a ranker is passed; raise a ValueError if there are none."""
    if query is None:
        raise ValueError(
            f"{type(ranker).__name__}.{method} needs query=, the query of each row. In pipelines "
            "and searches it is passed by metadata routing: "
            "sklearn.set_config(enable_metadata_routing=True) and search.fit(X, y, query=query)."
        )
    return query


def pairs_within(positive: Array, queries: Array) -> tuple[Array, Array]:
    """Return the rows of all pairs of a positive and a negative row of one query.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_rows,)
        Which rows are positive.
    queries : ndarray of int of shape (n_rows,)
        The query of every row, from 0.

    Returns
    -------
    first, second : ndarray of int of shape (n_pairs,)
        The positive and the negative row of every pair, sorted by query.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.data.queries import pairs_within
    >>> first, second = pairs_within(np.array([1, 0, 0, 1, 0]) > 0, np.array([0, 0, 1, 1, 0]))
    >>> first.tolist(), second.tolist()
    ([0, 0, 3], [1, 4, 2])
    """
    order = np.argsort(queries, kind="stable")
    high, low = order[positive[order]], order[~positive[order]]
    counts = np.bincount(queries[low], minlength=int(queries.max(initial=-1)) + 1)
    starts = np.cumsum(counts) - counts  # of every query's negatives in `low`
    partners = counts[queries[high]]
    ends = np.cumsum(partners)
    shift = np.repeat(starts[queries[high]] - (ends - partners), partners)
    return np.repeat(high, partners), low[np.arange(len(shift)) + shift]
