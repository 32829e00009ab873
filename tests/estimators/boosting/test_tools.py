"""FairBoostingClassifier with predictions bound, on paths, in searches and in reports."""

import pickle

import numpy as np
import pytest
from _support.boosting import SMALL, fitted, rows, small
from _support.columns import last_above_zero
from fairlearn.metrics import demographic_parity_difference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    best_score_within,
    fairness_path,
    fairness_report,
    make_fairness_scorer,
)


@pytest.fixture(scope="module")
def data():
    return rows()


@pytest.fixture(scope="module")
def model(data):
    return fitted(data=data, kappa=0.03)


class TestDecisions:
    def test_trees_whose_predictions_meet_the_bound_are_kept_as_they_are(self):
        X, y, groups = data = rows(4000)
        clf = fitted("error_rate_parity", data, kappa=0.05, enforce="decision", n_estimators=40)
        search = clf.decision_search_
        assert search.met and search.n_solves == 0
        wrong = clf.predict(X) != y
        assert abs(wrong[groups == 0].mean() - wrong[groups == 1].mean()) <= 0.05
        assert 30 < clf.n_estimators_ <= 40
        assert clf.result_.converged and "were not fitted again" in clf.result_.message

    @pytest.mark.parametrize("kappa", [0.02, 0.1])
    def test_the_bound_on_predictions_holds(self, data, kappa):
        X, y, groups = data
        clf = fitted(data=data, kappa=kappa, enforce="decision")
        predicted = clf.predict(X)
        gap = abs(predicted[groups == 0].mean() - predicted[groups == 1].mean())
        assert gap == pytest.approx(clf.decision_gap_) and gap <= kappa + 1e-12
        assert clf.decision_search_.met and not clf.decision_search_.constant
        assert clf.score(X, y) > 0.6

    def test_a_group_of_sixty_rows(self):
        X, y, groups = rows(3000)
        groups = np.where(np.arange(3000) < 60, 2, groups)
        clf = fitted(data=(X, y, groups), kappa=0.03, enforce="decision")
        assert clf.decision_search_.met and clf.decision_gap_ <= 0.03 + 1e-12

    def test_confidence(self):
        X, y, groups = rows(6000)
        clf = fitted(data=(X, y, groups), kappa=0.2, enforce="decision", confidence=0.9)
        assert clf.certificate_.certified
        held = clf.holdout_indices_
        predicted = clf.predict(X[held])
        rates = [predicted[groups[held] == a].mean() for a in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.2
        assert 0 < predicted.mean() < 1


class TestTools:
    def test_path(self, data):
        X, y, groups = data
        path = fairness_path(
            small(), X, y, sensitive_features=groups, n_kappas=5,
            X_val=X[:500], y_val=y[:500], sensitive_features_val=groups[:500],
        )  # fmt: skip
        assert set(path.statuses) == {"converged"}
        assert np.all(np.diff(path.objectives) > -1e-6)
        assert_allclose(path.gaps[1:], path.kappas[1:], atol=1e-4)
        last = path.estimator_at(-1)
        assert_allclose(
            last.booster_.predict(X, raw_score=True), last.decision_function(X), atol=1e-12
        )
        trees = [
            [
                tree["tree_structure"]["split_feature"]
                for tree in one.booster_.dump_model()["tree_info"]
            ]
            for one in path.estimators
        ]
        assert all(one == trees[0] for one in trees)
        with pytest.raises(AttributeError, match="coef_"):
            _ = path.coefs

    def test_grid_search_over_kappa(self, data):
        X, y, groups = data
        X = np.column_stack([X, groups])
        scoring = {
            "accuracy": "accuracy",
            "gap": make_fairness_scorer(
                demographic_parity_difference, sensitive_columns=last_above_zero
            ),
        }
        search = GridSearchCV(
            make_pipeline(StandardScaler(), small(sensitive_columns=last_above_zero)),
            {"fairboostingclassifier__kappa": [0.02, 0.3]},
            scoring=scoring,
            refit=best_score_within("gap", 0.2),
            cv=2,
            error_score="raise",
        ).fit(X, y)
        assert search.best_params_["fairboostingclassifier__kappa"] in (0.02, 0.3)
        gaps = search.cv_results_["mean_test_gap"]
        assert abs(gaps[0]) < abs(gaps[1])

    def test_pickle_and_clone(self, data, model):
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.decision_function(data[0]), model.decision_function(data[0]))
        assert clone(model).get_params()["n_estimators"] == SMALL["n_estimators"]

    def test_parameters_of_the_constraint(self, data):
        clf = small("equalized_odds").set_params(constraint__kappa=0.01)
        clf.fit(data[0], data[1], sensitive_features=data[2])
        assert clf.gap_ <= 0.01 + 1e-4

    def test_report(self, data, model):
        X, y, groups = data
        gap = demographic_parity_difference(y, model.predict(X), sensitive_features=groups)
        text = str(fairness_report(model, X, y, sensitive_features=groups))
        assert f"selection rates differ by {100 * gap:.1f} percentage points, at most 3 " in text

    def test_report_of_trees_that_were_kept(self):
        X, y, groups = data = rows(4000)
        clf = fitted("error_rate_parity", data, enforce="decision", n_estimators=40)
        assert "nan" not in str(fairness_report(clf, X, y, sensitive_features=groups))

    @pytest.mark.parametrize(
        "name", ["GroupRateDisplay", "ScoreDensityDisplay", "GroupMetricsDisplay"]
    )
    def test_displays(self, data, model, name):
        plotting = pytest.importorskip("fairconstrained.plotting")
        pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
        X, y, groups = data
        display = getattr(plotting, name).from_estimator(model, X, y, sensitive_features=groups)
        assert display.figure_.axes
