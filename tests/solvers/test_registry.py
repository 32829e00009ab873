"""Solvers that are chosen by name: what they are given where a problem has kinks."""

from __future__ import annotations

import pytest
from _support.problems import PROBLEMS, classification

from fairconstrained import DemographicParity, FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.solvers import IPC, SOLVERS, Smoothing
from fairconstrained.solvers.registry import without_kinks

NEED_SMOOTHNESS = ("ipc", "augmented-lagrangian", "exact-penalty", "ipp-ssg", "ipp-conex")


def test_a_solver_that_can_solve_a_problem_is_left_as_it_is() -> None:
    solver = IPC()
    assert without_kinks(PROBLEMS["demographic parity"](), solver) is solver


@pytest.mark.parametrize("name", NEED_SMOOTHNESS)
def test_a_solver_that_needs_smoothness_is_given_rounded_kinks(name: str) -> None:
    problem = classification(DemographicParity(0.05, surrogate=Ramp()))
    solver = SOLVERS[name](tol=1e-3)
    rounding = without_kinks(problem, solver)
    assert isinstance(rounding, Smoothing)
    assert rounding.solver is solver
    assert rounding.tol == 1e-3


@pytest.mark.filterwarnings("ignore:kappa=0.5 is not used")
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
@pytest.mark.parametrize("constraint", CLASSIFIER_CONSTRAINTS)
def test_ipc_chosen_by_name_refuses_no_constraint(constraint: str, surrogate: str) -> None:
    X, y, groups = make_biased_classification(120, 3, random_state=0)
    clf = FairLogisticClassifier(constraint, kappa=0.5, surrogate=surrogate, solver="ipc", tol=0.1)
    assert clf.fit(X, y, sensitive_features=groups).violation_ <= 0.1
