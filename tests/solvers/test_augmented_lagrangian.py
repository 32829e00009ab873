"""Tests of the multiplier extrapolation of the augmented Lagrangian method."""

import numpy as np
import pytest
from _support.problems import PROBLEMS
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.solvers import AugmentedLagrangian
from fairconstrained.solvers.augmented_lagrangian import MultiplierExtrapolation, SecantPair


def test_extrapolation_is_exact_if_constraints_are_linear_in_the_multipliers() -> None:
    solution, direction = np.array([1.0, 0.0, 0.5]), np.array([1.0, 0.0, 2.0])
    fall = np.array([0.3, 0.0, 0.1])

    def constraints(t: float) -> np.ndarray:
        return -t * fall - np.array([0.0, 1.0, 0.0])  # the second one is not active

    secant = MultiplierExtrapolation()
    first, second = solution - 0.2 * direction, solution - 0.1 * direction
    assert_array_equal(secant.extrapolate(first, constraints(-0.2)), first)
    assert_allclose(secant.extrapolate(second, constraints(-0.1)), solution)
    carried = MultiplierExtrapolation.for_constraints(3, secant.pair, reliable=True)
    assert_allclose(carried.extrapolate(first, constraints(-0.2)), solution)
    assert MultiplierExtrapolation.for_constraints(2, secant.pair, reliable=True).pair is None


def test_steps_that_do_not_reduce_the_constraints_give_no_secant_pair() -> None:
    one = np.ones(1)
    secant = MultiplierExtrapolation(SecantPair(one, one))
    secant.extrapolate(one, 0.1 * one)
    assert_array_equal(secant.extrapolate(1.3 * one, 0.1 * one), 1.3 * one)
    assert secant.pair is None
    other = MultiplierExtrapolation(SecantPair(np.ones(2), np.ones(2)))
    falls_out = np.array([1.0, 0.0])
    assert_array_equal(other.extrapolate(falls_out, np.array([0.1, -0.1])), falls_out)


def test_extrapolation_ends_after_a_long_step_that_fails() -> None:
    secant, multipliers, level = MultiplierExtrapolation(), 1.0, 1.0
    for _ in range(20):  # the constraints decrease too slowly for bounded multipliers
        ahead = secant.extrapolate(np.array([multipliers]), np.array([level]))
        multipliers = float(ahead[0]) + 0.5 * level
        level = multipliers**-0.5
    assert not secant.reliable
    assert multipliers < 20.0
    assert not MultiplierExtrapolation.for_constraints(1, None, reliable=False).reliable


@pytest.mark.parametrize("name", ["demographic parity", "equalized odds, 3 groups"])
def test_extrapolation_needs_fewer_passes_to_the_same_solution(name, monkeypatch) -> None:
    ahead = AugmentedLagrangian(tol=1e-6).minimize(PROBLEMS[name]())
    monkeypatch.setattr(
        MultiplierExtrapolation, "extrapolate", lambda secant, multipliers, constraints: multipliers
    )
    plain = AugmentedLagrangian(tol=1e-6).minimize(PROBLEMS[name]())
    assert plain.converged
    assert ahead.converged
    assert_allclose(ahead.objective, plain.objective, rtol=1e-6)
    assert_allclose(ahead.multipliers, plain.multipliers, atol=1e-3)
    assert ahead.data_passes < plain.data_passes
