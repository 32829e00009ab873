"""Thresholds on given scores: FairThresholds next to fairlearn and OxonFair, on test rows.

All methods have the scores of the same LightGBM model. Splits are 70:30, stratified by group and
label; 75% of the 70% train the model and 25% choose the thresholds. Figures are averages over the
splits, intervals are 1.96 standard errors, seconds are CPU time of choosing thresholds.

- ours: one threshold for each group, and a common one.
- fairlearn's ThresholdOptimizer, with thresholds that are drawn at random; its gap and accuracy are
  expectations. Tolerances other than 0 are for demographic parity only.
- OxonFair 0.3, one threshold for each group. It needs an environment of its own, whose interpreter
  --oxonfair names; without it these rows are left out.

"advantage" is our accuracy minus theirs at their gap on test rows, with one threshold for each
group: our accuracies are interpolated at the mean gap of the other method, in every split with
equal weights, with 1.96 standard errors over the splits. The table `rows` compares the rows that
may choose thresholds: all rows with cross-validated scores, a quarter held out, and the training
rows themselves.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.boosters import DATA, mean, split_of
from benchmarks.decisions import Split, accuracy, gap
from benchmarks.harness import fairlearn_peers
from benchmarks.harness.boosted_peers import CONSTRAINTS, lightgbm, oxonfair_on
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, write_table
from fairconstrained import FairThresholds

FREE, OWN, COMMON = "LightGBM", "ours, by group", "ours, common"
RELAXED = ("demographic_parity",)  # what ThresholdOptimizer takes a tolerance for
PEERS = ("ThresholdOptimizer", "OxonFair")
ROWS: dict[str, Any] = {"five folds": 5, "a quarter held out": 0.25, "training rows": "prefit"}
Outcome = tuple[np.ndarray, float]
"""The probability of a positive decision on test rows, and CPU seconds."""


def parts_of(name: str, seed: int) -> tuple[Any, Split]:
    """Return a fitted model, and the rows that choose thresholds and test rows."""
    X, X_test, y, y_test, groups, groups_test = split_of(name, seed)
    train, chosen = train_test_split(
        np.arange(len(y)),
        test_size=0.25,
        random_state=seed,
        stratify=np.char.add(groups, y.astype(str)),
    )
    model = lightgbm().fit(X[train], y[train])
    return model, (X[chosen], X_test, y[chosen], y_test, groups[chosen], groups_test)


def ours(model: Any, rows: Split, constraint: str, kappa: float, *, per_group: bool) -> Outcome:
    """Choose our thresholds."""
    X, X_test, y, _, groups, groups_test = rows
    clf = FairThresholds(model, constraint, kappa, per_group=per_group, cv="prefit")
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return clf.predict(X_test, sensitive_features=groups_test).astype(float), seconds


def fairlearn(model: Any, rows: Split, constraint: str, kappa: float) -> Outcome:
    """Choose fairlearn's random thresholds."""
    X, X_test, y, _, groups, groups_test = rows
    optimizer = fairlearn_peers.thresholds(model, constraint, prefit=True, tol=kappa or None)
    start = time.process_time()
    optimizer.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return fairlearn_peers.chance(optimizer, X_test, groups_test), seconds


def outcomes(
    options: Namespace, name: str, seed: int
) -> Iterator[tuple[str, str, float, Outcome, Split]]:
    """Yield constraint, method, tolerance and decisions of every run on a split."""
    model, rows = parts_of(name, seed)
    free = (model.predict_proba(rows[1])[:, 1] > 0.5).astype(float), 0.0
    others = {}
    if options.oxonfair:
        others = oxonfair_on(model, rows, options.peer_kappas, options.oxonfair)
    for constraint in CONSTRAINTS:
        yield constraint, FREE, np.nan, free, rows
        for kappa in options.kappas:
            for method in (OWN, COMMON):
                found = ours(model, rows, constraint, kappa, per_group=method == OWN)
                yield constraint, method, kappa, found, rows
        yield constraint, PEERS[0], 0.0, fairlearn(model, rows, constraint, 0.0), rows
        for kappa in options.peer_kappas:
            if constraint in RELAXED:
                yield constraint, PEERS[0], kappa, fairlearn(model, rows, constraint, kappa), rows
            if others:
                yield constraint, PEERS[1], kappa, others[constraint, kappa], rows


