"""Every solver on every constraint, with the defaults of both, each run in its own process.

``--constraints papers`` takes PLADA's problems (sections 5.1 and 5.2): demographic parity 0.02 and
equalized odds 0.05. ``--constraints all`` takes every constraint that the library has a name for,
at 0.05, with its default surrogate or loss and with another one: smooth where the default has
kinks, with kinks where it is smooth. "auto" solves the problem of ``goal="fairness"``.

Results are kept with the version of the library: what is there is not run again. ``--solver`` and
``--constraint`` choose what is run; the table has all that is known of its problems.
"""

from __future__ import annotations

import io
import re
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness.data import DATA, Data, generated, load
from benchmarks.harness.isolated import OverLimit, limit_cpu, run_isolated
from benchmarks.harness.options import add_choice, add_seeds
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, as_markdown, environment, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, Constraint
from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.solvers import SOLVERS, Trace

KAPPA = 0.05
PAPERS = {"demographic_parity": 0.02, "equalized_odds": 0.05}
MAIN = ("ipc", "3s-econ", "plada", "idca")
SOLVED, FEASIBLE = 1e-4, 1e-3
NEAR, NEAR_MAIN = 0.02, 0.01
SECONDS_MAIN = 30.0  # of the main solvers, where a run may take 60
FAIRNESS_SOLVER = "auto"
FAIRNESS_OTHERS = ("smoothing", "augmented-lagrangian", "3s-econ")  # for a reference
VARIANTS = {  # of a surrogate or a loss: the one without kinks, and the one with them
    "surrogate": ("sigmoid", "ramp"),
    "loss": ("logistic", "hinge"),
}
_FAIRNESS = " (goal: fairness)"  # in the names of problems
_MEASURES = ("objective", "violation", "KKT residual")
_PRINTED = re.compile("objective (.+), violation (.+), KKT residual (.+)")
LEAST_SCALE = 0.05  # gaps are relative to the best objective, or to this where that is smaller


def is_stochastic(name: str) -> bool:
    """Return whether a solver's result depends on the seed."""
    return name.endswith("stochastic")


def first_at(trace: Trace, objective: float, violation: float = 1e-3) -> tuple[float, float]:
    """Return passes and seconds until a measured point is feasible and good enough, or nan."""
    frame = trace.to_frame()
    good = frame[(frame.objective <= objective) & (frame.violation <= violation)]
    if good.empty:
        return float("nan"), float("nan")
    return float(good.data_passes.iloc[0]), float(good.seconds.iloc[0])


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
        """What tables call it."""
        return self.variant_name + (_FAIRNESS if self.goal == "fairness" else "")

    @property
    def variant_name(self) -> str:
        """The constraint and its surrogate or loss."""
        return f"{self.constraint}:{self.variant}"

    def estimator(self, solver: str, seed: int = 0) -> FairLogisticClassifier:
        """Return the estimator, which prints measured iterates; all else is at its default."""
        return FairLogisticClassifier(
            self._constraint(),
            self.kappa,
            solver=solver,
            goal=self.goal,
            random_state=seed,
            verbose=1,
        )

    def _constraint(self) -> Constraint:
        kind = CLASSIFIER_CONSTRAINTS[self.constraint]
        constraint = kind(**{_parameter(self.constraint): self.variant})
        if self.constraint == "bounded_group_loss" and self.goal == "accuracy":
            constraint.set_params(bound=loss_bound(self.data, self.rows, self.variant))
        return constraint


@dataclass(frozen=True)
class Run:
    """A solver on a problem."""

    case: Case
    solver: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """What its result is stored under."""
        return (repr(self.case), self.solver, *([str(self.seed)] if self.seed else []))


def _parameter(constraint: str) -> str:
    parameters = CLASSIFIER_CONSTRAINTS[constraint]().get_params()
    return "surrogate" if "surrogate" in parameters else "loss"


def variants(constraint: str) -> tuple[str, str]:
    """Return the default surrogate or loss of a constraint, and the other one."""
    name = _parameter(constraint)
    smooth, kinked = VARIANTS[name]
    default = CLASSIFIER_CONSTRAINTS[constraint]().get_params()[name] or smooth
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


