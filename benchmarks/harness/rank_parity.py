"""E9 and E10, IDCA's experiments (section 7): accuracy against fairness in a range of ranks.

Linear models with cross terms (1, x, z, z x) and the paper's ramps. "ours" takes the solver that
"auto" takes. Every baseline is compared with ours at its fairness, over the same splits.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.harness.data import Data
from benchmarks.harness.dominance import Point, Splits, compare_at
from benchmarks.harness.penalised import Penalised
from benchmarks.harness.rank_data import RANKS, TEST_TO_TRAIN, split, with_group
from benchmarks.harness.rank_tolerances import TOLERANCES
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import (
    Constraint,
    GroupAUCParity,
    InterGroupAUCParity,
    IntraGroupAUCParity,
    PartialDemographicParity,
    WeakPartialDemographicParity,
)
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.metrics import (
    partial_demographic_parity_difference,
    weak_partial_demographic_parity_difference,
)
from fairconstrained.solvers import IDCA, Regularization, Solver

PAIRWISE = {
    "group AUC": GroupAUCParity,
    "inter-group": InterGroupAUCParity,
    "intra-group": IntraGroupAUCParity,
}
REGULARISATION = ("regularisation", "regularisation, solved")
OURS = ("ours", "unconstrained")
METHODS = (*OURS, *PAIRWISE, *REGULARISATION)
PAPER_EPSILON = 5e-3  # of the paper's grid the value with which the objective falls fastest
QUICK_KAPPAS = 2  # how many of the paper's a quick run takes


@dataclass(frozen=True)
class Experiment:
    """A notion of fairness, how it is measured on test rows, and the kappas of ours.

    Our frontier has further kappas, where baselines are fairer or less fair. In the paper's
    regularisation `weight` times lambda is the factor of the violation with kappa = 0: the
    violation is divided by beta - alpha, as the penalties of (78) and (83) are.
    """

    name: str
    symbol: str
    notion: type
    metric: Callable[..., float]
    kappas: Mapping[str, tuple[float, ...]]
    further_kappas: Mapping[str, tuple[float, ...]]
    weight: float

    def unfairness(self, data: str, scores: np.ndarray, groups: np.ndarray) -> float:
        """Return the measure of scores in the data set's range of ranks."""
        labels = np.zeros(len(scores))  # it does not use them
        return float(self.metric(labels, scores, sensitive_features=groups, ranks=RANKS[data]))


EXPERIMENTS = {
    "E9": Experiment(
        name="partial_parity",
        symbol="DP^I",
        notion=PartialDemographicParity,
        metric=partial_demographic_parity_difference,
        kappas={
            "a9a": (0.01, 0.05, 0.1, 0.2, 0.28),
            "bank": (0.01, 0.08, 0.22, 0.3),
            "law_school": (0.005, 0.08, 0.1, 0.15, 0.2),
        },
        further_kappas={
            "a9a": (0.0, 0.4, 0.6),
            "bank": (0.0, 0.5, 0.7),
            "law_school": (0.0, 0.4, 0.6, 0.8),
        },
        weight=2.0,
    ),
    "E10": Experiment(
        name="weak_partial_parity",
        symbol="WDP^I",
        notion=WeakPartialDemographicParity,
        metric=weak_partial_demographic_parity_difference,
        kappas={
            "a9a": (0.005, 0.03, 0.05, 0.1, 0.15),
            "bank": (0.01, 0.03, 0.05, 0.07, 0.1),
            "law_school": (0.005, 0.04, 0.06, 0.1, 0.15),
        },
        further_kappas={
            "a9a": (0.0, 0.3, 0.5),
            "bank": (0.0, 0.2, 0.4),
            "law_school": (0.0, 0.3, 0.45, 0.6),
        },
        weight=1.0,
    ),
}


@dataclass(frozen=True)
class Method:
    """A line of the figure: a constraint for every level, and what solves it."""

    name: str
    levels: tuple[float, ...]
    constraint: Callable[[float], Constraint | None]
    solver: Callable[[float], str | Solver] = lambda level: "auto"


def regularized(weight: float, strength: float) -> Solver:
    """Return subgradient steps on the paper's regularisation, (78) or (83)."""
    return Regularization(weight * strength, max_iter=1000, check_every=1000)


def solved(weight: float, strength: float) -> Solver:
    """Return what solves the same problem to a tolerance."""
    return Penalised(weight * strength)


