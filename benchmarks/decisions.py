"""Bounds on decisions: enforce="decision" next to fairlearn's reductions and post-processing.

Splits are 70:30, stratified by group and label; figures are averages over them. Peers are
fairlearn's ExponentiatedGradient with logistic regression, for bounds of 0.1, 0.05, 0.02 and 0.01,
and ThresholdOptimizer. Both may randomise, and the latter uses groups when predicting; ours does
neither. "peers" is the best accuracy on test rows that one of them, or a mixture of two of them,
has at our gap on test rows or below it (at their smallest gap if ours is smaller still), and
"peers, train" the same on training rows, where gaps are less noisy. Five races of Adult, the
hardest case for small cells, are run for equalized odds, without peers.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.harness import fairlearn_peers
from benchmarks.harness.data import DATA, Data, encode
from benchmarks.harness.data import load as load_binary
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from fairconstrained import ConstantDecisionWarning, FairLogisticClassifier
from fairconstrained.datasets import fetch_adult

KAPPAS = (0.1, 0.05, 0.02, 0.01)
CONSTRAINTS = ("demographic_parity", "equalized_odds")
FIVE_RACES = "adult_five_races"
Split = tuple[Any, Any, np.ndarray, np.ndarray, Any, Any]


def load(name: str) -> Data:
    """Return features, labels 0 and 1, and groups."""
    if name != FIVE_RACES:
        return load_binary(name)
    data = fetch_adult()
    y, races = np.asarray(data.target), data.sensitive_features["race"]
    return encode(data.data), (y == y.max()).astype(int), np.asarray(races.astype(str))


def splits(name: str, n_splits: int) -> Iterator[Split]:
    """Yield train and test features, labels and groups."""
    X, y, groups = load(name)
    cells = np.char.add(groups, y.astype(str))
    for seed in range(n_splits):
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.3, random_state=seed, stratify=cells
        )
        yield X[train], X[test], y[train], y[test], groups[train], groups[test]


def gap(positive: np.ndarray, y: np.ndarray, groups: np.ndarray, constraint: str) -> float:
    """Return the largest difference of the groups' rates; `positive` may be probabilities."""
    events = [np.ones(len(y), bool)] if constraint == "demographic_parity" else [y == 1, y == 0]
    rates = [
        [positive[event & (groups == g)].mean() for g in np.unique(groups)] for event in events
    ]
    return float(max(np.ptp(one) for one in rates))


def accuracy(positive: np.ndarray, y: np.ndarray) -> float:
    """Return the expected share of right decisions."""
    return float(np.where(y == 1, positive, 1.0 - positive).mean())


def ours(split: Split, constraint: str, kappa: float) -> Row:
    """Return what enforce="decision" does on a split, and its cost next to a fit on scores."""
    X, X_test, y, y_test, groups, groups_test = split
    clf = FairLogisticClassifier(constraint, kappa)
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    clf = FairLogisticClassifier(constraint, kappa, enforce="decision")
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    more = time.process_time() - start
    search, decisions = clf.decision_search_, clf.predict(X_test)
    train_gap = gap(clf.predict(X), y, groups, constraint)
    return {
        "train gap": train_gap,
        "met": float(train_gap <= kappa + 1e-12),
        "test gap": gap(decisions, y_test, groups_test, constraint),
        "train accuracy": search.accuracy,
        "test accuracy": accuracy(decisions, y_test),
        "cost of accuracy": search.accuracy_cost,
        "constant": float(search.constant),
        "passes / fit": search.data_passes / search.data_passes_on_scores,
        "seconds / fit": more / seconds,
    }


def peers(split: Split, constraint: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the gap and the accuracy of every peer on the training and on the test rows."""
    X, X_test, y, y_test, groups, groups_test = split
    if hasattr(X, "toarray"):
        X, X_test = X.toarray(), X_test.toarray()
    plain = LogisticRegression(max_iter=1000)
    models = {"thresholds": fairlearn_peers.thresholds(plain, constraint)}
    for kappa in KAPPAS:
        models[f"reductions {kappa:g}"] = fairlearn_peers.reduction(plain, constraint, kappa)
    rows = {"train": (X, y, groups), "test": (X_test, y_test, groups_test)}
    found = {}
    for key, model in models.items():
        model.fit(X, y, sensitive_features=groups)
        for which, (features, labels, members) in rows.items():
            known = members if key == "thresholds" else None
            p = fairlearn_peers.chance(model, features, known)
            found[which, key] = (gap(p, labels, members, constraint), accuracy(p, labels))
    return found


def best_of_peers(found: dict[str, tuple[float, float]], at: float) -> float:
    """Return the best accuracy of the peers at a gap of at most `at`; see the module's text."""
    reductions = sorted(point for key, point in found.items() if key.startswith("reductions"))
    points = [right for distance, right in found.values() if distance <= at]
    for mixed in (sorted(found.values()), reductions):
        gaps, accuracies = np.transpose(mixed)
        if mixed is not reductions or at >= gaps[0]:
            points.append(float(np.interp(at, gaps, accuracies)))
    return max(points)


def mean(rows: list[Row]) -> Row:
    """Return the average of every column."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def table(name: str, n_splits: int, with_peers: bool) -> Iterator[Row]:
    """Yield a row per constraint and kappa."""
    for constraint in ["equalized_odds"] if name == FIVE_RACES else CONSTRAINTS:
        drawn = list(splits(name, n_splits))
        compared = with_peers and name != FIVE_RACES
        theirs = [peers(split, constraint) for split in drawn] if compared else []
        average = {
            key: tuple(np.mean([one[key] for one in theirs], 0)) for key in (theirs or [{}])[0]
        }
        for kappa in KAPPAS:
            row = mean([ours(split, constraint, kappa) for split in drawn])
            best = {
                which: best_of_peers(
                    {key: point for (rows, key), point in average.items() if rows == which},
                    row[f"{which} gap"],
                )
                if average
                else np.nan
                for which in ("train", "test")
            }
            met = row.pop("met")
            yield {
                "data": name,
                "constraint": constraint,
                "kappa": kappa,
                **row,
                "peers, train": best["train"],
                "peers": best["test"],
                "bound met": "always" if met == 1.0 else f"{met:.0%}",
                "within 0.003 of peers": at_least(row["test accuracy"], best["test"] - 0.003)
                if average
                else "",
                "at most 4 fits": at_most(max(row["passes / fit"], row["seconds / fit"]), 4.0),
            }


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, splits, and whether peers are run."""
    add_choice(parser, "--data", [*DATA, FIVE_RACES], quick=["compas"], help="data sets")
    parser.add_argument(
        "--splits", type=int, default=Default(3, 1), help="splits into training and test rows"
    )
    parser.add_argument(
        "--peers", action=BooleanOptionalAction, default=True, help="run fairlearn as well"
    )


def run(options: Namespace) -> None:
    """Write decisions.md and decisions.csv."""
    warnings.simplefilter("ignore", ConstantDecisionWarning)  # there is a column for it
    rows: list[Row] = []
    with threadpool_limits(1):
        for name in options.data:
            for row in table(name, options.splits, options.peers):
                rows.append(row)
                print(*row.values(), flush=True)
    write_table(rows, "decisions", "Bounds on decisions, against fairlearn", options.out)
