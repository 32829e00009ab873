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


def test_true_and_false_with_blanks_are_numbers(table, tmp_path, capsys):
    table["flag"] = np.resize(np.array([True, False, None], dtype=object), N_ROWS)
    figures(tmp_path, table)
    assert "3 numeric and 0 categorical features" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", ["boolean", "Int64"])
def test_nullable_numbers_of_parquet(table, tmp_path, capsys, dtype):
    pytest.importorskip("pyarrow")
    table["one"] = pd.array(np.resize([1, 0, None], N_ROWS), dtype=dtype)
    table.to_parquet(tmp_path / "data.parquet")
    assert run(tmp_path / "data.parquet") == 0
    assert "3 numeric and 0 categorical features" in capsys.readouterr().out


def test_dates_with_blanks_are_categories(table, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    table["day"] = pd.to_datetime(np.resize(["2020-01-01", "2020-01-02", None], N_ROWS))
    table["date"] = table["day"].dt.date
    table.to_parquet(tmp_path / "data.parquet")
    assert run(tmp_path / "data.parquet") == 0
    assert "2 numeric and 2 categorical features" in capsys.readouterr().out


def test_lists_and_durations_are_left_out(table, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    table["tags"] = [["u", "v"]] * N_ROWS
    table["spent"] = pd.to_timedelta(np.arange(N_ROWS) % 3, unit="h")
    table.to_parquet(tmp_path / "data.parquet")
    assert run(tmp_path / "data.parquet", "--json", str(tmp_path / "out.json")) == 0
    text = capsys.readouterr().out
    assert "Left out, since their values are neither numbers nor text: tags, spent." in text
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["data"]["left_out"] == ["tags", "spent"]


def test_names_of_encoded_features_may_be_alike(table, tmp_path):
    table["job"] = np.where(table["a"] > 0.0, "u", "v")
    table = table.assign(job_u=table["a"] ** 2, missingindicator_b=table["a"] > 0.5)
    assert len(figures(tmp_path, table)["models"]) == 4


def test_spaces_around_the_names_of_columns(table, tmp_path, capsys):
    assert len(figures(tmp_path, table.rename(columns=lambda name: f" {name} "))["models"]) == 4
    table[" a"] = table["a"]
    table.to_csv(tmp_path / "data.csv", index=False)
    assert run(tmp_path / "data.csv") == 1
    assert (
        "The file has several columns of the name a: give every column" in capsys.readouterr().err
    )


def test_rates_are_those_of_the_groups_named(table, tmp_path, capsys):
    """One row each of two more groups: as many groups on both sides, and not the same ones."""
    table.loc[:1, "group"] = ["c", "d"]
    for seed in range(20):
        written = figures(tmp_path, table, "--test-size", "0.5", "--seed", str(seed))
        assert written["data"]["groups"] == ["c", "d", "x", "y"]
        rates = {one["rows"]: one["rates"] for one in written["models"]}
        absent = {rows: [rate is None for rate in found] for rows, found in rates.items()}
        assert all(a != b for a, b in zip(absent["training"][:2], absent["test"][:2], strict=True))
        assert not any(absent["training"][2:] + absent["test"][2:])
        if sum(absent["test"]) == 1:
            break
    else:
        pytest.fail("no seed divides the two rows")
    lines = [one.split() for one in capsys.readouterr().out.splitlines()]
    shown = [one[3:5] for one in lines if one[:2] == ["fair", "test"]][-1]
    assert [rate == "-" for rate in shown] == absent["test"][:2]


def test_nothing_to_compare_on_the_test_rows(table, tmp_path, capsys):
    few = np.flatnonzero((table["group"] == "y") & (table["granted"] == "yes"))
    table = table.drop(index=few[2:])
    for seed in range(20):
        asked = ["--constraint", "equal_opportunity", "--seed", str(seed), "--test-size", "0.1"]
        written = figures(tmp_path, table, *asked)
        gaps = {one["rows"]: one["decision_gap"] for one in written["models"]}
        text = capsys.readouterr().out
        if gaps["test"] is None:
            break
    else:
        pytest.fail("no seed leaves the group without positive test rows")
    assert gaps["training"] is not None
    assert "On the test rows the gap of the predictions cannot be measured." in text
    note = "EqualOpportunity: fewer than two groups have rows in the cell 'all groups | label yes'"
    assert "Note: On the test rows: " in text
    assert note in text
