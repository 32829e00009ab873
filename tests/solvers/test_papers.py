"""`paper()` of every solver against a transcription of the printed algorithm, over 50 steps.

The exact penalty method of Cartis, Gould and Toint is only cited by IPC: its algorithm is printed
in none of the four papers, and neither are the tuned parameters. Its steps are compared with
solutions of its trust region subproblem by SciPy. Mini-batch SSG is a baseline without a printed
algorithm as well, and has no `paper()`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from _support.problems import NON_SMOOTH, PROBLEMS, classification, toy_of_ipc
from scipy.optimize import LinearConstraint, minimize

from fairconstrained import DemographicParity
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import (
    IDCA,
    IPC,
    PLADA,
    ConEx,
    ExactPenalty,
    LagrangianDescentAscent,
    OnlineStochastic,
    Regularization,
    Solver,
    SwitchingSubgradient,
    ThreeSEcon,
)
from fairconstrained.solvers._tools.sampling import StratifiedSampler
from fairconstrained.solvers.multiplier_models import DeepNetwork, constraint_features
from fairconstrained.solvers.start import Start

STEPS = 50
EXACT = {"rel": 0.0, "abs": 1e-10}


def points(solver: Solver, problem: Problem, w0=None, seed: int = 0) -> list[np.ndarray]:
    """Return the points that a solver offers."""
    start = Start(w=problem.start() if w0 is None else w0, random_state=np.random.RandomState(seed))
    return [one.at.w for one in solver.iterate(problem, start)]


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Return whether two runs have the same points to 1e-10, and have moved."""
    assert len(found) == len(expected) == STEPS
    assert np.linalg.norm(expected[-1] - expected[0]) > 1e-6
    return max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True)) <= 1e-10


