"""Scores of estimators on dask collections, and columns in another order in some partitions."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained import make_biased_classification
from fairconstrained.dask import FairLogisticClassifier

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")


N_ROWS = 900


@pytest.fixture(scope="module")
def given():
    """A fitted model, and the features, labels and weights that it is scored on."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)
    X, y, groups, weight = (da.from_array(part, chunks=300) for part in (X, y, groups, weight))
    return FairLogisticClassifier().fit(X, y, sensitive_features=groups), X, y, weight


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y.astype(str), r"y has the label '0', which is not among the classes \[0, 1\]"),
        (lambda y: 2 * y - 1, r"y has the label -1, which is not among the classes \[0, 1\]"),
        (lambda y: da.where(da.arange(N_ROWS, chunks=300) == 700, np.nan, y), "y has missing"),
    ],
)
def test_labels_are_those_of_the_fit(given, change, message):
    model, X, y, _ = given
    with pytest.raises(ValueError, match=message):
        model.score(X, change(y))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "sample_weight contains NaN or infinity"),
        (np.inf, "sample_weight contains NaN or infinity"),
        (-1.0, "Negative values in data passed to `sample_weight`"),
    ],
)
def test_weights_are_finite_and_not_negative(given, value, message):
    model, X, y, weight = given
    weight = da.where(da.arange(N_ROWS, chunks=300) == 700, value, weight)
    with pytest.raises(ValueError, match=message):
        model.score(X, y, weight)


def test_weights_may_be_zero_in_a_partition_but_not_in_all(given):
    model, X, y, weight = given
    kept = da.where(da.arange(N_ROWS, chunks=300) < 300, 0.0, weight)
    rows = (part[300:].compute() for part in (X, y, weight))
    assert model.score(X, y, kept) == pytest.approx(model.to_local().score(*rows))
    with pytest.raises(ValueError, match="sample_weight is zero for all of them"):
        model.score(X, y, 0.0 * weight)


def test_rows_in_another_order_are_an_error(given):
    _, X, y, _ = given
    table = pd.DataFrame(X.compute()).add_prefix("x").assign(label=y.compute())
    table.index = pd.Index([f"row {k:03d}" for k in range(N_ROWS)])
    frame = dd.from_pandas(table, npartitions=3)
    features, labels = frame.drop(columns="label"), frame["label"]
    model = FairLogisticClassifier().fit(features, labels, sensitive_features=frame["x0"] > 0.0)
    turned = labels.map_partitions(lambda part: part[::-1])
    with pytest.raises(ValueError, match="X and y have the same row labels in another order"):
        model.score(features, turned)


dask = pytest.importorskip("dask", reason="dask is not installed")
N_OF_TABLE = 600
ROWS, LABELS, MEMBERS = make_biased_classification(N_OF_TABLE, gap=0.3, n_groups=3, random_state=0)


def assert_same_groups_and_fit(there, here):
    assert there.groups_.tolist() == here.groups_.tolist()
    assert there.gap_ == pytest.approx(here.gap_, abs=1e-7)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


def partitions_with_columns(table, orders):
    """Return a dask dataframe whose partitions have these columns; the first names them for all."""
    places = np.array_split(np.arange(N_OF_TABLE), len(orders))
    pairs = zip(places, orders, strict=True)
    parts = [dask.delayed(table.iloc[rows][order]) for rows, order in pairs]
    return dd.from_delayed(parts, meta=table[orders[0]].iloc[:0], verify_meta=False)


def test_columns_of_groups_in_another_order_in_some_partitions():
    old = np.arange(N_OF_TABLE) % 3 == 0
    table = pd.DataFrame({"sex": MEMBERS == 0, "old": old, "other": LABELS == 0})
    here = in_memory_classifier(combine="marginal")
    here.fit(ROWS, LABELS, sensitive_features=table[["sex", "old"]])
    frame = pd.DataFrame(ROWS).add_prefix("x").assign(label=LABELS)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    given = frame.drop(columns="label"), frame["label"]
    there = FairLogisticClassifier(combine="marginal")
    orders = [["sex", "old"], ["old", "sex"], ["sex", "old"]]
    there.fit(*given, sensitive_features=partitions_with_columns(table, orders))
    assert_same_groups_and_fit(there, here)
    orders[1] = ["sex", "other"]
    with pytest.raises(ValueError, match=r"has the columns \['sex', 'other'\], and the groups"):
        there.fit(*given, sensitive_features=partitions_with_columns(table, orders))


def test_columns_that_a_function_returns_in_another_order():
    table, old = pd.DataFrame(ROWS).add_prefix("x"), np.arange(N_OF_TABLE) % 3 == 0
    table = table.assign(sex=MEMBERS == 0, old=old)

    def sensitive(part):
        swapped = len(part) and part.index[0] == N_OF_TABLE // 3
        return part[["old", "sex"] if swapped else ["sex", "old"]]

    options = {"combine": "marginal", "sensitive_columns": sensitive}
    here = in_memory_classifier(**options).fit(table, LABELS)
    frame = table.assign(label=LABELS)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    there = FairLogisticClassifier(**options).fit(frame.drop(columns="label"), frame["label"])
    assert_same_groups_and_fit(there, here)
