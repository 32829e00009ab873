"""The sentences of a report: the verdict, what a tolerance means, and what decides a constraint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from fairconstrained.inspection.deciding import Cell
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.metrics.rates import RATES
from fairconstrained.reporting._evidence import Evidence, Finding
from fairconstrained.utils.rounding import at_most

# The state of a verdict, from the worst to the best, with its title.
STATES = {
    "not met": "Not met on these rows",
    "not measured": "Not measured",
    "met": "Met on these rows",
    "holds": "Met",
    "no bound": "No bound is set",
}
_ROWS_OF = {
    "selection_rate": "rows",
    "true_positive_rate": "rows with a positive label",
    "false_positive_rate": "rows with a negative label",
    "error_rate": "rows",
    "accuracy": "rows",
    "precision": "positive predictions",
    "base_rate": "rows",
}
_COUNTED = {
    "selection_rate": "selected",
    "true_positive_rate": "selected",
    "false_positive_rate": "selected",
    "error_rate": "predicted wrongly",
    "accuracy": "predicted correctly",
    "precision": "with a positive label",
    "base_rate": "with a positive label",
}
_OF_CLASS = {
    "positive predictions": "predictions of class {}",
    "with a positive label": "of class {}",
    "with a negative label": "of other classes than {}",
    "selected": "predicted as {}",
}
_CHANGES = {
    "newly_selected": "are newly selected",
    "no_longer_selected": "are no longer selected",
}


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


def percent(value: float, other: float = np.nan) -> str:
    """Return 100 times a value with few decimals, but enough to tell it from another value."""
    for decimals in (1, 2, 3, 4):
        text, against = (f"{100.0 * one:.{decimals}f}" for one in (value, other))
        if text != against or np.isnan(other) or abs(value - other) <= 1e-9:
            break
    if at_most(abs(value - round(value, 2)), 0.0):
        return f"{abs(100.0 * value):.0f}" if at_most(abs(value), 0.0) else f"{100.0 * value:.0f}"
    if not float(text):
        text = f"{100.0 * value:.1g}"
    return text


def rates_in_words(names: Sequence[str]) -> str:
    """Return the plural of rates: "true positive rates and false positive rates"."""
    plural = [
        {"accuracy": "accuracies", "base_rate": "rates of positive labels"}.get(
            name, f"{RATES[name].title}s"
        )
        for name in names
    ]
    return " and ".join(plural)


def state_of(finding: Finding) -> str:
    """Return the state of a constraint, a key of `STATES`."""
    one = finding.assessment
    if np.isnan(one.on_predictions):
        return "not measured"
    if finding.minimized:
        return "no bound"
    if not at_most(one.on_predictions, one.tolerance):
        return "not met"
    return "holds" if at_most(one.high, one.tolerance) else "met"


def sentence_of(finding: Finding, confidence: float, trained_here: bool) -> str:
    """Return the verdict on a constraint as text."""
    one, state = finding.assessment, state_of(finding)
    if state == "not measured":
        return f"Not measured: {one.note or 'no cell of the constraint has rows'}."
    head = "No bound is set" if state == "no bound" else STATES[state]
    if state == "holds":
        head = STATES["met"]
    if state in ("holds", "met") and finding.n_classes > 1:
        head = f"{head} for all {finding.n_classes} classes"
    here = _gap_in_words(finding, state)
    return f"{head}: {here}. {_on_new_rows(finding, confidence, trained_here)}".strip()


def _gap_in_words(finding: Finding, state: str) -> str:
    one, constraint = finding.assessment, finding.constraint
    gap, tolerance = one.on_predictions, one.tolerance
    of_class = f" of class {finding.of_class}" if finding.of_class else ""
    if not constraint.rates_compared:
        limit = "" if state == "no bound" else f", at most {tolerance:.3g} allowed"
        return f"{one.name.replace('_', ' ')}{of_class} has a gap of {gap:.3g}{limit}"
    rates = rates_in_words(constraint.rates_compared)
    if at_most(gap, 0.0):
        return f"{rates} are all equal"
    rates += of_class
    if constraint.compares_ratios:
        limit = "" if state == "no bound" else f", at least {1.0 - tolerance:.3g} required"
        return f"the lowest of the {rates} is {1.0 - gap:.3g} times the highest{limit}"
    limit = "" if state == "no bound" else f", at most {percent(tolerance)} allowed"
    by = "by" if len(constraint.rates_compared) == 1 else "by up to"
    return f"{rates} differ {by} {percent(gap, tolerance)} percentage points{limit}"


def _on_new_rows(finding: Finding, confidence: float, trained_here: bool) -> str:
    """Return what is known about rows that the model has not seen."""
    one = finding.assessment
    if trained_here:
        return (
            "These are the training rows: they do not show what holds on new rows. Use held-out "
            "rows."
        )
    if np.isnan(one.low):
        return "No confidence interval is known for this constraint."
    level = f"with {100.0 * confidence:g}% confidence"
    ratio = finding.constraint.compares_ratios
    shown = (lambda value: f"{1.0 - value:.3g}") if ratio else percent
    if state_of(finding) in ("no bound", "not met"):
        ends = sorted([one.low, one.high], reverse=ratio)
        return f"On new rows between {shown(ends[0])} and {shown(ends[1])} {level}."
    if ratio:
        return f"On new rows at least {shown(one.high)} {level}."
    return f"On new rows at most {percent(one.high, one.tolerance)} {level}."


def verdict_of(evidence: Evidence) -> Verdict:
    """Return the verdict on the last model."""
    name = evidence.names[-1]
    found = evidence.findings[name]
    trained_here = name in evidence.trained_here
    if not found:
        return Verdict("no bound", _without_bound(evidence, name))
    states = [state_of(one) for one in found]
    sentences = [sentence_of(one, evidence.confidence, trained_here) for one in found]
    worst = min(states, key=list(STATES).index)
    if len(found) == 1:
        return Verdict(worst, sentences[0])
    details = tuple(
        f"{one.assessment.name.replace('_', ' ')}: {text}"
        for one, text in zip(found, sentences, strict=True)
    )
    return Verdict(worst, f"{_counted(states)}.", details)


def _counted(states: Sequence[str]) -> str:
    """Return how many of several constraints are met, are not measured, and have no bound."""
    n, unmeasured, unbounded = len(states), states.count("not measured"), states.count("no bound")
    missed = states.count("not met")
    bounded = n - unmeasured - unbounded
    if unmeasured == n:
        return f"None of the {n} constraints could be measured on these rows"
    if unbounded == n:
        return f"No bound is set for the {n} constraints"
    parts = []
    if bounded == 1:
        parts.append(f"One constraint is measured, and {'not ' * missed}met on these rows")
    elif bounded:
        met = f"{bounded - missed} of {bounded}" if missed else f"All {bounded}"
        parts.append(f"{met}{' measured' * (bounded < n)} constraints are met on these rows")
    if unmeasured:
        parts.append(f"{unmeasured} of {n} could not be measured")
    if unbounded:
        parts.append(f"no bound is set for {unbounded} of {n}")
    return "; ".join(parts)


def _without_bound(evidence: Evidence, name: str) -> str:
    each = 1.0 - (1.0 - evidence.confidence) / len(evidence.classes)
    gaps = {}
    for of_class, one in evidence.classes.items():
        parts = [
            part.gaps(["selection_rate"], each).iloc[0] for part in one.collected.predictions(name)
        ]
        gaps[of_class] = max(parts, key=lambda gap: np.nan_to_num(gap["gap"], nan=-1.0))
    of_class = max(gaps, key=lambda key: np.nan_to_num(gaps[key]["gap"], nan=-1.0))
    widest = dict(gaps[of_class])
    if np.isnan(widest["gap"]):
        return "No bound is set. Fewer than two groups have rows: there is no gap to measure."
    for end in ("low", "high"):
        widest[end] = max(one[end] for one in gaps.values())
    here = "No bound is set: selection rates are all equal"
    if not at_most(widest["gap"], 0.0):
        rates = f"selection rates of class {of_class}" if of_class else "selection rates"
        here = f"No bound is set: {rates} differ by {percent(widest['gap'])} percentage points"
    return (
        f"{here}. On new rows between {percent(widest['low'])} and {percent(widest['high'])} with "
        f"{100.0 * evidence.confidence:g}% confidence."
    )


def meaning_of(finding: Finding, confidence: float) -> str:
    """Return what the tolerance of a constraint means for these rows, and on new rows."""
    one, deciding = finding.assessment, finding.deciding
    first = (type(finding.constraint).__doc__ or "").strip().split("\n")[0]
    if deciding is None or np.isnan(one.tolerance):
        return first
    name, smallest = deciding.smallest_rate, deciding.smallest
    if finding.constraint.compares_ratios:
        bound = f"The lowest rate may not be below {1.0 - one.tolerance:.3g} times the highest."
        return f"{first} {bound}"
    rows = _for_class(_ROWS_OF[name], finding.of_class)
    of_class = f" of class {finding.of_class}" if finding.of_class else ""
    return (
        f"{first} A tolerance of {one.tolerance:.3g} allows the rates of two groups to differ by "
        f"{percent(one.tolerance)} in 100. The smallest cell{of_class}, {smallest.group} with "
        f"{smallest.n_rows} {rows}, has {_size(smallest, one.tolerance)}."
        f"{_worth(smallest, _ROWS_OF[name], one.tolerance, confidence)}"
    )


def _size(cell: Cell, tolerance: float) -> str:
    """Return what the size of a cell means for the tolerance."""
    if cell.weighted:
        return f"an effective sample size of {cell.effective_rows:.1f} rows of equal weight"
    return (
        f"{tolerance * cell.n_rows:.1f} rows of tolerance: a single row there counts "
        f"{percent(1.0 / cell.n_rows)} percentage points"
    )


def _worth(cell: Cell, rows: str, tolerance: float, confidence: float) -> str:
    """Return how far the rate of a cell may be off, empty where the tolerance is larger.

    The number of rows at which the interval is as wide as the tolerance on both sides is that of a
    normal approximation at a rate that is shrunk towards one half (Agresti, Coull 1998).
    """
    n = cell.effective_rows
    _, low, high = clopper_pearson(np.array(cell.rate), np.array(n), confidence)
    if max(high - cell.rate, cell.rate - low) <= tolerance:
        return ""
    text = (
        f" Its rate here is {percent(cell.rate)}%; on new rows it may be anywhere between "
        f"{percent(float(low))}% and {percent(float(high))}% ({100.0 * confidence:g}% confidence), "
        "further off than the tolerance."
    )
    if not tolerance > 0.0:
        return text
    quantile = norm.isf(0.5 * (1.0 - confidence))
    rate = (cell.rate * n + 2.0) / (n + 4.0)
    needed = int(np.ceil(rate * (1.0 - rate) * (quantile / tolerance) ** 2))
    weighted = " of equal weight" * cell.weighted
    return (
        f"{text} That the bound is met or missed on these rows says little about new ones: it "
        f"takes about {needed} {rows}{weighted} to know this rate to within the tolerance."
    )


def decided_by(finding: Finding) -> str:
    """Return which cells have the largest gap, with their counts; empty for other constraints."""
    deciding = finding.deciding
    if deciding is None:
        return ""
    if at_most(finding.assessment.on_predictions, 0.0):
        return f"The {rates_in_words(finding.constraint.rates_compared)} are all equal."
    cells = " and ".join(
        _cell_in_words(cell, deciding.rate, finding.of_class)
        for cell in (deciding.highest, deciding.lowest)
    )
    text = f"Decided by {cells}."
    if deciding.changes and not finding.minimized:
        n = deciding.changes
        text += f" At least {n} prediction{'s' * (n > 1)} in one of them would have to change."
    return text


def _cell_in_words(cell: Cell, rate: str, of_class: str) -> str:
    rows, counted = (_for_class(table[rate], of_class) for table in (_ROWS_OF, _COUNTED))
    found = f"{cell.n_counted} of {cell.n_rows} {rows} are {counted}"
    share = f"{percent(cell.rate)}%{' of the weight' * cell.weighted}"
    return f"{cell.group} ({found}, {share})"


def _for_class(text: str, of_class: str) -> str:
    """Return a text about a positive class in the words for one of several classes."""
    if not of_class:
        return text
    for words, others in _OF_CLASS.items():
        text = text.replace(words, others.format(of_class))
    return text


def cost_in_words(evidence: Evidence, name: str) -> str:
    """Return what a model costs against the first one."""
    cost, first = evidence.costs[name], evidence.names[0]
    before, after = (evidence.overall[one]["accuracy"] for one in (first, name))
    kind = "rises" if cost.accuracy > 0.0 else "falls"
    moved = (
        f"accuracy stays at {percent(after)}%"
        if at_most(abs(cost.accuracy), 0.0)
        else f"accuracy {kind} by {percent(abs(cost.accuracy))} percentage points, "
        f"from {percent(before)}% to {percent(after)}%"
    )
    level = f"{100.0 * evidence.confidence:g}% confidence"
    moved_to = [f"{n} {_CHANGES.get(what, 'to class ' + what)}" for what, n in cost.changes.items()]
    return (
        f"Against {first}, {name} has this cost: {moved} (on new rows a change between "
        f"{percent(cost.low)} and {percent(cost.high)} with {level}). The predictions of "
        f"{cost.changed} of {len(evidence.rows.weight)} rows change: {', '.join(moved_to)}."
    )
