"""The tables and the sentences of a report."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from fairconstrained.inspection.assessment import ALL_EQUAL, Cell, Finding, constraints_of
from fairconstrained.metrics.impact import LEVELS
from fairconstrained.metrics.intervals import Calibrated, Interval, clopper_pearson, largest_gap
from fairconstrained.metrics.rates import REPORTED_RATES, Predictions
from fairconstrained.reporting._evidence import Evidence
from fairconstrained.reporting.forms import level_of, line, render, sentence
from fairconstrained.utils.arrays import at_most
from fairconstrained.utils.meta_estimators import final_estimator

_SHOWN_WITH_CONSTRAINTS = {"constraint", "kappa", "surrogate"}
_LONGEST = 10  # more entries of an array are shortened
_CONSTRAINT_COLUMNS = ["tolerance", "scores", "decisions", "low", "high", "worst", "verdict"]


def for_every_model(
    evidence: Evidence, table: Callable[[Evidence, str], pd.DataFrame], of_classes: str = "each"
) -> pd.DataFrame:
    """Return a table of all models; with a first level of the index where they have names.

    With several classes `of_classes` says what it has: "each" is a table of each class, "also
    together" that of all classes as well, and "together" that of all classes alone.
    """
    tables = {}
    for name in evidence.names:
        if of_classes == "together" or not evidence.several_classes:
            tables[name] = table(evidence, name)
            continue
        parts = {"all classes": evidence} if of_classes == "also together" else {}
        each = {label: table(part, name) for label, part in (parts | evidence.of_classes).items()}
        tables[name] = pd.concat(each, names=["class"])
    return tables[""] if list(tables) == [""] else pd.concat(tables, names=["model"])


def constraints_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the constraints of a model on these rows."""
    rows = {
        each.name: [
            each.tolerance, each.on_scores, each.on_predictions, each.low, each.high, each.worst,
            sentence("verdict_in_words", each, level_of(evidence.confidence)),
        ]
        for each in evidence.findings[name]
    }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index", columns=_CONSTRAINT_COLUMNS)
    return table.rename_axis("constraint")


def groups_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the rates of all groups, with the row for all rows at the end."""
    parts = evidence.rows.predictions(name)
    tables = [part.rates(REPORTED_RATES, evidence.confidence) for part in parts]
    return pd.concat([*(table.iloc[:-1] for table in tables), tables[-1].iloc[-1:]])


def _calibrated(evidence: Evidence, name: str, part: Predictions) -> list[Calibrated]:
    """Return labels and probabilities of a model; nothing without either."""
    probabilities = evidence.rows.outputs[name].probability
    if part.labels is None or probabilities is None:
        return []
    return [Calibrated(part.labels, probabilities, part.groups, part.weight)]


def calibration_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the calibration in the large of all groups; empty without labels or probabilities."""
    parts = evidence.rows.predictions(name)
    every = [each for part in parts for each in _calibrated(evidence, name, part)]
    tables = [each.calibration(evidence.confidence) for each in every]
    if not tables:
        return pd.DataFrame(index=pd.Index([], name="group"))
    return pd.concat([*(table.iloc[:-1] for table in tables), tables[-1].iloc[-1:]])


def gaps_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the largest gap of each rate; names start with the attribute and the stratum."""
    tables = []
    for part in evidence.rows.predictions(name):
        gaps = part.gaps(REPORTED_RATES, evidence.confidence)
        for calibrated in _calibrated(evidence, name, part):
            gap = pd.DataFrame(calibrated.gap(evidence.confidence), index=["calibration"])
            gaps = pd.concat([gaps, gap]).rename_axis("rate")
        gaps.loc[at_most(gaps["gap"], 0.0), ["highest", "lowest"]] = ALL_EQUAL
        of_what = [part.groups.title] * evidence.rows.groups.marginal + [part.groups.stratum]
        if any(of_what):
            gaps = gaps.rename(f"{', '.join(filter(None, of_what))}: {{}}".format)
        tables.append(gaps)
    return pd.concat(tables)


def impact_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the impact ratios of a model's decisions."""
    return evidence.compared.table(evidence.rows.outputs[name].decided)


