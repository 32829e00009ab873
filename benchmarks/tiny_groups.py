"""Groups of few rows: what a bound on predictions of training rows is worth on new rows.

Rates are pooled: the counts of the test parts of all splits are added for every group and label,
and the gap is that of the pooled rates. Of single splits the gap of a tiny group is mostly noise.
Training parts are small, and the test rows are all others, so that few of them are in two parts.
The generated rows (`credit`) are drawn anew for every split.

- unconstrained, scores: the model without constraints, and with the bound on scores.
- search: the search on predictions with the bound on the training rows only.
- margin: the same with tolerances that are smaller by half a standard deviation of the gap on new
  rows, at most nine tenths of the tolerance.
- surrogate: the search in which the violation of the bound on scores, of rates of few rows, is
  multiplied by a weight and subtracted from the accuracy.
- soft labels: enforce="decision". The excess of the estimate from soft labels over the bound is
  multiplied by a weight and subtracted from the accuracy. A weight that is not the default is in
  the name.
- reductions: fairlearn's ExponentiatedGradient, whose predictions are random.

The rates of the training rows can be shrunk towards those of all rows as well, but that changes
nothing: where the bound holds for the rates themselves, it holds for the shrunk ones.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.decisions import accuracy
from benchmarks.harness import fairlearn_peers
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, as_markdown, environment, write_table
from benchmarks.harness.tiny_data import DATA, Split, split_of
from fairconstrained import FairLogisticClassifier
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.search import DecisionTask, search_decisions
from fairconstrained.decisions.soft_labels import effective_rows
from fairconstrained.estimators.fit import Fit
from fairconstrained.functions.base import ScalarFunction
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.solvers import Result
from fairconstrained.terms.cell_means import CellMeans

EVENTS = {  # which labels the rates of a constraint are of
    "demographic_parity": ((0, 1),),
    "equal_opportunity": ((1,),),
    "equalized_odds": ((0,), (1,)),
}
FIGURES = "## Figures"
PEER, PEER_DATA = "reductions", ("credit", "compas")


class _Kept(Sigmoid):
    """A surrogate that measures predictions as well: the bound on scores stays."""

    def zero_one(self) -> ScalarFunction:
        return self


def _task(fit: Fit, first: Result, budget: SearchBudget) -> DecisionTask:
    return fit.decision_task(first, budget)


def _with_margin(fit: Fit, first: Result) -> DecisionTask:
    """Return the search with tolerances that are smaller where rates are of few rows."""
    task = _task(fit, first, SearchBudget(few_rows=0.0))
    shifts = []
    for part in task.problem.constraints:
        term = part.term
        assert isinstance(term, CellMeans) and part.model is not None
        n = effective_rows(term)
        scores, _ = part.model.forward(first.w[: part.model.n_parameters])
        rates = (term.zero_one().forward(scores)[0] * n + 1.0) / (n + 2.0)
        noise = np.sqrt(abs(term.combination) @ (rates * (1.0 - rates) / n))
        shifts.append(np.minimum(0.5 * noise, 0.9 * term.offset))
    return replace(task, problem=task.problem.shifted(np.concatenate(shifts)))


def _with_surrogate(fit: Fit, first: Result) -> DecisionTask:
    """Return the search that subtracts the weighted violation of the bound on scores."""
    task, few = _task(fit, first, SearchBudget(few_rows=0.0)), SearchBudget().few_rows
    kept = tuple(_surrogate(part, few) for part in task.problem.constraints)
    return replace(task, expected=kept)


def _surrogate(part: CompositeFunction, few_rows: float) -> CompositeFunction:
    term = part.term
    assert isinstance(term, CellMeans)
    few = np.flatnonzero(effective_rows(term) < few_rows)
    outputs = np.flatnonzero(abs(term.combination[:, few]).sum(axis=1))
    return replace(
        part,
        term=replace(
            term,
            function=_Kept(),
            combination=term.combination[outputs],
            offset=term.offset[outputs],
            constant=np.broadcast_to(term.constant, term.offset.shape)[outputs],
            names=[term.names[k] for k in outputs],
        ),
    )


PRICES = (0.1, 0.5)
SEARCHES: dict[str, Callable[[Fit, Result], DecisionTask]] = {
    "search": partial(_task, budget=SearchBudget(few_rows=0.0)),
    "margin": _with_margin,
    "surrogate": _with_surrogate,
    "soft labels": partial(_task, budget=SearchBudget()),
    **{f"soft labels, {p:g}": partial(_task, budget=SearchBudget(price=p)) for p in PRICES},
}
METHODS = ("unconstrained", "scores", *SEARCHES)


def counts(split: Split, chance: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Return the rows and the expected positive predictions of every group and label."""
    _, _, y, y_test, groups, groups_test = split
    names = np.unique(groups)
    return {
        "train": _cells(names, groups, y, chance),
        "test": _cells(names, groups_test, y_test, test),
        "accuracy": accuracy(test, y_test),
    }


def _cells(
    names: np.ndarray, groups: np.ndarray, y: np.ndarray, chance: np.ndarray
) -> list[list[list[float]]]:
    """Return the rows and the expected positive predictions, (n_groups, 2, 2)."""
    cells = [[(groups == name) & (y == label) for label in (0, 1)] for name in names]
    return [[[int(cell.sum()), float(chance[cell].sum())] for cell in one] for one in cells]


