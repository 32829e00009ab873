"""The part of the page that shows score distributions and calibration by group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from fairconstrained.data.groups import Groups
from fairconstrained.inspection.chosen_groups import choose_groups, stacked, with_others
from fairconstrained.inspection.deciding import FEW_ROWS
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.metrics.rates import group_labels
from fairconstrained.reporting import _svg as svg
from fairconstrained.reporting._evidence import ClassEvidence
from fairconstrained.reporting._html import keys
from fairconstrained.utils.rounding import at_most
from fairconstrained.utils.typing import Array

_BINS = 24
_ROWS_PER_BIN = 25
_MOST_CALIBRATION_BINS = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of the shown groups, once for each marginal group that they are in.

    Parameters
    ----------
    rows : ndarray of int of shape (n_listed,)
        The rows.
    groups : Groups
        Their groups: those that are shown, and "others".
    """

    rows: Array
    groups: Groups

    def of_group(self, k: int) -> Array:
        """Return the rows of a group."""
        return self.rows[self.groups.codes == k]


def score_sections(evidence: ClassEvidence, confidence: float, level: int) -> Iterator[str]:
    """Yield the score distributions, and the calibration of models with probabilities.

    `level` is that of the heading.
    """
    outputs = evidence.collected.outputs
    shown = [name for name, one in outputs.items() if one.scores is not None]
    shown = shown if len(shown) <= 2 else [shown[0], shown[-1]]
    if not shown:
        return
    sample = _sample(evidence, confidence)
    yield f"<h{level}>Scores by group</h{level}>"
    yield _distributions(evidence, shown, sample)
    calibrated = [name for name in shown if outputs[name].probability is not None]
    if calibrated and evidence.collected.labels is not None:
        yield from _calibrations(evidence, calibrated, sample, confidence, level + 1)


def _sample(evidence: ClassEvidence, confidence: float) -> Sample:
    """Return the groups that are shown, chosen by their selection rates."""
    collected = evidence.collected
    rows, groups = stacked(collected.groups)
    decided = collected.outputs[evidence.names[-1]].decided[rows]
    weight = collected.weight[rows]
    n = len(groups)
    sizes = np.bincount(groups.codes, weight, n)
    rates = np.bincount(groups.codes, weight * decided, n) / np.maximum(sizes, 1e-300)
    squares = np.bincount(groups.codes, weight**2, n)
    limits = clopper_pearson(rates, sizes**2 / squares, confidence)
    choice = choose_groups(rates, sizes, low=limits.low, high=limits.high)
    return Sample(rows, with_others(groups, choice))


def _on_axis(output: Outputs) -> tuple[Array, float, tuple[float, float]]:
    """Return scores from 0 to 1 for the picture, the threshold among them, and the axis's ends."""
    if output.probability is not None:
        return output.probability, output.probability_threshold, (0.0, 1.0)
    assert output.scores is not None
    low, high = float(output.scores.min()), float(output.scores.max())
    width = max(high - low, 1e-12)
    return (output.scores - low) / width, (output.threshold - low) / width, (low, high)


def _distributions(evidence: ClassEvidence, shown: list[str], sample: Sample) -> str:
    """Return a table with a histogram for each group and model."""
    labels = group_labels(sample.groups)
    columns = [_column(evidence, name, sample, labels) for name in shown]
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        f'<td class="number rows">{int((sample.groups.codes == k).sum())}</td>'
        + "".join(f'<td class="plot">{column[1 + k]}</td>' for column in columns)
        + "</tr>"
        for k, label in enumerate(labels)
    )
    heads = "".join(column[0] for column in columns)
    outputs = [evidence.collected.outputs[name] for name in shown]
    unit = "scores" if any(one.probability is None for one in outputs) else "probabilities"
    return (
        f'<table class="dots scores"><caption>Score distribution<span>{unit} of the positive '
        "class, larger to the right; a vertical line is the decision threshold</span></caption>"
        f'<thead><tr><th scope="col">Group</th><th scope="col" class="number">Rows</th>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def _column(evidence: ClassEvidence, name: str, sample: Sample, labels: list[str]) -> list[str]:
    """Return the head of a model and the histograms of its groups."""
    output = evidence.collected.outputs[name]
    values, cut, ends = _on_axis(output)
    shares = _histograms(values, sample, evidence.collected.weight)
    many = np.bincount(sample.groups.codes, minlength=len(labels)) >= FEW_ROWS
    highest = max(float(shares[many if many.any() else ~many].max()), 1e-12)
    colour = 1 if len(evidence.names) == 1 else evidence.names.index(name)
    head = f'<th scope="col" class="plot">{escape(name) or "Distribution"}{svg.ends(*ends)}</th>'
    return [
        head,
        *(
            svg.histogram(
                _described(label, name, output, sample.of_group(k), evidence.collected.weight),
                np.minimum(shares[k], highest), highest, cut, colour,
            )
            for k, label in enumerate(labels)
        ),
    ]  # fmt: skip


def _histograms(values: Array, sample: Sample, weight: Array) -> Array:
    """Return the shares of the bins for each group, of shape (n_groups, n_bins)."""
    n = len(sample.groups)
    places = np.clip((values[sample.rows] * _BINS).astype(int), 0, _BINS - 1)
    cells = sample.groups.codes * _BINS + places
    counts = np.bincount(cells, weight[sample.rows], n * _BINS).reshape(n, _BINS)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)


