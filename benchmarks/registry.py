"""The table of benchmarks: names, the module of each, and one line about what it measures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast


class Module(Protocol):
    """What a benchmark's module has.

    Importing the module and adding its options must not import optional packages
    (matplotlib, fairlearn): import them in the functions that use them.
    """

    @staticmethod
    def add_options(parser: ArgumentParser) -> None:
        """Add the benchmark's own options; --quick and --out are there already."""

    @staticmethod
    def run(options: Namespace) -> None:
        """Measure, print the tables and write them to `options.out`."""


@dataclass(frozen=True)
class Benchmark:
    """A line of the table.

    Attributes
    ----------
    name : str
        What the command line calls it.
    module : str
        The full name of the module, see :class:`Module`.
    description : str
        What it measures, in one line.
    in_all : bool
        Whether ``python -m benchmarks all`` runs it.
    """

    name: str
    module: str
    description: str
    in_all: bool = True

    def load(self) -> Module:
        """Import and return the module."""
        return cast(Module, import_module(self.module))


_TABLE = (
    Benchmark("compare", "benchmarks.compare", "Speed of this checkout against another one"),
    Benchmark(
        "targets",
        "benchmarks.targets",
        "Speed and memory of fits in memory against their targets",
    ),
    Benchmark(
        "speed",
        "benchmarks.speed",
        "Seconds of a fit on a9a against scikit-learn's LogisticRegression",
    ),
    Benchmark(
        "reductions",
        "benchmarks.reductions",
        "Time and accuracy against fairlearn's ExponentiatedGradient at the same gap",
    ),
    Benchmark(
        "trace",
        "benchmarks.trace",
        "Files, functions, calls and depth of a default fit, in all and from the solver's call on",
    ),
    Benchmark("memory", "benchmarks.memory", "Peak memory of a fit beyond the data"),
    Benchmark("scaling", "benchmarks.scaling", "Seconds of a fit against the number of rows"),
    Benchmark(
        "scale",
        "benchmarks.scale",
        "Dask collections: overhead of a round, CPU per row, memory of workers, two workers",
    ),
    Benchmark(
        "many_rows",
        "benchmarks.many_rows",
        "Mini-batch solvers on a million rows: data passes to 1% of the optimum",
    ),
    Benchmark(
        "solution",
        "benchmarks.solution",
        "The default solver's answers against SciPy's SLSQP, measured by NumPy formulas",
    ),
    Benchmark(
        "path", "benchmarks.path", "A path of 30 fits against the hardest of its single fits"
    ),
    Benchmark(
        "decisions",
        "benchmarks.decisions",
        'Bounds on decisions (enforce="decision") against fairlearn\'s methods',
    ),
    Benchmark(
        "several_classes",
        "benchmarks.several_classes",
        'Bounds on predictions of several classes (enforce="decision") against fits on scores',
    ),
    Benchmark(
        "tiny_groups",
        "benchmarks.tiny_groups",
        "Groups of few rows: pooled gaps on test rows, and what generalises",
    ),
    Benchmark(
        "confidence",
        "benchmarks.confidence",
        "Bounds for the population: how often a model is found, how often it errs, its accuracy",
    ),
    Benchmark(
        "boosters",
        "benchmarks.boosters",
        "Boosted trees under constraints against other methods around LightGBM",
    ),
    Benchmark(
        "fair_thresholds",
        "benchmarks.fair_thresholds",
        "Thresholds for any classifier against fairlearn's ThresholdOptimizer and OxonFair",
    ),
    Benchmark(
        "thresholds",
        "benchmarks.thresholds",
        "What many thresholds cost: ROC parity and partial parity",
    ),
    Benchmark(
        "many_groups",
        "benchmarks.many_groups",
        "What 547 overlapping groups cost: an evaluation and a fit",
    ),
    Benchmark("reports", "benchmarks.reports", "CPU seconds of a report of 2, 20 and 200 groups"),
    Benchmark(
        "networks",
        "benchmarks.networks",
        "Solvers that train FairNetworkClassifier: loss, gap and seconds on test rows",
    ),
    Benchmark(
        "e7",
        "benchmarks.e7",
        "A network with 800 intersectional groups: PLADA and the multiplier model (PLADA, 5.3)",
    ),
    Benchmark(
        "all_solvers",
        "benchmarks.all_solvers",
        "Every solver on every constraint: objective, violation, KKT residual, passes, seconds",
    ),
    Benchmark(
        "minority_rate",
        "benchmarks.minority_rate",
        "Minority rate in an L1 ball, six methods (IPC, section 5)",
    ),
    Benchmark(
        "roc_fairness",
        "benchmarks.roc_fairness",
        "Least ROC unfairness for a bound on the hinge loss (3S-Econ, Problem 1)",
    ),
    Benchmark(
        "scad_demographic_parity",
        "benchmarks.scad_demographic_parity",
        "Hinge loss and SCAD under demographic parity (3S-Econ, Problem 2)",
    ),
    Benchmark(
        "neyman_pearson",
        "benchmarks.neyman_pearson",
        "Neyman-Pearson classification of MNIST's ten digits (3S-Econ, Problem 3)",
    ),
    Benchmark(
        "partial_parity",
        "benchmarks.partial_parity",
        "Partial demographic parity on test rows (IDCA, section 7.1)",
    ),
    Benchmark(
        "weak_partial_parity",
        "benchmarks.weak_partial_parity",
        "Weak partial demographic parity on test rows (IDCA, section 7.2)",
    ),
    Benchmark(
        "e8",
        "benchmarks.e8",
        "A ranker with two constraints per query, five methods (PLADA, appendix D.3)",
    ),
    Benchmark(
        "new_queries",
        "benchmarks.new_queries",
        "Bounds of rankers on queries that are not of the training rows: linear, boosted",
    ),
    Benchmark(
        "additions",
        "benchmarks.additions",
        "What the defaults add to the printed algorithms, and what it buys",
    ),
    Benchmark(
        "papers",
        "benchmarks.papers",
        "Every line of the papers' tables: published, with paper(), by default",
    ),
    Benchmark(
        "sensitivity",
        "benchmarks.sensitivity",
        "The papers' figures about parameters and progress: 3S-Econ 1, PLADA 4 to 6, IDCA 9 and 10",
    ),
    Benchmark(
        "peers",
        "benchmarks.peers",
        "The same task for fairlearn, scikit-lego, fairret, OxonFair and others: frontiers, cost",
    ),
    Benchmark(
        "fuzz",
        "benchmarks.fuzz.command",
        "Random problems and settings, checked by independent formulas",
        in_all=False,
    ),
)
BENCHMARKS = {one.name: one for one in _TABLE}
