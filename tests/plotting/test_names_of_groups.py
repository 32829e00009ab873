"""Displays draw all groups, classes and sizes, with their names as they are."""

from io import BytesIO
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from _support.drawing import draw, three_groups
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairLogisticClassifier
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

DISPLAYS = [ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay]
DOLLARS = ["$0_to_$50k", "$50k_to_$90k", r"a $ and \$"]


def drawn_texts(display):
    """Return all texts of a display as they are drawn; none of them is a formula."""
    draw(display).figure_.savefig(BytesIO())
    axes = display.ax_
    legend = axes.get_legend().get_texts()
    texts = [*legend, *axes.get_yticklabels(), axes.xaxis.label, axes.yaxis.label]
    lines = [one._preprocess_math(line) for one in texts for line in one.get_text().split("\n")]
    assert not any(is_formula for _, is_formula in lines)
    return " ".join(line for line, _ in lines)


X, Y, LETTERS = three_groups()
GROUPS = np.array(DOLLARS)[np.searchsorted(["a", "b", "c"], LETTERS)]


@pytest.fixture(scope="module")
def model():
    return FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_dollar_signs_in_groups_are_no_formulas(kind, model):
    texts = drawn_texts(kind.from_estimator(model, X, Y, sensitive_features=GROUPS))
    assert all(name in texts for name in DOLLARS)


@pytest.mark.parametrize("n_groups", [3, 12])
def test_groups_with_the_same_text_are_all_drawn(n_groups, model):
    names = [("x, b=y", "z"), ("x", "y, b=z"), *(("w", str(k)) for k in range(n_groups - 2))]
    groups = pd.DataFrame([names[k % n_groups] for k in range(len(Y))], columns=["a", "b"])
    shown = min(n_groups, 9)  # eight groups, and the others together
    densities = ScoreDensityDisplay.from_estimator(model, X, Y, sensitive_features=groups).densities
    assert len(densities) == shown
    dots = GroupMetricsDisplay.from_estimator(model, X, Y, sensitive_features=groups).dots_
    assert len(dots) == min(n_groups, 8)
    for name in names[:2]:  # with many groups, the other one may be among those not shown
        display = GroupRateDisplay.from_estimator(
            model, X, Y, sensitive_features=groups, reference=name
        )
        assert display.reference == f"a={name[0]!r}, b={name[1]!r}"
        assert shown <= 1 + len(display.curves) <= shown + 1
        assert display.reference not in display.curves


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
def test_curves_of_one_of_several_classes(method):
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
    model = LogisticRegression().fit(X, y)
    chosen = {"sensitive_features": LETTERS, "response_method": method}
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
                decided[rows & (LETTERS.astype(str) == one)].mean()
                for one in (display.reference, name)
            ]
            assert curve.at_threshold == pytest.approx(expected)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_long_names_stay_within_the_figure_and_apart(kind, model):
    groups = np.array([f"{'a name of many words, ' * 5}{letter}" for letter in LETTERS])
    display = draw(kind.from_estimator(model, X, Y, sensitive_features=groups))
    boxes = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    boxes += [text.get_window_extent() for text in display.ax_.get_legend().get_texts()]
    assert all(0.0 <= box.x0 < box.x1 <= display.figure_.bbox.x1 for box in boxes)
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
