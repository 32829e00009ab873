"""What holds of every estimator: copies, failed fits, subclasses, names, containers, its bound."""

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
import scipy.sparse as sp
import sklearn
from _support.classifiers import SINGLE, quietly
from _support.every_estimator import (
    MODELS,
    OF_CLASSIFIERS,
    WITHOUT_GROUPS,
    X,
    arguments,
    model_needs_groups,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

import fairconstrained as fc

# A classifier inside of another one cannot see the columns that the other takes out.
WITH_COLUMNS = [name for name in MODELS if name not in {*WITHOUT_GROUPS, "thresholds, fair model"}]


EVERY = pytest.mark.cases(len(MODELS))
pytestmark = pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")


@cache
def fitted(name):
    X, y, given = arguments(name)
    return clone(MODELS[name]).fit(X, y, **given)


def predictions(model, X, groups=None):
    by_group = {"sensitive_features": groups} if model_needs_groups(model) else {}
    return model.predict(X, **by_group)


@EVERY
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


@EVERY
@pytest.mark.parametrize("name", MODELS)
def test_neither_names_nor_containers_matter(name):
    model, (X, y, given) = fitted(name), arguments(name)
    expected = predictions(model, X, given.get("sensitive_features"))
    names = np.array(["no", "yes"])
    named = {k: pd.Index([f"{value:03d}" for value in values]) for k, values in given.items()}
    table = pd.DataFrame(X).add_prefix("x")
    other = clone(model).fit(table, names[y].tolist(), **named)
    assert other.classes_.tolist() == ["no", "yes"]
    assert other.feature_names_in_.tolist() == table.columns.tolist()
    of_names = predictions(other, table, named.get("sensitive_features"))
    if isinstance(model, fc.FairRanker):
        assert_allclose(of_names, expected, atol=1e-8)
    else:
        assert_array_equal(of_names, names[expected])


@EVERY
@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_groups_may_be_a_column_of_x_which_is_no_feature(name):
    model, (X, y, given) = fitted(name), arguments(name)
    groups = given.pop("sensitive_features")
    table = pd.DataFrame(X).add_prefix("x")
    table.insert(1, "sex", groups)
    other = clone(model).set_params(sensitive_columns="sex").fit(table, y, **given)
    assert_allclose(predictions(other, table), predictions(model, X, groups), atol=1e-8)
    assert not model_needs_groups(other)


@EVERY
@pytest.mark.parametrize("name", MODELS)
def test_unknown_parameters_and_models_that_are_not_fitted(name):
    with pytest.raises(ValueError, match="kapa"):
        clone(MODELS[name]).set_params(kapa=1)
    with pytest.raises(ValueError, match="not fitted"):
        clone(MODELS[name]).predict(X)


ROOT = Path(__file__).resolve().parents[2]


API = (ROOT / "docs" / "api.rst").read_text()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", MODELS)
def test_the_page_of_an_estimator_is_linked(name):
    kind = type(MODELS[name])
    assert re.search(rf"^   {kind.__name__}$", API, re.M)
    address = f"{PROJECT['urls']['Documentation']}/generated/fairconstrained.{kind.__name__}.html"
    assert f'href="{address}"' in MODELS[name]._repr_html_()


PACKAGE = str(Path(fc.__file__).parent)


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


@pytest.mark.filterwarnings("ignore::fairconstrained.ConstantDecisionWarning")  # halves of rows
@pytest.mark.parametrize("name", MODELS)
def test_a_subclass_is_fitted_cloned_and_searched(name):
    estimator, (X, y, given) = MODELS[name], arguments(name)
    subclass, plain = clone(strict_kind(estimator)()), clone(estimator)
    plain.set_params(**({"kappa": 0.15} if plain.get_params().get("kappa") else {}))
    expected = predictions(plain.fit(X, y, **given), X, given.get("sensitive_features"))
    found = predictions(subclass.fit(X, y, **given), X, given.get("sensitive_features"))
    assert_array_equal(found, expected)
    assert subclass.get_params(deep=False) == {"strict": True}
    if not isinstance(estimator, fc.FairRanker) and not model_needs_groups(plain):
        search = GridSearchCV(subclass, {"strict": [True, False]}, cv=2, error_score="raise")
        assert set(search.fit(X, y, **given).best_params_) == {"strict"}


LINEAR = [
    name
    for name, model in MODELS.items()
    if "logistic" in name or "hinge" in name or name in ("cv", "Neyman-Pearson")
]
OWN_FEATURES = [name for name, model in MODELS.items() if not isinstance(model, fc.FairThresholds)]


def refitted(name, X=None):
    features, y, given = arguments(name)
    return clone(MODELS[name]).fit(features if X is None else X, y, **given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.cases(2)
@pytest.mark.parametrize("fill", [np.nan, 1.0])
@pytest.mark.parametrize("name", OWN_FEATURES)
def test_sparse_frames_with_any_fill_value(name, fill):
    X = arguments(name)[0].round(1)
    X[:40, 0] = 0.0 if np.isnan(fill) else fill
    dense = pd.DataFrame(X).add_prefix("x")
    sparse = dense.astype(pd.SparseDtype(float, fill))
    expected, model = refitted(name, dense), refitted(name, sparse)
    assert_array_equal(model.predict(sparse), expected.predict(dense))
    assert_array_equal(model.predict(dense.iloc[:7]), expected.predict(sparse.iloc[:7]))


@pytest.mark.parametrize("name", LINEAR)
def test_coefficients_may_be_sparse(name):
    X, y, given = arguments(name)
    model = refitted(name)
    coef, scores = model.coef_.copy(), model.decision_function(X)
    assert model.sparsify() is model and sp.issparse(model.coef_)
    assert_array_equal(model.decision_function(X), scores)
    if hasattr(model, "to_sklearn"):
        plain = model.to_sklearn()
        assert_array_equal(plain.predict(X), model.predict(X))
    if hasattr(model, "warm_start"):
        warm = model.set_params(warm_start=True).fit(X, y, **given)
        assert isinstance(warm.coef_, np.ndarray)
    else:
        assert model.densify() is model
    model.sparsify().densify()
    assert isinstance(model.coef_, np.ndarray) and model.coef_.shape == coef.shape


def test_number_of_classes():
    assert not hasattr(clone(MODELS["boosting"]), "n_classes_")
    assert refitted("boosting").n_classes_ == 2
    assert not hasattr(fc.FairRanker(), "n_classes_")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OWN_FEATURES)
def test_fit_and_predict_take_tensors_under_array_api_dispatch(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y, given = arguments(name)
    expected = refitted(name).predict(X)
    with sklearn.config_context(array_api_dispatch=True):  # which SCIPY_ARRAY_API allows
        rows, labels = torch.tensor(X), torch.tensor(y)
        given = {key: torch.tensor(value) for key, value in given.items()}
        found = clone(MODELS[name]).fit(rows, labels, **given).predict(rows)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_says_whether_its_bound_is_met(name):
    X, y, given = arguments(name)
    model = quietly(clone(MODELS[name]).fit, X, y, **given)
    if getattr(model, "constraint", "losses") is None:
        assert model.bound_met_ is None and model.bound_violation_ == 0.0
        assert not str(model.result_).startswith("bound")
        return
    if getattr(model, "certificate_", None) is not None:
        assert model.bound_met_ is model.certificate_.certified
    elif getattr(model, "enforce", "score") == "decision":
        assert model.bound_met_ is (model.bound_violation_ == 0.0)
        assert model.bound_violation_ == pytest.approx(max(model.decision_gap_ - 0.3, 0.0))
    else:
        assert model.bound_violation_ == model.violation_
        assert model.bound_met_ is bool(model.violation_ <= 1e-4)
    if not isinstance(model, fc.FairThresholds):
        assert str(model.result_).startswith("bound met" if model.bound_met_ else "bound not")


IMPOSSIBLE = {
    **{f"{name}, scores": (make, {}) for name, make in SINGLE.items()},
    **{f"{name}, decisions": (make, {"enforce": "decision"}) for name, make in SINGLE.items()},
    "thresholds": (lambda *args: fc.FairThresholds(LogisticRegression(), *args), {}),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_bound_that_cannot_be_met_is_given_with_the_figure_that_exceeds_it(name):
    make, options = IMPOSSIBLE[name]
    X, y, given = OF_CLASSIFIERS
    model = quietly(make(fc.BoundedGroupLoss(0.01), **options).fit, X, y, **given)
    assert model.bound_met_ is False and model.bound_violation_ > 0.01
    if name == "thresholds":
        return
    value, limit = re.match(r"bound not met: (\S+) > (\S+);", str(model.result_)).groups()
    assert float(limit) == pytest.approx(0.01)
    assert float(value) - 0.01 == pytest.approx(model.bound_violation_, abs=1e-3)
    assert "not met" in model.result_._repr_html_()


def test_decisions_that_miss_their_bound_are_not_hidden_by_scores_that_meet_it():
    rng = np.random.default_rng(0)
    X, y, _ = fc.make_biased_classification(400, 3, random_state=0)
    groups = rng.integers(8, size=len(y))
    model = fc.FairLogisticClassifier("error_rate_parity", kappa=0.001, enforce="decision")
    quietly(model.fit, X, y, sensitive_features=groups)
    wrong = model.predict(X) != y
    gap = np.ptp([wrong[groups == k].mean() for k in range(8)])
    assert gap > 0.001 and model.decision_gap_ == pytest.approx(gap)
    assert model.bound_met_ is False
    assert model.bound_violation_ == pytest.approx(gap - 0.001)
    assert str(model.result_).startswith(f"bound not met: {gap:.3f} > 0.001;")
    report = fc.fairness_report(model, X, y, groups)
    assert report.model.loc["bound", "value"].startswith("not met")
    assert "not met" in str(report) and "not met" in report.to_json()
