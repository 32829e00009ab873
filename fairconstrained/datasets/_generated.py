"""Generated data: a known gap of demographic parity, and queries of the shape of MSLR-WEB10K.

MSLR-WEB10K itself is loaded from a file that the user names.
"""

import os
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy import sparse as sp
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch, check_random_state

from fairconstrained.utils import parameter_constraints as valid
from fairconstrained.utils.arrays import Array

_SPREAD = 0.4  # of the logarithm of the number of documents
_LOWER_GROUP = 0.4  # the share of documents of lower quality
_QUALITY, _POPULARITY = 0.6, 0.3  # correlations with the latent relevance
_CALIBRATION = 20_000  # documents from which the threshold of the labels is taken
_BLOCK = 1 << 22  # entries of the features that are generated at a time
_ATTEMPTS = 50  # blocks without an accepted query
_MSLR = "MSLR-WEB, Microsoft Research, https://www.microsoft.com/en-us/research/project/mslr/."
_MSLR_WIDTH, _QUALITY_SCORE, _LOWER_QUALITY = 136, 132, 0.4


@valid.checked
def make_biased_classification(
    n_samples: valid.Count = 1000,
    n_features: valid.Count = 10,
    *,
    n_groups: valid.Several = 2,
    gap: valid.BelowOne = 0.2,
    n_informative: valid.Count | None = None,
    class_sep: valid.Strength = 2.0,
    flip_y: Annotated[float, valid.Number(Real, 0, 0.5, closed="left")] = 0.0,
    sparse: bool = False,
    return_coef: bool = False,
    random_state: valid.Seed = None,
) -> tuple[Any, ...]:
    r"""Generate binary classification data with a known demographic parity gap.

    Group :math:`g` of :math:`G` has the positive rate
    :math:`r_g = 1/2 - \mathrm{gap}/2 + \mathrm{gap} \cdot g / (G - 1)`. With a unit vector
    :math:`w`, :math:`z \sim N(0, I)`, :math:`c` = ``class_sep`` and :math:`f` = ``flip_y``,

    .. math:: x = z + \Phi^{-1}(r_g) w, \qquad P(y = 1 \mid x) = f + (1 - 2 f) \, \sigma(c w^T x).

    In group :math:`g` the score :math:`w^T x` has the distribution :math:`N(\Phi^{-1}(r_g), 1)`.
    The selection rate of the Bayes classifier, which predicts 1 if :math:`w^T x > 0`, is therefore
    :math:`r_g`. Given :math:`x`, the label :math:`y` is independent of the group.

    Parameters
    ----------
    n_samples, n_features, n_groups : int, default=1000, 10, 2
        The shape of ``X``, and the number of groups. The sizes of the groups differ by at most one.
    gap : float, default=0.2
        The difference between the selection rates of the Bayes classifier in the last and in the
        first group.
    n_informative : int, default=None
        The number of features that the label depends on. They are the first columns of ``X``. None
        means 5, or ``n_features`` if that is smaller.
    class_sep, flip_y : float, default=2.0, 0.0
        The steepness of the logistic model (with 0 the labels are random), and the probability that
        a label is flipped, below 1/2.
    sparse, return_coef : bool, default=False
        Return ``X`` as a CSR matrix, with 5% of the uninformative entries non-zero; also return
        ``w``.
    random_state : int, RandomState or None, default=None
        The seed of the random number generator.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The features, without the group.
    y, sensitive_features : ndarray of shape (n_samples,)
        The labels, 0 and 1, and the groups, 0 to ``n_groups - 1``.
    coef : ndarray of shape (n_features,)
        The vector ``w``; only with ``return_coef=True``.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> X, y, groups, w = make_biased_classification(gap=0.4, return_coef=True, random_state=0)
    >>> [round(float((X[groups == g] @ w > 0).mean()), 1) for g in (0, 1)]
    [0.3, 0.7]
    """
    used = min(5, n_features) if n_informative is None else n_informative
    if used > n_features:
        raise ValueError(
            f"n_informative={n_informative!r} must be at most n_features, {n_features}."
        )
    # A Generator is much faster than the RandomState that seeds it.
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    groups = rng.permutation(np.arange(n_samples) % n_groups)
    coef = np.zeros(n_features)
    coef[:used] = rng.uniform(0.5, 1.5, used) * rng.choice([-1.0, 1.0], used)
    coef /= np.linalg.norm(coef)
    shifts = norm.ppf(np.linspace(0.5 - gap / 2, 0.5 + gap / 2, n_groups))
    informative = rng.standard_normal((n_samples, used)) + np.outer(shifts[groups], coef[:used])
    probability = flip_y + (1 - 2 * flip_y) * expit(class_sep * (informative @ coef[:used]))
    y = (rng.random(n_samples) < probability).astype(int)
    X = _with_noise(informative, n_features - used, sparse, rng)
    return (X, y, groups, coef) if return_coef else (X, y, groups)


