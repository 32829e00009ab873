"""A bound on scores that leaves the predictions far apart is not silent."""

import re
import warnings

import numpy as np
import pytest
from _support.classifiers import EVERY
from sklearn.model_selection import GridSearchCV

from fairconstrained import (
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.exceptions import InputWarning

MESSAGE = re.compile(r"The bound of (\S+) is one on scores: .* is (\S+)\. .* enforce='decision'")


@pytest.fixture(scope="module")
def rows():
    """Rows whose probabilities are near the threshold, so that predictions differ much."""
    rng = np.random.default_rng(0)
    groups = np.arange(400) % 2
    X = np.c_[groups + 0.3 * rng.normal(size=400), rng.normal(size=400)]
    return X, (rng.random(400) < 0.45 + 0.1 * groups).astype(int), groups


def told(action):
    """Return the messages about predictions that an action issues, as a user sees them."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [one for one in found if MESSAGE.match(str(one.message))]


@pytest.mark.parametrize("name", EVERY)
def test_a_fit_on_scores_says_it_once_and_one_on_predictions_does_not(name, rows):
    X, y, groups = rows
    options = {} if name == "cv" else {"kappa": 0.12}
    model = EVERY[name](**options)
    found = told(lambda: model.fit(X, y, sensitive_features=groups))
    kappa = model.kappa_ if name == "cv" else model.kappa
    assert len(found) == int(model.decision_gap_ > kappa + 0.1)
    for one in found:
        bound, gap = MESSAGE.match(str(one.message)).groups()
        assert one.category is InputWarning and float(bound) == pytest.approx(kappa)
        assert float(gap) == pytest.approx(model.decision_gap_, abs=1e-3)
    if name != "cv":
        assert all(one.filename == __file__ for one in found)
        model.set_params(enforce="decision")
        assert not told(lambda: model.fit(X, y, sensitive_features=groups))


def test_a_bound_on_sums_of_rates_says_it_too():
    X, y, groups = make_biased_classification(1500, 4, gap=0.8, random_state=0)
    model = FairLogisticClassifier("balanced_rate", kappa=0.02)
    found = told(lambda: model.fit(X, y, sensitive_features=groups))
    assert model.decision_gap_ > 1.02 + 0.1
    assert len(found) == 1


def test_linear_scores_leave_these_predictions_apart(rows):
    X, y, groups = rows
    model = FairLogisticClassifier(kappa=0.08)
    assert len(told(lambda: model.fit(X, y, sensitive_features=groups))) == 1
    assert model.bound_met_ and model.decision_gap_ > 0.18


@pytest.mark.parametrize(
    ("constraint", "options"),
    [
        ("inter_group_auc", {}),
        ("roc_parity", {}),
        ("demographic_parity", {"goal": "fairness"}),
        (None, {}),
    ],
)
def test_other_constraints_and_goals_say_nothing(constraint, options, rows):
    X, y, groups = rows
    model = FairLogisticClassifier(constraint, **options)
    assert not told(lambda: model.fit(X, y, sensitive_features=groups))


def test_a_path_and_a_search_say_it_once(rows):
    X, y, groups = rows
    given = {"sensitive_features": groups}
    assert (
        len(told(lambda: fairness_path(FairLogisticClassifier(), X, y, n_kappas=4, **given))) == 1
    )
    search = FairLogisticClassifierCV(kappas=[0.08, 0.06], cv=2, max_gap=0.5)
    assert len(told(lambda: search.fit(X, y, **given))) == 1
    grid = GridSearchCV(FairLogisticClassifier(), {"kappa": [0.08, 0.07, 0.06]}, cv=2)
    assert len(told(lambda: grid.fit(X, y, **given))) == 1
    assert grid.best_estimator_.decision_gap_ > grid.best_params_["kappa"] + 0.1
