"""The largest output of a term, and the swapped problem in the papers' form."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import classification

from benchmarks.harness.swapped import Maximum, swapped
from fairconstrained import DemographicParity
from fairconstrained.constraints import ROCParity
from fairconstrained.solvers import AugmentedLagrangian, SwitchingSubgradient, ThreeSEcon

RNG = np.random.RandomState(0)


def term() -> Maximum:
    groups = np.arange(60) % 3
    roc = ROCParity(0.0, thresholds=np.linspace(-1.0, 1.0, 5))
    return Maximum(roc.bind(np.ones(60), groups, np.ones(60)))


def test_value_is_the_largest_and_the_gradient_that_of_finite_differences() -> None:
    largest, scores, d = term(), RNG.standard_normal(60), RNG.standard_normal(60)
    assert largest.value(scores) == pytest.approx([largest.term.value(scores).max()])
    slope = largest.vjp(scores, np.array([2.0]))[0] @ d
    numeric = (largest.value(scores + 1e-6 * d) - largest.value(scores - 1e-6 * d)) / 1e-6
    assert slope == pytest.approx(float(numeric[0]), rel=1e-5)
    assert slope != 0.0


def test_zero_one_version_is_the_largest_gap_of_predictions() -> None:
    largest, scores = term(), RNG.standard_normal(60)
    found = largest.zero_one().value(scores)
    assert found == pytest.approx([largest.term.zero_one().value(scores).max()])


def test_batches_estimate_the_statistics() -> None:
    largest, scores = term(), RNG.standard_normal(60)
    rows = np.tile(np.arange(60), 2)
    batch = largest.batch(rows)
    assert batch.value(scores[rows]) == pytest.approx(largest.value(scores))


def problem_with_bound():
    problem = classification(DemographicParity(0.0))
    least = AugmentedLagrangian().minimize(problem.with_constraints(())).objective
    return problem, 1.02 * least


def test_swapped_problem_has_the_solution_of_the_epigraph_problem() -> None:
    problem, bound = problem_with_bound()
    epigraph = AugmentedLagrangian(tol=1e-7).minimize(problem.epigraph(bound))
    plain = swapped(problem, bound)
    assert (plain.n_constraints, plain.n_variables) == (1, problem.n_variables)
    at = plain.at(epigraph.w[:-1])
    assert at.objective == pytest.approx(epigraph.objective, abs=1e-6)
    assert at.constraints == pytest.approx([0.0], abs=1e-6)  # active
    for solver in (SwitchingSubgradient(max_iter=3000), ThreeSEcon(beta=1.0, max_iter=2000)):
        found = solver.minimize(plain)
        assert found.violation <= 1e-3
        assert epigraph.objective - 1e-3 <= found.objective <= epigraph.objective + 5e-3
