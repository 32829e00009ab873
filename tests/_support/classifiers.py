"""Every kind of classifier of two classes, small and quick, for tests of what they share."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    BoostedScores,
    FairBoostingClassifier,
    FairHingeClassifier,
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    FairNetworkClassifier,
    FairRanker,
    FairThresholds,
    NeymanPearsonClassifier,
)


def _boosting(*args, **options):
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    small = {"n_estimators": 15, "num_leaves": 6, "n_jobs": 1, "random_state": 0}
    return FairBoostingClassifier(*args, **small, **options)


def _network(*args, **options):
    pytest.importorskip("torch", reason="PyTorch, the extra 'torch', is not installed")
    small = {
        "hidden_layer_sizes": (6,),
        "max_epochs": 60,
        "early_stopping": True,
        "random_state": 0,
    }
    return FairNetworkClassifier(*args, **small, **options)


SINGLE = {
    "logistic": FairLogisticClassifier,
    "hinge": FairHingeClassifier,
    "boosting": _boosting,
    "network": _network,
}
"""From names to functions that make a classifier of a constraint and options."""

EVERY = SINGLE | {"cv": partial(FairLogisticClassifierCV, kappas=[0.1, 0.03], cv=2, max_gap=0.2)}
"""The same with the one that chooses kappa."""


def small_estimators():
    """Return functions by name that make every estimator of the library, small and quick."""
    ranker = partial(FairRanker, kappa=0.25, random_state=0)
    return EVERY | {
        "cv": partial(EVERY["cv"], max_gap=1.0),
        "neyman_pearson": NeymanPearsonClassifier,
        "thresholds": lambda: FairThresholds(LogisticRegression(C=np.inf), cv=2),
        "ranker": ranker,
        "boosted ranker": partial(
            ranker, model=BoostedScores(n_estimators=10, num_leaves=4, n_jobs=1)
        ),
    }
