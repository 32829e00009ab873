"""What E9 and E10 share: data and splits of the paper, the methods compared, and the pictures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import common  # noqa: F401  (first: it puts the repository on the path)
import matplotlib
import numpy as np
import scipy.sparse as sp
from common import Row
from real_problems import encode
from scipy.stats import gaussian_kde
from scipy.stats import t as student
from sklearn.model_selection import train_test_split

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import Constraint
from fairconstrained.datasets import fetch_a9a, fetch_bank, fetch_law_school
from fairconstrained.solvers import Regularization, Solver

matplotlib.use("Agg")
from matplotlib import pyplot as plt

OUT = Path(__file__).resolve().parent / "results"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
MARKS = ("o", "s", "^", "D", "v", "P")
RANKS = {"a9a": (0.05, 0.30), "bank": (0.0, 0.25), "law school": (0.70, 1.0)}
Data = tuple[Any, np.ndarray, np.ndarray]


@cache
def _tables(name: str) -> tuple[Data, ...]:
    """Return X, labels and groups: of the training and the test rows for a9a, else of all rows."""
    if name == "a9a":
        parts = [fetch_a9a(subset=subset) for subset in ("train", "test")]
        return tuple(
            (p.data, np.asarray(p.target), np.asarray(p.sensitive_features)) for p in parts
        )
    fetch, column = {
        "bank": (lambda: fetch_bank(version="additional"), "age"),
        "law school": (fetch_law_school, "race"),
    }[name]
    bunch = fetch()
    groups = np.asarray(bunch.sensitive_features[column].astype(str))
    return ((encode(bunch.data), np.asarray(bunch.target), groups),)


def split(name: str, seed: int) -> tuple[Data, Data]:
    """Return training and test rows in the paper's shares (D.1); its validation rows are unused."""
    tables = _tables(name)
    if len(tables) == 2:
        rows = train_test_split(np.arange(len(tables[0][1])), train_size=0.9, random_state=seed)[0]
        return tuple(part[rows] for part in tables[0]), tables[1]  # type: ignore[return-value]
    train, test = {"bank": (0.6, 0.2), "law school": (0.5625, 0.25)}[name]
    X, y, groups = tables[0]
    rows, rest = train_test_split(
        np.arange(len(y)), train_size=train, random_state=seed, stratify=groups
    )
    rest = rest[: round(test * len(y))]
    return (X[rows], y[rows], groups[rows]), (X[rest], y[rest], groups[rest])


def with_group(X: Any, groups: np.ndarray) -> Any:
    """Return X with the group as a last column, 0 or 1."""
    column = (groups == np.unique(groups)[-1]).astype(float)[:, None]
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(column)]))
    return np.column_stack([X, column])


@dataclass(frozen=True)
class Method:
    """A line of the figure: a constraint for every level, and what solves it."""

    name: str
    levels: tuple[float, ...]
    constraint: Callable[[float], Constraint | None]
    solver: Callable[[float], str | Solver] = lambda level: "auto"


def fit(method: Method, level: float, train: Data) -> tuple[FairLogisticClassifier, float]:
    """Return the linear model with cross terms (1, x, z, z x), and the seconds of its fit."""
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


Measure = Callable[[np.ndarray, np.ndarray, tuple[float, float]], float]


def measured(
    name: str, methods: Iterable[Method], seeds: Iterable[int], unfairness: Measure
) -> Iterator[tuple[Row, np.ndarray, np.ndarray]]:
    """Yield, for every fit, a row of the table, the test rows' scores and their groups."""
    for seed in seeds:
        train, (X, y, groups) = split(name, seed)
        for method in methods:
            for level in method.levels:
                model, seconds = fit(method, level, train)
                scores = model.decision_function(with_group(X, groups))
                row: Row = {
                    "data": name,
                    "method": method.name,
                    "level": level,
                    "seed": seed,
                    "test accuracy": float(np.mean((scores > 0) == (y == np.max(y)))),
                    "test unfairness": unfairness(scores, groups, RANKS[name]),
                    "gap on training rows": model.decision_gap_,
                    "objective": model.objective_,
                    "violation": model.violation_,
                    "status": model.result_.status.value,
                    "solver": type(model.result_.solver).__name__,
                    "seconds": seconds,
                }
                print(*row.values(), flush=True)
                yield row, scores, groups


def interval(values: list[float]) -> float:
    """Return half the width of the 95% interval of the mean (Student's t); 0 for one value."""
    n = len(values)
    return 0.0 if n < 2 else float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5)


