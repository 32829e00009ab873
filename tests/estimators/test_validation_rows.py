"""Rows of the user's own that choose when training stops."""

import numpy as np
import pytest

from fairconstrained import (
    BoostedScores,
    FairBoostingClassifier,
    FairNetworkClassifier,
    FairRanker,
    fairness_path,
    make_biased_classification,
    make_biased_ranking,
)

STOPPING = {"n_estimators": 60, "early_stopping": True, "n_iter_no_change": 3, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    return make_biased_classification(1200, 4, gap=0.4, random_state=0)


def divided(held, **arrays):
    """Return arguments of `fit`: the rows that are held out for validation, and the others."""
    inside = np.setdiff1d(np.arange(len(arrays["y"])), held)
    others = {f"{name}_val": values[held] for name, values in arrays.items()}
    return {name: values[inside] for name, values in arrays.items()} | others


@pytest.mark.parametrize("constraint", ["demographic_parity", None])
def test_trees_stop_as_with_the_same_rows_set_aside(data, constraint):
    pytest.importorskip("lightgbm", reason="the extra boosting is not installed")
    X, y, groups = data
    clf = FairBoostingClassifier(constraint, **STOPPING).fit(X, y, sensitive_features=groups)
    n_trees, held = clf.n_estimators_, clf.validation_indices_
    clf.fit(**divided(held, X=X, y=y, sensitive_features=groups))
    assert clf.n_estimators_ == n_trees < STOPPING["n_estimators"]
    assert not hasattr(clf, "validation_indices_")
    if constraint is None:
        rows = divided(held, X=X, y=y, sensitive_features=groups)
        path = fairness_path(FairBoostingClassifier(**STOPPING), **rows, kappas=[0.1, 0.2])
        assert [model.n_estimators_ for model in path.estimators] == [n_trees] * 2


def test_trees_of_a_ranker_stop_as_with_the_same_queries_set_aside():
    pytest.importorskip("lightgbm", reason="the extra boosting is not installed")
    X, y, query, groups = make_biased_ranking(60, 4, random_state=0)
    arrays = {"X": X, "y": y, "query": query, "sensitive_features": groups}
    ranker = FairRanker(model=BoostedScores(min_child_samples=5, **STOPPING)).fit(**arrays)
    n_trees, held = ranker.n_estimators_, ranker.validation_indices_
    assert ranker.fit(**divided(held, **arrays)).n_estimators_ == n_trees
    with pytest.raises(ValueError, match=r"X_val: .* use early_stopping=True"):
        FairRanker().fit(**divided(held, **arrays))
    both = FairRanker(model=BoostedScores(constraint_fraction=0.3, **STOPPING))
    with pytest.raises(ValueError, match="X_val: with constraint_fraction"):
        both.fit(**divided(held, **arrays))


def test_they_choose_the_iterate_of_a_network(data):
    pytest.importorskip("torch", reason="the extra network is not installed")
    X, y, groups = data
    clf = FairNetworkClassifier(hidden_layer_sizes=(4,), max_epochs=8, random_state=0)
    clf.fit(**divided(np.arange(400), X=X, y=y, sensitive_features=groups))
    assert clf.result_.status.value == "chosen on validation rows"
    assert not hasattr(clf, "validation_indices_") and clf.bound_met_


@pytest.mark.parametrize(
    ("without", "options", "said"),
    [
        ("X_val", {}, "need both X_val and y_val"),
        ("sensitive_features_val", {}, "sensitive_features_val is missing"),
        ("", {"early_stopping": False}, "X_val: validation rows choose when training stops"),
    ],
)
def test_messages(data, without, options, said):
    pytest.importorskip("lightgbm", reason="the extra boosting is not installed")
    X, y, groups = data
    arguments = divided(np.arange(300), X=X, y=y, sensitive_features=groups) | {without: None}
    arguments.pop("", None)
    with pytest.raises(ValueError, match=said):
        FairBoostingClassifier(**{**STOPPING, **options}).fit(**arguments)
