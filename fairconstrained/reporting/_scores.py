"""Score distributions and calibration of groups, and the frontier of a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.deciding import (
    FEW_ROWS,
    choose_by_selection_rate,
    stacked,
    with_others,
)
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import weighted_share
from fairconstrained.metrics.rates import group_labels
from fairconstrained.plotting.densities import Density
from fairconstrained.reporting._dots import Scale
from fairconstrained.reporting._evidence import ClassEvidence, Evidence, widest_gap
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_BINS = 24
_ROWS_PER_BIN = 25
_MOST_CALIBRATION_BINS = 8


@dataclass(frozen=True)
class Plane:
    """A picture with two axes, of fixed size in pixels.

    Parameters
    ----------
    x, y : Scale
        The axes.
    width, height : int
        The size of the picture.
    box : tuple of float
        Left, top, right and bottom of the area between the axes.
    """

    x: Scale
    y: Scale
    width: int
    height: int
    box: tuple[float, float, float, float]

    def across(self, x: float) -> float:
        """Return the horizontal pixel of a value."""
        left, _, right, _ = self.box
        return left + (right - left) * self.x.share(x)

    def down(self, y: float) -> float:
        """Return the vertical pixel of a value."""
        _, top, _, bottom = self.box
        return bottom - (bottom - top) * self.y.share(y)


@dataclass(frozen=True)
class Bin:
    """Mean probability and share of positive labels of some rows, with its interval."""

    predicted: float
    observed: float
    low: float
    high: float
    few: bool


@dataclass(frozen=True, eq=False)
class Distribution:
    """The scores of a group by a model, and their calibration in bins of equal size.

    Parameters
    ----------
    model : int
        The position of the model.
    density : Density
        The histogram.
    quartiles : ndarray of shape (3,)
        The quartiles.
    mean, selected : float
        The mean, and the share of the rows that are selected.
    bins : list of Bin
        The calibration; empty without labels or probabilities.
    """

    model: int
    density: Density
    quartiles: Array
    mean: float
    selected: float
    bins: list[Bin]


@dataclass(frozen=True, eq=False)
class ScoreGroup:
    """The scores of a group by all models, and its share of positive labels."""

    name: str
    n_rows: int
    observed: float
    models: list[Distribution]


@dataclass(frozen=True)
class ScoreAxis:
    """The axis of the histograms of a model; the threshold is a share of it."""

    model: int
    ends: tuple[float, float]
    threshold: float


@dataclass(frozen=True, eq=False)
class ScorePlot:
    """The score distributions of groups, a column for each model, and their calibration.

    A bin whose density is the one of `highest` of its model is as high as its row. The plane is
    that of the calibration of all groups.
    """

    unit: str
    axes: list[ScoreAxis]
    highest: list[float]
    groups: list[ScoreGroup]
    plane: Plane


def score_plot(evidence: ClassEvidence, confidence: float) -> ScorePlot | None:
    """Return distributions and calibration of the groups, of many models by the first and the last.

    The groups are chosen by their selection rates. With marginal groups a row is in a group of each
    attribute. None if no model has scores.
    """
    collected, names = evidence.collected, evidence.names
    scored = [name for name in names if collected.outputs[name].scores is not None]
    if not scored:
        return None
    outputs = [collected.outputs[name] for name in scored]
    axes = [_axis(names.index(name), collected.outputs[name]) for name in scored]
    if len(scored) > 2:
        outputs, axes = [outputs[0], outputs[-1]], [axes[0], axes[-1]]
    rows, groups = stacked(collected.groups)
    selected = collected.outputs[names[-1]].decided[rows]
    choice = choose_by_selection_rate(groups, selected, collected.weight[rows], confidence)
    shown, described = with_others(groups, choice), []
    for k, name in enumerate(group_labels(shown)):
        members = rows[shown.codes == k]
        weight = collected.weight[members]
        labels = None if collected.labels is None else collected.labels[members]
        observed = np.nan if labels is None else float(np.average(labels, weights=weight))
        models = [
            _distribution(axis, output.take(members), labels, weight, confidence)
            for axis, output in zip(axes, outputs, strict=True)
        ]
        described.append(ScoreGroup(name, len(members), observed, models))
    large = [one for one in described if one.n_rows >= FEW_ROWS] or described
    highest = [
        max(float(one.models[m].density.heights.max()) for one in large) for m in range(len(axes))
    ]
    bins = [one for group in described for model in group.models for one in model.bins]
    points = [end for one in bins for end in (one.predicted, one.observed)]
    points += [end for one in bins if not one.few for end in (one.low, one.high)]
    scale = Scale.of(points, within=(0, 1))  # as far as the points: those of rare classes are small
    plane = Plane(scale, scale, 160, 160, (6.0, 6.0, 154.0, 154.0))
    unit = "scores" if any(one.probability is None for one in outputs) else "probabilities"
    return ScorePlot(unit, axes, highest, described, plane)


def _axis(model: int, output: Outputs) -> ScoreAxis:
    if output.probability is not None:
        return ScoreAxis(model, (0.0, 1.0), output.probability_threshold)
    assert output.scores is not None
    low, high = float(output.scores.min()), float(output.scores.max())
    return ScoreAxis(model, (low, high), (output.threshold - low) / max(high - low, 1e-12))


def _distribution(
    axis: ScoreAxis, output: Outputs, labels: Array | None, weight: Array, confidence: float
) -> Distribution:
    low, high = axis.ends
    edges = np.linspace(low, max(high, low + 1e-12), _BINS + 1)
    scores = output.scores if output.probability is None else output.probability
    assert scores is not None
    share, equal = weight / weight.sum(), at_most(np.ptp(weight), 0.0)
    options: Any = {} if equal else {"weights": share, "method": "inverted_cdf"}
    bins = []
    if labels is not None and output.probability is not None:
        bins = _bins(scores, labels, weight, confidence)
    return Distribution(
        axis.model,
        Density.of(scores, share, edges),
        np.quantile(scores, [0.25, 0.5, 0.75], **options),
        float(share @ scores),
        float(share @ output.decided),
        bins,
    )


def _bins(probability: Array, labels: Array, weight: Array, confidence: float) -> list[Bin]:
    n_bins = int(np.clip(len(probability) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS))
    bins = []
    for rows in np.array_split(np.argsort(probability, kind="stable"), n_bins):
        rate, low, high = weighted_share(labels[rows], weight[rows], confidence)
        mean = float(np.average(probability[rows], weights=weight[rows]))
        few = len(rows) < _ROWS_PER_BIN
        bins.append(Bin(mean, float(rate), float(low), float(high), few))
    return bins


@dataclass(frozen=True)
class FrontierPlot:
    """The models of a path with accuracy and gap, those of the report, and the tolerance."""

    gap: str
    plane: Plane
    path: pd.DataFrame
    models: list[tuple[str, float, float]]
    tolerance: float


def frontier_plot(evidence: Evidence, path: pd.DataFrame) -> FrontierPlot | None:
    """Return the frontier; None without a path."""
    if not len(path):
        return None
    reference = evidence.reference
    name = "demographic_parity" if reference is None else reference.assessment.name
    bound_of = {
        model: next((one for one in findings if one.assessment.name == name), None)
        for model, findings in evidence.findings.items()
    }
    models = []
    for model, one in bound_of.items():
        gap = one.assessment.on_predictions if one else widest_gap(evidence.predictions(model))
        models.append((model, gap, evidence.overall[model]["accuracy"]))
    last = bound_of[evidence.names[-1]]
    tolerance = np.nan if last is None or last.minimized else last.assessment.tolerance
    x = Scale.of([0.0, tolerance, *path["gap"], *(gap for _, gap, _ in models)])
    accuracies = path[["accuracy", "low", "high"]].to_numpy().ravel()
    y = Scale.of([*accuracies, *(accuracy for *_, accuracy in models)])
    plane = Plane(x, y, 360, 270, (52.0, 24.0, 346.0, 230.0))
    return FrontierPlot(name.replace("_", " "), plane, path, models, tolerance)
