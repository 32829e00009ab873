"""The page "Reproducing the papers"."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness.paper_setup import SVIO_TOL
from benchmarks.harness.rank_page import Ranks, every_level, section, verdicts_of
from benchmarks.harness.tables import Row, as_markdown, environment

_CUT = "data pass limit"
_STEPS = "iteration limit"
_SMALL = ("E3", "E5")  # their quick form has fewer thresholds, or fewer images
_SHARE = 0.02  # by which an objective may exceed the published one
_TITLES = {
    "E1": "E1: the simple example of IPC",
    "E2": "E2: minority rate in an L1 ball (IPC, figure 1)",
    "E3": "E3: ROC fairness for a bound on the hinge loss (3S-Econ, table 2, Problem 1)",
    "E4": "E4: hinge loss and SCAD under demographic parity (3S-Econ, table 2, Problem 2)",
    "E5": "E5: Neyman-Pearson classification of MNIST (3S-Econ, figure 4, Problem 3)",
    "E6": "E6: logistic loss under demographic parity and equalized odds (PLADA, figures 1 and 2)",
    "E9": "E9: partial demographic parity (IDCA, section 7.1)",
    "E10": "E10: weak partial demographic parity (IDCA, section 7.2)",
}
_NOTES = {
    "E1": "The solutions are (0, 1) and (0, -1) with an objective of -0.5.",
    "E2": "The paper prints curves only; its loan data are not available.",
    "E3": (
        "The objective is the largest of the absolute differences at all thresholds, the hinge "
        "loss is the only constraint. With x* by single-row stochastic steps, as in the paper, the "
        "bound is a few per cent above the least loss and the problem has solutions near the "
        "published values; of five seeds the one of the median loss is taken. How far above "
        "decides the objective: the lines of the five seeds show what the default reaches with "
        "each of them. With the exact x* "
        "the published values cannot be reached: the least "
        "unfairness on a9a is 0.209. On COMPAS the paper's 16 features are not named, so that its "
        "values are those of another problem. As in the paper, the constant of SVio is 0 for the "
        "constraint, which is convex; for the objective it is the sum of the two groups' mean "
        "squared norms. (The paper prints 4 n as the last index of a sum over the n rows of a "
        "group; here the sum ends at n.)"
    ),
    "E4": "On COMPAS the paper's 16 features are not named: its problem is another one.",
    "E5": (
        "The sums leave out the class that has priority, so that 0 is strictly feasible. The "
        "constant of SVio is the largest mean squared norm of a class."
    ),
    "E6": "The paper prints curves only. Adult has all 48,842 rows.",
    "E9": (
        "The paper prints curves only. Unfairness is DP^I, the largest difference between the "
        "groups' distributions of scores, among the rows whose ranks within their groups are in "
        "the range I: 0 if these rows have the same distribution, 1 if they do not overlap."
    ),
    "E10": (
        "The paper prints curves only. Unfairness is WDP^I, the largest difference between the "
        "groups' selection rates at one threshold, each clipped to the range of ranks I and "
        "divided by its length."
    ),
}


def form_of(row: Row, kind: str) -> str:
    """Return what the run of a line is called on the page: "full", "quick", "not run", ...

    Parameters
    ----------
    row : dict
        The line, with the figures of its runs.
    kind : {"paper", "default"}
        Whether with `paper()` or with the library's defaults.
    """
    line, found = row["line"], row.get(kind)
    if found is None:
        return "not run"
    if "objective" not in found:  # the problem lacks what the solver needs
        return str(found["status"])
    if found["form"] == "full":
        short = kind == "paper" and found["passes"] < line.least_passes
        return "fewer passes" if short else "full"
    ended = found["status"] != _CUT and line.experiment not in _SMALL
    return "complete" if ended else "quick"


def _in_full(rows: list[Row], *kinds: str) -> list[Row]:
    """Return the lines whose runs of these kinds are all full."""
    return [row for row in rows if all(form_of(row, kind) == "full" for kind in kinds)]


def _cell(row: Row, kind: str) -> str:
    """Return the figures of a run in the form of the published ones."""
    found, form = row.get(kind), form_of(row, kind)
    if found is None or "objective" not in found:
        return form
    shown = f"{found['SVio']:.1e}" if np.isfinite(found["SVio"]) else "none"
    return (
        f"{found['objective']:.4g}, CVio {found['violation']:.1e}, SVio {shown}, "
        f"{found['passes']:.3g} passes, {found['seconds']:.2g} s ({form})"
    )


def why(row: Row) -> str:
    """Return why a line differs from what is published."""
    line, paper, default = row["line"], row.get("paper"), row["default"]
    reasons = []
    ran = [one for one in (paper, default) if one is not None and "objective" in one]
    if paper is not None and paper.get("form") == "quick" and paper["status"] == _CUT:
        reasons.append(f"at most {paper.get('passes', 0):.0f} of {line.passes:.0f} passes")
    if paper is not None and paper.get("violation", 0.0) > 1e-3:
        reasons.append("paper() ends infeasible")
    form = form_of(row, "paper")
    if default is not None and "remark" in default:
        reasons.append(default["remark"])
    if paper is not None and "setting" in paper:
        reasons.append(f"chosen from the paper's grid: {paper['setting']}")
    if form == "full":
        reasons += _against_published(line.published, paper)
    if form == "fewer passes":
        reasons.append(f"{paper['passes']:.0f} of {line.passes:.0f} passes")
    if len(ran) == 2 and ran[0]["violation"] <= 1e-3 and ran[1]["violation"] <= 1e-3:
        gain = ran[0]["objective"] - ran[1]["objective"]
        if abs(gain) > 1e-3 * max(abs(ran[1]["objective"]), 1e-3):
            better = "lower" if gain > 0 else "higher"
            reasons.append(f"the default's objective is {better} by {abs(gain):.2g}")
            if default["status"] == _STEPS and gain < 0:
                reasons.append(f"by default it stops at max_iter, {default['passes']:.0f} passes")
    if line.experiment in ("E3", "E4") and line.data.startswith("compas"):
        reasons.append("other features than the paper's")
    if line.experiment == "E3" and line.data.endswith("exact"):
        reasons.append("the bound is stricter than the paper's")
    return "; ".join(reasons) or "-"


def _against_published(published: str, paper: Row) -> list[str]:
    """Return how the objective of a full run differs from a published one, if by over 2%."""
    first = published.split(",")[0]
    if "CVio" not in published or "objective" not in paper:
        return []
    share = paper["objective"] / float(first) - 1.0
    if abs(share) <= _SHARE:
        return [f"the published objective to {_SHARE:.0%}"]
    side = "above" if share > 0 else "below"
    return [f"objective {abs(share):.0%} {side} the published one"]


def write_page(folder: Path, table: list[Row], ranks: list[Ranks], versions: str = "") -> None:
    """Write papers.md and its figures."""
    text = (
        _HEAD
        + _lead(table, ranks)
        + _HOW.format(environment=environment(), versions=versions, svio_tol=SVIO_TOL)
    )
    for experiment in dict.fromkeys(row["line"].experiment for row in table):
        text += f"\n## {_TITLES[experiment]}\n\n{_NOTES[experiment]}\n\n"
        some = [row for row in table if row["line"].experiment == experiment]
        text += as_markdown([_shown(row) for row in some])
    for one in ranks:
        text += f"\n## {_TITLES[one.name]}\n\n{_NOTES[one.name]}\n\n{section(one, folder)}"
    for one in ranks:
        text += f"\n## Every level of {one.name}\n\n{every_level(one)}"
    (folder / "papers.md").write_text(text)


def _shown(row: Row) -> Row:
    """Return the columns of a line."""
    line = row["line"]
    return {
        "data": line.data,
        "method": line.method,
        "published": line.published,
        "ours with paper()": _cell(row, "paper") if "paper" in row else "-",
        "ours by default": _cell(row, "default"),
        "why they differ": why(row),
    }


def _lead(table: list[Row], ranks: list[Ranks]) -> str:
    """Return what the page shows, in sentences and a short table."""
    known = [row for row in table if _is_published(row)]
    run = _in_full(known, "paper")
    reached = sum(_reaches(row) for row in run)
    both = _in_full(table, "paper", "default")
    good = sum(_default_is_as_good(row) for row in both)
    text = (
        f"- 3S-Econ's table 2 has {len(known)} rows on a9a, with figures; the other papers print "
        f"curves, or use data that are not available. Rows that have been run with as many data "
        f"passes as published: {len(run)}, of which {reached} reach the published objective, to "
        f"{_SHARE:.0%} or better.\n"
        f"- Lines of E1 to E6: {len(table)}. Run in full, with `paper()` and by default: "
        f"{len(both)}. In {good} of these the default's objective is at most that of `paper()`, to "
        "0.1%.\n"
    )
    verdicts = [one for some in ranks for one in verdicts_of(some)]
    text += "".join(f"- {one}\n" for one in [*_against_the_best(table), *verdicts])
    rows = []
    for experiment in dict.fromkeys(row["line"].experiment for row in table):
        some = [row for row in table if row["line"].experiment == experiment]
        pairs = _in_full(some, "paper", "default")
        rows.append(
            {
                "experiment": _TITLES[experiment].partition(" (")[0],
                "lines": len(some),
                "paper() in full": len(_in_full(some, "paper")),
                "default in full": len(_in_full(some, "default")),
                "default at most paper()": f"{sum(map(_default_is_as_good, pairs))}/{len(pairs)}",
            }
        )
    return text + ("\n" + as_markdown(rows) if rows else "")


def _against_the_best(table: list[Row]) -> list[str]:
    """Return how the library's default compares with the best published row of its problem."""
    out = []
    for row in _in_full(table, "default"):
        line = row["line"]
        same = [
            one["line"].published.split(", ")
            for one in table
            if _is_published(one)
            and (one["line"].experiment, one["line"].data) == (line.experiment, line.data)
        ]
        if same and line.paper is None:
            best, found = min(same, key=lambda one: float(one[0])), row["default"]
            out.append(
                f"{line.experiment}, {line.data}: the default of the library ends at "
                f"{found['objective']:.4g}, violation {found['violation']:.1e}, after "
                f"{found['seconds']:.2g} s; the lowest published objective is {best[0]}, "
                f"{best[1].replace('CVio', 'violation')}, after {best[-1]}."
            )
    return out


