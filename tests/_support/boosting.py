"""Small boosted classifiers for tests."""

import pytest

pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")

from fairconstrained import FairBoostingClassifier, make_biased_classification

SMALL = {"n_estimators": 20, "num_leaves": 6, "min_child_samples": 20, "random_state": 0}


def small(constraint="demographic_parity", **options):
    """Return a classifier with few trees."""
    return FairBoostingClassifier(constraint, **{"n_jobs": 1, **SMALL, **options})


def rows(n=1500, n_features=5, **options):
    """Return features, labels and groups with a gap."""
    return make_biased_classification(n, n_features, **{"gap": 0.3, "random_state": 0, **options})


def fitted(constraint="demographic_parity", data=None, **options):
    """Return a fitted classifier."""
    X, y, groups = rows() if data is None else data
    return small(constraint, **options).fit(X, y, sensitive_features=groups)
