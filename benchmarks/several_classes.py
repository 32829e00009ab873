"""Bounds on predictions of several classes: enforce="decision" next to fits that bound scores.

Rows are generated: the label is drawn from a multinomial logistic model, and one of four features
depends on the group. All figures are of the training rows, on which the bound is to hold. "scores"
is the fit that bounds soft-max probabilities; its predictions may violate the bound. "tightened" is
the most accurate of the fits on scores with smaller tolerances whose predictions meet the bound,
nan if there is none.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness.options import Default, add_choice, add_seeds
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, write_table
from fairconstrained import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    FairLogisticClassifier,
    InfeasibleConstraintWarning,
)
from fairconstrained.utils.rounding import at_most

CONSTRAINTS = (
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "error_rate_parity",
    "predictive_equality",
    "roc_parity",
    "partial_dp",
)
_TIGHTER = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1, 0.0)


def population(seed: int, n_rows: int, n_classes: int) -> tuple[np.ndarray, ...]:
    """Return features, labels and two groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, 4))
    X[:, 0] += 0.9 * groups
    scores = X @ rng.normal(scale=1.5, size=(4, n_classes)) + rng.gumbel(size=(n_rows, n_classes))
    return X, scores.argmax(axis=1), groups


def measured(rows: tuple[np.ndarray, ...], constraint: str, kappa: float) -> Row:
    """Return the measures of the fits to some rows."""
    X, y, groups = rows
    on_scores = []
    for part in _TIGHTER:
        start = time.process_time()
        clf = FairLogisticClassifier(constraint, part * kappa).fit(X, y, sensitive_features=groups)
        on_scores.append((clf.score(X, y), clf.decision_gap_, time.process_time() - start))
    start = time.process_time()
    clf = FairLogisticClassifier(constraint, kappa, enforce="decision")
    clf.fit(X, y, sensitive_features=groups)
    seconds, search = time.process_time() - start, clf.decision_search_
    met = [accuracy for accuracy, gap, _ in on_scores if at_most(gap, kappa)]
    return {
        "unconstrained": search.accuracy_unconstrained,
        "scores": on_scores[0][0],
        "gap, scores": on_scores[0][1],
        "tightened": max(met, default=float("nan")),
        "accuracy": search.accuracy,
        "gap": clf.decision_gap_,
        "constant": float(search.constant),
        "passes / fit": search.data_passes / search.data_passes_on_scores,
        "seconds": seconds,
        "seconds / fit": seconds / on_scores[0][2],
    }


def table(options: Namespace, store: Store) -> Iterator[Row]:
    """Yield a row per size, number of classes, constraint and tolerance."""
    for n_rows in options.rows:
        for n_classes in options.classes:
            for constraint in options.constraints:
                for kappa in options.kappas:
                    setting = (n_rows, n_classes, constraint, kappa)
                    found = [_kept(store, seed, *setting) for seed in options.seeds]
                    mean = {
                        name: float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
                        for name in found[0]
                        if len(values := [one[name] for one in found])
                    }
                    lead = mean["accuracy"] - mean["scores"]
                    names = ("rows", "classes", "constraint", "kappa")
                    row = dict(zip(names, setting, strict=True)) | mean
                    yield row | {"within 0.02 of scores": at_least(lead, -0.02)}


def _kept(
    store: Store, seed: int, n_rows: int, n_classes: int, constraint: str, kappa: float
) -> Row:
    """Return the measures of a run, from the store if they are there."""
    key = ("several_classes", *map(str, (seed, n_rows, n_classes, constraint, kappa)))
    kept = store.get(key)
    if kept is None:
        row = measured(population(seed, n_rows, n_classes), constraint, kappa)
        kept = store.put(key, row)
        print(*key[1:], *(f"{value:.3f}" for value in row.values()), flush=True)
    return {name: value for name, value in kept.items() if name not in ("key", "version")}


def add_options(parser: ArgumentParser) -> None:
    """Add sizes, numbers of classes, constraints, tolerances and seeds."""
    parser.add_argument(
        "--rows", type=int, nargs="+", default=Default([600, 3000], [600]), help="rows"
    )
    parser.add_argument(
        "--classes", type=int, nargs="+", default=Default([3, 4], [3]), help="numbers of classes"
    )
    add_choice(
        parser,
        "--constraints",
        CONSTRAINTS,
        quick=["demographic_parity", "equalized_odds"],
        help="constraints",
    )
    parser.add_argument(
        "--kappas", type=float, nargs="+", default=Default([0.02, 0.05], [0.02]), help="tolerances"
    )
    add_seeds(parser, (0, 1, 2))


def run(options: Namespace) -> None:
    """Write several_classes.md and several_classes.csv."""
    for kind in (ConstantDecisionWarning, ConvergenceWarning, InfeasibleConstraintWarning):
        warnings.simplefilter("ignore", kind)
    with threadpool_limits(1):
        rows = list(table(options, Store(options.out / "several_classes")))
    title = "Bounds on predictions of several classes"
    write_table(rows, "several_classes", title, options.out)
