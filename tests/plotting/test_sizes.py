"""The numbers of rows beside the rates of groups."""

import numpy as np
from _support.drawing import three_groups

from fairconstrained import FairLogisticClassifier
from fairconstrained.plotting import GroupMetricsDisplay


def test_sizes_that_differ_between_models_are_shown_for_each():
    X, y, groups = three_groups()
    models = {
        name: FairLogisticClassifier(None, threshold=t).fit(X, y)
        for name, t in (("strict", 0.8), ("lenient", 0.3))
    }
    display = GroupMetricsDisplay.from_estimator(
        models, X, y, sensitive_features=groups, metrics=["precision", "accuracy"]
    )
    (right,) = display.ax_.child_axes
    shown = [one.get_text() for one in right.get_yticklabels()]
    names = np.unique(groups)
    selected = [
        [(one.predict(X)[groups == k] == 1).sum() for one in models.values()] for k in names
    ]
    assert sorted(shown[: len(names)]) == sorted(f"n = {a} / {b}" for a, b in selected)
    assert sorted(shown[len(names) :]) == sorted(f"n = {(groups == k).sum()}" for k in names)
