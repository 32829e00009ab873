"""Tests of the displays of groups: the plots show the rates and distributions of the data."""

from itertools import pairwise

import numpy as np
import pytest
from _support.drawing import draw, plt, three_groups
from fairlearn.metrics import MetricFrame, selection_rate
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.metrics import roc_parity_difference
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

DISPLAYS = [ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay]


DATA = X, Y, GROUPS = three_groups()


@pytest.fixture(scope="module")
def model():
    return FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_displays_follow_the_api_of_scikit_learn(kind, model):
    display = draw(kind.from_estimator(model, X, Y, sensitive_features=GROUPS))
    assert isinstance(display, kind)
    assert display.figure_ is display.ax_.figure
    figure, (left, right) = plt.subplots(1, 2)
    assert kind.from_estimator(model, X, Y, sensitive_features=GROUPS, ax=left).ax_ is left
    assert display.plot(ax=right) is display
    assert display.ax_ is right and display.figure_ is figure


@pytest.mark.parametrize("kind", DISPLAYS)
@pytest.mark.parametrize("n_groups", [2, 9])
def test_any_number_and_names_of_groups(kind, n_groups, model):
    names = [f"a group with quite a long name, number {k}" for k in range(n_groups)]
    groups = np.array(names)[np.arange(len(Y)) % n_groups]
    display = draw(kind.from_estimator(model, X, Y, sensitive_features=groups))
    texts = [*display.ax_.get_legend().get_texts(), *display.ax_.get_yticklabels()]
    labels = " ".join(text.get_text() for text in texts).replace("\n", " ")
    if kind is GroupRateDisplay:
        labels += display.ax_.get_xlabel().replace("\n", " ")
    else:
        assert sum(name in labels for name in names) == min(n_groups, 8)
    assert ("1 other" in labels) == (n_groups > 8)
    assert names[0] in labels or n_groups > 8


# Densities


def test_areas_are_one_and_heights_are_weighted(model, rng):
    weight = rng.integers(0, 4, len(Y))
    scores = model.decision_function(X)
    display = ScoreDensityDisplay.from_predictions(
        Y, scores, sensitive_features=GROUPS, sample_weight=weight, bins=7
    )
    repeated = ScoreDensityDisplay.from_predictions(
        None, np.repeat(scores, weight), sensitive_features=np.repeat(GROUPS, weight),
        bins=display.edges,
    )  # fmt: skip
    for name, density in display.densities.items():
        assert density.heights @ np.diff(display.edges) == pytest.approx(1.0)
        assert density.heights == pytest.approx(repeated.densities[name].heights)
        assert density.n_rows == np.sum((name == GROUPS) & (weight > 0))
        assert display.lines_[name].get_data().values == pytest.approx(density.heights)


def test_shade_covers_the_ranks(rng):
    scores = rng.permutation(np.arange(100.0))
    display = ScoreDensityDisplay.from_predictions(
        None, scores, sensitive_features=["all"] * 100, ranks=(0.1, 0.3)
    )
    low, high = display.densities["all"].inside
    inside = (scores >= low) & (scores <= high)
    assert inside.mean() == pytest.approx(0.2, abs=0.011)
    assert np.mean(scores > high) == pytest.approx(0.1, abs=0.011)
    edges = display.shades_["all"].get_data().edges
    assert (edges[0], edges[-1]) == (low, high)


def test_ranks_of_the_constraint_are_the_default():
    constraint = PartialDemographicParity(0.2, ranks=(0.1, 0.4), n_ranks=3)
    model = FairLogisticClassifier(constraint).fit(X, Y, sensitive_features=GROUPS)
    for kind in (ScoreDensityDisplay, GroupRateDisplay):
        display = draw(kind.from_estimator(model, X, Y, sensitive_features=GROUPS))
        assert display.ranks == (0.1, 0.4)
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "ranks 10% to 40%" in texts


# Rates


def test_distance_from_the_diagonal_equals_roc_parity_difference(model, rng):
    two = GROUPS != "c"
    scores = model.decision_function(X[two]).round(1)  # with ties
    weight = rng.uniform(0.5, 2.0, two.sum())
    common = {"sensitive_features": GROUPS[two], "sample_weight": weight}
    display = GroupRateDisplay.from_predictions(Y[two], scores, **common)
    (curve,) = display.curves.values()
    distance = roc_parity_difference(Y[two], scores, **common)
    assert np.abs(curve.x - curve.y).max() == pytest.approx(distance)
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert np.all(np.diff(curve.x) >= 0.0) and np.all(np.diff(curve.y) >= 0.0)
    (line,) = display.lines_.values()
    assert line.get_xdata() == pytest.approx(curve.x)


