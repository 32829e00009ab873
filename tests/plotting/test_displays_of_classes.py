"""Displays of one of several classes, and of a chosen positive class."""

import numpy as np
import pytest
from _support.drawing import draw, three_groups
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay


@pytest.fixture(scope="module")
def data():
    return three_groups()


@pytest.fixture(scope="module")
def model(data):
    X, y, groups = data
    return FairLogisticClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)


def test_rates_of_one_of_several_classes():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((300, 3)), rng.integers(0, 2, 300)
    y = np.array(["a", "b", "c"])[np.argmax(X + groups[:, None] * [0.0, 0.0, 1.0], axis=1)]
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="Pass pos_label"):
        GroupMetricsDisplay.from_estimator(model, X, y, sensitive_features=groups)
    display = GroupMetricsDisplay.from_estimator(
        model, X, y, sensitive_features=groups, pos_label="c"
    )
    (table,) = display.tables.values()
    chosen = model.predict(X) == "c"
    rates = [chosen[groups == k].mean() for k in (0, 1)]
    assert table["selection_rate"].tolist() == pytest.approx(rates)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_curves_of_one_of_several_classes(method, data):
    X, _, groups = data
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
    model = LogisticRegression().fit(X, y)
    chosen = {"sensitive_features": groups, "response_method": method}
    for kind in (GroupRateDisplay, ScoreDensityDisplay):
        with pytest.raises(ValueError, match=r"has the 3 classes .* Pass pos_label"):
            kind.from_estimator(model, X, y, **chosen)
        with pytest.raises(ValueError, match="pos_label='none' is not one of the classes"):
            kind.from_estimator(model, X, y, pos_label="none", **chosen)
    decided = model.predict(X) == "mid"
    for rate, rows in (("selection_rate", y != ""), ("true_positive_rate", y == "mid")):
        display = draw(
            GroupRateDisplay.from_estimator(model, X, y, rate=rate, pos_label="mid", **chosen)
        )
        for name, curve in display.curves.items():
            expected = [
                decided[rows & (groups.astype(str) == one)].mean()
                for one in (display.reference, name)
            ]
            assert curve.at_threshold == pytest.approx(expected)
