"""Boosted trees under constraints: ours next to other methods around LightGBM, on held-out rows.

All methods have the same trees: `FairBoostingClassifier`'s defaults, one thread. Columns of text
are ordinal numbers; the groups are features. Splits are 70:30, stratified by group and label;
figures are averages over them, seconds are CPU time of a fit.

- LightGBM without constraints.
- ours: bounds on scores, and on predictions (`enforce="decision"`).
- fairlearn's ExponentiatedGradient and ThresholdOptimizer around LightGBM. Both may randomise, and
  the latter uses groups when predicting; ours does neither.
- FairGBM 0.9.14, which needs an environment of its own: --fairgbm names its interpreter. It has no
  demographic parity.

"advantage" is our accuracy minus theirs at their gap: our accuracies, of bounds on predictions and
without constraints, are interpolated at the mean gap of the other method, in every split with equal
weights. The interval is 1.96 standard errors over the splits.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
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
from benchmarks.harness.data import Data
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, at_least, at_most, write_table
from fairconstrained import FairBoostingClassifier
from fairconstrained.datasets import fetch_adult, fetch_bank, fetch_compas, fetch_law_school

CONSTRAINTS = ("demographic_parity", "equalized_odds")
ON_SCORES, ON_DECISIONS = "ours, scores", "ours, decisions"
FREE, REDUCTION, THRESHOLDS, FAIRGBM = (
    "LightGBM",
    "ExponentiatedGradient",
    "ThresholdOptimizer",
    "FairGBM",
)
OURS = (ON_SCORES, ON_DECISIONS)
_FAIRGBM = """
import sys, time, numpy as np
from fairgbm import FairGBMClassifier
data = np.load(sys.argv[1])
bound, parameters = float(sys.argv[3]), eval(sys.argv[4])
model = FairGBMClassifier(
    constraint_type="FPR,FNR", constraint_fpr_threshold=bound, constraint_fnr_threshold=bound,
    **parameters,
)
start = time.process_time()
model.fit(data["X"], data["y"], constraint_group=data["groups"])
seconds = time.process_time() - start
np.savez(sys.argv[2], probability=model.predict_proba(data["X_test"])[:, -1], seconds=seconds)
"""


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
        test_size=0.3,
        random_state=seed,
        stratify=np.char.add(groups, y.astype(str)),
    )
    return X[train], X[test], y[train], y[test], groups[train], groups[test]


def tree_parameters() -> dict[str, Any]:
    """Return our defaults as LightGBM's parameters."""
    names = (
        "n_estimators", "learning_rate", "num_leaves", "min_child_samples", "min_child_weight",
        "reg_lambda",
    )  # fmt: skip
    ours = FairBoostingClassifier().get_params()
    return {**{name: ours[name] for name in names}, "n_jobs": 1, "random_state": 0, "verbose": -1}


def lightgbm() -> Any:
    """Return LightGBM's classifier with these parameters."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**tree_parameters())


Outcome = tuple[np.ndarray, np.ndarray | None, float]
"""The probability of a positive prediction, scores as probabilities, CPU seconds of the fit."""


def ours(split: Split, constraint: str, kappa: float, enforce: str) -> Outcome:
    """Fit our classifier."""
    X, X_test, y, _, groups, _ = split
    clf = FairBoostingClassifier(constraint, kappa, enforce=enforce, n_jobs=1, random_state=0)
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    probability = clf.predict_proba(X_test)[:, 1]
    return (probability > 0.5).astype(float), probability, seconds


def free(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit LightGBM."""
    X, X_test, y, *_ = split
    model = lightgbm()
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    probability = model.predict_proba(X_test)[:, 1]
    return (probability > 0.5).astype(float), probability, seconds


