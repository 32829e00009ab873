"""FairBoostingClassifier: what it returns, its trees, its options."""

import numpy as np
import pandas as pd
import pytest
from _support.boosting import fitted, rows, small
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from fairconstrained import VacuousConstraintWarning

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")


DATA = X, Y, GROUPS = rows()


@pytest.fixture(scope="module")
def model():
    return fitted(data=DATA, kappa=0.03)


@pytest.fixture(scope="module")
def towns():
    random = np.random.default_rng(0)
    town, x = random.choice(list("abcd"), 800), random.normal(size=800)
    table = pd.DataFrame({"town": pd.Categorical(town), "x": x})
    return table, (np.isin(town, ["b", "d"]) ^ (x > 0.8)).astype(int), random.integers(0, 2, 800)


def test_the_booster_alone_predicts_scores_and_probabilities(model):
    scores = model.decision_function(DATA[0])
    for booster in (model.booster_, model.to_lightgbm()):
        assert isinstance(booster, lightgbm.Booster)
        raw = booster.predict(DATA[0], raw_score=True)
        assert_allclose(raw, scores, rtol=0, atol=1e-12)
        assert_allclose(booster.predict(DATA[0]), expit(scores), rtol=1e-12)
    assert_allclose(model.predict_proba(DATA[0])[:, 1], expit(scores))
    assert_array_equal(model.predict(DATA[0]), (scores > 0).astype(int))


@pytest.mark.parametrize("labels", [["town", "x"], [0, 1]], ids=["names", "positions"])
def test_categories_of_another_table_are_those_of_fit(towns, labels):
    table, y, groups = towns
    table = table.set_axis(labels, axis=1)
    clf = small().fit(table, y, sensitive_features=groups)
    order = ["z", "d", "b", "c", "a"]  # codes differ, and "z" was not there in fit
    other = table.copy()
    other[labels[0]] = table[labels[0]].cat.set_categories(order)
    other.loc[:99, labels[0]] = "z"
    for booster in (clf.booster_, clf.to_lightgbm()):
        found = booster.predict(other, raw_score=True)
        assert_allclose(found, clf.decision_function(other), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (pd.Timestamp("2020-01-01") + pd.to_timedelta([0, 1], "D"), {}),
        (pd.interval_range(0, 2), {}),
        ([3, 10], {"categorical_features": None}),
        ([3, 10], {"categorical_features": ["town"]}),
    ],
    ids=["times", "intervals", "numbers", "some columns"],
)
def test_categories_that_the_booster_does_not_have_raise(towns, values, options):
    """LightGBM would take the codes of the new table, and all categories would be wrong."""
    table, y, groups = towns
    kind = pd.Categorical.from_codes(np.arange(len(y)) % 2, categories=values)
    table = table.assign(kind=kind)
    if options.get("categorical_features", 0) is None:
        table = table.drop(columns="town")
    clf = small(**options).fit(table, y, sensitive_features=groups)
    for booster in (clf.booster_, clf.to_lightgbm()):
        with pytest.raises(ValueError, match="categorical_feature do not match"):
            booster.predict(table)
        codes = {name: table[name].cat.codes for name in clf.categories_}
        numbers = {name: table[name].astype(float) for name in ["kind"] if name not in codes}
        rows = table.assign(**codes, **numbers).to_numpy(dtype=float)
        found = booster.predict(rows, raw_score=True)
        assert_allclose(found, clf.decision_function(table), rtol=0, atol=1e-12)


def test_the_bound_is_active_and_holds_to_the_tolerance(model):
    probability = model.predict_proba(X)[:, 1]
    gap = abs(probability[GROUPS == 0].mean() - probability[GROUPS == 1].mean())
    assert gap == pytest.approx(model.gap_, abs=1e-10)
    assert abs(gap - 0.03) <= 1e-4
    assert model.result_.converged and model.multipliers_.max() > 0.1


@pytest.mark.parametrize(
    "options", [{}, {"early_stopping": True}, {"enforce": "decision"}, {"goal": "fairness"}]
)
def test_a_cell_without_rows_is_warned_of_once(options):
    X, y, groups = rows(n_groups=3)
    y = np.where(groups == 2, 0, y)
    with pytest.warns(VacuousConstraintWarning) as seen:
        small("equal_opportunity", **options).fit(X, y, sensitive_features=groups)
    assert sum(one.category is VacuousConstraintWarning for one in seen) == 1


