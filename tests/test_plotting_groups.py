"""The displays of groups and paths: what they draw is what the decisions and scores do."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, selection_rate
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    FairHingeClassifier,
    FairLogisticClassifier,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.metrics import (
    partial_demographic_parity_difference,
    roc_parity_difference,
)
from fairconstrained.plotting import (
    FairnessPathDisplay,
    GroupMetricsDisplay,
    GroupRateDisplay,
    ScoreDensityDisplay,
)

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra 'plot')")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DISPLAYS = [ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(400, 4, gap=0.3, n_groups=3, random_state=0)
    return X, y, np.array(["a", "b", "c"])[groups]


@pytest.fixture(scope="module")
def model(data):
    X, y, groups = data
    return FairLogisticClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)


def draw(display):
    """Draw a display and check that no text is cut off by the figure's edge."""
    figure = display.figure_
    figure.draw_without_rendering()
    box = figure.bbox
    for ax in figure.axes:
        texts = [ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            texts += [label for place, label in ticks if low <= place <= high]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        for text in texts:
            extent = text.get_window_extent()
            if text.get_text() and text.get_visible():
                assert box.x0 - 1 <= extent.x0 and extent.x1 <= box.x1 + 1, text.get_text()
                assert box.y0 - 1 <= extent.y0 and extent.y1 <= box.y1 + 1, text.get_text()
    return display


@pytest.mark.parametrize("kind", DISPLAYS)
def test_convention(kind, data, model):
    X, y, groups = data
    display = draw(kind.from_estimator(model, X, y, sensitive_features=groups))
    assert isinstance(display, kind)
    assert display.figure_ is display.ax_.figure
    figure, (left, right) = plt.subplots(1, 2)
    assert kind.from_estimator(model, X, y, sensitive_features=groups, ax=left).ax_ is left
    assert display.plot(ax=right) is display
    assert display.ax_ is right and display.figure_ is figure


@pytest.mark.parametrize("kind", DISPLAYS)
def test_legend_is_outside_of_the_data(kind, data, model):
    X, y, groups = data
    display = draw(kind.from_estimator(model, X, y, sensitive_features=groups))
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1 - 1.0


@pytest.mark.parametrize("kind", DISPLAYS)
@pytest.mark.parametrize("n_groups", [2, 9])
def test_any_number_of_groups_of_any_name(kind, n_groups, data, model):
    X, y, _ = data
    names = [f"a group with quite a long name, number {k}" for k in range(n_groups)]
    groups = np.array(names)[np.arange(len(y)) % n_groups]
    display = draw(kind.from_estimator(model, X, y, sensitive_features=groups))
    labels = " ".join(text.get_text() for text in display.ax_.get_legend().get_texts())
    if kind is not GroupRateDisplay:
        assert all(name in labels for name in names)
    else:
        assert names[0] in display.ax_.get_xlabel()


@pytest.mark.parametrize("kind", DISPLAYS)
def test_groups_are_told_apart_without_colour(kind, data, model):
    X, y, groups = data
    display = kind.from_estimator(model, X, y, sensitive_features=groups)
    if kind is GroupMetricsDisplay:
        looks = [bars[0].get_hatch() or "" for bars in display.bars_.values()]
    else:
        looks = [str(line.get_linestyle()) for line in display.lines_.values()]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_groups_from_the_models_own_columns(kind, data):
    X, y, groups = data
    whole = np.column_stack([X, np.unique(groups, return_inverse=True)[1]])
    model = make_pipeline(StandardScaler(), FairLogisticClassifier(sensitive_columns=[4]))
    model.fit(whole, y)
    display = kind.from_estimator(model, whole, y)
    given = kind.from_estimator(model, whole, y, sensitive_features=groups)
    if kind is GroupMetricsDisplay:
        own, other = display.tables[""], given.tables[""]
        assert own.to_numpy() == pytest.approx(other.to_numpy())
    with pytest.raises(ValueError, match="pass sensitive_features"):
        kind.from_estimator(LogisticRegression().fit(X, y), X, y)


@pytest.mark.parametrize("kind", [*DISPLAYS, FairnessPathDisplay])
def test_without_matplotlib_the_message_says_what_to_install(kind, data, model, monkeypatch):
    X, y, groups = data
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"requires matplotlib"):
        kind.from_estimator(model, X, y, sensitive_features=groups)


