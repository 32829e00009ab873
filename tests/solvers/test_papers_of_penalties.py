"""Penalty and multiplier methods: `paper()` against transcriptions, and their parts."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from _support.papers import EXACT, STEPS, jacobian, points, same, unconstrained, worst
from _support.problems import PROBLEMS, classification, rate_between, reference
from scipy.optimize import minimize

import fairconstrained as fc
from fairconstrained import DemographicParity, solvers
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import LagrangianDescentAscent, Regularization
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.first_order import Rows
from fairconstrained.solvers.multiplier_models import DeepNetwork, MultiplierModel, Network
from fairconstrained.solvers.primal_dual import constraint_features


@pytest.mark.parametrize("nu", [1e-5, 1e-2])
def test_3s_econ_d_is_equation_2_with_all_rows(nu) -> None:
    """Of the paper's widths, the larger one gives penalties between 0 and beta."""
    problem = classification(DemographicParity(0.0), loss=fc.functions.Hinge())
    x, expected, used = problem.start(), [], []
    for _ in range(STEPS):
        at = problem.at(x)
        weights = np.clip(at.constraints / nu, 0.0, 1.0)
        used.append(weights.max())
        x = x - 0.01 * at.gradient(10.0 * weights)
        expected.append(x)
    width = {} if nu == 1e-5 else {"nu": nu}
    solver = solvers.ThreeSEcon.paper(max_iter=STEPS, check_every=1, **width)
    assert same(points(solver, problem), expected)
    assert np.count_nonzero(used) >= 40
    assert nu == 1e-5 or np.less(used, 1.0).sum() >= 40


def on_two_parts() -> Problem:
    """Return a problem with a constraint on 100 rows of its own, in groups of unlike scores."""
    problem = PROBLEMS["demographic parity"]()
    (part,) = problem.constraints
    model = LinearModel(problem.objective.model.X[:100])
    groups = (model.X[:, 0] > np.median(model.X[:, 0])).astype(int)
    term = DemographicParity(0.0).bind(np.ones(100), groups, np.ones(100))
    return problem.with_constraints([replace(part, model=model, term=term)])


