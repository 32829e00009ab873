"""Where reports and model files come from."""

import json
from importlib.metadata import version

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.command_line import asked, table_of_a_user

import fairconstrained
from fairconstrained import FairLogisticClassifier, fairness_report, make_biased_classification
from fairconstrained.__main__ import main
from fairconstrained.deployment import provenance, trusted_types

X, Y, GROUPS = make_biased_classification(300, 3, gap=0.4, random_state=0)
MODEL = FairLogisticClassifier(kappa=0.1, random_state=4).fit(X, Y, sensitive_features=GROUPS)


def test_a_report_says_where_it_comes_from():
    report = fairness_report(MODEL, X, Y, GROUPS)
    origin = report.provenance
    assert origin["fairconstrained"] == fairconstrained.__version__
    assert origin["scipy"] == version("scipy") and origin["seeds"] == "random_state=4"
    assert (origin["rows"], origin["held out"]) == ("300", "no, training rows")
    for text in (report.to_html(), report.to_markdown()):
        assert all(origin[name] in text for name in ("data", "parameters", "date"))
    assert json.loads(report.to_json())["provenance"] == origin
    again = fairness_report({"a": MODEL}, X, Y, GROUPS).provenance
    assert again["data"] == origin["data"] and again["parameters of a"] == origin["parameters"]
    others = [
        fairness_report(MODEL, X + np.eye(300, 3), Y, GROUPS),
        fairness_report(MODEL, X, 1 - Y, GROUPS),
        fairness_report(MODEL, X, Y, GROUPS, sample_weight=np.arange(1, 301)),
        *(fairness_report(MODEL, X, Y, GROUPS, control_features=X[:, 0] > k) for k in (0.0, 0.1)),
    ]
    assert len({origin["data"], *(other.provenance["data"] for other in others)}) == 6


def test_rows_are_hashed_by_their_values():
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    hashes = [
        provenance(None, rows)["data"]
        for rows in (frame, frame.set_axis(frame.index + 7), np.asfortranarray(X[:, :3]), X[:, :3])
    ]
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]
    assert provenance(None, sp.csr_array(X))["data"] == provenance(None, sp.csc_array(X))["data"]
    table = {"a": [1.0, 2.0], "b": ["x", "y"]}
    polars = pytest.importorskip("polars")
    tables = [library.DataFrame(table) for library in (pd, polars)]
    tables.append(tables[1].rename({"a": "c"}))
    hashes = [provenance(None, rows)["data"] for rows in tables]
    assert hashes[0] == hashes[1] != hashes[2]
    parameters = [
        provenance(FairLogisticClassifier(kappa=kappa))["parameters"] for kappa in (0.1, 0.1, 0.2)
    ]
    assert parameters[0] == parameters[1] != parameters[2]
    with pytest.raises(TypeError, match="sensitive_features is no text: rows are passed by posi"):
        provenance(MODEL, X, sensitive_features=GROUPS)


@pytest.mark.parametrize("ending", ["joblib", "skops"])
def test_a_model_file_says_where_it_comes_from(ending, tmp_path):
    if ending == "skops":
        pytest.importorskip("skops")
    file, stored = tmp_path / "data.csv", tmp_path / f"model.{ending}"
    table_of_a_user().head(200).to_csv(file, index=False)
    outputs = ["--model", str(stored), "--json", str(tmp_path / "out.json")]
    assert main(asked(str(file), "--seed", "3", *outputs)) == 0
    if ending == "skops":
        import skops.io

        model = skops.io.load(stored, trusted=[*trusted_types(), "numpy.dtype"])
    else:
        model = joblib.load(stored)
    origin = model.provenance_
    assert json.loads((tmp_path / "out.json").read_text())["provenance"] == origin
    assert (origin["training rows"], origin["held out rows"]) == ("150", "50")
    assert origin["seed of the split"] == "3" and len(origin["data"]) == 64