def test_search_hinge_and_plain_models(data):
    X, y, groups = data
    hinge = FairHingeClassifier(kappa=0.1).fit(X, y, sensitive_features=groups)
    display = ScoreDensityDisplay.from_estimator(hinge, X, sensitive_features=groups)
    assert (display.unit, display.threshold) == ("score", 0.0)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, y)
    display = ScoreDensityDisplay.from_estimator(search, X, sensitive_features=groups)
    assert (display.unit, display.threshold) == ("probability of the positive class", 0.5)


# Densities


def test_areas_are_one_and_heights_are_weighted(data, model, rng):
    X, y, groups = data
    weight = rng.integers(0, 4, len(y))
    scores = model.decision_function(X)
    display = ScoreDensityDisplay.from_predictions(
        y, scores, sensitive_features=groups, sample_weight=weight, bins=7
    )
    repeated = ScoreDensityDisplay.from_predictions(
        None, np.repeat(scores, weight), sensitive_features=np.repeat(groups, weight),
        bins=display.edges,
    )  # fmt: skip
    for name, density in display.densities.items():
        assert density.heights @ np.diff(display.edges) == pytest.approx(1.0)
        assert density.heights == pytest.approx(repeated.densities[name].heights)
        assert density.n_rows == np.sum((groups == name) & (weight > 0))
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


def test_ranks_of_the_constraint_are_shown_unasked(data):
    X, y, groups = data
    constraint = PartialDemographicParity(0.2, ranks=(0.1, 0.4), n_ranks=3)
    model = FairLogisticClassifier(constraint).fit(X, y, sensitive_features=groups)
    for kind in (ScoreDensityDisplay, GroupRateDisplay):
        display = draw(kind.from_estimator(model, X, y, sensitive_features=groups))
        assert display.ranks == (0.1, 0.4)
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "ranks 10% to 40%" in texts


def test_equal_scores(data):
    _, y, groups = data
    for kind in (ScoreDensityDisplay, GroupRateDisplay):
        draw(kind.from_predictions(y, np.ones(len(y)), sensitive_features=groups, ranks=(0.0, 0.5)))


# Rates


def test_curve_has_the_metrics_distance_from_the_diagonal(data, model, rng):
    X, y, groups = data
    two = groups != "c"
    scores = model.decision_function(X[two]).round(1)  # with ties
    weight = rng.uniform(0.5, 2.0, two.sum())
    common = {"sensitive_features": groups[two], "sample_weight": weight}
    display = GroupRateDisplay.from_predictions(y[two], scores, **common)
    (curve,) = display.curves.values()
    distance = roc_parity_difference(y[two], scores, **common)
    assert np.abs(curve.x - curve.y).max() == pytest.approx(distance)
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert np.all(np.diff(curve.x) >= 0.0) and np.all(np.diff(curve.y) >= 0.0)
    (line,) = display.lines_.values()
    assert line.get_xdata() == pytest.approx(curve.x)


def test_square_holds_what_partial_parity_is_about(data):
    X, y, groups = data
    scores = np.where(groups == "a", X[:, 0], X[:, 0] + 0.5)
    low, high = 0.1, 0.4
    display = GroupRateDisplay.from_predictions(
        y, scores, sensitive_features=groups == "a", ranks=(low, high)
    )
    (curve,) = display.curves.values()
    x, y_ = (np.clip(rates, low, high) for rates in (curve.x, curve.y))
    gap = np.abs(x - y_).max() / (high - low)
    exact = partial_demographic_parity_difference(
        y, scores, sensitive_features=groups == "a", ranks=(low, high)
    )
    assert gap == pytest.approx(exact, abs=0.06)  # ranks of whole rows against shares


@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate", "false_positive_rate"])
def test_marked_point_is_the_decisions_rates(rate, data, model):
    X, y, groups = data
    display = GroupRateDisplay.from_estimator(
        model, X, y, sensitive_features=groups, rate=rate, reference="b", kappa=0.1
    )
    assert display.reference == "b"
    among = {"selection_rate": y >= 0, "true_positive_rate": y == 1, "false_positive_rate": y == 0}
    decided = model.predict(X) == 1
    for name, point in display.points_.items():
        expected = [decided[among[rate] & (groups == group)].mean() for group in ("b", name)]
        assert [point.get_xdata()[0], point.get_ydata()[0]] == pytest.approx(expected)
        assert rate.replace("_", " ") in display.ax_.get_xlabel()


