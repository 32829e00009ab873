"""What holds of every estimator: copies, second fits, names, containers, columns of groups."""

import pickle
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

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
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, FairRanker, FairThresholds

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


ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs" / "api.rst").read_text()
MODULES = ("fairconstrained", "fairconstrained.dask")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def documented():
    """Return the estimators on the page of the public interface, with the names of their pages."""
    found, module = {}, ""
    for line in API.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line) and module in (
            "fairconstrained",
            "fairconstrained.dask",
        ):
            found[f"{module}.{line.strip()}"] = (module, line.strip())
    return found


PAGES = documented()


@pytest.mark.cases(3)
@pytest.mark.parametrize("page", PAGES)
def test_link(page):
    module, name = PAGES[page]
    pytest.importorskip("dask" if module.endswith("dask") else "sklearn", reason="no dask")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and issubclass(kind, BaseEstimator)):
        pytest.skip(f"{name} is no estimator")
    arguments = {"FairThresholds": [LogisticRegression()], "SelectionRate": [0.5]}
    made = kind(*arguments.get(name, []))
    address = f"{PROJECT['urls']['Documentation']}/generated/{page}.html"
    assert f'href="{address}"' in made._repr_html_()


def test_estimators_inside_link_to_their_own_pages():
    class Policy(FairLogisticClassifier):
        """A subclass of somebody else, which we have no page of."""

    shown = FairThresholds(LogisticRegression())._repr_html_()
    assert "sklearn.linear_model.LogisticRegression.html" in shown
    assert "fairconstrained.FairThresholds.html" in shown
    Policy.__module__ = "elsewhere"
    assert "generated" not in Policy()._repr_html_()
