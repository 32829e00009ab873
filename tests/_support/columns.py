"""Groups read from the columns of X."""

import numpy as np
import scipy.sparse as sp


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def first_above_half(X):
    return dense(X)[:, 0] > 0.5


def first_above_zero(X):
    return dense(X)[:, 0] > 0


def last_above_zero(X):
    return dense(X)[:, -1] > 0
