"""Tests of fairconstrained.domains, over all of them."""

import numpy as np
import pytest
from _support.registry_of_objects import DOMAINS, N_VARIABLES, label, missing
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, domains, make_biased_classification
from fairconstrained.utils.parameter_constraints import check_parameters

# Quarters: the faces of the sets are met often, and no point is nearly but not quite on one.
quarters = {"elements": st.integers(-12, 12).map(lambda k: k / 4.0)}
vectors, tables = (arrays(float, shape, **quarters) for shape in (N_VARIABLES, (4, N_VARIABLES)))


def each(sets):
    return pytest.mark.parametrize("domain", sets, ids=label)


def contains(domain, w):
    """Say whether w is in the set, by its definition."""
    if isinstance(domain, domains.Leading):
        return contains(domain.domain, w[: domain.size])
    if isinstance(domain, domains.Blocks):
        return all(contains(domain.domain, block) for block in np.split(w, domain.n_blocks))
    if isinstance(domain, domains.Enlarged):
        return contains(domain.domain, w / domain.factor)
    if isinstance(domain, domains.Ellipsoid):
        return np.linalg.norm(w / domain.axes) <= 1.0 + 1e-12
    if isinstance(domain, domains.WeightedL1Ball):
        return (np.abs(w) / domain.factors).sum() <= domain.radius + 1e-12
    if isinstance(domain, domains.Box | domains.Intervals):
        return np.all((w >= domain.lower) & (w <= domain.upper))
    if isinstance(domain, domains.L1Ball):
        return np.abs(w).sum() <= domain.radius + 1e-12
    if isinstance(domain, domains.L2Ball):
        return np.linalg.norm(w) <= domain.radius + 1e-12
    return isinstance(domain, domains.WholeSpace)


def test_every_domain_of_the_package_is_tested():
    assert not missing(domains.Domain, DOMAINS)


@each(DOMAINS)
@given(w=vectors)
def test_projection_lies_in_the_set_and_stays(domain, w):
    kept = w.copy()
    projected = domain.project(w)
    assert_array_equal(w, kept)
    assert contains(domain, projected)
    assert_allclose(domain.project(projected), projected, atol=1e-14)
    if contains(domain, w):
        assert_allclose(projected, w, atol=1e-14)


@each(DOMAINS)
@given(w=vectors, elsewhere=vectors)
def test_projection_is_the_nearest_point(domain, w, elsewhere):
    """The variational inequality: the set lies behind the plane that w - Pw is normal to."""
    projected, other = domain.project(w), domain.project(elsewhere)
    assert (w - projected) @ (other - projected) <= 1e-12