def measured(outcome: Outcome, rows: Split, constraint: str) -> Row:
    """Return the measures on the test rows."""
    positive, seconds = outcome
    return {
        "test gap": gap(positive, rows[3], rows[5], constraint),
        "accuracy": accuracy(positive, rows[3]),
        "seconds": seconds,
    }


Found = dict[tuple[str, str, str, float], list[Row]]


def results(options: Namespace, store: Store) -> Found:
    """Return the measures of all splits by data set, constraint, method and tolerance."""
    found: Found = {}
    for name in options.data:
        for seed in range(options.splits):
            key = (name, str(seed), repr(options.kappas), repr(options.peer_kappas))
            key += (str(bool(options.oxonfair)),)
            kept = store.get(("fair_thresholds", *key))
            if kept is None:
                runs = [
                    [constraint, method, kappa, measured(outcome, rows, constraint)]
                    for constraint, method, kappa, outcome, rows in outcomes(options, name, seed)
                ]
                kept = store.put(("fair_thresholds", *key), {"runs": runs})
                print(name, seed, flush=True)
            for constraint, method, kappa, row in kept["runs"]:
                place = (name, constraint, method, round(float(kappa), 6))
                found.setdefault(_key(place), []).append(row)
    return found


def _key(place: tuple[str, str, str, float]) -> tuple[str, str, str, float]:
    """Return the same with 1 for a tolerance that there is not: nan differs from itself."""
    return (*place[:3], 1.0 if np.isnan(place[3]) else place[3])


def spread(rows: list[Row], column: str) -> float:
    """Return 1.96 standard errors of a column's mean."""
    values = [row[column] for row in rows]
    return 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else np.nan


def advantage(theirs: list[Row], frontier: list[list[Row]]) -> tuple[float, float]:
    """Return our accuracy minus theirs at their mean gap, and 1.96 standard errors of it.

    Parameters
    ----------
    theirs : list of dict
        Their measures, one per split.
    frontier : list of list of dict
        Ours, for every tolerance.
    """
    gaps = np.array([mean(rows)["test gap"] for rows in frontier])
    right = np.array([mean(rows)["accuracy"] for rows in frontier])
    at = mean(theirs)["test gap"]
    best, weights = -np.inf, np.zeros(len(gaps))
    for i in range(len(gaps)):
        for j in range(len(gaps)):
            if gaps[i] <= at and (gaps[j] > at or i == j):
                t = 0.0 if i == j else (at - gaps[i]) / (gaps[j] - gaps[i])
                if (1.0 - t) * right[i] + t * right[j] > best:
                    best = (1.0 - t) * right[i] + t * right[j]
                    weights = np.eye(len(gaps))[i] * (1.0 - t) + np.eye(len(gaps))[j] * t
    if not np.isfinite(best):  # their gap is smaller than all of ours
        weights = np.eye(len(gaps))[int(np.argmin(gaps))]
    accuracies = np.array([[row["accuracy"] for row in rows] for rows in frontier])
    differences = weights @ accuracies - np.array([row["accuracy"] for row in theirs])
    n = len(differences)
    error = 1.96 * float(np.std(differences, ddof=1)) / np.sqrt(n) if n > 1 else np.nan
    return float(differences.mean()), error


