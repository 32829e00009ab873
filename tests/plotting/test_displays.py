"""Displays of paths and of convergence, and arguments of displays that are not valid."""

import re

import numpy as np
import pytest
from _support.drawing import draw, plt, three_groups
from _support.gaps import divided
from _support.problems import PROBLEMS
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained import plotting
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.plotting import ConvergenceDisplay, FairnessPathDisplay
from fairconstrained.solvers import IPC, AugmentedLagrangian
from fairconstrained.solvers.result import Trace

X, Y, GROUPS = three_groups()


@pytest.fixture(scope="module")
def path():
    rows = divided(np.arange(300, 400), X=X, y=Y, sensitive_features=GROUPS)
    return fc.fairness_path(fc.FairLogisticClassifier(), n_kappas=4, **rows)


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


def test_path_from_an_estimator_starts_at_the_unconstrained_model():
    ax = plt.figure().add_subplot()
    display = FairnessPathDisplay.from_estimator(
        fc.FairLogisticClassifier(), X, Y, sensitive_features=GROUPS, n_kappas=3, ax=ax
    )
    assert display.ax_ is ax
    free = fc.FairLogisticClassifier(None).fit(X, Y)
    assert display.unconstrained_.get_ydata() == [pytest.approx(free.score(X, Y), abs=0.01)]
    fixed = FairnessPathDisplay.from_estimator(
        fc.FairLogisticClassifier(), X, Y, sensitive_features=GROUPS, kappas=[0.1, 0.05]
    )
    assert fixed.unconstrained_ is None
    constrained = FairnessPathDisplay.from_estimator(
        fc.FairLogisticClassifier([fc.DemographicParity(), fc.PredictiveEquality(0.05)]),
        X, Y, sensitive_features=GROUPS, n_kappas=3,
    )  # fmt: skip
    assert constrained.unconstrained_ is None
    texts = [text.get_text() for text in fixed.ax_.texts]
    assert texts == ["κ = 0.05", "κ = 0.1"]


def test_path_from_predictions():
    free = LogisticRegression().fit(X, Y).predict(X)
    nobody = np.zeros_like(Y)
    display = FairnessPathDisplay.from_predictions(
        Y, {0.3: free, 0.0: nobody}, sensitive_features=GROUPS, unconstrained=free
    )
    rates = [free[group == GROUPS].mean() for group in "abc"]
    assert display.line_.get_xdata() == pytest.approx([0.0, np.ptp(rates)])
    assert display.line_.get_ydata() == pytest.approx([1.0 - Y.mean(), np.mean(free == Y)])
    assert display.unconstrained == pytest.approx((np.ptp(rates), np.mean(free == Y)))


def test_other_models_can_be_added():
    display = FairnessPathDisplay([0.1, 0.0], [0.8, 0.7], points={"$one": (0.05, 0.7)}).plot()
    display.add_points("_several", [[0.09, 0.77], [0.02, 0.72]])
    assert display.points_["_several"].get_xdata().tolist() == [0.02, 0.09]
    assert display.line_.get_xdata().tolist() == [0.0, 0.1]
    texts = [text.get_text() for text in draw(display).ax_.get_legend().get_texts()]
    assert texts == ["fairconstrained", r"\$one", " _several"]
    draw(display.add_points("$^far$", (0.5, 0.1)))
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert -0.01 < left <= 0.0 and right > 0.5 and low < 0.1 and high > 0.8
    lines = [display.line_, *display.points_.values()]
    looks = {(line.get_marker(), line.get_color()) for line in lines}
    assert len(looks) == 4
    with pytest.raises(ValueError, match="name must be a string"):
        display.add_points([0.1], [0.8])


def test_band_is_the_noise_of_the_validation_rows(path):
    display = draw(FairnessPathDisplay.from_path(path))
    assert path.validation_size == 100
    limits = clopper_pearson(path.validation["val_accuracy"], np.full(4, 100), 0.95)
    assert display.noise == pytest.approx(np.column_stack([limits.low, limits.high]))
    low, high = display.ax_.get_ylim()
    assert low <= display.noise.min() and display.noise.max() <= high
    ends = display.band_.get_paths()[0].vertices
    assert ends[:, 1].min() == pytest.approx(display.noise.min())
    narrow = FairnessPathDisplay.from_path(path, confidence=0.5)
    assert np.ptp(narrow.noise, axis=1).max() < np.ptp(display.noise, axis=1).min()
    assert FairnessPathDisplay.from_path(path, confidence=None).band_ is None
    assert FairnessPathDisplay.from_path(path, rows="training").band_ is None
    with pytest.raises(ValueError, match="a lower and an upper end for each of the 2"):
        FairnessPathDisplay([0.1, 0.2], [0.8, 0.9], noise=[[0.1, 0.2]]).plot()


