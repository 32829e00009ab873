"""Options that need more than one read of the rows: shares, group interactions, bounds."""

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained import SelectionRate, make_biased_classification
from fairconstrained.dask import FairLogisticClassifier

da = pytest.importorskip("dask.array", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")


OPTIONS = {
    "a share": {"threshold": SelectionRate(0.2)},
    "a share, parity of errors": {"threshold": SelectionRate(0.6), "constraint": "equalized_odds"},
    "a share, ROC": {
        "threshold": SelectionRate(0.3),
        "constraint": "roc_parity",
        "tol": 1e-8,  # paths differ by rounding, and end as near as this
    },
    "a share of predictions": {"threshold": SelectionRate(0.3), "enforce": "decision"},
    "interactions": {"group_interactions": True, "sensitive_columns": [0]},
    "interactions and features": {
        "group_interactions": True,
        "sensitive_columns": [0],
        "use_sensitive": True,
        "constraint": "equalized_odds",
    },
    "interactions and a share": {
        "group_interactions": True,
        "sensitive_columns": [0],
        "threshold": SelectionRate(0.4),
    },
    "interactions of predictions": {
        "group_interactions": True,
        "sensitive_columns": [0],
        "enforce": "decision",
    },
}


X, Y, GROUPS = make_biased_classification(2500, gap=0.3, n_groups=3, random_state=0)
weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
DATA = X, Y, GROUPS = (np.column_stack([GROUPS, X]), np.asarray(Y), weight)


@pytest.mark.parametrize("value", ["yes", 1, None, [True]])
def test_disk_is_a_switch(value):
    X, y, _ = (da.from_array(one, chunks=len(one)) for one in DATA)
    clf = FairLogisticClassifier(sensitive_columns=[0])
    clf.disk = value
    with pytest.raises(ValueError, match="disk must be True, False or 'auto'"):
        clf.fit(X, y)


def fitted(kind, options, X, y, weight):
    given = {"constraint": "demographic_parity", "kappa": 0.05, **options}
    sensitive = {} if "sensitive_columns" in given else {"sensitive_features": X[:, 0]}
    return kind(**given).fit(X, y, weight, **sensitive)


def both(rows, options):
    """Return the fits of the same rows, of collections and in memory."""
    parts = [da.from_array(values, chunks=700) for values in rows]
    here = fitted(in_memory_classifier, options, *rows)
    return fitted(FairLogisticClassifier, options, *parts), here


def assert_same(there, here, X):
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-6)
    assert there.threshold_ == pytest.approx(here.threshold_, abs=1e-7)
    dX = da.from_array(X, chunks=900)
    np.testing.assert_array_equal(there.predict(dX).compute(), here.predict(X))


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_the_solution_is_that_of_the_rows_in_memory(name):
    there, here = both(DATA, OPTIONS[name])
    if "enforce" in OPTIONS[name]:
        assert there.decision_search_.met
        assert there.decision_gap_ <= 0.05 + 1e-9
        assert there.score(*map(da.from_array, DATA)) == pytest.approx(here.score(*DATA), abs=0.01)
    else:
        assert_same(there, here, DATA[0])
        assert there.result_.data_passes == here.result_.data_passes
    rate = OPTIONS[name].get("threshold")
    if rate is not None:
        X, _, weight = DATA
        selected = weight @ (there.predict(da.from_array(X)).compute() == there.pos_label_)
        assert selected / weight.sum() == pytest.approx(rate.rate, abs=0.02 * rate.rate)


on_dask = pytest.importorskip("fairconstrained.dask", reason="dask is not installed")
ROWS, LABELS, MEMBERS = make_biased_classification(900, 4, gap=0.4, random_state=0)
