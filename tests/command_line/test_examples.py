"""The first run prints what it claims."""

import pandas as pd
from sklearn.datasets import load_diabetes

from fairconstrained.__main__ import _EXAMPLE, main

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
