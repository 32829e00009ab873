"""The papers' figures about parameters and progress: their runs, and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import sensitivity
from benchmarks.harness.data import generated
from benchmarks.harness.paper_setup import Setup
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.sensitivity_lines import (
    FIGURES,
    Run,
    multipliers_of_plada,
    runs_of,
)
from benchmarks.registry import BENCHMARKS
from fairconstrained import DemographicParity
from fairconstrained.solvers import PLADA
from fairconstrained.solvers.base import Start

pytest.importorskip("matplotlib")


def small(_: bool) -> Setup:
    problem = logistic_problem(generated(400), DemographicParity(0.02))
    return Setup(problem, problem.start(), 1.0, problem, problem.start())


def options(tmp_path: Path, *more: str):
    from benchmarks.__main__ import parse, parser_of

    given = ["--quick", "--steps", "12", "--out", str(tmp_path), *more]
    return parse(parser_of("sensitivity"), given)


@pytest.mark.parametrize("name", list(FIGURES))
def test_every_figure_has_runs_with_names_of_their_own(name):
    runs = list(runs_of(FIGURES[name]))
    assert len(runs) >= 3
    assert len({(run.data, run.panel, run.label) for run in runs}) == len(runs)
    assert {run.figure for run in runs} == {name}


def test_multipliers_are_those_of_the_solver():
    setup = small(True)
    values = [setup.problem.at(setup.start).constraints]
    multipliers = []
    solver = PLADA.paper(max_iter=30, check_every=1, eta=0.5)
    for iterate in solver.iterate(setup.problem, Start(setup.start)):
        values.append(iterate.at.constraints)
        multipliers.append(iterate.multipliers)
    found = multipliers_of_plada(solver, np.array(values))
    assert np.max(multipliers) > 0.0
    np.testing.assert_allclose(np.maximum(found["lambda"], 0.0), multipliers, atol=1e-12)
    np.testing.assert_allclose(
        found["difference"],
        np.linalg.norm(np.array(found["lambda"]) - np.array(found["mu"]), axis=1),
    )


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_run_gives_curves_and_the_page_shows_them(name, tmp_path, monkeypatch):
    first, second = list(runs_of(FIGURES[name]))[:2]
    runs: list[Run] = [replace(one, setup=small) for one in (first, second)]
    monkeypatch.setattr(sensitivity, "runs_of", lambda figure: iter(runs))
    if name.startswith("idca"):
        rows = generated(300)
        problem = logistic_problem(rows, DemographicParity(0.02, surrogate="ramp"))
        ranked = Setup(problem, problem.start(), 1.0, problem, problem.start())
        runs[:] = [replace(one, setup=lambda _: ranked) for one in runs]
    BENCHMARKS["sensitivity"].load().run(options(tmp_path, "--only", name, "--docs", str(tmp_path)))
    name_of_page = "curves" if FIGURES[name].passes else "sensitivity"
    page = (tmp_path / f"{name_of_page}.md").read_text()
    assert FIGURES[name].title in page and first.label in page
    assert (tmp_path / "_static" / f"sensitivity-{name}.png").stat().st_size > 5000
    again = sensitivity.found_for(
        FIGURES[name],
        options(tmp_path, "--only-known"),
        sensitivity.Store(tmp_path / "sensitivity"),
    )
    assert [run.label for run, _ in again] == [first.label, second.label]
    assert np.all(np.isfinite(again[0][1]["objective"]))
