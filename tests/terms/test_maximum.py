"""The largest output of a term, and the swapped problem in the papers' form."""

from __future__ import annotations

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification

from fairconstrained import DemographicParity
from fairconstrained.constraints import ROCParity
from fairconstrained.functions.surrogates import Sigmoid, Stretched
from fairconstrained.problem.epigraph import swapped
from fairconstrained.solvers import AugmentedLagrangian, SwitchingSubgradient, ThreeSEcon
from fairconstrained.terms.class_losses import class_losses
from fairconstrained.terms.maximum import Maximum

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


def test_swapped_problem_needs_one_term() -> None:
    with pytest.raises(ValueError, match="outputs of one term"):
        swapped(PROBLEMS["two constraints"](), 1.0)
    with pytest.raises(ValueError, match="outputs of one term"):
        swapped(PROBLEMS["unconstrained"](), 1.0)


@pytest.mark.parametrize("classes", [[0], [1, 2, 3]])
def test_classes_that_are_left_out_do_not_enter_the_sums(classes) -> None:
    """3S-Econ, equation (3): class 1 is compared with 2..K, class k >= 2 with 2..K without k."""
    labels = np.arange(40) % 4
    scores = RNG.standard_normal((40, 4))
    losses = class_losses(
        Stretched(Sigmoid()), labels, np.ones(40), classes, [0.0] * len(classes), left_out=[0]
    )

    def phi(t):
        return 1.0 / (1.0 + np.exp(t))

    for value, k in zip(losses.value(scores), classes, strict=True):
        rows = scores[labels == k]
        expected = sum(phi(rows[:, k] - rows[:, j]).mean() for j in range(1, 4) if j != k)
        assert value == pytest.approx(expected)
    v, d = RNG.standard_normal(len(classes)), RNG.standard_normal(scores.shape)
    slope = (losses.vjp(scores, v)[0] * d).sum()
    change = losses.value(scores + 1e-6 * d) - losses.value(scores - 1e-6 * d)
    assert slope == pytest.approx(v @ change / 2e-6, rel=1e-6)
    majorant = losses.convexify(scores)
    assert majorant.value(scores) == pytest.approx(losses.value(scores))
    assert np.all(majorant.value(scores + d) >= losses.value(scores + d))


def test_zero_weights_are_strictly_feasible_with_kappa_four_and_a_half() -> None:
    labels = np.arange(30) % 10
    bounds = class_losses(
        Stretched(Sigmoid()), labels, np.ones(30), range(1, 10), [4.5] * 9, left_out=[0]
    )
    assert bounds.value(np.zeros((30, 10))) == pytest.approx(np.full(9, -0.5))
