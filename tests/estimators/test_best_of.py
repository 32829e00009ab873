"""Which solver's model a fit returns: a named one's where it converged, else a better one's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

import fairconstrained as fc
from fairconstrained import solvers
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.solvers.base import Iterate, Start

X, Y, GROUPS = fc.make_biased_classification(400, gap=0.4, random_state=0)
NAMED = sorted({"ipc", "idca", "3s-econ", "plada", "ssg", "exact-penalty"} & set(solvers.SOLVERS))


class StopsAt(solvers.Solver):
    """A solver that ends at a given point, short of its tolerance."""

    def __init__(self, w=None, *, max_iter=1, tol=1e-4):
        self.w, self.max_iter, self.tol = w, max_iter, tol

    def iterate(self, problem, start):
        w = np.ones(problem.n_variables) if self.w is None else self.w
        yield Iterate(problem.at(w), None, 1)


@pytest.fixture
def fails(monkeypatch):
    """A solver by name that stops where the constraints are violated."""
    monkeypatch.setitem(solvers.SOLVERS, "stops", StopsAt)
    return "stops"


@pytest.mark.parametrize("solver", NAMED)
def test_a_named_solver_that_converged_is_kept(solver):
    X, y, groups = fc.make_biased_classification(300, 6, gap=0.4, random_state=3)
    clf = fc.FairLogisticClassifier("equalized_odds", 0.05, solver=solver, random_state=0)
    clf.fit(X, y, sensitive_features=groups)  # a warning is an error
    assert clf.result_.converged and clf.result_.replaces is None
    alone = solvers.SOLVERS[solver]().minimize(clf.bind(X, y, None, groups).problem, random_state=0)
    np.testing.assert_array_equal(clf.result_.w, alone.w)
    path = fc.fairness_path(clf, X, y, sensitive_features=groups, kappas=[0.1])
    assert {type(one.result_.solver) for one in path.estimators} == {type(alone.solver)}


@pytest.mark.parametrize("enforce", ["score", "decision"])
def test_another_model_in_place_of_a_failed_solvers_is_named(fails, enforce):
    clf = fc.FairLogisticClassifier(kappa=0.05, solver=fails, enforce=enforce)
    with pytest.warns(fc.ConvergenceWarning, match=r"StopsAt\(\) did not converge.*is that of SQP"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert type(clf.result_.replaces).__name__ == "StopsAt"
    assert clf.bound_met_


@pytest.mark.parametrize(("rule", "most"), [("demographic_parity", 1), ("partial_dp", 2)])
def test_where_all_runs_are_stuck_the_answer_is_the_best_constant(monkeypatch, rule, most):
    def stuck(solver, problem, start):
        at = problem.at(np.ones(problem.n_variables))
        yield Iterate(at, None, 1, status=solvers.Status.INFEASIBLE)

    for kind in (solvers.SQP, solvers.AugmentedLagrangian):
        monkeypatch.setattr(kind, "iterate", stuck)
    clf, y = fc.FairLogisticClassifier(rule, kappa=0.02), np.minimum(Y + (X[:, 0] > 1.0), most)
    with pytest.warns(fc.ConvergenceWarning, match="stalled"):
        clf.fit(X, y, sensitive_features=GROUPS)
    assert clf.violation_ == 0.0 and not clf.coef_.any()
    shares = np.tile(np.bincount(y) / len(y), (len(y), 1))
    assert clf.objective_ == pytest.approx(log_loss(y, shares), rel=0.01)


def test_a_fit_with_max_iter_returns_what_its_iterations_reach():
    clf = fc.FairLogisticClassifier(kappa=0.01, max_iter=1)
    with pytest.warns(fc.ConvergenceWarning, match="iteration limit"):
        clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.result_.n_iter == 1 and clf.result_.replaces is None


def few_rows(seed, size=None, rare=None):
    """Return few rows, or few of a group, on which problems have several local solutions."""
    rng = np.random.default_rng(seed)
    n = size or int(rng.integers(20, 300))
    d, k = int(rng.integers(1, 10)), int(rng.integers(2, 4))
    X, groups = rng.normal(size=(n, d)), rng.integers(0, k, n)
    groups = 1 * (rng.random(n) < rare) if rare else groups
    X[:, 0] += rng.uniform(0, 1.5) * groups
    t = rng.uniform(0.5, 4) * X @ rng.normal(size=d) + rng.uniform(0, 1) * groups
    return X, 1 * (rng.logistic(size=n) < t - np.quantile(t, rng.uniform(0.3, 0.9))), groups


PARTIAL = fc.FairLogisticClassifier("partial_dp", 0.01)
HINGE = fc.FairHingeClassifier(fc.DisparateImpact(ratio=0.95, surrogate="ramp"), max_iter=900)
CASES = (PARTIAL, 37), (PARTIAL, 37, 1500, 0.1), (PARTIAL, 0, 3000, 0.01), (HINGE, 37)


@pytest.mark.parametrize("case", CASES)
def test_a_second_solver_finds_better_solutions_of_few_rows(case):
    clf, (X, y, groups) = case[0], few_rows(*case[1:])
    problem = clf.bind(X, y, None, groups).problem
    alone = solvers.default_solver(problem).minimize(problem)
    others = [solvers.Smoothing(solvers.SQP()), solvers.AugmentedLagrangian()]
    other = others[problem.smooth].minimize(problem)
    assert other.converged and other.objective < 0.99 * alone.objective
    clf.fit(X, y, sensitive_features=groups)
    assert clf.result_.converged and clf.objective_ <= other.objective + 1e-9


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["partial_dp", "roc_parity"])
def test_fits_keep_to_their_data_passes(constraint):
    X, y, groups = few_rows(1)
    clf = fc.FairHingeClassifier(constraint, 0.05, alpha=1e-6)
    problem = clf.bind(X, y, None, groups).problem
    result = clf.fit(X, y, sensitive_features=groups).result_
    assert result.data_passes <= 2.0 * data_pass_limit(problem, 1e-4)


def flat_rows():
    """Return rows on which solvers that start from 0 end at equal rates within the range."""
    options = {"gap": 0.3, "class_sep": 4.0, "flip_y": 0.05, "random_state": 0}
    X, y, groups = fc.make_biased_classification(1000, **options)
    rng = np.random.default_rng(0)
    redrawn = (groups == 0) & (rng.random(1000) < 0.35)
    X[:, -1] += 1.5 * groups
    return X, np.where(redrawn, rng.integers(0, 2, 1000), y), groups


def weakly_fitted(solver, surrogate):
    X, y, groups = flat_rows()
    given = {"kappa": 0.05, "surrogate": surrogate, "solver": solver, "random_state": 0}
    clf = fc.FairLogisticClassifier("weak_partial_dp", **given)
    return clf.fit(X, y, sensitive_features=groups)


def best_of_many_starts(surrogate):
    """Return the least objective from constants."""
    X, y, groups = flat_rows()
    clf = fc.FairLogisticClassifier("weak_partial_dp", kappa=0.05, surrogate=surrogate)
    fit = clf.bind(X, y, None, groups)
    smooth = fit.problem.smoothed(1e-3)
    starts = [Start(level * fit.model.offset()) for level in np.linspace(-2.0, 2.0, 5)]
    results = [solvers.AugmentedLagrangian().minimize(smooth, warm=start) for start in starts]
    return min(result.objective for result in results if result.converged)


@pytest.mark.cases(1)
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
def test_weak_partial_parity_ends_at_the_best_of_many_starts(surrogate):
    best = best_of_many_starts(surrogate)
    for solver in ("idca", "auto"):
        classifier = weakly_fitted(solver, surrogate)
        assert classifier.result_.converged and classifier.objective_ <= 1.001 * best, solver
    # a solver that is passed starts where it says
    inside = weakly_fitted(solvers.Smoothing(solvers.IPC()), surrogate)
    assert inside.result_.converged and inside.objective_ > 1.01 * best
    assert classifier.result_.data_passes > inside.result_.data_passes  # both runs are counted


def test_predictive_parity_does_not_end_at_the_nearest_solution():
    X, y, groups = flat_rows()
    names = "augmented-lagrangian", "auto", "sqp", "3s-econ"
    fits = [fc.FairLogisticClassifier("predictive_parity", solver=name) for name in names]
    objectives = [clf.fit(X, y, sensitive_features=groups).objective_ for clf in fits]
    assert max(objectives) <= 1.001 * objectives[0]


def test_nothing_else_is_tried_where_the_bound_proves_the_optimum():
    X, y, groups = fc.make_biased_classification(200, 10, gap=0.12, random_state=0)
    rows = {"X": X, "y": y, "sensitive_features": groups}
    kind = fc.FairLogisticClassifier
    for kappa, proved in ((0.1, True), (0.01, False)):
        auto, alone = (kind(kappa=kappa, solver=name).fit(**rows) for name in ("auto", "sqp"))
        assert (auto.optimality_gap_ < 1e-3) == proved
        assert (auto.result_.data_passes == alone.result_.data_passes) == proved


N_ROWS = 140_000


@pytest.fixture(scope="module")
def many_rows():
    """Rows of two large groups and a rare one."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b", "rare"], N_ROWS, p=[0.6, 0.3995, 0.0005])
    X = rng.standard_normal((N_ROWS, 6), dtype=np.float32)
    X[:, 0] += groups == "a"
    y = X[:, :3].sum(axis=1) + rng.logistic(size=N_ROWS) > 0.5
    return X, y, groups


def sampled_fit(many_rows, constraint, **options):
    X, y, groups = many_rows
    clf = fc.FairLogisticClassifier(constraint, 0.02, **options)
    return clf.fit(X, y, sensitive_features=None if constraint is None else groups)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_a_fit_from_a_sample_has_the_solution_of_all_rows_in_fewer_passes(many_rows, constraint):
    clf = sampled_fit(many_rows, constraint)
    direct = sampled_fit(many_rows, constraint, solver="sqp")
    assert direct.result_.solver.__class__ is clf.result_.solver.__class__
    assert clf.result_.converged and clf.multipliers_.max() > 1e-2
    assert clf.violation_ <= clf.tol and clf.kkt_residual_ <= clf.tol
    assert_allclose(clf.objective_, direct.objective_, atol=1e-4)
    assert_allclose(clf.coef_, direct.coef_, atol=5e-3)
    assert clf.result_.data_passes < 0.7 * direct.result_.data_passes