def test_band_of_the_objective_is_what_no_model_is_below(path):
    options = {"sensitive_features": GROUPS, "n_kappas": 3, "bound": True}
    bounded = fc.fairness_path(fc.FairLogisticClassifier(), X, Y, **options)
    display = draw(FairnessPathDisplay.from_path(bounded, rows="objective"))
    assert display.line_.get_ydata() == pytest.approx(bounded.objectives[::-1])
    ends = display.band_.get_paths()[0].vertices[:, 1]
    assert ends.min() == pytest.approx(bounded.objective_bounds.min())
    assert np.all(bounded.objective_bounds < bounded.objectives)
    with pytest.raises(ValueError, match="needs bounds"):
        FairnessPathDisplay.from_path(path, rows="objective")


def test_chosen_and_unconstrained_models_are_marked_and_named_in_the_margin(path):
    kappa = path.kappas[1] * 1.01
    display = draw(FairnessPathDisplay.from_path(path, chosen=kappa, unconstrained=(0.4, 0.9)))
    assert display.chosen_.get_xdata() == [path.validation["val_decision_gap"][1]]
    assert display.chosen_.get_ydata() == [path.validation["val_accuracy"][1]]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[2:] == [f"chosen, κ = {path.kappas[1]:.2g}", "unconstrained"]
    inside = display.ax_.get_window_extent()
    boxes = [text.get_bbox_patch() or text for text in display.ax_.texts]
    assert all(text.get_position()[0] > 1.0 for text in display.ax_.texts)
    heights = sorted(text.get_position()[1] for text in boxes)
    assert np.diff(heights).min() >= 0.07 - 1e-9
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= inside.y1 - 1.0
    assert "unconstrained" not in [t.get_text() for t in display.ax_.get_legend().get_texts()]


@pytest.fixture(scope="module")
def results():
    problem = PROBLEMS["demographic parity"]()
    return {"IPC": IPC().minimize(problem), "AL": AugmentedLagrangian().minimize(problem)}


def trace_of(*violations, residual=1e-3):
    trace = Trace()
    for k, violation in enumerate(violations, 1):
        trace.append(
            iteration=k, data_passes=2.0 * k, seconds=0.1 * k, objective=0.5 + 1.0 / k,
            violation=violation, kkt_residual=residual,
        )  # fmt: skip
    return trace


def test_lines_show_the_traces(results):
    display = draw(ConvergenceDisplay.from_results(results))
    assert list(display.lines_) == ["IPC", "AL"]
    for name, result in results.items():
        objective, violation, residual = display.lines_[name]
        assert objective.get_xdata() == pytest.approx(result.trace.data_passes)
        assert objective.get_ydata() == pytest.approx(result.trace.objective)
        assert residual.get_ydata() == pytest.approx(result.trace.kkt_residual)
        positive = np.asarray(result.trace.violation) > display.feasible
        shown = np.asarray(violation.get_ydata())[positive]
        assert shown == pytest.approx(np.asarray(result.trace.violation)[positive])
    assert [axis.get_yscale() for axis in display.axes_] == ["linear", "symlog", "log"]
    for x in ("seconds", "iteration"):
        line = draw(ConvergenceDisplay.from_results(results["IPC"], x=x)).lines_["IPC"][0]
        assert line.get_xdata() == pytest.approx(getattr(results["IPC"].trace, x))


def test_reference_gives_the_relative_gap(results):
    best = results["IPC"].objective - 0.1
    display = draw(ConvergenceDisplay.from_results(results, reference=best))
    gap = (np.asarray(results["AL"].trace.objective) - best) / best
    assert display.lines_["AL"][0].get_ydata() == pytest.approx(np.abs(gap))
    assert display.axes_[0].get_yscale() == "log"
    assert "gap" in display.axes_[0].get_ylabel()


def test_violations_of_zero_are_drawn_at_the_bottom():
    display = draw(ConvergenceDisplay({"$^a$": trace_of(0.1, 0.0, 1e-6, 0.0)}).plot())
    shown = display.lines_["$^a$"][1].get_ydata()
    low, high = display.axes_[1].get_ylim()
    assert np.all((shown > low) & (shown < high))
    assert shown[1] == shown[3] < shown[2] < shown[0]
    assert 0.0 in display.axes_[1].get_yticks()


