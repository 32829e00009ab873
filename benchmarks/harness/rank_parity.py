"""E9 and E10, IDCA's experiments (section 7): accuracy against fairness in a range of ranks.

Linear models with cross terms (1, x, z, z x) and the paper's ramps. "ours" takes the solver that
"auto" takes. Every baseline is compared with ours at its fairness, over the same splits.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, load, parts
from benchmarks.harness.frontier import Point, compared
from benchmarks.harness.store import Store, stamp
from benchmarks.harness.tables import Row, write_table
from fairconstrained import FairLogisticClassifier, metrics
from fairconstrained import constraints as public
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import IDCA, Regularization, Solver, default_solver
from fairconstrained.solvers.base import Iterate, Start

RANKS = {"a9a": (0.05, 0.30), "bank": (0.0, 0.25), "law_school": (0.70, 1.0)}
_SHARES = {"bank": (0.6, 0.2), "law_school": (0.5625, 0.25)}  # of training and test rows
TEST_TO_TRAIN = {"a9a": 16281 / (0.9 * 32561)}
TEST_TO_TRAIN |= {name: test / train for name, (train, test) in _SHARES.items()}
PAIRWISE = {
    "group AUC": public.GroupAUCParity,
    "inter-group": public.InterGroupAUCParity,
    "intra-group": public.IntraGroupAUCParity,
}
OURS = ("ours", "unconstrained")
PAPER_EPSILON = 5e-3  # of the paper's grid the value with which the objective falls fastest
QUICK_KAPPAS = 2  # how many of the paper's a quick run takes
Levels = dict[str, dict[str, tuple[float, ...]]]


@dataclass(frozen=True)
class Experiment:
    """A notion of fairness, how it is measured on test rows, and the tolerances of all methods.

    Our frontier has further kappas, where baselines are fairer or less fair; the tolerances of the
    baselines are those of appendices D.3.2 and D.4. In the paper's regularisation `weight` times
    lambda is the factor of the violation with kappa = 0: the violation is divided by beta - alpha,
    as the penalties of (78) and (83) are.
    """

    name: str
    notion: type
    metric: Callable[..., float]
    weight: float
    levels: Levels

    def unfairness(self, data: str, scores: np.ndarray, groups: np.ndarray) -> float:
        """Return the measure of scores in the data set's range of ranks."""
        labels = np.zeros(len(scores))  # it does not use them
        return float(self.metric(labels, scores, sensitive_features=groups, ranks=RANKS[data]))


def _levels(experiment: str) -> Levels:
    """Return the levels by method and data set."""
    table = pd.read_csv(Path(__file__).with_name("levels.csv"))
    levels: Levels = {}
    for row in table[table.experiment == experiment].itertuples():
        numbers = tuple(float(level) for level in row.levels.split())
        levels.setdefault(row.method, {})[row.data] = numbers
    return levels


EXPERIMENTS = {
    "E9": Experiment(
        "partial_parity",
        public.PartialDemographicParity,
        metrics.partial_demographic_parity_difference,
        2.0,
        _levels("E9"),
    ),
    "E10": Experiment(
        "weak_partial_parity",
        public.WeakPartialDemographicParity,
        metrics.weak_partial_demographic_parity_difference,
        1.0,
        _levels("E10"),
    ),
}


def split(name: str, seed: int) -> tuple[Data, Data]:
    """Return training and test rows in the paper's shares; its validation rows are unused."""
    if name == "a9a":
        train, test = parts("a9a")
        rows = train_test_split(np.arange(len(train[1])), train_size=0.9, random_state=seed)[0]
        return _take(train, rows), test
    data = load(name)
    train_size, test_size = _SHARES[name]
    rows, rest = train_test_split(
        np.arange(len(data[1])), train_size=train_size, random_state=seed, stratify=data[2]
    )
    return _take(data, rows), _take(data, rest[: round(test_size * len(data[1]))])


def _take(data: Data, rows: np.ndarray) -> Data:
    X, y, groups = data
    return X[rows], y[rows], groups[rows]


def with_group(X: Any, groups: np.ndarray) -> Any:
    """Return X with the group as a last column, 0 or 1."""
    column = (groups == np.unique(groups)[-1]).astype(float)[:, None]
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(column)]))
    return np.column_stack([X, column])


