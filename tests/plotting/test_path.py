"""Tests of FairnessPathDisplay: the points are the gaps and accuracies of the models."""

import numpy as np
import pytest
from _support.drawing import draw, plt, three_groups
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier, fairness_path
from fairconstrained.plotting import FairnessPathDisplay


@pytest.fixture(scope="module")
def data():
    return three_groups()


@pytest.fixture(scope="module")
def path(data):
    X, y, groups = data
    return fairness_path(
        FairLogisticClassifier(), X[:300], y[:300], sensitive_features=groups[:300], n_kappas=4,
        X_val=X[300:], y_val=y[300:], sensitive_features_val=groups[300:],
    )  # fmt: skip


def test_rows_parameter_selects_the_rows(path):
    ours = draw(FairnessPathDisplay.from_path(path, unconstrained=(0.4, 0.9)))
    assert ours.line_.get_xdata() == pytest.approx(path.validation["val_decision_gap"][::-1])
    assert ours.line_.get_ydata() == pytest.approx(path.validation["val_accuracy"][::-1])
    assert ours.unconstrained_.get_xdata() == [0.4]
    training = FairnessPathDisplay.from_path(path, rows="training")
    assert training.line_.get_xdata() == pytest.approx(path.decision_gaps[::-1])
    assert training.line_.get_ydata() == pytest.approx(path.train_accuracy[::-1])
    assert "training rows" in training.ax_.get_xlabel()
    path = type(path)(path.kappas, path.estimators, path.data_passes, path.train_accuracy)
    with pytest.raises(ValueError, match="pass X_val and y_val"):
        FairnessPathDisplay.from_path(path, rows="validation")


def test_path_from_an_estimator_starts_at_the_unconstrained_model(data):
    X, y, groups = data
    ax = plt.figure().add_subplot()
    display = FairnessPathDisplay.from_estimator(
        FairLogisticClassifier(), X, y, sensitive_features=groups, n_kappas=3, ax=ax
    )
    assert display.ax_ is ax
    free = FairLogisticClassifier(None).fit(X, y)
    assert display.unconstrained_.get_ydata() == [pytest.approx(free.score(X, y), abs=0.01)]
    fixed = FairnessPathDisplay.from_estimator(
        FairLogisticClassifier(), X, y, sensitive_features=groups, kappas=[0.1, 0.05]
    )
    assert fixed.unconstrained_ is None
    texts = [text.get_text() for text in fixed.ax_.texts]
    assert texts == ["κ = 0.05", "κ = 0.1"]


def test_path_from_predictions(data):
    X, y, groups = data
    free = LogisticRegression().fit(X, y).predict(X)
    nobody = np.zeros_like(y)
    display = FairnessPathDisplay.from_predictions(
        y, {0.3: free, 0.0: nobody}, sensitive_features=groups, unconstrained=free
    )
    rates = [free[groups == group].mean() for group in "abc"]
    assert display.line_.get_xdata() == pytest.approx([0.0, np.ptp(rates)])
    assert display.line_.get_ydata() == pytest.approx([1.0 - y.mean(), np.mean(free == y)])
    assert display.unconstrained == pytest.approx((np.ptp(rates), np.mean(free == y)))


def test_other_models_can_be_added(data):
    display = FairnessPathDisplay([0.1, 0.0], [0.8, 0.7], points={"one": (0.05, 0.7)}).plot()
    display.add_points("several", [[0.09, 0.77], [0.02, 0.72]])
    assert display.points_["several"].get_xdata().tolist() == [0.02, 0.09]
    assert display.line_.get_xdata().tolist() == [0.0, 0.1]
    texts = [text.get_text() for text in draw(display).ax_.get_legend().get_texts()]
    assert texts == ["fairconstrained", "one", "several"]
    display.add_points("far", (0.5, 0.1))
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert -0.01 < left <= 0.0 and right > 0.5 and low < 0.1 and high > 0.8
    looks = {
        (line.get_marker(), line.get_color()) for line in [display.line_, *display.points_.values()]
    }
    assert len(looks) == 4


def test_invalid_paths_raise():
    with pytest.raises(ValueError, match="2 gaps and 1 accuracies"):
        FairnessPathDisplay([0.1, 0.2], [0.8]).plot()
    with pytest.raises(ValueError, match="name must be a string"):
        FairnessPathDisplay([0.1], [0.8]).plot().add_points([0.1], [0.8])
    with pytest.raises(ValueError, match=r"shape \(n, 2\); got shape \(3,\)"):
        FairnessPathDisplay([0.1], [0.8], points={"peer": [1.0, 2.0, 3.0]}).plot()
