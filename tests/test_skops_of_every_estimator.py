"""Files of skops hold every fitted estimator, with no type that is not listed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairconstrained
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
    SelectionRate,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.constraints import QueryParity
from fairconstrained.deployment import trusted_types

skops = pytest.importorskip("skops.io", reason="skops is not installed (extra 'deploy')")

TREES = {"n_estimators": 5, "num_leaves": 4, "n_jobs": 1}
LAYERS = {"hidden_layer_sizes": (3,), "random_state": 0}
DECISIONS = {"enforce": "decision", "kappa": 0.3}


def thresholds(**options):
    """Return a classifier with thresholds."""
    return FairThresholds(LogisticRegression(), kappa=0.3, random_state=0, **options)


MODELS = {
    "logistic": FairLogisticClassifier(),
    "logistic, decisions": FairLogisticClassifier(confidence=0.5, random_state=0, **DECISIONS),
    "logistic, a share": FairLogisticClassifier(threshold=SelectionRate(0.3)),
    "hinge": FairHingeClassifier(),
    "hinge, decisions": FairHingeClassifier(**DECISIONS),
    "cv": FairLogisticClassifierCV(kappas=[0.1, 0.3], cv=2),
    "Neyman-Pearson": NeymanPearsonClassifier(),
    "thresholds": thresholds(),
    "thresholds, per group": thresholds(per_group=True),
    "thresholds, two": thresholds(per_group=True, n_thresholds=2),
    "thresholds, confidence": thresholds(confidence=0.5),
    "thresholds, cv": thresholds(cv=2),
    "boosting": FairBoostingClassifier(random_state=0, **TREES),
    "boosting, decisions": FairBoostingClassifier(random_state=0, **TREES, **DECISIONS),
    "network": FairNetworkClassifier(max_epochs=20, **LAYERS),
    "network, decisions": FairNetworkClassifier(max_epochs=20, **LAYERS, **DECISIONS),
    "ranker": FairRanker(),
    "ranker, average": FairRanker(QueryParity(average=True)),
    "ranker, boosted": FairRanker(model=BoostedScores(**TREES), random_state=0),
    "ranker, network": FairRanker(max_iter=30, **LAYERS),
    "ranker, network without a constraint": FairRanker(None, max_iter=30, **LAYERS),
}
NEEDS = {"boost": "lightgbm", "network": "torch"}
WITHOUT_GROUPS = {"Neyman-Pearson", "ranker, network without a constraint"}


def model_needs_groups(model):
    """Return whether groups are passed to `predict`."""
    return getattr(model, "groups_at_prediction", False)


@pytest.fixture(scope="module")
def rows():
    """Rows of classifiers and of rankers."""
    X, y, groups = make_biased_classification(n_samples=600, gap=0.3, random_state=0)
    documents, relevant, query, quality = make_biased_ranking(20, 4, random_state=0)
    return {
        False: (X, y, {"sensitive_features": groups}),
        True: (documents, relevant, {"sensitive_features": quality, "query": query}),
    }


def test_every_estimator_is_among_the_models():
    public = [getattr(fairconstrained, name) for name in fairconstrained.__all__]
    estimators = {one for one in public if hasattr(one, "fit")}
    assert estimators == {type(one) for one in MODELS.values()}


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_estimator_is_loaded(name, rows):
    for part, module in NEEDS.items():
        if part in name:
            pytest.importorskip(module)
    model = MODELS[name]
    X, y, given = rows[isinstance(model, FairRanker)]
    if name in WITHOUT_GROUPS:
        given = {key: value for key, value in given.items() if key != "sensitive_features"}
    with warnings.catch_warnings():  # small models, few iterations
        warnings.simplefilter("ignore")
        model.fit(X, y, **given)
    saved = skops.dumps(model)
    booster = ["lightgbm.basic.Booster"] if "boost" in name else []
    assert set(skops.get_untrusted_types(data=saved)) - set(trusted_types()) == set(booster)
    loaded = skops.loads(saved, trusted=trusted_types() + booster)
    by_group = {key: given[key] for key in ("sensitive_features",) if model_needs_groups(model)}
    np.testing.assert_array_equal(loaded.predict(X, **by_group), model.predict(X, **by_group))
    assert set(vars(loaded)) == set(vars(model))


def test_categories_and_names_of_groups_are_loaded(rows):
    pytest.importorskip("lightgbm")
    X, y, given = rows[False]
    towns = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(y)) % 3])
    table = pd.DataFrame(X).add_prefix("f").assign(town=towns)
    groups = pd.DataFrame({"one": given["sensitive_features"], "town": towns.astype(str)})
    model = FairBoostingClassifier(**TREES).fit(table, y, **given)
    loaded = skops.loads(skops.dumps(model), trusted=[*trusted_types(), "lightgbm.basic.Booster"])
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    model = thresholds(per_group=True).fit(X, y, sensitive_features=groups)
    loaded = skops.loads(skops.dumps(model), trusted=trusted_types())
    pd.testing.assert_series_equal(loaded.thresholds_, model.thresholds_)
