"""Bad values for arguments of rankers, of thresholds and of comparisons."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, FairRanker, compare, make_biased_classification
from fairconstrained.objectives import PairwiseLoss
from fairconstrained.plotting import GroupRateDisplay, ScoreDensityDisplay

N = 60
X, Y, GROUPS = make_biased_classification(N, 3, gap=0.4, random_state=0)
MODEL = FairLogisticClassifier().fit(X, Y, sensitive_features=GROUPS)
QUERY = np.arange(N) // 15
RANKER = FairRanker(max_iter=20).fit(X, Y, query=QUERY, sensitive_features=GROUPS)


@pytest.mark.parametrize("model", ["layers", "boosted"])
def test_the_loss_of_queries_bounds_no_mean_loss_of_groups(model):
    ranker = FairRanker("bounded_group_loss", model=model)
    with pytest.raises(ValueError, match=r"BoundedGroupLoss needs .* BoundedGroupLoss\(loss="):
        ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)


def test_the_objective_of_pairs_bounds_no_mean_loss_of_groups():
    clf = FairLogisticClassifier("bounded_group_loss", loss=PairwiseLoss())
    with pytest.raises(TypeError, match=r"BoundedGroupLoss needs .* BoundedGroupLoss\(loss="):
        clf.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("display", [GroupRateDisplay, ScoreDensityDisplay])
def test_displays_of_scores_name_the_comparison_of_rankers(display):
    with pytest.raises(ValueError, match=r"FairRanker ranks the rows.*use compare_rankers"):
        display.from_estimator(RANKER, X, Y, sensitive_features=GROUPS)


def test_models_of_the_same_name():
    with pytest.raises(ValueError, match="different names"):
        compare({1: MODEL, "1": MODEL}, X, Y, GROUPS)
