"""FairBoostingClassifier: what it returns, its trees, its options, bounds on predictions, paths."""

import warnings

import numpy as np
import pandas as pd
import pytest
from _support.boosting import fitted, rows, small
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import fairconstrained as fc
from fairconstrained.utils.arrays import ROUNDING

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
    scores = model.decision_function(X)
    for booster in (model.booster_, model.to_lightgbm()):
        assert isinstance(booster, lightgbm.Booster)
        raw = booster.predict(X, raw_score=True)
        assert_allclose(raw, scores, rtol=0, atol=1e-12)
        assert_allclose(booster.predict(X), expit(scores), rtol=1e-12)
    assert_allclose(model.predict_proba(X)[:, 1], expit(scores))
    assert_array_equal(model.predict(X), (scores > 0).astype(int))


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


CATEGORIES = [
    (pd.Timestamp("2020-01-01") + pd.to_timedelta([0, 1], "D"), {}),
    (pd.interval_range(0, 2), {}),
    ([3, 10], {"categorical_features": None}),
    ([3, 10], {"categorical_features": ["town"]}),
]


@pytest.mark.parametrize(
    ("values", "options"), CATEGORIES, ids=["times", "intervals", "numbers", "some columns"]
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


WITH_EMPTY_CELLS = [{}, {"early_stopping": True}, {"enforce": "decision"}, {"goal": "fairness"}]


@pytest.mark.parametrize("options", WITH_EMPTY_CELLS)
def test_a_cell_without_rows_is_warned_of_once(options):
    X, y, groups = rows(n_groups=3)
    y = np.where(groups == 2, 0, y)
    with pytest.warns(fc.VacuousConstraintWarning) as seen:
        small("equal_opportunity", **options).fit(X, y, sensitive_features=groups)
    assert sum(one.category is fc.VacuousConstraintWarning for one in seen) == 1


@pytest.mark.parametrize("kind", ["object", "string", "String", "Categorical"])
def test_text_may_be_categorical(towns, kind):
    table, y, groups = towns
    expected = small().fit(table, y, sensitive_features=groups).decision_function(table)
    named = {} if kind == "Categorical" else {"categorical_features": ["town"]}
    if kind in ("String", "Categorical"):
        polars = pytest.importorskip("polars")
        text = polars.DataFrame(table.astype({"town": str}).to_dict("list"))
        text = text.cast({"town": getattr(polars, kind)})
    else:
        text = table.astype({"town": kind})
    clf = small(**named).fit(text, y, sensitive_features=groups)
    assert clf.categories_ == {"town": ["a", "b", "c", "d"]}
    assert_array_equal(clf.decision_function(text), expected)
    unseen = pd.DataFrame({"town": ["zz", None], "x": [0.0, 0.0]})
    assert len(set(clf.decision_function(unseen))) == 1  # both are missing


def test_importances_are_numbers_of_splits():
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    table.insert(1, "group", GROUPS)
    clf = small(sensitive_columns="group").fit(table, Y)
    splits = clf.booster_.trees_to_dataframe()["split_feature"]
    counted = [int((splits == name).sum()) for name in clf.booster_.feature_name()]
    assert_array_equal(clf.feature_importances_, np.insert(counted, 1, 0))
    assert max(counted) > 0


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


BAD_PARAMETERS = [
    ({"lightgbm_params": {"boosting": "dart"}}, "DART"),
    ({"lightgbm_params": {"boosting_type": "rf"}}, "random forests"),
    ({"lightgbm_params": {"objective": "binary"}}, "must not contain 'objective'"),
    ({"lightgbm_params": {"app": "binary"}}, "must not contain 'app'"),
    ({"lightgbm_params": {"lambda_l2": 1.0}}, "it is the parameter reg_lambda of Fair"),
    ({"lightgbm_params": {"linear_tree": True}}, "constant values"),
    ({"lightgbm_params": {"monotone_constraints": [1] * 5}}, "parameter monotone_constraints"),
    ({"lightgbm_params": {"monotonic_cst": [1] * 5}}, "parameter monotone_constraints"),
    ({"lightgbm_params": {"path_smoth": 5}}, "Did you mean 'path_smooth' or"),
    ({"lightgbm_params": {"lambda_l3": 5}}, "'lambda_l2'"),
    ({"categorical_features": ["town"]}, "X has no column 'town'"),
    ({"categorical_features": [7]}, "X has no column 7"),
    ({"categorical_features": [True]}, "mask of 1 columns; X has 5"),
    ({"categorical_features": [0]}, "integers from 0"),
]


@pytest.mark.parametrize(("options", "message"), BAD_PARAMETERS)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        fitted(data=DATA, **options)


def test_what_is_set_anyway_may_be_given():
    one = fitted(data=DATA, n_estimators=3)
    given = {"verbose": -1, "deterministic": True, "boosting": "gbdt"}
    other = fitted(data=DATA, n_estimators=3, lightgbm_params=given)
    assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_trees_whose_predictions_meet_the_bound_are_kept_as_they_are():
    X, y, groups = data = rows(4000)
    clf = fitted("error_rate_parity", data, kappa=0.05, enforce="decision", n_estimators=40)
    assert clf.decision_search_.met and clf.decision_search_.n_solves == 0
    wrong = clf.predict(X) != y
    assert abs(wrong[groups == 0].mean() - wrong[groups == 1].mean()) <= 0.05
    assert 30 < clf.n_estimators_ <= 40
    assert clf.result_.converged and "were not fitted again" in clf.result_.message
    assert fitted("partial_dp", data, kappa=1.0, enforce="decision").decision_search_ is None


def test_a_path_refits_the_same_trees():
    path = fc.fairness_path(
        small(), X, Y, sensitive_features=GROUPS, n_kappas=5,
        X_val=X[:500], y_val=Y[:500], sensitive_features_val=GROUPS[:500],
    )  # fmt: skip
    assert set(path.statuses) == {"converged"}
    assert np.all(np.diff(path.objectives) > -1e-6)
    assert_allclose(path.gaps[1:], path.kappas[1:], atol=1e-4)
    last = path.estimator_at(-1)
    assert_allclose(last.booster_.predict(X, raw_score=True), last.decision_function(X), atol=1e-12)
    trees = [
        [tree["tree_structure"]["split_feature"] for tree in one.booster_.dump_model()["tree_info"]]
        for one in path.estimators
    ]
    assert all(one == trees[0] for one in trees)
    with pytest.raises(AttributeError, match="coef_"):
        _ = path.coefs


GIVEN = {"bounded_group_loss": fc.BoundedGroupLoss(0.5), "coverage": fc.Coverage(0.3)}


@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_bounds_on_predictions_hold_or_are_reported(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = fitted(GIVEN.get(name, name), kappa=0.05, enforce="decision")
    assert clf.n_estimators_ > 1
    search = clf.decision_search_
    if not search.met or search.constant:
        kinds = fc.InfeasibleConstraintWarning, fc.ConstantDecisionWarning
        (message,) = [str(one.message) for one in caught if issubclass(one.category, kinds)]
        assert f"training accuracy {search.accuracy:.3f}" in message
    assert (search.violation == 0.0) == search.met
    if search.met:
        assert clf.result_.zero_one_violation <= ROUNDING


@pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning")
@pytest.mark.parametrize("name", ["partial_dp", "equalized_odds"])
def test_an_attribute_of_one_group_asks_for_nothing(name):
    both = np.column_stack([GROUPS, np.zeros_like(GROUPS)])
    options = {"constraint": name, "kappa": 0.2, "enforce": "decision", "combine": "marginal"}
    alone, beside = (fitted(data=(X, Y, groups), **options) for groups in (GROUPS, both))
    assert_allclose(beside.decision_function(X), alone.decision_function(X), atol=1e-6)


def test_reference_rows_take_part_in_growing_and_meet_the_bound():
    X, y, groups = rows(2400)
    seen, later = slice(0, 1600), slice(1600, None)
    rule = fc.MinorityRate(0.4, minority=0, reference=X[later], reference_groups=groups[later])
    clf = fitted(rule, (X[seen], y[seen], groups[seen]))
    share = clf.predict_proba(X[later])[:, 1]
    assert share[groups[later] == 0].sum() / share.sum() >= 0.4 - 1e-3
    assert clf.multipliers_[0] > 0.0
    assert clf.result_.converged


TREES = {"n_estimators": 30, "n_jobs": 1}


@pytest.fixture(scope="module")
def risen():
    """Labels that rise and fall in both columns, and depend on a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    groups = (rng.random(1500) < 0.5).astype(int)
    score = X[:, 0] + 0.5 * np.sin(4.0 * X[:, 0]) - X[:, 1] + 0.5 * np.sin(4.0 * X[:, 1])
    return X, (score + 0.8 * (groups - 0.5) > 0).astype(int), groups


def changes(scores_of, column):
    """Return the steps of the scores along a column, from the lowest to the highest value."""
    X = np.random.default_rng(1).normal(size=(50, 3))
    scores = []
    for value in np.linspace(-2.0, 2.0, 31):
        X[:, column] = value
        scores.append(scores_of(X))
    return np.diff(scores, axis=0)


MONOTONE = [
    {},
    {"enforce": "decision"},
    {"goal": "fairness"},
    {"pos_label": 0, "monotone_constraints": [-1, 1, 0]},
    {"constraint": None},
    {"n_fitted_trees": None, "kappa": 0.01},
]


@pytest.mark.parametrize("options", MONOTONE)
def test_scores_are_monotone_and_meet_the_bound(risen, options):
    X, y, groups = risen
    options = {"monotone_constraints": [1, -1, 0], **options}
    clf = fc.FairBoostingClassifier(**TREES, **options).fit(X, y, sensitive_features=groups)
    assert changes(clf.decision_function, 0).min() >= -1e-12
    assert changes(clf.decision_function, 1).max() <= 1e-12
    assert clf.bound_met_ is not False and clf.result_.converged


NOT_MONOTONE = [
    ({"age": 1}, "monotone_constraints: X has no column 'age'"),
    ({"b": 2}, "got 2 for 'b'"),
    ({"c": 1}, "got 1 for 'c' of a categorical column"),
]


@pytest.mark.parametrize(("constraints", "said"), NOT_MONOTONE)
def test_monotone_constraints_that_cannot_be_used(risen, constraints, said):
    X, y, groups = risen
    table = pd.DataFrame(X, columns=list("abc")).assign(c=np.where(X[:, 2] > 0, "u", "v"))
    options = {"categorical_features": ["c"], "monotone_constraints": constraints}
    clf = fc.FairBoostingClassifier(**options, **TREES)
    with pytest.raises(ValueError, match=said):
        clf.fit(table, y, sensitive_features=groups)
