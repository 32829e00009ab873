"""Metadata routing of every estimator: groups, weights and queries are requested by default."""

import numpy as np
import pytest
from _support.every_estimator import MODELS, arguments
from fairlearn.metrics import demographic_parity_difference
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

import fairconstrained as fc
from fairconstrained import metrics

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:fairlearn"),
    pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::fairconstrained.ConstantDecisionWarning"),
]

X, Y, GROUPS = fc.make_biased_classification(240, 4, gap=0.4, random_state=0)


def weighted(name):
    """Return an estimator, X, y and all further arguments of its `fit`."""
    rows, labels, given = arguments(name)
    weight = 1.0 + given.get("query", np.arange(len(labels))) % 3
    return clone(MODELS[name]), rows, labels, {**given, "sample_weight": weight}


def used(estimator, method, passed):
    """Return what a method of an estimator uses of what is passed."""
    return {name: passed[name] for name in passed if name in _requests(estimator, method)}


def _requests(estimator, method):
    routing = get_routing_for_object(estimator)
    return routing.consumes(method, ["sensitive_features", "sample_weight", "query"])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", MODELS)
class TestEveryEstimator:
    @pytest.mark.cases(2)
    def test_a_pipeline_fits_predicts_and_scores(self, name):
        estimator, X, y, passed = weighted(name)
        if name.startswith("thresholds") and "fair" not in name:  # its own classifier has to ask
            del passed["sample_weight"]
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator).fit(X, y, **passed)
        inside = StandardScaler().fit_transform(X)
        alone = clone(estimator).fit(inside, y, **passed)
        rows = used(alone, "predict", passed)
        np.testing.assert_array_equal(pipeline.predict(X, **rows), alone.predict(inside, **rows))
        rows = used(alone, "score", passed)
        assert pipeline.score(X, y, **rows) == alone.score(inside, y, **rows)

    def test_what_is_used_is_requested(self, name):
        estimator, _, _, passed = weighted(name)
        passed |= (
            {} if isinstance(estimator, fc.NeymanPearsonClassifier) else {"sensitive_features": 0}
        )
        assert _requests(estimator, "fit") == set(passed)
        on_score = {"sample_weight"} | ({"query"} & set(passed))
        groups = {"sensitive_features"} if name.startswith("thresholds") else set()
        assert _requests(estimator, "score") == on_score | groups
        assert _requests(estimator, "predict") == groups


# Thresholds of every group: the groups reach `predict`, `score` and the library's scorers.


@pytest.mark.usefixtures("routing")
def test_groups_reach_cross_validation_and_search():
    clf = fc.FairThresholds(LogisticRegression(), kappa=0.1, cv=2, per_group=True)
    scoring = {
        "gap": fc.make_fairness_scorer(demographic_parity_difference),
        "accuracy": fc.make_fairness_scorer(
            lambda y, decided, *, sensitive_features: accuracy_score(y, decided),
            greater_is_better=True,
        ),
    }
    model, rows = make_pipeline(StandardScaler(), clf), {"sensitive_features": GROUPS}
    found = cross_validate(model, X, Y, cv=KFold(2), scoring=scoring, params=rows)
    own = cross_validate(model, X, Y, cv=KFold(2), params=rows)
    for k, (train, test) in enumerate(KFold(2).split(X)):
        fitted = clone(model).fit(X[train], Y[train], sensitive_features=GROUPS[train])
        decided = fitted.predict(X[test], sensitive_features=GROUPS[test])
        right = accuracy_score(Y[test], decided)
        assert found["test_accuracy"][k] == own["test_score"][k] == pytest.approx(right)
        groups = GROUPS[test]
        gap = demographic_parity_difference(Y[test], decided, sensitive_features=groups)
        assert found["test_gap"][k] == pytest.approx(-gap)
    grid = {"fairthresholds__kappa": [0.02]}
    search = GridSearchCV(model, grid, scoring=scoring, refit="accuracy", cv=2)
    search.fit(X, Y, **rows)
    scorer = scoring["gap"]
    decided = search.best_estimator_.predict(X, sensitive_features=GROUPS)
    gap = demographic_parity_difference(Y, decided, sensitive_features=GROUPS)
    assert scorer(search, X, Y, sensitive_features=GROUPS) == pytest.approx(-gap)


def weighted_gap_of_queries(y, scores, *, sensitive_features, query, sample_weight=None):
    return 0.0


def test_all_that_the_metric_takes_is_requested():
    scorer = fc.make_fairness_scorer(metrics.query_parity_difference, quantile=0.5)
    assert scorer.requests == {"sensitive_features": True, "query": True}
    scorer = fc.make_fairness_scorer(weighted_gap_of_queries, greater_is_better=False)
    asked = {"sensitive_features": True, "query": True, "sample_weight": True}
    assert scorer.requests == asked
    assert scorer.set_score_request(sensitive_features=True, query="q") is scorer
    assert scorer.get_metadata_routing().score.requests == {**asked, "query": "q"}


def test_groups_in_columns_are_not_requested():
    scorer = fc.make_fairness_scorer(demographic_parity_difference, sensitive_columns=[0])
    with pytest.raises(ValueError, match=r"groups of its own, sensitive_columns=\[0\]"):
        scorer.set_score_request(sensitive_features=True)
    with pytest.raises(ValueError, match="takes no query"):
        scorer.set_score_request(query=True)


IDS = np.arange(len(Y)) // 4
WITH_SPLITTERS = {
    "thresholds": lambda cv: fc.FairThresholds(fc.FairLogisticClassifier(None), cv=cv),
    "cv": lambda cv: fc.FairLogisticClassifierCV(kappas=[0.3, 0.1], cv=cv, max_gap=0.5),
}


# The splitter of `cv` gets what it asks for, with routing and without.


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", WITH_SPLITTERS)
@pytest.mark.parametrize("weight", [None, (np.arange(len(Y)) % 5 > 0) * 1.0], ids=["", "w"])
@pytest.mark.parametrize("routed", [False, True])
def test_groups_split_the_rows(name, weight, routed, request):
    rows = {"sensitive_features": GROUPS, "sample_weight": weight}
    if routed:
        request.getfixturevalue("routing")
    make = WITH_SPLITTERS[name]
    model = make(GroupKFold(3)).fit(X, Y, **rows, groups=IDS)
    kept = slice(None) if weight is None or name == "cv" else np.flatnonzero(weight)
    some = np.arange(len(Y))[kept]
    splits = GroupKFold(3).split(X[some], Y[some], IDS[some])
    by_hand = make([(some[train], some[test]) for train, test in splits]).fit(X, Y, **rows)
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(X))
    if name == "thresholds":
        assert model.threshold_ == by_hand.threshold_
    else:
        found = model.cv_results_["mean_test_loss"]
        np.testing.assert_array_equal(found, by_hand.cv_results_["mean_test_loss"])


@pytest.mark.parametrize("name", WITH_SPLITTERS)
def test_splitters_that_need_groups(name):
    for cv, why in ((GroupKFold(3), "needs groups to split the rows"), ([], "has no splits")):
        with pytest.raises(ValueError, match=rf"cv=.*{why}"):
            WITH_SPLITTERS[name](cv).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(TypeError, match="grups"):
        WITH_SPLITTERS[name](3).fit(X, Y, sensitive_features=GROUPS, grups=IDS)
