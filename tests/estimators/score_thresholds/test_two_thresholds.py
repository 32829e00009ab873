"""Two thresholds of each group: bounds, accuracy, and which rows have which threshold."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.gaps import equalized_odds_difference
from numpy.testing import assert_array_equal
from scipy.optimize import milp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fairconstrained import EqualizedOdds, FairThresholds, make_biased_classification
from fairconstrained.decisions import choice_program

ON_DECISIONS = [
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "predictive_equality",
    "error_rate_parity",
    "disparate_impact",
    "balanced_rate",
    "minority_rate",
]


def two(estimator, constraint="equalized_odds", kappa=0.03, **options):
    options = {"cv": "prefit", **options}
    return FairThresholds(
        estimator, constraint, kappa=kappa, per_group=True, n_thresholds=2, **options
    )


@pytest.fixture(scope="module")
def unlike():
    """Groups whose scores differ in how well they predict, and a classifier of other rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    groups = rng.integers(0, 2, 4000)
    noise = np.where(groups == 0, 0.5, 2.0) * rng.logistic(size=4000)
    y = (2.0 * X[:, 0] + X[:, 1] + noise > np.where(groups == 0, -1.0, 1.0)).astype(int)
    table = np.column_stack([X, groups])
    forest = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
    return forest.fit(table[:2000], y[:2000]), table[2000:], y[2000:], groups[2000:]


@pytest.mark.filterwarnings("ignore:kappa=.* is not used:fairconstrained.InputWarning")
@pytest.mark.parametrize("name", ON_DECISIONS)
def test_the_bound_holds_and_single_thresholds_are_not_more_accurate(name, data, fitted):
    X, y, groups = (one[600:] for one in data)
    found = two(fitted, name).fit(X, y, sensitive_features=groups)
    single = FairThresholds(fitted, name, kappa=0.03, per_group=True, cv="prefit")
    single.fit(X, y, sensitive_features=groups)
    search = found.decision_search_
    assert search.met
    assert search.accuracy >= single.decision_search_.accuracy
    assert search.accuracy <= search.accuracy_bound
    predicted = found.predict(X, sensitive_features=groups)
    assert np.mean(predicted == y) == pytest.approx(search.accuracy)
    assert found.thresholds_.shape == (2, 2)


@pytest.mark.parametrize("kappa", [0.05, 0.02, 0.01])
def test_equalized_odds_cost_much_less_where_groups_have_other_roc_curves(kappa, unlike):
    forest, X, y, groups = unlike
    found = two(forest, kappa=kappa).fit(X, y, sensitive_features=groups)
    single = FairThresholds(forest, "equalized_odds", kappa, per_group=True, cv="prefit")
    single.fit(X, y, sensitive_features=groups)
    predicted = found.predict(X, sensitive_features=groups)
    assert equalized_odds_difference(y, predicted, sensitive_features=groups) <= kappa + 1e-9
    gain = found.decision_search_.accuracy - single.decision_search_.accuracy
    assert gain >= 0.005


def test_as_accurate_as_random_thresholds(unlike):
    """The best random thresholds with the same tolerance are the solution of a linear program."""
    from fairlearn.postprocessing import ThresholdOptimizer

    forest, X, y, groups = unlike
    found = two(forest, kappa=0.005).fit(X, y, sensitive_features=groups)
    random = ThresholdOptimizer(
        estimator=forest,
        constraints="equalized_odds",
        predict_method="predict_proba",
        prefit=True,
        grid_size=2000,
    ).fit(X, y, sensitive_features=groups)
    chance = random._pmf_predict(X, sensitive_features=groups)[:, 1]
    expected = np.where(y == 1, chance, 1.0 - chance).mean()
    assert found.decision_search_.accuracy >= expected - 0.01


def test_equal_features_have_equal_predictions_in_any_container_and_order(unlike):
    forest, X, y, groups = unlike
    found = two(forest).fit(X, y, sensitive_features=groups)
    predicted = found.predict(X, sensitive_features=groups)
    assert found.thresholds_.nunique(axis=1).max() == 2
    order = np.random.default_rng(0).permutation(len(X))
    again = found.predict(X[order], sensitive_features=groups[order])
    assert_array_equal(again, predicted[order])
    for container in (sp.csr_array, np.asfortranarray):
        assert_array_equal(found.predict(container(X), sensitive_features=groups), predicted)
    shuffled = two(forest).fit(X[order], y[order], sensitive_features=groups[order])
    pd.testing.assert_frame_equal(shuffled.thresholds_, found.thresholds_)