def table(found: Found) -> Iterator[Row]:
    """Yield a row per data set, constraint, method and tolerance."""
    for (name, constraint, method, kappa), rows in found.items():
        frontier = [
            value
            for key, value in found.items()
            if key[:2] == (name, constraint) and key[2] in (OWN, FREE)
        ]
        average = mean(rows)
        lead, error = advantage(rows, frontier) if method in PEERS else (np.nan, np.nan)
        known = method in PEERS
        yield {
            "data": name,
            "constraint": constraint,
            "method": method,
            "kappa": kappa,
            "test gap": average["test gap"],
            "+- gap": spread(rows, "test gap"),
            "accuracy": average["accuracy"],
            "+- accuracy": spread(rows, "accuracy"),
            "seconds": average["seconds"],
            "advantage": lead,
            "+-": error,
            "not below": at_least(lead + np.nan_to_num(error), 0.0) if known else "",
        }


def rows_table(options: Namespace, store: Store) -> Iterator[Row]:
    """Yield the gap and the accuracy on test rows for every choice of rows, kappa 0.02."""
    for name in options.data:
        for constraint in CONSTRAINTS:
            for title, cv in ROWS.items():
                found = [
                    _with_rows(store, name, constraint, title, cv, seed)
                    for seed in range(options.splits)
                ]
                average = mean(found)
                yield {
                    "data": name,
                    "constraint": constraint,
                    "rows": title,
                    "test gap": average["test gap"],
                    "+- gap": spread(found, "test gap"),
                    "accuracy": average["accuracy"],
                    "+- accuracy": spread(found, "accuracy"),
                    "seconds": average["seconds"],
                }


def _with_rows(store: Store, name: str, constraint: str, title: str, cv: Any, seed: int) -> Row:
    key = ("fair_thresholds rows", name, constraint, title, str(seed))
    kept = store.get(key)
    if kept is None:
        X, X_test, y, y_test, groups, groups_test = split_of(name, seed)
        start = time.process_time()
        model = lightgbm().fit(X, y) if cv == "prefit" else lightgbm()
        clf = FairThresholds(model, constraint, 0.02, per_group=True, cv=cv, random_state=seed)
        clf.fit(X, y, sensitive_features=groups)
        seconds = time.process_time() - start
        positive = clf.predict(X_test, sensitive_features=groups_test).astype(float)
        rows = (X, X_test, y, y_test, groups, groups_test)
        kept = store.put(key, {"row": measured((positive, seconds), rows, constraint)})
    found: Row = kept["row"]
    return found


TABLES = ("thresholds", "rows")


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, splits, tolerances and OxonFair's interpreter."""
    add_choice(parser, "--tables", TABLES, quick=TABLES, help="tables")
    add_choice(parser, "--data", DATA, quick=["compas"], help="data sets")
    parser.add_argument(
        "--splits", type=int, default=Default(10, 2), help="splits into training and test rows"
    )
    parser.add_argument(
        "--kappas",
        type=float,
        nargs="+",
        default=Default([0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2], [0.05, 0.01]),
        help="our tolerances",
    )
    parser.add_argument(
        "--peer-kappas",
        type=float,
        nargs="+",
        default=Default([0.01, 0.05, 0.1], [0.05]),
        help="tolerances of the others",
    )
    parser.add_argument("--oxonfair", default="", help="interpreter of an environment with it")


def run(options: Namespace) -> None:
    """Write fair_thresholds and fair_thresholds-rows; runs are kept in a folder beside them."""
    warnings.simplefilter("ignore")  # fairlearn's, LightGBM's about names, constant decisions
    store = Store(options.out / "fair_thresholds")
    if not options.oxonfair:
        print("OxonFair is left out: --oxonfair names no interpreter of an environment with it.")
    with threadpool_limits(1):
        if "thresholds" in options.tables:
            rows = list(table(results(options, store)))
            title = "Thresholds on the scores of LightGBM, on test rows"
            write_table(rows, "fair_thresholds", title, options.out)
        if "rows" in options.tables:
            rows = list(rows_table(options, store))
            title = "Which rows choose thresholds, kappa 0.02, one for each group"
            write_table(rows, "fair_thresholds-rows", title, options.out)
