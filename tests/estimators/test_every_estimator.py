"""What holds of every estimator: copies, failed fits, subclasses, names, containers, groups."""

import inspect
import pickle
import re
import sys
import tomllib
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _support.every_estimator import MODELS, WITHOUT_GROUPS, X, arguments, model_needs_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

import fairconstrained
from fairconstrained import FairRanker

# A classifier inside of another one cannot see the columns that the other takes out.
WITH_COLUMNS = [name for name in MODELS if name not in {*WITHOUT_GROUPS, "thresholds, fair model"}]


pytestmark = [
    pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning"),
    pytest.mark.cases(len(MODELS)),
]


@cache
def fitted(name):
    X, y, given = arguments(name)
    return clone(MODELS[name]).fit(X, y, **given)


def predictions(model, X, groups=None):
    by_group = {"sensitive_features": groups} if model_needs_groups(model) else {}
    return model.predict(X, **by_group)


@pytest.mark.parametrize("name", MODELS)
def test_copies_and_second_fits_are_the_same(name):
    model, (X, y, given) = fitted(name), arguments(name)
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
    model, (X, y, given) = fitted(name), arguments(name)
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
    model, (X, y, given) = fitted(name), arguments(name)
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
        clone(MODELS[name]).predict(X)


ROOT = Path(__file__).resolve().parents[2]


API = (ROOT / "docs" / "api.rst").read_text()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", MODELS)
def test_the_page_of_an_estimator_is_linked(name):
    kind = type(MODELS[name])
    assert re.search(rf"^   {kind.__name__}$", API, re.M)
    address = f"{PROJECT['urls']['Documentation']}/generated/fairconstrained.{kind.__name__}.html"
    assert f'href="{address}"' in MODELS[name]._repr_html_()


PACKAGE = str(Path(fairconstrained.__file__).parent)


FRACTIONS = (0.01, 0.5, 0.9)  # of the calls of a fit: checks, the solver, what is stored


def attempted(fit, calls=None):
    """Run a fit, interrupted after a number of calls of functions; return how many it made."""
    made = 0

    def count(frame, event, _):
        nonlocal made
        code = frame.f_code
        closing = code.co_flags & inspect.CO_GENERATOR  # what a generator raises then is ignored
        if event == "call" and code.co_filename.startswith(PACKAGE) and not closing:
            made += 1
            if made == calls:
                raise KeyboardInterrupt

    with warnings.catch_warnings():  # small models, few iterations
        warnings.simplefilter("ignore")
        sys.setprofile(count)
        try:
            fit()
        finally:
            sys.setprofile(None)
    return made


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_fit_that_does_not_end_leaves_the_estimator_as_it_was(name):
    X, y, given = arguments(name)
    model = clone(MODELS[name])
    before, narrow = dict(vars(model)), np.ascontiguousarray(X[:, :3])
    other = clone(model)
    n_calls = min(attempted(lambda: other.fit(narrow, y, **given)) for _ in "12")  # warmed up

    def is_left_alone():
        wrong = np.append(narrow[1:], np.full((1, 3), np.inf), axis=0)
        with pytest.raises(ValueError):
            model.fit(wrong, y, **given)
        assert vars(model) == before
        for fraction in FRACTIONS:
            with pytest.raises(KeyboardInterrupt):
                attempted(lambda: model.fit(narrow, y, **given), int(fraction * n_calls))
            assert vars(model).keys() == before.keys()
            assert all(vars(model)[key] is before[key] for key in before)

    is_left_alone()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    attempted(lambda: model.fit(X, y, **given))
    before = dict(vars(model))
    by_group = {key: given[key] for key in ("sensitive_features",) if model_needs_groups(model)}
    predicted = model.predict(X, **by_group)
    is_left_alone()
    np.testing.assert_array_equal(model.predict(X, **by_group), predicted)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(narrow, **by_group)


def strict_kind(estimator):
    """Return a subclass of an estimator's class that has the one parameter `strict`."""
    options, kind = estimator.get_params(deep=False), type(estimator)

    class Policy(kind):
        def __init__(self, strict=True):
            own = {"kappa": 0.15 if strict else 0.3} if options.get("kappa") else {}
            super().__init__(**{**options, **own})
            self.strict = strict

    return Policy


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", MODELS)
def test_a_subclass_is_fitted_cloned_and_searched(name):
    estimator, (X, y, given) = MODELS[name], arguments(name)
    subclass, plain = clone(strict_kind(estimator)()), clone(estimator)
    plain.set_params(**({"kappa": 0.15} if plain.get_params().get("kappa") else {}))
    expected = predictions(plain.fit(X, y, **given), X, given.get("sensitive_features"))
    found = predictions(subclass.fit(X, y, **given), X, given.get("sensitive_features"))
    assert_array_equal(found, expected)
    assert subclass.get_params(deep=False) == {"strict": True}
    if not isinstance(estimator, FairRanker) and not model_needs_groups(plain):
        search = GridSearchCV(subclass, {"strict": [True, False]}, cv=2, error_score="raise")
        assert set(search.fit(X, y, **given).best_params_) == {"strict"}
