"""Paths of networks and rankers: warm starts, the same validation rows, NDCG for accuracy."""

import pickle

import numpy as np
import pytest
from _support.gaps import divided
from numpy.testing import assert_allclose

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(1000, 5, gap=0.4, random_state=0)
NETWORK = fc.FairNetworkClassifier(hidden_layer_sizes=(8,), max_epochs=80, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = fc.make_biased_ranking(20, 4, n_documents=30, random_state=0)
OTHERS = fc.make_biased_ranking(20, 4, n_documents=30, random_state=1)


def test_points_of_networks_meet_their_bounds_and_are_fitted_estimators():
    rows = divided(np.arange(700, 1000), X=X, y=Y, sensitive_features=GROUPS)
    path = fc.fairness_path(NETWORK, **rows, n_kappas=4)
    assert set(path.statuses) == {"chosen on validation rows"}
    assert path.violations.max() <= 1e-4
    assert np.all(path.gaps <= path.kappas + 1e-4)
    assert path.gaps[0] > 0.1 > 0.01 > path.gaps[-1]
    assert path.objectives[-1] > path.objectives[0] + 0.05
    model = path.estimator_at(-1)
    assert model.kappa == path.kappas[-1]
    accuracy = path.validation["val_accuracy"][-1]
    assert model.score(X[700:], Y[700:]) == pytest.approx(accuracy)
    again = pickle.loads(pickle.dumps(path)).estimator_at(2)
    assert_allclose(again.decision_function(X), path.estimator_at(2).decision_function(X))
    assert len(path.to_frame()) == 4
    assert not hasattr(NETWORK, "weights_")


def test_points_of_rankers_are_those_of_single_fits_and_their_quality_is_the_ndcg():
    names = ("X_val", "y_val", "query_val", "sensitive_features_val")
    rows = {"query": QUERY, "sensitive_features": QUALITY}
    later = dict(zip(names, OTHERS, strict=True))
    path = fc.fairness_path(fc.FairRanker(), DOCUMENTS, RELEVANT, n_kappas=4, **rows, **later)
    assert set(path.statuses) == {"converged"}
    for k in (1, 3):
        single = fc.FairRanker(kappa=path.kappas[k]).fit(DOCUMENTS, RELEVANT, **rows)
        assert path.objectives[k] == pytest.approx(single.objective_, abs=2e-4)
        assert path.gaps[k] == pytest.approx(single.gap_, abs=2e-4)
    model, (X_val, y_val, query_val, _) = path.estimator_at(1), OTHERS
    ndcg = model.score(DOCUMENTS, RELEVANT, query=QUERY)
    assert path.train_ndcg[1] == pytest.approx(ndcg)
    ndcg = model.score(X_val, y_val, query=query_val)
    assert path.validation["val_ndcg"][1] == pytest.approx(ndcg)
    assert "val_accuracy" not in path.to_frame()
    assert_allclose(path.to_frame()["train_ndcg"], path.train_ndcg)
    with pytest.raises(AttributeError, match="train_ndcg, not accuracy"):
        path.train_accuracy  # noqa: B018


RANKED = (DOCUMENTS, RELEVANT, {"query": QUERY, "sensitive_features": QUALITY})
DECIDED = (X, Y, {"sensitive_features": GROUPS})
QUERIES = {
    "a ranker without": (fc.FairRanker(), RANKED, {"query": None}, "needs query="),
    "a classifier": (fc.FairLogisticClassifier(), DECIDED, {"query": Y}, "query is for rankers"),
    "validation rows of a classifier": (
        fc.FairLogisticClassifier(),
        DECIDED,
        {"X_val": X, "y_val": Y, "query_val": Y, "sensitive_features_val": GROUPS},
        "only FairRanker has queries",
    ),
    "validation rows of a ranker": (
        fc.FairRanker(),
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
        fc.fairness_path(estimator, features, labels, **given | changed)
