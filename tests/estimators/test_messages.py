"""Errors and warnings: what they name, where they are issued, and how often."""

import re
import warnings

import numpy as np
import pytest
from _support.classifiers import EVERY, SINGLE
from sklearn.model_selection import GridSearchCV

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(600, 4, gap=0.3, random_state=0)
QUERY = np.arange(600) // 50


def fit(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    classifier = fc.FairLogisticClassifier(**options)
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


def test_labels_in_a_column_of_objects():
    said = r"(?s)y has the dtype (object.*such as True|datetime64).*`y\.astype\(int\)`"
    for labels in ((Y == 1).astype(object), (Y == 1).astype("M8[s]")):
        with pytest.raises(ValueError, match=said):
            fit(y=labels)


def test_missing_queries():
    said = "query has missing values.*in 1 of 600 rows.*needs a value"
    with pytest.raises(ValueError, match=f"(?s){said}"):
        query = np.append(np.nan, QUERY[1:])
        fc.FairRanker().fit(X, Y, query=query, sensitive_features=GROUPS)


def test_groups_may_be_infinite():
    assert fit(groups=np.where(GROUPS, np.inf, 1.0)).groups_.tolist() == [1.0, np.inf]


def test_one_group_only_warns():
    with pytest.warns(fc.VacuousConstraintWarning, match="fewer than two groups.*found: group 0"):
        alone = fit(groups=np.zeros(600, dtype=int))
    free = fit(constraint=None)
    np.testing.assert_allclose(alone.coef_, free.coef_, atol=1e-6)
    assert alone.result_.converged and alone.violation_ == 0.0


@pytest.mark.parametrize("constraint", ["equalized_odds", "intra_group_auc"])
def test_cells_without_rows_have_the_names_of_groups_and_labels(constraint):
    groups = np.where((Y == 0) & (np.arange(600) % 4 == 0), "c", np.array(["a", "b"])[GROUPS])
    with pytest.warns(fc.VacuousConstraintWarning) as found:
        clf = fit(y=np.where(Y, "yes", "no"), groups=groups, constraint=constraint)
    said = " ".join(str(one.message) for one in found)
    assert "'group c | label yes' has no rows" in said and "label +1" not in said
    assert all(one.filename == __file__ for one in found)
    assert clf.result_.converged
    # of rates two groups have positives, and three have negatives
    assert len(clf.multipliers_) == (8 if constraint == "equalized_odds" else 2)


def test_too_few_iterations_warn():
    with pytest.warns(fc.ConvergenceWarning) as found:
        classifier = fit(kappa=1.0, max_iter=1, tol=1e-8)
    (message,) = (str(one.message) for one in found)
    assert message == classifier.result_.message and found[0].filename == __file__
    for word in ("iteration limit", "1 iterations", "objective", "KKT residual", "max_iter"):
        assert word in message
    assert classifier.predict(X).shape == (600,)


def test_no_fair_model_warns():
    opposite = np.where(GROUPS > 0, 1.0, -1.0)[:, None]
    with pytest.warns(fc.InfeasibleConstraintWarning, match="least violation is 0.4") as found:
        classifier = fit(opposite, domain=fc.domains.Box(1.0, 2.0), fit_intercept=False)
    assert classifier.coef_ == pytest.approx(1.0)  # the least unfair one
    assert "bound (kappa, or the constraint's own tolerance)" in str(found[0].message)
    assert classifier.result_.status.name == "INFEASIBLE"


@pytest.mark.parametrize("model", ["layers", "boosted", "classifier"])
def test_the_objective_of_pairs_bounds_no_mean_loss_of_groups(model):
    clf = fc.FairLogisticClassifier("bounded_group_loss", loss=fc.objectives.PairwiseLoss())
    ranker, query = fc.FairRanker("bounded_group_loss", model=model), {"query": QUERY}
    estimator, more = (clf, {}) if model == "classifier" else (ranker, query)
    with pytest.raises((ValueError, TypeError), match=r"BoundedGroupLoss: loss.*quadratic"):
        estimator.fit(X, Y, sensitive_features=GROUPS, **more)


ONE_SIDE = "the threshold, and the constraints are met in this way only"


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_scores_on_one_side_of_the_threshold_are_reported(constraint):
    clf = fc.FairLogisticClassifier(constraint, kappa=0.02, loss="auc")
    with pytest.warns(fc.ConstantDecisionWarning, match=ONE_SIDE):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert len(set(clf.predict(X))) == 1


def test_scores_on_one_side_without_anything_to_compare():
    clf = fc.FairLogisticClassifier("intra_group_auc", loss="auc", fit_intercept=False)
    with pytest.warns(fc.VacuousConstraintWarning):
        clf.fit(np.abs(X) + 50.0, Y * (GROUPS > 0), sensitive_features=GROUPS)
    assert clf.violation_ == 0.0


RARE = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:60]]
USUAL = r"kappa=0.05 bounds .* of scores, not probabilities: values from 0.1 to 10 are usual"


