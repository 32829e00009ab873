"""A loader of ranking data in LETOR's format, from a file that the user names."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from fairconstrained.utils.parameter_constraints import checked

_MSLR = "MSLR-WEB, Microsoft Research, https://www.microsoft.com/en-us/research/project/mslr/."
_MSLR_WIDTH, _QUALITY_SCORE, _LOWER_QUALITY = 136, 132, 0.4


@checked
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
        raise FileNotFoundError(f"path: there is no file {os.fspath(path)!r}. The source: {_MSLR}")
    options = {"n_features": _MSLR_WIDTH, "zero_based": False, "query_id": True}
    try:
        data, relevance, query = load_svmlight_file(path, **options)
        if len(query) != len(relevance):
            raise ValueError("Documents without a query.")
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
