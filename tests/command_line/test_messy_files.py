"""Files as spreadsheets and colleagues write them; labels and columns keep their meaning."""

import errno
import json
import os
import sys
from decimal import Decimal
from io import BytesIO, TextIOWrapper

import joblib
import numpy as np
import pandas as pd
import pytest
from _support.command_line import N_ROWS, asked, printed_table, table_of_a_user

from fairconstrained.__main__ import main, print_text

RANDOM = np.random.default_rng(0).permutation(900_000)[:N_ROWS]
DAYS = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N_ROWS) % 200, unit="D")


def run(capsys, table, path, *more, **options):
    table.to_csv(path, **{"index": False} | options)
    assert main(asked(str(path), *map(str, more))) == 0
    return capsys.readouterr().out


ENCODINGS = [
    ("utf-8-sig", [], "utf-8"),
    ("utf-16", [], "utf-16"),
    ("cp1252", [], "cp1252"),
    ("cp850", ["--encoding", "cp850"], "cp850"),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("written", "given", "read"), ENCODINGS)
def test_encodings(table, tmp_path, capsys, written, given, read):
    table["größe"] = table["kind"].replace("high", "groß")
    model = tmp_path / "model.joblib"
    text = run(capsys, table, tmp_path / "data.csv", "--model", model, *given, encoding=written)
    assert f"Read as {read} text with the separator ','." in text
    assert "4 numeric and 2 categorical features" in text
    joblib.load(model).predict(table)  # the names are those that were written


def test_characters_that_a_console_lacks(monkeypatch):
    monkeypatch.setattr("sys.stdout", TextIOWrapper(console := BytesIO(), "cp1252"))
    print_text("groß 日")
    assert console.getvalue() == b"gro\xdf \\u65e5\n"


