"""The command line: the first run, and a file of one's own."""

import json
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from _support.command_line import asked, printed_table
from sklearn.datasets import load_diabetes

import fairconstrained
from fairconstrained.__main__ import _EXAMPLE, main
from fairconstrained.deployment import trusted_types


def test_the_table(file, capsys):
    assert main(asked(file, "--kappa", "0.02")) == 0
    text = capsys.readouterr().out
    assert "600 rows, 4 numeric and 1 categorical features; 150 rows are test rows." in text
    assert "Positive class: granted = yes" in text
    assert "Left out, since almost every row has another text: name." in text
    assert "The solver ended: converged." in text
    found = {which: figures[4] for which, figures in printed_table(text).items()}
    assert found["fair", "training"] <= 0.0205 < 0.1 < found["unconstrained", "training"]
    assert found["fair", "test"] < found["unconstrained", "test"]


def test_all_files_are_written(file, table, tmp_path, capsys):
    import skops.io

    table[:200].to_csv(file, index=False)
    paths = {name: str(tmp_path / f"out{end}") for name, end in ENDS.items()}
    written = [word for name, path in paths.items() for word in (f"--{name}", path)]
    assert main(asked(file, "--constraint", "equal_opportunity", *written)) == 0
    text = capsys.readouterr().out
    assert all(f"Written: {path}" in text for path in paths.values())
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "group" in page
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["constraint"]["name"] == "equal_opportunity"
    for rows, n_rows in (("training", 150), ("test", 50)):
        assert figures[rows]["rows"] == n_rows
        assert [one["model"] for one in figures[rows]["constraints"]] == ["unconstrained", "fair"]
    trusted = [*trusted_types(), "numpy.dtype"]  # scikit-learn's imputer keeps a dtype
    model = skops.io.load(paths["model"], trusted=trusted)
    assert set(model.predict(table.drop(columns=["name", "granted", "group"]))) == {"no", "yes"}


ENDS = {"report": ".html", "model": ".skops", "json": ".json", "path": ".png"}


def test_a_joblib_model_parquet_and_zero_one_targets(table, tmp_path, capsys):
    table["granted"] = (table["granted"] == "yes").astype(float)
    file, model = tmp_path / "data.parquet", tmp_path / "model.joblib"
    table.set_index("group").to_parquet(file)
    arguments = [str(file), "--target", "granted", "--sensitive", "group", "--model", str(model)]
    assert main([*arguments, "--report", str(tmp_path / "report.md")]) == 0
    assert "Positive class: granted = 1" in capsys.readouterr().out
    assert (tmp_path / "report.md").read_text().startswith("## Fairness")
    predicted = joblib.load(model).predict(table.drop(columns=["name", "granted", "group"]))
    assert 0.0 < predicted.mean() < 1.0


TOLERANCES = [
    ("equal_opportunity", {"kappa": 0.05}),
    ("disparate_impact", {"ratio": 0.8}),
    ("minority_rate", {"c": 0.4}),  # the share of group y
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("name", "tolerance"), TOLERANCES)
def test_the_tolerance_that_is_used_is_shown(file, table, tmp_path, capsys, name, tolerance):
    few = table.drop(table.index[table["group"] == "y"][200:])
    few.to_csv(file, index=False)
    figures = tmp_path / "figures.json"
    assert main(asked(file, "--constraint", name, "--json", str(figures))) == 0
    ((parameter, value),) = tolerance.items()
    shown = f"Constraint: {name.replace('_', ' ')} with {parameter} = {value}, on scores."
    assert shown in capsys.readouterr().out
    measured = json.loads(figures.read_text())["training"]["constraints"]
    assert [(one["constraint"], one["tolerance"]) for one in measured] == [
        (name, pytest.approx(value if parameter == "kappa" else 1.0 - value))
    ] * 2


AVERAGED = [
    ("goal=fairness", "predicted probabilities"),
    ("threshold=0.3", "sigmoids of scores minus the threshold"),
    ("threshold=SelectionRate(0.3)", "sigmoids of scores minus the threshold"),
    ("surrogate=ramp", "ramps of scores minus the threshold"),
]


@pytest.mark.parametrize(("setting", "said"), AVERAGED)
def test_what_the_gap_on_scores_averages_is_said(file, capsys, setting, said):
    assert main(asked(file, "--set", setting)) == 0
    text = capsys.readouterr().out
    assert f"; on scores, with {said} in place of predictions." in text
    assert text.startswith("Bound ") == (" without a bound; for the loss: " not in text)


def test_the_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"fairconstrained {fairconstrained.__version__}\n"


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


def test_a_reader_that_stops_is_no_error(tmp_path):
    written = tmp_path / "out.json"
    command = [sys.executable, "-m", "fairconstrained", *IMPOSSIBLE, "--check", "--json", written]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 3 and json.loads(written.read_text())["bound_met"] is False


def test_impact_ratios_against_a_named_group(file, tmp_path, capsys):
    figures = tmp_path / "figures.json"
    options = ["--reference", "group=y", "--least-share", "0.1", "--json", str(figures)]
    assert main(asked(file, *options)) == 0
    text = capsys.readouterr().out
    assert "Impact ratios of the fair model" in text and "group: x" in text
    records = json.loads(figures.read_text(encoding="utf-8"))["test"]["impact"]
    kinds = {(line["model"], line["group"]): line["status"] for line in records}
    assert kinds["fair", "y"] == kinds["unconstrained", "y"] == "reference"
    for wrong in ("group=z", "sex=y"):
        assert main(asked(file, "--reference", wrong)) == 1
        said = capsys.readouterr().err
        assert f"--reference {wrong}: give a column of" in said and "group=x" in said
    assert main(asked(file, "--reference", "group=x", "group=y")) == 1
    assert "group has another reference" in capsys.readouterr().err


def test_churn_is_measured_from_the_model_without_constraints(file, table, tmp_path):
    figures, stored = tmp_path / "figures.json", tmp_path / "model.joblib"
    arguments = ["--constraint", "churn", "--json", str(figures), "--model", str(stored)]
    assert main(asked(file, *arguments)) == 0
    content, model = json.loads(figures.read_text()), joblib.load(stored)
    encoded = model[0].transform(table)
    changed = model[-1].predict(encoded) != model[-1].constraint.previous.predict(encoded)
    measured = [line["decision_gap"] for line in content["models"][2:]]
    assert np.average(measured, weights=[0.75, 0.25]) == pytest.approx(changed.mean())
    assert content["groups"] == ["x", "y"]


ROUNDING = 5e-4 + 1e-4  # three digits are printed, and the solver's tolerance on violations


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
    assert_keeps_its_claim(table, 0.02)
    assert "442 rows, 9 numeric" in text and "use --enforce decision" in text
    assert "Try next:" in text
    assert "50 and over (171), under 50 (160)" in text


def test_the_example_is_the_data_of_scikit_learn():
    table = pd.read_csv(_EXAMPLE["file"])
    bunch = load_diabetes(scaled=False, as_frame=True)
    features = bunch.data.drop(columns="age")
    pd.testing.assert_frame_equal(table[features.columns], features)
    assert list(table["age"] == "50 and over") == list(bunch.data["age"] >= 50)
    assert list(table["progression"] == "fast") == list(bunch.target > bunch.target.median())
