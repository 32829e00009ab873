"""Every solver on every problem: against scipy, with active constraints and certificates."""

from __future__ import annotations

from functools import cache
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from _support.problems import (
    NON_SMOOTH,
    PROBLEMS,
    classification,
    rate_between,
    reference,
    toy_of_ipc,
)

from fairconstrained import DemographicParity, IncompatibleSolverError
from fairconstrained.constraints import GroupAUCParity
from fairconstrained.domains import Box, L2Ball
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.problem.kkt import KKT
from fairconstrained.solvers import (
    IDCA,
    IPC,
    SOLVERS,
    SQP,
    AugmentedLagrangian,
    ConEx,
    Smoothing,
    Solver,
    Status,
    StochasticSwitchingSubgradient,
    SwitchingSubgradient,
    available_solvers,
    default_solver,
    successive,
)
from fairconstrained.solvers import base as loop
from fairconstrained.solvers.base import Start

# name: (relative error of the objective allowed, whether it is to end converged)
EXPECTED = {
    "ipc": (1e-4, True),
    "augmented-lagrangian": (1e-4, True),
    "sqp": (1e-4, True),
    "smoothing": (1e-4, True),
    "ipp-ssg": (1e-2, False),
    "ssg": (1e-2, False),
    "ssg-stochastic": (1e-2, False),
    "3s-econ": (1e-2, False),
    "3s-econ-stochastic": (1e-2, False),
    "plada": (1e-2, False),
    "plada-stochastic": (1e-2, False),
    "idca": (1e-3, True),
    "idca-stochastic": (1e-2, False),
    "ipp-conex": (1e-2, False),
    "conex": (1e-2, False),
    "yu-neely-wei": (1e-2, False),
    "exact-penalty": (1e-2, False),
    "lagrangian": (1e-2, False),
    "multiplier-model": (1e-2, False),
    "regularization": (1e-2, False),
}
GRID = {name: (SOLVERS[name](), *expected) for name, expected in EXPECTED.items()}
SLOW = ("3s-econ-stochastic", "plada-stochastic", "idca-stochastic", "ssg-stochastic", "ipp-conex")
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in GRID]


@cache
def solution(name: str) -> float:
    return reference(PROBLEMS[name]())


def test_the_grid_has_every_registered_solver() -> None:
    assert set(GRID) == set(SOLVERS)


@pytest.mark.parametrize("increase", [0.001, 0.05])
@pytest.mark.parametrize("problem_name", ["demographic parity", "equalized odds, 3 groups"])
def test_the_least_unfairness_is_what_scipy_finds(problem_name: str, increase: float) -> None:
    problem = PROBLEMS[problem_name]()
    best = AugmentedLagrangian(tol=1e-7).minimize(problem.with_constraints(()))
    epigraph = problem.epigraph((1.0 + increase) * best.objective)
    solver = default_solver(epigraph)
    result = solver.minimize(epigraph)
    assert isinstance(solver, SQP)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(reference(epigraph), abs=1e-4)
    assert epigraph.at(result.w).constraints[-1] > -1e-4, "the constraint on the loss is active"
    assert KKT.of(epigraph.at(result.w), result.multipliers).holds(1e-4)


def test_the_least_unfairness_says_when_no_model_has_so_small_a_loss() -> None:
    epigraph = PROBLEMS["demographic parity"]().epigraph(1e-3)
    assert default_solver(epigraph).minimize(epigraph).status is Status.INFEASIBLE


@pytest.mark.parametrize("problem_name", PROBLEMS)
@pytest.mark.parametrize("solver_name", NAMES)
def test_solver_finds_the_solution_that_scipy_finds(solver_name: str, problem_name: str) -> None:
    solver, error, converges = GRID[solver_name]
    problem = PROBLEMS[problem_name]()
    result = solver.minimize(problem, random_state=0)
    expected = solution(problem_name)
    assert result.violation <= 1e-4
    assert abs(result.objective - expected) <= error * abs(expected)
    assert np.array_equal(problem.domain.project(result.w), result.w) or np.allclose(
        problem.domain.project(result.w), result.w, atol=1e-12
    )
    if converges:
        assert result.status is Status.CONVERGED
        assert result.kkt_residual <= 1e-4
    if problem.n_constraints:
        assert problem.at(result.w).constraints.max() > -1e-2, "no constraint is active"
        assert np.all(result.multipliers >= 0.0)
        assert result.multipliers.max() > 0.0


