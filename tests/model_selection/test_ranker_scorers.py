"""Scorers of rankers and of any other model, and the best candidate of a search within a limit."""

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference

from fairconstrained import FairRanker, best_score_within, make_biased_ranking, make_fairness_scorer
from fairconstrained.metrics import mean_ndcg, query_parity_difference

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:fairlearn")


X, Y, QUERY, GROUPS = make_biased_ranking(15, 3, n_documents=30, random_state=0)
RANKER = FairRanker(kappa=0.1).fit(X, Y, query=QUERY, sensitive_features=GROUPS)


def test_scores_of_rankers_are_those_of_the_metrics():
    rows, scores = {"query": QUERY, "sensitive_features": GROUPS}, RANKER.predict(X)
    gap = make_fairness_scorer(query_parity_difference)(RANKER, X, Y, **rows)
    assert gap == -query_parity_difference(Y, scores, **rows)
    ndcg = make_fairness_scorer(mean_ndcg, k=5)(RANKER, X, Y, query=QUERY)
    assert ndcg == mean_ndcg(Y, scores, query=QUERY, k=5)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (mean_ndcg, "has no queries"),
        (query_parity_difference, "has no queries"),
        (demographic_parity_difference, "FairRanker predicts scores"),
    ],
)
def test_metrics_of_labels_and_missing_queries_are_refused(metric, said):
    with pytest.raises(ValueError, match=said):
        make_fairness_scorer(metric)(RANKER, X, Y, sensitive_features=GROUPS)


def test_rows_of_weight_zero_are_left_out_of_the_gain():
    y, scores, query = [1, 0, 1, 0], [0.5, 0.9, 0.8, 0.2], ["a", "a", "b", "b"]
    kept = [0, 2, 3]
    weight = np.array([1.0, 0.0, 1.0, 3.0])
    found = mean_ndcg(y, scores, query=query, sample_weight=weight)
    parts = [np.asarray(one)[kept] for one in (y, scores, query, weight)]
    assert found == mean_ndcg(parts[0], parts[1], query=parts[2], sample_weight=parts[3])


GAPS = np.array([-0.3, -0.04, -0.02, -0.01])
RATIOS = np.array([0.3, 0.81, 0.9, 0.99])


def results(gaps=GAPS):
    return {"mean_test_accuracy": np.array([0.9, 0.8, 0.8, np.nan]), "mean_test_gap": gaps}


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("limit", "options", "gaps", "best"),
    [
        (0.5, {}, GAPS, 0),
        (0.05, {}, GAPS, 2),  # of equals the fairer one
        (0.05, {}, -GAPS, 2),  # the sign does not matter
        (0.8, {"at_least": True}, RATIOS, 2),
        (0.2, {"at_least": True}, RATIOS, 0),
    ],
)
def test_the_best_within_the_limit(limit, options, gaps, best):
    assert best_score_within("gap", limit, **options)(results(gaps)) == best


def test_messages():
    with pytest.raises(ValueError, match=r"no score 'dp'; it has \['accuracy', 'gap'\]"):
        best_score_within("dp", 0.1)(results())
    with pytest.raises(ValueError, match="'limit' parameter of best_score_within"):
        best_score_within("gap", -0.1)
    with pytest.raises(ValueError, match="nan for all candidates"):
        best_score_within("gap", 0.1)(results(np.full(4, np.nan)))
    expected = "best_score_within('gap', 0.1, score='accuracy')"
    assert repr(best_score_within("gap", 0.1)) == expected
