"""The HTML page of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

from fairconstrained.reporting import _svg as svg
from fairconstrained.reporting._evidence import Evidence, Finding, widest_gap
from fairconstrained.reporting._groups_page import accuracy_section, group_section, search_box
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

_MOST_OPEN = 4  # the number of classes whose parts are all open
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
        *_classes(evidence),
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
    """Yield a table for each constraint, with the gaps of every class and model and the bounds."""
    by_name: dict[str, dict[str, dict[str, Finding]]] = {}
    for label, one in evidence.classes.items():
        for model, found in one.findings.items():
            for finding in found:
                by_class = by_name.setdefault(finding.assessment.name, {})
                by_class.setdefault(label, {})[model] = finding
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


def _constraint(evidence: Evidence, name: str, findings: dict[str, dict[str, Finding]]) -> str:
    title = name.replace("_", " ")
    values = [
        value
        for by_model in findings.values()
        for one in by_model.values()
        for value in (
            one.assessment.on_predictions,
            one.assessment.low,
            one.assessment.high,
            one.assessment.tolerance,
            0.0,
        )
    ]
    scale = svg.Scale.of(np.array(values))
    if evidence.several_classes:
        rows = [_class_row(evidence, label, one, scale) for label, one in findings.items()]
        head, of_class = "Class", ", each class against all others"
    else:
        rows = [_constraint_row(evidence, model, one, scale) for model, one in findings[""].items()]
        head, of_class = "Model", ""
    last = next(
        one for one in reversed(list(evidence.findings.values())[-1]) if one.assessment.name == name
    )
    what = f"{last.constraint.gap_title}{of_class}"
    table = dots_table(title, what, head, scale, rows, "Gap")
    texts = [text for text in (decided_by(last), meaning_of(last, evidence.confidence)) if text]
    return table + "".join(f"<p>{escape(text)}</p>" for text in texts)


def _constraint_row(evidence: Evidence, model: str, finding: Finding, scale: svg.Scale) -> str:
    verdict = finding.verdict(evidence.confidence)
    dot, title, text = _gap_of(evidence, model, finding)
    picture = svg.dots(title, [dot], scale, len(evidence.names))
    head = f"{escape(model)}<br>" if model else ""
    return row_of(f'{head}<span class="muted">{escape(verdict)}</span>', "", picture, [text])


def _class_row(
    evidence: Evidence, label: str, findings: dict[str, Finding], scale: svg.Scale
) -> str:
    """Return the row of a class, with the gaps of all models; the verdict is on the last one."""
    dots, titles, texts = zip(
        *(_gap_of(evidence, model, one) for model, one in findings.items()), strict=True
    )
    verdict = list(findings.values())[-1].verdict(evidence.confidence)
    picture = svg.dots(f"class {label}: {'; '.join(titles)}", dots, scale, len(evidence.names))
    head = f'{escape(label)}<br><span class="muted">{escape(verdict)}</span>'
    return row_of(head, "", picture, texts)


def _gap_of(evidence: Evidence, model: str, finding: Finding) -> tuple[svg.Dot, str, str]:
    """Return the dot of a gap, its alternative text and its value as text."""
    one = finding.assessment
    bound = np.nan if finding.minimized else one.tolerance
    verdict = finding.verdict(evidence.confidence)
    equal = bool(finding.constraint.rates_compared) and at_most(one.on_predictions, 0.0)
    text = "all equal" if equal else number(one.on_predictions)
    interval = "" if np.isnan(one.low) else f", interval {number(one.low)} to {number(one.high)}"
    limit = "" if np.isnan(bound) else f", at most {number(bound)} allowed"
    title = f"{model or 'model'}: gap {number(one.on_predictions)}{interval}{limit}; {verdict}"
    position = evidence.names.index(model)
    return svg.Dot(one.on_predictions, one.low, one.high, position, bound=bound), title, text


def _frontier(evidence: Evidence) -> Iterator[str]:
    """Yield the models of the path with accuracy and gap, and the models of the report."""
    if not evidence.frontier:
        return
    gaps = {name: _gap_on_frontier(evidence, name) for name in evidence.names}
    limits = [
        one.assessment.tolerance
        for one in evidence.findings[evidence.names[-1]]
        if one.assessment.name == evidence.frontier_gap and not one.minimized
    ]
    plane = _frontier_plane(evidence, gaps, limits)
    drawn = [*_path_drawn(evidence, plane, limits), *_models_drawn(evidence, plane, gaps)]
    picture = plane.wrap(_frontier_title(evidence, gaps), drawn, "plane")
    yield "<h2>Frontier</h2>"
    yield f"<figure>{picture}{_frontier_caption(evidence, limits)}"
    yield "</figure>"


def _frontier_plane(
    evidence: Evidence, gaps: Mapping[str, float], limits: Sequence[float]
) -> svg.Plane:
    """Return the axes that show all models, the tolerances and a gap of zero."""
    points = evidence.frontier
    accuracies = [evidence.overall[name]["accuracy"] for name in evidence.names]
    return svg.Plane(
        svg.Scale.of(np.array([*(p.gap for p in points), *gaps.values(), *limits, 0.0])),
        svg.Scale.of(np.array([v for p in points for v in map(float, p.accuracy)] + accuracies)),
        360, 270, "gap of the predictions", "accuracy",
    )  # fmt: skip


def _path_drawn(evidence: Evidence, plane: svg.Plane, limits: Sequence[float]) -> Iterator[str]:
    """Yield the intervals, the line and the dots of the path, and the line of the tolerance."""
    points = evidence.frontier
    for p in points:
        low, high = float(p.accuracy.low), float(p.accuracy.high)
        yield plane.interval(p.gap, low, high, "interval few m0")
    line = plane.line([p.gap for p in points], [float(p.accuracy.value) for p in points], "")
    yield f'<g class="m0">{line}</g>'
    for p in points:
        yield plane.at(p.gap, float(p.accuracy.value), '<circle r="2.5"/>')
    for one in limits[:1]:
        yield plane.line([one, one], [plane.y.low, plane.y.high], "limit")


def _models_drawn(evidence: Evidence, plane: svg.Plane, gaps: Mapping[str, float]) -> Iterator[str]:
    """Yield the marks of the models of the report."""
    for k, name in enumerate(evidence.names):
        shape = svg.mark(k, len(evidence.names))
        yield plane.at(gaps[name], evidence.overall[name]["accuracy"], shape)


def _frontier_title(evidence: Evidence, gaps: Mapping[str, float]) -> str:
    """Return the alternative text of the picture."""
    parts = [f"Accuracy against the gap of {evidence.frontier_gap.replace('_', ' ')}. "]
    parts[0] += "; ".join(
        f"kappa {p.kappa:.3g}: gap {p.gap:.3f}, accuracy {float(p.accuracy.value):.3f}"
        for p in evidence.frontier
    )
    parts += [
        f"{name or 'the model'}: gap {gaps[name]:.3f}, "
        f"accuracy {evidence.overall[name]['accuracy']:.3f}"
        for name in evidence.names
    ]
    return "; ".join(parts)


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
    return widest_gap(evidence.predictions(name))


def _classes(evidence: Evidence) -> Iterator[str]:
    """Yield groups and scores; of several classes a part for each, collapsed beyond four."""
    yield "<h2>Groups</h2>"
    yield from search_box(evidence)
    if not evidence.several_classes:
        (one,) = evidence.classes.values()
        yield from group_section(evidence, one, "")
        yield from score_sections(one, evidence.confidence, 2)
        return
    yield from accuracy_section(evidence)
    found = evidence.findings[evidence.names[-1]]
    decisive = {one.of_class for one in found} or {next(iter(evidence.classes))}
    for label, one in evidence.classes.items():
        shown = len(evidence.classes) <= _MOST_OPEN or label in decisive
        yield f"<details{' open' * shown}><summary>Class {escape(label)}</summary>"
        yield from group_section(evidence, one, label)
        scores = list(score_sections(one, evidence.confidence, 3))
        if scores:
            yield f"<details><summary>Scores of class {escape(label)} by group</summary>"
            yield from scores
            yield "</details>"
        yield "</details>"


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