@pytest.mark.parametrize("solver_name", NAMES)
def test_certificate_is_recomputed_from_point_and_multipliers(solver_name: str) -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    result = GRID[solver_name][0].minimize(problem, random_state=0)
    kkt = KKT.of(problem.at(result.w), result.multipliers)
    assert kkt.residual == pytest.approx(result.kkt_residual, rel=1e-9)
    assert kkt.violation == pytest.approx(result.violation, abs=1e-15)


@cache
def least_with_kinks(name: str) -> float:
    """Return the least of what three methods find that have nothing in common."""
    solvers = [
        Smoothing(tol=1e-6),
        IDCA(ConEx(max_iter=500)),
        SwitchingSubgradient(max_iter=20_000),
    ]
    return min(solver.minimize(NON_SMOOTH[name]()).objective for solver in solvers)


@pytest.mark.slow
@pytest.mark.parametrize("problem_name", NON_SMOOTH)
@pytest.mark.parametrize("solver_name", GRID)
def test_every_solver_copes_with_kinks_or_says_what_it_needs(
    solver_name: str, problem_name: str
) -> None:
    solver, error, converges = GRID[solver_name]
    problem = NON_SMOOTH[problem_name]()
    if solver.missing(problem):
        with pytest.raises(IncompatibleSolverError, match=r"smooth|weakly convex"):
            solver.minimize(problem)
        return
    result = solver.minimize(problem, random_state=0)
    expected = least_with_kinks(problem_name)
    assert result.violation <= 1e-4
    assert abs(result.objective - expected) <= max(error, 1e-3) * expected
    assert result.status is Status.CONVERGED or not converges


@pytest.mark.parametrize("problem_name", NON_SMOOTH)
def test_automatic_solver_of_problems_with_kinks_converges(problem_name: str) -> None:
    problem = NON_SMOOTH[problem_name]()
    result = default_solver(problem).minimize(problem)
    assert result.status is Status.CONVERGED
    assert result.violation <= 1e-4
    assert problem.at(result.w).constraints.max() > -1e-2, "no constraint is active"


def test_automatic_takes_the_first_preferred_one() -> None:
    assert isinstance(default_solver(PROBLEMS["demographic parity"]()), SQP)
    assert isinstance(default_solver(PROBLEMS["truncated logistic"]()), SQP)
    assert isinstance(default_solver(PROBLEMS["L2 ball"]()), AugmentedLagrangian)
    assert isinstance(default_solver(NON_SMOOTH["hinge"]()), Smoothing)
    assert isinstance(default_solver(NON_SMOOTH["ramp"]()), Smoothing)


@pytest.mark.parametrize("solver", [IPC(), AugmentedLagrangian(), SQP()], ids=repr)
def test_mismatch_names_what_is_missing_and_who_can(solver: Solver) -> None:
    with pytest.raises(IncompatibleSolverError, match=r"functions:.*smoothing") as raised:
        solver.minimize(NON_SMOOTH["ramp"]())
    can = str(raised.value).split("use one of the solvers ")[1].rstrip(".").split(", ")
    assert can == available_solvers(NON_SMOOTH["ramp"]())
    assert can[0] == "smoothing"
    assert not {"ipc", "augmented-lagrangian", "ipp-ssg", "exact-penalty"} & set(can)


@pytest.mark.parametrize("solver_name", NAMES)
@pytest.mark.parametrize(
    "problem",
    [
        rate_between(0.6, 0.2),
        rate_between(0.97, 0.99, L2Ball(0.5)),
        rate_between(0.97, 0.99, Box(-0.2, 0.2)),
    ],
    ids=["contradiction", "ball", "box"],
)
def test_infeasible_problem_is_distinguished_from_a_slow_one(solver_name: str, problem) -> None:
    result = GRID[solver_name][0].minimize(problem, random_state=0)
    assert result.status is Status.INFEASIBLE
    assert result.violation > 0.05
    assert "raise kappa" in result.message


