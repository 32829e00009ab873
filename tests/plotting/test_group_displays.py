"""Displays of groups: they show the rates and distributions of the data, with all names."""

from io import BytesIO
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from _support.drawing import draw, plt, three_groups
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

DISPLAYS = [ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay]


X, Y, GROUPS = three_groups()


@pytest.fixture(scope="module")
def model():
    return fc.FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)


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
    constraint = fc.constraints.PartialDemographicParity(0.2, ranks=(0.1, 0.4), n_ranks=3)
    model = fc.FairLogisticClassifier(constraint).fit(X, Y, sensitive_features=GROUPS)
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
    distance = fc.metrics.roc_parity_difference(Y[two], scores, **common)
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
    rates = {"sensitive_features": GROUPS, "rate": "true_positive_rate"}
    with pytest.raises(ValueError, match="needs labels"):
        GroupRateDisplay.from_estimator(model, X, None, **rates)
    with pytest.raises(ValueError, match="reference='z' is not one of the groups"):
        GroupRateDisplay.from_estimator(model, X, Y, sensitive_features=GROUPS, reference="z")
    with pytest.raises(ValueError, match=rf"y_pred has {len(Y)} missing values \(nan or infinite"):
        unknown = np.resize([np.nan, np.inf], len(Y))
        GroupRateDisplay.from_predictions(Y, unknown, sensitive_features=GROUPS)


# Metrics


def test_dots_are_the_rates_of_groups(model):
    before = LogisticRegression().fit(X, Y)
    models = {"before": before, "after": model}
    display = draw(GroupMetricsDisplay.from_estimator(models, X, Y, sensitive_features=GROUPS))
    for name, one in models.items():
        rates = fc.metrics.group_rates(Y, one.predict(X), sensitive_features=GROUPS)
        for group in "abc":
            values = display.dots_[name, group].get_xdata()
            assert values[0] == pytest.approx(rates.loc[group, "selection_rate"])
            assert values[3] == pytest.approx(rates.loc[group, "accuracy"])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["before", "after", "95% confidence interval"]


def test_models_differ_without_colour_and_rows_do_not_overlap(model):
    models = {str(k): model for k in range(3)}
    display = GroupMetricsDisplay.from_estimator(models, X, Y, sensitive_features=GROUPS)
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


@pytest.mark.parametrize("kind", DISPLAYS)
def test_dollar_signs_in_groups_are_no_formulas(kind, model):
    groups = np.array(DOLLARS)[np.searchsorted(["a", "b", "c"], GROUPS)]
    models = dict.fromkeys(["$^old$", "new"], model) if kind is GroupMetricsDisplay else model
    texts = drawn_texts(kind.from_estimator(models, X, Y, sensitive_features=groups))
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
        given = {"sensitive_features": groups, "reference": name}
        display = GroupRateDisplay.from_estimator(model, X, Y, **given)
        assert display.reference == f"a={name[0]!r}, b={name[1]!r}"
        assert shown <= 1 + len(display.curves) <= shown + 1
        assert display.reference not in display.curves


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_rates_and_curves_of_one_of_several_classes(method):
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])]
    model, given = LogisticRegression().fit(X, y), {"sensitive_features": GROUPS}
    chosen = {"response_method": method, **given}
    for kind in DISPLAYS:
        rows = given if kind is GroupMetricsDisplay else chosen
        with pytest.raises(ValueError, match=r"has the 3 classes .* Pass pos_label"):
            kind.from_estimator(model, X, y, **rows)
        with pytest.raises(ValueError, match="pos_label='none' is not one of the classes"):
            kind.from_estimator(model, X, y, pos_label="none", **rows)
    decided = model.predict(X) == "mid"
    shown = GroupMetricsDisplay.from_estimator(model, X, y, pos_label="mid", **given).tables[""]
    rates = [decided[one == GROUPS].mean() for one in "abc"]
    assert shown["selection_rate"].tolist() == pytest.approx(rates)
    for rate, rows in (("selection_rate", y != ""), ("true_positive_rate", y == "mid")):
        options = {"rate": rate, "pos_label": "mid", **chosen}
        display = draw(GroupRateDisplay.from_estimator(model, X, y, **options))
        for name, curve in display.curves.items():
            expected = [decided[rows & (one == GROUPS)].mean() for one in (display.reference, name)]
            assert curve.at_threshold == pytest.approx(expected)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_long_names_stay_within_the_figure_and_apart(kind, model):
    groups = np.array([f"{'a name of many words, ' * 5}{letter}" for letter in GROUPS])
    display = draw(kind.from_estimator(model, X, Y, sensitive_features=groups))
    boxes = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    boxes += [text.get_window_extent() for text in display.ax_.get_legend().get_texts()]
    assert all(0.0 <= box.x0 < box.x1 <= display.figure_.bbox.x1 for box in boxes)
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