def worst(problem: Problem, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the largest constraint and its gradient."""
    at = problem.at(w)
    unit = np.eye(problem.n_constraints)[at.constraints.argmax()]
    return float(at.constraints.max()), at.gradient(unit, objective=0.0)


def algorithm_2_of_ipc(problem, center, rho_hat, epsilon, K):
    """IPC, algorithm 2: the weighted average of the feasible points of one subproblem."""
    z, total, weight = center, np.zeros_like(center), 0.0
    for k in range(K):
        level, slope = worst(problem, z)
        gamma = 2.0 / ((rho_hat - 0.5 * rho_hat) * (k + 2))
        if level + 0.5 * rho_hat * (z - center) @ (z - center) <= epsilon**2:
            total, weight = total + (k + 1) * z, weight + k + 1
            slope = problem.at(z).gradient()
        z = problem.domain.project(z - gamma * (slope + rho_hat * (z - center)))
    return total / weight if weight else z


@pytest.mark.parametrize(
    ("name", "rho"), [("toy", 20.0), ("box", None), ("demographic parity", 1.0)]
)
def test_ipc_is_algorithm_1_with_algorithm_2(name, rho) -> None:
    """Steps are 2 / (mu (k + 2)): with a small rho^, rounding errors grow in the whole space."""
    problem = toy_of_ipc() if name == "toy" else PROBLEMS[name]()
    first = np.array([0.1, 0.5]) if name == "toy" else problem.start()
    solver = IPC.paper(steps=40, max_iter=STEPS, **({} if rho is None else {"rho": rho}))
    assert solver.rho == (rho or 10**-2.5)
    expected, w = [], first
    for _ in range(STEPS):
        w = algorithm_2_of_ipc(problem, w, solver.rho, 1e-2, 40)
        expected.append(w)
    assert same(points(solver, problem, first), expected)


def test_ipc_says_that_its_subproblems_need_not_be_convex() -> None:
    assert toy_of_ipc().modulus < -(10**-2.5)
    result = IPC.paper(steps=40, max_iter=2).minimize(toy_of_ipc(), np.array([0.0, 0.5]))
    assert "not convex with this rho^" in result.message
    large = IPC.paper(rho=20.0, steps=40, max_iter=2)
    assert "not convex" not in large.minimize(toy_of_ipc(), np.array([0.0, 0.5])).message


@pytest.mark.parametrize("name", ["demographic parity", "two constraints", "box"])
def test_online_stochastic_is_algorithm_3(name) -> None:
    problem = PROBLEMS[name]()
    V, alpha = STEPS**0.5, STEPS
    z, Q = problem.start(), np.zeros(problem.n_constraints)
    visited, expected = [], []
    for _ in range(STEPS):
        visited.append(z)
        expected.append(np.mean(visited, axis=0))
        at = problem.at(z)
        units = np.eye(problem.n_constraints)
        zeta = np.array([at.gradient(unit, objective=0.0) for unit in units])
        new = problem.domain.project(z - (V * at.gradient() + Q @ zeta) / (2.0 * alpha))
        Q = np.maximum(Q + at.constraints + zeta @ (new - z), 0.0)
        z = new
    solver = OnlineStochastic.paper(max_iter=STEPS, check_every=1)
    assert same(points(solver, problem), expected)
    assert Q.max() > 0.0


def test_online_stochastic_is_algorithm_3_on_batches() -> None:
    problem = PROBLEMS["demographic parity"]()
    sampler = StratifiedSampler(problem, 60, np.random.RandomState(0))
    z, Q, total, expected = problem.start(), np.zeros(2), np.zeros(problem.n_variables), []
    drawn = sampler.draw()
    for k in range(STEPS):
        total = total + z
        expected.append(total / (k + 1))
        at = drawn.at(z)
        zeta = np.array([at.gradient(unit, objective=0.0) for unit in np.eye(2)])
        new = z - (STEPS**0.5 * at.gradient() + Q @ zeta) / (2.0 * STEPS)
        Q, z = np.maximum(Q + at.constraints + zeta @ (new - z), 0.0), new
        drawn = sampler.draw()
    solver = OnlineStochastic.paper(max_iter=STEPS, check_every=1, batch_size=60)
    assert same(points(solver, problem), expected)


def test_3s_econ_d_is_equation_2_with_all_rows() -> None:
    problem = NON_SMOOTH["hinge"]()
    x, expected = problem.start(), []
    for _ in range(STEPS):
        at = problem.at(x)
        weights = np.clip(at.constraints / 1e-5, 0.0, 1.0)
        x = x - 0.01 * at.gradient(10.0 * weights)
        expected.append(x)
    assert same(points(ThreeSEcon.paper(max_iter=STEPS, check_every=1), problem), expected)


def on_two_parts() -> Problem:
    """Return a problem whose constraint is on 100 rows of its own."""
    problem = PROBLEMS["demographic parity"]()
    (part,) = problem.constraints
    rows = np.arange(100)
    groups = (rows % 2).astype(int)
    term = DemographicParity(0.05).bind(np.ones(100), groups, np.ones(100))
    model = LinearModel(problem.objective.model.X[:100])
    return problem.with_constraints([replace(part, model=model, term=term)])


def test_3s_econ_s_samples_by_the_rows_of_the_constraints() -> None:
    """S2 = q = ceil(sqrt(100)) = 10 although the loss has 400 rows; u follows small batches."""
    problem = on_two_parts()
    sampler = StratifiedSampler(problem, 10, np.random.RandomState(0))
    x, before, u, expected = problem.start(), None, None, []
    for k in range(STEPS):
        if k % 10 == 0:
            u = problem.at(x).constraints
        else:
            batch = sampler.draw()
            u = u + batch.at(x).constraints - batch.at(before).constraints
        at, alpha = sampler.draw().at(x), 0.01 / np.ceil(np.sqrt(k // 10 + 1))
        before, x = x, x - alpha * at.gradient(10.0 * np.clip(u / 1e-5, 0.0, 1.0))
        expected.append(x)
    for steps in (10, 20, 50):  # a measurement evaluates all rows, so it is made at periods only
        solver = ThreeSEcon.paper(stochastic=True, max_iter=steps, check_every=steps)
        assert points(solver, problem)[-1] == pytest.approx(expected[steps - 1], **EXACT)


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


@pytest.mark.parametrize(("name", "eta"), [("two constraints", 1e-3), ("demographic parity", 0.1)])
def test_plada_is_algorithm_1_with_the_exact_proximal_step(name, eta) -> None:
    problem = PROBLEMS[name]()
    alpha, beta, gamma_0, tau = 10.0, 0.1, 0.1, 0.1
    rho = alpha / (1.0 + alpha * beta)
    w, expected, lam = problem.start(), [], np.zeros(problem.n_constraints)
    u, mu = np.maximum(-problem.at(w).constraints, 0.0), lam
    for k in range(STEPS):
        w = by_scipy(problem, w, lam, eta)
        u = np.maximum(u - tau * lam, 0.0)
        gamma = min(gamma_0, rho * 1000.0 / (k + 1) / ((lam - mu) @ (lam - mu) + 1.0))
        mu = mu + gamma / rho * (lam - mu)
        lam = mu + rho * (problem.at(w).constraints + u)
        expected.append(w)
    solver = PLADA.paper(eta=eta, max_iter=STEPS, check_every=1)
    assert same(points(solver, problem), expected)
    linearized = points(PLADA.paper(eta=eta, exact=False, max_iter=STEPS, check_every=1), problem)
    assert np.abs(linearized[-1] - expected[-1]).max() > 1e-11


def test_presets_of_plada_are_those_of_table_2() -> None:
    columns = ("eta", "tau", "alpha", "beta", "gamma_0", "exact", "batch_size")
    settings = {
        preset: tuple(getattr(preset(), name) for name in columns)
        for preset in (PLADA.paper, PLADA.network)
    }
    assert settings[PLADA.paper] == (1e-3, 0.1, 10.0, 0.1, 0.1, True, None)
    assert settings[PLADA.network] == (0.1, 0.01, 10.0, 0.5, 0.1, True, None)


def by_slsqp(at, rho: float, radius: float) -> np.ndarray:
    """Return the step of the linear model of f + rho max_j g_j^+ in a ball, from its dual."""
    g, c = at.gradient(), at.constraints
    rows = np.array([at.gradient(unit, objective=0.0) for unit in np.eye(len(c))])

    def negative_dual(multipliers):
        slope = g + multipliers @ rows
        norm = np.linalg.norm(slope)
        return radius * norm - multipliers @ c, radius * rows @ slope / norm - c

    found = minimize(
        negative_dual,
        np.full(len(c), 0.1 * rho / len(c)),
        jac=True,
        bounds=[(0.0, rho)] * len(c),
        constraints=LinearConstraint(np.ones(len(c)), ub=rho),
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    slope = g + found.x @ rows
    return -radius * slope / np.linalg.norm(slope)


@pytest.mark.parametrize("name", ["demographic parity", "two constraints"])
def test_exact_penalty_takes_the_steps_of_its_trust_region_subproblem(name) -> None:
    problem = PROBLEMS[name]()
    start = Start(w=problem.start(), random_state=np.random.RandomState(0))
    at, lengths, binding = problem.at(start.w), [], 0
    for one in ExactPenalty.paper(max_iter=STEPS).iterate(problem, start):
        step = one.at.w - at.w
        length = float(np.linalg.norm(step))
        if length > 1e-4:
            expected = by_slsqp(at, one.state.rho, length)
            assert step == pytest.approx(expected, abs=1e-4 * length)
            lengths.append(length)
            binding += one.multipliers.max() > 1e-3
        at = one.at
    assert len(lengths) >= 10
    assert binding >= 5
    assert len({round(length, 6) for length in lengths}) > 1  # the radius is adapted


def algorithm_2_of_idca(problem, v, epsilon, T):
    """IDCA, algorithm 2: the best nearly feasible point of T switching subgradient steps."""
    found = []
    for _ in range(T):
        level, slope = worst(problem, v)
        if level <= epsilon:
            at = problem.at(v)
            found.append((at.objective, v))
            slope = at.gradient()
            v = problem.domain.project(v - epsilon / (slope @ slope) * slope)
        else:
            v = problem.domain.project(v - level / (slope @ slope) * slope)
    return min(found, key=lambda one: one[0])[1]


@pytest.mark.parametrize("kappa", [0.02])
def test_idca_is_algorithm_1_with_algorithm_2(kappa) -> None:
    problem = classification(DemographicParity(kappa, surrogate=Ramp()))
    w, expected = problem.start(), []
    for _ in range(STEPS):
        w = algorithm_2_of_idca(problem.convexify(w), w, 1e-3, 30)
        expected.append(w)
    assert same(points(IDCA.paper(steps=30, max_iter=STEPS), problem), expected)
    assert problem.at(w).constraints.max() <= 1e-3


@pytest.mark.parametrize("name", ["demographic parity", "L2 ball"])
def test_ssg_is_algorithm_3_of_idca(name) -> None:
    problem = PROBLEMS[name]()
    v, visited, expected = problem.start(), [], []
    for _ in range(STEPS):
        level, slope = worst(problem, v)
        feasible = level <= 1e-3
        visited.append((max(level, 0.0) * (not feasible), problem.at(v).objective, v))
        slope = problem.at(v).gradient() if feasible else slope
        v = problem.domain.project(v - (1e-3 if feasible else level) / (slope @ slope) * slope)
        expected.append(min(visited, key=lambda one: one[:2])[2])
    solver = SwitchingSubgradient.paper(max_iter=STEPS, check_every=1)
    assert same(points(solver, problem), expected)


def test_conex_is_algorithm_1_of_boob_deng_and_lan() -> None:
    problem = PROBLEMS["demographic parity"]()
    w, lam, expected = problem.start(), np.zeros(2), []
    before = problem.at(w).constraints
    for t in range(STEPS):
        g = problem.at(w).constraints
        lam = np.maximum(lam + (t + 1) / 0.01 * (g + t / (t + 1) * (g - before)), 0.0)
        before = g
        w = w - problem.at(w).gradient(lam) / (20.0 * (t + 1))
        expected.append(w)
    found = points(ConEx.paper(max_iter=STEPS, check_every=1), problem)
    assert same(found, expected)


def test_regularization_is_subgradient_descent_on_the_sum() -> None:
    problem = PROBLEMS["zero gap"]()
    w, visited = problem.start(), []
    for _ in range(STEPS):
        level, slope = worst(problem, w)
        w = w - 1e-3 * (problem.at(w).gradient() + 2.0 * (level > 0.0) * slope) / 2.0
        level, _ = worst(problem, w)
        visited.append((problem.at(w).objective + 2.0 * max(level, 0.0), w))
    found = points(Regularization.paper(strength=2.0, max_iter=STEPS), problem)
    assert found[-1] == pytest.approx(min(visited, key=lambda one: one[0])[1], **EXACT)


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
        rates = problem.at(w).zero_one_constraints[drawn]
        slope = np.array(  # by complex steps
            [
                (rates * price(weights + 1e-30j * e, features[drawn])).mean().imag / 1e-30
                for e in np.eye(len(weights))
            ]
        )
        sums = sums + slope**2
        weights = weights + 0.1 * slope / (np.sqrt(sums) + 1e-10)
        expected.append(w)
    solver = LagrangianDescentAscent.paper(
        multipliers=DeepNetwork((7, 6, 5)), n_sampled=4, max_iter=STEPS, check_every=1
    )
    assert same(points(solver, problem), expected)