def test_least_violation_of_a_contradiction_is_half_its_width() -> None:
    problem = rate_between(0.6, 0.2)
    result = SwitchingSubgradient().minimize(problem.epigraph())
    assert result.objective == pytest.approx(0.2, abs=2e-2)
    assert IPC().minimize(problem).violation == pytest.approx(0.2, abs=1e-2)


def test_a_slow_run_is_not_called_infeasible() -> None:
    result = SwitchingSubgradient(max_iter=1, polish=False).minimize(rate_between(0.8, 0.9))
    assert result.violation > 1e-3
    assert result.status is Status.ITERATION_LIMIT


@pytest.mark.parametrize("loop", [IPC, IDCA])
def test_runs_whose_answers_are_all_refused_return_their_start(loop, monkeypatch) -> None:
    monkeypatch.setattr(successive, "_acceptable", lambda *_: False)
    problem = PROBLEMS["demographic parity"]()
    result = loop(polish=False).minimize(problem)
    assert result.w == pytest.approx(problem.start())
    assert result.status is Status.STALLED
    assert result.objective == pytest.approx(problem.at(problem.start()).objective)


@pytest.mark.parametrize("solver_name", NAMES)
def test_simple_example_of_ipc_has_its_known_solution(solver_name: str) -> None:
    """E1: on |x|_1 <= 1 the objective (10 a^2 - b^2) / 2 is least at (0, +-1), where it is -1/2.

    There the constraint (50 a^2 - 5 b^2) / 2 - 10 is -12.5: it is not active, its multiplier is 0.
    """
    result = GRID[solver_name][0].minimize(toy_of_ipc(), np.array([0.0, 0.5]), random_state=0)
    assert result.w == pytest.approx([0.0, 1.0], abs=1e-3)
    assert result.objective == pytest.approx(-0.5, abs=1e-3)
    assert result.multipliers == pytest.approx([0.0], abs=1e-3)


@pytest.mark.parametrize("solver_name", NAMES)
def test_trace_counts_iterations_passes_and_seconds(solver_name: str) -> None:
    problem = PROBLEMS["demographic parity"]()
    result = GRID[solver_name][0].minimize(problem)
    frame = result.trace.to_frame()
    assert list(frame) == [
        "iteration", "data_passes", "seconds", "objective", "violation", "kkt_residual",
    ]  # fmt: skip
    assert frame.notna().all(axis=None)
    for column in ("iteration", "data_passes", "seconds"):
        assert frame[column].is_monotonic_increasing
    assert result.data_passes == frame["data_passes"].iloc[-1] <= problem.passes
    assert result.n_iter == frame["iteration"].iloc[-1]


def test_data_passes_are_forward_evaluations() -> None:
    problem = PROBLEMS["demographic parity"]()
    few, more = (
        SwitchingSubgradient(max_iter=n, check_every=n, polish=False).minimize(problem).data_passes
        for n in (20, 70)
    )
    assert more - few == 50  # the best point is not evaluated again


def test_clock_stops_while_a_callback_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    class Steps(SwitchingSubgradient):
        def iterate(self, problem, start):
            for iterate in super().iterate(problem, start):
                wait(1.0)
                yield iterate

    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now))
    solver = Steps(max_iter=20, check_every=1, polish=False)
    problem = PROBLEMS["demographic parity"]()
    result = solver.minimize(problem, callback=lambda measured: wait(100.0))
    assert result.trace.seconds == [float(k) for k in range(1, 21)]


def test_callback_stops_the_run() -> None:
    problem = PROBLEMS["demographic parity"]()
    result = IPC(tol=1e-10).minimize(problem, callback=lambda measured: True)
    assert result.status is Status.STOPPED
    assert result.n_iter == 1


def test_warm_start_needs_fewer_passes_and_finds_the_same() -> None:
    problem = PROBLEMS["demographic parity"]()
    cold = IPC().minimize(problem)
    warm = IPC().minimize(problem, warm=cold)
    assert warm.converged
    assert warm.data_passes < 0.5 * cold.data_passes
    assert warm.objective == pytest.approx(cold.objective, rel=1e-4)