def _is_published(row: Row) -> bool:
    """Return whether a line has a published objective, for the problem that we have."""
    line = row["line"]
    return "CVio" in line.published and line.data in ("a9a", "a9a, x* by SGD")


def _reaches(row: Row) -> bool:
    published = float(row["line"].published.split(",")[0])
    found = row["paper"]
    return bool(found["objective"] <= (1.0 + _SHARE) * published and found["violation"] <= 1e-3)


def _default_is_as_good(row: Row) -> bool:
    """Return whether the default's objective is at most that of `paper()`, or that one violates."""
    paper, default = row["paper"], row["default"]
    allowed = paper["objective"] + 1e-3 * max(abs(paper["objective"]), 1e-3)
    return bool(
        default["violation"] <= 1e-3
        and (paper["violation"] > 1e-3 or default["objective"] <= allowed)
    )


_HEAD = """# Reproducing the papers

The methods of this library are those of four papers: IPC, 3S-Econ, PLADA and IDCA
([full titles](glossary.md)). Do they reach the published results? There is a line for every row of
the papers' tables, and for every method in their figures, on the data that are available. A line of
E1 to E6 has three results: the published one, that of `paper()` (the printed algorithm with the
printed parameters), and that of the library's defaults. E9 and E10 compare our models with the
baselines of the paper. E1 to E10 number the experiments.

"""
_HOW = """
## How to read the tables

`python -m benchmarks papers --docs docs` writes this page ({environment}); `--quick` computes all
tables in minutes, and `--only E3` computes one table. Stored results are used again as long as the
code of the library does not change.{versions}

The columns "published" and "ours" have the objective, the violation of the constraints (CVio),
near-stationarity (SVio), data passes and CPU seconds on one core. For the first three, smaller is
better. "plot" is a method of which the paper prints a curve only.

SVio is the distance to the solution of the proximal subproblem, with the paper's constants. The
paper solves this subproblem by the switching subgradient method to a tolerance of 0.01. Its
constraints may then be violated by 0.01 as well, and nearly all methods in E3 have the same value.
Here the tolerance is {svio_tol:g}. With a smaller one, values above 0.0005 change by less than a
tenth. A value near 0 means that the point itself solves the subproblem to the tolerance. "none"
means that the subproblem is not solved, mostly because the point violates the constraints.

Every run has its form in brackets:

- "(full)": the paper's problem and as many data passes as the paper has. 3S-Econ counts two passes
  over the constraint in an iteration of SSG, of the proximal methods and of 3S-Econ-D, where this
  library counts one: these runs have up to twice the paper's iterations. With `paper()` a run does
  not stop at a tolerance of its own; by default it ends when it has converged, and after 5,000
  passes at the latest.
- "(fewer passes)": the paper's problem, stopped before the published number of data passes. This
  does not reproduce the paper's figure.
- "(complete)": a quick run that ended before its limit of data passes.
- "(quick)": a run that was stopped after 100 data passes (1,000 for methods with subproblems), in
  E3 with 100 thresholds and in E5 on 3,000 images. This does not reproduce the paper's figure.
- "not run": there was no time.

3S-Econ chooses the steps of the proximal methods in E3 to E5 from a grid, by the objective after
5,000 iterations. The runs here do the same, also for SSG, with 5,000 data passes on a smaller
version of the problem (100 thresholds in E3, 3,000 images in E5); the last column has the setting.
The paper tunes the number of steps in a subproblem as well and does not name it; here it is 1,000.
Lines without a setting have steps of 0.001, or c1 = 20 and c2 = 0.01. 3S-Econ's own steps are those
that its paper chose. IPC does not say from what values the parameters of its baselines are chosen;
in E2 they have one value.

The papers' figures have pages of their own: [comparisons of methods](curves.md) (IPC figures 1 and
2, 3S-Econ 2 to 4, PLADA 1 and 2) and [parameters](sensitivity.md) (3S-Econ figure 1, PLADA 4 to 6,
IDCA 9 and 10), as have [E7](e7.md) and [E8](e8.md). IDCA's figures 1 to 8 are in E9 and E10. The
algorithms of `paper()` are compared with transcriptions of the printed ones in
`tests/solvers/test_papers.py` and `tests/solvers/test_papers_of_penalties.py`. The exact penalty
method of E1 and E2 is only cited by IPC: neither its algorithm nor its parameters are printed. No
paper prints the algorithm of SSG-S. For this method, "ours with paper()" is the method of this
library with `polish=False`.
"""
