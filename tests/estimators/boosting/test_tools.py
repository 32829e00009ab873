"""FairBoostingClassifier with predictions bound, on paths, in searches and in reports."""

import numpy as np
import pytest
from _support.boosting import fitted, rows, small
from numpy.testing import assert_allclose

from fairconstrained import fairness_path, fairness_report


@pytest.fixture(scope="module")
def data():
    return rows()


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

    def test_report_of_trees_that_were_kept(self):
        X, y, groups = data = rows(4000)
        clf = fitted("error_rate_parity", data, enforce="decision", n_estimators=40)
        assert "nan" not in str(fairness_report(clf, X, y, sensitive_features=groups))
