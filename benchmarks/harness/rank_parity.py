"""E9 and E10, IDCA's experiments (section 7): accuracy against fairness in a range of ranks.

Linear models with cross terms (1, x, z, z x) and the paper's ramps. "ours" takes the solver that
"auto" takes. Every baseline is compared with ours at its fairness, over the same splits.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import t as student
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, load, parts
from benchmarks.harness.dominance import Point, Splits, compare_at
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row
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
REGULARISATION = ("regularisation", "regularisation, solved")
OURS = ("ours", "unconstrained")
METHODS = (*OURS, *PAIRWISE, *REGULARISATION)
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


def _levels(table: dict[str, tuple[tuple[float, ...], ...]]) -> Levels:
    """Return levels by method and data set, from rows in the order of `RANKS`."""
    return {name: dict(zip(RANKS, levels, strict=True)) for name, levels in table.items()}


EXPERIMENTS = {
    "E9": Experiment(
        "partial_parity", public.PartialDemographicParity,
        metrics.partial_demographic_parity_difference, 2.0,
        _levels({
            "ours": ((0.01, 0.05, 0.1, 0.2, 0.28), (0.01, 0.08, 0.22, 0.3),
                     (0.005, 0.08, 0.1, 0.15, 0.2)),
            "further": ((0.0, 0.4, 0.6), (0.0, 0.5, 0.7), (0.0, 0.4, 0.6, 0.8)),
            "group AUC": ((0.7, 1, 2, 3.5), (0.1, 0.3, 0.56, 0.7, 1), (0.5, 0.75, 1.15, 1.8, 2.7)),
            "inter-group": ((1.5, 3, 3.5, 6), (1.5, 1.8, 2, 3), (0.4, 1.6, 2.4, 4)),
            "intra-group": ((3, 5, 8), (2, 3, 4), (3, 5, 10)),
            "regularisation": ((0.2, 0.3, 0.37, 1), (0.4, 0.405, 0.41, 1, 1.5),
                               (0.39, 0.4, 0.5, 0.8, 1.5)),
        }),
    ),
    "E10": Experiment(
        "weak_partial_parity", public.WeakPartialDemographicParity,
        metrics.weak_partial_demographic_parity_difference, 1.0,
        _levels({
            "ours": ((0.005, 0.03, 0.05, 0.1, 0.15), (0.01, 0.03, 0.05, 0.07, 0.1),
                     (0.005, 0.04, 0.06, 0.1, 0.15)),
            "further": ((0.0, 0.3, 0.5), (0.0, 0.2, 0.4), (0.0, 0.3, 0.45, 0.6)),
            "group AUC": ((0.3, 0.4, 0.5, 0.7, 1), (0.06, 0.5, 2.35, 2.62, 3.28, 4),
                          (1, 3, 4, 5, 6, 10)),
            "inter-group": ((0.9, 1.2, 1.5, 2, 2.7), (0.3, 1, 5, 5.4, 6), (2, 6.5, 8, 9, 10, 15)),
            "intra-group": ((0.7, 1, 1.3, 1.7, 2.2), (0.1, 0.3, 0.42, 0.5, 1, 2.5),
                            (0.1, 0.8, 2, 3.5, 10)),
            "regularisation": ((0.13, 0.17, 0.2, 0.23, 1), (0.005, 0.015, 0.018, 0.1, 2),
                               (0.001, 0.01, 1)),
        }),
    ),
}  # fmt: skip


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


def regularized(weight: float, strength: float) -> Solver:
    """Return subgradient steps on the paper's regularisation, (78) or (83)."""
    return Regularization(weight * strength, max_iter=1000, check_every=1000)


def solved(weight: float, strength: float) -> Solver:
    """Return what solves the same problem to a tolerance."""
    return Penalised(weight * strength)


@dataclass(frozen=True)
class Method:
    """A line of the figure: a constraint for every level, and what solves it."""

    name: str
    levels: tuple[float, ...]
    constraint: Callable[[float], public.Constraint | None]
    solver: Callable[[float], str | Solver] = lambda level: "auto"