def reduction(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit fairlearn's ExponentiatedGradient around LightGBM."""
    from fairlearn import reductions

    X, X_test, y, _, groups, _ = split
    moments = {
        "demographic_parity": reductions.DemographicParity,
        "equalized_odds": reductions.EqualizedOdds,
    }
    moment = moments[constraint](difference_bound=kappa)
    model = reductions.ExponentiatedGradient(lightgbm(), moment)
    start = time.process_time()
    model.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return model._pmf_predict(X_test)[:, 1], None, seconds


def thresholds(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit fairlearn's ThresholdOptimizer around LightGBM; it has no tolerance."""
    from fairlearn.postprocessing import ThresholdOptimizer

    X, X_test, y, _, groups, groups_test = split
    model = ThresholdOptimizer(
        estimator=lightgbm(), constraints=constraint, predict_method="predict_proba"
    )
    start = time.process_time()
    model.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return model._pmf_predict(X_test, sensitive_features=groups_test)[:, 1], None, seconds


def fairgbm(split: Split, constraint: str, kappa: float, python: str = "") -> Outcome:
    """Fit FairGBM in its own environment."""
    X, X_test, y, _, groups, _ = split
    codes = np.unique(groups, return_inverse=True)[1]
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, X=X, X_test=X_test, y=y, groups=codes)
        arguments = [str(given), str(found), str(kappa), repr(tree_parameters())]
        subprocess.run(
            [python, "-c", _FAIRGBM, *arguments], check=True, capture_output=True, env={}
        )
        outcome = np.load(found)
        probability = outcome["probability"]
        return (probability > 0.5).astype(float), probability, float(outcome["seconds"])


def runs_of(options: Namespace, constraint: str) -> Iterator[tuple[str, float, Callable[..., Any]]]:
    """Yield the name, the tolerance and the function of every run on a split."""
    yield FREE, np.nan, free
    for kappa in options.kappas:
        yield ON_SCORES, kappa, lambda *given: ours(*given, "score")
        yield ON_DECISIONS, kappa, lambda *given: ours(*given, "decision")
    yield THRESHOLDS, np.nan, thresholds
    for kappa in options.peer_kappas:
        yield REDUCTION, kappa, reduction
        if options.fairgbm and constraint == "equalized_odds":
            yield FAIRGBM, kappa, lambda *given: fairgbm(*given, options.fairgbm)


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


def results(options: Namespace, store: Store) -> dict[tuple[str, str, str, float], list[Row]]:
    """Return the measures of all splits by data set, constraint, method and tolerance."""
    found: dict[tuple[str, str, str, float], list[Row]] = {}
    for name in options.data:
        for constraint in options.constraints:
            for seed in range(options.splits):
                for method, kappa, fit in runs_of(options, constraint):
                    shared = method in (FREE,)
                    about = "" if shared else constraint
                    key = (name, about, method, str(kappa), str(seed), repr(tree_parameters()))
                    row = store.get(("boosters", *key), any_version=method not in OURS)
                    split = split_of(name, seed)
                    if row is None or (shared and constraint not in row):
                        outcome = fit(split, constraint, kappa)
                        rows = {
                            one: measured(split, one, outcome)
                            for one in (CONSTRAINTS if shared else [constraint])
                        }
                        row = store.put(("boosters", *key), rows)
                        print(*key[:5], *row[constraint].values(), flush=True)
                    found.setdefault((name, constraint, method, kappa), []).append(row[constraint])
    return found


def mean(rows: list[Row]) -> Row:
    """Return the average of every column."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


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


def table(found: dict[tuple[str, str, str, float], list[Row]]) -> Iterator[Row]:
    """Yield a row per data set, constraint, method and tolerance."""
    for (name, constraint, method, kappa), rows in found.items():
        one = {key: value for key, value in found.items() if key[:2] == (name, constraint)}
        frontier = [value for key, value in one.items() if key[2] in (*OURS, FREE)]
        plain = mean(next(value for key, value in one.items() if key[2] == FREE))["seconds"]
        average = mean(rows)
        row = {"data": name, "constraint": constraint, "method": method, "kappa": kappa, **average}
        row["x LightGBM"] = average["seconds"] / plain
        theirs = method not in (*OURS, FREE)
        lead, error = advantage(rows, frontier) if theirs else (np.nan, np.nan)
        row |= {"advantage": lead, "+-": error, "target": ""}
        if theirs:
            row["target"] = at_least(lead + (0.0 if np.isnan(error) else error), 0.0)
        elif method == ON_SCORES:
            row["target"] = at_most(row["x LightGBM"], 2.0)
        yield row


def draw(rows: list[Row], out: Path) -> None:
    """Write boosters.png: accuracy against the gap on test rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys((row["data"], row["constraint"]) for row in rows))
    n_columns = len({constraint for _, constraint in panels})
    n_rows = -(-len(panels) // n_columns)
    figure, axes = pyplot.subplots(
        n_rows, n_columns, figsize=(5.0 * n_columns, 3.2 * n_rows), squeeze=False
    )
    markers = dict(zip((FREE, *OURS, REDUCTION, THRESHOLDS, FAIRGBM), "ko^svD", strict=True))
    for (name, constraint), ax in zip(panels, axes.ravel(), strict=False):
        for method in markers:
            points = sorted(
                (row["test gap"], row["accuracy"])
                for row in rows
                if (row["data"], row["constraint"], row["method"]) == (name, constraint, method)
            )
            if points:
                style = {"marker": "*" if method == FREE else markers[method], "ms": 6}
                ax.plot(*np.transpose(points), lw=1.0, label=method, **style)
        ax.set(title=f"{name}, {constraint}", xlabel="gap on test rows", ylabel="accuracy")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(out / "boosters.png", dpi=130)
    pyplot.close(figure)


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, splits, tolerances and FairGBM's interpreter."""
    add_choice(parser, "--data", DATA, quick=["compas"], help="data sets")
    add_choice(
        parser, "--constraints", CONSTRAINTS, quick=["demographic_parity"], help="constraints"
    )
    parser.add_argument(
        "--splits", type=int, default=Default(10, 2), help="splits into training and test rows"
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
    parser.add_argument("--fairgbm", default="", help="interpreter of an environment with FairGBM")


def run(options: Namespace) -> None:
    """Write boosters.md, boosters.csv and boosters.png; runs are kept in a folder beside them."""
    warnings.simplefilter("ignore")  # fairlearn's, LightGBM's about names, ours have columns
    with threadpool_limits(1):
        rows = list(table(results(options, Store(options.out / "boosters"))))
    write_table(rows, "boosters", "Boosted trees under constraints", options.out)
    draw(rows, options.out)
