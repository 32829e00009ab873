"""Scorers of rankers."""

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference
from sklearn.model_selection import GridSearchCV, GroupKFold

from fairconstrained import FairRanker, best_score_within, make_biased_ranking, make_fairness_scorer
from fairconstrained.metrics import mean_ndcg, query_parity_difference

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:fairlearn")


class TestRankers:
    X, Y, QUERY, GROUPS = make_biased_ranking(15, 3, n_documents=30, random_state=0)

    @pytest.fixture
    def ranker(self):
        return FairRanker(kappa=0.1).fit(
            self.X, self.Y, query=self.QUERY, sensitive_features=self.GROUPS
        )

    def test_scores_are_those_of_the_metrics(self, ranker):
        rows = {"query": self.QUERY, "sensitive_features": self.GROUPS}
        scores = ranker.predict(self.X)
        gap = make_fairness_scorer(query_parity_difference)(ranker, self.X, self.Y, **rows)
        assert gap == -query_parity_difference(self.Y, scores, **rows)
        ndcg = make_fairness_scorer(mean_ndcg, k=5)(ranker, self.X, self.Y, query=self.QUERY)
        assert ndcg == mean_ndcg(self.Y, scores, query=self.QUERY, k=5)

    def test_a_search_takes_the_best_ndcg_among_fair_models(self, routing):
        ranker = FairRanker()
        scoring = {
            "ndcg": make_fairness_scorer(mean_ndcg),
            "gap": make_fairness_scorer(query_parity_difference, quantile=0.5),
        }
        options = {"cv": GroupKFold(3), "scoring": scoring}
        rows = {"query": self.QUERY, "sensitive_features": self.GROUPS, "groups": self.QUERY}
        kappas = {"kappa": [0.02, 0.2, 1.0]}
        refit = best_score_within("gap", 0.25, score="ndcg")
        search = GridSearchCV(ranker, kappas, refit=refit, **options).fit(self.X, self.Y, **rows)
        gaps = -search.cv_results_["mean_test_gap"]
        ndcg = search.cv_results_["mean_test_ndcg"]
        assert 0 < (gaps <= 0.25).sum() < 3
        assert search.best_index_ == np.flatnonzero(gaps <= 0.25)[np.argmax(ndcg[gaps <= 0.25])]

    def test_queries_are_needed(self, ranker):
        for metric in (mean_ndcg, query_parity_difference):
            with pytest.raises(ValueError, match="has no queries"):
                make_fairness_scorer(metric)(ranker, self.X, self.Y, sensitive_features=self.GROUPS)

    def test_metrics_of_labels_are_refused(self, ranker):
        scorer = make_fairness_scorer(demographic_parity_difference)
        with pytest.raises(ValueError, match="FairRanker predicts scores"):
            scorer(ranker, self.X, self.Y, sensitive_features=self.GROUPS)


def test_rows_of_weight_zero_are_left_out_of_the_gain():
    y, scores, query = [1, 0, 1, 0], [0.5, 0.9, 0.8, 0.2], ["a", "a", "b", "b"]
    kept = [0, 2, 3]
    weight = np.array([1.0, 0.0, 1.0, 3.0])
    found = mean_ndcg(y, scores, query=query, sample_weight=weight)
    parts = [np.asarray(one)[kept] for one in (y, scores, query, weight)]
    assert found == mean_ndcg(parts[0], parts[1], query=parts[2], sample_weight=parts[3])
