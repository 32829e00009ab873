"""Score distributions and calibration of groups, and the frontier of a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.chosen_groups import choose_by_selection_rate, stacked, with_others
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import clopper_pearson
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


@dataclass(frozen=True, eq=False)
class Histogram:
    """The scores of a group by a model, with their quartiles and the share that is selected."""

    density: Density
    quartiles: Array
    selected: float


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """The histograms of a model, on an axis with given ends; the threshold is a share of it.

    A bin whose density is `highest` is as high as its row.
    """

    model: int
    ends: tuple[float, float]
    threshold: float
    highest: float
    histograms: list[Histogram]


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


@dataclass(frozen=True, eq=False)
class ScorePlot:
    """The score distributions of groups, a column for each model, and their calibration.

    Squares are those of the models with probabilities, on the same axes for all groups; none
    without labels.
    """

    unit: str
    groups: list[tuple[str, int]]
    columns: list[ScoreColumn]
    plane: Plane
    squares: list[Square]


def score_plot(evidence: ClassEvidence, confidence: float) -> ScorePlot | None:
    """Return distributions and calibration of the groups, of many models by the first and the last.

    The groups are chosen by their selection rates. With marginal groups a row is in a group of each
    attribute. None if no model has scores.
    """
    collected, names = evidence.collected, evidence.names
    scored = [name for name in names if collected.outputs[name].scores is not None]
    if not scored:
        return None
    rows, groups = stacked(collected.groups)
    selected = collected.outputs[names[-1]].decided[rows]
    choice = choose_by_selection_rate(groups, selected, collected.weight[rows], confidence)
    shown = with_others(groups, choice)
    members = {label: rows[shown.codes == k] for k, label in enumerate(group_labels(shown))}
    outputs = {
        names.index(name): collected.outputs[name]
        for name in dict.fromkeys([scored[0], scored[-1]] if len(scored) > 2 else scored)
    }
    columns = [
        _score_column(model, output, collected.weight, list(members.values()))
        for model, output in outputs.items()
    ]
    squares = []
    if collected.labels is not None:
        probabilities = {m: p for m, one in outputs.items() if (p := one.probability) is not None}
        squares = [
            _square(group, rows, collected.labels, collected.weight, probabilities, confidence)
            for group, rows in (members.items() if probabilities else ())
        ]
    bins = [one for square in squares for curve in square.curves for one in curve.bins]
    points = [end for one in bins for end in (one.predicted, one.observed)]
    points += [end for one in bins if not one.few for end in (one.low, one.high)]
    scale = Scale.of(points, within=(0, 1))  # as far as the points: those of rare classes are small
    plane = Plane(scale, scale, 160, 160, (6.0, 6.0, 154.0, 154.0))
    unit = "scores" if any(one.probability is None for one in outputs.values()) else "probabilities"
    sizes = [(label, len(rows)) for label, rows in members.items()]
    return ScorePlot(unit, sizes, columns, plane, squares)


def _score_column(model: int, output: Outputs, weight: Array, groups: list[Array]) -> ScoreColumn:
    if output.probability is not None:
        scores, threshold, low, high = output.probability, output.probability_threshold, 0.0, 1.0
    else:
        assert output.scores is not None
        scores, threshold = output.scores, output.threshold
        low, high = float(scores.min()), float(scores.max())
    width = max(high - low, 1e-12)
    edges, histograms = np.linspace(low, low + width, _BINS + 1), []
    for rows in groups:
        share = weight[rows] / weight[rows].sum()
        equal = at_most(np.ptp(weight[rows]), 0.0)
        options: Any = {} if equal else {"weights": share, "method": "inverted_cdf"}
        quartiles = np.quantile(scores[rows], [0.25, 0.5, 0.75], **options)
        density = Density.of(scores[rows], share, edges)
        histograms.append(Histogram(density, quartiles, float(share @ output.decided[rows])))
    many = [one for one in histograms if one.density.n_rows >= FEW_ROWS] or histograms
    highest = max(float(one.density.heights.max()) for one in many)
    return ScoreColumn(model, (low, high), (threshold - low) / width, highest, histograms)


def _square(
    group: str,
    rows: Array,
    labels: Array,
    weight: Array,
    probabilities: dict[int, Array],
    confidence: float,
) -> Square:
    """Return the calibration of a group."""
    share = weight[rows] / weight[rows].sum()
    curves = [
        Curve(
            model,
            float(share @ probability[rows]),
            _bins(probability[rows], labels[rows], weight[rows], confidence),
        )
        for model, probability in probabilities.items()
    ]
    return Square(group, len(rows), float(share @ labels[rows]), curves)


def _bins(probability: Array, labels: Array, weight: Array, confidence: float) -> list[Bin]:
    n_bins = int(np.clip(len(probability) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS))
    bins = []
    for rows in np.array_split(np.argsort(probability, kind="stable"), n_bins):
        share = weight[rows] / weight[rows].sum()
        rate = np.array(share @ labels[rows])
        _, low, high = clopper_pearson(rate, np.array(1.0 / (share @ share)), confidence)
        mean, few = float(share @ probability[rows]), len(rows) < _ROWS_PER_BIN
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
