"""Tests of surrogates, losses and registered names, over all scalar functions."""

import numpy as np
import pytest
from _support import registry_of_objects as objects
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from benchmarks.fuzz import formulas
from fairconstrained.functions import losses, surrogates
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.losses import Hinge, Logistic, TruncatedLogistic
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Surrogate
from fairconstrained.utils.arguments import resolve

SPLIT = [f for f in objects.SCALAR_FUNCTIONS if f.difference_of_convex]
PARTS = [part for f in SPLIT for part in f.convex_parts()]
ALL = objects.distinct(objects.SCALAR_FUNCTIONS + PARTS)
STEP = 1e-4
GRID = np.linspace(-6.0, 6.0, 12_001)  # holds every kink of the functions above

points = st.floats(-30.0, 30.0)


def each(functions):
    return pytest.mark.parametrize("function", functions, ids=objects.label)


def derivative(function, t):
    return function.derivative(t, function.value(t))


def test_every_function_of_the_package_is_tested():
    assert not objects.missing(ScalarFunction, objects.SCALAR_FUNCTIONS)


@each(ALL)
@given(t=points)
def test_derivative_lies_between_the_one_sided_differences(function, t):
    h = 1e-6
    behind, here, ahead = function.value(np.array([t - h, t, t + h]))
    slopes = sorted([(here - behind) / h, (ahead - here) / h])
    rounding = 1e-8 * (1.0 + abs(here))
    found = derivative(function, np.array([t]))[0]
    assert slopes[0] - rounding <= found <= slopes[1] + rounding


@each([f for f in ALL if f.twice_differentiable])
@given(t=points)
def test_second_derivative_is_the_central_difference_of_the_derivative(function, t):
    h = 1e-5
    behind, ahead = derivative(function, np.array([t - h, t + h]))
    at = np.array([t])
    found = function.second_derivative(at, derivative(function, at))[0]
    assert_allclose(found, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


@each(ALL)
def test_second_differences_keep_to_the_declared_curvature(function):
    lower, upper = function.curvature
    behind, here, ahead = (function.value(GRID + shift) for shift in (-STEP, 0.0, STEP))
    second = (ahead - 2.0 * here + behind) / STEP**2
    assert lower - 1e-4 <= second.min()
    assert second.max() <= upper + 1e-4


@each(ALL)
def test_smooth_says_whether_the_derivative_jumps(function):
    behind, here, ahead = (function.value(GRID + shift) for shift in (-STEP, 0.0, STEP))
    jump = np.abs(ahead - 2.0 * here + behind).max() / STEP
    assert function.smooth == (jump < 0.01)


@each(ALL)
@given(a=points, b=points)
def test_convex_functions_lie_below_their_chords(function, a, b):
    left, middle, right = function.value(np.array([a, 0.5 * (a + b), b]))
    rounding = 1e-12 * (1.0 + abs(left) + abs(right))
    assert not function.convex or middle <= 0.5 * (left + right) + rounding


@each(SPLIT)
@given(t=points)
def test_convex_parts_are_convex_and_differ_by_the_function(function, t):
    plus, minus = function.convex_parts()
    t = np.array([t])
    assert plus.convex
    assert minus.convex
    difference = plus.value(t) - minus.value(t)
    assert_allclose(difference, function.value(t), rtol=1e-12, atol=1e-12)


@each(ALL)
def test_nothing_overflows_at_large_scores(function):
    t = np.array([-1e5, -800.0, -710.0, -40.0, 0.0, 40.0, 710.0, 800.0, 1e5])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value = function.value(t)
        slope = function.derivative(t, value)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert value.shape == slope.shape == t.shape
    assert value.dtype == slope.dtype == float


@each(objects.SURROGATES)
@given(t=points)
def test_a_surrogate_rises_from_0_to_1_and_mirrors_itself(function, t):
    here, epigraph_of, far = function.value(np.array([t, -t, 800.0]))
    assert 0.0 <= here <= 1.0
    assert_allclose(here + epigraph_of, 1.0, rtol=1e-14)
    assert far == 1.0
    assert derivative(function, np.array([t]))[0] >= 0.0


@each(objects.SURROGATES)
def test_a_surrogate_stands_for_the_indicator(function):
    t = np.array([-1.0, -1e-300, 0.0, 1e-300, 1.0])
    assert_array_equal(function.zero_one().value(t), [0.0, 0.0, 0.0, 1.0, 1.0])


@each(objects.LOSSES)
@given(t=st.floats(0.0, 800.0))
def test_a_loss_prefers_the_label_s_sign(function, t):
    right, wrong = function.value(np.array([t, -t]))
    assert 0.0 <= right <= wrong
    assert function.zero_one() is function


@given(t=points)
def test_values_are_those_of_the_formulas(t):
    t = np.array([t])
    known = [(function, formulas.loss_of) for function in objects.LOSSES]
    known += [(function, formulas.surrogate_of) for function in objects.SURROGATES]
    for function, formula in known:
        assert_allclose(function.value(t), formula(function)(t), rtol=1e-12, atol=1e-15)


def test_resolve_takes_names_and_instances():
    ramp = Ramp(3.0)
    assert resolve("surrogate", ramp, surrogates.SURROGATES, Surrogate) is ramp
    assert isinstance(resolve("surrogate", "ramp", surrogates.SURROGATES, Surrogate), Ramp)


def test_resolve_lists_the_names_there_are():
    said = r"loss='log' is unknown.*'logistic', 'truncated_logistic'"
    with pytest.raises(ValueError, match=said):
        resolve("loss", "log", losses.LOSSES, losses.Loss)
    with pytest.raises(TypeError, match=r"instance of Loss; got .*add parentheses"):
        resolve("loss", Hinge, losses.LOSSES, losses.Loss)
    with pytest.raises(TypeError, match="got 3"):
        resolve("loss", 3, losses.LOSSES, losses.Loss)


@given(t=st.floats(-700.0, 700.0))
def test_logistic_functions_keep_relative_precision_in_their_tails(t):
    t = np.array([t])
    e = np.exp(-np.abs(t))
    assert_allclose(Logistic().value(t), np.maximum(-t, 0.0) + np.log1p(e), rtol=1e-15)
    assert_allclose(Sigmoid().value(t), expit(t), rtol=4e-16)
    assert_allclose(derivative(Logistic(), t), -expit(-t), rtol=4e-16)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, "1", None, True, [1.0]])
@pytest.mark.parametrize("kind", [Sigmoid, Ramp, TruncatedLogistic])
def test_parameters_are_numbers_above_zero(kind, scale):
    table = surrogates.SURROGATES if issubclass(kind, Surrogate) else losses.LOSSES
    with pytest.raises(ValueError, match=f"{kind.__name__}: (scale|alpha) must be a finite number"):
        resolve("function", kind(scale), table, ScalarFunction)
