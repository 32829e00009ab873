"""Bounds on decisions: what enforce="decision" costs, on training rows and on held-out rows.

Splits are 70:30, stratified by group and label; figures are averages over them. *cost of accuracy*
is on training rows, against the model without constraints; *passes / fit* and *seconds / fit* are
in units of a fit on scores. Five races of Adult are the hardest case for small cells. `peers`
compares the same models with other packages.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.harness.data import DATA, Data, encode
from benchmarks.harness.data import load as load_binary
from benchmarks.harness.frontier import counts, pooled_gap
from benchmarks.harness.options import Default, add_choice, add_numbers
from benchmarks.harness.tables import Row, at_most, write_table
from fairconstrained import ConstantDecisionWarning, FairLogisticClassifier
from fairconstrained.datasets import fetch_adult

CONSTRAINTS = ("demographic_parity", "equalized_odds")
FIVE_RACES = "adult_five_races"


def load(name: str) -> Data:
    """Return features, labels 0 and 1, and groups."""
    if name != FIVE_RACES:
        return load_binary(name)
    data = fetch_adult()
    y, races = np.asarray(data.target), data.sensitive_features["race"]
    return encode(data.data), (y == y.max()).astype(int), np.asarray(races.astype(str))


def measured(data: Data, constraint: str, kappa: float, seed: int) -> Row:
    """Return the figures of a fit on a split."""
    X, y, groups = data
    cells = np.char.add(groups, y.astype(str))
    parts = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=cells)
    train, test = parts
    seconds, models = {}, {}
    for enforce in ("score", "decision"):
        clock = time.process_time()
        clf = FairLogisticClassifier(constraint, kappa, enforce=enforce)
        models[enforce] = clf.fit(X[train], y[train], sensitive_features=groups[train])
        seconds[enforce] = time.process_time() - clock
    clf = models["decision"]
    gaps = [
        pooled_gap([counts(y[rows], groups[rows], clf.predict(X[rows]), constraint)])
        for rows in parts
    ]
    search = clf.decision_search_
    return {
        "train gap": gaps[0],
        "met": float(gaps[0] <= kappa + 1e-12),
        "test gap": gaps[1],
        "train accuracy": search.accuracy,
        "test accuracy": float(clf.score(X[test], y[test])),
        "cost of accuracy": search.accuracy_cost,
        "constant": float(search.constant),
        "passes / fit": search.data_passes / search.data_passes_on_scores,
        "seconds / fit": seconds["decision"] / seconds["score"],
    }


def table(name: str, kappas: list[float], n_splits: int) -> Iterator[Row]:
    """Yield a row per constraint and kappa: means over splits."""
    data = load(name)
    for constraint in CONSTRAINTS if name != FIVE_RACES else CONSTRAINTS[1:]:
        for kappa in kappas:
            rows = [measured(data, constraint, kappa, seed) for seed in range(n_splits)]
            row = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            cost = max(row["passes / fit"], row["seconds / fit"])
            head = {"data": name, "constraint": constraint, "kappa": kappa}
            yield {**head, **row, "at most 4 fits": at_most(cost, 4.0)}


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, tolerances and splits."""
    add_choice(parser, "--data", [*DATA, FIVE_RACES], quick=["compas"], help="data sets")
    add_numbers(parser, "--kappas", [0.1, 0.05, 0.02, 0.01], [0.05], "tolerances")
    parser.add_argument("--splits", type=int, default=Default(3, 1), help="train and test splits")


def run(options: Namespace) -> None:
    """Write decisions.md and decisions.csv."""
    warnings.simplefilter("ignore", ConstantDecisionWarning)  # there is a column for it
    rows: list[Row] = []
    with threadpool_limits(1):
        for name in options.data:
            for row in table(name, options.kappas, options.splits):
                rows.append(row)
                print(*row.values(), flush=True)
    write_table(rows, "decisions", "Bounds on decisions", options.out)