def score_impact_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the impact ratios of a model's probabilities, else of its scores; empty without."""
    output = evidence.rows.outputs[name]
    scores = output.scores if output.probability is None else output.probability
    if scores is None:
        return pd.DataFrame(index=pd.MultiIndex.from_arrays([[], []], names=LEVELS))
    return evidence.compared.score_table(scores)


def model_table(evidence: Evidence, name: str) -> pd.DataFrame:
    """Return the parameters and the results of the fit; empty for other libraries' models."""
    last = final_estimator(evidence.rows.outputs[name].model)
    constraints: list[str] = []
    parameters: dict[str, Any] = {}
    if hasattr(last, "bound_met_"):
        with np.printoptions(threshold=_LONGEST):
            constraints = [line(repr(constraint)) for _, constraint in constraints_of(last)]
    if hasattr(last, "result_"):
        parameters = {
            name: value
            for name in sorted({each.name for each in fields(last)} - _SHOWN_WITH_CONSTRAINTS)
            if repr(value := getattr(last, name)) != repr(getattr(type(last), name))
            or name == "enforce"
        }
    text = render("model.j2", last=last, constraints=constraints, parameters=parameters)
    rows = dict(row.split("\t") for row in text.splitlines() if row)
    return pd.DataFrame({"value": rows}, dtype=object).rename_axis("what")


def summary_table(evidence: Evidence) -> pd.DataFrame:
    """Return the measures on all rows and the gaps, a column for each model."""
    columns = {}
    for name in evidence.names:
        column = dict(evidence.overall[name])
        for finding in evidence.findings[name]:
            column[f"gap: {finding.name}"] = finding.on_predictions
        columns[name or "model"] = column
    return pd.DataFrame(columns).rename_axis("measure")


def cost_table(evidence: Evidence) -> pd.DataFrame:
    """Return what the models cost against the first one, a row for each."""
    to = "changed to {}" if evidence.several_classes else "{}"
    rows = [
        dict(zip(("accuracy", "low", "high"), map(float, change), strict=True))
        | {to.format(what): n for what, n in changes.items()}
        for change, changes in evidence.costs.values()
    ]
    columns = [*rows[0]] if rows else ["accuracy", "low", "high"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(list(evidence.costs), name="model"))


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
    states = [finding.state for finding in findings]
    trained_here = evidence.trained_here(name)
    sentences = [sentence("verdict", finding, level, trained_here) for finding in findings]
    worst = min(states, key=_STATES.index)
    if len(findings) == 1:
        return Verdict(worst, sentences[0])
    details = tuple(
        f"{finding.name.replace('_', ' ')}: {text}"
        for finding, text in zip(findings, sentences, strict=True)
    )
    counts = [states.count(state) for state in ("not met", "not measured", "no bound")]
    return Verdict(worst, sentence("states", len(states), *counts), details)


def _widest_gap(evidence: Evidence, name: str) -> tuple[Interval, str]:
    """Return the largest gap of the selection rates, and of several classes its class.

    The interval reaches to the largest limits of all classes, with a Bonferroni correction.
    """
    each = 1.0 - (1.0 - evidence.confidence) / len(evidence.classes)
    gaps = {}
    for label, part in evidence.classes.items():
        cells = [groups.cells("selection_rate") for groups in part.rows.predictions(name)]
        gaps[label] = largest_gap(cells, each)
    widest = max(gaps, key=lambda label: float(np.nan_to_num(gaps[label].value, nan=-1.0)))
    low, high = (np.max([gap[k] for gap in gaps.values()]) for k in (1, 2))
    return Interval(gaps[widest].value, low, high), widest


def meaning_of(finding: Finding, confidence: float) -> str:
    """Return what the tolerance of a constraint means for these rows, and in the population."""
    first = (type(finding.constraint).__doc__ or "").strip().split("\n")[0]
    worth = None
    if finding.deciding is not None:
        worth = _worth(finding.deciding["smallest"], finding.tolerance, confidence)
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
    first, n_rows = evidence.names[0], evidence.rows.n_rows
    accuracies = {name: measures.get("accuracy") for name, measures in evidence.overall.items()}
    level = level_of(evidence.confidence)
    return [
        sentence("cost", first, name, *cost, accuracies[first], accuracies[name], n_rows, level)
        for name, cost in evidence.costs.items()
    ]
