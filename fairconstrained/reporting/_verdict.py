"""The sentences of a report: verdict, meaning of a tolerance, what decides a constraint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from fairconstrained.inspection.deciding import Cell
from fairconstrained.metrics.intervals import Interval, clopper_pearson, largest_gap
from fairconstrained.reporting._evidence import Evidence, Finding
from fairconstrained.reporting.forms import level_of, sentence

_STATES = ("not met", "not measured", "met", "holds", "no bound")  # from the worst to the best


@dataclass(frozen=True)
class Verdict:
    """The verdict on the last model of a report.

    Attributes
    ----------
    state : {"holds", "met", "not met", "not measured", "no bound"}
        "holds": met, and the whole confidence interval is within the tolerance. "met": met on these
        rows, while the interval exceeds the tolerance or is unknown.
    sentence : str
        The verdict in one sentence or two.
    details : tuple of str
        With several constraints, a sentence for each.
    """

    state: str
    sentence: str
    details: tuple[str, ...] = ()


def verdict_of(evidence: Evidence) -> Verdict:
    """Return the verdict on the last model."""
    name, level = evidence.names[-1], level_of(evidence.confidence)
    findings = evidence.findings[name]
    if not findings:
        return Verdict("no bound", sentence("no_bound", *_widest_gap(evidence, name), level))
    states = [one.state for one in findings]
    trained_here = evidence.trained_here(name)
    sentences = [sentence("verdict", one, level, trained_here) for one in findings]
    worst = min(states, key=_STATES.index)
    if len(findings) == 1:
        return Verdict(worst, sentences[0])
    details = tuple(
        f"{one.assessment.name.replace('_', ' ')}: {text}"
        for one, text in zip(findings, sentences, strict=True)
    )
    counts = [states.count(state) for state in ("not met", "not measured", "no bound")]
    return Verdict(worst, sentence("states", len(states), *counts), details)


def _widest_gap(evidence: Evidence, name: str) -> tuple[Interval, str]:
    """Return the largest gap of the selection rates, and of several classes its class.

    The interval reaches to the largest limits of all classes, with a Bonferroni correction.
    """
    each = 1.0 - (1.0 - evidence.confidence) / len(evidence.classes)
    gaps = {}
    for label, one in evidence.classes.items():
        cells = [part.cells("selection_rate") for part in one.collected.predictions(name)]
        gaps[label] = largest_gap(cells, each)
    widest = max(gaps, key=lambda label: float(np.nan_to_num(gaps[label].value, nan=-1.0)))
    low, high = (np.max([gap[k] for gap in gaps.values()]) for k in (1, 2))
    return Interval(gaps[widest].value, low, high), widest


def meaning_of(finding: Finding, confidence: float) -> str:
    """Return what the tolerance of a constraint means for these rows, and on new rows."""
    first = (type(finding.constraint).__doc__ or "").strip().split("\n")[0]
    deciding, worth = finding.deciding, None
    if deciding is not None:
        worth = _worth(deciding.smallest, finding.assessment.tolerance, confidence)
    return sentence("meaning", finding, first, worth, level_of(confidence))


def _worth(cell: Cell, tolerance: float, confidence: float) -> dict[str, float] | None:
    """Return how far the rate of a cell may be off; None where the tolerance is larger.

    The number of rows that are `needed` for an interval as wide as the tolerance on both sides is
    that of a normal approximation at a rate that is shrunk towards one half (Agresti, Coull 1998);
    0 without a tolerance.
    """
    n = cell.effective_rows
    _, low, high = clopper_pearson(np.array(cell.rate), np.array(n), confidence)
    if max(high - cell.rate, cell.rate - low) <= tolerance:
        return None
    quantile, rate = norm.isf(0.5 * (1.0 - confidence)), (cell.rate * n + 2.0) / (n + 4.0)
    needed = 0
    if tolerance > 0.0:
        needed = int(np.ceil(rate * (1.0 - rate) * (quantile / tolerance) ** 2))
    return {"low": float(low), "high": float(high), "needed": needed}


def decided_by(finding: Finding) -> str:
    """Return which cells have the largest gap, with their counts; empty for other constraints."""
    return "" if finding.deciding is None else sentence("decided", finding)


def costs_in_words(evidence: Evidence) -> list[str]:
    """Return what the models cost against the first one."""
    first, n_rows = evidence.names[0], len(evidence.rows.weight)
    accuracies = {name: measures.get("accuracy") for name, measures in evidence.overall.items()}
    level = level_of(evidence.confidence)
    return [
        sentence("cost", first, name, cost, accuracies[first], accuracies[name], n_rows, level)
        for name, cost in evidence.costs.items()
    ]