def methods_for(experiment: Experiment, data: str, options: Namespace) -> list[Method]:
    """Return the methods in the figure."""
    levels = {name: by_data[data] for name, by_data in experiment.levels.items()}
    kappas = levels["ours"]
    if options.quick:
        levels = {name: one[-QUICK_KAPPAS:] for name, one in levels.items()}
        levels |= {"ours": kappas, "further": ()}

    def bounded(kappa: float) -> public.Constraint:
        return experiment.notion(kappa, surrogate=Ramp(), ranks=RANKS[data])

    methods = [
        Method("ours", kappas + levels["further"], bounded),
        Method("unconstrained", (1.0,), lambda level: None),
    ]
    methods += [Method(name, levels[name], kind) for name, kind in PAIRWISE.items()]
    for name, solver_of in zip(REGULARISATION, (regularized, solved), strict=True):
        solver = partial(solver_of, experiment.weight)
        methods.append(Method(name, levels["regularisation"], lambda _: bounded(0.0), solver))
    methods = [one for one in methods if one.name in options.methods]
    if options.idca:
        printed = IDCA.paper(epsilon=PAPER_EPSILON)
        methods.append(Method("IDCA, paper()", kappas, bounded, lambda level: printed))
    return methods


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
        "test accuracy": float(np.mean((scores > 0) == (y_test == np.max(y_test)))),
        "test unfairness": experiment.unfairness(name, scores, groups_test),
        "gap on training rows": float(model.decision_gap_),
        "objective": float(model.objective_),
        "violation": float(model.violation_),
        "status": model.result_.status.value,
        "solver": type(model.result_.solver).__name__,
        "seconds": seconds,
    }


def measured(
    experiment: Experiment,
    name: str,
    methods: Iterable[Method],
    seeds: Iterable[int],
    store: Store,
    *,
    any_version: bool = False,
    only_known: bool = False,
) -> Iterator[Row]:
    """Yield a row for every fit; those that the store knows are not made again.

    With `only_known` the others are left out.
    """
    for seed in seeds:
        rows = split(name, seed)
        for method in methods:
            for level in method.levels:
                key = (experiment.name, name, method.name, repr(level), str(seed))
                known = store.get(key, any_version=any_version)
                if known is None and not only_known:
                    row = {"data": name, "method": method.name, "level": level, "seed": seed}
                    row |= fitted(experiment, name, method, level, rows)
                    known = store.put(key, {"row": row})
                    print(*row.values(), flush=True)
                if known is not None:
                    yield known["row"]


def interval(values: list[float]) -> float:
    """Return half the width of the 95% interval of the mean (Student's t); nan for one value."""
    n = len(values)
    return np.nan if n < 2 else float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5)


def summary(rows: list[Row]) -> list[Row]:
    """Return means and 95% intervals over the splits, a row for every level of every method.

    The column "by split" has fairness and accuracy of every split.
    """
    by_level: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        by_level.setdefault((row["data"], row["method"], row["level"]), []).append(row)
    out = []
    for (data, method, level), some in by_level.items():
        accuracy = [row["test accuracy"] for row in some]
        fairness = [1.0 - row["test unfairness"] for row in some]
        head = {"data": data, "method": method, "level": level, "1 - unfairness": mean(fairness)}
        out.append(
            {
                **head,
                "+-": interval(fairness),
                "accuracy": mean(accuracy),
                "+- ": interval(accuracy),
                "seconds": mean(row["seconds"] for row in some),
                "splits": len(some),
                "by split": {
                    row["seed"]: {"1 - unfairness": fair, "accuracy": right}
                    for row, fair, right in zip(some, fairness, accuracy, strict=True)
                },
            }
        )
    return out


def dominance(table: list[Row]) -> list[Row]:
    """Return the accuracy of ours less that of a method, at the fairness of the method."""
    out = []
    for row in table:
        same = [one for one in table if one["data"] == row["data"] and one["method"] in OURS]
        if row["method"] not in OURS and same:
            compared = compare_at(_point(row), [*map(_point, same)], TEST_TO_TRAIN[row["data"]])
            shown = {name: value for name, value in row.items() if name != "by split"}
            shown |= {"difference": compared.gain, "+- of it": compared.noise}
            out.append({**shown, "ours is": compared.outcome})
    return out


def _point(row: Row) -> Point:
    runs = row["by split"]

    def fairness(splits: Splits) -> float:
        return mean(runs[k]["1 - unfairness"] for k in splits)

    return Point({k: one["accuracy"] for k, one in runs.items()}, fairness)
