"""Every estimator with the options that change what it stores, small and quick."""

from sklearn.linear_model import LogisticRegression

import fairconstrained as fc

TREES = {"n_estimators": 5, "num_leaves": 4, "n_jobs": 1}
LAYERS = {"hidden_layer_sizes": (3,), "random_state": 0}
DECISIONS = {"enforce": "decision", "kappa": 0.3}


def thresholds(**options):
    """Return a classifier with thresholds."""
    return fc.FairThresholds(LogisticRegression(), kappa=0.3, random_state=0, **options)


MODELS = {
    "logistic": fc.FairLogisticClassifier(),
    "logistic, decisions": fc.FairLogisticClassifier(confidence=0.5, random_state=0, **DECISIONS),
    "logistic, a share": fc.FairLogisticClassifier(threshold=fc.SelectionRate(0.3)),
    "hinge": fc.FairHingeClassifier(),
    "hinge, decisions": fc.FairHingeClassifier(**DECISIONS),
    "cv": fc.FairLogisticClassifierCV(kappas=[0.1, 0.3], cv=2, max_gap=1.0),
    "Neyman-Pearson": fc.NeymanPearsonClassifier(),
    "thresholds": thresholds(),
    "thresholds, per group": thresholds(per_group=True),
    "thresholds, confidence": thresholds(confidence=0.5),
    "thresholds, cv": thresholds(cv=2),
    "thresholds, fair model": fc.FairThresholds(fc.FairLogisticClassifier(), cv=2, per_group=True),
    "boosting": fc.FairBoostingClassifier(random_state=0, **TREES),
    "boosting, decisions": fc.FairBoostingClassifier(random_state=0, **TREES, **DECISIONS),
    "network": fc.FairNetworkClassifier(max_epochs=20, **LAYERS),
    "network, decisions": fc.FairNetworkClassifier(max_epochs=20, **LAYERS, **DECISIONS),
    "ranker": fc.FairRanker(),
    "ranker, average": fc.FairRanker(fc.constraints.QueryParity(average=True)),
    "ranker, boosted": fc.FairRanker(model=fc.BoostedScores(**TREES), random_state=0),
    "ranker, network": fc.FairRanker(max_iter=30, **LAYERS),
    "ranker, network without a constraint": fc.FairRanker(None, max_iter=30, **LAYERS),
}
WITHOUT_GROUPS = {"Neyman-Pearson", "ranker, network without a constraint"}


X, Y, GROUPS = fc.make_biased_classification(n_samples=600, gap=0.3, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = fc.make_biased_ranking(20, 4, random_state=0)
OF_CLASSIFIERS = (X, Y, {"sensitive_features": GROUPS})
OF_RANKERS = (DOCUMENTS, RELEVANT, {"sensitive_features": QUALITY, "query": QUERY})


def arguments(name):
    """Return X, y and the further arguments of `fit`."""
    X, y, given = OF_RANKERS if isinstance(MODELS[name], fc.FairRanker) else OF_CLASSIFIERS
    left_out = ("sensitive_features",) if name in WITHOUT_GROUPS else ()
    return X, y, {key: value for key, value in given.items() if key not in left_out}


def model_needs_groups(model):
    """Return whether groups are passed to `predict`."""
    return getattr(model, "groups_at_prediction", False)