def test_non_finite_values_are_not_drawn():
    trace = trace_of(0.1, 0.2, np.nan)
    trace.objective[-1] = np.inf
    display = draw(ConvergenceDisplay({"run": trace}).plot())
    assert np.isfinite(display.lines_["run"][0].get_ydata()).tolist() == [True, True, False]


def test_x_is_logarithmic_for_runs_of_different_lengths():
    runs = {"short": trace_of(0.1, 0.0), "long": trace_of(*np.full(50, 0.1))}
    assert ConvergenceDisplay(runs).plot().axes_[0].get_xscale() == "log"
    assert ConvergenceDisplay(runs).plot(log_x=False).axes_[0].get_xscale() == "linear"


def test_given_axes_are_used(results):
    figure, axes = plt.subplots(3, 1)
    display = draw(ConvergenceDisplay.from_results(results, axes=axes))
    assert display.figure_ is figure
    assert display.axes_.tolist() == axes.tolist()
    assert axes[0].get_legend() is not None
    assert not figure.legends


N = 60
FEW, LABELS, MEMBERS = fc.make_biased_classification(N, 3, gap=0.4, random_state=0)
MODEL = fc.FairLogisticClassifier().fit(FEW, LABELS, sensitive_features=MEMBERS)
NAN = float("nan")
TRACE = MODEL.result_.trace


def convergence(name, value):
    ConvergenceDisplay(**{"traces": {"a": TRACE}, name: value}).plot()


def curve(name, value):
    options = {"gaps": [0.1, 0.05], "accuracies": [0.8, 0.7], name: value}
    FairnessPathDisplay(**options).plot()


def only(function):
    return lambda name, value: function(**{name: value})


def fitted(kind):
    rows = {"X": FEW, "y": LABELS, "sensitive_features": MEMBERS}
    return lambda name, value: kind.from_estimator(**{"estimator": MODEL, **rows, name: value})


RATES, METRICS = fitted(plotting.GroupRateDisplay), fitted(plotting.GroupMetricsDisplay)
DENSITIES = fitted(plotting.ScoreDensityDisplay)
TABLES = [
    (convergence, "traces", ["a", 3, {"a": 3}, [TRACE]]),
    (convergence, "x", ["time", 3, ["seconds"], None]),
    (convergence, "reference", ["a", NAN, [1.0], True, np.inf]),
    (convergence, "feasible", ["a", NAN, 0, -1.0, None, [1.0]]),
    (only(ConvergenceDisplay.from_results), "results", ["a", None, 3, {"a": 3}, [1], TRACE]),
    (curve, "gaps", ["a", ["a", "b"], [NAN, NAN], [[0.1, 0.2]], [], [0.1]]),
    (curve, "accuracies", ["a", None, [[0.1, 0.2]], [NAN, 0.8], [0.1]]),
    (curve, "kappas", ["a", [NAN, 0.1], [0.1], [[0.1, 0.2]]]),
    (curve, "unconstrained", ["a", 3, [0.1], ("a", "b"), (NAN, 0.1)]),
    (curve, "points", ["a", 3, {"a": 3}, {"a": "xy"}, {"a": [1.0]}]),
    (curve, "noise", ["a", 3, [0.1], ["a", "b"], [[0.1, 0.2]]]),
    (curve, "chosen", ["a", 2, -1, 1.5, [1], True]),
    (only(FairnessPathDisplay.from_path), "path", ["a", None, 3, MODEL]),
    (METRICS, "metrics", ["accuracy", None, 3, ["zz"], [3]]),
    (METRICS, "ax", ["a", 3]),
    (RATES, "ax", ["a", 3]),
    (RATES, "kappa", ["a", -1.0, NAN, [1.0], True, 1.5]),
    (RATES, "threshold", ["a", NAN, [1.0], True]),
    (RATES, "y", ["a", 3, LABELS + 5, np.full(N, NAN), [None] * N]),
    (RATES, "X", [FEW[:-1]]),
    (DENSITIES, "threshold", ["a", NAN, [1.0], True]),
    (DENSITIES, "ax", ["a", 3]),
]  # fmt: skip


WRONG_ARGUMENTS = [(call, name, value) for call, name, values in TABLES for value in values]


@pytest.mark.parametrize(("call", "name", "value"), WRONG_ARGUMENTS)
def test_the_error_names_the_argument(call, name, value):
    with pytest.raises((ValueError, TypeError)) as found:
        call(name, value)
    assert re.search(rf"\b{name}\b", str(found.value)), found.value
    assert len(str(found.value)) > 20
