"""Targets for the speed and the memory of fits in memory: figure, limit, met or not met.

The row on text is the accuracy of LogisticRegression minus ours on as many new rows, the mean over
ten corpora. All seconds are CPU seconds of this process, and ratios are medians of the ratios of
neighbouring runs, except for `n_jobs`, where they are elapsed seconds. LogisticRegression has the
same penalty and the same number of threads. `--docs docs` writes the figures of the page speed.md.
"""

from __future__ import annotations

import time
import tracemalloc
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from benchmarks.harness.data import Data, generated, generated_text, load
from benchmarks.harness.fits import fit, logistic_regression
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.tables import Row, as_markdown, at_most, environment, write_table
from benchmarks.harness.timing import in_turns, ratio
from fairconstrained import (
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    fairness_path,
    make_biased_classification,
)

CONSTRAINTS = (None, "demographic_parity", "equalized_odds")
KAPPA = 0.02
_FIGURES = "## Figures\n"
PATHS = ("compas", "law_school", "generated", "a9a")

_WHY = {
    "small": "most of the time is Python overhead, not computation on the thousand rows",
    "a9a": "the constraints need more evaluations than the loss alone",
    "large": "moments, checks and the sample cost about two evaluations; an evaluation in NumPy "
    "makes some thirty passes over a block where a compiled loop makes one",
    "memory": "blocks and a sample of the rows take a few megabytes, however few rows there are",
    "text": "the penalty is weaker where words weigh little: rows of length 1 have small entries",
    "path": "the model without constraints and one evaluation for each point make {least:.1f} "
    "times the data passes of the fit; a point's certificate, measures on decisions and Python "
    "overhead cost as much as an evaluation",
    "jobs": "five folds on two workers take three fifths at best; the tolerances and the last fit "
    "are not divided; rows are copied to the workers, or shared in files, which joblib may take "
    "0.1 s to remove",
}


def many_rows(n_rows: int) -> Data:
    """Return generated rows in single precision, with 20 features."""
    X, y, groups = make_biased_classification(n_rows, n_features=20, gap=0.3, random_state=0)
    return X.astype(np.float32), y, groups


def _row(kind: str, what: str, unit: str, figure: float, limit: float, **more: Any) -> Row:
    verdict = at_most(figure, limit)
    return {
        "what": what,
        "in units of": unit,
        "figure": figure,
        "target": f"<= {limit:g}",
        "verdict": verdict,
        "seconds": more.get("seconds", ""),
        "data passes": more.get("passes", ""),
        "reason if not met": "" if verdict == "met" else _WHY[kind].format(**more),
    }


def against_logistic(kind: str, name: str, data: Data, repeats: int, limit: float) -> Iterator[Row]:
    """Yield a row for every constraint: seconds of a fit over those of LogisticRegression."""
    X, y, groups = data
    runs: dict[str, Callable[[], Any]] = {"LR": partial(logistic_regression(len(y)).fit, X, y)}
    for constraint in CONSTRAINTS:
        runs[str(constraint)] = partial(fit, X, y, groups, constraint, KAPPA)
    passes = {one: run().result_.data_passes for one, run in runs.items() if one != "LR"}
    seconds = in_turns(runs, repeats, clock=time.process_time)
    for one, count in passes.items():
        figure, found = ratio(seconds[one], seconds["LR"]), median(seconds[one])
        what = f"{name}, {'no constraint' if one == 'None' else one}"
        yield _row(kind, what, "LogisticRegression", figure, limit, seconds=found, passes=count)


def peak_memory(data: Data) -> Iterator[Row]:
    """Yield a row for every constraint: X and the peak of what is allocated beyond it, over X."""
    X, y, groups = data
    for constraint in CONSTRAINTS:
        fit(X[:2000], y[:2000], groups[:2000], constraint, KAPPA)
        tracemalloc.start()
        fit(X, y, groups, constraint, KAPPA)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        what = f"peak memory, {len(y):,} rows x {X.shape[1]}, {constraint or 'no constraint'}"
        yield _row("memory", what, "X", 1.0 + peak / X.nbytes, 1.1)


def large(data: Data, repeats: int) -> list[Row]:
    """Return seconds and memory of fits on many rows."""
    n_rows, n_features = data[0].shape
    name = f"{n_rows:,} rows x {n_features}, float32"
    return [*against_logistic("large", name, data, repeats, 1.1), *peak_memory(data)]


def text_row(n_rows: int) -> Row:
    """Return how far the accuracy on generated text is behind that of LogisticRegression."""
    behind, seconds = [], []
    for seed in range(10):
        X, y, groups = generated_text(2 * n_rows, seed=seed)
        start = time.process_time()
        own = fit(X[:n_rows], y[:n_rows], groups[:n_rows], None, KAPPA)
        seconds.append(time.process_time() - start)
        logistic = logistic_regression(n_rows).fit(X[:n_rows], y[:n_rows])
        behind.append(logistic.score(X[n_rows:], y[n_rows:]) - own.score(X[n_rows:], y[n_rows:]))
    what = f"accuracy on text behind LogisticRegression, {n_rows:,} rows x {X.shape[1]:,}"
    return _row("text", what, "1", float(np.mean(behind)), 0.01, seconds=median(seconds))


