"""Groups of rows in dask collections: columns of one name, and columns in another order."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained import make_biased_classification

dask = pytest.importorskip("dask", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

from fairconstrained.dask import FairLogisticClassifier  # noqa: E402

N_ROWS = 1500


@pytest.fixture(scope="module")
def rows():
    """Rows in memory: features, labels and groups."""
    return make_biased_classification(N_ROWS, gap=0.3, n_groups=3, random_state=0)


def assert_same_groups_and_fit(there, here):
    assert there.groups_.tolist() == here.groups_.tolist()
    assert there.gap_ == pytest.approx(here.gap_, abs=1e-7)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


def partitions_with_columns(table, orders):
    """Return a dask dataframe whose partitions have these columns; the first names them for all."""
    places = np.array_split(np.arange(N_ROWS), len(orders))
    parts = [
        dask.delayed(table.iloc[rows][order]) for rows, order in zip(places, orders, strict=True)
    ]
    return dd.from_delayed(parts, meta=table[orders[0]].iloc[:0], verify_meta=False)


def test_columns_of_groups_in_another_order_in_some_partitions(rows):
    X, y, groups = rows
    table = pd.DataFrame({"sex": groups == 0, "old": np.arange(N_ROWS) % 3 == 0, "other": y == 0})
    here = in_memory_classifier(combine="marginal")
    here.fit(X, y, sensitive_features=table[["sex", "old"]])
    frame = pd.DataFrame(X).add_prefix("x").assign(label=y)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    given = frame.drop(columns="label"), frame["label"]
    there = FairLogisticClassifier(combine="marginal")
    orders = [["sex", "old"], ["old", "sex"], ["sex", "old"]]
    there.fit(*given, sensitive_features=partitions_with_columns(table, orders))
    assert_same_groups_and_fit(there, here)
    orders[1] = ["sex", "other"]
    with pytest.raises(ValueError, match=r"has the columns \['sex', 'other'\], and the groups"):
        there.fit(*given, sensitive_features=partitions_with_columns(table, orders))


def test_columns_that_a_function_returns_in_another_order(rows):
    X, y, groups = rows
    table = pd.DataFrame(X).add_prefix("x").assign(sex=groups == 0, old=np.arange(N_ROWS) % 3 == 0)

    def sensitive(part):
        swapped = len(part) and part.index[0] == N_ROWS // 3
        return part[["old", "sex"] if swapped else ["sex", "old"]]

    options = {"combine": "marginal", "sensitive_columns": sensitive}
    here = in_memory_classifier(**options).fit(table, y)
    frame = table.assign(label=y)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    there = FairLogisticClassifier(**options)
    there.fit(frame.drop(columns="label"), frame["label"])
    assert_same_groups_and_fit(there, here)