def summary(rows: list[Row]) -> list[Row]:
    """Return means and 95% intervals over the splits, a row for every level of every method."""
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
            }
        )
    return out


def draw_frontiers(table: list[Row], what: str, path: Path) -> None:
    """Draw accuracy against fairness, a panel for every data set, a line for every method."""
    names = list(dict.fromkeys(row["data"] for row in table))
    figure, axes = plt.subplots(1, len(names), figsize=(4.6 * len(names), 4.0), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        some = [row for row in table if row["data"] == name]
        for k, method in enumerate(dict.fromkeys(row["method"] for row in some)):
            points = sorted(
                (row["1 - unfairness"], row["accuracy"], row["+-"], row["+- "])
                for row in some
                if row["method"] == method
            )
            x, y, dx, dy = zip(*points, strict=True)
            axis.errorbar(
                x, y, yerr=dy, xerr=dx, label=method, color=COLOURS[k % 6], marker=MARKS[k % 6],
                markersize=5, linewidth=1.4, elinewidth=0.8, capsize=2,
            )  # fmt: skip
        low, high = RANKS[name]
        axis.set_title(f"{name}, ranks [{low:.0%}, {high:.0%}]")
        axis.set_xlabel(f"1 - {what} (test)")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy (test)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    columns = 2 * len(names)
    lines = -(-len(labels) // columns)
    figure.legend(handles, labels, loc="lower center", ncols=columns, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.02 + 0.06 * lines, 1, 1))
    _save(figure, path)


def draw_rates(scores: dict[str, tuple[np.ndarray, np.ndarray]], name: str, path: Path) -> None:
    """Draw the rate of one group against that of the other over all thresholds."""
    figure, axis = plt.subplots(figsize=(4.8, 4.6))
    low, high = RANKS[name]
    axis.fill_between([low, high], low, high, color="0.9", linewidth=0, zorder=0)
    for end in (low, high):
        axis.axvline(end, color="0.8", linewidth=0.8, zorder=0)
        axis.axhline(end, color="0.8", linewidth=0.8, zorder=0)
    axis.plot([0, 1], [0, 1], color="0.5", linewidth=0.8, linestyle=":", label="alike")
    styles = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), "-")
    for k, (label, (values, groups)) in enumerate(scores.items()):
        first, second = np.unique(groups)
        thresholds = np.sort(values)[::-1]
        rates = [
            1.0 - np.searchsorted(np.sort(values[groups == g]), thresholds, side="right")
            / np.sum(groups == g)
            for g in (first, second)
        ]  # fmt: skip
        axis.plot(*rates, color=COLOURS[k % 6], linestyle=styles[k % 6], label=label, linewidth=1.6)
    axis.set(xlabel=f"rate of {first}", ylabel=f"rate of {second}", xlim=(0, 1), ylim=(0, 1))
    axis.set_title(f"{name}: rates above every threshold (test)", fontsize=10)
    axis.set_aspect("equal")
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    _save(figure, path)


def draw_densities(scores: dict[str, tuple[np.ndarray, np.ndarray]], name: str, path: Path) -> None:
    """Draw the densities of the groups' scores; those of the ranks in the range are filled."""
    figure, axes = plt.subplots(
        1, len(scores), figsize=(3.4 * len(scores), 3.0), sharey=True, squeeze=False
    )
    low, high = RANKS[name]
    for axis, (label, (values, groups)) in zip(axes[0], scores.items(), strict=True):
        grid = np.linspace(*np.quantile(values, [0.002, 0.998]), 300)
        for k, group in enumerate(np.unique(groups)):
            own = values[groups == group]
            density = gaussian_kde(own)(grid)
            axis.plot(grid, density, "-" if k else "--", color=COLOURS[k], label=str(group))
            ends = np.quantile(own, [1.0 - high, 1.0 - low])
            inside = (grid >= ends[0]) & (grid <= ends[1])
            axis.fill_between(
                grid, density, where=inside, color=COLOURS[k], alpha=0.25, linewidth=0
            )
        axis.set_title(label, fontsize=10)
        axis.set_xlabel("score")
    axes[0][0].set_ylabel(f"density ({name}, test)")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def regularized(strength: float) -> Solver:
    """Return the paper's regularisation: the objective plus `strength` times the violation."""
    return Regularization(strength, max_iter=1000, check_every=1000)
