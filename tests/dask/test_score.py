"""The score of estimators on dask collections checks labels and weights."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import make_biased_classification

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

from fairconstrained.dask import FairLogisticClassifier  # noqa: E402

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


def test_a_partition_without_rows_is_scored(given):
    model, X, y, weight = given
    empty = [da.concatenate([part[:300], part[:0], part[300:]]) for part in (X, y, weight)]
    assert model.score(*empty) == pytest.approx(model.score(X, y, weight))


def test_rows_in_another_order_are_an_error(given):
    _, X, y, _ = given
    table = pd.DataFrame(X.compute()).add_prefix("x").assign(label=y.compute())
    table.index = pd.Index([f"row {k:03d}" for k in range(N_ROWS)])
    frame = dd.from_pandas(table, npartitions=3)
    features, labels = frame.drop(columns="label"), frame["label"]
    model = FairLogisticClassifier()
    model.fit(features, labels, sensitive_features=frame["x0"] > 0.0)
    turned = labels.map_partitions(lambda part: part[::-1])
    with pytest.raises(ValueError, match="X and y have the same row labels in another order"):
        model.score(features, turned)