SMALL_BATCHES = {
    "ssg": StochasticSwitchingSubgradient(batch_size=100),
    "3s-econ": GRID["3s-econ-stochastic"][0],
    "plada": GRID["plada-stochastic"][0],
    "idca": IDCA(StochasticSwitchingSubgradient(batch_size=100, max_iter=3), safeguard=False),
    "multiplier-model": GRID["multiplier-model"][0],
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", SMALL_BATCHES)
def test_stochastic_runs_repeat_with_their_random_state(name: str) -> None:
    problem, points = PROBLEMS["two constraints"](), []
    for seed in (0, 0, 1):
        start = Start(problem.start(), random_state=np.random.RandomState(seed))
        points.append(list(islice(SMALL_BATCHES[name].iterate(problem, start), 3))[-1].at.w)
    assert np.array_equal(points[0], points[1])
    assert not np.array_equal(points[0], points[2])


def test_solving_changes_neither_solver_nor_start() -> None:
    problem = PROBLEMS["demographic parity"]()
    for solver in (GRID[name][0] for name in GRID if name not in SLOW):
        before, w0 = repr(solver.get_params()), np.full(problem.n_variables, 0.1)
        solver.minimize(problem, w0, max_data_passes=6.0)
        assert repr(solver.get_params()) == before
        assert np.array_equal(w0, np.full(problem.n_variables, 0.1))


def test_diverging_run_reports_it_and_keeps_the_last_finite_point() -> None:
    class Explodes(Solver):
        def __init__(self, tol: float = 1e-4, max_iter: int = 3):
            self.tol = tol
            self.max_iter = max_iter

        def iterate(self, problem, start):
            from fairconstrained.solvers.base import Iterate

            for k, size in enumerate([0.0, np.nan], 1):
                yield Iterate(problem.at(np.full(problem.n_variables, size)), None, k)

    problem = PROBLEMS["unconstrained"]()
    result = Explodes().minimize(problem)
    assert result.status is Status.DIVERGED
    assert np.array_equal(result.w, np.zeros(problem.n_variables))


def test_a_run_that_diverges_keeps_a_point_no_worse_than_its_start() -> None:
    """Steps on squares of scores that are too long: finite for a while, and ever larger."""
    problem = classification(GroupAUCParity(0.2))
    result = SOLVERS["3s-econ"](alpha=3.0, polish=False).minimize(problem)
    start = problem.at(problem.start())
    assert result.status is Status.DIVERGED
    assert "give a domain" in result.message
    assert result.violation <= start.violation
    assert result.objective <= start.objective


def test_ramp_and_sigmoid_constraints_can_be_mixed() -> None:
    problem = classification(DemographicParity(0.05), DemographicParity(0.1, surrogate=Ramp()))
    assert available_solvers(problem)[0] == "smoothing"
    assert Smoothing().minimize(problem).status is Status.CONVERGED
    assert SwitchingSubgradient().minimize(problem).violation <= 1e-4


@pytest.mark.parametrize("solver_name", NAMES)
def test_a_run_ends_at_its_data_passes_and_keeps_the_best_point(solver_name: str) -> None:
    """Iterations of outer loops read several times the budget: their subproblem solvers stop."""
    problem = PROBLEMS["demographic parity"]()
    start = problem.uncounted().at(problem.start())
    solver = GRID[solver_name][0].with_options(tol=1e-9)
    result = solver.minimize(problem, max_data_passes=6.0, random_state=0)
    assert result.status is Status.PASS_LIMIT
    assert "max_data_passes" in result.message
    assert 6.0 <= problem.passes <= 40.0  # what measures scales comes on top
    at = problem.uncounted().at(result.w)
    assert at.violation <= max(start.violation, 1e-9)
    assert at.objective <= start.objective


def test_a_second_run_has_a_budget_of_its_own() -> None:
    problem = PROBLEMS["demographic parity"]()
    first = IPC(tol=1e-9).minimize(problem, max_data_passes=5.0)
    second = IPC(tol=1e-9).minimize(problem, warm=first, max_data_passes=5.0)
    assert 5.0 <= second.data_passes <= 10.0
