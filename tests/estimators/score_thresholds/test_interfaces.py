"""FairThresholds: columns, arguments, and scikit-learn's interfaces."""

import numpy as np
import pandas as pd
import pytest
from _support.gaps import demographic_parity_difference
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairLogisticClassifier, FairThresholds, make_biased_classification


def frame(data):
    X, y, groups = data
    table = pd.DataFrame(X, columns=list("pqrs"))
    return table.assign(sex=groups, area=np.where(X[:, 0] > 0, "north", "south")), y


@pytest.mark.parametrize("use_sensitive", [False, True])
def test_groups_in_columns(use_sensitive, data):
    X, y = frame(data)
    X["sex"] = (X["sex"] == "a").astype(int)
    options = {"sensitive_columns": "sex", "use_sensitive": use_sensitive, "per_group": True}
    X = X.drop(columns="area")
    clf = FairThresholds(LogisticRegression(), kappa=0.05, **options).fit(X, y)
    assert clf.estimator_.n_features_in_ == 4 + use_sensitive
    assert not clf.groups_at_prediction
    gap = demographic_parity_difference(y, clf.predict(X), sensitive_features=X["sex"])
    assert gap < 0.1


def test_marginal_groups_have_thresholds_for_intersections(data):
    X, y = (one[:400] for one in frame(data))
    columns = ["sex", "area"]
    clf = FairThresholds(
        LogisticRegression(),
        kappa=0.03,
        per_group=True,
        sensitive_columns=columns,
        combine="marginal",
        cv=0.5,
        random_state=0,
    ).fit(X, y)
    assert clf.groups_.tolist() == ["sex=a", "sex=b", "area=north", "area=south"]
    assert len(clf.thresholds_) == 4
    assert clf.decision_search_.met and clf.decision_gap_ <= 0.03 + 1e-9
    assert len(clf.predict(X)) == len(y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitive_columns": [0]}, "given twice"),
        ({"estimator": StandardScaler()}, "StandardScaler"),
        ({"confidence": 0.9, "constraint": "group_auc"}, "confidence"),
    ],
)
def test_arguments_that_are_not_valid(options, message, data):
    X, y, groups = data
    clf = FairThresholds(**{"estimator": LogisticRegression(), **options})
    with pytest.raises((ValueError, TypeError), match=message):
        clf.fit(X, y, sensitive_features=groups)


def test_missing_arguments(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="needs groups: pass sensitive_features"):
        FairThresholds(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="needs groups: pass sensitive_features"):
        FairThresholds(LogisticRegression(), None, per_group=True).fit(X, y)
    with pytest.raises(NotFittedError, match="estimator is not fitted"):
        FairThresholds(LogisticRegression(), cv="prefit").fit(X, y, sensitive_features=groups)
    with pytest.raises(NotFittedError):
        FairThresholds(LogisticRegression()).predict(X)
    with pytest.raises(ValueError, match="some are in several"):
        twice = [(np.arange(600), np.arange(600, 1200))] * 2
        FairThresholds(LogisticRegression(), cv=twice).fit(X, y, sensitive_features=groups)


def test_no_rows_are_an_error():
    with pytest.raises(ValueError, match="X has no rows"):
        FairThresholds(LogisticRegression(), None).fit(np.empty((0, 3)), [])


X, Y, CODES = make_biased_classification(400, 4, gap=0.3, random_state=0)
SEX = pd.Series(np.where(CODES == 1, "m", "f"))
TABLE = pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)


def test_columns_that_are_taken_out_of_x_are_named():
    inner = FairLogisticClassifier(None, sensitive_columns=["sex"])
    clf = FairThresholds(inner, sensitive_columns="sex", kappa=0.1)
    with pytest.raises(ValueError, match=r"taken out of X.*use_sensitive=True"):
        clf.fit(TABLE, Y)
    clf.set_params(use_sensitive=True).fit(TABLE, Y)
    assert clf.decision_gap_ <= 0.1
