"""The command that lists and runs benchmarks. What they measure is not tested, and no time is."""

import shutil
import subprocess
import sys

import pytest

from benchmarks import all_solvers
from benchmarks.__main__ import BENCHMARKS, load, main, parser_of
from benchmarks.harness.data import generated
from benchmarks.harness.options import ROOT, Default, parse
from benchmarks.harness.processes import OverBudget, isolated, limited
from benchmarks.harness.results import Store, write_table
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.solvers import default_solver

PAGES = [page for name in BENCHMARKS for page in getattr(load(name), "PAGES", ())]
OPTIONAL = ("matplotlib", "fairlearn", "skops")


def test_the_listing_has_a_line_for_every_benchmark(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for name in BENCHMARKS:
        assert sum(line.split()[:1] == [name] for line in lines) == 1
        assert f"`{name}" in page or f"benchmarks {name}" in page
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
    mostly_met = {"calibration_parity", "coverage", "churn"}
    for name in set(CLASSIFIER_CONSTRAINTS) - mostly_met:
        for variant in all_solvers.variants(name):
            case = all_solvers.Case("generated", 1000, name, variant)
            problem = case.estimator("auto").bind(X, y, None, groups).problem
            free = problem.with_constraints(())
            w = problem.start()
            w[: free.n_variables] = default_solver(free).minimize(free).w
            assert problem.at(w).violation > 1e-4, case.name


def test_verdicts_compare_with_the_best_feasible_run():
    case = all_solvers.Case("generated", 1000, "demographic_parity", "sigmoid")
    runs = {"auto": (0.5, 0.0, 1.0), "ssg": (0.507, 0.0, 1.0), "ipc": (0.507, 0.0, 1.0),
            "smoothing": (0.4, 0.1, 1.0), "sqp": (0.5, 0.0, 61.0)}  # fmt: skip
    names, ended = ("objective", "violation", "CPU seconds"), {"status": "", "passes": 1}
    results = {(case, "idca"): {"status": "refused"}}
    for solver, run in runs.items():
        results[case, solver] = ended | dict(zip(names, run, strict=True))
    rows = all_solvers.table(results)
    verdicts = ["refused", "met", "met", "gap 1.4%", "violation 1.0e-01", "61 s"]
    assert [row["verdict"] for row in rows] == verdicts


def test_processes_return_results_or_how_they_were_lost():
    ended = {task: (result, lost) for task, result, lost in isolated(_behave, [3, -1], 2)}
    assert ended == {3: (9, ""), -1: (None, "crash")}
    assert list(isolated(_behave, [None, 2], wall=0.0)) == []  # None ends the tasks
    assert next(isolated(_behave, ["hang"], wall=0.0))[2] == "hang"
    with pytest.raises(OverBudget), limited(0.05):
        while True:
            pass


def _behave(task):
    if task == -1:
        sys.exit(1)
    while task == "hang":
        pass
    return task * task


def test_results_are_kept_by_key_with_their_commit(tmp_path):
    kept = Store(tmp_path)
    kept.put(("case: 'a'", "ipc"), {"objective": 1.0})
    assert kept.get(("case: 'a'", "ipc"))["objective"] == 1.0
    assert kept.get(("case: 'a'", "ipc"))["commit"]
    assert kept.get(("case: 'a'", "ssg")) is None


def test_tables_are_written_rounded_and_with_all_digits(tmp_path, capsys):
    write_table([{"solver": "ipc", "objective": 1.0 / 3.0}], "table", "A title", tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "| ipc    | 0.3333    |" in text and "A title" in text
    assert text in capsys.readouterr().out
    assert f"ipc,{1.0 / 3.0}" in (tmp_path / "table.csv").read_text()


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_pages_are_what_their_tables_give(page, tmp_path):
    docs = ROOT / "docs"
    shutil.copytree(docs / "results", tmp_path / "results")
    (tmp_path / "_static").mkdir()
    page.write(tmp_path, out=docs / "results")
    for table in page.tables:
        published = (docs / "results" / f"{table}.csv").read_text()
        assert (tmp_path / "results" / f"{table}.csv").read_text() == published
    assert (tmp_path / "_static" / f"{page.name}.svg").stat().st_size > 10_000
    text = (tmp_path / f"{page.name}.md").read_text()
    assert text == (docs / f"{page.name}.md").read_text()
    assert text.count("\n|") <= 50


def test_options_import_no_optional_packages_and_those_of_compare_no_library():
    code = (
        "import sys, benchmarks.compare\nassert 'fairconstrained' not in sys.modules\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
        "from benchmarks.__main__ import BENCHMARKS, parser_of\n"
        "for name in BENCHMARKS: parser_of(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
