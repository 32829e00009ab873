"""Score distributions and calibration of groups, and the frontier of a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.inspection.chosen_groups import choose_by_selection_rate, stacked, with_others
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.metrics.rates import group_labels
from fairconstrained.reporting._axes import Plane, Scale
from fairconstrained.reporting._evidence import ClassEvidence, Evidence
from fairconstrained.reporting._frontier import FrontierPoint, widest_gap
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_BINS = 24
_ROWS_PER_BIN = 25
_MOST_CALIBRATION_BINS = 8

GroupRows = dict[str, Array]


def rows_of_groups(evidence: ClassEvidence, confidence: float) -> GroupRows:
    """Return the rows of the shown groups, which are chosen by their selection rates.

    With marginal groups a row is in a group of each attribute.
    """
    collected = evidence.collected
    rows, groups = stacked(collected.groups)
    selected = collected.outputs[evidence.names[-1]].decided[rows]
    choice = choose_by_selection_rate(groups, selected, collected.weight[rows], confidence)
    shown = with_others(groups, choice)
    return {label: rows[shown.codes == k] for k, label in enumerate(group_labels(shown))}


@dataclass(frozen=True, eq=False)
class Histogram:
    """The scores of a group by a model.

    Parameters
    ----------
    heights : ndarray of shape (n_bins,)
        The shares of the bins, relative to the highest of the groups with enough rows.
    quartiles : ndarray of shape (3,)
        The quartiles.
    selected : float
        The share of the rows that are selected.
    """

    heights: Array
    quartiles: Array
    selected: float


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """The histograms of a model, on an axis with given ends; the threshold is a share of it."""

    model: int
    ends: tuple[float, float]
    threshold: float
    histograms: list[Histogram]


@dataclass(frozen=True, eq=False)
class ScorePlot:
    """The score distributions of groups, a column for each model."""

    unit: str
    groups: list[tuple[str, int]]
    columns: list[ScoreColumn]


def models_with_scores(evidence: ClassEvidence) -> list[str]:
    """Return the models whose scores are shown: of many, the first and the last."""
    names = [name for name, one in evidence.collected.outputs.items() if one.scores is not None]
    return names if len(names) <= 2 else [names[0], names[-1]]


def score_plot(evidence: ClassEvidence, groups: GroupRows) -> ScorePlot | None:
    """Return the score distributions; None if no model has scores."""
    names = models_with_scores(evidence)
    if not names:
        return None
    shown = [evidence.collected.outputs[name] for name in names]
    unit = "scores" if any(one.probability is None for one in shown) else "probabilities"
    sizes = [(label, len(rows)) for label, rows in groups.items()]
    return ScorePlot(unit, sizes, [_score_column(evidence, name, groups) for name in names])


def _score_column(evidence: ClassEvidence, name: str, groups: GroupRows) -> ScoreColumn:
    output, weight = evidence.collected.outputs[name], evidence.collected.weight
    values, threshold, ends = _on_axis(output)
    parts = list(groups.values())
    places = np.clip((values * _BINS).astype(int), 0, _BINS - 1)
    counts = np.array([np.bincount(places[rows], weight[rows], _BINS) for rows in parts])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    many = np.array([len(rows) >= FEW_ROWS for rows in parts])
    highest = max(float(shares[many if many.any() else ~many].max()), 1e-12)
    scores = output.scores if output.probability is None else output.probability
    assert scores is not None
    histograms = [
        Histogram(
            np.minimum(of_group / highest, 1.0),
            np.quantile(scores[rows], [0.25, 0.5, 0.75], **_weights(weight[rows])),
            float(np.average(output.decided[rows], weights=weight[rows])),
        )
        for of_group, rows in zip(shares, parts, strict=True)
    ]
    return ScoreColumn(evidence.names.index(name), ends, threshold, histograms)


def _on_axis(output: Outputs) -> tuple[Array, float, tuple[float, float]]:
    """Return scores from 0 to 1 for the picture, the threshold among them, and the axis's ends."""
    if output.probability is not None:
        return output.probability, output.probability_threshold, (0.0, 1.0)
    assert output.scores is not None
    low, high = float(output.scores.min()), float(output.scores.max())
    width = max(high - low, 1e-12)
    return (output.scores - low) / width, (output.threshold - low) / width, (low, high)


def _weights(weight: Array) -> dict[str, Any]:
    """Return the options of NumPy's quantiles for rows with weights."""
    equal = at_most(np.ptp(weight), 0.0)
    return {} if equal else {"weights": weight, "method": "inverted_cdf"}


