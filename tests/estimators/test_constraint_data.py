"""Constraints on rows of their own, which need no labels where the constraint needs none."""

import numpy as np
import pytest
from _support.gaps import gap_of
from _support.registry_of_objects import CONSTRAINTS, distinct, label
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained.dask import FairLogisticClassifier as OnDask

X, Y, GROUPS = fc.make_biased_classification(1200, 5, gap=0.5, random_state=0)
X, Z, Y, LATER, SEX = X[:600], X[600:], Y[:600], Y[600:], GROUPS[600:]
ASKED = Z, None, SEX  # training rows have no groups
ON_SCORES = pytest.mark.filterwarnings("ignore:The bound .* applies to scores")


@ON_SCORES
@pytest.mark.filterwarnings("ignore:kappa=0.1 is not used")
@pytest.mark.parametrize("name", ["equalized_odds", "minority_rate", "roc_parity", "group_auc"])
def test_the_training_rows_passed_again_change_nothing(name: str) -> None:
    clf = fc.FairLogisticClassifier(name, kappa=0.1, tol=1e-6)
    again = clf.fit(Z, LATER, constraint_data=(Z, LATER, SEX)).coef_
    assert_allclose(again, clf.fit(Z, LATER, sensitive_features=SEX).coef_, atol=1e-4)


SLOW = [fc.FairBoostingClassifier, fc.FairNetworkClassifier]
EVERY_MODEL = [fc.FairLogisticClassifier]
EVERY_MODEL += [pytest.param(model, marks=pytest.mark.slow) for model in SLOW]


@ON_SCORES
@pytest.mark.parametrize("make", EVERY_MODEL)
def test_every_model_meets_the_bound_on_rows_without_labels(make) -> None:
    clf = make(kappa=0.03, random_state=0).fit(X, Y, constraint_data=ASKED)
    assert gap_of(clf.predict_proba(Z)[:, 1], SEX) == pytest.approx(clf.gap_, abs=1e-6)
    assert clf.gap_ <= 0.0301 and clf.groups_.tolist() == [0, 1]


def test_decisions_on_these_rows_and_their_certificate() -> None:
    clf = fc.FairHingeClassifier(kappa=0.15, enforce="decision", random_state=0)
    clf.fit(X, Y, constraint_data=ASKED)
    assert gap_of(clf.predict(Z), SEX) == pytest.approx(clf.decision_gap_)
    assert clf.bound_met_
    clf.set_params(confidence=0.8, kappa=0.25).fit(X, Y, constraint_data=ASKED)
    kept = np.setdiff1d(np.arange(len(Z)), clf.holdout_indices_)
    assert 0 < len(kept) < len(Z)
    assert gap_of(clf.predict(Z)[kept], SEX[kept]) == pytest.approx(clf.decision_gap_)
    assert clf.certificate_.n_held_out == len(clf.holdout_indices_)


@pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning")
@pytest.mark.parametrize("constraint", distinct(CONSTRAINTS), ids=label)
def test_constraints_that_need_no_labels_do_not_look_at_them(constraint) -> None:
    if isinstance(constraint, fc.Churn):  # `bind` takes decisions of a model in place of labels
        return
    if constraint.needs_queries or constraint.needs_labels:
        asked = (Z, LATER if constraint.needs_queries else None, SEX)
        with pytest.raises(ValueError, match=r"constraint_data has no (labels|queries)"):
            fc.FairLogisticClassifier(constraint).bind(X, Y, constraint_data=asked)
        return
    one, other = (constraint.bind(y, SEX, np.ones(600)) for y in (2.0 * LATER - 1.0, np.zeros(600)))
    scores = np.random.default_rng(0).standard_normal(600)
    assert_allclose(*(term.forward(scores, one.auxiliary_start)[0] for term in (one, other)))


@ON_SCORES
def test_paths_searches_and_pipelines() -> None:
    clf = fc.FairLogisticClassifier(kappa=0.03)
    path = fc.fairness_path(clf, X, Y, constraint_data=ASKED, kappas=[0.03], X_val=X, y_val=Y)
    assert path.estimators[0].gap_ == pytest.approx(0.03, abs=1e-4)
    assert path.validation["val_gap"][0] == pytest.approx(0.03, abs=1e-4)
    pipeline = make_pipeline(StandardScaler(), clf)
    scaled = fc.fairness_path(pipeline, X, Y, constraint_data=ASKED, kappas=[0.03])
    probabilities = scaled.estimator_at(kappa=0.03).predict_proba(Z)[:, 1]
    assert gap_of(probabilities, SEX) == pytest.approx(0.03, abs=1e-3)
    search = fc.FairLogisticClassifierCV(kappas=[0.1, 0.03], cv=2, max_gap=0.5)
    search.fit(X, Y, constraint_data=ASKED, sensitive_features=GROUPS[:600])
    assert search.gap_ == pytest.approx(search.kappa_, abs=1e-4)
    with config_context(enable_metadata_routing=True):
        grid = GridSearchCV(clf, {"kappa": [0.03]}, cv=2).fit(X, Y, constraint_data=ASKED)
    assert_allclose(grid.best_estimator_.coef_[0], path.coefs[0], atol=1e-3)


WRONG_ROWS = [
    ((Z, SEX), r"must be \(X, y, groups\).* Got 2 parts\."),
    ((Z[:, :3], None, SEX), "X of constraint_data: X has 3 features"),
    ((Z, None, SEX[1:]), "groups of constraint_data has 599 rows, X of constraint_data has"),
    ((Z, np.full(600, 7), SEX), "y of constraint_data has the label 7, which is not"),
    ((Z, None, None), "needs groups: pass them as the third part of constraint_data"),
]


@pytest.mark.parametrize(("asked", "message"), WRONG_ROWS)
def test_rows_that_do_not_fit_are_named(asked, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fc.FairLogisticClassifier().fit(X, Y, constraint_data=asked)


def test_rankers_have_constraints_without_queries_on_them() -> None:
    query = np.arange(600) // 20
    ranker = fc.FairRanker("group_auc", kappa=0.05).fit(X, Y, query=query, constraint_data=ASKED)
    assert ranker.bound_met_
    with pytest.raises(ValueError, match="constraint_data has no queries"):
        fc.FairRanker("query_parity").fit(X, Y, query=query, constraint_data=(Z, LATER, SEX))


REFUSED = [
    (OnDask(), "constraint_data is for rows in memory"),
    (fc.FairThresholds(fc.FairLogisticClassifier()), "constraint_data: thresholds are"),
    (fc.FairLogisticClassifier(), "with constraint_data no constraint is on these rows"),
    (fc.FairLogisticClassifierCV(kappas=[0.1]), "the rows of the constraints have strata, and"),
]


@pytest.mark.cases(4)
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize(("clf", "said"), REFUSED)
def test_what_refuses_them(clf, said: str, routing: bool) -> None:
    given = {"sensitive_features": GROUPS[:600], "control_features": X[:, 0] > 0.0}
    with config_context(enable_metadata_routing=routing), pytest.raises(ValueError, match=said):
        clf.fit(X, Y, **given, constraint_data=ASKED)
