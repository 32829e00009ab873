"""Rows and a classifier whose scores get thresholds."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import make_biased_classification


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(1200, 4, gap=0.3, random_state=0)
    return X, y, np.array(["a", "b"])[groups]


@pytest.fixture(scope="module")
def fitted(data):
    """A logistic regression fitted to the first half of the rows."""
    X, y, _ = data
    return LogisticRegression().fit(X[:600], y[:600])
