"""Integers in sensitive_columns are positions; an X in which they are labels as well is refused."""

import numpy as np
import pandas as pd
import pytest
from _support.gaps import demographic_parity_difference

from fairconstrained import FairLogisticClassifier
from fairconstrained.model_selection import make_fairness_scorer

LABELS = [10, 0, 1, 2]
MEANINGS = (
    r"sensitive_columns: 2 has two meanings\. It may be the column at position 2 of X, whose label "
    r"is 1, or the column with the label 2, which is at position 3\. Make the labels strings, "
    r"`X\.columns = X\.columns\.astype\(str\)`, and pass the name of the column: '1' or '2'\.$"
)


@pytest.fixture(scope="module")
def rows():
    """Return a table of two features and two attributes, and the labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 2:] = X[:, 2:] > 0.0
    return X, (X[:, 0] + X[:, 3] + rng.logistic(size=200) > 0.5).astype(int)


def named(X, labels=LABELS):
    return pd.DataFrame(X, columns=labels)


@pytest.mark.parametrize("columns", [2, [2], np.array([2]), pd.Index([2])], ids=str)
@pytest.mark.parametrize("use_sensitive", [False, True])
def test_a_label_at_another_position(rows, columns, use_sensitive):
    X, y = rows
    clf = FairLogisticClassifier(sensitive_columns=columns, use_sensitive=use_sensitive)
    with pytest.raises(ValueError, match=MEANINGS):
        clf.fit(named(X), y)


def test_what_the_message_says_to_do(rows):
    X, y = rows
    frame = named(X)
    frame.columns = frame.columns.astype(str)
    for name, position in (("1", 2), ("2", 3)):
        clf = FairLogisticClassifier(sensitive_columns=[name]).fit(frame, y)
        p = clf.predict_proba(frame)[:, 1]
        inside = X[:, position] > 0.0
        assert clf.gap_ == pytest.approx(abs(p[inside].mean() - p[~inside].mean()))


@pytest.mark.parametrize(
    ("labels", "column"), [(range(4), 2), (LABELS, -1), ([10, 0, 3, 2], 1), (list("abcd"), 2)]
)
def test_positions_that_are_no_other_label(rows, labels, column):
    X, y = rows
    X = X.copy()
    X[:, column] = X[:, 3]
    frame = named(X, list(labels))
    clf = FairLogisticClassifier(sensitive_columns=[column]).fit(frame, y)
    expected = FairLogisticClassifier(sensitive_columns=[column]).fit(X, y)
    assert clf.predict_proba(frame) == pytest.approx(expected.predict_proba(X))


def test_negative_positions(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"-1 has two meanings\..* -1, which is at position 0\."):
        FairLogisticClassifier(sensitive_columns=[-1]).fit(named(X, [-1, 0, 1, 2]), y)


def test_scorers(rows):
    X, y = rows
    clf = FairLogisticClassifier(sensitive_columns=["2"])
    clf.fit(named(X, list(map(str, LABELS))), y)
    scorer = make_fairness_scorer(
        demographic_parity_difference, greater_is_better=False, sensitive_columns=[2]
    )
    with pytest.raises(ValueError, match=MEANINGS):
        scorer(clf, named(X), y)
