"""Paths of networks and rankers: warm starts, the same validation rows, NDCG for accuracy."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairconstrained import (
    FairLogisticClassifier,
    FairNetworkClassifier,
    FairRanker,
    fairness_path,
    make_biased_classification,
    make_biased_ranking,
)

X, Y, GROUPS = make_biased_classification(1000, 5, gap=0.4, random_state=0)
NETWORK = FairNetworkClassifier(hidden_layer_sizes=(8,), max_epochs=80, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(20, 4, n_documents=30, random_state=0)
OTHERS = make_biased_ranking(20, 4, n_documents=30, random_state=1)


@pytest.fixture(scope="module")
def network_path():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    rows, others = slice(0, 700), slice(700, None)
    return fairness_path(
        NETWORK,
        X[rows],
        Y[rows],
        sensitive_features=GROUPS[rows],
        n_kappas=4,
        X_val=X[others],
        y_val=Y[others],
        sensitive_features_val=GROUPS[others],
    )


@pytest.fixture(scope="module")
def ranker_path():
    return followed(FairRanker())


def test_every_point_meets_its_bound_and_is_chosen_on_validation_rows(network_path):
    assert set(network_path.statuses) == {"chosen on validation rows"}
    assert network_path.violations.max() <= 1e-4
    assert np.all(network_path.gaps <= network_path.kappas + 1e-4)
    assert network_path.gaps[0] > 0.1 > 0.01 > network_path.gaps[-1]
    assert network_path.objectives[-1] > network_path.objectives[0] + 0.05


def test_points_of_networks_are_fitted_estimators(network_path):
    model = network_path.estimator_at(-1)
    assert model.kappa == network_path.kappas[-1]
    assert model.score(X[700:], Y[700:]) == pytest.approx(
        network_path.validation["val_accuracy"][-1]
    )
    again = pickle.loads(pickle.dumps(network_path)).estimator_at(2)
    assert_allclose(again.decision_function(X), network_path.estimator_at(2).decision_function(X))
    assert len(network_path.to_frame()) == 4
    assert not hasattr(NETWORK, "weights_")


def followed(ranker):
    names = ("X_val", "y_val", "query_val", "sensitive_features_val")
    rows = {"query": QUERY, "sensitive_features": QUALITY, **dict(zip(names, OTHERS, strict=True))}
    return fairness_path(ranker, DOCUMENTS, RELEVANT, n_kappas=4, **rows)


def test_points_of_rankers_are_those_of_single_fits(ranker_path):
    assert set(ranker_path.statuses) == {"converged"}
    for k in (1, 3):
        single = FairRanker(kappa=ranker_path.kappas[k])
        single.fit(DOCUMENTS, RELEVANT, query=QUERY, sensitive_features=QUALITY)
        assert ranker_path.objectives[k] == pytest.approx(single.objective_, abs=2e-4)
        assert ranker_path.gaps[k] == pytest.approx(single.gap_, abs=2e-4)


def test_the_quality_of_rankers_is_the_ndcg(ranker_path):
    model, (X_val, y_val, query_val, _) = ranker_path.estimator_at(1), OTHERS
    ndcg = model.score(DOCUMENTS, RELEVANT, query=QUERY)
    assert ranker_path.train_ndcg[1] == pytest.approx(ndcg)
    assert ranker_path.validation["val_ndcg"][1] == pytest.approx(
        model.score(X_val, y_val, query=query_val)
    )
    assert "val_accuracy" not in ranker_path.to_frame()
    assert_allclose(ranker_path.to_frame()["train_ndcg"], ranker_path.train_ndcg)
    with pytest.raises(AttributeError, match="train_ndcg, not accuracy"):
        ranker_path.train_accuracy  # noqa: B018


RANKED = (DOCUMENTS, RELEVANT, {"query": QUERY, "sensitive_features": QUALITY})
DECIDED = (X, Y, {"sensitive_features": GROUPS})
QUERIES = {
    "a ranker without": (FairRanker(), RANKED, {"query": None}, "needs query="),
    "a classifier": (FairLogisticClassifier(), DECIDED, {"query": Y}, "query is for rankers"),
    "validation rows of a classifier": (
        FairLogisticClassifier(),
        DECIDED,
        {"X_val": X, "y_val": Y, "query_val": Y, "sensitive_features_val": GROUPS},
        "only FairRanker has queries",
    ),
    "validation rows of a ranker": (
        FairRanker(),
        RANKED,
        {"X_val": DOCUMENTS, "y_val": RELEVANT, "sensitive_features_val": QUALITY},
        "pass query_val, the query of each row",
    ),
}


@pytest.mark.cases(len(QUERIES))
@pytest.mark.parametrize("case", QUERIES)
def test_queries_are_for_rankers(case):
    estimator, (features, labels, given), changed, message = QUERIES[case]
    with pytest.raises(ValueError, match=message):
        fairness_path(estimator, features, labels, **given | changed)
