"""Boosted trees under constraints: ours next to other methods around LightGBM, on held-out rows.

All methods have the same trees: `FairBoostingClassifier`'s defaults, one thread. Columns of text
are ordinal numbers; the groups are features. Splits are 70:30, stratified by group and label;
figures are averages over them, seconds are CPU time of a fit.

- LightGBM without constraints.
- ours: bounds on scores, and on predictions (`enforce="decision"`).
- fairlearn's ExponentiatedGradient and ThresholdOptimizer around LightGBM. Both may randomise, and
  the latter uses groups when predicting; ours does neither.
- FairGBM 0.9.14, which has no demographic parity, and OxonFair 0.3, which uses groups when
  predicting. They may have environments of their own: --python fairgbm=PATH oxonfair=PATH.

"advantage" is our accuracy minus theirs at their mean gap: ours is interpolated between our
tolerances and LightGBM alone, on the same splits. The interval has the variance of overlapping
splits and the noise of both gaps, as in the benchmark "peers".

Runs are kept; --only-known shows those that there are, with their number of splits. With
``--docs docs`` the page is written.
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits

from benchmarks.decisions import Split, accuracy, gap
from benchmarks.harness.boosted_peers import (
    CONSTRAINTS,
    FREE,
    METHODS,
    ON_SCORES,
    OTHERS,
    Outcome,
    tree_parameters,
)
from benchmarks.harness.boosters_page import draw, write_page
from benchmarks.harness.data import Data
from benchmarks.harness.dominance import Comparison, Point, Splits, compare_at
from benchmarks.harness.intervals import LEAST_SPLITS
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_most, write_table
from fairconstrained.datasets import fetch_adult, fetch_bank, fetch_compas, fetch_law_school

TEST_SHARE = 0.3  # of the rows of a split


def _table(bunch: Any, column: str, rows: Any = None) -> Data:
    """Return features with ordinal numbers for text, labels 0 and 1, and groups."""
    frame, y, groups = bunch.data, np.asarray(bunch.target), bunch.sensitive_features[column]
    frame = frame.copy()
    text = frame.select_dtypes(exclude="number").columns
    frame[text] = OrdinalEncoder().fit_transform(frame[text].astype(str))
    X, y = frame.to_numpy(float), (y == y.max()).astype(int)
    groups = np.asarray(groups.astype(str))
    kept = np.isfinite(X).all(axis=1)
    if rows is not None:
        kept &= np.isin(groups, rows)
    return X[kept], y[kept], groups[kept]


DATA: dict[str, Callable[[], Data]] = {
    "adult": lambda: _table(fetch_adult(), "sex"),
    "bank": lambda: _table(fetch_bank(version="additional"), "age"),
    "compas": lambda: _table(fetch_compas(), "race", ["African-American", "Caucasian"]),
    "law_school": lambda: _table(fetch_law_school(), "race"),
}


@cache
def load(name: str) -> Data:
    """Return a data set."""
    return DATA[name]()


def split_of(name: str, seed: int) -> Split:
    """Return train and test features, labels and groups."""
    X, y, groups = load(name)
    train, test = train_test_split(
        np.arange(len(y)),
        test_size=TEST_SHARE,
        random_state=seed,
        stratify=np.char.add(groups, y.astype(str)),
    )
    return X[train], X[test], y[train], y[test], groups[train], groups[test]


def measured(split: Split, constraint: str, outcome: Outcome) -> Row:
    """Return the measures on the test rows."""
    positive, probability, seconds = outcome
    y, groups = split[3], split[5]
    known = probability is not None
    return {
        "test gap": gap(positive, y, groups, constraint),
        "accuracy": accuracy(positive, y),
        "AUC": roc_auc_score(y, probability) if known else np.nan,
        "log loss": log_loss(y, probability) if known else np.nan,
        "seconds": seconds,
    }


Place = tuple[str, str, str, float]  # data set, constraint, method and tolerance; 0 for none
Found = dict[Place, dict[int, Row]]  # measures by split


def tolerances(name: str, options: Namespace) -> list[float]:
    """Return the tolerances of a method, nan if it has none."""
    method = METHODS[name]
    if not method.has_tolerance:
        return [np.nan]
    return list(options.kappas if method.ours else options.peer_kappas)


def results(options: Namespace, store: Store) -> Found:
    """Return the measures of all splits; split by split, so that all have about as many."""
    found: Found = {}
    for seed in range(options.splits):
        for name in options.data:
            for constraint in options.constraints:
                for method in options.methods:
                    if constraint not in METHODS[method].constraints:
                        continue
                    for kappa in tolerances(method, options):
                        row = _known_or_run(options, store, (name, constraint, method, kappa), seed)
                        if row is not None:
                            place = (name, constraint, method, 0.0 if np.isnan(kappa) else kappa)
                            found.setdefault(place, {})[seed] = row
    return found


def _known_or_run(options: Namespace, store: Store, place: Place, seed: int) -> Row | None:
    """Return the measures on the test rows, None if they are not known and may not be run."""
    name, constraint, method, kappa = place
    shared = method == FREE  # it is the same for all constraints
    about = "" if shared else constraint
    key = (name, about, method, str(kappa), str(seed), repr(tree_parameters()))
    any_version = options.any_version or not METHODS[method].ours
    kept = store.get(("boosters", *key), any_version=any_version)
    if kept is None and not options.only_known:
        split = split_of(name, seed)
        outcome = METHODS[method].run(split, constraint, kappa, options.pythons)
        asked = CONSTRAINTS if shared else [constraint]
        rows = {one: measured(split, one, outcome) for one in asked}
        kept = store.put(("boosters", *key), rows)
        print(*key[:5], *kept[constraint].values(), flush=True)
    return None if kept is None else kept[constraint]


def mean(rows: list[Row]) -> Row:
    """Return the average of every column."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def table(found: Found) -> Iterator[Row]:
    """Yield a row per data set, constraint, method and tolerance."""
    for (name, constraint, method, kappa), rows in found.items():
        one = {key: value for key, value in found.items() if key[:2] == (name, constraint)}
        average = mean([*rows.values()])
        row = {"data": name, "constraint": constraint, "method": method, "kappa": kappa}
        row |= {"splits": len(rows), **average, "x LightGBM": np.nan}
        plain = one.get((name, constraint, FREE, 0.0), {})
        shared = [seed for seed in rows if seed in plain]
        if shared:
            alone = mean([plain[seed] for seed in shared])["seconds"]
            row["x LightGBM"] = mean([rows[seed] for seed in shared])["seconds"] / alone
        compared = _against_ours(rows, one) if method in OTHERS else None
        row["advantage"] = compared.gain if compared else np.nan
        row["+-"] = compared.noise if compared else np.nan
        row["ours is"] = str(compared.outcome) if compared else ""
        row["target"] = at_most(row["x LightGBM"], 2.0) if method == ON_SCORES else ""
        yield row


