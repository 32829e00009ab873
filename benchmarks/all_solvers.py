"""Every solver on every constraint, with the defaults of both, each run in its own process.

``--constraints papers`` takes PLADA's problems (sections 5.1 and 5.2): demographic parity 0.02 and
equalized odds 0.05. ``--constraints all`` takes every constraint that the library has a name for,
at 0.05, with its default surrogate or loss and with another one: smooth where the default has
kinks, with kinks where it is smooth. "level-search" solves the problem of ``goal="fairness"``.

Results are kept with the version of the library: what is there is not run again. ``--solver`` and
``--constraint`` choose what is run; the table has all that is known of its problems.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness.data import DATA, Data, generated, load
from benchmarks.harness.isolated import limit_cpu, run_isolated
from benchmarks.harness.options import add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, as_markdown, environment, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.solvers import SOLVERS

KAPPA = 0.05
PAPERS = {"demographic_parity": 0.02, "equalized_odds": 0.05}
MAIN = ("ipc", "3s-econ", "plada", "idca")
FEASIBLE, NEAR, NEAR_MAIN = 1e-3, 0.02, 0.01
SECONDS_MAIN = 30.0  # of the main solvers, where a run may take 60
FAIRNESS_SOLVER = "level-search"
FAIRNESS_OTHERS = ("smoothing", "augmented-lagrangian", "3s-econ")  # for a reference
VARIANTS = {  # of a surrogate or a loss: the one without kinks, and the one with them
    "surrogate": ("sigmoid", "ramp"),
    "loss": ("logistic", "hinge"),
}
LEAST_SCALE = 0.05  # gaps are relative to the best objective, or to this where that is smaller


@dataclass(frozen=True)
class Case:
    """A problem: data, constraint with its tolerance, surrogate or loss, what is minimised."""

    data: str
    rows: int
    constraint: str
    kappa: float
    variant: str
    goal: str = "accuracy"

    @property
    def name(self) -> str:
        """The constraint, its variant and its tolerance, for tables."""
        goal = " (goal: fairness)" if self.goal == "fairness" else ""
        return f"{self.constraint}:{self.variant}{goal}"

    def estimator(self, solver: str) -> FairLogisticClassifier:
        """Return the estimator, everything else at its default."""
        return FairLogisticClassifier(
            self._constraint(), self.kappa, solver=solver, goal=self.goal, random_state=0
        )

    def _constraint(self) -> Constraint:
        kind = CONSTRAINTS[self.constraint]
        constraint = kind(**{_parameter(self.constraint): self.variant})
        if self.constraint == "bounded_group_loss" and self.goal == "accuracy":
            constraint.set_params(bound=loss_bound(self.data, self.rows, self.variant))
        return constraint


def _parameter(constraint: str) -> str:
    parameters = CONSTRAINTS[constraint]().get_params()
    return "surrogate" if "surrogate" in parameters else "loss"


def variants(constraint: str) -> tuple[str, str]:
    """Return the default surrogate or loss of a constraint, and the other one."""
    name = _parameter(constraint)
    smooth, kinked = VARIANTS[name]
    default = CONSTRAINTS[constraint]().get_params()[name] or smooth
    return default, (smooth if default == kinked else kinked)


@cache
def rows_of(data: str, n_rows: int) -> Data:
    """Return a data set, or generated rows."""
    return generated(n_rows) if data == "generated" else load(data)


@cache
def loss_bound(data: str, n_rows: int, loss: str) -> float:
    """Return a bound that the group of the largest loss can meet, and does not by itself.

    It is halfway between the loss of that group in a model of all rows and in one of its own rows.
    """
    X, y, groups = rows_of(data, n_rows)
    signs = 2.0 * y - 1.0

    def mean_loss(model: FairLogisticClassifier, rows: np.ndarray) -> float:
        margins = signs[rows] * model.decision_function(X[rows])
        if loss == "hinge":
            return float(np.maximum(0.0, 1.0 - margins).mean())
        return float(np.logaddexp(0.0, -margins).mean())

    joint = FairLogisticClassifier(None).fit(X, y)
    worst = max(np.unique(groups), key=lambda group: mean_loss(joint, groups == group))
    rows = groups == worst
    own = FairLogisticClassifier(None, loss=loss).fit(X[rows], y[rows])
    return round(0.5 * (mean_loss(joint, rows) + mean_loss(own, rows)), 4)


def fit(case: Case, solver: str, seconds: float) -> dict[str, Any]:
    """Return the figures of a fit; the CPU time of the process is limited from here on."""
    warnings.simplefilter("ignore")  # what the run ended with is in the table
    X, y, groups = rows_of(case.data, case.rows)
    estimator = case.estimator(solver)
    limit_cpu(seconds)
    clock = time.process_time()
    try:
        result = estimator.fit(X, y, sensitive_features=groups).result_
    except IncompatibleSolverError as error:
        return {"status": "refused", "message": str(error)}
    except Exception as error:
        return {"status": f"{type(error).__name__}", "message": str(error)}
    return {
        "status": result.status.value,
        "objective": result.objective,
        "violation": result.violation,
        "KKT residual": result.kkt_residual,
        "passes": result.data_passes,
        "CPU seconds": time.process_time() - clock,
        "answered by": type(result.solver).__name__,
        "trace": vars(result.trace),
    }


def limit(case: Case) -> float:
    """Return the CPU seconds that a run may take: 60, or 10 on a thousand rows."""
    return 10.0 if case.data == "generated" and case.rows <= 1000 else 60.0


def cases(options: Namespace) -> Iterator[Case]:
    """Yield the problems that the options name."""
    for data in options.data:
        rows = options.rows if data == "generated" else 0
        if options.constraints == "papers":
            for name, kappa in PAPERS.items():
                yield Case(data, rows, name, kappa, "sigmoid")
            continue
        for name in CONSTRAINTS:
            for variant in variants(name):
                yield Case(data, rows, name, KAPPA, variant)
                yield Case(data, rows, name, KAPPA, variant, "fairness")


def solvers_of(case: Case) -> list[str]:
    """Return the solvers that are to solve a problem."""
    if case.goal == "fairness":
        return [FAIRNESS_SOLVER, *FAIRNESS_OTHERS]
    return [name for name in SOLVERS if name != FAIRNESS_SOLVER]


def is_chosen(case: Case, solver: str, options: Namespace) -> bool:
    """Return whether the options ask for this run."""
    chosen = options.constraint
    named = chosen is None or {case.constraint, f"{case.constraint}:{case.variant}"} & set(chosen)
    return bool(named) and solver in options.solver


def measure(case: Case, solver: str, store: Store, options: Namespace) -> None:
    """Run a solver on a problem unless its result is known."""
    key = (repr(case), solver)
    known = store.get(key, any_version=options.any_version)
    if known is not None and not options.fresh:
        return
    seconds = limit(case)
    found = run_isolated(fit, case, solver, seconds)
    found = store.put(key, found or {"status": f"over {seconds:g} s", "CPU seconds": seconds})
    figures = [found.get(k, float("nan")) for k in ("objective", "violation", "CPU seconds")]
    text = "objective {:.5f}, violation {:.1e}, {:.1f} s".format(*figures)
    print(f"{case.data} {case.name} {solver}: {found['status']}, {text}", flush=True)


def table(case: Case, store: Store) -> list[Row]:
    """Return what is known about a problem, a row for every solver."""
    found = {name: store.get((repr(case), name), any_version=True) for name in solvers_of(case)}
    known = {name: result for name, result in found.items() if result is not None}
    feasible = [r["objective"] for r in known.values() if r.get("violation", 1.0) <= FEASIBLE]
    best = min(feasible, default=float("nan"))
    return [_row(case, name, result, best) for name, result in known.items()]


def _row(case: Case, solver: str, result: dict[str, Any], best: float) -> Row:
    gap = (result.get("objective", float("nan")) - best) / max(abs(best), LEAST_SCALE)
    row = {"data": case.data, "constraint": case.name, "solver": solver, "status": result["status"]}
    row |= {"objective": result.get("objective", ""), "relative gap": gap}
    for name in ("violation", "KKT residual", "passes", "CPU seconds", "answered by", "version"):
        row[name] = result.get(name, "")
    return {**row, "verdict": verdict(case, solver, result, gap)}


def verdict(case: Case, solver: str, result: dict[str, Any], gap: float) -> str:
    """Return "met", or what is not."""
    if "objective" not in result:
        return result["status"]
    if not result["violation"] <= FEASIBLE:
        return f"violation {result['violation']:.1e}"
    if not gap <= (NEAR_MAIN if solver in MAIN else NEAR):
        return f"gap {gap:.1%}"
    seconds = min(limit(case), SECONDS_MAIN) if solver in MAIN else limit(case)
    return "met" if result["CPU seconds"] <= seconds else f"{result['CPU seconds']:.0f} s"


def overview(rows: list[Row]) -> list[Row]:
    """Return the verdicts, a row for every problem and a column for every solver."""
    problems = {(row["data"], row["constraint"]): {} for row in rows}
    for row in rows:
        problems[row["data"], row["constraint"]][row["solver"]] = row["verdict"]
    names = [name for name in SOLVERS if any(name in found for found in problems.values())]
    return [
        {"data": data, "constraint": constraint, **{name: found.get(name, "") for name in names}}
        for (data, constraint), found in problems.items()
    ]


def add_options(parser: ArgumentParser) -> None:
    """Add what is run, and what is done with results of earlier runs."""
    add_choice(parser, "--data", [*DATA, "generated"], quick=["generated"], help="data sets")
    parser.add_argument("--rows", type=int, default=1000, help="of the generated data")
    parser.add_argument(
        "--constraints", choices=["papers", "all"], default="papers", help="see the module's text"
    )
    parser.add_argument(
        "--constraint",
        nargs="+",
        metavar="NAME",
        help="run these only: partial_dp, roc_parity:ramp",
    )
    add_choice(parser, "--solver", SOLVERS, quick=MAIN, help="run these only")
    parser.add_argument("--fresh", action="store_true", help="run also what is known")
    parser.add_argument(
        "--any-version", action="store_true", help="accept results of other versions of the library"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")


def run(options: Namespace) -> None:
    """Run what is not known, then write the table and the overview of its verdicts."""
    store = Store(options.out / "all_solvers")
    problems = list(cases(options))
    for data in options.data:
        rows_of(data, options.rows if data == "generated" else 0)  # once, before the forks
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [
            pool.submit(measure, case, solver, store, options)
            for case in problems
            for solver in solvers_of(case)
            if is_chosen(case, solver, options)
        ]
        for job in jobs:
            job.result()
    rows = [row for case in problems for row in table(case, store)]
    name = f"all_solvers-{options.constraints}-{'-'.join(options.data)}"
    write_table(rows, name, "Every solver with its defaults", options.out)
    met = sum(row["verdict"] == "met" for row in rows)
    text = f"{met} of {len(rows)} runs met\n\n{environment()}\n\n{as_markdown(overview(rows))}"
    (options.out / f"{name}-verdicts.md").write_text(text)
    print(text)
