"""Measures of rankings within queries: the discounted gain, and pairwise errors by group."""

from functools import partial

import numpy as np
import pandas as pd

from fairconstrained.data.groups import Groups, check_groups
from fairconstrained.data.inputs import check_labels, check_same_rows, check_weight
from fairconstrained.data.labels import Queries, pairs_within
from fairconstrained.metrics.inputs import check_scores, positive_class
from fairconstrained.utils.arguments import check_between, check_count
from fairconstrained.utils.arrays import Array, ArrayLike, MatrixLike, grouped


def mean_ndcg(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    query: ArrayLike,
    k: int | None = 10,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean over queries of the normalised discounted cumulative gain of the top k.

    With the relevances :math:`r_{(1)}, r_{(2)}, \dots` of a query's rows in the order of falling
    scores,

    .. math::
        \mathrm{NDCG@}k = \frac{\sum_{l \le k} r_{(l)} / \log_2(l + 1)}
        {\max_{\text{orders}} \sum_{l \le k} r_{(l)} / \log_2(l + 1)}.

    Rows with equal scores get the mean of their discounts. Queries without relevant rows are
    left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The relevance of each row, >= 0; 0 and 1 for binary relevance.
    y_pred : array-like of shape (n_samples,)
        The scores.
    query : array-like of shape (n_samples,)
        The query of each row; rows need not be sorted.
    k : int or None, default=10
        The number of ranks that count; None counts all.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the rows; the weight of a query is the mean weight of its rows. Rows of
        weight zero are left out.

    Returns
    -------
    ndcg : float
        In [0, 1]; nan if no query has a relevant row.

    Raises
    ------
    ValueError
        If lengths differ, a value is missing, or relevances are not numbers >= 0.

    See Also
    --------
    sklearn.metrics.ndcg_score : The same for one row of scores per query, all of one length.

    Examples
    --------
    >>> from fairconstrained.metrics import mean_ndcg
    >>> y, scores = [1, 0, 0, 1, 0], [0.3, 0.9, 0.1, 0.8, 0.2]
    >>> round(mean_ndcg(y, scores, query=["a", "a", "a", "b", "b"]), 3)  # (1 / log2(3) + 1) / 2
    0.815
    """
    relevance, scores, queries = _ranked(y_true, y_pred, query, sample_weight=sample_weight)
    weight = check_weight("sample_weight", sample_weight, len(scores), rows="y_pred")
    rows = np.flatnonzero(weight)
    codes = queries.take(rows).codes
    ndcg = _ndcg(relevance[rows], scores[rows], codes, k)
    weights = np.bincount(codes, weight[rows]) / np.bincount(codes)
    counted = ~np.isnan(ndcg)
    if not counted.any():
        return float("nan")
    return float(np.average(ndcg[counted], weights=weights[counted]))


def query_ndcg(
    y_true: ArrayLike, y_pred: ArrayLike, *, query: ArrayLike, k: int | None = 10
) -> pd.Series:
    """Return the normalised discounted cumulative gain of the top k of every query.

    Parameters
    ----------
    y_true, y_pred, query, k
        See :func:`mean_ndcg`.

    Returns
    -------
    ndcg : Series of shape (n_queries,)
        See :func:`mean_ndcg`; nan for queries without relevant rows. Queries are in the order of
        their first rows.

    Raises
    ------
    ValueError
        If lengths differ, a value is missing, or relevances are not numbers >= 0.

    Examples
    --------
    >>> from fairconstrained.metrics import query_ndcg
    >>> query_ndcg([1, 0, 0, 1], [0.3, 0.9, 0.1, 0.8], query=["a", "a", "b", "b"]).round(2)
    query
    a    0.63
    b    1.00
    Name: ndcg, dtype: float64
    """
    relevance, scores, queries = _ranked(y_true, y_pred, query)
    ndcg = _ndcg(relevance, scores, queries.codes, k)
    return pd.Series(ndcg, index=pd.Index(queries.names, name="query"), name="ndcg")


def _ranked(
    y_true: ArrayLike, y_pred: ArrayLike, query: ArrayLike, **others: object
) -> tuple[Array, Array, Queries]:
    """Return relevances and scores as floats, and the queries."""
    labels, scores, queries = _checked(y_true, y_pred, query, **others)
    try:
        relevance = labels.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y_true must hold relevances, numbers >= 0: {error}.") from error
    if not (np.isfinite(relevance).all() and relevance.min() >= 0.0):
        raise ValueError(
            f"y_true must hold relevances, numbers >= 0; the least one is {relevance.min():g}."
        )
    return relevance, scores, queries


def _ndcg(relevance: Array, scores: Array, codes: Array, k: int | None) -> Array:
    """Return the gain of every query; nan without relevant rows."""
    cutoff = len(scores) if k is None else check_count("k", k)
    ideal = _discounted(relevance, relevance, codes, cutoff)
    gain = _discounted(relevance, scores, codes, cutoff)
    ndcg = np.divide(gain, ideal, out=np.full(len(ideal), np.nan), where=ideal > 0.0)
    return np.asarray(np.minimum(ndcg, 1.0))  # rounding


def _discounted(relevance: Array, scores: Array, codes: Array, cutoff: int) -> Array:
    """Return the discounted cumulative gain of every query."""
    order = np.lexsort([-scores, codes])
    query, score = codes[order], scores[order]
    rank = np.arange(len(order)) - grouped(codes)[1][query]
    discount = np.where(rank < cutoff, 1.0 / np.log2(rank + 2.0), 0.0)
    first = np.append(True, (np.diff(query) != 0) | (np.diff(score) != 0))
    tied = np.cumsum(first) - 1
    mean = np.bincount(tied, discount) / np.bincount(tied)
    return np.bincount(query, relevance[order] * mean[tied])


def pairwise_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, query: ArrayLike, pos_label: object = None
) -> float:
    r"""Return the share of pairs within queries whose positive row has the lower score.

    .. math::
        \Pr(s_i < s_j \mid y_i = 1, y_j = 0, q_i = q_j)
        + \tfrac12 \Pr(s_i = s_j \mid y_i = 1, y_j = 0, q_i = q_j)

    All pairs of all queries have the same weight.

    Parameters
    ----------
    y_true, y_pred, query, pos_label
        See :func:`query_pairwise_errors`.

    Returns
    -------
    error : float
        In [0, 1]; nan if there are no pairs.

    Examples
    --------
    >>> from fairconstrained.metrics import pairwise_error
    >>> pairwise_error([1, 0, 1, 0], [0.9, 0.1, 0.2, 0.2], query=[1, 1, 2, 2])
    0.25
    """
    scores, first, second, _ = _pairs(y_true, y_pred, query, pos_label)
    return float(np.mean(_wrong(scores, first, second))) if len(first) else float("nan")


def query_pairwise_errors(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    query: ArrayLike,
    sensitive_features: MatrixLike | Groups,
    pos_label: object = None,
) -> pd.DataFrame:
    r"""Return the pairwise errors of every query, by the groups of the two rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The labels, of two classes.
    y_pred : array-like of shape (n_samples,)
        The scores.
    query : array-like of shape (n_samples,)
        The query of each row; rows need not be sorted.
    pos_label : label or None, default=None
        The positive class; None means the second of the sorted classes.
    sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
        The groups. Rows with equal values in all columns form one group.

    Returns
    -------
    errors : DataFrame of shape (n_queries, n_groups ** 2)
        The columns are pairs (group of the positive row, group of the negative row), the rows
        queries in the order of their first rows; nan where there are no such pairs.

    References
    ----------
    PLADA, appendix D.3; H. Narasimhan, A. Cotter, M. Gupta, S. Wang, "Pairwise fairness for ranking
    and regression", AAAI 2020.

    Examples
    --------
    >>> from fairconstrained.metrics import query_pairwise_errors
    >>> query_pairwise_errors(
    ...     [1, 1, 0, 0], [2, 1, 0, 3], query=[7] * 4, sensitive_features=["a", "b", "a", "b"]
    ... )
    positive    a         b
    negative    a    b    a    b
    query
    7         0.0  1.0  0.0  1.0
    """
    scores, first, second, queries = _pairs(
        y_true, y_pred, query, pos_label, sensitive_features=sensitive_features
    )
    groups = check_groups(sensitive_features, len(scores), rows="y_pred", compared=True)
    compared = groups.known[first] & groups.known[second]
    first, second = first[compared], second[compared]
    n, size = len(groups), len(queries) * len(groups) ** 2
    cell = (queries.codes[first] * n + groups.codes[first]) * n + groups.codes[second]
    counts = np.bincount(cell, minlength=size)
    sums = np.bincount(cell, _wrong(scores, first, second), minlength=size)
    means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    columns = pd.MultiIndex.from_product([groups.labels] * 2, names=["positive", "negative"])
    index = pd.Index(queries.names, name="query")
    return pd.DataFrame(means.reshape(-1, n * n), index=index, columns=columns)


def query_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    query: ArrayLike,
    sensitive_features: MatrixLike,
    pos_label: object = None,
    quantile: float = 1.0,
) -> float:
    r"""Return the largest difference over queries of the pairwise errors across groups.

    .. math::
        \max_q \max_{a \ne b} |\Pr(s_i < s_j \mid i \in q, a+;\ j \in q, b-)
        - \Pr(s_i < s_j \mid i \in q, b+;\ j \in q, a-)|

    Ties count half. Queries without the pairs to be compared are left out. With strata
    (:func:`~fairconstrained.with_strata`) rows are compared within them, and the largest difference
    of all strata is returned.

    Parameters
    ----------
    y_true, y_pred, query, sensitive_features, pos_label
        See :func:`query_pairwise_errors`.
    quantile : float, default=1.0
        Which quantile of the queries' differences is returned, in [0, 1]: 1 is the largest, 0.5
        the median.

    Returns
    -------
    difference : float
        In [0, 1]; nan if no query has the pairs to be compared.

    References
    ----------
    PLADA, appendix D.3.

    Examples
    --------
    >>> from fairconstrained.metrics import query_parity_difference
    >>> query_parity_difference(
    ...     [1, 1, 0, 0], [2, 1, 0, 3], query=[7] * 4, sensitive_features=["a", "b", "a", "b"]
    ... )
    1.0
    """
    level = check_between("quantile", quantile, 0.0, 1.0, "of the queries' differences")
    _, scores, _ = _checked(y_true, y_pred, query, sensitive_features=sensitive_features)
    groups = check_groups(sensitive_features, len(scores), rows="y_pred", compared=True)
    measured = partial(query_pairwise_errors, y_true, scores, query=query, pos_label=pos_label)
    errors = (measured(sensitive_features=part) for part in groups.by_stratum)
    quantiles = [np.quantile(gaps, level) for gaps in map(query_gaps, errors) if len(gaps)]
    return float(max(quantiles, default=np.nan))


def query_gaps(errors: pd.DataFrame) -> Array:
    """Return the largest difference across groups of every query that has one.

    Parameters
    ----------
    errors : DataFrame
        The pairwise errors, from :func:`query_pairwise_errors`.
    """
    n = round(len(errors.columns) ** 0.5)
    by_pair = errors.to_numpy().reshape(-1, n, n)
    difference = np.abs(by_pair - by_pair.swapaxes(1, 2))
    upper = difference[:, *np.triu_indices(n, 1)]
    known = ~np.isnan(upper).all(axis=1)
    return np.asarray(np.nanmax(upper[known], axis=1)) if known.any() else np.zeros(0)


def _wrong(scores: Array, first: Array, second: Array) -> Array:
    """Return 1 for a pair in the wrong order, 1/2 for a tie, else 0."""
    return 0.5 - 0.5 * np.sign(scores[first] - scores[second])


def _pairs(
    y_true: ArrayLike, y_pred: ArrayLike, query: ArrayLike, pos_label: object, **others: object
) -> tuple[Array, Array, Array, Queries]:
    """Return the scores, the rows of all pairs, and the queries."""
    labels, scores, queries = _checked(y_true, y_pred, query, **others)
    positive = labels == positive_class(labels, pos_label)
    return scores, *pairs_within(positive, queries.codes), queries


def _checked(
    y_true: ArrayLike, y_pred: ArrayLike, query: ArrayLike | None, **others: object
) -> tuple[Array, Array, Queries]:
    """Return the labels, the scores and the queries."""
    check_same_rows(y_true=y_true, y_pred=y_pred, query=query, **others)
    scores = check_scores("y_pred", y_pred)
    labels = check_labels("y_true", y_true, len(scores), rows="y_pred")
    if query is None:
        raise ValueError("query must hold the query of each row of y_pred; got None.")
    return labels, scores, Queries.encode(query, len(scores), rows="y_pred")