@dataclass(frozen=True)
class Bin:
    """Mean probability and share of positive labels of some rows, with its interval."""

    predicted: float
    observed: float
    low: float
    high: float
    few: bool


@dataclass(frozen=True)
class Curve:
    """The calibration of a model in a group: its mean probability, and bins of equal size."""

    model: int
    mean: float
    bins: list[Bin]


@dataclass(frozen=True)
class Square:
    """The calibration of all models in a group, whose share of positive labels is `observed`."""

    group: str
    n_rows: int
    observed: float
    curves: list[Curve]


@dataclass(frozen=True)
class CalibrationPlot:
    """The calibration by group, on the same axes for all groups."""

    plane: Plane
    n_models: int
    squares: list[Square]


def calibration_plot(
    evidence: ClassEvidence, groups: GroupRows, confidence: float
) -> CalibrationPlot | None:
    """Return the calibration of models with probabilities; None without any, or without labels.

    Both axes reach as far as the points: probabilities of a rare class are far below 1.
    """
    collected = evidence.collected
    probabilities = {
        evidence.names.index(name): probability
        for name in models_with_scores(evidence)
        if (probability := collected.outputs[name].probability) is not None
    }
    if not probabilities or collected.labels is None:
        return None
    labels, weight, squares = collected.labels, collected.weight, []
    for group, rows in groups.items():
        curves = [
            Curve(
                model,
                float(np.average(of_model[rows], weights=weight[rows])),
                _bins(of_model[rows], labels[rows], weight[rows], confidence),
            )
            for model, of_model in probabilities.items()
        ]
        observed = float(np.average(labels[rows], weights=weight[rows]))
        squares.append(Square(group, len(rows), observed, curves))
    bins = [one for square in squares for curve in square.curves for one in curve.bins]
    points = [[one.predicted, one.observed] for one in bins]
    ends = [[one.low, one.high] for one in bins if not one.few]
    scale = Scale.of(np.array([value for pair in points + ends for value in pair]), within=(0, 1))
    plane = Plane(scale, scale, 160, 160, (6.0, 6.0, 154.0, 154.0))
    return CalibrationPlot(plane, len(probabilities), squares)


def _bins(probability: Array, labels: Array, weight: Array, confidence: float) -> list[Bin]:
    n_bins = int(np.clip(len(probability) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS))
    found = []
    for rows in np.array_split(np.argsort(probability, kind="stable"), n_bins):
        total = weight[rows].sum()
        size = total**2 / (weight[rows] @ weight[rows])
        rate = weight[rows] @ labels[rows] / total
        interval = clopper_pearson(np.array(rate), np.array(size), confidence)
        mean = float(weight[rows] @ probability[rows] / total)
        few = len(rows) < _ROWS_PER_BIN
        found.append(Bin(mean, float(rate), float(interval.low), float(interval.high), few))
    return found


@dataclass(frozen=True)
class FrontierPlot:
    """The models of a path with accuracy and gap, those of the report, and the tolerance."""

    gap: str
    plane: Plane
    path: list[FrontierPoint]
    models: list[tuple[str, float, float]]
    tolerance: float


def frontier_plot(evidence: Evidence) -> FrontierPlot | None:
    """Return the frontier; None without a path."""
    path = evidence.frontier
    if not path:
        return None
    models = [
        (name, _gap_on_frontier(evidence, name), evidence.overall[name]["accuracy"])
        for name in evidence.names
    ]
    tolerances = [
        one.assessment.tolerance
        for one in evidence.findings[evidence.names[-1]]
        if one.assessment.name == evidence.frontier_gap and not one.minimized
    ]
    tolerance = tolerances[0] if tolerances else np.nan
    gaps = [*(one.gap for one in path), *(gap for _, gap, _ in models), tolerance, 0.0]
    accuracies = [float(end) for one in path for end in one.accuracy]
    accuracies += [accuracy for _, _, accuracy in models]
    x, y = Scale.of(np.array(gaps)), Scale.of(np.array(accuracies))
    plane = Plane(x, y, 360, 270, (52.0, 24.0, 346.0, 230.0))
    return FrontierPlot(evidence.frontier_gap.replace("_", " "), plane, path, models, tolerance)


def _gap_on_frontier(evidence: Evidence, name: str) -> float:
    """Return the gap of a model of the report by which the frontier is drawn."""
    for one in evidence.findings[name]:
        if one.assessment.name == evidence.frontier_gap:
            return one.assessment.on_predictions
    return widest_gap(evidence.predictions(name))