@pytest.mark.parametrize("nu", [1e-5, 1e-2])
def test_3s_econ_s_samples_by_the_rows_of_the_constraints(nu) -> None:
    """S2 = q = ceil(sqrt(100)) = 10 although the loss has 400 rows; u follows small batches."""
    problem = on_two_parts()
    sampler = Rows(problem, Start(problem.start(), random_state=np.random.RandomState(0)), 10)
    x, before, u, expected, used, changed = problem.start(), None, None, [], 0, 0
    for k in range(STEPS):
        if k % 10 == 0:
            u = known = problem.at(x).constraints
        else:
            at = sampler.draw(x).at
            u = u + at.constraints - at.problem.at(before).constraints
        at, alpha = sampler.draw(x).at, 0.01 / np.ceil(np.sqrt(k // 10 + 1))
        weights = np.clip(u / nu, 0.0, 1.0)
        before, x = x, x - alpha * at.gradient(10.0 * weights)
        expected.append(x)
        used += weights.max() > 0.0
        changed += np.abs(weights - np.clip(known / nu, 0.0, 1.0)).max() > 0.01
    for steps in (10, 20, 50):  # a measurement evaluates all rows, so it is made at periods only
        solver = solvers.ThreeSEcon.paper(stochastic=True, max_iter=steps, check_every=steps, nu=nu)
        assert points(solver, problem)[-1] == pytest.approx(expected[steps - 1], **EXACT)
    assert used >= 40
    assert changed >= 20


def by_scipy(problem, w, multipliers, eta):
    """Return the minimiser of PLADA's (9) by a method of its own."""
    slope = problem.at(w).gradient()

    def value(v):
        return slope @ v + multipliers @ problem.at(v).constraints + (v - w) @ (v - w) / (2 * eta)

    def gradient(v):
        return slope + problem.at(v).gradient(multipliers, objective=0.0) + (v - w) / eta

    v = minimize(value, w, jac=gradient, method="BFGS", options={"gtol": 1e-13}).x
    for _ in range(100):  # the stationarity equation as a fixed point, for the last digits
        before, v = v, w - eta * (slope + problem.at(v).gradient(multipliers, objective=0.0))
        if np.array_equal(v, before):
            break
    return v


def algorithm_1_of_plada(problem, w, eta, *, exact):
    """Return the points of algorithm 1, and the multipliers, slacks and centres of every step."""
    alpha, beta, gamma_0, tau = 10.0, 0.1, 0.1, 0.1
    rho = alpha / (1.0 + alpha * beta)
    visited, used = [], []
    u, lam = np.maximum(-problem.at(w).constraints, 0.0), np.zeros(problem.n_constraints)
    mu = lam
    for k in range(STEPS):
        if exact:
            w = by_scipy(problem, w, lam, eta)
        else:
            w = problem.domain.project(w - eta * problem.at(w).gradient(lam))
        u = np.maximum(u - tau * lam, 0.0)
        gamma = min(gamma_0, rho * 1000.0 / (k + 1) / ((lam - mu) @ (lam - mu) + 1.0))
        mu = mu + gamma / rho * (lam - mu)
        lam = mu + rho * (problem.at(w).constraints + u)
        visited.append(w)
        used.append((lam.max(), u.max(), np.abs(mu).max()))
    return visited, np.array(used)


OF_PLADA = [
    ("two constraints", 1e-3, True),
    ("demographic parity", 0.1, True),
    ("two constraints", 0.3, False),
    ("L2 ball", 0.3, False),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("name", "eta", "exact"), OF_PLADA)
def test_plada_is_algorithm_1(name, eta, exact) -> None:
    problem = PROBLEMS[name]()
    first = unconstrained(problem) if exact else problem.start()
    expected, used = algorithm_1_of_plada(problem, first, eta, exact=exact)
    setting = {"eta": eta, "max_iter": STEPS, "check_every": 1}
    assert same(points(solvers.PLADA.paper(**setting, exact=exact), problem, first), expected)
    other = points(solvers.PLADA.paper(**setting, exact=not exact), problem, first)
    assert np.abs(other[-1] - expected[-1]).max() > 1e-7
    if exact:
        assert (used > 1e-2).sum(axis=0).min() >= 40


def test_presets_of_plada_are_those_of_table_2() -> None:
    columns = ("eta", "tau", "alpha", "beta", "gamma_0", "exact", "batch_size")
    settings = {
        preset: tuple(getattr(preset(), name) for name in columns)
        for preset in (solvers.PLADA.paper, solvers.PLADA.network)
    }
    assert settings[solvers.PLADA.paper] == (1e-3, 0.1, 10.0, 0.1, 0.1, True, None)
    assert settings[solvers.PLADA.network] == (0.1, 0.01, 10.0, 0.5, 0.1, False, None)


OF_CONEX = [(name, 20.0) for name in ("zero gap", "equalized odds, 3 groups", "infeasible start")]
OF_CONEX.append(("zero gap", 0.2))


@pytest.mark.parametrize(("name", "c1"), OF_CONEX)
def test_conex_is_algorithm_1_of_boob_deng_and_lan(name, c1) -> None:
    problem = PROBLEMS[name]()
    first = before = w = problem.start() + 1.0
    lam, last = np.zeros(problem.n_constraints), problem.at(w).constraints
    total, expected, used = np.zeros_like(w), [], 0
    for t in range(STEPS):
        ell = problem.at(before).constraints + jacobian(problem, before) @ (w - before)
        s = (1.0 + t / (t + 1)) * ell - t / (t + 1) * last
        lam, last = np.maximum(lam + (t + 1) / 0.01 * s, 0.0), ell
        before, w = w, w - problem.at(w).gradient(lam) / (c1 * (t + 1))
        total = total + (t + 1) * w
        expected.append(total / ((t + 1) * (t + 2) / 2))
        used += lam.max() > 1.0
    setting = {"c1": c1, "max_iter": STEPS, "check_every": 1}
    found = points(solvers.ConEx.paper(**setting), problem, first)
    assert same(found[1::2], expected)  # each after the last point
    assert used >= 10


def test_regularization_is_subgradient_descent_on_the_sum() -> None:
    problem = PROBLEMS["zero gap"]()
    w = problem.start()
    for _ in range(STEPS):
        level, slope = worst(problem, w)
        w = w - 1e-3 * (problem.at(w).gradient() + 2.0 * (level > 0.0) * slope)
    found = points(solvers.Regularization.paper(strength=2.0, max_iter=STEPS), problem)
    assert found[-1] == pytest.approx(w, **EXACT)


def test_multiplier_model_of_the_paper_draws_100_constraints_with_their_features() -> None:
    problem = classification(fc.constraints.ROCParity(0.1, thresholds=np.linspace(-2.0, 2.0, 60)))
    m, w = problem.n_constraints, problem.start() + 0.5
    features = np.random.RandomState(1).standard_normal((m, 3))
    solver = solvers.LagrangianDescentAscent.paper(features, max_iter=1, check_every=1)
    (found,) = points(solver, problem, w)
    rng = np.random.RandomState(0)
    sizes = (3, 100, 100, 100, 1)
    model = DeepNetwork(sizes[1:-1])
    theta = model.start(features, np.zeros(m), rng)
    assert len(theta) == 2 * sum(a * b + b for a, b in pairwise(sizes))  # Adagrad's sums as well
    drawn = rng.choice(m, 100, replace=False)
    lam = np.zeros(m)
    lam[drawn] = m / 100 * model.multipliers(theta, features)[drawn]
    assert m == 120
    assert np.count_nonzero(lam) == 100
    assert found == pytest.approx(w - 0.1 * problem.at(w).gradient(lam), **EXACT)


def test_multiplier_model_is_descent_and_adagrad_on_sampled_constraints() -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    m, features = problem.n_constraints, constraint_features(PROBLEMS["equalized odds, 3 groups"]())
    model, rng = DeepNetwork((7, 6, 5)), np.random.RandomState(0)
    theta = model.start(features, np.zeros(m), rng)
    w, expected = problem.start(), []
    sizes = [features.shape[1], 7, 6, 5, 1]
    ends = np.cumsum([a * b + b for a, b in pairwise(sizes)])
    weights, sums = np.split(theta, 2)

    def price(weights, z):  # of complex weights as well
        for k, part in enumerate(np.split(weights, ends[:-1])):
            z = z @ part[: -sizes[k + 1]].reshape(sizes[k], -1) + part[-sizes[k + 1] :]
            z = np.where(z.real > 0.0, z, 0.0) if k < 3 else np.log(1.0 + np.exp(z))
        return z[:, 0]

    for _ in range(STEPS):
        drawn = rng.choice(m, 4, replace=False)
        lam = np.zeros(m)
        lam[drawn] = price(weights, features[drawn]) / 4
        w = w - 0.1 * problem.at(w).gradient(lam)
        rates = problem.at(w).decided.constraints[drawn]
        slope = np.array(  # by complex steps
            [
                (rates * price(weights + 1e-30j * e, features[drawn])).mean().imag / 1e-30
                for e in np.eye(len(weights))
            ]
        )
        sums = sums + slope**2
        weights = weights + 0.1 * slope / (np.sqrt(sums) + 1e-10)
        expected.append(w)
    solver = solvers.LagrangianDescentAscent.paper(
        multipliers=DeepNetwork((7, 6, 5)), n_sampled=4, max_iter=STEPS, check_every=1
    )
    assert same(points(solver, problem), expected)


DEEP = DeepNetwork((5, 4, 3))


def test_plain_steps_are_those_of_the_formula() -> None:
    problem = PROBLEMS["two constraints"]()
    steps = {"max_iter": 20, "check_every": 20, "polish": False}
    solver = LagrangianDescentAscent(0.3, 0.5, extrapolation=0.0, **steps)
    result = solver.minimize(problem)
    w, multipliers = problem.start(), np.zeros(problem.n_constraints)
    for _ in range(20):
        w = w - 0.3 * problem.at(w).gradient(multipliers)
        multipliers = np.maximum(multipliers + 0.5 * problem.at(w).constraints, 0.0)
    assert result.w == pytest.approx(w, abs=1e-12)
    assert result.multipliers == pytest.approx(multipliers, abs=1e-12)


def test_extrapolation_ends_the_circles_of_plain_descent_ascent() -> None:
    """Minimise x subject to 1 - x <= 0: the Lagrangian is bilinear, its saddle point (1, 1)."""
    slope = CompositeFunction(slope=np.ones(1))
    falling = CompositeFunction(slope=-np.ones(1), level=1.0)
    problem = Problem(slope, (falling,), fc.domains.Box(-5.0, 5.0), n_variables=1)
    solver = LagrangianDescentAscent(0.5, 0.5, extrapolation=1.0, max_iter=500, polish=False)
    extrapolated = solver.minimize(problem)
    plain = solver.set_params(extrapolation=0.0).minimize(problem)
    assert extrapolated.converged
    assert extrapolated.w == pytest.approx([1.0], abs=1e-4)
    assert extrapolated.multipliers == pytest.approx([1.0], abs=1e-4)
    assert not plain.converged


@pytest.mark.parametrize("model", [Network(hidden=5), DEEP], ids=repr)
def test_gradient_of_a_model_is_that_of_finite_differences(model: MultiplierModel) -> None:
    features = np.random.RandomState(1).standard_normal((4, 3))
    rng = np.random.RandomState(0)
    theta = model.start(features, rng.standard_normal(len(features)), rng)
    v = np.array([1.0, -2.0, 0.5, 3.0])
    v[model.multipliers(theta, features) == 0.0] = 0.0
    numeric = np.array(
        [
            v @ (model.multipliers(theta + d, features) - model.multipliers(theta - d, features))
            / 2e-6
            for d in 1e-6 * np.eye(len(theta))
        ]
    )  # fmt: skip
    assert model.gradient(theta, features, v) == pytest.approx(numeric, abs=1e-5)


def test_features_of_parity_are_the_groups_added_and_subtracted() -> None:
    features = constraint_features(classification(DemographicParity(0.1), n_groups=3))
    assert features.shape == (6, 6)
    assert np.array_equal(features.sum(axis=1), np.full(6, 2.0))
    assert np.array_equal(features[0], [1, 0, 0, 0, 1, 0]), "rate(0) - rate(1)"


def test_strength_above_the_multipliers_solves_the_constrained_problem() -> None:
    problem = PROBLEMS["demographic parity"]()  # its multiplier is 0.985
    weak, strong = (Regularization(s, max_iter=1000).minimize(problem) for s in (0.5, 2.0))
    assert strong.violation <= 1e-4
    assert strong.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert weak.violation > 1e-2
    assert weak.objective < strong.objective


def test_strength_is_raised_until_the_constraints_hold() -> None:
    problem = rate_between(0.8, 0.9)  # its multiplier is 2.1
    raised = Regularization(max_iter=1500).minimize(problem)
    assert raised.violation <= 1e-4
    assert raised.objective == pytest.approx(reference(problem, starts=1), rel=1e-3)
    assert Regularization(1.0, max_iter=1000).minimize(problem).violation > 1e-2
