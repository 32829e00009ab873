"""Files of skops hold every fitted estimator, with no type that is not listed."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import quietly
from _support.every_estimator import MODELS, OF_CLASSIFIERS, TREES, arguments, model_needs_groups
from sklearn.base import clone

import fairconstrained
from fairconstrained import FairBoostingClassifier
from fairconstrained.deployment import trusted_types

skops = pytest.importorskip("skops.io", reason="skops is not installed (extra 'deploy')")


def test_every_estimator_is_among_the_models():
    public = [getattr(fairconstrained, name) for name in fairconstrained.__all__]
    estimators = {one for one in public if hasattr(one, "fit")}
    assert estimators == {type(one) for one in MODELS.values()}


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_estimator_is_loaded(name):
    X, y, given = arguments(name)
    model = quietly(clone(MODELS[name]).fit, X, y, **given)
    saved = skops.dumps(model)
    booster = ["lightgbm.basic.Booster"] if "boost" in name else []
    assert set(skops.get_untrusted_types(data=saved)) - set(trusted_types()) == set(booster)
    loaded = skops.loads(saved, trusted=trusted_types() + booster)
    by_group = {key: given[key] for key in ("sensitive_features",) if model_needs_groups(model)}
    np.testing.assert_array_equal(loaded.predict(X, **by_group), model.predict(X, **by_group))
    assert set(vars(loaded)) == set(vars(model))


def test_categories_and_names_of_groups_are_loaded():
    pytest.importorskip("lightgbm")
    X, y, given = OF_CLASSIFIERS
    towns = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(y)) % 3])
    table = pd.DataFrame(X).add_prefix("f").assign(town=towns)
    groups = pd.DataFrame({"one": given["sensitive_features"], "town": towns.astype(str)})
    model = FairBoostingClassifier(**TREES).fit(table, y, **given)
    loaded = skops.loads(skops.dumps(model), trusted=[*trusted_types(), "lightgbm.basic.Booster"])
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    model = clone(MODELS["thresholds, per group"]).fit(X, y, sensitive_features=groups)
    loaded = skops.loads(skops.dumps(model), trusted=trusted_types())
    pd.testing.assert_series_equal(loaded.thresholds_, model.thresholds_)
