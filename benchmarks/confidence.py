"""Bounds for the population (confidence=0.9): how often a model is found, and how often it errs.

A data set is the population. Rows are drawn from it with replacement, a model is fitted to them
under demographic parity with enforce="decision" and confidence=0.9, and its gap and its accuracy
are computed on all rows of the population. "best" is the accuracy of models fitted to the whole
population, at the gap of the model: linear interpolation between bounds. It is compared with the
accuracy of models that are not constant.

The test alone is simulated with many more draws. In each of five splits candidates are fitted to
half as many rows, with bounds of 0.4, 0.7, 1 and 1.1 times kappa, so that many of the last ones are
beyond the bound in the population, by little. Other rows test them, in this order up to the first
rejection. "errors" is the share of these draws in which a candidate that is accepted is beyond the
bound; it may be 0.1.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.harness.data import DATA, Data, generated, load
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from fairconstrained import ConstantDecisionWarning, DemographicParity, FairLogisticClassifier

CONFIDENCE = 0.9
GENERATED = "generated"
CELLS = ((3000, 0.1, 0.6), (6000, 0.1, 0.95), (12_000, 0.05, 0.8))  # rows, kappa, share wanted
FRONTIER = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1)
FACTORS = (0.4, 0.7, 1.0, 1.1)
N_SPLITS = 5


@cache
def population(name: str) -> Data:
    """Return features, labels 0 and 1, and groups of all rows."""
    return generated(60_000) if name == GENERATED else load(name)


def draw(name: str, n_rows: int, seed: int) -> Data:
    """Return rows drawn with replacement."""
    X, y, groups = population(name)
    rows = np.random.default_rng(seed).integers(0, len(y), n_rows)
    return X[rows], y[rows], groups[rows]


def measures(name: str, clf: Any) -> Row:
    """Return the gap and the accuracy of a classifier in the population."""
    X, y, groups = population(name)
    decisions = clf.predict(X)
    rates = [decisions[groups == group].mean() for group in np.unique(groups)]
    return {"gap": float(np.ptp(rates)), "accuracy": float(np.mean(decisions == y))}


def one_draw(name: str, n_rows: int, kappa: float, seed: int) -> Row:
    """Return what a fit with confidence found."""
    X, y, groups = draw(name, n_rows, seed)
    clf = FairLogisticClassifier(
        kappa=kappa, enforce="decision", confidence=CONFIDENCE, random_state=seed
    )
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    constant = bool(clf.decision_search_.constant)
    return {**measures(name, clf), "constant": constant, "seconds": seconds}


def best(name: str, kappa: float) -> Row:
    """Return the model fitted to the population, with a bound on its predictions."""
    X, y, groups = population(name)
    clf = FairLogisticClassifier(kappa=kappa, enforce="decision")
    return measures(name, clf.fit(X, y, sensitive_features=groups))


def errors(name: str, n_rows: int, kappa: float, split: int, n_draws: int) -> Row:
    """Return how many draws of rows for the test accept a candidate beyond the bound."""
    X, y, groups = population(name)
    training, labels, members = draw(name, n_rows // 2, 10_000 + split)
    candidates, gaps = [], []
    for factor in FACTORS:
        clf = FairLogisticClassifier(kappa=factor * kappa, enforce="decision")
        clf.fit(training, labels, sensitive_features=members)
        candidates.append(clf.decision_function(X))
        gaps.append(measures(name, clf)["gap"])
    random, wrong = np.random.default_rng(split), 0
    by_group = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    sizes = [round(len(rows) / len(y) * n_rows / 2) for rows in by_group]
    for _ in range(n_draws):
        rows = np.concatenate(
            [random.choice(one, size) for one, size in zip(by_group, sizes, strict=True)]
        )
        claims = DemographicParity(kappa).claims(y[rows], groups[rows], np.ones(len(rows)))
        for scores, gap in zip(candidates, gaps, strict=True):
            if not all(claim.accepts(scores[rows], 1.0 - CONFIDENCE) for claim in claims):
                break
            if gap > kappa:
                wrong += 1
                break
    return {"wrong": wrong, "beyond": float(max(gaps) > kappa)}


def stored(store: Store, key: tuple[str, ...], compute: Any) -> Row:
    """Return a stored result, computed where there is none."""
    found = store.get(key)
    if found is None:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", ConstantDecisionWarning)
            found = store.put(key, compute())
    return found


def table(name: str, options: Namespace, store: Store) -> Iterator[Row]:
    """Yield a row for every number of rows and kappa."""
    run = Parallel(n_jobs=options.jobs)
    frontier = run(
        delayed(stored)(store, ("best", name, str(kappa)), partial(best, name, kappa))
        for kappa in FRONTIER
    )
    gaps, accuracies = zip(*sorted((one["gap"], one["accuracy"]) for one in frontier), strict=True)
    for n_rows, kappa, wanted in CELLS:
        if n_rows not in options.rows:
            continue
        where = name, n_rows, kappa
        key = (name, str(n_rows), str(kappa))
        found = run(
            delayed(stored)(store, ("draw", *key, str(seed)), partial(one_draw, *where, seed))
            for seed in range(options.draws)
        )
        each = options.tests // N_SPLITS
        tested = run(
            delayed(stored)(
                store, ("test", *key, str(split), str(each)), partial(errors, *where, split, each)
            )
            for split in range(N_SPLITS)
        )
        fair = [one for one in found if not one["constant"]]
        top = np.interp([one["gap"] for one in fair], gaps, np.maximum.accumulate(accuracies))
        cost = top - [one["accuracy"] for one in fair]
        share, error = len(fair) / len(found), sum(one["wrong"] for one in tested) / each / N_SPLITS
        yield {
            "population": name,
            "rows": n_rows,
            "kappa": kappa,
            "not constant": f"{share:.0%} ({wanted:.0%} wanted: {at_least(share, wanted)})",
            "gap beyond kappa": f"{np.mean([one['gap'] > kappa for one in found]):.0%}",
            "gap": float(np.mean([one["gap"] for one in fair])),
            "accuracy": float(np.mean([one["accuracy"] for one in fair])),
            "best": float(np.mean(top)),
            "within 0.02": at_most(float(np.mean(cost)), 0.02),
            "errors of the test": f"{error:.1%} of {each * N_SPLITS}",
            "splits with one": f"{np.mean([one['beyond'] for one in tested]):.0%}",
            "CPU seconds": float(np.mean([one["seconds"] for one in found])),
        }


def add_options(parser: ArgumentParser) -> None:
    """Add data sets and draws."""
    names = [*DATA, GENERATED]
    add_choice(parser, "--data", names, quick=["compas"], help="the data sets that are populations")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[rows for rows, *_ in CELLS], help="rows of a fit"
    )
    parser.add_argument("--draws", type=int, default=Default(40, 5), help="fits in every row")
    parser.add_argument(
        "--tests", type=int, default=Default(1000, 200), help="draws for the test alone"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")


def run(options: Namespace) -> None:
    """Write confidence.md and confidence.csv."""
    store = Store(options.out / "confidence")
    rows = [row for name in options.data for row in table(name, options, store)]
    write_table(rows, "confidence", "Bounds for the population, confidence 0.9", options.out)
