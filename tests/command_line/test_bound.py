"""The command line says first whether the bound was met, and --check makes it the exit status."""

import json
import subprocess
import sys

import joblib
import pytest
from _support.command_line import asked

from fairconstrained.__main__ import main

IMPOSSIBLE = ["--constraint", "bounded_group_loss", "--kappa", "0.01"]


@pytest.mark.parametrize("enforce", ["score", "decision"])
@pytest.mark.parametrize(("more", "met"), [([], True), (IMPOSSIBLE, False)])
def test_a_file(file, tmp_path, capsys, enforce, more, met):
    written, stored = tmp_path / "out.json", tmp_path / "model.joblib"
    arguments = asked(file, "--enforce", enforce, *more, "--json", str(written))
    assert main([*arguments, "--model", str(stored), "--check"]) == (0 if met else 3)
    text = capsys.readouterr().out
    classifier, content = joblib.load(stored)[-1], json.loads(written.read_text())
    assert content["bound_met"] is classifier.bound_met_ is met
    assert content["bound_violation"] == classifier.bound_violation_
    says = "Bound met, " if met else "Bound not met: "
    line = text.splitlines()[0]
    assert line.startswith(says)
    assert line.endswith(f"for {enforce}s on the training rows.".replace("decision", "prediction"))
    if not met:
        assert "> 0.010, for " in line


def test_a_file_that_is_not_written_is_the_first_failure(file, capsys):
    arguments = asked(file, *IMPOSSIBLE, "--json", "/dev/full", "--check")
    assert main(arguments) == 1
    assert "Bound not met" in capsys.readouterr().out


@pytest.mark.cases(1)
@pytest.mark.parametrize("kappa", ["0.02", "1"])
def test_an_example(capsys, kappa):
    assert main(["--kappa", kappa, "--check"]) == 0
    assert capsys.readouterr().out.startswith("Bound met, for scores on the training rows.\n")


def test_a_reader_that_stops_is_no_error(tmp_path):
    written = tmp_path / "out.json"
    command = [sys.executable, "-m", "fairconstrained", *IMPOSSIBLE, "--check"]
    command += ["--json", str(written)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 3 and json.loads(written.read_text())["bound_met"] is False