def test_rates_that_cannot_be_drawn_are_refused(data, model):
    X, y, groups = data
    with pytest.raises(ValueError, match="of two groups at least"):
        GroupRateDisplay.from_estimator(model, X, y, sensitive_features=np.zeros(len(y)))
    with pytest.raises(ValueError, match="needs the labels"):
        GroupRateDisplay.from_estimator(
            model, X, None, sensitive_features=groups, rate="true_positive_rate"
        )
    with pytest.raises(ValueError, match="reference='z' is none of the groups"):
        GroupRateDisplay.from_estimator(model, X, y, sensitive_features=groups, reference="z")
    with pytest.raises(ValueError, match="not finite"):
        GroupRateDisplay.from_predictions(y, np.full(len(y), np.nan), sensitive_features=groups)


# Metrics


def test_bars_are_the_rates_of_fairlearn(data, model):
    X, y, groups = data
    before = LogisticRegression().fit(X, y)
    models = {"before": before, "after": model}
    display = draw(GroupMetricsDisplay.from_estimator(models, X, y, sensitive_features=groups))
    for name, one in models.items():
        frame = MetricFrame(
            metrics={"selection_rate": selection_rate, "accuracy": accuracy_score},
            y_true=y, y_pred=one.predict(X), sensitive_features=groups,
        ).by_group  # fmt: skip
        for group in "abc":
            bars = [bar.get_height() for bar in display.bars_[name, group]]
            assert bars[0] == pytest.approx(frame.loc[group, "selection_rate"])
            assert bars[3] == pytest.approx(frame.loc[group, "accuracy"])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["a", "b", "c", "before", "after"]


def test_bars_do_not_overlap(data, model):
    X, y, groups = data
    models = {str(k): model for k in range(3)}
    display = GroupMetricsDisplay.from_estimator(models, X, y, sensitive_features=groups)
    spans = sorted(
        (bar.get_x(), bar.get_x() + bar.get_width())
        for bars in display.bars_.values()
        for bar in bars
    )
    assert len(spans) == 3 * 3 * 4
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_intervals_are_drawn_where_wanted(data, model):
    X, y, groups = data
    display = GroupMetricsDisplay.from_estimator(model, X, y, sensitive_features=groups)
    table = display.tables[""]
    segments = display.errorbars_["", "a"][2][0].get_segments()
    assert segments[0][:, 1] == pytest.approx(
        table.loc["a", ["selection_rate_low", "selection_rate_high"]].to_numpy(float)
    )
    bare = GroupMetricsDisplay.from_estimator(
        model, X, y, sensitive_features=groups, confidence=None, metrics=["accuracy"]
    )
    assert not bare.errorbars_


def test_group_without_positives_has_no_bar_of_its_true_positive_rate(data):
    _, y, groups = data
    y = np.where(groups == "a", 0, y)
    display = draw(GroupMetricsDisplay.from_predictions(y, y, sensitive_features=groups))
    assert np.isnan(display.tables[""].loc["a", "true_positive_rate"])
    assert display.bars_["", "a"][1].get_height() == 0.0


def test_metrics_that_cannot_be_drawn_are_refused(data, model):
    X, y, groups = data
    with pytest.raises(ValueError, match="metrics='recall' is unknown"):
        GroupMetricsDisplay.from_predictions(y, y, sensitive_features=groups, metrics=["recall"])
    with pytest.raises(ValueError, match="no models"):
        GroupMetricsDisplay.from_estimator({}, X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="Two classes are needed"):
        GroupMetricsDisplay.from_predictions(y, X[:, 0], sensitive_features=groups)
    three = LogisticRegression().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="has 3 classes"):
        GroupMetricsDisplay.from_estimator(three, X, y, sensitive_features=groups)


# Paths


@pytest.fixture(scope="module")
def path(data):
    X, y, groups = data
    return fairness_path(
        FairLogisticClassifier(), X[:300], y[:300], sensitive_features=groups[:300], n_kappas=4,
        X_val=X[300:], y_val=y[300:], sensitive_features_val=groups[300:],
    )  # fmt: skip


def test_path_is_drawn_on_the_rows_asked_for(path):
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


def test_path_from_an_estimator_begins_at_the_unconstrained_model(data):
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


def test_peers_are_added(data):
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


def test_paths_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="2 gaps and 1 accuracies"):
        FairnessPathDisplay([0.1, 0.2], [0.8]).plot()
    with pytest.raises(ValueError, match=r"shape \(n, 2\); got shape \(3,\)"):
        FairnessPathDisplay([0.1], [0.8], points={"peer": [1.0, 2.0, 3.0]}).plot()
