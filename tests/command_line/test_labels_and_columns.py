"""Labels and columns mean what they mean in the file, and outputs are written whole."""

import errno
import json
import os

import joblib
import numpy as np
import pandas as pd
import pytest
from _support.command_line import asked

from fairconstrained.__main__ import main

LABELS = [  # of the file, the favourable one first; --positive; labels of the model if others
    ((0, 1), "0", None),
    ((1, 0), "1", None),
    ((1, 2), "1", None),
    (("no", "yes"), "no", None),
    ((" no", " yes"), "no", None),
    ((False, True), "false", None),
    ((0.5, 1.5), "0.5", ("0.5", "1.5")),  # which no classifier takes as labels
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("labels", "positive", "as_text"), LABELS)
def test_labels_keep_the_values_of_the_file(
    file, table, tmp_path, capsys, labels, positive, as_text
):
    favourable, other = labels
    table["granted"] = table["granted"].map({"yes": other, "no": favourable})
    table.to_csv(file, index=False)
    paths = [str(tmp_path / name) for name in ("out.json", "report.html", "model.joblib")]
    arguments = [file, "--target", "granted", "--positive", positive, "--sensitive", "group"]
    more = ["--json", paths[0], "--report", paths[1], "--model", paths[2]]
    assert main([*arguments, *more]) == 0
    shown = f"granted = {str(favourable).strip()}"
    said = capsys.readouterr().out
    assert f"Positive class: {shown} (" in said
    assert "The model's labels are {!r} and {!r}.".format(*(as_text or labels)) in said
    model, written = joblib.load(paths[2]), json.loads((tmp_path / "out.json").read_text())
    read = pd.read_csv(file)
    y = read["granted"] if as_text is None else read["granted"].map(str)
    favourable, other = as_text or labels
    assert model.classes_.tolist() == sorted([favourable, other])
    assert (written["data"]["positive"], written["data"]["negative"]) == (favourable, other)
    measures = [
        {one["measure"]: one["fair"] for one in written[rows]["summary"]}
        for rows in ("training", "test")
    ]
    whole = {
        name: np.average([one[name] for one in measures], weights=[0.75, 0.25])
        for name in ("accuracy", "selection rate")
    }
    assert model.score(read, y) == pytest.approx(whole["accuracy"])
    assert np.mean(model.predict(read) == favourable) == pytest.approx(whole["selection rate"])
    page = (tmp_path / "report.html").read_text()
    assert f"the positive class is granted = {favourable}" in page
    assert f"The favourable label is granted = {favourable}: rows that are predicted so" in page


def test_features_that_give_the_group_away(file, table, tmp_path, capsys):
    table["code"] = np.where(table["group"] == "x", 7, 8)
    table.loc[:5, "code"] = 9
    table.to_csv(file, index=False)
    written, report = tmp_path / "out.json", tmp_path / "report.html"
    assert main(asked(file, "--json", str(written), "--report", str(report))) == 0
    text = capsys.readouterr().out
    assert "The models do not use group." in text
    assert "each of these columns of X alone: code (0.99" in text
    assert list(json.loads(written.read_text())["test"]["proxies"]) == ["code"]
    assert "each of these columns of X alone: code (" in report.read_text()


def test_a_full_disk_leaves_the_files_that_were_there(file, tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(joblib, "dump", full)
    names = ("out.json", "report.html", "model.joblib")
    paths = {name: tmp_path / name for name in names}
    for path in paths.values():
        path.write_text("of last year")
    report, model = map(str, (paths["report.html"], paths["model.joblib"]))
    assert main(asked(file, "--json", "/dev/full", "--report", report, "--model", model)) == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"--model {model} cannot be written: No space left on device.",
        "--json /dev/full cannot be written: No space left on device.",
    ]
    assert f"Written: {report}" in said.out
    assert paths["report.html"].read_text().startswith("<!DOCTYPE html>")
    assert paths["model.joblib"].read_text() == "of last year"
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "data.csv"])
