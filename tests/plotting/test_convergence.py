"""Tests of ConvergenceDisplay, including single-point and diverging runs."""

import numpy as np
import pytest
from _support.drawing import draw, plt
from _support.problems import PROBLEMS

from fairconstrained.plotting import ConvergenceDisplay
from fairconstrained.solvers import IPC, AugmentedLagrangian
from fairconstrained.solvers.result import Trace


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


@pytest.mark.parametrize("x", ["seconds", "iteration"])
def test_x(results, x):
    display = draw(ConvergenceDisplay.from_results(results["IPC"], x=x))
    line = display.lines_["IPC"][0]
    assert line.get_xdata() == pytest.approx(getattr(results["IPC"].trace, x))


def test_reference_gives_the_relative_gap(results):
    best = results["IPC"].objective - 0.1
    display = draw(ConvergenceDisplay.from_results(results, reference=best))
    gap = (np.asarray(results["AL"].trace.objective) - best) / best
    assert display.lines_["AL"][0].get_ydata() == pytest.approx(np.abs(gap))
    assert display.axes_[0].get_yscale() == "log"
    assert "gap" in display.axes_[0].get_ylabel()


def test_violations_of_zero_are_drawn_at_the_bottom():
    display = draw(ConvergenceDisplay({"run": trace_of(0.1, 0.0, 1e-6, 0.0)}).plot())
    shown = display.lines_["run"][1].get_ydata()
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
    assert ConvergenceDisplay({"long": runs["long"]}).plot().axes_[0].get_xscale() == "linear"


def test_given_axes_are_used(results):
    figure, axes = plt.subplots(3, 1)
    display = draw(ConvergenceDisplay.from_results(results, axes=axes))
    assert display.figure_ is figure
    assert display.axes_.tolist() == axes.tolist()
    assert axes[0].get_legend() is not None
    assert not figure.legends
