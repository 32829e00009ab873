"""Tests of fairconstrained.solvers.augmented_lagrangian: what it adds to the textbook's method."""

import numpy as np
import pytest
from _support.problems import PROBLEMS
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.solvers import AugmentedLagrangian
from fairconstrained.solvers.augmented_lagrangian import MultiplierExtrapolation


def test_the_secant_is_exact_where_constraints_fall_along_a_line() -> None:
    solution, direction = np.array([1.0, 0.0, 0.5]), np.array([1.0, 0.0, 2.0])
    fall = np.array([0.3, 0.0, 0.1])

    def constraints(t: float) -> np.ndarray:
        return -t * fall - np.array([0.0, 1.0, 0.0])  # the second one is not active

    secant = MultiplierExtrapolation()
    first, second = solution - 0.2 * direction, solution - 0.1 * direction
    assert_array_equal(secant.beyond(first, constraints(-0.2)), first)
    assert_allclose(secant.beyond(second, constraints(-0.1)), solution)
    carried = MultiplierExtrapolation.of({"secant": secant.pair}, 3)
    assert_allclose(carried.beyond(first, constraints(-0.2)), solution)
    assert MultiplierExtrapolation.of({"secant": secant.pair}, 2).pair is None


def test_the_secant_says_nothing_of_steps_that_changed_nothing() -> None:
    one = np.ones(1)
    secant = MultiplierExtrapolation((one, one))
    secant.beyond(one, 0.1 * one)
    assert_array_equal(secant.beyond(1.3 * one, 0.1 * one), 1.3 * one)
    assert secant.pair is None
    other = MultiplierExtrapolation((np.ones(2), np.ones(2)))
    falls_out = np.array([1.0, 0.0])
    assert_array_equal(other.beyond(falls_out, np.array([0.1, -0.1])), falls_out)


def test_the_secant_is_left_alone_once_it_led_far_in_vain() -> None:
    secant, multipliers, level = MultiplierExtrapolation(), 1.0, 1.0
    for _ in range(20):  # constraints that fall ever more slowly: no bound
        ahead = secant.beyond(np.array([multipliers]), np.array([level]))
        multipliers = float(ahead[0]) + 0.5 * level
        level = multipliers**-0.5
    assert not secant.trusted
    assert multipliers < 20.0
    assert not MultiplierExtrapolation.of({"trusted": False}, 1).trusted


@pytest.mark.parametrize("name", ["demographic parity", "equalized odds, 3 groups"])
def test_both_ways_lead_to_the_same_point_the_secant_in_fewer_passes(name, monkeypatch) -> None:
    ahead = AugmentedLagrangian(tol=1e-6).minimize(PROBLEMS[name]())
    monkeypatch.setattr(
        MultiplierExtrapolation, "beyond", lambda secant, multipliers, constraints: multipliers
    )
    plain = AugmentedLagrangian(tol=1e-6).minimize(PROBLEMS[name]())
    assert plain.converged
    assert ahead.converged
    assert_allclose(ahead.objective, plain.objective, rtol=1e-6)
    assert_allclose(ahead.multipliers, plain.multipliers, atol=1e-3)
    assert ahead.data_passes < plain.data_passes
