"""goal="fairness": the least unfairness for a loss that is nearly the best."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

from fairconstrained import (
    DemographicParity,
    FairBoostingClassifier,
    FairHingeClassifier,
    FairLogisticClassifier,
    FairRanker,
    InputWarning,
    NeymanPearsonClassifier,
    VacuousConstraintWarning,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.model_selection import fairness_path
from fairconstrained.solvers import PLADA, SOLVERS, ThreeSEcon


@pytest.fixture(scope="module")
def data():
    return make_biased_classification(500, 4, gap=0.4, random_state=0)


def fitted(data, kind=FairLogisticClassifier, **options):
    X, y, groups = data
    return kind(**{"goal": "fairness", "max_loss_increase": 0.02, **options}).fit(
        X, y, sensitive_features=groups
    )


@pytest.mark.parametrize("kind", [FairLogisticClassifier, FairHingeClassifier])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_the_loss_allowed_is_spent_on_fairness(data, kind, constraint):
    X, y, _ = data
    best = kind(None).fit(X, y)
    fair = fitted(data, kind, constraint=constraint)
    assert fair.result_.converged
    assert_allclose(fair.objective_, 1.02 * best.objective_, rtol=2e-4)
    assert fair.gap_ == pytest.approx(fair.result_.objective, abs=2e-4)
    unfair = kind(constraint, kappa=1.0).fit(*data[:2], sensitive_features=data[2])
    assert fair.gap_ < unfair.gap_ - 0.02
    assert fair.multipliers_[-1] > 0.0, "the constraint on the loss is active"


def test_both_goals_meet(data):
    """The least loss for the gap that was reached is the loss that was allowed."""
    X, y, groups = data
    fair = fitted(data, tol=1e-5)
    accurate = FairLogisticClassifier(kappa=fair.gap_, tol=1e-5).fit(
        X, y, sensitive_features=groups
    )
    assert_allclose(accurate.objective_, fair.objective_, rtol=1e-4)
    assert_allclose(accurate.coef_, fair.coef_, atol=2e-2)


def test_a_larger_loss_allows_a_smaller_gap_down_to_zero(data):
    gaps = [fitted(data, max_loss_increase=m).gap_ for m in (0.001, 0.01, 0.05, 1.0)]
    assert gaps[0] > gaps[1] + 0.01 > gaps[2] + 0.02
    assert gaps[3] == pytest.approx(0.0, abs=2e-4)


def test_a_kappa_of_the_constraint_is_where_its_gap_is_counted_from(data):
    lenient = fitted(data, constraint=[DemographicParity(0.1), "equal_opportunity"], tol=1e-5)
    assert lenient.result_.objective < lenient.gap_ - 0.05


@pytest.mark.cases(1)
@pytest.mark.parametrize("solver", [*(n for n in SOLVERS if n in ("augmented-lagrangian", "idca"))])
def test_other_solvers_take_the_problem(data, solver):
    chosen, default = fitted(data, solver=solver), fitted(data)
    assert chosen.violation_ <= 1e-4
    assert chosen.gap_ == pytest.approx(default.gap_, abs=5e-3)


def test_warm_start_starts_where_the_last_fit_ended(data):
    X, y, groups = data
    clf = fitted(data, warm_start=True)
    cold = clf.result_.data_passes
    clf.set_params(max_loss_increase=0.021).fit(X, y, sensitive_features=groups)
    fresh = fitted(data, max_loss_increase=0.021)
    assert clf.result_.data_passes < 0.8 * cold
    assert_allclose(clf.gap_, fresh.gap_, atol=3e-4)


def test_one_group_by_chance_gives_the_unconstrained_model(data):
    X, y, _ = data
    with pytest.warns(VacuousConstraintWarning):
        fit = fitted((X, y, np.zeros(len(y))))
    assert_allclose(fit.coef_, FairLogisticClassifier(None).fit(X, y).coef_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_thresholds_begin_where_the_unconstrained_scores_need_them(data):
    """Ramps are flat far from their thresholds: a start there is a stationary point."""
    X, _, groups = data
    constraint = PartialDemographicParity(ranks=(0.7, 1.0), n_ranks=3, surrogate=Ramp(2.0))
    rare = ((X[:, 0] + 0.3 * X[:, 1]) > 1.2).astype(int)
    clf = fitted((X, rare, groups), constraint=constraint, max_loss_increase=0.05)
    fit = clf.bind(X, rare, None, groups)
    begun = fit.start().w
    plain = np.append(begun[:-3], fit.problem.start()[-3:])
    level, without = (fit.problem.at(w).constraints.max() for w in (begun, plain))
    assert level < without - 0.05
    assert clf.result_.objective < level - 0.01


X, Y, GROUPS = make_biased_classification(300, 4, gap=0.4, random_state=0)
WITH_BETA = ["3s-econ", "3s-econ-stochastic", "plada", "plada-stochastic"]


def with_beta(beta: float, **options: object) -> FairLogisticClassifier:
    model = FairLogisticClassifier(kappa=0.02, beta=beta, random_state=0, **options)
    with warnings.catch_warnings():  # fifty steps are too few, which is said
        warnings.simplefilter("ignore")
        return model.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("solver", WITH_BETA)
def test_before_polishing_two_values_give_different_coefficients(solver: str) -> None:
    alone = SOLVERS[solver](polish=False)
    first, second = (with_beta(beta, solver=alone, max_iter=50).coef_ for beta in (0.1, 5.0))
    assert np.abs(first - second).max() > 1e-3


def test_alpha_of_plada_is_fixed_where_beta_is_given() -> None:
    assert with_beta(0.5, solver="plada", max_iter=50).result_.solver.alpha == 10.0
    own = with_beta(0.5, solver=PLADA(alpha=3.0, polish=False), max_iter=50).result_.solver
    assert (own.alpha, own.beta) == (3.0, 0.5)
    assert with_beta(0.5, solver=ThreeSEcon(polish=False), max_iter=50).result_.solver.beta == 0.5


def test_a_search_over_beta_that_no_fit_uses_says_so_once() -> None:
    grid = {"kappa": [0.1, 0.2], "beta": [0.1, 10.0]}
    search = GridSearchCV(FairLogisticClassifier(), grid, cv=2, error_score="raise")
    with pytest.warns(InputWarning, match="beta=.* is not used") as record:
        search.fit(X, Y, sensitive_features=GROUPS)
    assert len([one for one in record if "beta=" in str(one.message)]) == 1


def test_a_path_without_such_a_solver_says_so() -> None:
    with pytest.warns(InputWarning, match="beta=1.0 is not used"):
        path = fairness_path(
            FairLogisticClassifier(beta=1.0), X, Y, sensitive_features=GROUPS, n_kappas=3
        )
    assert len(path) == 3


def test_fits_without_such_a_solver_say_so_once() -> None:
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    *rows, query, groups = make_biased_ranking(8, 4, random_state=0)
    with pytest.warns(InputWarning, match="beta=.* is not used") as record:
        FairRanker(beta=0.3).fit(*rows, query=query, sensitive_features=groups)
        FairBoostingClassifier(None, n_estimators=3, beta=0.3).fit(X, Y)
    assert len([one for one in record if "beta=" in str(one.message)]) == 2


def test_every_estimator_with_a_solver_has_it() -> None:
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    boosted = FairBoostingClassifier(kappa=0.1, n_estimators=5, solver="plada", beta=0.3)
    two = NeymanPearsonClassifier(solver="plada", beta=0.3)
    *rows, query, groups = make_biased_ranking(8, 4, random_state=0)
    ranker = FairRanker(solver="plada", beta=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boosted.fit(X, Y, sensitive_features=GROUPS)
        two.fit(X, Y)
        ranker.fit(*rows, query=query, sensitive_features=groups)
    for model in (boosted, two, ranker):
        solver = model.result_.replaces or model.result_.solver
        assert isinstance(solver, PLADA) and solver.beta == 0.3