def _described(label: str, name: str, output: Outputs, rows: Array, weight: Array) -> str:
    """Return the alternative text of a histogram."""
    values = output.probability if output.probability is not None else output.scores
    assert values is not None
    low, median, high = np.quantile(values[rows], [0.25, 0.5, 0.75], **_weights(weight[rows]))
    of = f" by {name}" if name else ""
    selected = np.average(output.decided[rows], weights=weight[rows])
    return (
        f"{label}{of}, {len(rows)} rows: median {median:.3f}, middle half {low:.3f} to {high:.3f}, "
        f"{selected:.3f} selected"
    )


def _weights(weight: Array) -> dict[str, Any]:
    """Return the options of NumPy's quantiles for rows with weights."""
    equal = at_most(np.ptp(weight), 0.0)
    return {} if equal else {"weights": weight, "method": "inverted_cdf"}


def _calibrations(
    evidence: ClassEvidence, shown: list[str], sample: Sample, confidence: float, level: int
) -> Iterator[str]:
    """Yield a small picture for each group: observed against predicted probabilities."""
    yield f"<h{level}>Calibration</h{level}>"
    yield keys(evidence.names) if len(shown) > 1 else ""
    yield (
        '<p class="muted">The share of positive labels (upwards) against the predicted probability '
        "(to the right), both from 0 to 1, in bins of equal size. On the dashed diagonal they are "
        "equal. Vertical lines are confidence intervals.</p>"
    )
    yield '<div class="squares">'
    for k, label in enumerate(group_labels(sample.groups)):
        yield _square(evidence, shown, label, sample.of_group(k), confidence)
    yield "</div>"


def _square(
    evidence: ClassEvidence, shown: list[str], label: str, rows: Array, confidence: float
) -> str:
    unit = svg.Scale(0.0, 1.0, (0.0, 0.5, 1.0))
    plane = svg.Plane(unit, unit, 160, 160)
    inside, described, means = [plane.line([0.0, 1.0], [0.0, 1.0], "equal")], [], []
    collected, n_models = evidence.collected, len(evidence.names)
    assert collected.labels is not None
    for name in shown:
        probability = collected.outputs[name].probability
        assert probability is not None
        m = evidence.names.index(name)
        bins = _bins(probability[rows], collected.labels[rows], collected.weight[rows], confidence)
        color = 1 if n_models == 1 else m
        for predicted, observed, low, high, n in bins:
            few = " few" if n < _ROWS_PER_BIN else ""
            inside.append(plane.interval(predicted, low, high, f"interval m{color}{few}"))
            inside.append(plane.at(predicted, observed, svg.mark(m, n_models)))
        pairs = ", ".join(f"{one[0]:.2f} predicted {one[1]:.2f} observed" for one in bins)
        described.append(f"{name}: {pairs}" if name else pairs)
        mean = np.average(probability[rows], weights=collected.weight[rows])
        means.append(f"{name} {mean:.3f}" if name else f"{mean:.3f}")
    observed = np.average(collected.labels[rows], weights=collected.weight[rows])
    title = f"Calibration of {label}, {len(rows)} rows. {'; '.join(described)}"
    return (
        f"<figure>{plane.wrap(title, inside, 'square')}<figcaption>{escape(label)}<br>"
        f"predicted {escape(', '.join(means))}<br>observed {observed:.3f}</figcaption></figure>"
    )


def _bins(
    probability: Array, labels: Array, weight: Array, confidence: float
) -> list[tuple[float, float, float, float, int]]:
    """Return mean probability, share of positive labels, its interval and the rows of each bin."""
    n_bins = int(np.clip(len(probability) // _ROWS_PER_BIN, 1, _MOST_CALIBRATION_BINS))
    found = []
    for rows in np.array_split(np.argsort(probability, kind="stable"), n_bins):
        total = weight[rows].sum()
        size = total**2 / (weight[rows] @ weight[rows])
        rate = weight[rows] @ labels[rows] / total
        interval = clopper_pearson(np.array(rate), np.array(size), confidence)
        mean = weight[rows] @ probability[rows] / total
        found.append(
            (float(mean), float(rate), float(interval.low), float(interval.high), len(rows))
        )
    return found