@pytest.mark.parametrize("kind", ["object", "string", "polars"])
def test_text_may_be_categorical(towns, kind):
    table, y, groups = towns
    expected = small().fit(table, y, sensitive_features=groups).decision_function(table)
    if kind == "polars":
        text = pytest.importorskip("polars").DataFrame(
            {"town": table["town"].astype(str).to_numpy(), "x": table["x"].to_numpy()}
        )
    else:
        text = table.astype({"town": kind})
    clf = small(categorical_features=["town"]).fit(text, y, sensitive_features=groups)
    assert clf.categories_ == {"town": ["a", "b", "c", "d"]}
    assert_array_equal(clf.decision_function(text), expected)
    unseen = pd.DataFrame({"town": ["zz", None], "x": [0.0, 0.0]})
    assert len(set(clf.decision_function(unseen))) == 1  # both are missing


def test_importances_are_numbers_of_splits():
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    table.insert(1, "group", GROUPS)
    clf = small(sensitive_columns="group").fit(table, Y)
    text = clf.booster_.model_to_string()
    splits = [line for line in text.splitlines() if line.startswith("split_feature=")]
    counted = np.bincount(
        np.concatenate([np.array(line.split("=")[1].split(), int) for line in splits]),
        minlength=X.shape[1],
    )
    assert_array_equal(clf.feature_importances_, np.insert(counted, 1, 0))
    assert counted.max() > 0


def test_features_without_any_split_give_a_constant_model():
    clf = fitted(data=(np.ones((len(Y), 2)), Y, GROUPS))
    assert_allclose(clf.predict_proba(np.ones((1, 2)))[0, 1], Y.mean(), atol=1e-3)
    assert clf.n_estimators_ == 1


def test_early_stopping_has_fewer_trees_and_the_bound_on_all_rows():
    data = rows(3000)
    options = {"n_estimators": 300, "learning_rate": 0.3, "num_leaves": 31}
    clf = fitted(data=data, early_stopping=True, **options)
    assert 1 < clf.n_estimators_ < 150
    assert clf.violation_ <= 1e-4
    X, y, _ = rows(6000)
    signs = 2 * y[3000:] - 1
    loss = {
        name: np.logaddexp(0, -signs * one.decision_function(X[3000:])).mean()
        for name, one in (("stopped", clf), ("all", fitted(data=data, **options)))
    }
    assert loss["stopped"] < loss["all"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lightgbm_params": {"boosting": "dart"}}, "DART"),
        ({"lightgbm_params": {"boosting_type": "rf"}}, "random forests"),
        ({"lightgbm_params": {"objective": "binary"}}, "must not contain 'objective'"),
        ({"lightgbm_params": {"app": "binary"}}, "must not contain 'app'"),
        ({"lightgbm_params": {"lambda_l2": 1.0}}, "it is the parameter reg_lambda of Fair"),
        ({"lightgbm_params": {"linear_tree": True}}, "constant values"),
        (
            {"lightgbm_params": {"monotone_constraints": [1] * 5}},
            "it is the parameter monotone_constraints",
        ),
        (
            {"lightgbm_params": {"monotonic_cst": [1] * 5}},
            "it is the parameter monotone_constraints",
        ),
        ({"lightgbm_params": {"path_smoth": 5}}, "Did you mean 'path_smooth' or"),
        ({"lightgbm_params": {"lambda_l3": 5}}, "'lambda_l2'"),
        ({"categorical_features": ["town"]}, "X has no column 'town'"),
        ({"categorical_features": [7]}, "X has no column 7"),
        ({"categorical_features": [True]}, "mask of 1 columns; X has 5"),
        ({"categorical_features": [0]}, "integers from 0"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        fitted(data=DATA, **options)


def test_what_is_set_anyway_may_be_given():
    one = fitted(data=DATA, n_estimators=3)
    given = {"verbose": -1, "deterministic": True, "boosting": "gbdt"}
    other = fitted(data=DATA, n_estimators=3, lightgbm_params=given)
    assert_array_equal(one.decision_function(DATA[0]), other.decision_function(DATA[0]))
