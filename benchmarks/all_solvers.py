"""Every solver on every constraint, with the defaults of both, each run in its own process.

Every constraint that the library has a name for, at 0.05, with its default surrogate or loss and
with another one: smooth where the default has kinks, with kinks where it is smooth. "auto" solves
the problem of ``goal="fairness"``.

Results are kept with the commit: what is there is not run again. ``--solver`` and ``--constraint``
choose what is run.
"""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.harness.data import DATA, Data, generated, load, signs
from benchmarks.harness.options import add_choice
from benchmarks.harness.processes import OverBudget, isolated, limited
from benchmarks.harness.results import Page, Row, Store, boxes, ended, stamp, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.exceptions import IncompatibleSolverError
from fairconstrained.functions.losses import LOSSES
from fairconstrained.solvers import SOLVERS

KAPPA = 0.05
MAIN = ("ipc", "3s-econ", "plada", "idca")
SOLVED, FEASIBLE = 1e-4, 1e-3  # violation of the best objective; of a run that is met
NEAR, NEAR_MAIN = 0.02, 0.01  # relative gap of a run that is met
SECONDS_MAIN = 30.0
# With goal="fairness" the default is compared with what other solvers find, not they with it.
DEFAULT = "auto"
REFERENCES = ("smoothing", "augmented-lagrangian", "3s-econ")
VARIANTS = {"surrogate": ("sigmoid", "ramp"), "loss": ("logistic", "hinge")}
LEAST_SCALE = 0.05  # the relative gap of an objective near zero is in units of this
FIGURES = ("violation", "KKT residual", "passes", "CPU seconds", "answer of")


@dataclass(frozen=True)
class Case:
    """A problem: data, constraint, surrogate or loss, what is minimised."""

    data: str
    rows: int
    constraint: str
    variant: str
    goal: str = "accuracy"

    @property
    def name(self) -> str:
        """The constraint and its surrogate or loss, and the goal."""
        goal = " (goal: fairness)" if self.goal == "fairness" else ""
        return f"{self.constraint}:{self.variant}{goal}"

    @property
    def seconds(self) -> float:
        """The CPU seconds that a run may take: 60, or 10 on a thousand rows."""
        return 10.0 if self.data == "generated" and self.rows <= 1000 else 60.0

    def estimator(self, solver: str) -> FairLogisticClassifier:
        """Return the estimator; all else is at its default."""
        kind = CLASSIFIER_CONSTRAINTS[self.constraint]
        constraint = kind(**{_parameter(self.constraint): self.variant})
        if self.constraint == "bounded_group_loss" and self.goal == "accuracy":
            constraint.set_params(bound=loss_bound(self.data, self.rows, self.variant))
        options = {"solver": solver, "goal": self.goal, "random_state": 0}
        return FairLogisticClassifier(constraint, KAPPA, **options)


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

    def mean_loss(model: FairLogisticClassifier, rows: np.ndarray) -> float:
        margins = signs(y)[rows] * model.decision_function(X[rows])
        return float(LOSSES[loss]().value(margins).mean())

    joint = FairLogisticClassifier(None).fit(X, y)
    worst = max(np.unique(groups), key=lambda group: mean_loss(joint, groups == group))
    rows = groups == worst
    alone = FairLogisticClassifier(None, loss=loss).fit(X[rows], y[rows])
    return round(0.5 * (mean_loss(joint, rows) + mean_loss(alone, rows)), 4)


def fit(task: tuple[Case, str]) -> Row:
    """Return the figures of a solver on a problem, or why there are none."""
    case, solver = task
    warnings.simplefilter("ignore")
    X, y, groups = rows_of(case.data, case.rows)
    clock = time.process_time()
    try:
        with limited(case.seconds):
            result = case.estimator(solver).fit(X, y, sensitive_features=groups).result_
    except OverBudget:
        return {"status": f"over {case.seconds:g} s"}
    except IncompatibleSolverError:
        return {"status": "refused"}
    except Exception as error:
        return {"status": f"{type(error).__name__}: {error}"}
    row = ended(result) | {"CPU seconds": time.process_time() - clock}
    return row | {"answer of": "" if result.replaces is None else row["solver"]}


def tasks(options) -> Iterator[tuple[Case, str]]:
    """Yield the problems that the options name, with the solvers of each."""
    named = [name for name in CLASSIFIER_CONSTRAINTS if name not in ("coverage", "churn")]
    for data, name in product(options.data, named):  # fits without constraints meet the two
        rows = options.rows if data == "generated" else 0
        for variant, goal in product(variants(name), ("accuracy", "fairness")):
            case = Case(data, rows, name, variant, goal)
            wanted = options.constraint or [name]
            if {name, f"{name}:{variant}"} & {*wanted}:
                fair = goal == "fairness"
                for solver in (DEFAULT, *REFERENCES) if fair else SOLVERS:
                    if (DEFAULT if fair else solver) in options.solver:
                        yield case, solver


