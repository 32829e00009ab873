"""Which solver's model a fit returns: a named one's where it converged, else a better one's."""

import warnings

import numpy as np
import pytest

from fairconstrained import (
    ConvergenceWarning,
    FairBoostingClassifier,
    FairHingeClassifier,
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    NeymanPearsonClassifier,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.solvers import PLADA, SOLVERS, AugmentedLagrangian, Solver, default_solver
from fairconstrained.solvers.base import Iterate

X, Y, GROUPS = make_biased_classification(400, gap=0.4, random_state=0)
NAMED = sorted({"ipc", "idca", "3s-econ", "plada", "ssg", "exact-penalty"} & set(SOLVERS))


class StopsAt(Solver):
    """A solver that ends at a given point, short of its tolerance."""

    def __init__(self, w=None, *, max_iter=1, tol=1e-4):
        self.w = w
        self.max_iter = max_iter
        self.tol = tol

    def iterate(self, problem, start):
        w = np.ones(problem.n_variables) if self.w is None else self.w
        yield Iterate(problem.at(w), None, 1)


@pytest.fixture
def fails(monkeypatch):
    """A solver by name that stops where the constraints are violated."""
    monkeypatch.setitem(SOLVERS, "stops", StopsAt)
    return "stops"


@pytest.mark.parametrize("solver", NAMED)
def test_a_named_solver_that_converged_is_kept(solver):
    X, y, groups = make_biased_classification(300, 6, gap=0.4, random_state=3)
    clf = FairLogisticClassifier("equalized_odds", 0.05, solver=solver, random_state=0)
    problem = clf.bind(X, y, None, groups).problem
    clf.fit(X, y, sensitive_features=groups)  # a warning is an error
    assert clf.result_.converged and clf.result_.replaces is None
    alone = SOLVERS[solver]().minimize(problem, random_state=0)
    np.testing.assert_array_equal(clf.result_.w, alone.w)
    path = fairness_path(clf, X, y, sensitive_features=groups, kappas=[0.1])
    assert {type(one.result_.solver) for one in path.estimators} == {type(SOLVERS[solver]())}


@pytest.mark.parametrize("enforce", ["score", "decision"])
def test_another_model_in_place_of_a_failed_solvers_is_named(fails, enforce):
    clf = FairLogisticClassifier(kappa=0.05, solver=fails, enforce=enforce)
    with pytest.warns(ConvergenceWarning, match="StopsAt did not converge.*is that of SQP"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert type(clf.result_.replaces).__name__ == "StopsAt"
    assert clf.bound_met_


def test_other_doors_name_both_solvers_once(fails):
    clf = FairLogisticClassifier(kappa=0.05, solver=fails)
    with pytest.warns(ConvergenceWarning, match="of 2 of 2 fits is that of SQP") as found:
        fairness_path(clf, X, Y, sensitive_features=GROUPS, kappas=[0.1, 0.05])
    assert [one.category for one in found].count(ConvergenceWarning) == 1
    search = FairLogisticClassifierCV(kappas=[0.1], cv=2, solver=fails, max_gap=1.0)
    with pytest.warns(ConvergenceWarning, match="did not converge") as found:
        search.fit(X, Y, sensitive_features=GROUPS)
    assert [one.category for one in found].count(ConvergenceWarning) == 2  # folds, the last fit
    with pytest.warns(ConvergenceWarning, match="StopsAt did not converge"):
        NeymanPearsonClassifier(solver=fails, kappa=0.1, surrogate="logistic").fit(X, Y)


def test_boosted_trees_name_both_solvers(fails):
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    clf = FairBoostingClassifier(kappa=0.05, solver=fails, n_estimators=10)
    with pytest.warns(ConvergenceWarning, match="StopsAt did not converge.*is that of SQP"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert type(clf.result_.replaces).__name__ == "StopsAt" and clf.bound_met_


def test_a_solver_passed_as_an_object_is_replaced_where_it_violates_the_bound():
    clf = FairLogisticClassifier(kappa=0.02, solver=StopsAt())
    with pytest.warns(ConvergenceWarning, match="StopsAt did not converge"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.result_.converged


@pytest.mark.parametrize("solver", [PLADA(max_iter=1, polish=False), PLADA.paper(max_iter=1)])
def test_the_answer_of_an_object_that_does_not_polish_is_kept(solver):
    """So that an estimator with `paper()` has the answer of the printed algorithm."""
    clf = FairLogisticClassifier("demographic_parity", 0.0, solver=solver)
    alone = solver.minimize(clf.bind(X, Y, None, GROUPS).problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(clf.result_.w, alone.w)


def test_a_fit_with_max_iter_returns_what_its_iterations_reach():
    clf = FairLogisticClassifier(kappa=0.01, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.result_.n_iter == 1 and clf.result_.replaces is None


def few_rows(seed):
    """Return few rows on which problems have several local solutions."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(20, 300)), int(rng.integers(1, 10)), int(rng.integers(2, 4))
    X, groups = rng.normal(size=(n, d)), rng.integers(0, k, n)
    X[:, 0] += rng.uniform(0, 1.5) * groups
    t = rng.uniform(0.5, 4) * X @ rng.normal(size=d) + rng.uniform(0, 1) * groups
    y = (rng.logistic(size=n) < t - np.quantile(t, rng.uniform(0.3, 0.9))).astype(int)
    return X, y, groups


def test_a_second_solver_finds_better_solutions_of_few_rows():
    X, y, groups = few_rows(37)
    clf = FairLogisticClassifier("partial_dp", 0.01)
    problem = clf.bind(X, y, None, groups).problem
    alone = default_solver(problem).minimize(problem)
    other = AugmentedLagrangian().minimize(problem)
    assert other.converged and other.objective < 0.99 * alone.objective
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.objective_ <= other.objective + 1e-9


def test_a_bound_on_the_loss_that_is_met_far_away_is_not_called_infeasible():
    """The gradient of the violation is small before."""
    rng = np.random.default_rng(22)
    n = int(rng.integers(40, 120))
    X = rng.standard_normal((n, 11))
    t = 5.0 * X @ rng.standard_normal(11)
    y = (rng.logistic(size=n) < t - np.quantile(t, 0.88)).astype(int)
    groups = (np.arange(n) % 30 == 0).astype(int)
    clf = FairLogisticClassifier("bounded_group_loss", alpha=0.1)
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.violation_ <= 1e-4


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["partial_dp", "roc_parity"])
def test_fits_keep_to_their_data_passes(constraint):
    X, y, groups = few_rows(1)
    clf = FairHingeClassifier(constraint, 0.05, alpha=1e-6)
    problem = clf.bind(X, y, None, groups).problem
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.data_passes <= 2.0 * data_pass_limit(problem, 1e-4)
