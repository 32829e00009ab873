"""Runs of solvers: their trace, limits, clock, callbacks, states, warm starts and arguments."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification, toy_of_ipc

from fairconstrained import FairLogisticClassifier, make_biased_classification, solvers
from fairconstrained.constraints import GroupAUCParity
from fairconstrained.solvers import base as loop
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.multiplier_models import DeepNetwork

STOCHASTIC = [name for name in solvers.SOLVERS if "stochastic" in name]
SLOW = (*STOCHASTIC, "ipp-conex")
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in solvers.SOLVERS]


def parity():
    return PROBLEMS["demographic parity"]()


class Offers(solvers.Solver):
    """Offers the points with these values in all variables, and nothing else."""

    def __init__(self, sizes=(), max_iter=1, tol=1e-4):
        self.sizes, self.max_iter, self.tol = sizes, max_iter, tol

    def iterate(self, problem, start):
        for k, size in enumerate(self.sizes, 1):
            yield Iterate(problem.at(np.full(problem.n_variables, size)), None, k)


class Descent(solvers.Solver):
    """Gradient steps for smooth problems without constraints."""

    requires = ("smooth",)

    def iterate(self, problem, start):
        at = start.at(problem)
        for k in range(1, 400):
            at = problem.at(at.w - 0.5 * at.gradient(np.zeros(0)))
            yield Iterate(at, None, k)


def test_a_solver_needs_iterate_only() -> None:
    X, y, _ = make_biased_classification(500, 4, gap=0.3, random_state=0)
    clf = FairLogisticClassifier(None, solver=Descent()).fit(X, y)
    assert isinstance(clf.result_.solver, Descent)
    assert clf.result_.converged
    expected = FairLogisticClassifier(None, tol=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(expected.objective_, rel=1e-5)


def test_evaluations_of_each_kind_are_counted_apart() -> None:
    """3S-Econ takes no gradient of constraints that hold, PLADA's exact step one for each trial."""
    alone = {"objective": 11.0, "constraints": 11.0, "constraint_gradients": 0.0}
    steps = {"max_iter": 10, "check_every": 10}
    assert solvers.ThreeSEcon.paper(**steps).minimize(parity()).evaluations == alone
    plada = solvers.PLADA.paper(**steps).minimize(parity()).evaluations
    assert plada["objective"] == plada["constraints"] == 11.0
    assert plada["constraint_gradients"] > 20.0
    stochastic = solvers.ThreeSEcon.paper(stochastic=True, max_iter=200, check_every=200)
    few = stochastic.minimize(parity(), random_state=0).evaluations
    assert few["objective"] < few["constraints"] < 200.0


@pytest.mark.parametrize("name", NAMES)
def test_trace_counts_iterations_passes_and_seconds(name: str) -> None:
    problem = parity()
    result = solvers.SOLVERS[name]().minimize(problem)
    frame = result.trace.to_frame()
    counted = ["iteration", "data_passes", "seconds"]
    assert list(frame) == [*counted, "objective", "violation", "kkt_residual"]
    assert frame.notna().all(axis=None)
    assert all(frame[column].is_monotonic_increasing for column in counted)
    assert result.data_passes == frame["data_passes"].iloc[-1] <= problem.passes
    assert result.n_iter == frame["iteration"].iloc[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_ends_at_its_data_passes_and_keeps_the_best_point(name: str) -> None:
    """Iterations of outer loops read several times the budget: their subproblem solvers stop."""
    problem = parity()
    start = problem.uncounted().at(problem.start())
    solver = solvers.SOLVERS[name]().with_options(tol=1e-9)
    result = solver.minimize(problem, max_data_passes=6.0, random_state=0)
    assert result.status is solvers.Status.PASS_LIMIT
    assert "max_data_passes" in result.message
    assert 6.0 <= problem.passes <= 40.0  # what measures scales comes on top
    at = problem.uncounted().at(result.w)
    assert at.violation <= max(start.violation, 1e-9)
    assert at.objective <= start.objective


@pytest.mark.parametrize("kind", [solvers.SwitchingSubgradient, solvers.PLADA])
def test_a_step_is_one_evaluation(kind) -> None:
    """A measurement of PLADA may evaluate once more, in float64 for the certificate."""
    few, more = (
        kind(max_iter=n, check_every=n, tol=1e-12, polish=False).minimize(parity()).data_passes
        for n in (10, 110)
    )
    assert 100 <= more - few <= 100 + (kind is solvers.PLADA)  # not the best point again


def test_clock_stops_while_a_callback_runs(monkeypatch) -> None:
    now = 0.0

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    class Steps(solvers.SwitchingSubgradient):
        def iterate(self, problem, start):
            for iterate in super().iterate(problem, start):
                wait(1.0)
                yield iterate

    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: now))
    solver = Steps(max_iter=20, check_every=1, polish=False)
    result = solver.minimize(parity(), callback=lambda measured: wait(100.0))
    assert result.trace.seconds == [float(k) for k in range(1, 21)]


