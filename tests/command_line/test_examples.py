"""The first run prints what it claims, and the command line refuses what it cannot do."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from fairconstrained.__main__ import main
from fairconstrained.command_line._examples import EXAMPLES
from fairconstrained.datasets import _fetch as datasets

ROUNDING = 5e-4 + 1e-4  # three digits are printed, and the solver's tolerance on violations


def printed_table(text):
    """Return {(model, rows): [accuracy, rate, rate, gap of decisions, gap of probabilities]}."""
    table = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 6 and words[1] in ("training", "test"):
            table[words[0], words[1]] = [float(word) for word in words[2:7]]
    assert len(table) == 4, text
    return table


def run(capsys, *arguments):
    assert main(arguments) == 0
    text = capsys.readouterr().out
    return printed_table(text), text


def assert_keeps_its_claim(table, kappa):
    """The fair model meets kappa, the other does not, and all gaps fall."""
    assert table["fair", "training"][4] <= kappa + ROUNDING
    assert table["unconstrained", "training"][4] > kappa + ROUNDING
    for rows in ("training", "test"):
        assert table["fair", rows][3] < table["unconstrained", rows][3]
        assert table["fair", rows][4] < table["unconstrained", rows][4]
        assert table["fair", rows][0] > table["unconstrained", rows][0] - 0.04


def test_diabetes(capsys):
    table, text = run(capsys)
    assert_keeps_its_claim(table, EXAMPLES["diabetes"].options["kappa"])
    assert "442 rows, 9 numeric" in text and "use --enforce decision" in text
    assert "50 and over (171), under 50 (160)" in text


def test_every_file_can_be_written_and_predictions_bounded(capsys, tmp_path):
    report = tmp_path / "report.html"
    table, _ = run(capsys, "--enforce", "decision", "--report", str(report))
    assert table["fair", "training"][3] <= 0.02 + ROUNDING
    assert "progression" in report.read_text()


@pytest.mark.parametrize("name", ["equalized_odds", "disparate_impact", "bounded_group_loss"])
def test_other_constraints(capsys, name):
    table, text = run(capsys, "--constraint", name)
    assert table["fair", "training"][4] <= table["unconstrained", "training"][4]
    assert f"Constraint: {name.replace('_', ' ')} with " in text


def test_adult(capsys, data_folder):
    table, text = run(capsys, "--data", "adult")
    assert_keeps_its_claim(table, EXAMPLES["adult"].options["kappa"])
    assert "48842 rows" in text
    for model in ("unconstrained", "fair"):  # so many rows leave no room for overfitting
        assert np.allclose(table[model, "training"], table[model, "test"], atol=0.02)


def test_groups_are_those_of_the_age_in_years():
    table = EXAMPLES["diabetes"].table()
    bunch = load_diabetes(scaled=False, as_frame=True)
    assert list(table["age"] == "50 and over") == list(bunch.data["age"] >= 50)
    fast = table["progression"] == "fast"
    assert fast.sum() == (bunch.target > bunch.target.median()).sum()


def test_from_the_command_line():
    command = [sys.executable, "-W", "error", "-m", "fairconstrained"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert_keeps_its_claim(printed_table(done.stdout), EXAMPLES["diabetes"].options["kappa"])
    assert "Try next:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kappa", "2"], "a number between 0 and 1"),
        (["--constraint", "fairness"], "demographic_parity"),
        (["--data", "a10a"], "diabetes"),
    ],
)
def test_invalid_options(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_adult_without_data_says_where_to_get_it(capsys, monkeypatch):
    def unreachable(**asked):
        raise OSError("no network")

    monkeypatch.delenv("FAIRCONSTRAINED_DATA", raising=False)
    monkeypatch.setattr(datasets, "fetch_openml", unreachable)
    assert main(["--data", "adult"]) == 1
    said = capsys.readouterr().err
    for part in ("'adult' is not available", "no network", "adult.csv.gz", "FAIRCONSTRAINED_DATA"):
        assert part in said