def path_row(name: str, constraint: str, repeats: int) -> Row:
    """Return seconds of a path of 30 points over those of its hardest single fit.

    The reason says what the model without constraints and one evaluation for each point make.
    """
    X, y, groups = generated(2000) if name == "generated" else load(name)
    path = partial(
        fairness_path, FairLogisticClassifier(constraint), X, y, sensitive_features=groups
    )
    found = path()
    single = partial(fit, X, y, groups, constraint)
    cost = [single(kappa).result_.data_passes for kappa in found.kappas]
    free = fit(X, y, groups, None, KAPPA).result_.data_passes
    hardest = partial(single, found.kappas[int(np.argmax(cost))])
    seconds = in_turns({"path": path, "fit": hardest}, repeats, clock=time.process_time)
    return _row(
        "path",
        f"path of {len(found)} points, {name}, {constraint}",
        "the hardest single fit",
        ratio(seconds["path"], seconds["fit"]),
        3.0,
        seconds=median(seconds["path"]),
        passes=f"{found.data_passes.sum():.0f} ({max(cost):.0f})",
        least=(free + len(found)) / max(cost),
    )


def parallel_rows(data: Data, repeats: int) -> Iterator[Row]:
    """Yield what two workers leave of the seconds of one, for our search and scikit-learn's.

    The last row is for scikit-learn's own LogisticRegression, which shows what can be expected.
    """
    X, y, groups = data

    def ours(n_jobs: int) -> None:
        FairLogisticClassifierCV(n_kappas=10, n_jobs=n_jobs).fit(X, y, sensitive_features=groups)

    def grid(n_jobs: int) -> None:
        with config_context(enable_metadata_routing=True):
            one = FairLogisticClassifier()
            search = GridSearchCV(one, {"kappa": [0.01, 0.02, 0.05, 0.1]}, n_jobs=n_jobs)
            search.fit(X, y, sensitive_features=groups)

    def logistic(n_jobs: int) -> None:
        one = logistic_regression(len(y))
        GridSearchCV(one, {"C": np.geomspace(1e-3, 1e3, 12)}, n_jobs=n_jobs).fit(X, y)

    searches: Mapping[str, Callable[[int], None]] = {
        "FairLogisticClassifierCV": ours,
        "GridSearchCV of FairLogisticClassifier": grid,
        "GridSearchCV of LogisticRegression": logistic,
    }
    for name, search in searches.items():
        search(2)  # the workers start
        runs = {"one": partial(search, 1), "two": partial(search, 2)}
        with threadpool_limits(1):  # as in workers
            seconds = in_turns(runs, repeats, clock=time.perf_counter)
        figure = ratio(seconds["two"], seconds["one"])
        what = f"{name}, {len(y):,} rows, n_jobs=2"
        yield _row("jobs", what, "n_jobs=1", figure, 0.6, seconds=median(seconds["two"]))


def add_options(parser: ArgumentParser) -> None:
    """Add the number of rows, the data sets of paths, --repeats and --docs."""
    parser.add_argument("--rows", type=int, default=Default(1_000_000, 150_000), help="many rows")
    parser.add_argument("--text-rows", type=int, default=Default(4000, 500), help="rows of text")
    add_choice(parser, "--paths", PATHS, quick=["generated"], help="data sets of the paths")
    parser.add_argument(
        "--most-rows", type=int, default=0, help="rows of a larger table, such as 10000000"
    )
    parser.add_argument(
        "--parallel-rows",
        type=int,
        nargs="+",
        default=Default([20_000, 200_000], [2000]),
        help="rows of the searches with n_jobs",
    )
    parser.add_argument("--repeats", type=int, default=Default(5, 1), help="timed runs of each")
    parser.add_argument("--docs", type=Path, default=None, help="folder of the page speed.md")


def run(options: Namespace) -> None:
    """Write targets.md, targets.csv and, with --docs, the figures of the page."""
    repeats, many = options.repeats, many_rows(options.rows)
    few = make_biased_classification(1000, n_features=20, gap=0.3, random_state=0)
    with threadpool_limits(1):  # threads of one fit would use CPU time while the next one runs
        rows = [
            *against_logistic("small", "1,000 rows x 20", few, 8 * repeats, 2.0),
            *against_logistic("a9a", "a9a", load("a9a"), 2 * repeats, 1.2),
            text_row(options.text_rows),
        ]
    rows += large(many, repeats)
    if options.most_rows:
        rows += large(many_rows(options.most_rows), 1)
    for name in options.paths:
        with threadpool_limits(1):
            rows += [path_row(name, str(constraint), repeats) for constraint in CONSTRAINTS[1:]]
    for n_rows in options.parallel_rows:
        rows += parallel_rows(generated(n_rows), repeats)
    write_table(rows, "targets", "Targets for fits in memory", options.out)
    if options.docs is not None:
        page = options.docs / "speed.md"
        prose = page.read_text().split(_FIGURES)[0]
        page.write_text(f"{prose}{_FIGURES}\n{environment()}.\n\n{as_markdown(rows)}")
