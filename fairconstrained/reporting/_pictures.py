"""The data of pictures: dots with intervals, score distributions, calibration, the frontier.

A picture is a dictionary of what its template shows.
"""

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
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting._tables import decided_by, gaps_table, groups_table, meaning_of
from fairconstrained.reporting.forms import level_of, sentence
from fairconstrained.utils.arrays import Array, at_most, quantiles

Picture = dict[str, Any]

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
    def of(cls, values: Any, *, within: tuple[float, float] = (-np.inf, np.inf)) -> "Scale":
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


def gap_plots(evidence: Evidence) -> list[Picture]:
    """Return a picture of every constraint, a row for each model or, of several, each class."""
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
        plot = {
            "name": name.replace("_", " "),
            "description": f"{finding.constraint.gap_title}{of_class}",
            "scale": Scale.of([0.0, finding.tolerance, *np.ravel(ends)]),
            "rows": rows,
            "texts": [decided_by(finding), meaning_of(finding, evidence.confidence)],
        }
        plots.append(plot)
    return plots


def _gap_dot(evidence: Evidence, model: int, finding: Finding) -> Dot:
    gap = finding.on_predictions
    verdict = sentence("verdict_in_words", finding, level_of(evidence.confidence))
    bound = np.nan if finding.minimized else finding.tolerance
    equal = bool(finding.constraint.rates_compared) and at_most(gap, 0.0)
    return Dot(model, gap, finding.low, finding.high, bound, verdict, equal)


def rate_plots(evidence: Evidence, rates: Sequence[str] = REPORTED_RATES) -> list[Picture]:
    """Return the rates of a positive class that these rows have, with the largest gaps."""
    tables = [groups_table(evidence, name) for name in evidence.names]
    largest = [gaps_table(evidence, name)["gap"].dropna() for name in evidence.names]
    # Names of marginal groups and strata begin with those of the attributes.
    parts = [[(*str(name).rpartition(": "), gap) for name, gap in each.items()] for each in largest]
    plots = [_rate_plot(tables, rate) for rate in rates if rate in tables[0]]
    for plot in plots:
        rate = plot["rate"]
        plot["gaps"] = [{of: gap for of, _, key, gap in each if key == rate} for each in parts]
    return plots


def accuracy_plot(evidence: Evidence) -> list[Picture]:
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


def _rate_plot(tables: Sequence[pd.DataFrame], rate: str) -> Picture:
    """Return the picture of a rate; the last row of the tables is that of all rows."""
    (whole,) = RateDots([table.iloc[-1:] for table in tables], rate).shown
    groups = RateDots([table.iloc[:-1] for table in tables], rate)
    rows = list(groups.shown)
    if groups.others is not None:  # below the shown groups with higher rates than their median
        values = [row.dots[-1].value for row in groups.hidden]
        middle = np.nanmedian(values) if np.isfinite(values).any() else -np.inf
        rows.insert(sum(row.dots[-1].value >= middle for row in rows), groups.others)
    drawn = [dot for row in (*groups.shown, whole) for dot in row.dots if not np.isnan(dot.value)]
    scale = Scale.of([(dot.low, dot.high) for dot in drawn], within=(0.0, 1.0))
    # Hidden rows are shown only when they are searched for.
    return {"rate": rate, "scale": scale, "rows": rows, "hidden": groups.hidden, "whole": whole}


