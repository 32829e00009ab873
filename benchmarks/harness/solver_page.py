"""The page of the documentation that shows the table of every solver on every constraint."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.harness.tables import Row, as_markdown, environment

_HEAD = """# Every solver on every constraint

All named solvers, with their defaults, on all named constraints, with a smooth and with a
piecewise linear surrogate or loss. The tolerance of the constraints is 0.05; bounded group loss has
a bound that is active. `auto` solves the problem
of `goal="fairness"`.

This page is written by

```shell
{command}
```

A run is *met* if it violates the constraints by at most {feasible:g}, if its objective is at most
{near:.0%} above the best feasible one of all solvers (gaps are relative; {main}: {near_main:.0%}),
and if it takes at most 60 seconds of CPU time ({main}: {seconds:g}; on a thousand generated rows
all solvers: 10). Otherwise the verdict states what is not met. Where the answer of a solver
violates the constraints, or is likely to be a poor local solution, a fit tries others
([solvers](guide/solvers.md)). A star marks the runs with the answer of another one, which the
column "answer of" names. Objective, violation, KKT residual and data passes hardly depend on the
machine, CPU seconds do. {environment}.
"""
_SUBGRADIENT = ("ssg", "ipp-ssg", "ssg-stochastic", "3s-econ", "3s-econ-stochastic")
_OPTIMAL = 1e-4  # the tolerance of the solvers on the KKT residual
_COLUMNS = (
    "objective",
    "relative gap",
    "violation",
    "KKT residual",
    "passes",
    "CPU seconds",
    "answer of",
)
_MISS = ("data", "constraint", "solver", "verdict")


def page(rows: list[Row], verdicts: list[Row], missing: int, command: str, **limits: object) -> str:
    """Return the page.

    Parameters
    ----------
    rows : list of dict
        The table, a row for every run.
    verdicts : list of dict
        Its overview, a row for every problem and a column for every solver.
    missing : int
        The runs that the table should have and has not.
    command : str
        What writes the page.
    **limits
        What a run has to meet, for the text.
    """
    text = _HEAD.format(command=command, environment=environment(), **limits)
    met = sum(row["verdict"] == "met" for row in rows)
    others = sum(row["verdict"] == "met" and bool(row["answer of"]) for row in rows)
    text += f"\n{met} of {len(rows)} runs are met, {others} of them with another solver's answer."
    text += f" {missing} more have not been run." if missing else ""
    versions = len({row.get("version") for row in rows})
    text += f" The runs are of {versions} versions of the code.\n" if versions > 1 else "\n"
    misses = [row for row in rows if row["verdict"] != "met"]
    if misses:
        shown = [{name: row[name] for name in _MISS} | {"why": _why(row)} for row in misses]
        text += f"\n## Runs that are not met\n\n{as_markdown(shown)}"
    for data in _distinct(row["data"] for row in rows):
        text += f"\n## Data: {data}\n\n"
        text += as_markdown(_without_data(verdicts, data))
        of_data = [row for row in rows if row["data"] == data]
        for constraint in _distinct(row["constraint"] for row in of_data):
            shown = [_shown(row) for row in of_data if row["constraint"] == constraint]
            text += f"\n### {constraint}, {data}\n\n{as_markdown(shown)}"
    return text


def _why(row: Row) -> str:
    """Return why a run is not met, from its figures and the theory of its method."""
    if row["verdict"].startswith("gap"):
        if row["KKT residual"] <= _OPTIMAL:
            return "another local solution: its certificate holds, the problem is not convex"
        return "ends short of the tolerance"
    if row["verdict"].startswith("violation"):
        return "ends before the constraints hold"
    if not row["verdict"].endswith(" s"):
        return "see the status"
    if row["solver"] in _SUBGRADIENT:
        return "subgradient steps: their number grows with a power of the inverse tolerance"
    return "more data passes than the time allows"


def _distinct(values: Iterable[str]) -> list[str]:
    """Return the different values in the order of their first occurrence."""
    return list(dict.fromkeys(values))


def _without_data(rows: list[Row], data: str) -> list[Row]:
    """Return the rows of a data set without the column that names it."""
    return [{k: v for k, v in row.items() if k != "data"} for row in rows if row["data"] == data]


def _shown(row: Row) -> Row:
    """Return the columns of a run that the page shows."""
    figures = {name: row[name] for name in _COLUMNS}
    return {"solver": row["solver"], **figures, "verdict": row["verdict"]}
