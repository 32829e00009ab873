"""CSR in which an index of a row is repeated: its entries are summed, as SciPy means them."""

import numpy as np
import pytest
import scipy.sparse as sp
from _support.classifiers import EVERY
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    FairLogisticClassifier,
    FairRanker,
    FairThresholds,
    MinorityRate,
    NeymanPearsonClassifier,
    make_biased_classification,
)
from fairconstrained.data.sensitive_columns import numeric

X, Y, GROUPS = make_biased_classification(300, 4, gap=0.3, random_state=0)
PLAIN = sp.csr_matrix(X)


def repeated(X):
    """Return the matrix with every entry written as the sum of two large ones."""
    plain = sp.csr_matrix(X)
    large = np.where(np.arange(plain.nnz) % 2, 64.0, -64.0)
    values = np.c_[plain.data + large, -large].ravel()
    return sp.csr_matrix((values, np.repeat(plain.indices, 2), plain.indptr * 2), plain.shape)


TWICE = repeated(X)
BY_GROUPS = {
    **EVERY,
    "thresholds": lambda: FairThresholds(LogisticRegression()),
    "reference": lambda: FairLogisticClassifier(
        MinorityRate(0.3, minority=0, reference=TWICE, reference_groups=GROUPS)
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BY_GROUPS)
def test_classifiers(name):
    summed = BY_GROUPS[name]().fit(PLAIN, Y, sensitive_features=GROUPS)
    found = BY_GROUPS[name]().fit(TWICE, Y, sensitive_features=GROUPS)
    method = "decision_function" if hasattr(found, "decision_function") else "predict_proba"
    assert_allclose(getattr(found, method)(X), getattr(summed, method)(X), atol=1e-6)
    assert_array_equal(found.predict(TWICE), found.predict(PLAIN))


def test_columns_of_x_that_are_sensitive():
    table = np.c_[X, GROUPS]
    found, plain = (
        FairLogisticClassifier(sensitive_columns=[4]).fit(rows, Y)
        for rows in (repeated(table), sp.csr_matrix(table))
    )
    assert_allclose(found.coef_, plain.coef_, atol=1e-9)


def test_neyman_pearson():
    found, plain = (NeymanPearsonClassifier().fit(rows, Y) for rows in (TWICE, PLAIN))
    assert_allclose(found.decision_function(TWICE), plain.decision_function(PLAIN), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_rankers():
    query = np.arange(300) // 10
    found, plain = (
        FairRanker().fit(rows, Y, query=query, sensitive_features=GROUPS) for rows in (TWICE, PLAIN)
    )
    assert_allclose(found.predict(TWICE), plain.predict(PLAIN), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_partitions_of_dask():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as OnDask

    y, groups = (da.from_array(one, chunks=100) for one in (Y, GROUPS))
    dense = da.from_array(X, chunks=(100, -1))
    found, plain = (
        OnDask().fit(dense.map_blocks(convert, dtype=float), y, sensitive_features=groups)
        for convert in (repeated, sp.csr_matrix)
    )
    assert_allclose(found.coef_, plain.coef_, atol=1e-9)
    assert_allclose(found.feature_scale_, plain.feature_scale_)


def test_only_repeated_indices_are_copied_and_the_matrix_stays_as_it_is():
    values = TWICE.data.copy()
    summed = numeric(TWICE, lambda rows: rows)
    assert summed.has_canonical_format and summed.nnz == PLAIN.nnz
    assert TWICE.nnz == 2 * PLAIN.nnz
    assert_array_equal(TWICE.data, values)
    backwards = sp.csr_matrix((PLAIN.data, PLAIN.indices[::-1].copy(), PLAIN.indptr), PLAIN.shape)
    assert not backwards.has_sorted_indices
    for rows in (PLAIN, backwards, X):
        assert numeric(rows, lambda rows: rows) is rows
    assert not backwards.has_sorted_indices
