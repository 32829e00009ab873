"""`paper()` of every solver against a transcription of the printed algorithm, over 50 steps.

The exact penalty method of Cartis, Gould and Toint is only cited by IPC: its algorithm is printed
in none of the four papers, and neither are the tuned parameters. Its steps are compared with
solutions of its trust region subproblem by SciPy. Mini-batch SSG is a baseline without a printed
algorithm as well, and has no `paper()`.
"""

import numpy as np
import pytest
from _support.papers import EXACT, STEPS, jacobian, points, same, worst
from _support.problems import PROBLEMS, classification, toy_of_ipc
from scipy.optimize import LinearConstraint, minimize

import fairconstrained as fc
from fairconstrained import DemographicParity, make_biased_classification, solvers
from fairconstrained.solvers.base import Start


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


OF_IPC = [("toy", 20.0), ("box", None), ("demographic parity", 1.0)]


@pytest.mark.cases(1)
@pytest.mark.parametrize(("name", "rho"), OF_IPC)
def test_ipc_is_algorithm_1_with_algorithm_2(name, rho) -> None:
    """Steps are 2 / (mu (k + 2)): with a small rho^, rounding errors grow in the whole space."""
    problem = toy_of_ipc() if name == "toy" else PROBLEMS[name]()
    first = np.array([0.1, 0.5]) if name == "toy" else problem.start()
    solver = solvers.IPC.paper(steps=40, max_iter=STEPS, **({} if rho is None else {"rho": rho}))
    assert solver.rho == (rho or 10**-2.5)
    expected, w = [], first
    for _ in range(STEPS):
        w = algorithm_2_of_ipc(problem, w, solver.rho, 1e-2, 40)
        expected.append(w)
    assert same(points(solver, problem, first), expected)


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
        zeta = jacobian(problem, z)
        new = problem.domain.project(z - (V * at.gradient() + Q @ zeta) / (2.0 * alpha))
        Q = np.maximum(Q + at.constraints + zeta @ (new - z), 0.0)
        z = new
    solver = solvers.OnlineStochastic.paper(max_iter=STEPS, check_every=1)
    assert same(points(solver, problem)[1::2], expected)  # each after the last point
    assert Q.max() > 0.0


def by_slsqp(at, rho: float, radius: float) -> np.ndarray:
    """Return the step of the linear model of f + rho max_j g_j^+ in a ball, from its dual."""
    g, c = at.gradient(), at.constraints
    rows = jacobian(at.problem, at.w)

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
    solver = solvers.ExactPenalty.paper(max_iter=STEPS)
    for one in solver.iterate(problem, start):
        step = one.at.w - at.w
        length = float(np.linalg.norm(step))
        if length > 1e-4:
            expected = by_slsqp(at, solver.rho, length)
            assert step == pytest.approx(expected, abs=1e-4 * length)
            lengths.append(length)
            binding += one.multipliers.dense().max() > 1e-3
        at = one.at
    assert len(lengths) >= 5
    assert binding >= 3
    assert len({round(length, 6) for length in lengths}) > 1  # the radius is adapted


def convex_part(X, weights, w):
    """Return sum_i weights_i ramp(x_i w) without its subtracted part, and a subgradient of it.

    A ramp is (s + 1/2)^+ - (s - 1/2)^+; the subtracted part is the convex part of -weights.
    """
    s, up, down = X @ w, np.maximum(weights, 0.0), np.maximum(-weights, 0.0)
    value = up @ np.maximum(s + 0.5, 0.0) + down @ np.maximum(s - 0.5, 0.0)
    return value, (up * (s > -0.5) + down * (s > 0.5)) @ X


def majorant_of_parity(kappa, w):
    """Return IDCA's (21) at w: what gives the largest majorant of both constraints, and a slope."""
    X, _, groups = make_biased_classification(400, 4, gap=0.4, class_sep=1.0, random_state=0)
    X = np.column_stack([X, np.ones(400)])
    difference = np.where(groups == 0, 1.0, -1.0) / np.bincount(groups)[groups]

    def largest(v):
        found = []
        for weights in (difference, -difference):
            value, slope = convex_part(X, weights, v)
            subtracted, tangent = convex_part(X, -weights, w)
            found.append((value - subtracted - tangent @ (v - w) - kappa, slope - tangent))
        return max(found, key=lambda one: one[0])

    return largest


