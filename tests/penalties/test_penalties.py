"""Tests of fairconstrained.penalties, over all of them."""

import numpy as np
import pytest
from _support.registry_of_objects import N_VARIABLES, PENALTIES, distinct, label, missing
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from benchmarks.fuzz import formulas
from fairconstrained.penalties import L1, L2, SCAD, Leading, Penalty, Proximity, Sum, Zero

ALL = distinct(PENALTIES + [penalty.convexify(np.ones(N_VARIABLES)) for penalty in PENALTIES])
vectors = arrays(float, N_VARIABLES, elements=st.floats(-4.0, 4.0))
smooth = st.floats(0.01, 4.0) | st.floats(-4.0, -0.01)  # where every penalty has a gradient
away_from_zero = arrays(float, N_VARIABLES, elements=smooth)


def each(penalties):
    return pytest.mark.parametrize("penalty", penalties, ids=label)


def slopes(penalty, w, h=1e-6):
    """Return the one-sided differences of each coordinate, behind and ahead."""
    here = penalty.value(w)
    steps = h * np.eye(len(w))
    behind = np.array([(here - penalty.value(w - step)) / h for step in steps])
    ahead = np.array([(penalty.value(w + step) - here) / h for step in steps])
    return behind, ahead


def assert_convex_on_the_segment(value, v, w):
    left, middle, right = value(v), value(0.5 * (v + w)), value(w)
    assert middle <= 0.5 * (left + right) + 1e-12 * (1.0 + abs(left) + abs(right))


def test_every_penalty_of_the_package_is_tested():
    assert not missing(Penalty, PENALTIES)


@each(ALL)
@given(w=vectors)
def test_gradient_lies_between_the_one_sided_differences(penalty, w):
    behind, ahead = slopes(penalty, w)
    gradient = penalty.gradient(w)
    assert gradient.shape == w.shape
    # where the second derivative jumps both can miss to one side: by its size, at most 1, times h
    assert np.all(np.minimum(behind, ahead) - 1e-6 <= gradient)
    assert np.all(gradient <= np.maximum(behind, ahead) + 1e-6)


@each(ALL)
def test_smooth_says_whether_there_is_a_kink_at_zero(penalty):
    behind, ahead = slopes(penalty, np.zeros(N_VARIABLES))
    assert penalty.smooth == (np.abs(ahead - behind).max() < 1e-4)


@each(ALL)
@given(v=vectors, w=vectors)
def test_the_penalty_less_its_modulus_is_convex(penalty, v, w):
    modulus = penalty.modulus
    assert_convex_on_the_segment(lambda x: penalty.value(x) - 0.5 * modulus * (x @ x), v, w)
    assert not penalty.convex or modulus >= 0.0


@each(PENALTIES)
@given(v=vectors, w=away_from_zero)
def test_convexify_majorises_and_touches(penalty, v, w):
    majorant = penalty.convexify(w)
    assert majorant.convex
    assert_convex_on_the_segment(majorant.value, v, w)
    assert majorant.value(v) >= penalty.value(v) - 1e-12
    assert_allclose(majorant.value(w), penalty.value(w), rtol=1e-12, atol=1e-12)
    assert_allclose(majorant.gradient(w), penalty.gradient(w), atol=1e-12)


@given(w=vectors)
def test_formulas(w):
    center = np.arange(4.0)
    expected = {one: formulas.penalty(one, w) for one in (L1(0.3), L2(0.3), SCAD(0.3))}
    expected |= {
        Zero(): 0.0,
        Proximity(center, 0.3): 0.15 * ((w - center) ** 2).sum(),
        Sum([L1(0.3), L2(0.3)]): 0.3 * np.abs(w).sum() + 0.15 * (w**2).sum(),
        Leading(L2(0.3), 3): 0.15 * (w[:3] ** 2).sum(),
    }
    for penalty, value in expected.items():
        assert_allclose(penalty.value(w), value, rtol=1e-12, atol=1e-12)


@each(PENALTIES)
@given(w=vectors)
def test_the_sum_operator_adds_values_and_gradients(penalty, w):
    for other in (L1(0.2), Zero(), Sum([L2(0.1), Zero()])):
        both = penalty + other
        assert_allclose(both.value(w), penalty.value(w) + other.value(w), rtol=1e-14)
        assert_allclose(both.gradient(w), penalty.gradient(w) + other.gradient(w), rtol=1e-14)
    assert penalty + Zero() is penalty or isinstance(penalty, Zero)


@each(ALL)
@given(v=vectors, w=vectors)
def test_a_quadratic_penalty_has_the_second_derivatives_of_its_expansion(penalty, v, w):
    if penalty.quadratic:
        step, hessian = v - w, penalty.second_derivatives(N_VARIABLES)
        expected = penalty.value(w) + penalty.gradient(w) @ step + 0.5 * step @ (hessian * step)
        assert_allclose(penalty.value(v), expected, rtol=1e-12, atol=1e-12)


@each(ALL)
@given(w=vectors, width=st.floats(0.1, 1.0))
def test_rounding_is_smooth_near_and_has_an_approximate_subgradient(penalty, w, width):
    rounded, v = penalty.smoothed(width), np.array([0.3, -2.0, 0.0, 1.1])
    assert rounded.smooth
    assert 0.0 <= rounded.value(w) - penalty.value(w) + 1e-12 <= N_VARIABLES * width + 1e-12
    weak = penalty.modulus / 2.0 * (v - w) @ (v - w)
    below = rounded.value(w) + rounded.gradient(w) @ (v - w) + min(weak, 0.0)
    assert rounded.value(v) >= below - rounded.subgradient_error(w) - 1e-12
