"""Scores of boosted trees that may only rise, or only fall, in a column."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import (
    BoostedScores,
    FairBoostingClassifier,
    FairRanker,
    fairness_path,
    make_biased_ranking,
)

pytest.importorskip("lightgbm", reason="the extra boosting is not installed")

SIZE = {"n_estimators": 30, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    """Labels that rise and fall in both columns, and depend on a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    groups = (rng.random(1500) < 0.5).astype(int)
    score = X[:, 0] + 0.5 * np.sin(4.0 * X[:, 0]) - X[:, 1] + 0.5 * np.sin(4.0 * X[:, 1])
    return X, (score + 0.8 * (groups - 0.5) > 0).astype(int), groups


def changes(scores_of, column):
    """Return the steps of the scores along a column, from the lowest to the highest value."""
    X = np.random.default_rng(1).normal(size=(50, 3))
    scores = []
    for value in np.linspace(-2.0, 2.0, 31):
        X[:, column] = value
        scores.append(scores_of(X))
    return np.diff(scores, axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"enforce": "decision"},
        {"goal": "fairness"},
        {"pos_label": 0, "monotone_constraints": [-1, 1, 0]},
        {"constraint": None},
        {"n_fitted_trees": None, "kappa": 0.01},
    ],
)
def test_scores_are_monotone_and_meet_the_bound(data, options):
    X, y, groups = data
    options = {"monotone_constraints": [1, -1, 0], **options}
    clf = FairBoostingClassifier(**SIZE, **options).fit(X, y, sensitive_features=groups)
    assert changes(clf.decision_function, 0).min() >= -1e-12
    assert changes(clf.decision_function, 1).max() <= 1e-12
    assert clf.bound_met_ is not False and clf.result_.converged


def test_without_them_scores_are_not(data):
    X, y, groups = data
    clf = FairBoostingClassifier(**SIZE).fit(X, y, sensitive_features=groups)
    assert changes(clf.decision_function, 0).min() < -0.1


def test_paths_and_rankers(data):
    X, y, groups = data
    clf = FairBoostingClassifier(monotone_constraints={-2: -1}, **SIZE)
    path = fairness_path(clf, X, y, sensitive_features=groups, kappas=[0.2, 0.05])
    assert all(path.bounds_met)
    for one in path.estimators:
        assert changes(one.decision_function, 1).max() <= 1e-12
    X, y, query, groups = make_biased_ranking(40, 3, random_state=0)
    options = SIZE | {"n_estimators": 10}  # with 30 the fit takes 5,000 data passes
    model = BoostedScores(min_child_samples=5, monotone_constraints=[1, 0, 0], **options)
    ranker = FairRanker(model=model).fit(X, y, query=query, sensitive_features=groups)
    assert changes(ranker.predict, 0).min() >= -1e-12


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([1, 0], "monotone_constraints has 2 entries; X has 3 columns"),
        ({"age": 1}, "monotone_constraints: X has no column 'age'"),
        ({"b": 2}, "got 2 for 'b'"),
        ({"b": True}, "got True for 'b'"),
        ({"c": 1}, "got 1 for 'c' of a categorical column"),
    ],
)
def test_messages(data, constraints, said):
    X, y, groups = data
    table = pd.DataFrame(X, columns=list("abc")).assign(c=np.where(X[:, 2] > 0, "u", "v"))
    clf = FairBoostingClassifier(
        monotone_constraints=constraints, categorical_features=["c"], **SIZE
    )
    with pytest.raises(ValueError, match=said):
        clf.fit(table, y, sensitive_features=groups)