def test_callback_stops_the_run() -> None:
    result = solvers.IPC(tol=1e-10).minimize(parity(), callback=lambda measured: True)
    assert result.status is solvers.Status.STOPPED
    assert result.n_iter == 1


WARM = {
    "ipc": solvers.IPC(),
    "plada": solvers.PLADA(),
    "online": solvers.OnlineStochastic(check_every=20),
    "network of multipliers": solvers.LagrangianDescentAscent.multiplier_model(),
}


@pytest.mark.cases(len(WARM))
@pytest.mark.parametrize("solver", WARM.values(), ids=WARM)
def test_a_warm_start_takes_the_multipliers_over(solver: solvers.Solver) -> None:
    problem = PROBLEMS["equalized odds, 3 groups"]()
    cold = solver.minimize(problem, random_state=0)
    warm = solver.minimize(problem, warm=cold, random_state=1)
    assert warm.converged
    assert warm.data_passes < 0.5 * cold.data_passes
    assert warm.objective == pytest.approx(cold.objective, rel=1e-3)


INNER = solvers.StochasticSwitchingSubgradient(batch_size=100, max_iter=3)
SMALL_BATCHES = {
    "ssg": solvers.StochasticSwitchingSubgradient(batch_size=100),
    "3s-econ": solvers.SOLVERS["3s-econ-stochastic"](),
    "plada": solvers.SOLVERS["plada-stochastic"](),
    "idca": solvers.IDCA(INNER, safeguard=False),
    "multiplier-model": solvers.SOLVERS["multiplier-model"](),
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
    problem = parity()
    every = [solvers.SOLVERS[name]() for name in solvers.SOLVERS if name not in SLOW]
    for solver in [*every, solvers.LagrangianDescentAscent(multipliers=DeepNetwork((5, 4, 3)))]:
        before, w0 = repr(solver.get_params()), np.full(problem.n_variables, 0.1)
        solver.minimize(problem, w0, max_data_passes=6.0, random_state=0)
        assert repr(solver.get_params()) == before
        assert np.array_equal(w0, np.full(problem.n_variables, 0.1))


def test_a_run_without_any_accepted_answer_returns_its_start() -> None:
    result = Offers().minimize(parity())
    assert result.status is solvers.Status.ITERATION_LIMIT
    assert np.array_equal(result.w, parity().start())
    assert len(result.trace) == 1


def test_a_run_that_diverges_keeps_a_point_no_worse_than_its_start_and_may_be_polished() -> None:
    """Steps on squares of scores that are too long: finite for a while, and ever larger."""
    problem = classification(GroupAUCParity(0.2))
    result = solvers.SOLVERS["3s-econ"](alpha=3.0, polish=False).minimize(problem)
    start = problem.at(problem.start())
    assert result.status is solvers.Status.DIVERGED
    assert "give a domain" in result.message
    assert result.violation <= start.violation
    assert result.objective <= start.objective
    polished = solvers.SOLVERS["3s-econ"]().minimize(problem)
    assert polished.converged
    assert polished.objective == pytest.approx(solvers.IPC().minimize(problem).objective, rel=1e-3)


PROBLEM, OTHER = parity(), toy_of_ipc()
N = PROBLEM.n_variables
POINTS = ["a", 3.0, [], np.zeros(N + 1), np.zeros(N - 1), np.zeros((N, N)), np.full(N, np.nan)]
NUMBERS = ["a", float("nan"), -1.0, [0.1], True, 1j]
ARGUMENTS = {
    "w0": (POINTS, "w0 must have a finite number for each of the"),
    "tol": (NUMBERS, "'tol' parameter of minimize must be a float"),
    "max_data_passes": (NUMBERS, "'max_data_passes' parameter of minimize must be a float"),
    "callback": ([3], "'callback' parameter of minimize must be a callable"),
    "random_state": (["a"], "'random_state' parameter of minimize must be"),
    "warm": ([np.zeros(N)], r"'warm' parameter of minimize must be an instance of .*Result"),
    "w": (POINTS, "w must have a finite number"),
    "rho": ([*NUMBERS, 0.0], "'rho' parameter of near_stationarity must be a float"),
    "constraint_rho": (NUMBERS, "'constraint_rho' parameter of near_stationarity must be"),
    "solver": ([solvers.IPC], "'solver' parameter of near_stationarity must be an instance"),
}


@pytest.mark.cases(len(ARGUMENTS))
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_minimize_and_near_stationarity(name: str) -> None:
    values, message = ARGUMENTS[name]
    for value in values:
        with pytest.raises((ValueError, TypeError), match=message):
            if name in ("w", "rho", "constraint_rho", "solver"):
                solvers.near_stationarity(PROBLEM, **{"w": np.zeros(N), name: value})
            else:
                solvers.AugmentedLagrangian().minimize(PROBLEM, **{name: value})


def test_warm_starts_of_another_problem() -> None:
    solver = solvers.AugmentedLagrangian()
    with pytest.raises(ValueError, match=r"warm\.w must have"):
        solver.minimize(PROBLEM, warm=solver.minimize(OTHER))