def methods_for(experiment: Experiment, data: str, options: Namespace) -> list[Method]:
    """Return the methods in the figure."""

    def levels(all_of_them: tuple[float, ...]) -> tuple[float, ...]:
        return all_of_them[-QUICK_KAPPAS:] if options.quick else all_of_them

    def tolerances(baseline: str) -> tuple[float, ...]:
        return levels(TOLERANCES[baseline][experiment.name][data])

    kappas = experiment.kappas[data]

    def bounded(kappa: float) -> Constraint:
        return experiment.notion(kappa, surrogate=Ramp(), ranks=RANKS[data])

    more = () if options.quick else experiment.further_kappas[data]
    methods = [
        Method("ours", kappas + more, bounded),
        Method("unconstrained", (1.0,), lambda level: None),
    ]
    methods += [Method(name, tolerances(name), kind) for name, kind in PAIRWISE.items()]
    strengths = tolerances("regularisation")
    for name, solver_of in zip(REGULARISATION, (regularized, solved), strict=True):
        solver = partial(solver_of, experiment.weight)
        methods.append(Method(name, strengths, lambda _: bounded(0.0), solver))
    methods = [one for one in methods if one.name in options.methods]
    if options.idca:
        printed = IDCA.paper(epsilon=PAPER_EPSILON)
        methods.append(Method("IDCA, paper()", kappas, bounded, lambda level: printed))
    return methods


def fit(method: Method, level: float, train: Data) -> tuple[FairLogisticClassifier, float]:
    """Return the model with cross terms, and the seconds of its fit."""
    X, y, groups = train
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
    return model, time.perf_counter() - clock


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
        train, (X, y, groups) = split(name, seed)
        for method in methods:
            for level in method.levels:
                key = (experiment.name, name, method.name, repr(level), str(seed))
                known = store.get(key, any_version=any_version)
                if known is None and only_known:
                    continue
                if known is None:
                    model, seconds = fit(method, level, train)
                    scores = model.decision_function(with_group(X, groups))
                    row = _row(experiment, name, model, scores, y, groups)
                    row = {"method": method.name, "level": level, "seed": seed, **row}
                    row = {"data": name, **row, "seconds": seconds}
                    known = store.put(key, {"row": row})
                    print(*row.values(), flush=True)
                yield known["row"]


def _row(
    experiment: Experiment,
    name: str,
    model: FairLogisticClassifier,
    scores: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
) -> Row:
    """Return the measures of a fit."""
    return {
        "test accuracy": float(np.mean((scores > 0) == (y == np.max(y)))),
        "test unfairness": experiment.unfairness(name, scores, groups),
        "gap on training rows": float(model.decision_gap_),
        "objective": float(model.objective_),
        "violation": float(model.violation_),
        "status": model.result_.status.value,
        "solver": type(model.result_.solver).__name__,
    }


def interval(values: list[float]) -> float:
    """Return half the width of the 95% interval of the mean (Student's t); nan for one value."""
    n = len(values)
    return np.nan if n < 2 else float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5)


def summary(rows: list[Row]) -> list[Row]:
    """Return means and 95% intervals over the splits, a row for every level of every method.

    The column "by split" has fairness and accuracy of every split.
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["data"], row["method"], row["level"]), []).append(row)
    out = []
    for (data, method, level), some in found.items():
        accuracy, unfairness, seconds = (
            [row[key] for row in some] for key in ("test accuracy", "test unfairness", "seconds")
        )
        out.append(
            {
                "data": data,
                "method": method,
                "level": level,
                "1 - unfairness": 1.0 - mean(unfairness),
                "+-": interval(unfairness),
                "accuracy": mean(accuracy),
                "+- ": interval(accuracy),
                "seconds": mean(seconds),
                "splits": len(some),
                "by split": {
                    row["seed"]: {
                        "1 - unfairness": 1.0 - row["test unfairness"],
                        "accuracy": row["test accuracy"],
                    }
                    for row in some
                },
            }
        )
    return out


def dominance(table: list[Row]) -> list[Row]:
    """Return the accuracy of ours less that of a method, at the fairness of the method."""
    out = []
    for row in table:
        if row["method"] in OURS:
            continue
        same = [one for one in table if one["data"] == row["data"] and one["method"] in OURS]
        if not same:
            continue
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