def algorithm_2_of_idca(problem, largest, v, epsilon, T):
    """IDCA, algorithm 2: the best nearly feasible point of T steps, and the steps on constraints.

    The objective is convex, so it is its own majorant.
    """
    found = []
    for _ in range(T):
        level, slope = largest(v)
        if level <= epsilon:
            at = problem.at(v)
            found.append((at.objective, v))
            slope = at.gradient()
            v = problem.domain.project(v - epsilon / (slope @ slope) * slope)
        else:
            v = problem.domain.project(v - level / (slope @ slope) * slope)
    return min(found, key=lambda one: one[0])[1], T - len(found)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kappa", [0.02, 0.1])
def test_idca_is_algorithm_1_with_algorithm_2(kappa) -> None:
    problem = classification(DemographicParity(kappa, surrogate=fc.functions.Ramp()))
    w, expected, on_constraints = problem.start(), [], []
    for _ in range(STEPS):
        w, steps = algorithm_2_of_idca(problem, majorant_of_parity(kappa, w), w, 1e-3, 30)
        expected.append(w)
        on_constraints.append(steps)
    assert same(points(solvers.IDCA.paper(steps=30, max_iter=STEPS), problem), expected)
    assert problem.at(w).constraints.max() <= 1e-3
    assert np.count_nonzero(on_constraints) >= 20


def algorithm_3_of_idca(problem, tolerances):
    """IDCA, algorithm 3: its answer after every step, and the number of steps on constraints.

    The answer is undefined before the first point that meets its tolerance: the least violated one.
    """
    v, visited, answers, on_constraints = problem.start(), [], [], 0
    for epsilon in tolerances:
        level, slope = worst(problem, v)
        if level <= epsilon:
            visited.append((0.0, problem.at(v).objective, v))
            slope, length = problem.at(v).gradient(), epsilon
        else:
            visited.append((level, problem.at(v).objective, v))
            length, on_constraints = level, on_constraints + 1
        v = problem.domain.project(v - length / (slope @ slope) * slope)
        answers.append(min(visited, key=lambda one: one[:2])[2])
    return answers, on_constraints


@pytest.mark.parametrize("name", ["zero gap", "infeasible start", "ball"])
def test_ssg_is_algorithm_3_of_idca(name) -> None:
    ball = classification(DemographicParity(0.0), domain=fc.domains.L2Ball(0.3))
    problem = ball if name == "ball" else PROBLEMS[name]()
    expected, on_constraints = algorithm_3_of_idca(problem, [1e-3] * STEPS)
    solver = solvers.SwitchingSubgradient.paper(max_iter=STEPS, check_every=1)
    assert isinstance(solver.steps, solvers.StaticTolerance)
    assert same(points(solver, problem), expected)
    assert 10 <= on_constraints < STEPS


DIMINISHING = [("zero gap", 0.2), ("demographic parity", 2.0), ("infeasible start", 0.2)]


@pytest.mark.parametrize(("name", "c"), DIMINISHING)
def test_ssg_with_a_diminishing_tolerance_judges_points_by_that_of_their_step(name, c) -> None:
    """The answer is one of the first points, which the last tolerance c / 50 would exclude."""
    problem = PROBLEMS[name]()
    expected, on_constraints = algorithm_3_of_idca(problem, c / (np.arange(STEPS) + 1.0))
    rule = {"steps": solvers.DiminishingTolerance(c), "max_iter": STEPS}
    solver = solvers.SwitchingSubgradient.paper(**rule, check_every=1)
    assert same(points(solver, problem), expected)
    result = solvers.SwitchingSubgradient.paper(**rule, check_every=STEPS).minimize(problem)
    assert result.w == pytest.approx(expected[-1], **EXACT)
    assert result.violation > c / STEPS
    assert on_constraints >= 10
