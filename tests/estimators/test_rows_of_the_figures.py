"""Gaps, accuracy and `bound_met_` are those of all rows that `fit` was given."""

import numpy as np
import pytest
from _support.classifiers import SINGLE, quietly
from _support.gaps import divided, gap_of
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.constraints import QueryParity
from fairconstrained.metrics import query_pairwise_errors

STOPPING = {
    "network": {"early_stopping": True, "validation_fraction": 0.3},
    "boosting": {"early_stopping": True, "validation_fraction": 0.3},
}


ROWS = fc.make_biased_classification(600, gap=0.3, random_state=0)


ENFORCED = [("score", None), ("decision", None), ("decision", 0.5)]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("enforce", "confidence"), ENFORCED)
@pytest.mark.parametrize("name", STOPPING)
def test_rows_that_choose_the_iterate_are_rows_of_the_figures(name, enforce, confidence):
    X, y, groups = ROWS
    model = SINGLE[name](kappa=0.1, enforce=enforce, confidence=confidence)
    model.set_params(**STOPPING[name])
    quietly(model.fit, X, y, sensitive_features=groups)
    held_out = getattr(model, "holdout_indices_", np.zeros(0, dtype=int))
    given = np.setdiff1d(np.arange(len(y)), held_out)
    chosen = model.validation_indices_
    assert len(chosen) == pytest.approx(0.3 * len(given), abs=4)
    assert np.isin(chosen, given).all() and np.all(np.diff(chosen) > 0)
    shown = X[given], y[given], groups[given]
    decided, probability = model.predict(shown[0]), model.predict_proba(shown[0])[:, 1]
    assert model.decision_gap_ == pytest.approx(gap_of(decided, shown[2]))
    assert model.gap_ == pytest.approx(gap_of(probability, shown[2]), abs=1e-6)
    if enforce == "decision":
        accuracy = model.decision_search_.accuracy
        assert accuracy == pytest.approx(np.mean(decided == shown[1]))
    if confidence is None:
        gap, tol = (model.gap_, 1e-4) if enforce == "score" else (model.decision_gap_, 1e-9)
        assert model.bound_met_ is bool(gap <= 0.1 + tol)
        assert model.bound_met_  # the last layer and the leaves are fitted on all rows
    model.set_params(early_stopping=False, confidence=None)
    quietly(model.fit, X, y, sensitive_features=groups)
    assert not hasattr(model, "validation_indices_")


@pytest.mark.parametrize("options", [{"early_stopping": True}, {"constraint_fraction": 0.3}])
def test_gaps_of_rankers_are_those_of_all_queries(options):
    X, y, query, groups = fc.make_biased_ranking(20, 4, random_state=0)
    trees = fc.BoostedScores(n_estimators=10, num_leaves=4, n_jobs=1, **options)
    ranker = fc.FairRanker(QueryParity(0.1, average=True), model=trees, random_state=0)
    quietly(ranker.fit, X, y, query=query, sensitive_features=groups)
    errors = query_pairwise_errors(y, ranker.predict(X), query=query, sensitive_features=groups)
    gap = abs((errors[0, 1] - errors[1, 0]).mean())  # of queries that have both
    assert ranker.decision_gap_ == pytest.approx(gap)
    assert ranker.bound_met_ is bool(ranker.gap_ <= 0.1 + 1e-4)
    assert ranker.bound_violation_ == pytest.approx(max(ranker.gap_ - 0.1, 0.0))
    aside = np.isin(query, query[ranker.validation_indices_])  # queries stay together
    np.testing.assert_array_equal(np.flatnonzero(aside), ranker.validation_indices_)


@pytest.mark.parametrize("per_group", [False, True])
def test_figures_of_thresholds_that_some_rows_chose_are_those_of_all_rows(per_group):
    X, y, groups = ROWS
    model = fc.FairThresholds(LogisticRegression(), kappa=0.05, cv=0.3, per_group=per_group)
    said = r"all rows .*: bound not met: 0\.\d+ >"
    with pytest.warns(fc.InfeasibleConstraintWarning, match=said):
        model.set_params(random_state=4).fit(X, y, sensitive_features=groups)
    shown = {"sensitive_features": groups} if per_group else {}
    assert len(model.validation_indices_) == 180 and model.decision_search_.met
    gap = gap_of(model.predict(X, **shown), groups)
    assert model.decision_gap_ == pytest.approx(gap)
    assert model.bound_violation_ == pytest.approx(gap - 0.05) and model.bound_met_ is False
    model.set_params(cv=3).fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "validation_indices_") and model.bound_met_


SHORT = {"n_estimators": 60, "early_stopping": True, "n_iter_no_change": 3, "n_jobs": 1}


def test_trees_of_a_ranker_stop_as_with_the_same_queries_set_aside():
    X, y, query, groups = fc.make_biased_ranking(60, 4, random_state=0)
    arrays = {"X": X, "y": y, "query": query, "sensitive_features": groups}
    ranker = fc.FairRanker(model=fc.BoostedScores(min_child_samples=5, **SHORT)).fit(**arrays)
    n_trees, held = ranker.n_estimators_, ranker.validation_indices_
    assert ranker.fit(**divided(held, **arrays)).n_estimators_ == n_trees
    with pytest.raises(ValueError, match=r"X_val: .* use early_stopping=True"):
        fc.FairRanker().fit(**divided(held, **arrays))
    both = fc.FairRanker(model=fc.BoostedScores(constraint_fraction=0.3, **SHORT))
    with pytest.raises(ValueError, match="X_val: with constraint_fraction"):
        both.fit(**divided(held, **arrays))


MESSAGES = [
    ("X_val", {}, "need X_val and y_val"),
    ("sensitive_features_val", {}, "sensitive_features_val is missing"),
    ("", {"early_stopping": False}, "X_val: validation rows choose when training stops"),
]


@pytest.mark.parametrize(("without", "options", "said"), MESSAGES)
def test_messages(without, options, said):
    X, y, groups = ROWS
    arguments = divided(np.arange(300), X=X, y=y, sensitive_features=groups) | {without: None}
    arguments.pop("", None)
    with pytest.raises(ValueError, match=said):
        fc.FairBoostingClassifier(**{**SHORT, **options}).fit(**arguments)
