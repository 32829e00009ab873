"""What X may be held in, and whether two linear models are the same."""

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from numpy.testing import assert_allclose


def names(X):
    return list("abcdefgh")[: X.shape[1]]


DENSE = {
    "pandas": lambda X: pd.DataFrame(X, columns=names(X)),
    "polars": lambda X: pl.DataFrame(X, schema=names(X)),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
SPARSE = {
    f"{form} {kind.__name__}": lambda X, form=form, kind=kind: kind(X).asformat(form)
    for form, kind in [
        *((form, sp.csr_array) for form in ("csr", "csc", "coo", "lil", "dok", "bsr")),
        *((form, sp.csr_matrix) for form in ("csr", "csc")),
    ]
}
CONTAINERS = DENSE | SPARSE


def assert_same(clf, other, atol=1e-10):
    """Check that two linear classifiers have the same coefficients and sum of multipliers."""
    assert_allclose(clf.coef_, other.coef_, rtol=0, atol=atol)
    assert_allclose(clf.intercept_, other.intercept_, rtol=0, atol=atol)
    assert_allclose(clf.multipliers_.sum(), other.multipliers_.sum(), rtol=0, atol=10 * atol)
