"""What holds of every estimator: copies, second fits, names, containers, columns of groups."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from _support.every_estimator import (
    MODELS,
    WITHOUT_GROUPS,
    arguments,
    generated_rows,
    model_needs_groups,
    needed,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import FairRanker

ROWS = generated_rows()
# A classifier inside of another one cannot see the columns that the other takes out.
WITH_COLUMNS = [name for name in MODELS if name not in {*WITHOUT_GROUPS, "thresholds, fair model"}]
pytestmark = [
    pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning"),
    pytest.mark.cases(len(MODELS)),
]


@cache
def fitted(name):
    needed(name)
    X, y, given = arguments(name, ROWS)
    return clone(MODELS[name]).fit(X, y, **given)


def predictions(model, X, groups=None):
    by_group = {"sensitive_features": groups} if model_needs_groups(model) else {}
    return model.predict(X, **by_group)


@pytest.mark.parametrize("name", MODELS)
def test_copies_and_second_fits_are_the_same(name):
    model, (X, y, given) = fitted(name), arguments(name, ROWS)
    expected = predictions(model, X, given.get("sensitive_features"))
    stored = pickle.dumps(model)
    assert b"torch" not in stored
    loaded, again = pickle.loads(stored), clone(model)
    assert repr(again) == repr(MODELS[name]) and set(vars(loaded)) == set(vars(model))
    before = {key: id(value) for key, value in again.get_params(deep=False).items()}
    again.fit(X, y, **given)
    after = again.get_params(deep=False)
    assert {key: id(value) for key, value in after.items()} == before
    for other in (loaded, again):
        assert_array_equal(predictions(other, X, given.get("sensitive_features")), expected)


@pytest.mark.parametrize("name", MODELS)
def test_neither_names_nor_containers_matter(name):
    model, (X, y, given) = fitted(name), arguments(name, ROWS)
    expected = predictions(model, X, given.get("sensitive_features"))
    names = np.array(["no", "yes"])
    named = {key: [f"{value:03d}" for value in values] for key, values in given.items()}
    table = pd.DataFrame(X).add_prefix("x")
    other = clone(model).fit(table, names[y].tolist(), **named)
    assert other.classes_.tolist() == ["no", "yes"]
    assert other.feature_names_in_.tolist() == table.columns.tolist()
    of_names = predictions(other, table, named.get("sensitive_features"))
    if isinstance(model, FairRanker):
        assert_allclose(of_names, expected, atol=1e-8)
    else:
        assert_array_equal(of_names, names[expected])


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_groups_may_be_a_column_of_x_which_is_no_feature(name):
    model, (X, y, given) = fitted(name), arguments(name, ROWS)
    groups = given.pop("sensitive_features")
    table = pd.DataFrame(X).add_prefix("x")
    table.insert(1, "sex", groups)
    other = clone(model).set_params(sensitive_columns="sex").fit(table, y, **given)
    assert_allclose(predictions(other, table), predictions(model, X, groups), atol=1e-8)
    assert not model_needs_groups(other)


@pytest.mark.parametrize("name", MODELS)
def test_unknown_parameters_and_models_that_are_not_fitted(name):
    with pytest.raises(ValueError, match="kapa"):
        clone(MODELS[name]).set_params(kapa=1)
    with pytest.raises(ValueError, match="not fitted"):
        clone(MODELS[name]).predict(ROWS[False][0])
