"""The HTML page of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import pandas as pd

from fairconstrained.reporting import _svg as svg
from fairconstrained.reporting._evidence import Evidence, Finding
from fairconstrained.reporting._groups_page import group_sections
from fairconstrained.reporting._html import dots_table, html_table, keys, row_of
from fairconstrained.reporting._scores_page import score_sections
from fairconstrained.reporting._style import PAGE, SCRIPT, STYLE
from fairconstrained.reporting._text import (
    Report,
    gaps_as_text,
    groups_as_text,
    number,
    rows_of_table,
)
from fairconstrained.reporting._verdict import cost_in_words, decided_by, meaning_of
from fairconstrained.utils.rounding import at_most

# For each state of a verdict: the class of its colours, and a sign that needs no colour.
_LOOKS = {
    "holds": ("good", "✓"),
    "met": ("warn", "✓"),
    "not met": ("bad", "✗"),
    "not measured": ("info", "?"),
    "no bound": ("info", "i"),
}


def as_html(report: Report, evidence: Evidence, *, whole: bool = True) -> str:
    """Return a report as an HTML page, or as a fragment for notebooks.

    Parameters
    ----------
    report : FairnessReport
        The report.
    evidence : Evidence
        Its numbers.
    whole : bool, default=True
        Return a complete page; if False, a fragment.
    """
    tag = "main" if whole else "div"
    parts = [
        f'<{tag} class="fairness-report">',
        f"<style>\n{STYLE}\n</style>",
        "<h1>Fairness report</h1>",
        f'<p class="muted">{escape(report.title)}.</p>',
        *_verdict(report),
        *_comparison(report, evidence),
        *_constraints(evidence),
        *_frontier(evidence),
        *group_sections(evidence),
        *score_sections(evidence),
        *_notes(report),
        *_numbers(report),
        *_engineers(report, evidence),
        f"<script>\n{SCRIPT}\n</script>",
        f"</{tag}>",
    ]
    body = "\n".join(parts)
    if not whole:
        return body
    return PAGE.format(title=escape(f"Fairness report: {report.title}"), body=body)


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    look, sign = _LOOKS[verdict.state]
    yield f'<div class="verdict {look}" role="status">'
    yield f'<p><span class="sign" aria-hidden="true">{sign}</span>{escape(verdict.sentence)}</p>'
    if verdict.details:
        yield "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in verdict.details) + "</ul>"
    yield "</div>"


def _comparison(report: Report, evidence: Evidence) -> Iterator[str]:
    """Yield the measures on all rows, side by side, and what the models cost."""
    several = len(evidence.names) > 1
    yield "<h2>Before and after</h2>" if several else "<h2>All rows</h2>"
    table = report.summary.map(number)
    if several:
        change = report.summary.iloc[:, -1] - report.summary.iloc[:, 0]
        table["change"] = ["-" if pd.isna(one) else f"{one:+.3f}" for one in change]
    yield html_table(table.rename(index=lambda name: str(name).replace("_", " ")), "Measure")
    for name in evidence.costs:
        yield f"<p>{escape(cost_in_words(evidence, name))}</p>"


def _constraints(evidence: Evidence) -> Iterator[str]:
    """Yield a table for each constraint, with the gap of every model and its bound."""
    by_name: dict[str, dict[str, Finding]] = {}
    for model, found in evidence.findings.items():
        for one in found:
            by_name.setdefault(one.assessment.name, {})[model] = one
    if not by_name:
        return
    yield "<h2>Constraints</h2>"
    if len(evidence.names) > 1:
        yield keys(evidence.names)
    yield '<div class="panels">'
    for name, findings in by_name.items():
        yield f"<section>{_constraint(evidence, name, findings)}</section>"
    yield "</div>"
    level = f"{100.0 * evidence.confidence:g}%"
    yield (
        f'<p class="muted">Dots are gaps of the predictions on these rows, lines their {level} '
        "confidence intervals, and vertical bars the largest gaps allowed.</p>"
    )


def _constraint(evidence: Evidence, name: str, findings: dict[str, Finding]) -> str:
    title = name.replace("_", " ")
    values = [
        value
        for one in findings.values()
        for value in (
            one.assessment.on_predictions,
            one.assessment.low,
            one.assessment.high,
            one.assessment.tolerance,
            0.0,
        )
    ]
    scale = svg.Scale.of(np.array(values))
    rows = [_constraint_row(evidence, model, one, scale) for model, one in findings.items()]
    last = list(findings.values())[-1]
    table = dots_table(title, "largest gap between two groups", "Model", scale, rows, "Gap")
    texts = [text for text in (decided_by(last), meaning_of(last)) if text]
    return table + "".join(f"<p>{escape(text)}</p>" for text in texts)


def _constraint_row(evidence: Evidence, model: str, finding: Finding, scale: svg.Scale) -> str:
    one = finding.assessment
    position, n = evidence.names.index(model), len(evidence.names)
    bound = np.nan if finding.minimized else one.tolerance
    verdict = finding.verdict(evidence.confidence)
    equal = bool(finding.constraint.rates_compared) and at_most(one.on_predictions, 0.0)
    text = "all equal" if equal else number(one.on_predictions)
    interval = "" if np.isnan(one.low) else f", interval {number(one.low)} to {number(one.high)}"
    limit = "" if np.isnan(bound) else f", at most {number(bound)} allowed"
    title = f"{model or 'model'}: gap {number(one.on_predictions)}{interval}{limit}; {verdict}"
    picture = svg.dots(
        title, [svg.Dot(one.on_predictions, one.low, one.high, position, bound=bound)], scale, n
    )
    head = f"{escape(model)}<br>" if model else ""
    return row_of(f'{head}<span class="muted">{escape(verdict)}</span>', "", picture, [text])


def _frontier(evidence: Evidence) -> Iterator[str]:
    """Yield the models of the path with accuracy and gap, and the models of the report."""
    points = evidence.frontier
    if not points:
        return
    names = evidence.names
    gaps = {name: _gap_on_frontier(evidence, name) for name in names}
    limits = [
        one.assessment.tolerance
        for one in evidence.findings[names[-1]]
        if one.assessment.name == evidence.frontier_gap and not one.minimized
    ]
    accuracies = [evidence.overall[name]["accuracy"] for name in names]
    plane = svg.Plane(
        svg.Scale.of(np.array([*(p.gap for p in points), *gaps.values(), *limits, 0.0])),
        svg.Scale.of(np.array([v for p in points for v in map(float, p.accuracy)] + accuracies)),
        360, 270, "gap of the predictions", "accuracy",
    )  # fmt: skip
    inside = [
        plane.interval(p.gap, float(p.accuracy.low), float(p.accuracy.high), "interval few m0")
        for p in points
    ]
    inside.append(
        f'<g class="m0">'
        f"{plane.line([p.gap for p in points], [float(p.accuracy.value) for p in points], '')}</g>"
    )
    inside += [plane.at(p.gap, float(p.accuracy.value), '<circle r="2.5"/>') for p in points]
    inside += [plane.line([one, one], [plane.y.low, plane.y.high], "limit") for one in limits[:1]]
    for k, name in enumerate(names):
        shape = svg.mark(k, len(names))
        inside.append(plane.at(gaps[name], evidence.overall[name]["accuracy"], shape))
    title = f"Accuracy against the gap of {evidence.frontier_gap.replace('_', ' ')}. "
    title += "; ".join(
        f"kappa {p.kappa:.3g}: gap {p.gap:.3f}, accuracy {float(p.accuracy.value):.3f}"
        for p in points
    )
    title += "".join(
        f"; {name or 'the model'}: gap {gaps[name]:.3f}, "
        f"accuracy {evidence.overall[name]['accuracy']:.3f}"
        for name in names
    )
    yield "<h2>Frontier</h2>"
    yield f"<figure>{plane.wrap(title, inside, 'plane')}{_frontier_caption(evidence, limits)}"
    yield "</figure>"


def _frontier_caption(evidence: Evidence, limits: Sequence[float]) -> str:
    chosen = evidence.names[-1] or "this model"
    bound = f" The dashed line is the tolerance, {limits[0]:.3g}." if limits else ""
    return (
        f"{keys(evidence.names, single='the chosen model')}<figcaption>Small dots are the models "
        f"of the path, measured on these rows, with the confidence intervals of their accuracies; "
        f"{escape(chosen)} is the chosen one.{bound} Models further left are fairer, models higher "
        "up are more accurate.</figcaption>"
    )


def _gap_on_frontier(evidence: Evidence, name: str) -> float:
    """Return the gap of a model of the report by which the frontier is drawn."""
    for one in evidence.findings[name]:
        if one.assessment.name == evidence.frontier_gap:
            return one.assessment.on_predictions
    parts = evidence.collected.predictions(name)
    rates = [part.cells("selection_rate")[0] for part in parts]
    return float(max(np.nanmax(one) - np.nanmin(one) for one in rates))


def _notes(report: Report) -> Iterator[str]:
    yield "<h2>How to read it</h2><ul>"
    level = f"Intervals have {100.0 * report.confidence:g}% confidence."
    for note in (level, *report.notes):
        yield f"<li>{escape(note)}</li>"
    yield "</ul>"


def _numbers(report: Report) -> Iterator[str]:
    """Yield the tables of all groups and gaps, collapsed."""
    yield "<details><summary>All numbers by group</summary>"
    groups = report.groups
    names = [str(one[-1] if isinstance(one, tuple) else one) for one in groups.index]
    yield html_table(groups_as_text(groups), "Group", searched=names)
    yield "</details>"
    if len(report.gaps):
        yield "<details><summary>Largest gaps between groups, by rate</summary>"
        yield html_table(gaps_as_text(report.gaps), "Rate")
        yield "</details>"


def _engineers(report: Report, evidence: Evidence) -> Iterator[str]:
    """Yield parameters, solver and certificate of the models of this library, collapsed."""
    if not len(report.model):
        return
    yield "<details><summary>Solver and certificate, for engineers</summary>"
    several = evidence.names != [""]
    present = dict.fromkeys(report.model.index.get_level_values(0)) if several else {"": None}
    for name in present:
        table = report.model.xs(name, level=0) if several else report.model
        assert isinstance(table, pd.DataFrame)
        if several:
            yield f"<h3>{escape(str(name))}</h3>"
        rows = "".join(
            f'<tr><th scope="row">{escape(what)}</th><td>{escape(value)}</td></tr>'
            for what, (value,) in rows_of_table(table)
        )
        yield f"<table><tbody>{rows}</tbody></table>"
    if len(report.constraints):
        shown = report.constraints[["tolerance", "scores"]].map(number)
        yield "<h3>Gaps on scores, which the solver bounds</h3>"
        yield html_table(shown.rename(columns={"scores": "gap on scores"}), "Constraint")
    yield "</details>"
