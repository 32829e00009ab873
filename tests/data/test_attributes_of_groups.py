"""Errors of sensitive attributes say where they are: rows of several lengths, repeated names."""

import numpy as np
import pandas as pd
import pytest
from _support.every_estimator import MODELS, WITHOUT_GROUPS, arguments, generated_rows, needed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    compare,
    fairness_path,
    fairness_report,
    metrics,
)
from fairconstrained.data.groups import Groups
from fairconstrained.plotting import GroupRateDisplay

ROWS = generated_rows()
X, Y, GIVEN = ROWS[False]
MODEL = LogisticRegression().fit(X, Y)


def ragged(n):
    rows = [("a", "x"), ("b", "y")] * (n // 2)
    return [*rows[:7], ("b",), *rows[8:]]


def repeated(n):
    return pd.DataFrame(np.arange(2 * n).reshape(n, 2) % 2, columns=["sex", "sex"])


WRONG = {
    "ragged tuples": (ragged, r"row 0 has 2, \('a', 'x'\), and row 7 has 1, \('b',\)"),
    "ragged series": (lambda n: pd.Series(ragged(n)), r"row 7 has 1, \('b',\)"),
    "a repeated name": (repeated, "2 columns of the name 'sex', at the positions 0, 1"),
}
DOORS = {
    "path": lambda groups: fairness_path(FairLogisticClassifier(), X, Y, sensitive_features=groups),
    "report": lambda groups: fairness_report(MODEL, X, Y, sensitive_features=groups),
    "comparison": lambda groups: compare({"a": MODEL}, X, Y, sensitive_features=groups),
    "metric": lambda groups: metrics.group_rates(Y, Y, sensitive_features=groups),
    "display": lambda groups: GroupRateDisplay.from_predictions(
        Y, X[:, 0], sensitive_features=groups
    ),
}


@pytest.mark.parametrize("name", sorted(MODELS.keys() - WITHOUT_GROUPS))
@pytest.mark.parametrize("kind", WRONG)
def test_every_estimator(name, kind):
    needed(name)
    features, y, given = arguments(name, ROWS)
    make, message = WRONG[kind]
    given["sensitive_features"] = make(len(y))
    with pytest.raises(ValueError, match=f"^sensitive_features has .*{message}"):
        clone(MODELS[name]).fit(features, y, **given)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", WRONG)
def test_every_door(door, kind):
    make, message = WRONG[kind]
    with pytest.raises(ValueError, match=f"^sensitive_features has .*{message}"):
        DOORS[door](make(len(Y)))


@pytest.mark.parametrize("door", DOORS)
def test_groups_that_are_encoded_are_taken_as_they_are(door):
    if door == "display":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    DOORS[door](Groups.encode(GIVEN["sensitive_features"]))


def test_dask_collections():
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as OnDask

    frames = (pd.DataFrame(X).add_prefix("x"), pd.Series(Y), repeated(len(Y)))
    features, y, groups = (dd.from_pandas(one, npartitions=2) for one in frames)
    with pytest.raises(ValueError, match="2 columns of the name 'sex'"):
        OnDask().fit(features, y, sensitive_features=groups)


@pytest.mark.parametrize("columns", [["s", "s"], [0, "s"], [0, 0], [0, -11]])
def test_a_column_of_x_that_is_named_twice(columns):
    table = pd.DataFrame(np.column_stack([GIVEN["sensitive_features"], X])).add_prefix("x")
    table = table.rename(columns={"x0": "s"})
    for model in (FairLogisticClassifier(), FairThresholds(LogisticRegression())):
        with pytest.raises(ValueError, match="sensitive_columns names a column of X twice"):
            model.set_params(sensitive_columns=columns).fit(table, Y)


def test_one_threshold_has_its_own_name():
    clf = FairThresholds(LogisticRegression(), cv="prefit").set_params(estimator=MODEL)
    clf.fit(X, Y, **GIVEN)
    with pytest.raises(AttributeError, match=r"With one threshold for all rows it is threshold_\."):
        clf.thresholds_  # noqa: B018