def best_objective(results: list[Row]) -> float:
    """Return the least objective of points that meet the tightest bound that some point meets."""
    for bound in (SOLVED, FEASIBLE):
        objectives = [row["objective"] for row in results if row["violation"] <= bound]
        if objectives:
            return min(objectives)
    return float("nan")


def table(results: dict[tuple[Case, str], Row]) -> list[Row]:
    """Return a row for every run."""
    rows = []
    for (case, solver), result in results.items():
        same = [run for (other, _), run in results.items() if other == case and "passes" in run]
        best, objective = best_objective(same), result.get("objective", np.nan)
        gap = (objective - best) / max(abs(best), LEAST_SCALE)
        reference = case.goal == "fairness" and solver != DEFAULT
        rows.append({
            "data": case.data,
            "constraint": case.name,
            "solver": solver,
            "status": result["status"],
            "objective": result.get("objective", ""),
            "relative gap": gap,
            **{name: result.get(name, "") for name in FIGURES},
            **stamp(result),
            "verdict": "" if reference else verdict(case, solver, result, gap),
        })  # fmt: skip
    return rows


def verdict(case: Case, solver: str, result: Row, gap: float) -> str:
    """Return "met", or what is not."""
    if "passes" not in result:
        return result["status"]
    if not result["violation"] <= FEASIBLE:
        return f"violation {result['violation']:.1e}"
    if not gap <= (NEAR_MAIN if solver in MAIN else NEAR):
        return f"gap {gap:.1%}"
    seconds = min(case.seconds, SECONDS_MAIN) if solver in MAIN else case.seconds
    return "met" if result["CPU seconds"] <= seconds else f"{result['CPU seconds']:.0f} s"


def by_solver(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that are met, worst gaps and medians, a row for every solver."""
    judged = rows[rows.verdict.notna()].assign(met=rows.verdict == "met")
    grouped = judged.groupby(["solver", "data"], sort=False)
    shown = {
        "met": grouped.met.sum().astype(str) + " of " + grouped.size().astype(str),
        "worst gap, %": (100.0 * grouped["relative gap"].max()).map("{:.2f}".format),
        "passes": grouped.passes.median().map("{:.0f}".format),
        "CPU seconds": grouped["CPU seconds"].median().map("{:.2f}".format),
    }
    of_data = {name: pd.DataFrame(shown).xs(name, level="data") for name in judged.data.unique()}
    table = pd.concat(of_data, axis=1).reindex(judged.solver.unique())
    table.columns = [": ".join(names) for names in table.columns]
    return table.rename_axis("solver").reset_index()


def draw(passes, gaps, rows: pd.DataFrame) -> None:
    """Draw the data passes and the relative gaps of the runs on a9a."""
    some = rows[rows.verdict.notna() & (rows.data == "a9a")]
    gap = (100.0 * some["relative gap"]).clip(lower=1e-4)
    boxes(passes, some.passes, some.solver, "data passes", MAIN)
    boxes(gaps, gap, some.solver, "objective above the best of all solvers, %", MAIN)
    for ax in (passes, gaps):
        ax.set_xscale("log")


PAGES = (Page("every_solver", by_solver, draw, ("every_solver",)),)


def add_options(parser) -> None:
    """Add what is run."""
    add_choice(parser, "--data", [*DATA, "generated"], quick=["generated"], help="data sets")
    parser.add_argument("--rows", type=int, default=1000, help="of the generated data")
    text = "run these only: partial_dp, roc_parity:ramp"
    parser.add_argument("--constraint", nargs="+", metavar="NAME", help=text)
    add_choice(parser, "--solver", [DEFAULT, *SOLVERS], quick=MAIN, help="run these only")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")


def run(options) -> None:
    """Run what is not known, then write the table with its verdicts."""
    store = Store(options.out / "all_solvers")
    for data in options.data:
        rows_of(data, options.rows if data == "generated" else 0)  # once, before the forks
    keys = {task: (repr(task[0]), task[1]) for task in tasks(options)}
    unknown = [task for task, key in keys.items() if store.get(key) is None]
    for task, row, lost in isolated(fit, unknown, options.jobs):
        row = store.put(keys[task], row or {"status": lost})
        print(task[0].data, task[0].name, task[1], row["status"], flush=True)
    results = {task: store.get(key) for task, key in keys.items()}
    rows = table({task: row for task, row in results.items() if row is not None})
    write_table(rows, "every_solver", "Every solver with its defaults", options.out)
    judged = [row["verdict"] for row in rows if row["verdict"]]
    print(f"{judged.count('met')} of {len(judged)} runs met")