class Penalised(Solver):
    r"""The minimiser of the objective plus s times the largest violation.

    .. math::
        \min_{w \in W,\, t \ge 0} f(w) + s\, t \quad \text{s.t.} \quad g_j(w) \le t.

    Subgradient steps, as the paper makes them, end above this minimum.

    Parameters
    ----------
    strength : float
        s > 0.
    """

    seeks_feasibility = False

    def __init__(self, strength: float, *, max_iter: int = 100, tol: float = 1e-4):
        self.strength = strength
        self.max_iter = max_iter
        self.tol = tol

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the minimiser: the violation is a last variable t, which costs its strength."""
        at, n = start.at(problem), problem.n_variables
        lifted = problem.epigraph()  # its constraints are g_j(w) <= t
        lifted = replace(
            lifted,
            objective=problem.objective.widened(n, self.strength),
            constraints=(*lifted.constraints, CompositeFunction().widened(n, -1.0)),
        )
        solver = default_solver(lifted).with_options(max_iter=self.max_iter)
        first = np.append(at.w, max(at.violation, 0.0))
        answer, _ = solver.run(lifted, replace(start, w=first, multipliers=None, state=None))
        yield Iterate(problem.at(answer.w[:-1]), None, 1, status=answer.status)


@dataclass(frozen=True)
class Method:
    """A line of the figure: a constraint for every level, and what solves it."""

    name: str
    levels: tuple[float, ...]
    constraint: Callable[[float], public.Constraint | None]
    solver: Callable[[float], str | Solver] = lambda level: "auto"


def methods_for(experiment: Experiment, data: str, *, quick: bool) -> list[Method]:
    """Return the methods in the figure."""
    levels = {name: by_data[data] for name, by_data in experiment.levels.items()}
    kappas = levels["ours"]
    if quick:
        levels = {name: some[-QUICK_KAPPAS:] for name, some in levels.items()}
        levels |= {"ours": kappas, "further": ()}

    def bounded(kappa: float) -> public.Constraint:
        return experiment.notion(kappa, surrogate=Ramp(), ranks=RANKS[data])

    def unfair(level: float) -> public.Constraint:
        return bounded(0.0)

    def subgradients(level: float) -> Solver:
        return Regularization(experiment.weight * level, max_iter=1000, check_every=1000)

    def solved(level: float) -> Solver:
        return Penalised(experiment.weight * level)

    methods = [
        Method("ours", kappas + levels["further"], bounded),
        Method("unconstrained", (1.0,), lambda level: None),
        *(Method(name, levels[name], kind) for name, kind in PAIRWISE.items()),
        Method("regularisation", levels["regularisation"], unfair, subgradients),
        Method("regularisation, solved", levels["regularisation"], unfair, solved),
    ]
    if quick:
        return methods
    printed = IDCA.paper(epsilon=PAPER_EPSILON)
    return [*methods, Method("IDCA, paper()", kappas, bounded, lambda level: printed)]


def fitted(experiment: Experiment, name: str, method: Method, level: float, rows: Any) -> Row:
    """Return the measures of a model with cross terms on test rows, and the seconds of its fit."""
    (X, y, groups), (X_test, y_test, groups_test) = rows
    model = FairLogisticClassifier(
        method.constraint(level),
        solver=method.solver(level),
        sensitive_columns=[-1],
        group_interactions=True,
    )
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the run ended with is in the table
        model.fit(with_group(X, groups), y)
    seconds = time.perf_counter() - clock
    scores = model.decision_function(with_group(X_test, groups_test))
    return {
        "accuracy": float(np.mean((scores > 0) == (y_test == np.max(y_test)))),
        "unfairness": experiment.unfairness(name, scores, groups_test),
        "status": model.result_.status.value,
        "solver": type(model.result_.solver).__name__,
        "seconds": seconds,
    }


def points(experiment: Experiment, data: str, options: Namespace, store: Store) -> Iterator[Point]:
    """Yield a point for every level of every method; fits that are known are not made again."""
    parts_of = {seed: split(data, seed) for seed in options.seeds}
    for method in methods_for(experiment, data, quick=options.quick):
        for level in method.levels:
            runs = {}
            for seed, rows in parts_of.items():
                key = (experiment.name, data, method.name, repr(level), str(seed))
                if (known := store.get(key)) is None:
                    known = store.put(key, fitted(experiment, data, method, level, rows))
                    print(*key, *known.values(), flush=True)
                runs[seed] = known
            yield point(data, method.name, level, runs)


def point(data: str, method: str, level: float, runs: dict[int, Row]) -> Point:
    """Return a method with a level, from its figures on the splits."""
    seconds = float(np.mean([run["seconds"] for run in runs.values()]))
    row = {"data": data, "method": method, "level": level, "seconds": seconds}
    row |= stamp(runs[max(runs)])
    accuracy = {k: run["accuracy"] for k, run in runs.items()}
    fairness = {k: 1.0 - run["unfairness"] for k, run in runs.items()}
    return Point(row, data, method in OURS, accuracy, fairness)


def run(name: str, options: Namespace, store: Store) -> None:
    """Run what is not known of E9 or E10, and write its means and comparisons."""
    every: list[Point] = []
    for data in options.rank_data:
        every += points(EXPERIMENTS[name], data, options, store)
    rows = compared(every, lambda point: TEST_TO_TRAIN[point.task])
    write_table(rows, f"papers-{name}", f"{name}: means over splits", options.out)