def _against_ours(rows: dict[int, Row], one: dict[Place, dict[int, Row]]) -> Comparison | None:
    """Return our accuracy less that of a method with a tolerance, at its mean gap."""
    if not any(METHODS[key[2]].ours for key in one):
        return None
    ours = [_point(value) for key, value in one.items() if key[2] not in OTHERS]
    return compare_at(_point(rows), ours, TEST_SHARE / (1.0 - TEST_SHARE))


def _point(rows: dict[int, Row]) -> Point:
    """Return a method with a tolerance as a point of accuracy and mean test gap."""

    def fairness(splits: Splits) -> float:
        return -float(np.mean([rows[seed]["test gap"] for seed in splits]))

    return Point({seed: row["accuracy"] for seed, row in rows.items()}, fairness)


def interpreters(pairs: list[str]) -> dict[str, str]:
    """Return the interpreter of each package that has an environment of its own.

    Raises
    ------
    SystemExit
        If a pair does not name such a package, or has no path.
    """
    packages = {method.package for method in METHODS.values()} - {""}
    split = (pair.partition("=") for pair in pairs)
    found = {name: path for name, _, path in split}
    if not (found.keys() <= packages and all(found.values())):
        raise SystemExit(f"--python: give PACKAGE=PATH, PACKAGE one of {sorted(packages)}")
    return found


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, methods, splits, tolerances and the interpreters of other environments."""
    add_choice(parser, "--data", DATA, quick=["compas"], help="data sets")
    add_choice(
        parser, "--constraints", CONSTRAINTS, quick=["demographic_parity"], help="constraints"
    )
    installed = [name for name, one in METHODS.items() if not one.package]
    add_choice(parser, "--methods", METHODS, quick=installed, help="methods")
    parser.add_argument(
        "--splits",
        type=int,
        default=Default(10, LEAST_SPLITS),
        help="splits into training and test rows",
    )
    parser.add_argument(
        "--kappas",
        type=float,
        nargs="+",
        default=Default([0.1, 0.05, 0.02, 0.01], [0.05, 0.01]),
        help="our tolerances",
    )
    parser.add_argument(
        "--peer-kappas",
        type=float,
        nargs="+",
        default=Default([0.05, 0.01], [0.05]),
        help="tolerances of the others",
    )
    parser.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="NAME=PATH",
        help="the interpreter that has a package, for example oxonfair=/env/bin/python",
    )
    parser.add_argument(
        "--any-version", action="store_true", help="take our results of other versions as well"
    )
    parser.add_argument("--only-known", action="store_true", help="run nothing, show what is known")
    parser.add_argument("--docs", type=Path, help="folder of the page boosters.md and its figure")


def run(options: Namespace) -> None:
    """Write boosters.md, boosters.csv and boosters.png; runs are kept in a folder beside them."""
    warnings.simplefilter("ignore")  # fairlearn's, LightGBM's about names, ours have columns
    options.pythons = interpreters(options.python)
    store = Store(options.out / "boosters", options.docs)
    with threadpool_limits(1):
        rows = list(table(results(options, store)))
    write_table(rows, "boosters", "Boosted trees under constraints", options.out)
    draw(rows, options.out / "boosters.png")
    if options.docs is not None:
        write_page(rows, options.docs, store.versions_in_words())
        store.publish()