def test_decimal_commas(table, tmp_path, capsys):
    table["amount"] = [f"{k // 7}.{k:03},50" for k in range(1, N_ROWS + 1)]
    table["d"] *= 1e-6  # written as 1,5e-06
    path = tmp_path / "data.csv"
    text = run(capsys, table, path, "--weight", "amount", sep=";", decimal=",")
    assert "Numbers with a decimal comma: a, b, c, d, amount." in text
    path.write_text("sep=;\n" + path.read_text())  # as Excel marks files
    assert main(asked(str(path), "--weight", "amount")) == 0
    assert "Numbers with a decimal comma: a, b, c, d, amount." in capsys.readouterr().out
    plain = table.assign(amount=[1000.0 * (k // 7) + k + 0.5 for k in range(1, N_ROWS + 1)])
    again = run(capsys, plain, path, "--weight", "amount")
    assert printed_table(text) == printed_table(again)


@pytest.mark.parametrize(("mark", "said"), [(".", "dots"), (",", "commas")])
def test_thousands(table, tmp_path, capsys, mark, said):
    plain = table.assign(income=RANDOM % 5000, wealth=RANDOM, share=np.arange(N_ROWS) / 1000)
    marked = {k: plain[k].map("{:,}".format).str.replace(",", mark) for k in ("income", "wealth")}
    sep = ";" if mark == "." else ","
    text = run(capsys, plain.assign(**marked), tmp_path / "marked.csv", sep=sep)
    assert f"Numbers with {said} between thousands: income, wealth." in text
    again = run(capsys, plain, tmp_path / "plain.csv")
    assert "thousands" not in again
    figures = [[k for k in one.splitlines() if "test" in k.split()[1:2]] for one in (text, again)]
    assert len(figures[0]) == 2 and figures[0] == figures[1]


def test_columns_that_are_left_out_are_named(table, tmp_path, capsys):
    table = table.assign(
        number=np.arange(N_ROWS), account=10**6 + RANDOM, wealth=RANDOM,
        blank=np.nan, day=DAYS, born=DAYS.strftime("%d.%m.%Y"),
        age=np.resize(["18-25", "10-12", "1/2"], N_ROWS),  # ranges, no dates
        e=np.resize(["1", "?", "2.5"], N_ROWS), rate=np.resize(["7.5%", "12%"], N_ROWS),
        paid=[f"-$ {k:,}.50" for k in range(N_ROWS)], spent=[f"{k},5 €" for k in range(N_ROWS)],
    )  # fmt: skip
    table.loc[:9, "granted"] = "?"
    text = run(capsys, table, tmp_path / "data.csv", "--drop", "c", "--drop", "d", index=True)
    assert "4 numeric and 2 categorical features" in text
    assert "decimal comma" not in text and "thousands" not in text
    assert "Left out: 10 rows without a target." in text
    for line in (
        "the file gives them no name: Unnamed: 0",
        "every row has another value: number, account",
        "they are empty: blank",
        "almost every row has another text: name",
        "they are numbers with a unit, such as % or $: write them as numbers: rate, paid, spent",
        "they are dates, which models take as numbers only, such as ages or durations: day, born",
    ):
        assert f"Left out, since {line}." in text


@pytest.mark.cases(1)
@pytest.mark.parametrize(("before", "after"), [("row {},", ""), ("", ",")])
def test_rows_longer_than_the_names(table, tmp_path, capsys, before, after):
    path = tmp_path / "data.csv"
    table = table.drop(columns="name")
    text = run(capsys, table, path)
    names, *rows = path.read_text().splitlines()
    longer = [before.format(k) + row + after for k, row in enumerate(rows)]
    path.write_text("\n".join([names, *longer]))
    assert main(asked(str(path))) == 0
    end = capsys.readouterr().out.partition("On the test rows")[2]
    assert end == text.partition("On the test rows")[2] != ""


def test_one_value_against_the_rest(table, tmp_path, capsys):
    table.loc[:99, "granted"] = "perhaps"
    path, model = tmp_path / "data.csv", tmp_path / "model.joblib"
    text = run(capsys, table, path, "--model", str(model))
    assert "The model's labels are 'yes' and 'not yes'." in text
    assert set(joblib.load(model).predict(table)) == {"yes", "not yes"}


COLUMNS = [([], False), (["use_sensitive=True"], True), (["group_interactions=True"], True)]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("parameters", "needed"), COLUMNS)
def test_the_columns_that_the_model_asks_for(table, tmp_path, capsys, parameters, needed):
    model = tmp_path / "model.joblib"
    more = ["--set", *parameters] if parameters else []
    text = run(capsys, table, tmp_path / "data.csv", "--model", str(model), *more)
    assert ("The models do not use group." in text) is not needed
    fitted, without = joblib.load(model), table.drop(columns="group")
    assert np.array_equal(fitted.predict(table), fitted.predict(table_of_a_user()))
    if needed:
        with pytest.raises(ValueError, match="group"):
            fitted.predict(without)
    else:
        assert np.array_equal(fitted.predict(table), fitted.predict(without))


def test_parameters(table, tmp_path, capsys):
    model = tmp_path / "model.joblib"
    table["old"] = np.resize([0, 0, 1], N_ROWS)
    settings = ["alpha=0.5", "solver=smoothing", "class_weight={'yes': 2.0}"]
    settings += ["constraint__against=overall"]
    more = ["--sensitive", "old", "--combine", "marginal", "--ratio", "0.7", "--set", *settings]
    text = run(capsys, table, tmp_path / "data.csv", *more, "--model", str(model))
    assert "demographic parity with ratio = 0.7" in text and "group=x (" in text
    classifier = joblib.load(model)[-1]
    assert (classifier.alpha, classifier.solver) == (0.5, "smoothing")
    assert classifier.class_weight == {"yes": 2.0} and classifier.combine == "marginal"
    assert (classifier.constraint.ratio, classifier.constraint.against) == (0.7, "overall")


def test_notes_are_in_options(file, capsys):
    assert main(asked(file, "--set", "max_iter=1", "--kappa", "0.01")) == 0
    text = capsys.readouterr().out
    assert "Raise --set max_iter=VALUE or --set tol=VALUE" in text
    assert "--set solver=auto may need" in text


def test_confidence_is_that_of_the_bound_and_of_the_intervals(file, capsys):
    more = ["--enforce", "decision", "--confidence", "0.9", "--kappa", "0.4"]
    assert main(asked(file, *more)) == 0
    text = capsys.readouterr().out
    assert text.startswith("Bound met with 90% confidence, for predictions in the population.")
    assert "with 90% confidence)" in text and "95%" not in text


def test_parquet_needs_pyarrow(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(asked(str(tmp_path / "data.parquet"))) == 1
    assert "Install it with: pip install pyarrow" in capsys.readouterr().err


N_SMALL = 300


@pytest.fixture
def small_table(table):
    return table.loc[: N_SMALL - 1, ["a", "b", "group", "granted"]].copy()


def figures(tmp_path, small_table, *more):
    """Return what is written as JSON."""
    small_table.to_csv(tmp_path / "data.csv", index=False)
    arguments = asked(str(tmp_path / "data.csv"), "--json", str(tmp_path / "out.json"), *more)
    assert main(arguments) == 0
    return json.loads((tmp_path / "out.json").read_text())


def test_kinds_of_columns_of_parquet(small_table, tmp_path, capsys):
    for dtype in ("boolean", "Int64"):
        small_table[dtype] = pd.array(np.resize([1, 0, None], N_SMALL), dtype=dtype)
    small_table["flag"] = np.resize(np.array([True, False, None], dtype=object), N_SMALL)
    small_table["amount"] = [Decimal(k % 7) / 4 for k in range(N_SMALL)]
    small_table["tags"] = [["u", "v"]] * N_SMALL
    small_table["spent"] = pd.to_timedelta(np.arange(N_SMALL) % 3, unit="h")
    small_table.to_parquet(tmp_path / "data.parquet")
    assert main(asked(str(tmp_path / "data.parquet"))) == 0
    text = capsys.readouterr().out
    assert "6 numeric and 0 categorical features" in text
    assert "Left out, since their values are neither numbers nor text: tags, spent." in text


def test_groups_of_whole_numbers_have_no_decimal_point(small_table, tmp_path):
    small_table["group"] = small_table["group"].map({"x": 1.0, "y": 2.0})
    small_table.loc[:9, "group"] = np.nan
    written = figures(tmp_path, small_table, "--reference", "group=1.0")
    assert written["groups"] == ["1", "2", "missing"]


def test_missing_groups_and_rows_of_no_weight_are_told(small_table, tmp_path, capsys):
    small_table.loc[::2, "group"] += " "
    small_table.loc[:9, "group"] = " "
    small_table.loc[[20, 21], "group"] = "None"
    small_table["w"] = np.arange(N_SMALL) % 50 > 0
    text = run(capsys, small_table.astype({"w": int}), tmp_path / "w.csv", "--weight", "w")
    assert "'None' is read as missing in group: rename" in text
    assert f"Left out: {N_SMALL // 50} rows of weight 0." in text
    written = figures(tmp_path, small_table, "--reference", "group=x")
    assert written["groups"] == ["missing", "x", "y"]


def test_rates_are_those_of_the_groups_named(small_table, tmp_path, capsys):
    """One row each of two more groups: as many groups on both sides, and not the same ones."""
    small_table.loc[:1, "group"] = ["c", "d"]
    for seed in range(20):
        written = figures(tmp_path, small_table, "--test-size", "0.5", "--seed", str(seed))
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


def test_nothing_to_compare_on_the_test_rows(small_table, tmp_path, capsys):
    few = np.flatnonzero((small_table["group"] == "y") & (small_table["granted"] == "yes"))
    small_table = small_table.drop(index=few[2:])
    for seed in range(20):
        options = ["--constraint", "equal_opportunity", "--seed", str(seed), "--test-size", "0.1"]
        written = figures(tmp_path, small_table, *options)
        training, test = (written[rows]["constraints"][-1] for rows in ("training", "test"))
        text = capsys.readouterr().out
        if test["decisions"] is None:
            break
    else:
        pytest.fail("no seed leaves the group without positive test rows")
    assert training["decisions"] is not None
    assert "fewer than two groups have rows in the cell 'all groups | label yes'" in text


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
    assert f"The favourable label is granted = {favourable}: rows with this prediction" in page


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
