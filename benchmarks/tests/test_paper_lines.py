"""The lines of the papers' tables, their methods and the grids of their parameters."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest
from _support.problems import PROBLEMS

from benchmarks.harness import paper_problems
from benchmarks.harness.data import parts
from benchmarks.harness.paper_grids import GRIDS, best_of
from benchmarks.harness.paper_lines import all_lines, digits, roc, simple_example
from benchmarks.harness.paper_setup import Setup
from benchmarks.harness.swapped import swapped
from fairconstrained.solvers import Solver, SwitchingSubgradient, near_stationarity


def test_every_experiment_has_lines_with_the_papers_solvers() -> None:
    lines = all_lines()
    assert {line.experiment for line in lines} == {"E1", "E2", "E3", "E4", "E5", "E6"}
    of_table_2 = [line for line in lines if line.published.count(",") == 4]
    assert len(of_table_2) == 3 * 12  # six methods, two data sets, E4 and both variants of E3
    assert {line.data for line in lines if line.experiment == "E3"} == {
        f"{data}, x* {kind}"
        for data in ("a9a", "compas")
        for kind in ("exact", "by SGD", *(f"of seed {seed}" for seed in range(5)))
    }
    setup = simple_example(True)
    for line in lines:
        if line.paper is not None:
            solver = line.paper(setup)
            assert isinstance(solver, Solver)
            assert not solver.polishes or "Penalty" in repr(solver)


def test_grids_are_those_of_the_paper() -> None:
    setup = simple_example(True)
    sizes = {name: len(grid(setup)) for name, grid in GRIDS.items()}
    assert sizes == {"SSG": 4, "IPP-SSG": 4, "IPP-ConEx": 16}
    for line in all_lines():
        has_grid = line.experiment in ("E3", "E4", "E5") and line.method in GRIDS
        assert (line.grid is not None) is has_grid
        if line.grid is not None and line.paper is not None:
            assert repr(line.paper(setup)) == repr(next(iter(line.grid(setup).values())))


class Ends:
    """A solver whose runs end with given figures."""

    def __init__(self, objective: float, violation: float):
        self.result = Namespace(objective=objective, violation=violation)

    def unpolished(self) -> Ends:
        return self

    def minimize(self, *args: object, **options: object) -> Namespace:
        assert options["max_data_passes"] == 5000.0
        return self.result


@pytest.mark.parametrize(
    ("ends", "best"),
    [
        ({"a": (0.5, 0.0), "b": (0.4, 1e-4), "c": (0.1, 0.2)}, "b"),
        ({"a": (0.5, 0.3), "b": (0.9, 0.2), "c": (0.1, 0.4)}, "b"),
        ({"a": (np.nan, 0.0), "b": (0.9, 0.0), "c": (np.inf, 0.0)}, "b"),
    ],
)
def test_the_best_of_a_grid_is_feasible_and_has_the_lowest_objective(ends, best) -> None:
    solvers = {name: Ends(*figures) for name, figures in ends.items()}
    assert best_of(solvers, simple_example(True), 5000.0) == best


def test_the_constants_of_near_stationarity_are_those_of_the_paper(data_folder) -> None:
    """3S-Econ, section 4.1: sums over two groups for Problem 1, the largest class for Problem 3."""
    _, (X, _, groups) = parts("compas")
    squares = (X**2).sum(axis=1)
    setup = roc("compas", exact=True, small=True)
    assert setup.constraint_rho == 0.0
    means = [squares[groups == group].mean() for group in np.unique(groups)]
    assert setup.rho == pytest.approx(means[0] + means[1])
    images, labels = paper_problems.mnist(3000)
    norms = (images**2).sum(axis=1)
    setup = digits(True)
    assert setup.constraint_rho is None
    assert setup.rho == pytest.approx(max(norms[labels == k].mean() for k in range(10)), rel=1e-5)


@pytest.mark.filterwarnings("ignore:near_stationarity")  # the oracle has no certificate
def test_near_stationarity_of_a_maximum_is_that_of_its_epigraph_form() -> None:
    base = PROBLEMS["demographic parity"]()
    w = base.start()
    bound = 1.1 * base.uncounted().at(w).objective
    problem, epigraph = swapped(base, bound), base.epigraph(bound)
    w = np.random.default_rng(0).normal(scale=0.1, size=base.n_variables)
    setup = Setup(problem, w, 1.0, epigraph, np.append(w, 0.0), constraint_rho=0.0)
    oracle = SwitchingSubgradient(max_iter=20_000, check_every=20_000, polish=False)
    expected = near_stationarity(problem, w, 1.0, constraint_rho=0.0, tol=1e-4, solver=oracle)
    assert expected > 0.01
    assert setup.near_stationarity(w, 1e-4) == pytest.approx(expected, rel=0.05)


def test_near_stationarity_is_nan_where_its_subproblem_has_no_feasible_point() -> None:
    base = PROBLEMS["infeasible start"]()
    setup = Setup(base, base.start(), 10.0, base, base.start())
    assert np.isnan(setup.near_stationarity(base.start(), 1e-4))