@pytest.mark.parametrize("size", [1e17, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("ball", [domains.L1Ball(1.0), domains.L2Ball(1.0)], ids=label)
def test_projections_of_huge_points_are_exact(ball, size):
    """The nearest point of a far one: on the boundary, in the direction of the largest entries."""
    alone = ball.project(np.array([0.5, -size, 0.0]))
    assert_allclose(alone, [0.0, -1.0, 0.0], atol=1e-15)
    both = ball.project(np.array([size, -size, 1.0]))
    expected = 0.5 if isinstance(ball, domains.L1Ball) else np.sqrt(0.5)
    assert_allclose(both, [expected, -expected, 0.0], rtol=1e-15, atol=1e-15)


def test_projection_of_very_distant_points_depends_on_their_direction_only():
    ellipsoid = domains.Ellipsoid(np.array([1e-3, 2.0, 30.0]))
    direction = np.array([3.0, -1.0, 2.0])
    expected = ellipsoid.project(1e40 * direction)
    for size in (1e100, 1e200, 1e300):
        assert_allclose(ellipsoid.project(size * direction), expected, rtol=1e-12)
    assert_allclose(np.linalg.norm(expected / ellipsoid.axes), 1.0)


STRETCHABLE = [
    domains.Box(-1.0, 2.0),
    domains.L1Ball(1.5),
    domains.L2Ball(1.5),
    domains.Blocks(domains.L2Ball(1.0), 2),
    domains.WholeSpace(),
]


@each(
    [*STRETCHABLE, domains.Enlarged(domains.L1Ball(0.5), 2.0), domains.Ellipsoid(np.full(4, 2.0))]
)
@given(w=vectors, factor=st.sampled_from([1e-6, 0.5, 3.0, 1e6]))
def test_a_set_times_a_number_is_projected_on_at_its_own_size(domain, w, factor):
    larger = domain.stretched(np.full(N_VARIABLES, factor))
    assert_allclose(larger.project(factor * w), factor * domain.project(w), rtol=1e-9, atol=1e-18)
    point, gradient = domain.project(w), w[::-1]
    residual = larger.normal_cone_residual(factor * point, gradient)
    assert_allclose(residual, domain.normal_cone_residual(point, gradient), atol=1e-9)


@each(STRETCHABLE)
@given(w=vectors, elsewhere=vectors, powers=st.tuples(*[st.integers(-6, 6)] * (N_VARIABLES // 2)))
@example(np.array([0, 0, 0.25, 0.25]), np.array([0, 0, 0, 1.5]), (-1, 6))
def test_a_set_in_other_units_is_projected_on_exactly(domain, w, elsewhere, powers):
    """Its points are those of the set in other units, and the nearest one is found."""
    factors = 10.0 ** np.tile(powers, 2)
    other = domain.stretched(factors)
    projected, inside = other.project(w), factors * domain.project(elsewhere)
    assert_allclose(domain.project(projected / factors), projected / factors, rtol=1e-9, atol=1e-12)
    move, far = w - projected, inside - projected
    rounding = 1e-9 * np.abs(far) + 1e-12 * np.abs(inside) + 1e-14 * np.abs(w)
    stored = 1e-15 * np.abs(w)  # a coordinate of the projection is rounded to a multiple of this
    assert move @ far <= np.abs(move) @ rounding + np.abs(far) @ stored
    assert_allclose(other.normal_cone_residual(projected, -move), 0.0, atol=1e-8)


def test_only_a_known_set_has_other_units_for_every_coordinate():
    domain = domains.Enlarged(domains.L2Ball(1.0), 2.0)
    assert domain.stretched(np.array([1.0, 2.0])) is None
    assert domains.Blocks(domains.L2Ball(1.0), 2).stretched(np.array([1.0, 2.0])) is None


BALLS = domains.L1Ball | domains.L2Ball | domains.Ellipsoid | domains.WeightedL1Ball


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@each([one for one in DOMAINS if isinstance(one, BALLS)])
def test_non_finite_points_have_no_projection(domain, value):
    w = np.array([value, 1.0, 2.0, 0.0])
    assert np.isnan(domain.project(w)).all()
    assert np.isnan(domain.normal_cone_residual(w, np.ones(4))).all()
    assert np.isnan(domain.normal_cone_residual(np.ones(4), w)).all()


RADII = (0.0, -1.0, np.nan, np.inf, "1", None, True)
WRONG = [
    *((domains.L1Ball(radius), "'radius' .* of L1Ball") for radius in RADII),
    *((domains.L2Ball(radius), "'radius' .* of L2Ball") for radius in RADII),
    *((domains.Box(*ends), "of Box must be") for ends in ((0.0, "1"), (None, 1.0), (0.0, True))),
    *((domains.Box(*ends), "Box") for ends in ((1.0, -1.0), (np.nan, 1.0), (np.inf, np.inf))),
    *((domains.Ellipsoid(axes), "'axes' .* sequence of numbers") for axes in ([1.0, 0.0], [[1.0]])),
    (domains.WeightedL1Ball(0.0, [1.0]), "'radius' parameter of WeightedL1Ball must be"),
    (domains.WeightedL1Ball(1.0, [np.nan]), "'factors' parameter of WeightedL1Ball must be"),
    (domains.Intervals([0.0], [-1.0]), "Intervals: lower and upper must"),
    (domains.Intervals([0.0, 0.0], [1.0]), "Intervals: lower and upper must"),
    (domains.Intervals([np.inf], [np.inf]), "Intervals: lower and upper must"),
    (domains.Intervals("a", None), "'lower' parameter of Intervals must be a sequence of numbers"),
    (domains.Enlarged(3, 1.0), "'domain' parameter of Enlarged must be an instance of"),
    (domains.Enlarged(domains.L1Ball(-1.0), 1.0), "'radius' parameter of domain=L1Ball must be"),
    (domains.Enlarged(domains.L1Ball(), -1.0), "'factor' parameter of Enlarged must be"),
    (domains.Blocks(domains.L1Ball(), 0), "'n_blocks' parameter of Blocks must be"),
    (domains.Blocks(None, 1), "'domain' parameter of Blocks must be an instance of"),
    (domains.Leading(domains.L1Ball(), 1.5), "'size' parameter of Leading must be"),
    (domains.Leading("a", 1), "'domain' parameter of Leading must be an instance of"),
]


def test_parameters():
    for domain, message in WRONG:
        with pytest.raises((ValueError, TypeError), match=message):
            check_parameters(domain)


OF_ANOTHER_NUMBER = [
    domains.Ellipsoid([1.0, 2.0]),
    domains.WeightedL1Ball(1.0, [1.0, 2.0]),
    domains.Intervals([-1.0, -1.0], [1.0, 1.0]),
]


@pytest.mark.parametrize("domain", OF_ANOTHER_NUMBER, ids=label)
def test_domains_of_another_number_of_coefficients(domain):
    X, y, groups = make_biased_classification(40, 3, random_state=0)
    with pytest.raises(ValueError, match="domain is a set of 2 variables, but the model has 3"):
        FairLogisticClassifier(domain=domain).fit(X, y, sensitive_features=groups)


def test_coefficients_stay_in_intervals_of_their_own():
    X, y, groups = make_biased_classification(200, 3, random_state=0)
    free = FairLogisticClassifier().fit(X, y, sensitive_features=groups).coef_[0]
    upper = np.array([0.5 * abs(free[0]), np.inf, np.inf])
    domain = domains.Intervals(list(-upper), list(upper))
    coef = FairLogisticClassifier(domain=domain).fit(X, y, sensitive_features=groups).coef_[0]
    assert abs(coef[0]) == pytest.approx(upper[0])


@each(DOMAINS)
@given(target=vectors)
def test_normal_cone_residual_vanishes_at_a_minimiser(domain, target):
    """P(c) minimises |w - c|^2 / 2 over the set, and its gradient there is P(c) - c."""
    w = domain.project(target)
    assert_allclose(domain.normal_cone_residual(w, w - target), 0.0, atol=1e-10)


@each(DOMAINS)
@given(target=vectors, gradient=vectors)
def test_normal_cone_residual_is_the_projected_direction(domain, target, gradient):
    """By Moreau: -gradient less its part in the normal cone is the way a projected step goes."""
    w, step = domain.project(target), 1e-6
    kept = gradient.copy()
    direction = (domain.project(w - step * gradient) - w) / step
    assert_allclose(-domain.normal_cone_residual(w, gradient), direction, atol=1e-4)
    assert_array_equal(gradient, kept)


@each(DOMAINS)
@given(target=vectors, gradient=vectors, elsewhere=vectors)
def test_residual_minus_gradient_is_in_the_normal_cone(domain, target, gradient, elsewhere):
    w, other = domain.project(target), domain.project(elsewhere)
    normal = domain.normal_cone_residual(w, gradient) - gradient
    assert (other - w) @ normal <= 1e-9 * (1.0 + np.linalg.norm(normal))


@each(DOMAINS)
@given(target=vectors)
def test_whole_space_says_that_nothing_is_excluded(domain, target):
    assert not domain.whole_space or domain.project(target) is target


def test_leading_of_the_whole_space_is_the_whole_space():
    assert domains.Leading(domains.WholeSpace(), 2).whole_space
    assert not domains.Leading(domains.Box(), 2).whole_space


def test_the_bounds_of_a_box_may_be_infinite():
    w, gradient = np.array([0.0, 0.0, 5.0]), np.array([1.0, -1.0, 2.0])
    one_sided = domains.Box(0.0, np.inf).normal_cone_residual(w, gradient)
    assert_array_equal(one_sided, [0.0, -1.0, 2.0])
    assert_array_equal(domains.Box(-np.inf, np.inf).normal_cone_residual(w, gradient), gradient)


SIZES = st.sampled_from([1e-200, 1e-3, 1.0, 1e6, 1e200, np.nan])


@each(DOMAINS)
@given(points=tables, gradients=tables, sizes=st.tuples(*[SIZES] * 4))
def test_several_points_are_projected_as_each_alone(domain, points, gradients, sizes):
    scaled = points * np.array(sizes)[:, None]
    projected = np.stack([domain.project(point) for point in scaled])
    assert_allclose(domain.project(scaled), projected, rtol=1e-12, atol=1e-300)
    for where in (points, projected):
        both = zip(where, gradients, strict=True)
        expected = [domain.normal_cone_residual(*each) for each in both]
        assert_allclose(domain.normal_cone_residual(where, gradients), expected, atol=1e-12)
