"""Bad values for arguments of rankers, of thresholds and of comparisons."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    FairLogisticClassifier,
    FairRanker,
    FairThresholds,
    compare,
    compare_rankers,
    make_biased_classification,
)
from fairconstrained.objectives import PairwiseLoss
from fairconstrained.plotting import GroupRateDisplay, ScoreDensityDisplay

N = 60
X, Y, GROUPS = make_biased_classification(N, 3, gap=0.4, random_state=0)
MODEL = FairLogisticClassifier().fit(X, Y, sensitive_features=GROUPS)
QUERY = np.arange(N) // 15
RANKER = FairRanker(max_iter=20).fit(X, Y, query=QUERY, sensitive_features=GROUPS)
NAN, THING = float("nan"), object()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("estimator", ["a", None, 3, LogisticRegression, THING]),
        ("n_jobs", ["a", 1.5, 0, [1], THING]),
    ],
)
def test_classifiers_with_thresholds(name, values):
    for value in values:
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b('| must be)"):
            FairThresholds(**{"estimator": LogisticRegression(), name: value}).fit(
                X, Y, sensitive_features=GROUPS
            )


@pytest.mark.parametrize("value", ["nonsense", 3, ["a"], b"x", THING, None])
def test_activations_of_rankers_without_hidden_layers(value):
    with pytest.raises(ValueError, match="activation"):
        FairRanker(activation=value).fit(X, Y, query=QUERY, sensitive_features=GROUPS)


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


def test_queries_that_cannot_be_compared():
    with pytest.raises(ValueError, match="query must hold"):
        FairRanker().fit(X, Y, query=[{}] * N, sensitive_features=GROUPS)


@pytest.mark.parametrize("y", ["a", None, 3, np.full(N, NAN), [None] * N, Y + 5])
def test_labels_of_scores_of_rankers(y):
    with pytest.raises(ValueError, match=r"\by\b"):
        RANKER.score(X, y, query=QUERY)


@pytest.mark.parametrize(
    "models",
    ["a", None, 3, {}, {"a": 3}, {3: RANKER, "3": RANKER}, [RANKER], MODEL, FairRanker],
    ids=str,
)
def test_models_of_comparisons_of_rankers(models):
    with pytest.raises((ValueError, TypeError), match=r"\bmodels\b"):
        compare_rankers(models, X, Y, GROUPS, query=QUERY)


def test_models_of_the_same_name():
    with pytest.raises(ValueError, match="different names"):
        compare({1: MODEL, "1": MODEL}, X, Y, GROUPS)
