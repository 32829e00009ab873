"""Tests of fairconstrained.models."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.fuzz import formulas
from fairconstrained.models import feature_scale as scales
from fairconstrained.models.feature_scale import Moments, feature_scale
from fairconstrained.models.linear import LinearModel

N_ROWS, N_FEATURES = 30, 4
FORMATS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "from_csc": lambda X: sp.csc_array(X).tocsr(),
}
seeds = st.integers(0, 2**32 - 1)


def features(rng, n_rows=N_ROWS, n_features=N_FEATURES):
    """Return numbers that float32 holds exactly, about half of them zero."""
    X = rng.integers(-64, 64, size=(n_rows, n_features)) / 16.0
    return X * (rng.random(X.shape) < 0.5)


@pytest.fixture(params=FORMATS)
def form(request):
    return FORMATS[request.param]


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=[1, 3], ids=["one_output", "three_outputs"])
def n_outputs(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["intercept", "no_intercept"])
def fit_intercept(request):
    return request.param


@pytest.fixture(params=["units", "shift_and_scale", "scale"])
def units(request, rng):
    shift, scale = rng.normal(size=N_FEATURES), rng.uniform(0.2, 5.0, size=N_FEATURES)
    known = {"units": {}, "scale": {"scale": scale}}
    return known.get(request.param, {"shift": shift, "scale": scale})


@pytest.fixture
def X(rng):
    return features(rng)


@pytest.fixture
def model(X, form, dtype, n_outputs, fit_intercept, units):
    return LinearModel(form(X.astype(dtype)), fit_intercept, n_outputs, **units)


def formula(model, X, w):
    """Return the scores by the formula of the class's docstring."""
    X = X if model.shift is None else X - model.shift
    X = X if model.scale is None else X / model.scale
    coef = w[: X.shape[1] * model.n_outputs].reshape(model.n_outputs, -1)
    intercept = w[coef.size :] if model.fit_intercept else 0.0
    scores = X @ coef.T + intercept
    return scores[:, 0] if model.n_outputs == 1 else scores


def test_scores_are_the_formula_in_double_precision(model, X, rng):
    w = rng.normal(size=model.n_parameters)
    scores = model.scores(w)
    assert scores.dtype == float
    assert scores.shape == ((N_ROWS,) if model.n_outputs == 1 else (N_ROWS, model.n_outputs))
    assert_allclose(scores, formula(model, X, w), rtol=1e-12, atol=1e-12)
    assert model.n_rows == N_ROWS
    assert model.n_parameters == model.n_outputs * (N_FEATURES + model.fit_intercept)
    assert model.n_coefficients == model.n_outputs * N_FEATURES


def test_vjp_is_the_adjoint_of_scores(model, rng):
    zero, u = np.zeros(model.n_parameters), rng.normal(size=model.n_parameters)
    forward = model.scores(u) - model.scores(zero)
    v = rng.normal(size=forward.shape)
    back = model.vjp(zero, v)
    assert back.dtype == float
    assert back.shape == u.shape
    assert_allclose(back @ u, np.vdot(v, forward), rtol=1e-12, atol=1e-11)


def test_a_batch_is_its_rows(model, rng):
    w, chosen = rng.normal(size=model.n_parameters), np.array([3, 3, 0, 17])
    batch = model.batch(chosen)
    assert_allclose(batch.scores(w), model.scores(w)[chosen], rtol=1e-13, atol=1e-13)
    assert batch.n_rows == 4
    v = rng.normal(size=batch.scores(w).shape)
    scattered = np.zeros(model.scores(w).shape)
    np.add.at(scattered, chosen, v)
    assert_allclose(batch.vjp(w, v), model.vjp(w, scattered), rtol=1e-12, atol=1e-12)


def test_coefficients_are_in_the_units_of_X(model, X, rng):
    w = rng.normal(size=model.n_parameters)
    coef, intercept = model.coefficients(w)
    assert coef.shape == (model.n_outputs, N_FEATURES)
    assert intercept.shape == (model.n_outputs,)
    scores = (X @ coef.T + intercept).reshape(model.scores(w).shape)
    assert_allclose(scores, model.scores(w), rtol=1e-12, atol=1e-12)


def test_variables_undo_coefficients(model, rng):
    w = rng.normal(size=model.n_parameters)
    kept = w.copy()
    coef, intercept = model.coefficients(w)
    assert_allclose(model.variables(coef, intercept), w, rtol=1e-12, atol=1e-12)
    coef[:], intercept[:] = 0.0, 0.0  # they are copies
    assert_array_equal(w, kept)


def test_float32_rows_are_converted_in_blocks(monkeypatch, rng):
    monkeypatch.setattr(scales, "_BLOCK", 3 * N_FEATURES)  # ten blocks
    X = features(rng)
    single, double = LinearModel(X.astype("float32")), LinearModel(X)
    w, v = rng.normal(size=N_FEATURES + 1), rng.normal(size=N_ROWS)
    assert_allclose(single.scores(w), double.scores(w), rtol=1e-13, atol=1e-13)
    assert_allclose(single.vjp(w, v), double.vjp(w, v), rtol=1e-13, atol=1e-13)
    narrow = feature_scale(X.astype("float32"), np.ones(N_ROWS))
    wide = feature_scale(X, np.ones(N_ROWS))
    for name in ("mean", "variance", "scale"):
        assert_allclose(getattr(narrow, name), getattr(wide, name), rtol=1e-12)


