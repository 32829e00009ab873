"""Solvers on every constraint, on pairs of rows and on networks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from _support.networks import NETWORKS
from _support.pairs import data
from _support.problems import classification, reference
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import (
    DemographicParity,
    EqualizedOdds,
    FairHingeClassifier,
    FairLogisticClassifier,
    IncompatibleSolverError,
    make_biased_classification,
)
from fairconstrained.constraints import (
    CLASSIFIER_CONSTRAINTS,
    BoundedGroupLoss,
    GroupAUCParity,
    InterGroupAUCParity,
    IntraGroupAUCParity,
)
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import MeanLoss, PairwiseLoss, PartialAUC
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import KKT, estimate_multipliers, objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    PLADA,
    SOLVERS,
    AugmentedLagrangian,
    ExactPenalty,
    Result,
    Smoothing,
    Status,
    available_solvers,
    base,
    default_solver,
)
from fairconstrained.solvers.registry import without_kinks


def test_polishing_ends_what_first_order_steps_leave_unfinished() -> None:
    problem = classification(EqualizedOdds(0.02, surrogate=Ramp()), n_groups=3)
    rough = PLADA(max_iter=20, polish=False).minimize(problem)
    fine = PLADA(max_iter=20).minimize(problem)
    assert not rough.converged
    assert fine.converged
    assert fine.data_passes > rough.data_passes
    assert fine.trace.data_passes[-1] == pytest.approx(fine.data_passes)
    assert fine.n_iter == fine.trace.iteration[-1] > rough.n_iter


def test_the_pass_limit_of_polishing_is_not_that_of_the_run(monkeypatch) -> None:
    monkeypatch.setattr(base, "_MOST_PASSES", 3)
    problem = classification(EqualizedOdds(0.02, surrogate=Ramp()), n_groups=3)
    result = PLADA(max_iter=20).minimize(problem, max_data_passes=1000)
    assert result.data_passes < 100
    assert result.status is Status.ITERATION_LIMIT


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.ConstantDecisionWarning")
@pytest.mark.parametrize(
    ("constraint", "surrogate", "n_rows", "n_features", "most"),
    [
        ("group_auc", "quadratic", 700, 10, 50),
        ("group_auc", "quadratic", 60, 3, 150),
        ("intra_group_auc", "quadratic", 60, 3, 150),
        ("roc_parity", "sigmoid", 60, 3, 400),
        ("roc_parity", "ramp", 60, 3, 1100),
        ("weak_partial_dp", "ramp", 60, 3, 1100),
        ("equalized_odds", "ramp", 856, 10, 500),
    ],
)
def test_problems_without_an_interior_are_solved_to_the_tolerance(
    constraint: str, surrogate: str, n_rows: int, n_features: int, most: float
) -> None:
    """With 60 rows the data passes are those of two solvers, see `best_of`."""
    X, y, groups = make_biased_classification(n_rows, n_features, random_state=0)
    clf = FairLogisticClassifier(constraint, kappa=0.0, surrogate=surrogate)
    result = clf.fit(X, y, sensitive_features=groups).result_
    assert result.converged
    assert result.data_passes <= most
    constant = np.mean(y)
    entropy = -constant * np.log(constant) - (1.0 - constant) * np.log1p(-constant)
    assert result.objective <= entropy


def test_a_problem_that_is_infeasible_when_it_is_rounded_widely_is_solved() -> None:
    X, y, groups = make_biased_classification(300, 5, random_state=0)
    limit = BoundedGroupLoss(bound=0.56, loss="hinge")  # 0.555 is the least that can be met
    clf = FairLogisticClassifier(limit, solver="ipc").fit(X, y, sensitive_features=groups)
    assert clf.result_.converged


def test_tolerances_are_relative_where_the_loss_is_near_zero() -> None:
    X, _, groups = make_biased_classification(300, 5, random_state=0)
    y = (X[:, 0] + 0.3 * X[:, 1] > 0.0).astype(int)
    options = {"kappa": 0.3, "alpha": 1e-6}
    rough = FairLogisticClassifier(**options).fit(X, y, sensitive_features=groups)
    exact = FairLogisticClassifier(**options, tol=1e-9).fit(X, y, sensitive_features=groups)
    assert rough.result_.converged
    assert rough.objective_ == pytest.approx(exact.objective_, rel=2e-3)
    problem = classification(DemographicParity(0.1))
    assert objective_scale(problem.at(problem.start())) == 1.0


def relative_loss(name: str, constraint: str, surrogate: str) -> float:
    """Return by how much the objective of a named solver exceeds the best one known."""
    problem = fitted_problem(constraint, surrogate)
    solver = without_kinks(problem, SOLVERS[name]())
    limit = data_pass_limit(problem, solver.tol)
    result = solver.minimize(problem, random_state=0, max_data_passes=limit)
    assert result.violation <= 1e-3
    assert result.data_passes <= 1.1 * limit
    others = (Smoothing(), Smoothing(ExactPenalty()))
    found = [other.minimize(problem) for other in others]
    best = min(one.objective for one in found if one.violation <= 1e-3)
    return result.objective / best - 1.0


def fitted_problem(constraint: str, surrogate: str):
    X, y, groups = make_biased_classification(300, 5, random_state=0)
    kappa = {"bounded_group_loss": 0.6}.get(constraint, 0.05)
    clf = FairLogisticClassifier(constraint, kappa=kappa, surrogate=surrogate)
    return clf.bind(X, y, None, groups).problem


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_on_a_constraint(name: str) -> None:
    assert relative_loss(name, "equalized_odds", "sigmoid") <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
@pytest.mark.parametrize("constraint", CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_on_every_constraint(name: str, constraint: str, surrogate: str) -> None:
    assert relative_loss(name, constraint, surrogate) <= 0.02


X, Y, GROUPS = make_biased_classification(2000, gap=0.3, random_state=0)


def fairest(constraint, solver, increase=0.003):
    """Return the result of the least unfairness for a hinge loss near the least one."""
    clf = FairHingeClassifier(
        constraint, goal="fairness", max_loss_increase=increase, solver=solver
    )
    return clf.fit(X, Y, sensitive_features=GROUPS).result_


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds", "roc_parity"])
def test_the_first_width_leaves_a_bound_on_the_loss_feasible(constraint, monkeypatch):
    """Wide arcs raise the hinge loss above a bound that is 0.3% above the least loss."""
    result = fairest(constraint, Smoothing(AugmentedLagrangian()))
    monkeypatch.setattr(Smoothing, "_first_width", lambda self, problem, start: self.width)
    wide = fairest(constraint, Smoothing(AugmentedLagrangian()))
    assert result.converged and wide.converged
    assert result.objective == pytest.approx(wide.objective, rel=1e-3)
    assert result.data_passes < 0.7 * wide.data_passes


USABLE = {name: available_solvers(make()) for name, make in NETWORKS.items()}


RUNS = [(name, solver) for name, usable in USABLE.items() for solver in usable]


NOT_ABLE = [(name, s) for name, usable in USABLE.items() for s in SOLVERS if s not in usable]


# Local minima differ: those found from this start lie within a twelfth of one another.
SPREAD = 1.12


SHORTER = {"plada-stochastic": 1500, "ssg-stochastic": 50}


@cache
def solved(name: str, solver: str) -> Result:
    short = SOLVERS[solver]().with_options(max_iter=SHORTER.get(solver))
    return short.minimize(NETWORKS[name](), random_state=0)


@cache
def unconstrained(name: str) -> float:
    """Return the violation of the network without constraints."""
    problem = NETWORKS[name]()
    free = problem.with_constraints(())
    return problem.at(default_solver(free).minimize(free, random_state=0).w).violation


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
    with pytest.raises(IncompatibleSolverError, match="use one of the solvers"):
        SOLVERS[solver]().minimize(NETWORKS[name]())


def small_problem(*constraints, objective=None, class_sep=1.0):
    """Return the training of a linear classifier on 300 generated rows of three groups."""
    X, y, groups = make_biased_classification(
        300, 3, n_groups=3, gap=0.4, class_sep=class_sep, random_state=1
    )
    signs, weight, model = 2.0 * y - 1.0, np.ones(len(y)), LinearModel(X)
    return Problem(
        CompositeFunction(
            model, (objective or MeanLoss(Logistic())).bind(signs, weight), Leading(L2(1e-2), 3)
        ),
        tuple(CompositeFunction(model, c.bind(signs, groups, weight)) for c in constraints),
    )


SOLVED = {
    "group_auc": lambda: small_problem(GroupAUCParity(0.1)),
    "inter_group_auc": lambda: small_problem(InterGroupAUCParity(0.3)),
    "intra_group_auc": lambda: small_problem(IntraGroupAUCParity(0.2)),
    "intra_group_auc, sigmoid": lambda: small_problem(
        IntraGroupAUCParity(0.02, surrogate="sigmoid")
    ),
    "auc loss": lambda: small_problem(GroupAUCParity(0.1), objective=PairwiseLoss("squared_hinge")),
}


@pytest.mark.parametrize("problem_name", SOLVED)
def test_solvers_find_the_solution_that_scipy_finds(problem_name):
    problem = SOLVED[problem_name]()
    expected = reference(problem, starts=2)
    for name, error in (("ipc", 1e-4), ("augmented-lagrangian", 1e-4), ("ssg", 1e-2)):
        result = SOLVERS[name]().minimize(problem, random_state=0)
        assert result.violation <= 1e-4, name
        assert abs(result.objective - expected) <= error * abs(expected), name
        assert problem.at(result.w).constraints.max() > -1e-2, "no constraint is active"
        assert result.multipliers.max() > 0.0


@pytest.mark.parametrize("ranks", [(0.0, 0.4), (0.1, 0.5)])
def test_partial_auc_is_solved_by_rounding_and_by_subgradients(ranks):
    problem = small_problem(objective=PartialAUC(ranks), class_sep=2.0)
    assert not problem.smooth
    results = [SOLVERS[name]().minimize(problem) for name in ("smoothing", "ssg")]
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
            below = (
                term.value(scores) + gradient @ (other - scores) - rounded.subgradient_error(scores)
            )
            assert term.value(other)[0] >= below[0] - 1e-12
    narrow = term.smoothed(1e-6)
    assert_allclose(narrow.value(scores), term.value(scores), atol=1e-5)
