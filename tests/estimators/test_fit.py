"""A Fit: options and data as a problem, other tolerances, other rows, attributes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import (
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    make_biased_classification,
)
from fairconstrained.constraints import GroupAUCParity, PartialDemographicParity, ROCParity
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.solution import Solution

X, Y, GROUPS = make_biased_classification(400, 4, gap=0.3, random_state=0)


def fit_of(constraint="demographic_parity", **options):
    return FairLogisticClassifier(constraint, **options).bind(X, Y, None, GROUPS)


def test_solve_and_store_are_what_fit_does():
    clf = FairLogisticClassifier(kappa=0.05)
    fit = clf.bind(X, Y, None, GROUPS)
    fit.store(clf, Solution(fit.solve()[0]))
    other = FairLogisticClassifier(kappa=0.05).fit(X, Y, sensitive_features=GROUPS)
    assert_array_equal(clf.coef_, other.coef_)
    assert vars(clf).keys() == vars(other).keys()
    assert clf.result_.state is None and clf.gap_ == other.gap_


@pytest.mark.parametrize(
    "constraint",
    ["demographic_parity", "equalized_odds", PartialDemographicParity(), GroupAUCParity()],
)
def test_other_kappa(constraint):
    fit, fresh = fit_of(constraint, kappa=0.3).with_kappa(0.05), fit_of(constraint, kappa=0.05)
    w = np.random.default_rng(0).normal(size=fresh.problem.n_variables)
    assert_allclose(fit.problem.at(w).constraints, fresh.problem.at(w).constraints)
    assert fit.model is not fresh.model and fit.problem.objective.model is fit.model


def test_kappa_is_checked():
    with pytest.raises(ValueError, match="kappa must be"):
        fit_of().with_kappa(2.0)


def test_the_unconstrained_model_is_solved_once_for_all_kappas():
    fit = fit_of()
    assert "result" not in vars(fit.unconstrained)
    first = fit.unconstrained.result
    assert fit.with_kappa(0.2).unconstrained.result is first
    assert fit.start().w[: first.w.size] == pytest.approx(first.w)


@pytest.mark.parametrize("constraint", ["demographic_parity", ROCParity(n_thresholds=5)])
def test_other_rows(constraint):
    """Constraints on the training rows themselves are those of the problem."""
    fit = fit_of(constraint)
    same = fit.problem_on(fit.data)
    w = np.random.default_rng(1).normal(size=fit.problem.n_variables)
    assert_allclose(same.at(w).constraints, fit.problem.at(w).constraints)
    half = np.arange(0, 400, 2)
    data = TrainingData(
        fit.data.X[half],
        fit.data.y[half],
        fit.data.classes,
        fit.data.groups.take(half),
        np.ones(200),
    )
    there = fit.problem_on(data).at(w)
    assert there.scores_of(there.problem.objective).shape == (200,)


def test_attributes_of_variables_and_back():
    fit = fit_of()
    w = fit.solve()[0].w
    clf = FairLogisticClassifier()
    for name, value in fit.attributes(w).items():
        setattr(clf, name, value)
    assert_allclose(clf._variables(fit), w)
    assert FairLogisticClassifier()._variables(fit) is None
    scores = clf.coef_ @ X.T + clf.intercept_[:, None]
    assert_allclose(scores[0], fit.model.forward(w)[0], atol=1e-10)


def test_no_module_calls_private_methods_of_estimators():
    import re
    from pathlib import Path

    import fairconstrained

    private = re.compile(r"\b(base|estimator|fitted|estimators?_?)\._(?!init_callback)\w+\(")
    package = Path(fairconstrained.__file__).parent
    for module in (*package.glob("model_selection/*.py"), *package.glob("decisions/*.py")):
        assert not private.search(module.read_text()), module


REFITS = {
    "more classes": {"y": np.digitize(X[:, 0], [-0.5, 0.5]), "confidence": None},
    "no held-out rows": {"confidence": None},
}


@pytest.mark.parametrize("name", REFITS)
def test_a_second_fit_keeps_nothing_of_the_first(name):
    options = {"kappa": 0.3, "enforce": "decision", "confidence": 0.9, "random_state": 0}
    clf = FairLogisticClassifier(**options).fit(X, Y, sensitive_features=GROUPS)
    other = {"y": Y, **options, **REFITS[name]}
    y = other.pop("y")
    clf.set_params(**other).fit(X, y, sensitive_features=GROUPS)
    fresh = FairLogisticClassifier(**other).fit(X, y, sensitive_features=GROUPS)
    assert vars(clf).keys() == vars(fresh).keys()
    assert_array_equal(clf.predict(X), fresh.predict(X))


def test_a_second_search_keeps_nothing_of_the_first():
    search = FairLogisticClassifierCV(kappas=[0.3], max_gap=1.0, cv=2)
    search.fit(X, Y, sensitive_features=GROUPS)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    search.fit(X, y, sensitive_features=GROUPS)
    assert not {"pos_label_", "threshold_", "score_threshold_"} & vars(search).keys()
