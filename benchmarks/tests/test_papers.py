"""The lines of the papers' tables, their methods, the grids of their parameters, their problems."""

from argparse import Namespace
from unittest.mock import Mock

import numpy as np
import pytest
from _support.problems import PROBLEMS, classification

from benchmarks.harness import paper_problems
from benchmarks.harness.data import parts
from benchmarks.harness.paper_problems import Setup, digits, roc, simple_example
from benchmarks.harness.rank_parity import EXPERIMENTS, Penalised, methods_for
from benchmarks.harness.swapped import Maximum, swapped
from benchmarks.papers import all_lines, best_of
from fairconstrained import FairLogisticClassifier, constraints, make_biased_classification
from fairconstrained import solvers as public
from fairconstrained.functions.surrogates import Ramp, Sigmoid


def test_every_experiment_has_lines_with_the_papers_solvers_and_grids() -> None:
    lines = list(all_lines())
    assert {line.experiment for line in lines} == {"E1", "E2", "E3", "E4", "E5", "E6"}
    assert sum("passes" in line.published for line in lines) == 3 * 12  # of table 2
    kinds = ("exact", "by batches")
    of_roc = {line.data for line in lines if line.experiment == "E3"}
    assert of_roc == {f"{data}, x* {kind}" for data in ("a9a", "compas") for kind in kinds}
    setup, sizes = simple_example(True), {"SSG": 4, "IPP-SSG": 4, "IPP-ConEx": 16}
    for line in lines:
        solvers = line.paper(setup)
        if line.of is not None:
            chosen = line.experiment in ("E3", "E4", "E5")
            assert len(solvers) == (sizes.get(line.method, 1) if chosen else 1)
            for solver in solvers.values():
                assert not solver.polishes or "Penalty" in repr(solver)


@pytest.mark.parametrize("data, n", [("compas", 16), ("bank", 54), ("adult", 123)])
def test_the_problem_of_plada_has_the_printed_columns_and_no_penalty(data, n, data_folder) -> None:
    setup = paper_problems.classification(data, "DP", small=True)
    rows = {"compas": 6172, "bank": 41188, "adult": 48842}
    assert (setup.problem.n_rows, setup.problem.n_variables) == (rows[data], n)
    w = np.full(n, 1e-3)
    scores = np.asarray(paper_problems.raw_columns(data)[0] @ w).ravel()
    y = np.sign(paper_problems.raw_columns(data)[1] - 0.5)
    expected = np.logaddexp(0.0, -y * scores).mean()
    assert setup.problem.at(w).objective == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "ends",
    [
        {"a": (0.5, 0.0), "b": (0.4, 1e-4), "c": (0.1, 0.2)},
        {"a": (0.5, 0.3), "b": (0.9, 0.2), "c": (0.1, 0.4)},
        {"a": (np.nan, 0.0), "b": (0.9, 0.0), "c": (np.inf, 0.0)},
    ],
)
def test_the_best_of_a_grid_is_feasible_and_has_the_lowest_objective(ends) -> None:
    made = {name: Mock() for name in ends}
    for name, (objective, violation) in ends.items():
        result = Namespace(objective=objective, violation=violation)
        made[name].unpolished().minimize.return_value = result
    assert best_of(made, simple_example(True), 5000.0) == "b"


def test_the_constants_of_near_stationarity_are_those_of_the_paper(data_folder) -> None:
    _, (X, _, groups) = parts("compas")
    squares = (X**2).sum(axis=1)
    setup = roc("compas", exact=True, small=True)
    assert setup.constraint_rho == 0.0
    means = [squares[groups == group].mean() for group in np.unique(groups)]
    assert setup.rho == pytest.approx(means[0] + means[1])
    lifted, start = setup.default()
    assert lifted.at(start).constraints[-1] == pytest.approx(0.5 * 0.2**2 - 0.5)  # of the ball
    images, labels = paper_problems.mnist(3000)
    norms = (images**2).sum(axis=1)
    setup = digits(True)
    assert setup.constraint_rho is None
    largest = max(norms[labels == k].mean() for k in range(10))
    assert setup.rho == pytest.approx(largest, rel=1e-5)