def score_plot(evidence: Evidence) -> Picture | None:
    """Return distributions and calibration of the groups, of many models by the first and the last.

    There is an axis and a highest bin for each model; groups of few rows do not set the latter.
    None if no model has scores.
    """
    collected, every = evidence.rows, list(evidence.rows.outputs.values())
    scored = [m for m, output in enumerate(every) if output.scores is not None]
    if not scored:
        return None
    scored = sorted({scored[0], scored[-1]}) if len(scored) > 2 else scored
    outputs = [every[m] for m in scored]
    axes = [_axis(output) | {"model": m} for m, output in zip(scored, outputs, strict=True)]
    rows, groups = stacked(collected.groups)
    selected = GroupedRows(None, every[-1].decided[rows], groups, collected.weight[rows])
    shown = shown_groups(selected, evidence.confidence)
    described: list[Picture] = []
    for k, name in enumerate(group_labels(shown)):
        members = rows[shown.codes == k]
        weight = collected.weight[members]
        labels = None if collected.labels is None else collected.labels[members]
        observed = np.nan if labels is None else float(np.average(labels, weights=weight))
        models = [
            _distribution(axis, output.take(members), labels, weight, evidence.confidence)
            for axis, output in zip(axes, outputs, strict=True)
        ]
        of_group = {"name": name, "n_rows": len(members), "observed": observed, "models": models}
        described.append(of_group)
    large = [each["models"] for each in described if each["n_rows"] >= FEW_ROWS]
    columns = zip(*(large or [each["models"] for each in described]), strict=True)
    bins = [each for group in described for model in group["models"] for each in model["bins"]]
    ends = ["predicted", "observed", "low", "high"]
    points = [each[end] for each in bins for end in ends[: 2 if each["few"] else 4]]
    some = any(output.probability is None for output in outputs)
    return {
        "unit": "scores" if some else "probabilities",
        "axes": axes,
        "highest": [float(max(each["heights"].max() for each in column)) for column in columns],
        "groups": described,
        # of the calibration, as far as the points: those of rare classes are small
        "scale": Scale.of(points, within=(0, 1)),
    }


def _axis(output: Outputs) -> Picture:
    """Return the ends of the axis of a model, and the threshold as a share of it."""
    if output.probability is not None:
        return {"ends": (0.0, 1.0), "threshold": output.probability_threshold}
    assert output.scores is not None
    low, high = float(output.scores.min()), float(output.scores.max())
    return {"ends": (low, high), "threshold": (output.threshold - low) / max(high - low, 1e-12)}


def _distribution(
    axis: Picture, output: Outputs, labels: Array | None, weight: Array, confidence: float
) -> Picture:
    """Return the histogram of a group's scores by a model, and the bins of the calibration."""
    first, last = axis["ends"]
    edges = np.linspace(first, max(last, first + 1e-9 * max(abs(first), 1.0)), _BINS + 1)
    scores: Any = output.scores if output.probability is None else output.probability
    share = weight / weight.sum()
    n_bins, bins = int(np.clip(len(scores) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS)), []
    if labels is not None and output.probability is not None:
        order = np.argsort(scores, kind="stable")
        ordered = scores[order]
        # Rows of equal scores are in one bin: divided, they would be sorted as the file is.
        starts = np.searchsorted(ordered, ordered[np.arange(n_bins) * len(scores) // n_bins])
        for rows in np.split(order, np.unique(starts)[1:]):
            rate, low, high = map(float, weighted_share(labels[rows], weight[rows], confidence))
            mean, few = np.average(scores[rows], weights=weight[rows]), len(rows) < _ROWS_PER_BIN
            ends = {"predicted": float(mean), "observed": rate, "low": low, "high": high}
            bins.append(ends | {"few": few})
    return {
        "model": axis["model"],
        "heights": np.histogram(scores, edges, weights=share)[0] / np.diff(edges),
        "quartiles": quantiles(scores, np.array([0.25, 0.5, 0.75]), share),
        "mean": float(share @ scores),
        "selected": float(share @ output.decided),
        "bins": bins,
    }


def frontier_picture(
    path: pd.DataFrame,
    models: list[tuple[str, float, float]],
    gap: str,
    score: str = "accuracy",
    tolerance: float = np.nan,
    least: float = np.nan,
) -> Picture:
    """Return models of a path, others with gap and score, the tolerance and the lowest score."""
    gaps, scores = ([model[k] for model in models] for k in (1, 2))
    ends = path[["accuracy", "low", "high"]].to_numpy(float).ravel()
    axes = {
        "x": Scale.of([0.0, tolerance, *path["gap"], *gaps]),
        "y": Scale.of([least, *ends, *scores]),
    }
    names = {"path": path, "models": models, "gap": gap, "score": score}
    return {**names, **axes, "tolerance": tolerance, "least": least}


def frontier_plot(evidence: Evidence, path: pd.DataFrame) -> Picture | None:
    """Return the frontier; None without a path."""
    if not len(path):
        return None
    reference = evidence.reference
    name = "demographic_parity" if reference is None else reference.name
    models = [
        (model, evidence.gap(output), evidence.overall[model]["accuracy"])
        for model, output in evidence.rows.outputs.items()
    ]
    last = evidence.of_constraint(name).get(len(models) - 1)
    tolerance = np.nan if last is None or last.minimized else last.tolerance
    return frontier_picture(path, models, name.replace("_", " "), tolerance=tolerance)
