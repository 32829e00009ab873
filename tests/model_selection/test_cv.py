"""Choosing kappa: cross-validation along paths, scorers of fairness, a rule for refit."""

import joblib
import numpy as np
import pandas as pd
import pytest
from _support.gaps import rate_gap
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

import fairconstrained as fc
from fairconstrained.model_selection.cv import knee

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:fairlearn")


X, Y, GROUPS = fc.make_biased_classification(900, 5, gap=0.4, random_state=0)


@pytest.fixture(scope="module")
def chosen():
    clf = fc.FairLogisticClassifierCV(n_kappas=6, alphas=(1e-4, 1e-2), max_gap=0.15, cv=3)
    return clf.fit(X, Y, sensitive_features=GROUPS)


def test_results_are_those_of_the_folds(chosen):
    results = chosen.cv_results_
    params = results["params"][8]
    assert params == {"kappa": chosen.kappas_[2], "alpha": 1e-2}
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, Y)):
        model = fc.FairLogisticClassifier(**params)
        model.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        decided = model.predict(X[test])
        right = np.mean(decided == Y[test])
        gap = rate_gap(None, decided, sensitive_features=GROUPS[test])
        assert results[f"split{k}_test_accuracy"][8] == pytest.approx(right, abs=0.01)
        assert results[f"split{k}_test_gap"][8] == pytest.approx(gap, abs=0.02)
    splits = [results[f"split{k}_test_gap"] for k in range(3)]
    assert_allclose(results["mean_test_gap"], np.mean(splits, axis=0))
    assert_allclose(results["std_test_gap"], np.std(splits, axis=0))
    assert results["rank_test_gap"][np.argmin(results["mean_test_gap"])] == 1
    assert results["rank_test_accuracy"][np.argmax(results["mean_test_accuracy"])] == 1
    assert len(pd.DataFrame(results)) == 12


def test_the_most_accurate_within_the_bound(chosen):
    results = chosen.cv_results_
    worth = np.where(results["mean_test_gap"] <= 0.15, results["mean_test_accuracy"], 0.0)
    assert 0 < np.count_nonzero(worth) < 12
    assert worth[chosen.best_index_] == worth.max()


def test_the_knee():
    results = {"mean_test_accuracy": np.array([0.80, 0.79, 0.70, 0.60])}
    results["mean_test_gap"] = np.array([0.40, 0.10, 0.05, 0.0])
    assert knee(results) == 1
    assert knee({name: np.ones(3) for name in results}) == 0


def test_rules_for_refit():
    last = fc.FairLogisticClassifierCV(n_kappas=3, cv=2, refit=lambda results: 2)
    last.fit(X, Y, sensitive_features=GROUPS)
    assert last.kappa_ == last.kappas_[2]
    bent = fc.FairLogisticClassifierCV(n_kappas=5, cv=2, refit="knee")
    bent.fit(X, Y, sensitive_features=GROUPS)
    assert bent.best_index_ == knee(bent.cv_results_)


def test_jobs_and_seeds():
    options = {"n_kappas": 3, "cv": 2, "max_gap": 0.4, "random_state": 0}
    one, two = (fc.FairLogisticClassifierCV(n_jobs=n_jobs, **options) for n_jobs in (None, 2))
    with joblib.parallel_config("threading"):
        for clf in (one, two):
            clf.fit(X, Y, sensitive_features=GROUPS)
    assert_array_equal(one.cv_results_["mean_test_gap"], two.cv_results_["mean_test_gap"])
    other = clone(one).set_params(random_state=1).fit(X, Y, sensitive_features=GROUPS)
    assert np.any(other.cv_results_["mean_test_gap"] != one.cv_results_["mean_test_gap"])


@pytest.mark.parametrize("position", [99, -1, 1.0, None, True])
def test_a_rule_returns_a_position(position):
    clf = fc.FairLogisticClassifierCV(kappas=[0.2, 0.1], cv=2, refit=lambda results: position)
    with pytest.raises(ValueError, match=r"refit must return .* an integer from 0 to 1; got"):
        clf.fit(X, Y, sensitive_features=GROUPS)


