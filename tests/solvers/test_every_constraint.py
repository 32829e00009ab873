"""Solvers on every constraint, on pairs of rows and on networks."""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from _support.labelled_rows import data
from _support.problems import classification
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc
from fairconstrained import solvers
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import PartialAUC
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import KKT, estimate_multipliers, objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import without_kinks


def test_polishing_ends_what_first_order_steps_leave_unfinished() -> None:
    problem = classification(fc.EqualizedOdds(0.02, surrogate=fc.functions.Ramp()), n_groups=3)
    rough = solvers.PLADA(max_iter=20, polish=False).minimize(problem)
    fine = solvers.PLADA(max_iter=20).minimize(problem)
    assert fine.converged and not rough.converged
    assert fine.data_passes > rough.data_passes
    assert fine.trace.data_passes[-1] == pytest.approx(fine.data_passes)
    assert fine.n_iter == fine.trace.iteration[-1] > rough.n_iter


def test_the_pass_limit_of_polishing_is_not_that_of_the_run(monkeypatch) -> None:
    monkeypatch.setattr(solvers.base, "_MOST_PASSES", 3)
    problem = classification(fc.EqualizedOdds(0.02, surrogate=fc.functions.Ramp()), n_groups=3)
    result = solvers.PLADA(max_iter=20).minimize(problem, max_data_passes=1000)
    assert result.data_passes < 100
    assert result.status is solvers.Status.ITERATION_LIMIT


PROBLEMS_WITHOUT = [
    ("roc_parity", "sigmoid", 60, 3, 150, 1.0),
    ("group_auc", "quadratic", 700, 10, 50, 1.0),
    ("group_auc", "quadratic", 60, 3, 50, 1.0),
    ("intra_group_auc", "quadratic", 60, 3, 50, 1.0),
    ("roc_parity", "ramp", 60, 3, 900, 1.0),
    ("weak_partial_dp", "ramp", 60, 3, 700, 0.85),
    ("equalized_odds", "ramp", 856, 10, 700, 0.87),
]


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.ConstantDecisionWarning")
@pytest.mark.parametrize(
    ("constraint", "surrogate", "n_rows", "n_features", "most", "share"), PROBLEMS_WITHOUT
)
def test_problems_without_an_interior_are_solved_to_the_tolerance(
    constraint: str, surrogate: str, n_rows: int, n_features: int, most: float, share: float
) -> None:
    """With 60 rows, or ramps, the data passes are those of two solvers, see `best_of`."""
    X, y, groups = fc.make_biased_classification(n_rows, n_features, random_state=0)
    clf = fc.FairLogisticClassifier(constraint, kappa=0.0, surrogate=surrogate)
    result = clf.fit(X, y, sensitive_features=groups).result_
    assert result.converged
    assert result.data_passes <= most
    entropy = -np.mean(np.log(np.where(y == 1, np.mean(y), 1.0 - np.mean(y))))
    assert result.objective <= share * entropy


def test_tolerances_are_relative_where_the_loss_is_near_zero() -> None:
    X, _, groups = fc.make_biased_classification(300, 5, random_state=0)
    y = (X[:, 0] + 0.3 * X[:, 1] > 0.0).astype(int)
    options = {"kappa": 0.3, "alpha": 1e-6}
    rough = fc.FairLogisticClassifier(**options).fit(X, y, sensitive_features=groups)
    exact = fc.FairLogisticClassifier(**options, tol=1e-9).fit(X, y, sensitive_features=groups)
    assert rough.result_.converged
    assert rough.objective_ == pytest.approx(exact.objective_, rel=2e-3)
    problem = classification(fc.DemographicParity(0.1))
    assert objective_scale(problem.at(problem.start())) == 1.0
    rare = (X[:, 0] > np.quantile(X[:, 0], 0.95)).astype(int)
    strict = fc.FairLogisticClassifier("roc_parity", kappa=0.0).bind(X, rare, None, groups).problem
    assert solvers.SQP().minimize(strict).converged


def relative_loss(name: str, constraint: str, surrogate: str) -> float:
    """Return by how much the objective of a named solver exceeds the best one known."""
    problem = fitted_problem(constraint, surrogate)
    solver = without_kinks(problem, solvers.SOLVERS[name]())
    limit = data_pass_limit(problem, solver.tol)
    result = solver.minimize(problem, random_state=0, max_data_passes=limit)
    assert result.violation <= 1e-3
    assert result.data_passes <= 1.1 * limit
    found = [solvers.Smoothing(each).minimize(problem) for each in (None, solvers.ExactPenalty())]
    best = min(one.objective for one in found if one.violation <= 1e-3)
    return result.objective / best - 1.0


def fitted_problem(constraint: str, surrogate: str):
    X, y, groups = fc.make_biased_classification(300, 5, random_state=0)
    kappa = {"bounded_group_loss": 0.6}.get(constraint, 0.05)
    clf = fc.FairLogisticClassifier(constraint, kappa=kappa, surrogate=surrogate)
    return clf.bind(X, y, None, groups).problem


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", solvers.SOLVERS)
def test_every_solver_on_a_constraint(name: str) -> None:
    assert relative_loss(name, "equalized_odds", "sigmoid") <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
