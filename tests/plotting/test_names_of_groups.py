"""Displays draw the names of groups and classes as they are, and tell all groups apart."""

from io import BytesIO

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


@pytest.fixture(scope="module")
def data():
    X, y, groups = three_groups()
    return X, y, np.array(DOLLARS)[np.searchsorted(["a", "b", "c"], groups)]


@pytest.fixture(scope="module")
def model(data):
    X, y, groups = data
    return FairLogisticClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_dollar_signs_in_groups_are_no_formulas(kind, data, model):
    X, y, groups = data
    texts = drawn_texts(kind.from_estimator(model, X, y, sensitive_features=groups))
    assert all(name in texts for name in DOLLARS)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", DISPLAYS)
def test_dollar_signs_in_many_groups_are_no_formulas(kind, data, model):
    X, y, groups = data
    number = np.array(["$1_", "$2_", "$3_"])[np.arange(len(y)) // 3 % 3]
    groups = groups.astype(object) + number
    texts = drawn_texts(kind.from_estimator(model, X, y, sensitive_features=groups))
    assert all(name in texts for name in ("$1_", "$2_", "$3_"))


def test_the_name_of_a_class_is_no_formula(data):
    X, _, groups = data
    y = np.array(["$0_", "$1_$", "$2"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    clf = LogisticRegression().fit(X, y)
    display = ScoreDensityDisplay.from_estimator(
        clf, X, y, sensitive_features=groups, pos_label="$1_$"
    )
    assert "score of class $1_$ minus" in drawn_texts(display)


def test_axes_that_the_user_names_may_have_formulas(data, model):
    X, y, groups = data
    display = ScoreDensityDisplay.from_predictions(
        y, model.decision_function(X), sensitive_features=groups, unit=r"$\theta$"
    )
    assert display.ax_.get_xlabel() == r"$\theta$"


@pytest.mark.parametrize("n_groups", [3, 12])
def test_groups_with_the_same_text_are_all_drawn(n_groups, data, model):
    X, y, _ = data
    names = [("x, b=y", "z"), ("x", "y, b=z"), *(("w", str(k)) for k in range(n_groups - 2))]
    groups = pd.DataFrame([names[k % n_groups] for k in range(len(y))], columns=["a", "b"])
    shown = min(n_groups, 9)  # eight groups, and the others together
    densities = ScoreDensityDisplay.from_estimator(model, X, y, sensitive_features=groups).densities
    assert len(densities) == shown
    dots = GroupMetricsDisplay.from_estimator(model, X, y, sensitive_features=groups).dots_
    assert len(dots) == min(n_groups, 8)
    for name in names[:2]:  # with many groups, the other one may be among those not shown
        display = GroupRateDisplay.from_estimator(
            model, X, y, sensitive_features=groups, reference=name
        )
        assert display.reference == f"a={name[0]!r}, b={name[1]!r}"
        assert shown <= 1 + len(display.curves) <= shown + 1
        assert display.reference not in display.curves
