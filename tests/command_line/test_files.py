"""Files of one's own: kinds of columns, names of columns, and groups that some rows lack."""

import json

import numpy as np
import pandas as pd
import pytest

from fairconstrained import make_biased_classification
from fairconstrained.__main__ import main

N_ROWS = 300


@pytest.fixture
def table():
    X, y, groups = make_biased_classification(N_ROWS, gap=0.4, random_state=0)
    frame = pd.DataFrame(np.asarray(X)[:, :2], columns=["a", "b"])
    frame.loc[::20, "b"] = np.nan
    frame["group"] = np.array(["y", "x"])[groups]
    frame["granted"] = np.where(np.asarray(y) == 1, "yes", "no")
    return frame


def run(path, *more):
    asked = ["--target", "granted", "--positive", "yes", "--sensitive", "group"]
    return main([str(path), *asked, *more])


def figures(tmp_path, table, *more):
    """Return what is written as JSON."""
    table.to_csv(tmp_path / "data.csv", index=False)
    assert run(tmp_path / "data.csv", "--json", str(tmp_path / "out.json"), *more) == 0
    return json.loads((tmp_path / "out.json").read_text())


def test_kinds_of_columns_of_parquet(table, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    for dtype in ("boolean", "Int64"):
        table[dtype] = pd.array(np.resize([1, 0, None], N_ROWS), dtype=dtype)
    table["flag"] = np.resize(np.array([True, False, None], dtype=object), N_ROWS)
    table["tags"] = [["u", "v"]] * N_ROWS
    table["spent"] = pd.to_timedelta(np.arange(N_ROWS) % 3, unit="h")
    table.to_parquet(tmp_path / "data.parquet")
    assert run(tmp_path / "data.parquet") == 0
    text = capsys.readouterr().out
    assert "5 numeric and 0 categorical features" in text
    assert "Left out, since their values are neither numbers nor text: tags, spent." in text


def test_names_of_encoded_features_may_be_alike(table, tmp_path):
    table["job"] = np.where(table["a"] > 0.0, "u", "v")
    table = table.assign(job_u=table["a"] ** 2, missingindicator_b=table["a"] > 0.5)
    assert figures(tmp_path, table)["bound_met"]


def test_spaces_around_the_names_of_columns(table, tmp_path):
    assert figures(tmp_path, table.rename(columns=lambda name: f" {name} "))["bound_met"]


def test_rates_are_those_of_the_groups_named(table, tmp_path, capsys):
    """One row each of two more groups: as many groups on both sides, and not the same ones."""
    table.loc[:1, "group"] = ["c", "d"]
    for seed in range(20):
        written = figures(tmp_path, table, "--test-size", "0.5", "--seed", str(seed))
        lines = [one.split() for one in capsys.readouterr().out.splitlines()]
        shown = {one[1]: one[3:7] for one in lines if one[:1] == ["fair"]}
        present = {
            rows: [one["group"] for one in written[rows]["groups"] if one["model"] == "fair"]
            for rows in ("training", "test")
        }
        for rows, rates in shown.items():
            assert [rate != "-" for rate in rates] == [name in present[rows] for name in "cdxy"]
        if ("c" in present["test"]) != ("d" in present["test"]):
            break
    else:
        pytest.fail("no seed divides the two rows")


def test_nothing_to_compare_on_the_test_rows(table, tmp_path, capsys):
    few = np.flatnonzero((table["group"] == "y") & (table["granted"] == "yes"))
    table = table.drop(index=few[2:])
    for seed in range(20):
        asked = ["--constraint", "equal_opportunity", "--seed", str(seed), "--test-size", "0.1"]
        written = figures(tmp_path, table, *asked)
        training, test = (written[rows]["constraints"][-1] for rows in ("training", "test"))
        text = capsys.readouterr().out
        if test["decisions"] is None:
            break
    else:
        pytest.fail("no seed leaves the group without positive test rows")
    assert training["decisions"] is not None
    assert "fewer than two groups have rows in the cell 'all groups | label yes'" in text