@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate", "false_positive_rate"])
def test_marked_points_are_the_rates_of_the_predictions(rate, model):
    display = GroupRateDisplay.from_estimator(
        model, X, Y, sensitive_features=GROUPS, rate=rate, reference="b", kappa=0.1
    )
    assert display.reference == "b"
    among = {"selection_rate": Y >= 0, "true_positive_rate": Y == 1, "false_positive_rate": Y == 0}
    decided = model.predict(X) == 1
    for name, point in display.points_.items():
        expected = [decided[among[rate] & (group == GROUPS)].mean() for group in ("b", name)]
        assert [point.get_xdata()[0], point.get_ydata()[0]] == pytest.approx(expected)
        assert rate.replace("_", " ") in display.ax_.get_xlabel()


def test_invalid_rates_raise(model):
    with pytest.raises(ValueError, match="needs at least two groups"):
        GroupRateDisplay.from_estimator(model, X, Y, sensitive_features=np.zeros(len(Y)))
    with pytest.raises(ValueError, match="needs labels"):
        GroupRateDisplay.from_estimator(
            model, X, None, sensitive_features=GROUPS, rate="true_positive_rate"
        )
    with pytest.raises(ValueError, match="reference='z' is not one of the groups"):
        GroupRateDisplay.from_estimator(model, X, Y, sensitive_features=GROUPS, reference="z")
    with pytest.raises(ValueError, match=r"y_pred has \d+ missing values"):
        GroupRateDisplay.from_predictions(Y, np.full(len(Y), np.nan), sensitive_features=GROUPS)


# Metrics


def test_dots_equal_the_rates_of_fairlearn(model):
    before = LogisticRegression().fit(X, Y)
    models = {"before": before, "after": model}
    display = draw(GroupMetricsDisplay.from_estimator(models, X, Y, sensitive_features=GROUPS))
    for name, one in models.items():
        frame = MetricFrame(
            metrics={"selection_rate": selection_rate, "accuracy": accuracy_score},
            y_true=Y, y_pred=one.predict(X), sensitive_features=GROUPS,
        ).by_group  # fmt: skip
        for group in "abc":
            values = display.dots_[name, group].get_xdata()
            assert values[0] == pytest.approx(frame.loc[group, "selection_rate"])
            assert values[3] == pytest.approx(frame.loc[group, "accuracy"])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["before", "after", "95% confidence interval"]


def test_models_differ_without_colour_and_rows_do_not_overlap(model):
    X, y, groups = DATA
    models = {str(k): model for k in range(3)}
    display = GroupMetricsDisplay.from_estimator(models, X, y, sensitive_features=groups)
    looks = {
        name: (dots.get_marker(), dots.get_markerfacecolor())
        for (name, _), dots in display.dots_.items()
    }
    assert len(set(looks.values())) == 3
    places = sorted(y for dots in display.dots_.values() for y in dots.get_ydata())
    assert len(places) == 3 * 3 * len(display.metrics)
    assert all(second - first > 0.2 for first, second in pairwise(places))


def test_groups_are_sorted_with_sizes_beside_them(model):
    display = draw(GroupMetricsDisplay.from_estimator(model, X, Y, sensitive_features=GROUPS))
    rates = display.tables[""]["selection_rate"].sort_values(ascending=False)
    places = {group: display.dots_["", group].get_ydata()[0] for group in "abc"}
    assert sorted(places, key=places.get) == rates.index.tolist()
    (right,) = display.ax_.child_axes
    sizes = [text.get_text() for text in right.get_yticklabels()]
    assert sizes[:3] == [f"n = {np.sum(group == GROUPS)}" for group in rates.index]
    positive = [np.sum((group == GROUPS) & (Y == 1)) for group in rates.index]
    assert sizes[3:6] == [f"n = {n}" for n in positive]


@pytest.mark.parametrize("n_groups", [2, 3, 30])
def test_no_interval_is_clipped_and_nothing_touches_the_legend(n_groups, model):
    groups = np.array([f"group {k}" for k in np.arange(len(Y)) % n_groups])
    models = {"before": LogisticRegression().fit(X, Y), "after": model}
    display = draw(GroupMetricsDisplay.from_estimator(models, X, Y, sensitive_features=groups))
    left, right = display.ax_.get_xlim()
    for lines in display.intervals_.values():
        for segment in lines.get_segments():
            assert left <= segment[:, 0].min() <= segment[:, 0].max() <= right
    legend = display.ax_.get_legend().get_window_extent()
    texts = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    marks = [one.get_window_extent() for one in display.dots_.values()]
    assert not any(legend.overlaps(one) for one in [*texts, *marks])
    assert legend.x1 <= display.figure_.bbox.x1 and legend.y1 <= display.figure_.bbox.y1


def test_intervals_are_optional(model):
    display = GroupMetricsDisplay.from_estimator(model, X, Y, sensitive_features=GROUPS)
    table = display.tables[""]
    segments = display.intervals_["", "a"].get_segments()
    assert segments[0][:, 0] == pytest.approx(
        table.loc["a", ["selection_rate_low", "selection_rate_high"]].to_numpy(float)
    )
    bare = GroupMetricsDisplay.from_estimator(
        model, X, Y, sensitive_features=GROUPS, confidence=None, metrics=["accuracy"]
    )
    assert not bare.intervals_
