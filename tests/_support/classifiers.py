"""Every kind of classifier of two classes, small and quick, for tests of what they share."""

import warnings
from functools import partial

import fairconstrained as fc

SMALL_TREES = {"n_estimators": 15, "num_leaves": 6, "n_jobs": 1, "random_state": 0}
SMALL_NETWORK = {"hidden_layer_sizes": (6,), "max_epochs": 60, "early_stopping": True}
SINGLE = {
    "logistic": fc.FairLogisticClassifier,
    "hinge": fc.FairHingeClassifier,
    "boosting": partial(fc.FairBoostingClassifier, **SMALL_TREES),
    "network": partial(fc.FairNetworkClassifier, random_state=0, **SMALL_NETWORK),
}
"""From names to functions that make a classifier of a constraint and options."""

EVERY = SINGLE | {"cv": partial(fc.FairLogisticClassifierCV, kappas=[0.1, 0.03], cv=2, max_gap=0.2)}
"""The same with the one that chooses kappa."""


def quietly(fit, *rows, **given):
    """Call what fits, and ignore its warnings: of few iterations, of bounds that cannot be met."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*rows, **given)
