"""Speed and memory of fits against their targets: figure, target, met or not met.

All seconds are CPU seconds of this process with one thread, medians of runs in turns, and figures
are medians of the ratios of neighbouring runs. LogisticRegression has the same penalty and its
default tolerance, on the same rows. *passes alone* is the time of the data passes of the fit, each
as long as an evaluation of all functions and a gradient, in the units of the figure: no fit with
as many passes is faster. `--docs docs` writes the figures of the page speed.md.
"""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.harness.data import Data, generated_text, load
from benchmarks.harness.options import Default
from benchmarks.harness.processes import in_turns, ratio
from benchmarks.harness.results import Row, Rows, as_markdown, at_most, environment, write_table
from fairconstrained import FairLogisticClassifier, fairness_path, make_biased_classification
from fairconstrained.solvers import default_solver

_FIGURES = "## Figures\n"
RATES = {"demographic_parity": 0.02, "equalized_odds": 0.02}
RANKS = {"roc_parity": 0.02, "partial_dp": 0.02}
AUCS = {"group_auc": 0.2, "inter_group_auc": 0.02, "intra_group_auc": 0.02}


def biased(n_rows: int, n_features: int, n_groups: int = 2, dtype: type = float) -> Data:
    """Return generated rows, standardised; more than two groups divide the two at random."""
    X, y, groups = make_biased_classification(n_rows, n_features, gap=0.3, random_state=0)
    if n_groups > 2:
        groups = 2 * np.random.default_rng(0).integers(0, n_groups // 2, n_rows) + groups
    return StandardScaler().fit_transform(X).astype(dtype), y, groups


def wide() -> Data:
    """Return 2,000 dense rows with as many features."""
    X, y, groups = biased(2000, 20)
    return np.hstack([X, np.random.default_rng(0).normal(size=(2000, 1980))]), y, groups


@dataclass(frozen=True)
class Work:
    """Fits of some constraints to some rows, and the most that they may take.

    Attributes
    ----------
    data : callable
        Returns the rows.
    constraints : dict of str to float
        From names to tolerances.
    limits : tuple of float
        The target of each constraint, in units of a fit of LogisticRegression.
    alpha : float
        The penalty.
    repeats : int
        How often each fit is timed.
    solver : bool
        Whether the time from the solver's call on has a row, too: at most a LogisticRegression.
    """

    data: Callable[[], Data]
    constraints: dict[str, float]
    limits: tuple[float, ...]
    alpha: float = 1e-4
    repeats: int = 5
    solver: bool = False

    def rows(self, name: str) -> Rows:
        """Yield a row for every constraint."""
        X, y, groups = self.data()
        logistic = LogisticRegression(C=1.0 / (self.alpha * len(y)), max_iter=1000)
        for (constraint, kappa), limit in zip(self.constraints.items(), self.limits, strict=True):
            clf = FairLogisticClassifier(constraint, kappa, alpha=self.alpha, bound=False)
            given = {"X": X, "y": y, "sensitive_features": groups}
            runs = {"LR": partial(logistic.fit, X, y), "ours": partial(clf.fit, **given)}
            problem = clf.bind(X, y, None, groups).problem
            if self.solver:
                runs["solver"] = partial(default_solver(problem).minimize, problem.uncounted())
            runs["pass"] = partial(evaluate, problem, clf.fit(**given))
            seconds = in_turns(runs, self.repeats)
            passes = clf.result_.data_passes
            alone = passes * ratio(seconds["pass"], seconds["LR"])
            what, ours = f"{name}, {constraint}", (seconds["ours"], seconds["LR"])
            more = {"data passes": passes, "passes alone": alone}
            yield timed(what, "LogisticRegression", *ours, limit, **more)
            if self.solver:
                what, ours = f"{what}, from the solver's call on", (seconds["solver"], ours[1])
                yield timed(what, "LogisticRegression", *ours, 1.0)


def evaluate(problem, clf: FairLogisticClassifier) -> None:
    """Evaluate all functions and a gradient at the solution."""
    at = problem.at(clf.result_.w[: problem.n_variables])
    at.gradient(np.ones(len(at.constraints)))


def row(what: str, unit: str, figure: float, limit: float, **more: float) -> Row:
    """Return a line of the table."""
    return {
        "what": what,
        "in units of": unit,
        "figure": figure,
        "target": f"<= {limit:g}",
        "verdict": at_most(figure, limit),
        **dict.fromkeys(("seconds", "data passes", "passes alone"), ""),
        **more,
    }


def timed(what: str, unit: str, ours: list, others: list, limit: float, **more: float) -> Row:
    """Return a line with the ratio of neighbouring runs."""
    return row(what, unit, ratio(ours, others), limit, seconds=median(ours), **more)


WORK: dict[str, Work] = {
    "300 x 10": Work(partial(biased, 300, 10), RATES, (1.5, 1.8), repeats=41, solver=True),
    "1,000 x 10": Work(partial(biased, 1000, 10), RATES, (1.5, 1.8), repeats=41, solver=True),
    "300 x 60": Work(partial(biased, 300, 60), RATES, (2.0, 2.0), repeats=41, solver=True),
    "1,000 x 60": Work(partial(biased, 1000, 60), RATES, (2.0, 2.0), repeats=41, solver=True),
    "1,000 x 10 ": Work(partial(biased, 1000, 10), RANKS | AUCS, (2.5, 6, 4, 4, 4), repeats=11),
    "20,000 x 20": Work(partial(biased, 20_000, 20), RATES, (1.5, 1.5), repeats=11),
    "a9a": Work(partial(load, "a9a"), RATES | RANKS, (1.0, 1.0, 2.5, 6.0)),
    "100,000 x 20, float32": Work(partial(biased, 100_000, 20, 2, np.float32), RATES, (1.5, 1.5)),
    "131,000 x 20, float32": Work(partial(biased, 131_000, 20, 2, np.float32), RATES, (1.5, 1.5)),
    "1e6 x 20, float32": Work(partial(biased, 10**6, 20, 2, np.float32), RATES, (0.8, 0.8)),
    **{
        f"20,000 x 20, {k:,} groups": Work(partial(biased, 20_000, 20, k), RATES, (t, t), repeats=3)
        for k, t in ((20, 2.5), (200, 3.0), (1000, 3.5), (2000, 4.0))
    },
    "text 5,000 x 50,000": Work(partial(generated_text, 5000), RATES, (5.0, 5.0), repeats=1),
    "2,000 x 2,000": Work(wide, RATES, (8.0, 8.0), alpha=0.01, repeats=1),
}


def infeasible(repeats: int) -> Row:
    """Return the time of a fit to a bound that no model meets over that to one that some meet."""
    X, y, groups = biased(1000, 10)
    models = [FairLogisticClassifier("bounded_group_loss", k, bound=False) for k in (0.1, 0.5)]
    fits = [partial(model.fit, X, y, sensitive_features=groups) for model in models]
    seconds = in_turns(dict(zip(("none", "some"), fits, strict=True)), repeats)
    what = "1,000 x 10, a group loss that no model reaches"
    return timed(what, "a feasible fit", seconds["none"], seconds["some"], 2.0)


def path_row(name: str, data: Data, constraint: str, repeats: int) -> Row:
    """Return the time of a path of 30 points over that of its 30 single fits."""
    X, y, groups = data
    model = FairLogisticClassifier(constraint)
    path = partial(fairness_path, model, X, y, sensitive_features=groups)
    points = path()

    def singly() -> None:
        for kappa in points.kappas:
            clone(model).set_params(kappa=kappa, bound=False).fit(X, y, sensitive_features=groups)

    seconds = in_turns({"path": path, "fits": singly}, repeats)
    what, passes = f"path of {len(points)} points, {name}, {constraint}", points.data_passes.sum()
    more = {"data passes": float(passes)}
    return timed(what, "30 single fits", seconds["path"], seconds["fits"], 0.3, **more)


def text_row(n_rows: int) -> Row:
    """Return how far the accuracy on generated text is behind that of LogisticRegression."""
    behind = []
    for seed in range(10):
        X, y, _ = generated_text(2 * n_rows, seed=seed)
        logistic = LogisticRegression(C=1.0 / (1e-4 * n_rows), max_iter=1000)
        models = logistic, FairLogisticClassifier(None, alpha=1e-4, bound=False)
        theirs, ours = (m.fit(X[:n_rows], y[:n_rows]).score(X[n_rows:], y[n_rows:]) for m in models)
        behind.append(theirs - ours)
    what = f"accuracy on text behind LogisticRegression, {n_rows:,} rows x {X.shape[1]:,}"
    return row(what, "1", float(np.mean(behind)), 0.01)


def memory_row(n_rows: int, constraint: str) -> Row:
    """Return the peak of what a fit allocates, over X."""
    X, y, groups = biased(n_rows, 20, 2, np.float32)
    clf = FairLogisticClassifier(constraint, 0.02, bound=False)
    clf.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    tracemalloc.start()
    clf.fit(X, y, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return row(f"peak memory beyond X, {n_rows:,} x 20, float32", "X", peak / X.nbytes, 0.3)


def add_options(parser) -> None:
    """Add --only."""
    default = Default([*WORK, "rest"], ["300 x 10"])
    parser.add_argument("--only", nargs="+", metavar="WORK", default=default, help="some of these")


def run(options) -> None:
    """Write speed.md, speed.csv and, with --docs, the figures of the page."""
    rows: list[Row] = []
    with threadpool_limits(1):  # threads of one fit would use CPU time while the next one runs
        for name, work in WORK.items():
            if name in options.only:
                rows += work.rows(name.strip())
        if "rest" in options.only:
            paths = {"1,000 x 10": biased(1000, 10), "a9a": load("a9a")}
            rows += [path_row(*data, c, 3) for data in paths.items() for c in RATES]
            rows += [infeasible(21), text_row(4000), memory_row(100_000, "demographic_parity")]
    write_table(rows, "speed", "Targets of fits", options.out)
    if options.docs is not None:
        page = options.docs / "speed.md"
        prose = page.read_text().split(_FIGURES)[0]
        page.write_text(f"{prose}{_FIGURES}\n{environment()}.\n\n{as_markdown(rows)}")