def _with_noise(informative: np.ndarray, extra: int, sparse: bool, rng: np.random.Generator) -> Any:
    shape = (len(informative), extra)
    if not sparse:
        return np.hstack([informative, rng.standard_normal(shape)])
    noise = sp.random_array(shape, density=0.05, random_state=rng, data_sampler=rng.standard_normal)
    return sp.csr_matrix(sp.hstack([sp.csr_array(informative), noise], format="csr"))


@valid.checked
def make_biased_ranking(
    n_queries: valid.Count = 100,
    n_features: valid.Several = 10,
    *,
    n_documents: Annotated[float, valid.Number(Real, 1, None, closed="left")] = 60,
    positives: Annotated[float, valid.Number(Real, 1e-6, 1, closed="left")] = 0.16,
    group_effect: valid.BelowOne = 0.5,
    noise: valid.Strength = 1.0,
    min_positives: valid.Count = 4,
    max_documents: valid.Count | None = None,
    n_generated: valid.Count | None = None,
    context: bool = False,
    random_state: valid.Seed = None,
) -> tuple[Array, Array, Array, Array]:
    r"""Generate ranking data: queries with documents of two groups, and binary relevances.

    The mean of query q is :math:`m_q \sim N(0, I)`, and a document is :math:`x = m_q + A z` with
    :math:`z \sim N(0, I)` and a random matrix A. With orthogonal unit vectors a and d, b =
    ``group_effect`` and a noise :math:`\epsilon \sim N(0, 1)` that is in no feature, the relevance
    of a document is

    .. math::
        r = \sqrt{1 - b^2}\, a^\top z \pm b\, d^\top (m_q + z) + \mathrm{noise} \cdot \epsilon,

    with the plus sign in group 1 and the minus sign in group 0. The documents with the highest r, a
    share ``positives`` of all, are relevant. Groups come from the latent relevance
    :math:`t = a^\top z + \mathrm{noise} \cdot \epsilon`, divided by its standard deviation: the
    quality of a document is :math:`0.6\, t + 0.8\, \epsilon'`, and documents below its 40th
    percentile are group 0, the others group 1. Quality is not a feature; the last feature is a
    popularity, :math:`0.3\, t + 0.95\, \epsilon''` plus the query's mean.

    A model with the same weights for both groups ranks the relevant documents of one group too low
    in some queries, and those of the other group in others, depending on the sign of :math:`d^\top
    m_q`.

    Parameters
    ----------
    n_queries, n_features : int, default=100, 10
        The numbers of queries and of features, >= 2.
    n_documents : float, default=60
        The mean number of documents of a query, which is lognormal.
    positives : float, default=0.16
        The share of relevant documents, in (0, 1).
    group_effect : float, default=0.5
        b, in [0, 1): the influence of the group on the weights.
    noise : float, default=1.0
        The standard deviation of the noise of the relevance, >= 0.
    min_positives : int, default=4
        Queries are accepted if they have this many relevant and as many irrelevant documents, and
        half as many in each group.
    max_documents : int or None, default=None
        Accepted queries are reduced at random to this number of documents; the documents for which
        they were accepted are kept. None keeps all.
    n_generated : int or None, default=None
        The number of queries that are generated, of which `n_queries` accepted ones are drawn at
        random. None generates queries until there are enough.
    context : bool, default=False
        Whether the group and, for each feature, its mean over the query are further columns:
        2 ``n_features`` + 1 in all.
    random_state : int, RandomState or None, default=None
        The seed of the random number generator.

    Returns
    -------
    X : ndarray of shape (n_samples, n_columns)
        The features.
    y : ndarray of shape (n_samples,)
        The relevances, 0 and 1.
    query : ndarray of shape (n_samples,)
        The query of each document, 0 to ``n_queries - 1``; documents are sorted by query.
    sensitive_features : ndarray of shape (n_samples,)
        The groups, 0 and 1.

    Raises
    ------
    ValueError
        If an argument is outside its range, or too few queries are accepted.

    References
    ----------
    The shape is that of MSLR-WEB10K as PLADA, appendix D.3, uses it: 1,100 queries with at least 10
    relevant and 10 irrelevant documents, 125 features, ``context=True``.

    Examples
    --------
    >>> from fairconstrained import make_biased_ranking
    >>> X, y, query, groups = make_biased_ranking(50, 4, random_state=0)
    >>> X.shape[1], len(set(query)), bool(y[groups == 1].mean() > y[groups == 0].mean())
    (4, 50, True)
    """
    least = {"max_documents": 2 * min_positives + 2, "n_generated": n_queries}
    for name, value in {"max_documents": max_documents, "n_generated": n_generated}.items():
        if value is not None and value < least[name]:
            raise ValueError(f"{name} must be None or at least {least[name]}; got {value!r}.")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    source = _source(rng, int(n_features), float(group_effect), float(noise), float(positives))
    fits = int(_BLOCK / (n_documents * n_features))
    size = max(1, min(fits, n_generated or max(64, 2 * n_queries)))
    blocks: list[pd.DataFrame] = []
    generated = accepted = idle = 0
    while idle < _ATTEMPTS and (
        accepted < n_queries if n_generated is None else generated < n_generated
    ):
        size = size if n_generated is None else min(size, n_generated - generated)
        rows = _accepted(source(size, float(n_documents)), min_positives)
        if max_documents is not None:
            rows = _thinned(rng, rows, max_documents, -(-min_positives // 2))
        blocks.append(rows.assign(query=rows["query"] + generated))
        generated += size
        accepted += rows["query"].nunique()
        idle = 0 if len(rows) else idle + 1
    if accepted < n_queries:
        raise ValueError(
            f"n_queries={n_queries}: only {accepted} of {generated} generated queries have "
            f"{min_positives} relevant and as many irrelevant documents, half as many in "
            "each group. Raise n_generated or n_documents, or lower min_positives."
        )
    rows = pd.concat(blocks, ignore_index=True)
    query = pd.factorize(rows["query"])[0]
    chosen = np.arange(n_queries)
    if n_generated is not None:
        chosen = np.sort(rng.permutation(accepted)[:n_queries])
    inside = np.isin(query, chosen)
    rows, query = rows[inside], pd.factorize(query[inside])[0]
    X = rows[range(n_features)].to_numpy()
    if context:
        X = np.column_stack([X, rows["group"], pd.DataFrame(X).groupby(query).transform("mean")])
    return X, rows["y"].to_numpy(), query, rows["group"].to_numpy()


_CELL = ["query", "y", "group"]


def _accepted(rows: pd.DataFrame, least: int) -> pd.DataFrame:
    """Return the queries that have enough documents of both labels, in each group."""
    enough = rows.groupby(_CELL[:2])["y"].transform("size") >= least
    enough &= rows.groupby(_CELL)["y"].transform("size") >= -(-least // 2)
    cells = (2 * rows["y"] + rows["group"]).groupby(rows["query"]).transform("nunique")
    return rows[enough.groupby(rows["query"]).transform("all") & (cells == 4)]


def _thinned(rng: np.random.Generator, rows: pd.DataFrame, most: int, least: int) -> pd.DataFrame:
    """Return at most so many documents per query, at least so many of a group and label."""
    shuffled = rows.iloc[rng.permutation(len(rows))]
    needed = shuffled.groupby(_CELL).cumcount() < least
    return pd.concat([shuffled[needed], shuffled[~needed]]).groupby("query").head(most).sort_index()


def _source(
    rng: np.random.Generator, n_features: int, effect: float, noise: float, positives: float
) -> Callable[[int, float], pd.DataFrame]:
    """Return what generates the documents of a number of queries, from their mean number.

    It draws A and the vectors a and d, and documents whose relevances give the threshold of labels.
    """
    mixing = rng.standard_normal((n_features, n_features)) / np.sqrt(n_features)
    common, differing = np.linalg.qr(rng.standard_normal((n_features, 2)))[0].T
    weights = np.stack([common, np.sqrt(1.0 - effect**2) * common, effect * differing])

    def documents(means: Array) -> tuple[Array, Array, Array, Array]:
        """Return z, the relevances, the groups and the popularities of some documents."""
        n = len(means)
        z = rng.standard_normal((n, n_features))
        hidden = noise * rng.standard_normal(n)
        shared, common, differing = (z @ weights.T).T
        latent = (shared + hidden) / np.sqrt(1.0 + noise**2)
        quality = _QUALITY * latent + np.sqrt(1.0 - _QUALITY**2) * rng.standard_normal(n)
        popularity = _POPULARITY * latent + np.sqrt(1 - _POPULARITY**2) * rng.standard_normal(n)
        groups = (quality > norm.ppf(_LOWER_GROUP)).astype(int)
        differing = differing + means @ weights[2]
        return z, common + np.where(groups > 0, differing, -differing) + hidden, groups, popularity

    relevance = documents(rng.standard_normal((_CALIBRATION, n_features)))[1]
    threshold = float(np.quantile(relevance, 1.0 - positives))

    def rows(n_queries: int, n_documents: float) -> pd.DataFrame:
        location = np.log(n_documents) - 0.5 * _SPREAD**2
        lengths = np.maximum(np.rint(rng.lognormal(location, _SPREAD, n_queries)), 1).astype(int)
        query = np.repeat(np.arange(n_queries), lengths)
        means = rng.standard_normal((n_queries, n_features))[query]
        z, relevance, groups, popularity = documents(means)
        X = z @ mixing.T
        X[:, -1] = popularity
        labels = (relevance > threshold).astype(int)
        return pd.DataFrame(X + means).assign(query=query, y=labels, group=groups)

    return rows


@valid.checked
def fetch_mslr(path: str | os.PathLike[str]) -> Bunch:
    """Load a user's own copy of MSLR-WEB10K: rank documents by their relevance to a query.

    The data are not distributed with this library: download them from Microsoft Research,
    https://www.microsoft.com/en-us/research/project/mslr/, and pass a file of a fold, such as
    ``Fold1/train.txt``; files of MSLR-WEB30K have the same form. Sensitive feature: ``quality``,
    "high" for documents whose quality score, feature 132, exceeds its 40th percentile in the file,
    else "low".

    Parameters
    ----------
    path : str or path-like
        A file in LETOR's format, perhaps compressed with gzip or bzip2: each line has a relevance,
        ``qid:`` with the query, and the features as ``number:value``.

    Returns
    -------
    Bunch
        ``data`` (a CSR matrix of 136 features), ``target`` (the relevances, 0 to 4), ``query`` (the
        query of each document), ``sensitive_features``, ``feature_names`` ("x1" to "x136"),
        ``frame`` (None) and ``DESCR``.

    Raises
    ------
    ValueError
        If the file does not have this form.
    FileNotFoundError
        If there is no such file.

    References
    ----------
    PLADA, appendix D.3, where documents of relevance above 1 are relevant.

    Examples
    --------
    >>> from fairconstrained.datasets import fetch_mslr
    >>> train = fetch_mslr("MSLR-WEB10K/Fold1/train.txt")  # doctest: +SKIP
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"path={os.fspath(path)!r} is not a file. {_MSLR}")
    options = {"n_features": _MSLR_WIDTH, "zero_based": False, "query_id": True}
    try:
        data, relevance, query = load_svmlight_file(path, **options)
        if not 0 < len(query) == len(relevance):
            raise ValueError("No documents, or documents without a query.")
    except ValueError as error:
        error.add_note(f"path={os.fspath(path)!r} must be a file in LETOR's format with queries.")
        raise
    quality = data[:, [_QUALITY_SCORE - 1]].toarray()[:, 0]
    high = quality > np.quantile(quality, _LOWER_QUALITY)
    return Bunch(
        data=data,
        target=pd.Series(relevance.astype(int), name="relevance"),
        query=pd.Series(query, name="query"),
        sensitive_features=pd.Series(np.where(high, "high", "low"), name="quality"),
        feature_names=[f"x{k}" for k in range(1, _MSLR_WIDTH + 1)],
        frame=None,
        DESCR=_MSLR,
    )