@pytest.mark.filterwarnings("ignore:near_stationarity")
def test_near_stationarity_of_a_maximum_is_that_of_its_epigraph_form() -> None:
    base = PROBLEMS["demographic parity"]()
    bound = 1.1 * base.uncounted().at(base.start()).objective
    problem, epigraph = swapped(base, bound), base.epigraph(bound)
    w = np.random.default_rng(0).normal(scale=0.1, size=base.n_variables)
    setup = Setup(problem, w, 1.0, epigraph, constraint_rho=0.0)
    oracle = public.SwitchingSubgradient(max_iter=20000, check_every=20000, polish=False)
    given = {"constraint_rho": 0.0, "tol": 1e-4, "solver": oracle}
    expected = public.near_stationarity(problem, w, 1.0, **given)
    assert expected > 0.01
    assert setup.near_stationarity(w, 1e-4) == pytest.approx(expected, rel=0.05)
    base = PROBLEMS["infeasible start"]()  # the subproblem has no feasible point
    setup = Setup(base, base.start(), 10.0)
    assert np.isnan(setup.near_stationarity(base.start(), 1e-4))


def test_the_maximum_of_a_term_has_its_zero_one_version_and_its_batches(rng) -> None:
    roc_parity = constraints.ROCParity(0.0, thresholds=np.linspace(-1.0, 1.0, 5))
    largest = Maximum(roc_parity.bind(np.ones(60), np.arange(60) % 3, np.ones(60)))
    scores, rows = rng.normal(size=60), np.tile(np.arange(60), 2)
    strict = largest.zero_one().value(scores)
    assert strict == pytest.approx([largest.term.zero_one().value(scores).max()])
    twice = largest.take(rows, np.full(120, 0.5))
    assert twice.value(scores[rows]) == pytest.approx([largest.term.value(scores).max()])


def test_swapped_problem_has_the_solution_of_the_epigraph_problem() -> None:
    problem = classification(constraints.DemographicParity(0.0))
    bound = 1.02 * public.AugmentedLagrangian().minimize(problem.with_constraints(())).objective
    epigraph = public.AugmentedLagrangian(tol=1e-7).minimize(problem.epigraph(bound))
    plain = swapped(problem, bound)
    assert (plain.n_constraints, plain.n_variables) == (1, problem.n_variables)
    at = plain.at(epigraph.w[:-1])
    assert at.objective == pytest.approx(epigraph.objective, abs=1e-6)
    assert at.constraints == pytest.approx([0.0], abs=1e-6)
    steps = public.SwitchingSubgradient(max_iter=3000)
    for solver in (steps, public.ThreeSEcon(beta=1.0, max_iter=2000)):
        result = solver.minimize(plain)
        assert result.violation <= 1e-3
        assert epigraph.objective - 1e-3 <= result.objective <= epigraph.objective + 5e-3


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_penalty_of_the_regularisation_is_the_printed_one(name, rng) -> None:
    experiment = EXPERIMENTS[name]
    low, high, theta, lam = 0.1, 0.35, rng.normal(size=10), 0.3
    y, scores, groups = rng.choice([-1, 1], 80), rng.normal(size=80), np.arange(80) % 2
    term = experiment.notion(0.0, surrogate=Ramp(), ranks=(low, high)).bind(y, groups, np.ones(80))
    violation = max(term.value(scores, *([theta] if term.n_auxiliary else [])).max(), 0.0)

    def rates(threshold: float) -> list[float]:
        return [Ramp().value(scores[groups == k] - threshold).mean() for k in (0, 1)]

    if experiment.name == "partial":  # (78) with (77)
        p = low + (np.arange(10) + 0.5) / 10 * (high - low)
        pairs = zip(theta, p, strict=True)
        largest = max(abs(rate - level) for t, level in pairs for rate in rates(t))
        penalty = 2.0 * lam / (high - low) * largest
    else:  # (83)
        first, second = (min(rate, high) - min(rate, low) for rate in rates(0.0))
        penalty = lam / (high - low) * abs(first - second)
    methods = methods_for(name, "bank", quick=True)
    for method in ("regularisation", "regularisation, solved"):
        strength = vars(methods[method].solver(lam))["strength"]
        assert strength * violation == pytest.approx(penalty, rel=1e-12)


@pytest.mark.parametrize("strength", [0.01, 0.1, 10.0])
def test_the_penalised_problem_is_solved_at_least_as_well_as_by_subgradients(strength) -> None:
    X, y, groups = make_biased_classification(400, 4, gap=0.4, random_state=0)
    parity = constraints.PartialDemographicParity(0.0, surrogate=Sigmoid(0.5))
    problem = FairLogisticClassifier(parity).bind(X, y, sensitive_features=groups).problem

    def formula(solver) -> float:
        at = problem.at(solver.minimize(problem, problem.start()).w)
        return at.objective + strength * at.violation

    steps = public.Regularization(strength, max_iter=3000, check_every=3000)
    assert formula(Penalised(strength, tol=1e-6)) <= formula(steps) + 1e-6