def test_both_thresholds_are_used_by_about_half_of_the_rows(unlike):
    forest, X, y, groups = unlike
    found = two(forest).fit(X, y, sensitive_features=groups)
    margin = found.decision_margin(X, sensitive_features=groups)
    used = forest.predict_proba(X)[:, 1] - margin
    own = found.thresholds_.to_numpy()[groups]
    is_own = np.isclose(used[:, None], own)
    assert is_own.any(axis=1).all()
    differ = own[:, 0] != own[:, 1]
    assert 0.45 < is_own[differ, 0].mean() < 0.55


def test_cross_validated_scores_columns_and_missing_groups(data):
    X, y, groups = data
    table = pd.DataFrame(X, columns=list("pqrs")).assign(group=groups)
    table.loc[::50, "group"] = None
    clf = two(
        LogisticRegression(),
        cv=3,
        sensitive_columns=["group"],
        groups_missing="ignore_in_constraint",
    ).fit(table, y)
    assert clf.decision_search_.met
    assert clf.thresholds_.index.tolist() == ["a", "b"]
    missing = table["group"].isna().to_numpy()
    chance = clf.predict_proba(table)[:, 1]
    assert_array_equal(clf.predict(table)[missing] == 1, chance[missing] > clf.threshold_)


@pytest.mark.cases(0)
def test_three_groups_two_constraints_and_weights():
    X, y, groups = make_biased_classification(1500, 4, gap=0.3, random_state=1)
    groups = groups + (np.arange(1500) % 3 == 0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 1500)
    inner = LogisticRegression().fit(X, y)
    both = ["demographic_parity", EqualizedOdds(0.1)]
    clf = two(inner, both, 0.05).fit(X, y, weight, sensitive_features=groups)
    assert clf.decision_search_.met
    assert clf.thresholds_.shape == (3, 2)
    predicted = clf.predict(X, sensitive_features=groups)
    rates = [np.average(predicted[groups == g], weights=weight[groups == g]) for g in range(3)]
    assert max(rates) - min(rates) <= 0.05 + 1e-9


def test_a_bound_with_confidence():
    X, y, groups = make_biased_classification(6000, 4, gap=0.3, random_state=0)
    inner = LogisticRegression().fit(X[:1000], y[:1000])
    clf = two(inner, "demographic_parity", 0.1, confidence=0.9, random_state=0)
    clf.fit(X[1000:], y[1000:], sensitive_features=groups[1000:])
    assert clf.certificate_.certified and not clf.decision_search_.constant
    assert clf.thresholds_.shape == (2, 2)


def test_an_earlier_fit_leaves_nothing(data, fitted):
    X, y, groups = data
    clf = two(fitted).fit(X, y, sensitive_features=groups)
    clf.set_params(n_thresholds=1).fit(X, y, sensitive_features=groups)
    fresh = two(fitted).set_params(n_thresholds=1).fit(X, y, sensitive_features=groups)
    assert vars(clf).keys() == vars(fresh).keys()
    pd.testing.assert_series_equal(clf.thresholds_, fresh.thresholds_)


@pytest.mark.parametrize("value", [0, 3, 1.5, "two", None])
def test_numbers_of_thresholds_that_are_not_valid(value, data, fitted):
    X, y, groups = data
    clf = FairThresholds(fitted, per_group=True, n_thresholds=value, cv="prefit")
    with pytest.raises(ValueError, match="n_thresholds must be 1 or 2"):
        clf.fit(X, y, sensitive_features=groups)


def test_two_thresholds_need_thresholds_by_group(data, fitted):
    X, y, groups = data
    with pytest.raises(ValueError, match="use per_group=True"):
        FairThresholds(fitted, n_thresholds=2, cv="prefit").fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("name", ON_DECISIONS)
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_whose_halves_lack_labels(name, seed):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((24, 2)), np.arange(24) % 3
    y = (rng.uniform(size=24) < 0.3).astype(int)
    y[:3] = 1
    inner = LogisticRegression().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = two(inner, name, 0.1).fit(X, y, sensitive_features=groups)
        single = FairThresholds(inner, name, 0.1, per_group=True, cv="prefit")
        single.fit(X, y, sensitive_features=groups)
    assert clf.decision_search_.met >= single.decision_search_.met
    assert clf.decision_search_.accuracy >= single.decision_search_.accuracy - 1e-12


def test_the_mixed_integer_programs_print_nothing(capfd, monkeypatch):
    X, y, groups = make_biased_classification(600, 4, gap=0.4, random_state=0)
    programs = []

    def counted(*given, **options):
        programs.append(milp(*given, **options))
        return programs[-1]

    monkeypatch.setattr(choice_program, "milp", counted)
    two(LogisticRegression(), cv=2).fit(X, y, sensitive_features=groups)
    assert programs and capfd.readouterr() == ("", "")