def test_a_fold_without_weight_or_without_a_class():
    weight = np.repeat([0.0, 1.0], len(Y) // 2)
    clf = fc.FairLogisticClassifierCV(kappas=[0.2], cv=KFold(2))
    with pytest.raises(ValueError, match="sample_weight is zero for all test rows of fold 1"):
        clf.fit(X, Y, weight, sensitive_features=GROUPS)
    for each in (clf, fc.FairThresholds(LogisticRegression(), cv=KFold(2))):
        with pytest.raises(ValueError, match="fold 1 of 2 has no training row with the label 0"):
            each.fit(X, np.sort(Y), sensitive_features=GROUPS)


def test_rows_of_unknown_group():
    """They count in the accuracy of a fold, and not in its gap."""
    some = np.where(np.arange(len(Y)) % 7, np.array(["a", "b"])[GROUPS], None)
    clf = fc.FairLogisticClassifierCV(kappas=[0.1], cv=2, max_gap=1.0)
    clf.set_params(groups_missing="ignore_in_constraint").fit(X, Y, sensitive_features=some)
    for k, (train, test) in enumerate(StratifiedKFold(2).split(X, Y)):
        model = fc.FairLogisticClassifier(kappa=0.1, groups_missing="ignore_in_constraint")
        model.fit(X[train], Y[train], sensitive_features=some[train])
        decided, known = model.predict(X[test]), some[test] != None  # noqa: E711
        gap = rate_gap(None, decided[known], sensitive_features=GROUPS[test][known])
        right = np.mean(decided == Y[test])
        assert clf.cv_results_[f"split{k}_test_gap"][0] == pytest.approx(gap, abs=0.01)
        assert clf.cv_results_[f"split{k}_test_accuracy"][0] == pytest.approx(right, abs=0.005)
    with pytest.raises(ValueError, match="'own_group' makes them a group"):
        clone(clf).set_params(groups_missing="raise").fit(X, Y, sensitive_features=some)
    own = clone(clf).set_params(groups_missing="own_group").fit(X, Y, sensitive_features=some)
    assert own.groups_.tolist() == ["a", "b", "missing"]


@pytest.mark.filterwarnings("ignore:No model that meets")
@pytest.mark.filterwarnings("ignore:no candidate has")
@pytest.mark.filterwarnings("ignore:iteration limit")  # the last fit, to all rows
def test_points_that_do_not_converge_are_counted():
    clf = fc.FairLogisticClassifierCV(solver="ssg", max_iter=2, kappas=[0.2, 0.1], cv=2)
    with pytest.warns(fc.ConvergenceWarning, match="4 of the 4 points of the paths"):
        clf.fit(X, Y, sensitive_features=GROUPS)


def test_verbose_prints_paths_and_points(capsys):
    lines = []
    for verbose in (0, 1, 2):
        clf = fc.FairLogisticClassifierCV(
            kappas=[0.2, 0.05], cv=2, max_gap=0.3, alphas=(1e-4, 1e-2), verbose=verbose
        ).fit(X, Y, sensitive_features=GROUPS)
        lines.append(capsys.readouterr().out.splitlines())
    assert lines[0] == []
    paths = [line for line in lines[1] if " path " in line]
    assert [line.split(":")[0] for line in paths][:2] == [
        "[FairLogisticClassifierCV] path 1 of 4, fold 1 of 2, alpha 0.0001",
        "[FairLogisticClassifierCV] path 2 of 4, fold 2 of 2, alpha 0.0001",
    ]
    assert len(paths) == 4
    points = [line for line in lines[2] if "]   kappa" in line]
    assert len(points) == 8
    assert f"accuracy {clf.cv_results_['split0_test_accuracy'][0]:.4g}" in points[0]
    assert len(lines[2]) == len(lines[1]) + 8


def test_folds_without_a_gap_are_left_out_of_its_mean():
    """The second group has negative labels in two of three folds only."""
    X, y, groups = fc.make_biased_classification(300, 3, gap=0.4, random_state=0)
    rows = np.flatnonzero((y == 1) | (groups == groups[0]))
    few = np.flatnonzero((y == 0) & (groups != groups[0]))[:2]
    X, y, groups = (np.concatenate([part[rows], part[few]]) for part in (X, y, groups))
    folds = np.append(np.arange(len(rows)) % 3, [0, 1])
    cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    options = {"n_kappas": 3, "alphas": (1e-3,), "max_gap": 1.0}
    clf = fc.FairLogisticClassifierCV("predictive_equality", cv=cv, **options)
    with pytest.warns(fc.VacuousConstraintWarning):
        clf.fit(X, y, sensitive_features=groups)
    results = clf.cv_results_
    assert np.isnan(results["split2_test_gap"]).all()
    expected = 0.5 * (results["split0_test_gap"] + results["split1_test_gap"])
    assert_allclose(results["mean_test_gap"], expected)
    assert results["rank_test_gap"].min() == 1


@pytest.mark.parametrize(("cv", "random_state"), [(3, None), (3, 0), ("masks", None)])
def test_rows_of_weight_zero_are_in_no_fold(cv, random_state):
    X, y, groups = fc.make_biased_classification(600, 4, gap=0.3, random_state=0)
    weight = (np.arange(600) % 3 > 0).astype(float)
    kept, some = weight > 0, np.arange(600) < 300
    options = {"kappas": [0.2, 0.1], "max_gap": 1.0, "random_state": random_state}
    one, other = (
        fc.FairLogisticClassifierCV(cv=[(rows, ~rows)] if cv == "masks" else cv, **options)
        for rows in (some, some[kept])
    )
    one.fit(X, y, weight, sensitive_features=groups)
    other.fit(X[kept], y[kept], sensitive_features=groups[kept])
    for name in ("mean_test_accuracy", "mean_test_gap"):
        assert_allclose(one.cv_results_[name], other.cv_results_[name], atol=1e-6)


def test_a_search_has_all_parameters_of_the_classifier():
    X, y, groups = fc.make_biased_classification(600, gap=0.3, random_state=0)
    search = fc.FairLogisticClassifierCV(kappas=[0.1, 0.05], kappa=0.2, cv=2, max_gap=1.0)
    assert set(fc.FairLogisticClassifier().get_params()) < set(search.get_params())
    assert search.bind(X, y, sensitive_features=groups).constraints[0].kappa == 0.2
    path = fc.fairness_path(search, X, y, sensitive_features=groups, kappas=[0.1])
    given = {"sensitive_features": groups, "kappas": [0.1]}
    alone = fc.fairness_path(fc.FairLogisticClassifier(), X, y, **given)
    assert_allclose(path.estimators[0].coef_, alone.estimators[0].coef_)
    search.set_params(enforce="decision", alpha=0.01).fit(X, y, sensitive_features=groups)
    assert search.decision_gap_ <= search.kappa_ and search.alpha_ == 0.01
