"""What the command line refuses, in one line, before anything is fitted."""

import numpy as np
import pytest
from _support.command_line import N_ROWS, asked

from fairconstrained.__main__ import main

OPTIONS = [  # wrong in themselves, with a file or without
    (["--kappa", "2"], "argument --kappa: kappa must be a number between 0 and 1 (the largest gap"),
    (["--kappa", "much"], "argument --kappa: invalid float value: 'much'"),
    (["--constraint", "fairness"], "demographic_parity"),
    (["--target", "income"], "without a file with data, --target cannot be used"),
    (["--control", "band"], "without a file with data, --control cannot be used"),
    (["--positive", "yes", "--sensitive", "sex"], "--positive and --sensitive cannot be used"),
    (["data.csv", "--kappa", "2"], "kappa must be a number between 0 and 1 (the largest gap"),
    (["data.csv", "--kappa", "-1", "--constraint", "group_auc"], "a number between 0 and in"),
    (["data.csv", "--test-size", "2"], "a number between 0 and 1"),
    (["data.csv", "--seed", "-1"], "an integer from 0"),
    (["data.csv", "--kappa", "0.1", "--ratio", "0.8"], "not allowed with argument --kappa"),
    (["data.csv", "--set", "kappa=0.1"], "kappa has an option of its own: --kappa"),
    (["data.csv", "--set", "alpha"], "'alpha' is not NAME=VALUE"),
]


@pytest.mark.cases(len(OPTIONS))
@pytest.mark.parametrize(("arguments", "message"), OPTIONS)
def test_options(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m fairconstrained: ") and message in line
    assert stopped.value.code == 2


WITHOUT_KAPPA = "{}: the constraint {} does not take kappa"
NO_FOLDER, ENDINGS = "in a folder that exists", "the ending must be one of .skops, .joblib"
OF_A_FILE = [  # beside the target, its positive value and the groups; {folder} is that of the file
    (["--set", "alfa=1"], "--set: Invalid parameter 'alfa'"),
    (["--set", "alpha=high"], "alpha"),
    (["--ratio", "0.8", "--constraint", "group_auc"], "group_auc does not take ratio"),
    (["--kappa", "0.1", "--constraint", "disparate_impact"], "set by --ratio"),
    *(
        (["--constraint", name, *option.split()], WITHOUT_KAPPA.format(option, name))
        for name in ("disparate_impact", "minority_rate")
        for option in ("--kappa 0.3", "--path path.png")
    ),
    (["--confidence", "0.9"], "use --enforce decision"),
    (["--drop", "e"], "--drop e: the file has no such column"),
    (["--drop", "group"], "--drop group: the column is also in --sensitive"),
    (["--weight", "kind"], "--weight kind: the column must have numbers"),
    (["--weight", "a"], "--weight a: the column must have numbers >= 0 in all rows"),
    (["--encoding", "latin-9000"], "is not text in latin-9000. Name its encoding"),
    (["--encoding", "ascii"], "is not text in ascii. Name its encoding"),
    (["--report", "{folder}/none/report.html"], NO_FOLDER),
    (["--json", "{folder}"], NO_FOLDER),
    (["--path", "{folder}/picture.xyz"], "the ending must be one of"),
    (["--model", "{folder}/model.foo"], ENDINGS),
    (["--model", "{folder}/model"], ENDINGS),
    (["--json", "{folder}/data.csv"], "this is the file with data too"),
    (["--json", "/proc/x.json"], "--json /proc/x.json cannot be written: "),
    (
        ["--json", "{folder}/s.x", "--report", "{folder}/./s.x"],
        "s.x: this is the file of --report too",
    ),
]


@pytest.mark.cases(len(OF_A_FILE))
@pytest.mark.parametrize(("arguments", "message"), OF_A_FILE)
def test_options_of_a_file(file, table, tmp_path, capsys, arguments, message):
    table.assign(kind="groß").to_csv(file, index=False)
    assert main(asked(file, *(word.format(folder=tmp_path) for word in arguments))) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out


YES = ["--target", "granted", "--positive", "yes", "--sensitive", "group"]
BY_GROUP = ["--target", "granted", "--sensitive", "group"]
COLUMNS = [
    ({}, ["--target", "grant", "--sensitive", "group"], "no such column. It has: a, b, c"),
    ({}, ["--target", "granted", "--sensitive", "sex"], "--sensitive sex: the file has no"),
    ({}, BY_GROUP, "has 2 values (no, yes). Name the favourable one, as --positive no or --pos"),
    ({}, [*BY_GROUP, "--positive", "maybe"], "has only the 2 values (no, yes)"),
    ({"granted": "yes"}, BY_GROUP, "must have two values; it has yes only"),
    (
        {"granted": np.resize(["yes", "no", "perhaps"], N_ROWS)},
        BY_GROUP,
        "has 3 values (no, perhaps, yes). Name the favourable one, as "
        "--positive no or --positive perhaps or --positive yes.",
    ),
    ({}, ["--target", "kind", "--positive", "low", "--sensitive", "name"], "has 580 values"),
    (
        {},
        ["--target", "group", "--sensitive", "group"],
        "--target group: the column is also in --sensitive",
    ),
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
    assert main([file, *arguments]) == 1
    assert message in capsys.readouterr().err


TEXTS = [
    ("", "data.csv is empty"),
    ("\n\n", "data.csv is empty"),
    ("group,granted\n", "data.csv has no rows"),
    ("granted\nyes\nno\n", "--sensitive group: the file has no such column. It has: granted."),
    ('granted,"a\nyes,1\n', "cannot be read as CSV or Parquet"),
    ("a,b,a,b,group,granted\n1,2,3,4,x,yes\n", "several columns of the name a, b: give"),
]


@pytest.mark.cases(len(TEXTS))
@pytest.mark.parametrize(("text", "message"), TEXTS)
def test_files_of_text(file, tmp_path, capsys, text, message):
    with open(file, "w") as stream:
        stream.write(text)
    assert main(asked(file)) == 1
    assert message in capsys.readouterr().err


def test_files_that_cannot_be_read(tmp_path, capsys):
    missing, broken = str(tmp_path / "none.csv"), tmp_path / "broken.parquet"
    broken.write_text("no parquet")
    for path, message in (
        (missing, f"There is no file {missing}:"),
        (str(broken), "cannot be read as CSV or Parquet"),
    ):
        assert main(asked(path)) == 1
        assert message in capsys.readouterr().err
