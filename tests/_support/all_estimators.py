"""Every estimator of the library, small and quick, for tests of what they all share."""

from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from _support.classifiers import EVERY
from fairconstrained import (
    FairRanker,
    FairThresholds,
    NeymanPearsonClassifier,
    make_biased_classification,
)

X, Y, GROUPS = make_biased_classification(240, 4, gap=0.4, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
QUERY = np.arange(len(Y)) % 12
FIT = {"sensitive_features": GROUPS, "sample_weight": WEIGHT}

CLASSIFIERS = {
    **EVERY,
    "thresholds": partial(FairThresholds, LogisticRegression(), cv=2),
    "thresholds per group": partial(FairThresholds, LogisticRegression(), cv=2, per_group=True),
    "thresholds of a fair model": lambda **options: FairThresholds(
        EVERY["logistic"](), cv=2, per_group=True, **options
    ),
}
"""From names to functions that make a fair classifier."""

ESTIMATORS = {
    **{name: (make, FIT) for name, make in CLASSIFIERS.items()},
    "neyman-pearson": (NeymanPearsonClassifier, {"sample_weight": WEIGHT}),
    "ranker": (FairRanker, {**FIT, "query": QUERY}),
}
"""From names to functions that make an estimator, and the further arguments of its `fit`."""
