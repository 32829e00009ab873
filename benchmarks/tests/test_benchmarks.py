"""The command that lists and runs benchmarks. What they measure is not tested, and no time is."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import all_solvers
from benchmarks.__main__ import main, parser_of
from benchmarks.harness import store
from benchmarks.harness.data import generated
from benchmarks.harness.isolated import limit_cpu, run_isolated
from benchmarks.harness.options import Default, parse
from benchmarks.harness.problems import logistic_problem
from benchmarks.harness.store import Store
from benchmarks.harness.tables import write_table
from benchmarks.harness.timing import in_turns, ratio
from benchmarks.registry import BENCHMARKS
from fairconstrained import DemographicParity, FairLogisticClassifier
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.solvers import default_solver

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = ("matplotlib", "fairlearn", "skops")


def test_the_listing_has_a_line_for_every_benchmark(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for name in BENCHMARKS:
        assert sum(line.split()[:1] == [name] for line in lines) == 1
        assert f"`{name}" in page or f"benchmarks {name}" in page
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert modules == {"__init__", "__main__", "registry", *BENCHMARKS} - {"fuzz"}
    assert main(["no_such_benchmark"]) == 2
    assert "no_such_benchmark" in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHMARKS)
def test_options_have_defaults_and_quick_ones(name, tmp_path):
    for arguments in ([], ["--quick"]):
        options = parse(parser_of(name), [*arguments, "--out", str(tmp_path)])
        assert (options.quick, options.out) == (bool(arguments), tmp_path)
        assert not any(isinstance(value, Default) for value in vars(options).values())


def test_generated_rows_make_every_constraint_active():
    X, y, groups = generated(1000)
    for name in CLASSIFIER_CONSTRAINTS:
        for variant in all_solvers.variants(name):
            case = all_solvers.Case("generated", 1000, name, all_solvers.KAPPA, variant)
            problem = case.estimator("auto").bind(X, y, None, groups).problem
            free = problem.with_constraints(())
            w = problem.start()
            w[: free.n_variables] = default_solver(free).minimize(free).w
            assert problem.at(w).violation > 1e-4, case.name


def test_problems_are_those_of_the_estimator():
    X, y, groups = generated(1000)
    problem = logistic_problem((X, y, groups), DemographicParity(0.05))
    result = default_solver(problem).minimize(problem)
    clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    assert result.objective == pytest.approx(clf.objective_, rel=1e-6)


def test_a_run_is_ended_at_its_limit_of_cpu_time():
    assert run_isolated(_square, 3.0) == 9.0
    assert run_isolated(_endless) is None


def _square(x):
    return x * x


def _endless():
    limit_cpu(0.0)
    while True:
        pass


def test_results_are_kept_for_the_version_of_the_library(tmp_path, monkeypatch):
    kept = Store(tmp_path)
    kept.put(("case", "ipc"), {"objective": 1.0})
    assert kept.get(("case", "ipc"))["objective"] == 1.0
    assert kept.get(("case", "ssg")) is None
    monkeypatch.setattr(store, "version", lambda: "another")
    assert kept.get(("case", "ipc")) is None
    assert kept.get(("case", "ipc"), any_version=True)["objective"] == 1.0


def test_in_turns_keeps_neighbours_together():
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    seconds = in_turns(runs, 2)
    assert calls == ["a", "b", "a", "b"]
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}
    assert ratio([2.0, 6.0, 4.0], [1.0, 2.0, 1.0]) == 3.0


def test_tables_are_written_rounded_and_with_all_digits(tmp_path, capsys):
    write_table([{"solver": "ipc", "objective": 1.0 / 3.0}], "table", "A title", tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert (
        "| ipc    | 0.3333    |" in text and "A title" in text and text in capsys.readouterr().out
    )
    assert f"ipc,{1.0 / 3.0}" in (tmp_path / "table.csv").read_text()


def test_options_do_not_import_optional_packages():
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"  # importing them raises
        "from benchmarks.__main__ import parser_of\n"
        "from benchmarks.registry import BENCHMARKS\n"
        "for name in BENCHMARKS: parser_of(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
