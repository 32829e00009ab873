"""Every solver on every constraint ends feasible, near the best and within a limit on passes."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import classification

from fairconstrained import (
    DemographicParity,
    EqualizedOdds,
    FairHingeClassifier,
    FairLogisticClassifier,
    make_biased_classification,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.problem.kkt import objective_scale
from fairconstrained.solvers import (
    PLADA,
    SOLVERS,
    AugmentedLagrangian,
    ExactPenalty,
    Smoothing,
    Status,
    base,
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