def fit(case: Case, solver: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return the figures of a fit; the CPU time of the process is limited from here on.

    Of a run that reaches the limit they are those of the last measured iterate.
    """
    warnings.simplefilter("ignore")  # what the run ended with is in the table
    X, y, groups = rows_of(case.data, case.rows)
    estimator = case.estimator(solver, seed)
    limit_cpu(seconds)
    clock, printed = time.process_time(), io.StringIO()
    try:
        with redirect_stdout(printed):
            result = estimator.fit(X, y, sensitive_features=groups).result_
    except OverLimit:
        last = _PRINTED.findall(printed.getvalue())[-1:] or [()]
        figures = dict(zip(_MEASURES, map(float, last[0]), strict=False))
        return {"status": f"over {seconds:g} s", "CPU seconds": seconds, **figures}
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
        "answer of": "" if result.replaces is None else type(result.solver).__name__,
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
        for name in CLASSIFIER_CONSTRAINTS:
            for variant in variants(name):
                yield Case(data, rows, name, KAPPA, variant)
                yield Case(data, rows, name, KAPPA, variant, "fairness")


def solvers_of(case: Case) -> list[str]:
    """Return the solvers that are to solve a problem."""
    if case.goal == "fairness":
        return [FAIRNESS_SOLVER, *FAIRNESS_OTHERS]
    return list(SOLVERS)


def is_chosen(one: Run, options: Namespace) -> bool:
    """Return whether the options ask for this run."""
    chosen, names = options.constraint, {one.case.constraint, one.case.variant_name}
    solver = FAIRNESS_SOLVER if one.case.goal == "fairness" else one.solver  # or its reference
    return (chosen is None or bool(names & set(chosen))) and solver in options.solver


def runs_of(case: Case, options: Namespace) -> Iterator[Run]:
    """Yield the runs on a problem: a stochastic solver with every seed."""
    for name in solvers_of(case):
        for seed in options.seeds if is_stochastic(name) else options.seeds[:1]:
            yield Run(case, name, seed)


def measure(one: Run, store: Store, options: Namespace) -> None:
    """Run a solver on a problem unless its result is known."""
    known = store.get(one.key, any_version=options.any_version)
    if known is not None and not options.fresh:
        return
    seconds = limit(one.case)
    found = run_isolated(fit, one.case, one.solver, one.seed, seconds)
    found = store.put(one.key, found or {"status": "killed", "CPU seconds": seconds})
    figures = [found.get(k, float("nan")) for k in ("objective", "violation", "CPU seconds")]
    text = "objective {:.5f}, violation {:.1e}, {:.1f} s".format(*figures)
    print(f"{one.case.data} {one.case.name} {one.solver}: {found['status']}, {text}", flush=True)


def table(case: Case, store: Store, options: Namespace) -> list[Row]:
    """Return what is known about a problem, a row for every run."""
    found = {one: store.get(one.key, any_version=True) for one in runs_of(case, options)}
    known = {one: result for one, result in found.items() if result is not None}
    best = best_objective([result for result in known.values() if "trace" in result])
    return [_row(one, result, best) for one, result in known.items()]


def best_objective(results: list[dict[str, Any]]) -> float:
    """Return the least objective of points that meet the tightest bound that some point meets."""
    for bound in (SOLVED, FEASIBLE):
        objectives = [one["objective"] for one in results if one["violation"] <= bound]
        if objectives:
            return min(objectives)
    return float("nan")


def _row(one: Run, result: dict[str, Any], best: float) -> Row:
    gap = (result.get("objective", float("nan")) - best) / max(abs(best), LEAST_SCALE)
    near = best + NEAR_MAIN * max(abs(best), LEAST_SCALE)
    passes = first_at(Trace(**result["trace"]), near)[0] if "trace" in result else ""
    row = {"data": one.case.data, "constraint": one.case.name, "solver": one.solver}
    row |= {"seed": one.seed if is_stochastic(one.solver) else "", "status": result["status"]}
    row |= {"objective": result.get("objective", ""), "relative gap": gap}
    for name in ("violation", "KKT residual", "passes"):
        row[name] = result.get(name, "")
    row["passes to 1%"] = passes
    for name in ("CPU seconds", "answer of", "version"):
        row[name] = result.get(name, "")
    return {**row, "verdict": verdict(one, result, gap)}


def verdict(one: Run, result: dict[str, Any], gap: float) -> str:
    """Return "met", or what is not."""
    if "trace" not in result:
        return result["status"]
    if not result["violation"] <= FEASIBLE:
        return f"violation {result['violation']:.1e}"
    if not gap <= (NEAR_MAIN if one.solver in MAIN else NEAR):
        return f"gap {gap:.1%}"
    seconds = min(limit(one.case), SECONDS_MAIN) if one.solver in MAIN else limit(one.case)
    return "met" if result["CPU seconds"] <= seconds else f"{result['CPU seconds']:.0f} s"


def overview(rows: list[Row]) -> list[Row]:
    """Return the verdicts, a row for every problem and a column for every solver."""
    problems = {(row["data"], row["constraint"]): {} for row in rows}
    for row in rows:
        verdicts = problems[row["data"], row["constraint"]]
        if verdicts.get(row["solver"], "met") in (
            "met",
            "met*",
        ):  # of several seeds the first failure
            verdicts[row["solver"]] = row["verdict"] + ("*" if row["answer of"] else "")
    solvers = (FAIRNESS_SOLVER, *SOLVERS)
    names = [name for name in solvers if any(name in found for found in problems.values())]
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
    add_choice(parser, "--solver", [FAIRNESS_SOLVER, *SOLVERS], quick=MAIN, help="run these only")
    add_seeds(parser, (0,))
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
            pool.submit(measure, one, store, options)
            for case in problems
            for one in runs_of(case, options)
            if is_chosen(one, options)
        ]
        for job in jobs:
            job.result()
    rows = [row for case in problems for row in table(case, store, options)]
    name = f"all_solvers-{options.constraints}-{'-'.join(options.data)}"
    write_table(rows, name, "Every solver with its defaults", options.out)
    rows = [row for row in rows if not _is_reference(row["constraint"], row["solver"])]
    verdicts = overview(rows)
    met = sum(row["verdict"] == "met" for row in rows)
    text = f"{met} of {len(rows)} runs met\n\n{environment()}\n\n{as_markdown(verdicts)}"
    (options.out / f"{name}-verdicts.md").write_text(text)
    print(text)


def _is_reference(problem: str, solver: str) -> bool:
    """Return whether a run only shows what the default could have found."""
    return problem.endswith(_FAIRNESS) and solver != FAIRNESS_SOLVER