@pytest.mark.parametrize("constraint", fc.constraints.CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("name", solvers.SOLVERS)
def test_every_solver_on_every_constraint(name: str, constraint: str, surrogate: str) -> None:
    assert relative_loss(name, constraint, surrogate) <= 0.02


def network_problem(loss: str, surrogate: str | fc.functions.Ramp) -> Problem:
    """Return the training of a network on labels that no linear score separates."""
    X, y, groups = fc.make_biased_classification(300, 3, gap=0.4, class_sep=1.0, random_state=0)
    y = (y > 0) ^ (np.abs(X[:, 2]) > 1.2)
    layers = {"hidden_layer_sizes": (4,), "activation": "tanh", "alpha": 1e-3, "loss": loss}
    network = fc.FairNetworkClassifier(kappa=0.05, surrogate=surrogate, **layers)
    return network.bind(X, y, None, groups).problem


NETWORKS = {
    "smooth": lambda: network_problem("logistic", "sigmoid"),
    "hinge and ramp": lambda: network_problem("hinge", fc.functions.Ramp()),
}
if find_spec("torch") is None:  # the extra "torch"
    NETWORKS.clear()
USABLE = {name: solvers.available_solvers(make()) for name, make in NETWORKS.items()}


RUNS = [(name, solver) for name, usable in USABLE.items() for solver in usable]


NOT_ABLE = [(name, s) for name in USABLE for s in solvers.SOLVERS if s not in USABLE[name]]


# Local minima differ: those found from this start lie within a twelfth of one another.
SPREAD = 1.12


SHORTER = {"plada-stochastic": 1500, "ssg-stochastic": 50}


@cache
def solved(name: str, solver: str) -> solvers.Result:
    short = solvers.SOLVERS[solver]().with_options(max_iter=SHORTER.get(solver))
    return short.minimize(NETWORKS[name](), random_state=0)


@cache
def unconstrained(name: str) -> float:
    """Return the violation of the network without constraints."""
    problem = NETWORKS[name]()
    free = problem.with_constraints(())
    return problem.at(solvers.default_solver(free).minimize(free, random_state=0).w).violation


@pytest.mark.parametrize(("name", "solver"), RUNS)
def test_solvers_that_can_train_a_fair_network(name: str, solver: str) -> None:
    """The residual is recomputed from the point and its multipliers by formula."""
    problem, result = NETWORKS[name](), solved(name, solver)
    start, at = problem.at(problem.start(0)), problem.at(result.w)
    best = min(solved(name, other).objective for other in ("smoothing", "ssg"))
    assert unconstrained(name) > 0.05  # the constraint is active
    assert result.violation <= 1e-4
    assert result.objective <= 0.9 * start.objective
    assert result.objective <= SPREAD * best
    assert (result.objective, result.violation) == pytest.approx((at.objective, at.violation))
    assert result.multipliers.shape == (problem.n_constraints,)
    assert result.multipliers.min() >= 0.0
    assert np.isfinite(result.kkt_residual)
    if problem.smooth:
        found = KKT.of(at, result.multipliers)
        assert result.kkt_residual == pytest.approx(found.residual, rel=1e-6, abs=1e-12)
        assert KKT.of(at, estimate_multipliers(at)).stationarity <= 0.05


@pytest.mark.parametrize(("name", "solver"), NOT_ABLE)
def test_the_others_refuse(name: str, solver: str) -> None:
    with pytest.raises(fc.IncompatibleSolverError, match="use one of the solvers"):
        solvers.SOLVERS[solver]().minimize(NETWORKS[name]())


def test_partial_auc_is_solved_by_rounding_and_by_subgradients():
    X, y, _ = fc.make_biased_classification(300, 3, class_sep=2.0, random_state=1)
    auc = PartialAUC((0.0, 0.4)).bind(2.0 * y - 1.0, np.ones(len(y)))
    problem = Problem(CompositeFunction(LinearModel(X), auc, fc.penalties.L2(1e-2)))
    assert not problem.smooth
    results = [solvers.SOLVERS[name]().minimize(problem) for name in ("smoothing", "ssg")]
    assert results[0].converged
    assert results[0].objective <= results[1].objective * (1.0 + 1e-4)
    assert results[1].objective <= results[0].objective * (1.0 + 2e-2)
    assert results[0].objective < problem.at(problem.start()).objective - 0.05


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("ranks", [(0.0, 0.4), (0.2, 0.7)])
def test_rounded_sums_have_their_gradient_and_subgradient_error(loss, ranks, rng):
    y, _, weight, _ = data(11)
    term, scores = PartialAUC(ranks, loss=loss).bind(y, weight), rng.normal(size=len(y))
    rounded, one, h = term.smoothed(0.3), np.ones(1), 1e-6
    assert rounded.smooth
    steps = h * np.eye(len(y))
    change = [(rounded.value(scores + e) - rounded.value(scores - e))[0] for e in steps]
    gradient = rounded.vjp(scores, one)[0]
    assert_allclose(gradient, np.array(change) / (2.0 * h), rtol=1e-6, atol=1e-8)
    assert_array_equal(term.subgradient_error(scores), 0.0)
    if term.convex:  # then the gradient is an epsilon-subgradient of the term itself
        for other in scores + rng.normal(size=(100, len(y))) * rng.choice([0.01, 0.3, 2.0]):
            near = term.value(scores) + gradient @ (other - scores)
            below = near - rounded.subgradient_error(scores)
            assert term.value(other)[0] >= below[0] - 1e-12
    narrow = term.smoothed(1e-6)
    assert_allclose(narrow.value(scores), term.value(scores), atol=1e-5)
