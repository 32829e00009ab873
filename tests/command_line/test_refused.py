"""What the command line refuses, in one line, before anything is fitted."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from _support.command_line import N_ROWS, asked

from fairconstrained.__main__ import main

REFUSED = json.loads(Path(__file__).with_name("refused.json").read_text(encoding="utf-8"))
OPTIONS, OF_A_FILE, TEXTS = REFUSED.values()


@pytest.mark.cases(len(OPTIONS))
@pytest.mark.parametrize(("arguments", "message"), OPTIONS)
def test_options(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m fairconstrained: ") and message in line
    assert stopped.value.code == 2


@pytest.mark.cases(len(OF_A_FILE))
@pytest.mark.parametrize(("arguments", "message"), OF_A_FILE)
def test_options_of_a_file(file, table, tmp_path, capsys, arguments, message):
    table.assign(kind="groß").to_csv(file, index=False)
    assert main(asked(file, *(word.format(folder=tmp_path) for word in arguments))) == 1
    out, err = capsys.readouterr()
    assert message in err and not out


YES = ["--target", "granted", "--positive", "yes", "--sensitive", "group"]
BY_GROUP = ["--target", "granted", "--sensitive", "group"]
THREE, TWICE = ({"granted": np.resize(["yes", "no", one], N_ROWS)} for one in ("perhaps", "Yes"))
COLUMNS = [
    ({}, ["--target", "grant", "--sensitive", "group"], "no such column. It has: a, b, c"),
    ({}, ["--target", "granted", "--sensitive", "sex"], "--sensitive sex: the file has no"),
    ({}, BY_GROUP, "has 2 values (no, yes). Name the favourable one, as --positive no or --pos"),
    ({}, [*BY_GROUP, "--positive", "maybe"], "has only the 2 values (no, yes)"),
    ({"granted": "yes"}, BY_GROUP, "must have two values; it has yes only"),
    ({"granted": np.nan}, BY_GROUP, "must have two values; it has missing values only"),
    (TWICE, [*BY_GROUP, "--positive", "yes"], "granted has Yes and yes. Are they the same"),
    (THREE, BY_GROUP, "has 3 values (no, perhaps, yes). Name the favourable one, as --positive no"),
    ({}, ["--target", "kind", "--positive", "low", "--sensitive", "name"], "has 580 values"),
    ({}, ["--target", "group", "--sensitive", "group"], "group: the column is also in --sens"),
    ({}, ["--sensitive", "group"], "Name the column to predict with --target"),
    ({"group": "x"}, YES, "all rows are in one group"),
    ({}, [*YES, "group"], "--sensitive group: the column is also in --sensitive"),
    ({"a": np.inf}, YES, "columns a have infinite values. Replace these in the file, or leave"),
    ({"granted": ["yes"] + ["no"] * (N_ROWS - 1)}, YES, "its 600 rows cannot be split"),
    ({" a": 1.0}, YES, "several columns of the name a: give every column"),
]


@pytest.mark.cases(len(COLUMNS))
@pytest.mark.parametrize(("change", "arguments", "message"), COLUMNS)
def test_columns(file, table, capsys, change, arguments, message):
    table.assign(**change).to_csv(file, index=False)
    assert main([file, *arguments]) == 1 and message in capsys.readouterr().err


@pytest.mark.cases(len(TEXTS))
@pytest.mark.parametrize(("text", "message"), TEXTS)
def test_files_of_text(file, tmp_path, capsys, text, message):
    Path(file).write_text(text)
    assert main(asked(file)) == 1
    assert message in capsys.readouterr().err


def test_files_that_cannot_be_read(tmp_path, capsys):
    missing, broken = str(tmp_path / "none.csv"), tmp_path / "broken.parquet"
    broken.write_text("no parquet")
    (cut := tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9])
    assert main(asked(missing)) == 1
    assert f"There is no file {missing}:" in capsys.readouterr().err
    for path in (broken, cut):
        assert main(asked(str(path))) == 1
        assert f"{path} cannot be read as CSV or Parquet" in capsys.readouterr().err
