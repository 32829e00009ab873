"""Sensitive columns that the model does not use may be absent where it predicts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.classifiers import EVERY
from numpy.testing import assert_array_equal

from fairconstrained import (
    FairLogisticClassifier,
    fairness_path,
    fairness_report,
    make_biased_classification,
)

FEATURES = list("abc")


@pytest.fixture(scope="module")
def table():
    """Return three features between two sensitive columns, and the labels."""
    X, y, groups = make_biased_classification(400, 3, gap=0.3, random_state=0)
    frame = pd.DataFrame(X, columns=FEATURES)
    frame.insert(1, "sex", np.where(groups > 0, "m", "f"))
    return frame.assign(age=np.where(np.arange(400) % 3, "young", "old")), y


@pytest.mark.parametrize("name", EVERY)
def test_every_classifier_predicts_without_them(table, name):
    X, y = table
    clf = EVERY[name](sensitive_columns=["sex", "age"]).fit(X, y)
    for columns in (FEATURES, ["a", "sex", "b", "c"], ["a", "b", "c", "age"]):
        assert_array_equal(clf.decision_function(X[columns]), clf.decision_function(X))
        assert_array_equal(clf.predict(X[columns]), clf.predict(X))


@pytest.mark.parametrize("name", EVERY)
def test_arrays_without_them(table, name):
    X, y = table
    numbers = X.assign(sex=X["sex"] == "m").drop(columns="age").to_numpy(dtype=float)
    clf = EVERY[name](sensitive_columns=[1]).fit(numbers, y)
    assert_array_equal(clf.predict(numbers[:, [0, 2, 3]]), clf.predict(numbers))
    sparse = sp.csr_array(numbers[:, [0, 2, 3]])
    assert_array_equal(clf.predict(sparse), clf.predict(numbers))


@pytest.mark.parametrize("columns", [["a", "b"], ["b", "a", "c"], ["a", "b", "d"], ["a", "sex"]])
def test_other_columns_that_are_absent_or_in_another_order_are_errors(table, columns):
    X, y = table
    clf = FairLogisticClassifier(sensitive_columns=["sex", "age"]).fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(X.assign(d=1.0)[columns])


def test_a_feature_too_few_is_an_error(table):
    X, y = table
    numbers = X.assign(sex=X["sex"] == "m", age=X["age"] == "old").to_numpy(dtype=float)
    clf = FairLogisticClassifier(sensitive_columns=[1, 4]).fit(numbers, y)
    with pytest.raises(ValueError, match="2 features"):
        clf.predict(np.zeros((3, 2)))


def test_fit_needs_them(table):
    X, y = table
    with pytest.raises(ValueError, match="X has no column 'sex'"):
        FairLogisticClassifier(sensitive_columns=["sex", "age"]).fit(X[FEATURES], y)


@pytest.mark.parametrize("options", [{"group_interactions": True}, {"use_sensitive": True}])
def test_a_model_that_uses_them_needs_them(table, options):
    X, y = table
    X = X.assign(sex=(X["sex"] == "m").astype(float)).drop(columns="age")
    clf = FairLogisticClassifier(sensitive_columns=["sex"], **options).fit(X, y)
    with pytest.raises(ValueError, match=r"which X does not have here|feature names"):
        clf.predict(X[FEATURES])


def test_reports_need_the_groups_in_one_way_or_the_other(table):
    X, y = table
    clf = FairLogisticClassifier(sensitive_columns=["sex"]).fit(X.drop(columns="age"), y)
    whole = fairness_report(clf, X.drop(columns="age"), y)
    given = fairness_report(clf, X[FEATURES], y, X["sex"])
    pd.testing.assert_frame_equal(whole.to_frame("gaps"), given.to_frame("gaps"))
    with pytest.raises(ValueError, match="which X does not have here"):
        fairness_report(clf, X[FEATURES], y)


def test_a_feature_that_is_absent_is_named_and_not_the_groups(table):
    X, y = table
    clf = FairLogisticClassifier(sensitive_columns=["sex"]).fit(X.drop(columns="age"), y)
    with pytest.raises(ValueError, match=r"now missing:\s+- b"):
        fairness_report(clf, X[["a", "sex", "c"]], y)
    with pytest.raises(ValueError, match="it has no column 'sex'"):
        fairness_report(clf, X[["a", "b", "c"]], y)


@pytest.mark.parametrize(
    ("absent", "message"), [("b", r"now missing:\s+- b"), ("sex", "it has no column 'sex'")]
)
def test_a_dask_partition_without_a_column(table, absent, message):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    X, y = table
    X = X.drop(columns="age")
    halves = X[:200], X[200:].drop(columns=absent)
    parts = [dask.delayed(half) for half in halves]
    frame = dd.from_delayed(parts, meta=X[:0], verify_meta=False)
    labels = dd.from_delayed([dask.delayed(pd.Series(one)) for one in (y[:200], y[200:])])
    with pytest.raises(ValueError, match=message):
        DaskClassifier(sensitive_columns=["sex"]).fit(frame, labels)


def test_validation_rows_of_a_path_have_groups_in_one_way_or_the_other(table):
    X, y = table
    X = X.drop(columns="age")
    clf = FairLogisticClassifier(sensitive_columns=["sex"])
    whole = fairness_path(clf, X, y, kappas=[0.05], X_val=X, y_val=y)
    given = {"X_val": X[FEATURES], "y_val": y}
    path = fairness_path(clf, X, y, kappas=[0.05], sensitive_features_val=X["sex"], **given)
    assert path.validation == whole.validation
    with pytest.raises(ValueError, match="which X does not have here"):
        fairness_path(clf, X, y, kappas=[0.05], **given)


def test_dask(table):
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as DaskClassifier

    X, y = table
    frame = dd.from_pandas(X.assign(label=y), npartitions=2)
    clf = DaskClassifier(sensitive_columns=["sex", "age"])
    clf.fit(frame[X.columns.tolist()], frame["label"])
    whole = clf.predict(frame[X.columns.tolist()]).compute()
    assert_array_equal(clf.predict(frame[FEATURES]).compute(), whole)
