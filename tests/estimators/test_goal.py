"""goal="fairness": the least unfairness for a loss that is nearly the best."""

import numpy as np
import pytest
from _support.classifiers import quietly
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(500, 4, gap=0.4, random_state=0)


def fitted(kind=fc.FairLogisticClassifier, groups=GROUPS, **options):
    clf = kind(**{"goal": "fairness", "max_loss_increase": 0.02, **options})
    return clf.fit(X, Y, sensitive_features=groups)


@pytest.mark.parametrize("kind", [fc.FairLogisticClassifier, fc.FairHingeClassifier])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_the_loss_allowed_is_spent_on_fairness(kind, constraint):
    fair = fitted(kind, constraint=constraint)
    assert fair.result_.converged
    assert_allclose(fair.objective_, 1.02 * kind(None).fit(X, Y).objective_, rtol=2e-4)
    assert fair.gap_ == pytest.approx(fair.result_.objective, abs=2e-4)
    unfair = kind(constraint, kappa=1.0).fit(X, Y, sensitive_features=GROUPS)
    assert fair.gap_ < unfair.gap_ - 0.02
    assert fair.multipliers_[-1] > 0.0, "the constraint on the loss is active"
    assert fitted(kind, constraint=constraint, max_loss_increase=100.0).multipliers_[-1] == 0.0


def test_both_goals_meet():
    """The least loss for the gap that was reached is the loss that was allowed."""
    fair = fitted(tol=1e-5)
    fit = fc.FairLogisticClassifier(kappa=fair.gap_, tol=1e-5).fit(X, Y, sensitive_features=GROUPS)
    assert_allclose(fit.objective_, fair.objective_, rtol=1e-4)
    assert_allclose(fit.coef_, fair.coef_, atol=2e-2)
    assert fitted(max_loss_increase=1e-4).result_.data_passes < 50, "a second solver takes 100"


def test_one_group_by_chance_gives_the_unconstrained_model():
    with pytest.warns(fc.VacuousConstraintWarning):
        fit = fitted(groups=np.zeros(len(Y)))
    assert_allclose(fit.coef_, fc.FairLogisticClassifier(None).fit(X, Y).coef_, atol=1e-8)


def test_a_search_over_beta_that_no_fit_uses_says_so_once() -> None:
    grid = {"kappa": [0.1, 0.2], "beta": [0.1, 10.0]}
    search = GridSearchCV(fc.FairLogisticClassifier(), grid, cv=2, error_score="raise")
    with pytest.warns(fc.InputWarning, match="beta=.* is not used") as record:
        search.fit(X, Y, sensitive_features=GROUPS)
    assert len([one for one in record if "beta=" in str(one.message)]) == 1


def test_fits_without_such_a_solver_say_so_once() -> None:
    *rows, query, groups = fc.make_biased_ranking(8, 4, random_state=0)
    with pytest.warns(fc.InputWarning, match="beta=.* is not used") as record:
        fc.FairRanker(beta=0.3).fit(*rows, query=query, sensitive_features=groups)
        fc.FairBoostingClassifier(None, n_estimators=3, beta=0.3).fit(X, Y)
    assert len([one for one in record if "beta=" in str(one.message)]) == 2


def test_every_estimator_with_a_solver_has_it() -> None:
    boosted = fc.FairBoostingClassifier(kappa=0.1, n_estimators=5, solver="plada", beta=0.3)
    two = fc.NeymanPearsonClassifier(solver="plada", beta=0.3)
    *rows, query, groups = fc.make_biased_ranking(8, 4, random_state=0)
    ranker = fc.FairRanker(solver="plada", beta=0.3)
    quietly(boosted.fit, X, Y, sensitive_features=GROUPS)
    quietly(two.fit, X, Y)
    quietly(ranker.fit, *rows, query=query, sensitive_features=groups)
    for model in (boosted, two, ranker):
        solver = model.result_.replaces or model.result_.solver
        assert isinstance(solver, fc.solvers.PLADA) and solver.beta == 0.3