@pytest.mark.parametrize("constraint", ["group_auc", "inter_group_auc", "intra_group_auc"])
@pytest.mark.parametrize("make", SINGLE.values(), ids=SINGLE)
def test_equal_predictions_at_the_default_kappa_name_the_usual_values(make, constraint):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clf = make(constraint).fit(X[RARE], Y[RARE], sensitive_features=GROUPS[RARE])
    constant = len(set(clf.predict(X[RARE]))) == 1
    usual = [one for one in found if re.search(USUAL, str(one.message))]
    assert len(usual) == int(constant)
    assert all(one.category is fc.ConstantDecisionWarning for one in usual)
    assert constant or make is not SINGLE["logistic"]


MESSAGE = re.compile(r"The bound (\S+) applies to scores: .* is (\S+)\. .* enforce='decision'")


RNG = np.random.default_rng(0)  # probabilities near the threshold: predictions differ much
HALVES = {"sensitive_features": np.arange(400) % 2}
NEAR = np.c_[np.arange(400) % 2 + 0.3 * RNG.normal(size=400), RNG.normal(size=400)]
TOSSED = (RNG.random(400) < 0.45 + 0.1 * (np.arange(400) % 2)).astype(int)


def told(action):
    """Return the messages about predictions that an action issues, as a user sees them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [one for one in found if MESSAGE.match(str(one.message))]


@pytest.mark.parametrize("name", EVERY)
def test_a_fit_on_scores_says_it_once_and_one_on_predictions_does_not(name):
    options = {} if name == "cv" else {"kappa": 0.12}
    model = EVERY[name](**options)
    found = told(lambda: model.fit(NEAR, TOSSED, **HALVES))
    kappa = model.kappa_ if name == "cv" else model.kappa
    assert len(found) == int(model.decision_gap_ > kappa + 0.1)
    for one in found:
        bound, gap = MESSAGE.match(str(one.message)).groups()
        assert one.category is fc.InputWarning and float(bound) == pytest.approx(kappa)
        assert float(gap) == pytest.approx(model.decision_gap_, abs=1e-3)
        assert one.filename == __file__
    if name != "cv":
        model.set_params(enforce="decision")
        assert not told(lambda: model.fit(NEAR, TOSSED, **HALVES))


SILENT = ["inter_group_auc", "roc_parity", "demographic_parity", None]


@pytest.mark.parametrize("constraint", SILENT)
def test_other_constraints_and_goals_say_nothing(constraint):
    goal = "fairness" if constraint == "demographic_parity" else "accuracy"
    model = fc.FairLogisticClassifier(constraint, goal=goal)
    assert not told(lambda: model.fit(NEAR, TOSSED, **HALVES))


def test_a_path_and_a_search_say_it_once():
    options = {"n_kappas": 4, **HALVES}
    found = told(lambda: fc.fairness_path(fc.FairLogisticClassifier(), NEAR, TOSSED, **options))
    assert len(found) == 1
    search = fc.FairLogisticClassifierCV(kappas=[0.08, 0.06], cv=2, max_gap=0.5)
    assert len(told(lambda: search.fit(NEAR, TOSSED, **HALVES))) == 1
    grid = GridSearchCV(fc.FairLogisticClassifier(), {"kappa": [0.08, 0.07, 0.06]}, cv=2)
    assert len(told(lambda: grid.fit(NEAR, TOSSED, **HALVES))) == 1
    assert grid.best_estimator_.decision_gap_ > grid.best_params_["kappa"] + 0.1


def test_rankers_with_another_origin_of_the_features():
    documents, relevant, query, quality = fc.make_biased_ranking(30, 8, random_state=1)
    ranker = fc.FairRanker("demographic_parity", kappa=0.02)
    rows = {"query": query, "sensitive_features": quality}
    ranker.fit(documents, relevant, **rows)  # a warning is an error
    with pytest.warns(fc.ConstantDecisionWarning, match=ONE_SIDE):
        ranker.fit(documents + 50.0, relevant, **rows)
    one = fc.FairRanker("group_auc", kappa=0.02).fit(documents, relevant, **rows)
    other = fc.FairRanker("group_auc", kappa=0.02).fit(documents + 50.0, relevant, **rows)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)
