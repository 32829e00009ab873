"""The data of pictures: dots with intervals, score distributions, calibration, the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.inspection.assessment import Finding
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.inspection.shown import FEW_ROWS, Dot, DotRow, RateDots, shown_groups, stacked
from fairconstrained.metrics.inputs import GroupedRows, group_labels
from fairconstrained.metrics.intervals import weighted_share
from fairconstrained.metrics.rates import REPORTED_RATES
from fairconstrained.plotting.densities import Density
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting._tables import decided_by, gaps_table, groups_table, meaning_of
from fairconstrained.reporting.forms import level_of, sentence
from fairconstrained.utils.numerics import at_most
from fairconstrained.utils.typing import Array

_BINS = 24
_ROWS_PER_BIN = 25
_MOST_CALIBRATION_BINS = 8


@dataclass(frozen=True)
class Scale:
    """A linear axis from `low` to `high` with numbers at round `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Any, *, within: tuple[float, float] = (-np.inf, np.inf)) -> Scale:
        """Return an axis that contains all finite values, with three to six round ticks."""
        finite = np.asarray(values, dtype=float)
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        if high - low < 1e-9:
            low, high = low - 0.05, high + 0.05
        steps = [m * 10.0**e for e in range(-8, 9) for m in (1.0, 2.0, 2.5, 5.0)]
        step = next(step for step in steps if (high - low) / step <= 4.0 + 1e-9)
        first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
        low, high = np.clip([first * step, last * step], *within).tolist()
        places = np.round(np.arange(first, last + 1.0) * step, 10)
        inside = places[(places >= low - 1e-9) & (places <= high + 1e-9)]
        return cls(low, high, tuple(inside.tolist()))

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class GapPlot:
    """The gaps of a constraint, a row for each model or, of several classes, for each class."""

    name: str
    description: str
    scale: Scale
    rows: list[DotRow]
    texts: list[str]


def gap_plots(evidence: Evidence) -> list[GapPlot]:
    """Return a picture of every constraint."""
    last = {each.name: each for findings in evidence.findings.values() for each in findings}
    of_class = ", each class against all others" if evidence.several_classes else ""
    plots = []
    for name, finding in last.items():
        rows = [
            DotRow(label, [_gap_dot(evidence, *each) for each in part.of_constraint(name).items()])
            for label, part in evidence.classes.items()
        ]
        dots = [dot for row in rows for dot in row.dots]
        if not evidence.several_classes:
            rows = [DotRow(evidence.names[dot.model], [dot]) for dot in dots]
        ends = [(dot.value, dot.low, dot.high, dot.bound) for dot in dots]
        texts = [decided_by(finding), meaning_of(finding, evidence.confidence)]
        title = f"{finding.constraint.gap_title}{of_class}"
        scale = Scale.of([0.0, finding.tolerance, *np.ravel(ends)])
        plots.append(GapPlot(name.replace("_", " "), title, scale, rows, texts))
    return plots


def _gap_dot(evidence: Evidence, model: int, finding: Finding) -> Dot:
    gap = finding.on_predictions
    verdict = sentence("verdict_in_words", finding, level_of(evidence.confidence))
    bound = np.nan if finding.minimized else finding.tolerance
    equal = bool(finding.constraint.rates_compared) and at_most(gap, 0.0)
    return Dot(model, gap, finding.low, finding.high, bound, verdict, equal)


@dataclass(frozen=True)
class RatePlot:
    """A rate of all groups and models, sorted by the last model, and the largest gaps of each."""

    rate: str
    gaps: list[dict[str, float]]
    scale: Scale
    rows: list[DotRow]
    hidden: list[DotRow]  # are shown only when they are searched for
    whole: DotRow


def rate_plots(evidence: Evidence, rates: Sequence[str] = REPORTED_RATES) -> list[RatePlot]:
    """Return the rates of a positive class that these rows have."""
    tables = [groups_table(evidence, name) for name in evidence.names]
    largest = [gaps_table(evidence, name)["gap"].dropna() for name in evidence.names]
    # Names of marginal groups and strata begin with those of the attributes.
    parts = [[(*str(name).rpartition(": "), gap) for name, gap in each.items()] for each in largest]
    return [
        _rate_plot(
            tables, rate, [{of: gap for of, _, key, gap in each if key == rate} for each in parts]
        )
        for rate in rates
        if rate in tables[0]
    ]


def accuracy_plot(evidence: Evidence) -> list[RatePlot]:
    """Return the accuracy on all of several classes; nothing without labels."""
    rows = evidence.rows
    if rows.labels is None:
        return []
    outputs = {
        name: replace(output, labels=rows.right(output), probabilities=None, positive=True)
        for name, output in rows.outputs.items()
    }
    right = replace(rows, labels=np.ones(len(rows.labels), dtype=bool), outputs=outputs)
    return rate_plots(replace(evidence, rows=right), ["accuracy"])


def _rate_plot(tables: Sequence[pd.DataFrame], rate: str, gaps: list[dict[str, float]]) -> RatePlot:
    """Return the picture of a rate; the last row of the tables is that of all rows."""
    (whole,) = RateDots.of([table.iloc[-1:] for table in tables], rate).shown
    groups = RateDots.of([table.iloc[:-1] for table in tables], rate)
    rows = list(groups.shown)
    if groups.others is not None:  # below the shown groups with higher rates than their median
        values = [row.dots[-1].value for row in groups.hidden]
        middle = np.nanmedian(values) if np.isfinite(values).any() else -np.inf
        rows.insert(sum(row.dots[-1].value >= middle for row in rows), groups.others)
    drawn = [dot for row in (*groups.shown, whole) for dot in row.dots if not np.isnan(dot.value)]
    scale = Scale.of([(dot.low, dot.high) for dot in drawn], within=(0.0, 1.0))
    return RatePlot(rate, gaps, scale, rows, groups.hidden, whole)


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
    """The scores of a group by a model: histogram, quartiles, mean, and the share selected.

    Their calibration is in bins of equal size; there are none without labels or probabilities.
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

    A bin whose density is the one of `highest` of its model is as high as its row. The scale is
    that of the calibration of all groups, in both directions.
    """

    unit: str
    axes: list[ScoreAxis]
    highest: list[float]
    groups: list[ScoreGroup]
    scale: Scale


def score_plot(evidence: Evidence) -> ScorePlot | None:
    """Return distributions and calibration of the groups, of many models by the first and the last.

    The groups are chosen by their selection rates. With marginal groups a row is in a group of each
    attribute. None if no model has scores.
    """
    collected, every = evidence.rows, list(evidence.rows.outputs.values())
    scored = [m for m, output in enumerate(every) if output.scores is not None]
    if not scored:
        return None
    scored = sorted({scored[0], scored[-1]}) if len(scored) > 2 else scored
    outputs, axes = [every[m] for m in scored], [_axis(m, every[m]) for m in scored]
    rows, groups = stacked(collected.groups)
    selected = GroupedRows(None, every[-1].decided[rows], groups, collected.weight[rows])
    shown = shown_groups(selected, evidence.confidence)
    described = []
    for k, name in enumerate(group_labels(shown)):
        members = rows[shown.codes == k]
        weight = collected.weight[members]
        labels = None if collected.labels is None else collected.labels[members]
        observed = np.nan if labels is None else float(np.average(labels, weights=weight))
        models = [
            _distribution(axis, output.take(members), labels, weight, evidence.confidence)
            for axis, output in zip(axes, outputs, strict=True)
        ]
        described.append(ScoreGroup(name, len(members), observed, models))
    large = [group.models for group in described if group.n_rows >= FEW_ROWS]
    columns = zip(*(large or [group.models for group in described]), strict=True)
    highest = [float(max(each.density.heights.max() for each in column)) for column in columns]
    bins = [each for group in described for model in group.models for each in model.bins]
    points = [end for each in bins for end in (each.predicted, each.observed)]
    points += [end for each in bins if not each.few for end in (each.low, each.high)]
    scale = Scale.of(points, within=(0, 1))  # as far as the points: those of rare classes are small
    unit = "scores" if any(output.probability is None for output in outputs) else "probabilities"
    return ScorePlot(unit, axes, highest, described, scale)


def _axis(model: int, output: Outputs) -> ScoreAxis:
    if output.probability is not None:
        return ScoreAxis(model, (0.0, 1.0), output.probability_threshold)
    assert output.scores is not None
    low, high = float(output.scores.min()), float(output.scores.max())
    return ScoreAxis(model, (low, high), (output.threshold - low) / max(high - low, 1e-12))


def _distribution(
    axis: ScoreAxis, output: Outputs, labels: Array | None, weight: Array, confidence: float
) -> Distribution:
    first, last = axis.ends
    edges = np.linspace(first, max(last, first + 1e-12), _BINS + 1)
    scores = output.scores if output.probability is None else output.probability
    assert scores is not None
    share, equal = weight / weight.sum(), at_most(np.ptp(weight), 0.0)
    options: Any = {} if equal else {"weights": share, "method": "inverted_cdf"}
    n_bins, bins = int(np.clip(len(scores) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS)), []
    if labels is not None and output.probability is not None:
        for rows in np.array_split(np.argsort(scores, kind="stable"), n_bins):
            rate, low, high = map(float, weighted_share(labels[rows], weight[rows], confidence))
            mean = float(np.average(scores[rows], weights=weight[rows]))
            bins.append(Bin(mean, rate, low, high, len(rows) < _ROWS_PER_BIN))
    return Distribution(
        axis.model,
        Density.of(scores, share, edges),
        np.quantile(scores, [0.25, 0.5, 0.75], **options),
        float(share @ scores),
        float(share @ output.decided),
        bins,
    )


@dataclass(frozen=True)
class FrontierPlot:
    """The models of a path with accuracy and gap, those of the report, and the tolerance.

    In place of the accuracy there may be another score, and one that is the least allowed.
    """

    gap: str
    path: pd.DataFrame
    models: list[tuple[str, float, float]]
    tolerance: float = np.nan
    least: float = np.nan
    score: str = "accuracy"

    @property
    def x(self) -> Scale:
        """The axis of the gap."""
        gaps = [gap for _, gap, _ in self.models]
        return Scale.of([0.0, self.tolerance, *self.path["gap"], *gaps])

    @property
    def y(self) -> Scale:
        """The axis of the score."""
        scores = self.path[["accuracy", "low", "high"]].to_numpy(float).ravel()
        return Scale.of([self.least, *scores, *(score for *_, score in self.models)])


def frontier_plot(evidence: Evidence, path: pd.DataFrame) -> FrontierPlot | None:
    """Return the frontier; None without a path."""
    if not len(path):
        return None
    reference = evidence.reference
    name = "demographic_parity" if reference is None else reference.name
    models, bounds = [], evidence.of_constraint(name)
    for m, (model, output) in enumerate(evidence.rows.outputs.items()):
        gap = bounds[m].on_predictions if m in bounds else evidence.gap(output, None)
        models.append((model, gap, evidence.overall[model]["accuracy"]))
    last = bounds.get(m)
    tolerance = np.nan if last is None or last.minimized else last.tolerance
    return FrontierPlot(name.replace("_", " "), path, models, tolerance)