@given(seed=seeds, n_outputs=st.sampled_from([1, 3]), fit_intercept=st.booleans())
def test_curvature_bounds_the_largest_eigenvalue(seed, n_outputs, fit_intercept):
    rng = np.random.default_rng(seed)
    X = features(rng) + rng.normal(size=N_FEATURES)
    units = {"shift": rng.normal(size=N_FEATURES), "scale": rng.uniform(0.5, 2.0, size=N_FEATURES)}
    model = LinearModel(X, fit_intercept, n_outputs, **units)
    weights = rng.uniform(size=N_ROWS) * (rng.random(N_ROWS) < 0.7)
    jacobian = np.array([model.scores(unit).ravel() for unit in np.eye(model.n_parameters)]).T
    repeated = np.repeat(weights, n_outputs)
    exact = np.linalg.eigvalsh(jacobian.T @ (repeated[:, None] * jacobian))[-1]
    estimate = model.curvature(weights)
    assert exact * (1.0 - 1e-6) <= estimate <= 1.15 * exact


def test_curvature_of_a_zero_function_is_zero(X):
    assert LinearModel(X).curvature(np.zeros(N_ROWS)) == 0.0
    assert LinearModel(0.0 * X, fit_intercept=False).curvature(np.ones(N_ROWS)) == 0.0


def rare(rng, n_rows=400, share=0.3, common=0.0):
    """Return columns in which a share of the rows has other values than the common one."""
    return common + rng.normal(1.0, 2.0, (n_rows, 3)) * (rng.random((n_rows, 3)) < share)


@pytest.mark.parametrize("order", ["random", "sorted", "alternating"])
def test_scales_are_those_of_the_formula(form, dtype, order, rng):
    """Of columns with two values, one, a common one, and with heavy tails."""
    n = 2000
    two_values, tails = rng.choice([-3.0, 4.5], (n, 1)), rng.lognormal(sigma=2.0, size=(n, 1))
    common = [rare(rng, n, *case) for case in product([0.01, 0.3, 0.48], [0.0, -2.5])]
    X = np.hstack([two_values, np.full((n, 1), -7.0), 0.0 * tails, tails, tails - 5.0, *common])
    by_first = np.argsort(X[:, 5] == 0.0, kind="stable")
    alternating = by_first.reshape(2, -1).T.ravel()
    rows = {"random": np.arange(n), "sorted": by_first, "alternating": alternating}[order]
    X, weight = X[rows].astype(dtype), rng.uniform(0.5, 2.0, n)
    found, expected = (
        feature_scale(form(X), weight),
        formulas.feature_scale(X.astype(float), weight),
    )
    rtol = 1e-4 if dtype == "float32" else 1e-9
    assert_allclose(found.scale, expected, rtol=rtol)
    assert_allclose(found.mean, np.average(X.astype(float), axis=0, weights=weight), rtol=rtol)


@pytest.mark.parametrize("factor", [0.999, 1.0, 1.001])
def test_a_common_value_has_more_than_half_of_the_weight(factor, form, rng):
    column, weight = np.r_[np.full(1000, 7.0), rng.normal(size=1000)], rng.uniform(0.5, 2.0, 2000)
    weight[:1000] *= factor * weight[1000:].sum() / weight[:1000].sum()
    expected = formulas.feature_scale(column[:, None], weight)
    assert_allclose(feature_scale(form(column[:, None]), weight).scale, expected, rtol=1e-9)


@given(seed=seeds, factor=st.floats(1e-3, 1e3), sign=st.sampled_from([-1.0, 1.0]))
def test_the_scale_of_a_column_scales_with_its_column(seed, factor, sign):
    rng = np.random.default_rng(seed)
    two_values, constant = rng.integers(0, 2, size=N_ROWS), np.full(N_ROWS, 3.0)
    X = np.column_stack([features(rng), two_values, constant, rare(rng, N_ROWS)])
    here = feature_scale(X, np.ones(N_ROWS))
    moved = feature_scale(sign * factor * X, np.ones(N_ROWS))
    shifted = feature_scale(X + 8.0, np.ones(N_ROWS)).scale
    assert_allclose(shifted[~here.constant], here.scale[~here.constant], rtol=1e-9)
    assert_allclose(moved.scale, factor * here.scale, rtol=1e-9)
    assert_allclose(moved.mean, sign * factor * here.mean, rtol=1e-9, atol=1e-12 * factor)
    assert_allclose(moved.variance, factor**2 * here.variance, rtol=1e-9, atol=1e-12 * factor**2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_of_many_rows_do_not_depend_on_their_order_in_memory(dtype, order):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (20_000, 7)).astype(dtype)
    X[:, 1] = 1e6
    X[:100, 2] = 1e4  # the first block is not like the others
    X[:, 3] = np.arange(20_000) % 2
    weight = rng.uniform(0.5, 2.0, 20_000)
    moments = Moments.of(np.asarray(X, order=order), weight)
    exact, mean = X.astype(float), moments.mean
    assert_allclose(mean, weight @ exact / weight.sum(), rtol=1e-12)
    expected = weight @ (exact - mean) ** 2
    assert_allclose(moments.squares, expected, rtol=1e-10, atol=1e-8 * weight.sum())
    assert_array_equal([moments.low, moments.high], [X.min(axis=0), X.max(axis=0)])
