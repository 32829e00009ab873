"""E9 and E10, IDCA's experiments (section 7): accuracy against fairness in a range of ranks.

Linear models with cross terms (1, x, z, z x) and the paper's ramps. "ours" takes the solver that
"auto" takes. Every baseline is compared with ours at its fairness, over the same splits.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, load, parts
from benchmarks.harness.frontier import Point, compared
from benchmarks.harness.results import Row, Store, constants, ended, stamp, write_table
from fairconstrained import FairLogisticClassifier, constraints, metrics
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
    "group AUC": constraints.GroupAUCParity,
    "inter-group": constraints.InterGroupAUCParity,
    "intra-group": constraints.IntraGroupAUCParity,
}
OURS = ("ours", "unconstrained")
PAPER_EPSILON = 5e-3  # of the paper's grid the value with which the objective falls fastest
QUICK_KAPPAS = 2  # how many of the paper's a quick run takes
# The tolerances of all methods, by experiment, method and data. Our frontier has further kappas,
# where baselines are fairer or less fair; those of baselines are of appendices D.3.2 and D.4.
LEVELS = constants("levels", "experiment", "method", "data").levels.map(
    lambda text: tuple(map(float, text.split()))
)


@dataclass(frozen=True)
class Experiment:
    """A notion of fairness of scores in a range of ranks.

    In the paper's regularisation `weight` times lambda is the factor of the violation with
    kappa = 0: the violation is divided by beta - alpha, as the penalties of (78) and (83) are.
    """

    name: str
    weight: float

    @property
    def notion(self) -> type:
        """The constraint."""
        return constraints.CONSTRAINTS[f"{self.name}_dp"]

    def unfairness(self, scores: np.ndarray, groups: np.ndarray, data: str) -> float:
        """Return the measure of scores in the data set's range of ranks."""
        metric = getattr(metrics, f"{self.name}_demographic_parity_difference")
        labels = np.zeros(len(scores))  # it does not use them
        return float(metric(labels, scores, sensitive_features=groups, ranks=RANKS[data]))


EXPERIMENTS = {"E9": Experiment("partial", 2.0), "E10": Experiment("weak_partial", 1.0)}


def split(name: str, seed: int) -> tuple[Data, Data]:
    """Return training and test rows in the paper's shares; its validation rows are unused."""
    if name == "a9a":
        train, test = parts("a9a")
        rows = train_test_split(np.arange(len(train[1])), train_size=0.9, random_state=seed)[0]
        return _take(train, rows), test
    data = load(name)
    train_size, test_size = _SHARES[name]
    every, shares = np.arange(len(data[1])), {"train_size": train_size, "stratify": data[2]}
    rows, rest = train_test_split(every, random_state=seed, **shares)
    return _take(data, rows), _take(data, rest[: round(test_size * len(every))])


def _take(data: Data, rows: np.ndarray) -> Data:
    return tuple(part[rows] for part in data)  # type: ignore[return-value]


def with_group(X, groups: np.ndarray):
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

    seeks_feasibility: ClassVar[bool] = False

    strength: float
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the minimiser: the violation is a last variable t, which costs its strength."""
        at, n = start.at(problem), problem.n_variables
        lifted = problem.epigraph()  # its constraints are g_j(w) <= t
        objective = problem.objective.widened(n, self.strength)
        rules = (*lifted.constraints, CompositeFunction().widened(n, -1.0))
        lifted = replace(lifted, objective=objective, constraints=rules)
        solver = default_solver(lifted).with_options(max_iter=self.max_iter)
        first = np.append(at.w, max(at.violation, 0.0))
        answer, _ = solver.run(lifted, replace(start, w=first, multipliers=None, state=None))
        yield Iterate(problem.at(answer.w[:-1]), None, 1, status=answer.status)


@dataclass(frozen=True)
class Method:
    """A line of the figure: a constraint for every level, and what solves it."""

    levels: tuple[float, ...]
    constraint: Callable[[float], constraints.Constraint | None]
    solver: Callable[[float], str | Solver] = lambda level: "auto"


def methods_for(name: str, data: str, *, quick: bool) -> dict[str, Method]:
    """Return the methods in the figure of E9 or E10."""
    experiment = EXPERIMENTS[name]
    levels = LEVELS[name].xs(data, level="data").to_dict()
    kappas = levels["ours"]
    if quick:
        levels = {method: some[-QUICK_KAPPAS:] for method, some in levels.items()}
        levels |= {"ours": kappas, "further": ()}

    def bounded(kappa: float) -> constraints.Constraint:
        return experiment.notion(kappa, surrogate=Ramp(), ranks=RANKS[data])

    steps = {"max_iter": 1000, "check_every": 1000}
    regularised = partial(Method, levels["regularisation"], lambda level: bounded(0.0))
    methods = {
        "ours": Method(kappas + levels["further"], bounded),
        "unconstrained": Method((1.0,), lambda level: None),
        **{method: Method(levels[method], kind) for method, kind in PAIRWISE.items()},
        "regularisation": regularised(lambda s: Regularization(experiment.weight * s, **steps)),
        "regularisation, solved": regularised(lambda s: Penalised(experiment.weight * s)),
    }
    if not quick:
        printed = IDCA.paper(epsilon=PAPER_EPSILON)
        methods["IDCA, paper()"] = Method(kappas, bounded, lambda level: printed)
    return methods


def fitted(experiment: Experiment, name: str, method: Method, level: float, rows) -> Row:
    """Return the measures of a model with cross terms on test rows, and the seconds of its fit."""
    (X, y, groups), (X_test, y_test, groups_test) = rows
    crossed = {"sensitive_columns": [-1], "group_interactions": True}
    constraint, solver = method.constraint(level), method.solver(level)
    model = FairLogisticClassifier(constraint, solver=solver, **crossed)
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the run ended with is in the table
        model.fit(with_group(X, groups), y)
    seconds = time.perf_counter() - clock
    scores = model.decision_function(with_group(X_test, groups_test))
    accuracy = float(np.mean((scores > 0) == (y_test == np.max(y_test))))
    row = {"accuracy": accuracy, "unfairness": experiment.unfairness(scores, groups_test, name)}
    return {**row, **ended(model.result_), "seconds": seconds}


def points(name: str, data: str, options, store: Store) -> Iterator[Point]:
    """Yield a point for every level of every method; fits that are known are not made again."""
    experiment, rows_of = EXPERIMENTS[name], {seed: split(data, seed) for seed in options.seeds}
    for label, method in methods_for(name, data, quick=options.quick).items():
        for level in method.levels:
            runs = []
            for seed, rows in rows_of.items():
                key = (experiment.name, data, label, repr(level), str(seed))
                run = partial(fitted, experiment, data, method, level, rows)
                runs.append(store.of(key, run))
            yield point(data, label, level, runs)


def point(data: str, method: str, level: float, runs: list[Row]) -> Point:
    """Return a method with a level, from its figures on the splits."""
    frame = pd.DataFrame(runs)
    row = {"data": data, "method": method, "level": level, "seconds": frame.seconds.mean()}
    fairness = 1.0 - frame.unfairness.to_numpy()
    return Point(row | stamp(runs[-1]), method in OURS, frame.accuracy.to_numpy(), fairness)


def run(name: str, options, store: Store) -> None:
    """Run what is not known of E9 or E10, and write its means and comparisons."""
    rows: list[Row] = []
    for data in options.rank_data:
        rows += compared(list(points(name, data, options, store)), TEST_TO_TRAIN[data])
    write_table(rows, f"papers-{name}", f"{name}: means over splits", options.out)