def ours(split: Split, constraint: str, kappa: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what every method of ours finds; they have the fit on scores in common."""
    X, X_test, y, _, groups, _ = split
    fit = FairLogisticClassifier(constraint, kappa).bind(X, y, sensitive_features=groups)
    start = time.process_time()
    first = fit.solve()
    seconds = time.process_time() - start
    free = fit.unconstrained.result

    for name in METHODS:
        start, w = time.process_time(), first.w if name == "scores" else free.w
        if name in SEARCHES:
            w = search_decisions(SEARCHES[name](fit, first)).w
        found = fit.fitted_attributes(w)
        chance, test = (
            (rows @ found["coef_"].ravel() + found["intercept_"] > 0.0).astype(float)
            for rows in (X, X_test)
        )
        spent = (time.process_time() - start) / seconds
        yield name, {**counts(split, chance, test), "fits": spent}


def peer(split: Split, constraint: str, kappa: float) -> dict[str, Any]:
    """Return what fairlearn's reductions find."""
    X, X_test, y, _, groups, _ = split
    model = fairlearn_peers.reduction(LogisticRegression(max_iter=1000), constraint, kappa)
    model.fit(X, y, sensitive_features=groups)
    chance, test = (fairlearn_peers.chance(model, rows) for rows in (X, X_test))
    return {**counts(split, chance, test), "fits": np.nan}


def gap(cells: np.ndarray, constraint: str) -> float:
    """Return the largest gap of a constraint, from counts of shape (n_groups, 2, 2)."""
    gaps = [0.0]
    for event in EVENTS[constraint]:
        rows, positive = cells[:, list(event)].sum(axis=1).T
        gaps.append(float(np.ptp(positive[rows > 0] / rows[rows > 0])))
    return max(gaps)


def summary(found: list[dict[str, Any]], constraint: str, kappa: float) -> Row:
    """Return the figures of a method over the splits."""
    test = np.array([one["test"] for one in found])
    train = [gap(np.array(one["train"]), constraint) for one in found]
    accuracies = [one["accuracy"] for one in found]
    return {
        "accuracy": float(np.mean(accuracies)),
        "+-": 1.96 * float(np.std(accuracies)) / np.sqrt(len(found)),
        "pooled test gap": gap(test.sum(axis=0), constraint),
        "mean test gap": float(np.mean([gap(one, constraint) for one in test])),
        "mean training gap": float(np.mean(train)),
        "met on training rows": f"{np.mean(np.array(train) <= kappa + 1e-9):.0%}",
        "seconds / fit": float(np.mean([one["fits"] for one in found])),
    }


def measured(options: Namespace, name: str, constraint: str, kappa: float) -> dict[str, list]:
    """Return what every method finds in every split; what the store has is not computed again."""
    store = Store(options.out / "tiny_groups")
    names = [*METHODS, *([PEER] if options.peers and name in PEER_DATA else [])]
    found: dict[str, list] = {method: [] for method in names}
    for seed in range(options.splits):
        keys = {method: (method, name, constraint, str(kappa), str(seed)) for method in names}
        known = {
            method: store.get(key, any_version=options.any_version or method == PEER)
            for method, key in keys.items()
        }
        if any(known[method] is None for method in METHODS):
            split = split_of(name, seed)
            for method, one in ours(split, constraint, kappa):
                known[method] = store.put(keys[method], one)
        if PEER in names and known[PEER] is None:
            known[PEER] = store.put(keys[PEER], peer(split_of(name, seed), constraint, kappa))
        for method, one in known.items():
            found[method].append(one)
    return found


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, constraints, tolerances, splits, and whether peers are run."""
    add_choice(parser, "--data", DATA, quick=["credit"], help="data sets")
    add_choice(parser, "--constraints", EVENTS, quick=["equalized_odds"], help="constraints")
    parser.add_argument(
        "--kappas", type=float, nargs="+", default=Default([0.02, 0.05], [0.02]), help="tolerances"
    )
    parser.add_argument("--splits", type=int, default=Default(10, 3), help="splits")
    parser.add_argument(
        "--peers",
        action=BooleanOptionalAction,
        default=Default(True, False),
        help=f"run fairlearn as well, on {' and '.join(PEER_DATA)}",
    )
    parser.add_argument(
        "--any-version", action="store_true", help="accept stored results of older code"
    )
    parser.add_argument(
        "--docs", type=Path, default=None, help="folder of the page that gets the table"
    )


def run(options: Namespace) -> None:
    """Write tiny_groups.md and tiny_groups.csv."""
    warnings.simplefilter("ignore")  # what the training rows show is in the table
    rows: list[Row] = []
    with threadpool_limits(1):
        for name in options.data:
            for constraint in options.constraints:
                for kappa in options.kappas:
                    found = measured(options, name, constraint, kappa)
                    for method, runs in found.items():
                        about = {"data": name, "constraint": constraint, "kappa": kappa}
                        row = {**about, "method": method, **summary(runs, constraint, kappa)}
                        rows.append(row)
                        print(*row.values(), flush=True)
    write_table(rows, "tiny_groups", "Groups of few rows", options.out)
    if options.docs is not None:
        page = options.docs / "tiny_groups.md"
        head = page.read_text().split(FIGURES)[0]
        page.write_text(f"{head}{FIGURES}\n\n{environment()}.\n\n{as_markdown(rows)}")
