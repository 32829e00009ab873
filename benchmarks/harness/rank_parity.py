"""IDCA's experiments (section 7): accuracy against fairness in a range of ranks, over splits.

Linear models with cross terms (1, x, z, z x) and the paper's ramps. "ours" takes the solver that
"auto" takes; with --idca the printed method is run as well. Writes the means and 95% intervals over
the splits (the paper's figure 1), every fit, and for every data set the rates of one group against
the other's over all thresholds (figure 2) and the densities of scores (D.5).
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.harness.data import Data
from benchmarks.harness.options import Default, add_choice, add_seeds
from benchmarks.harness.penalised import Penalised
from benchmarks.harness.rank_data import RANKS, split, with_group
from benchmarks.harness.rank_figures import draw_densities, draw_frontiers, draw_rates
from benchmarks.harness.rank_tolerances import TOLERANCES
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, write_table
from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import (
    Constraint,
    GroupAUCParity,
    InterGroupAUCParity,
    IntraGroupAUCParity,
)
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.solvers import IDCA, Regularization, Solver

PAIRWISE = {
    "group AUC": GroupAUCParity,
    "inter-group": InterGroupAUCParity,
    "intra-group": IntraGroupAUCParity,
}
REGULARISATION = ("regularisation", "regularisation, solved")
METHODS = ("ours", "unconstrained", *PAIRWISE, *REGULARISATION)
ScoresOf = dict[str, tuple[np.ndarray, np.ndarray]]  # scores and groups, by model
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
) -> Iterator[tuple[Row, np.ndarray, np.ndarray]]:
    """Yield, for every fit, a row of the table, the test rows' scores and their groups.

    Fits that the store knows are not made again; with `only_known` the others are left out.
    Published results have no scores.
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
                    known = store.put(key, {"row": row, "scores": scores.tolist()})
                    print(*row.values(), flush=True)
                yield known["row"], np.array(known.get("scores", ())), groups


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


def without_splits(table: list[Row]) -> list[Row]:
    """Return the columns that tables show."""
    return [{name: one for name, one in row.items() if name != "by split"} for row in table]


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, splits and methods."""
    add_choice(parser, "--data", RANKS, quick=["law_school"], help="data sets")
    add_seeds(parser, range(5))
    add_choice(
        parser, "--methods", METHODS, quick=["ours", "unconstrained", "group AUC"], help="methods"
    )
    parser.add_argument(
        "--idca",
        action=BooleanOptionalAction,
        default=Default(False, False),
        help="run the printed IDCA as well",
    )


def label_of(row: Row, scores: np.ndarray, groups: np.ndarray, seed: int) -> ScoresOf:
    """Return the scores by the name of their model, for ours on one split; else nothing."""
    if row["seed"] != seed or row["method"] not in METHODS[:2] or not len(scores):
        return {}
    level = "" if row["method"] == "unconstrained" else f", kappa = {row['level']:g}"
    return {row["method"] + level: (scores, groups)}


def run_experiment(experiment: Experiment, options: Namespace) -> None:
    """Run the methods, write the tables and the figures."""
    rows: list[Row] = []
    for data in options.data:
        shown: ScoresOf = {}
        methods = methods_for(experiment, data, options)
        store = Store(options.out / "rank_parity")
        for row, scores, groups in measured(experiment, data, methods, options.seeds, store):
            rows.append(row)
            shown |= label_of(row, scores, groups, options.seeds[0])
        draw_scores(experiment.name, data, shown, options.out)
    table = summary(rows)
    draw_frontiers(table, experiment.symbol, options.out / f"{experiment.name}-frontiers.png")
    title = experiment.name.replace("_", " ").capitalize()
    write_table(rows, f"{experiment.name}-fits", f"{title}: every fit", options.out)
    title = f"{title}: means and 95% intervals over splits"
    write_table(without_splits(table), experiment.name, title, options.out)


def draw_scores(name: str, data: str, shown: ScoresOf, folder: Path) -> None:
    """Draw the unconstrained model and ours for the first, the middle and the last kappa.

    Parameters
    ----------
    name, data : str
        The experiment and the data set, for the names of the files.
    shown : dict of str to (ndarray, ndarray)
        Scores and groups of the test rows, by model.
    folder : Path
        Where the two figures are written.
    """
    ours = [name for name in shown if name.startswith("ours")]
    names = ["unconstrained", *ours[:1], *ours[len(ours) // 2 :: max(1, len(ours) // 2)]]
    pictured = {name: shown[name] for name in dict.fromkeys(names) if name in shown}
    if pictured:
        draw_rates(pictured, data, folder / f"{name}-{data}-rates.png")
        draw_densities(pictured, data, folder / f"{name}-{data}-densities.png")
