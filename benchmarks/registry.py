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
    Benchmark(
        "all_solvers",
        "benchmarks.all_solvers",
        "Every solver on every constraint: objective, violation, KKT residual, passes, seconds",
    ),
    Benchmark(
        "path", "benchmarks.path", "A path of 30 fits against the hardest of its single fits"
    ),
    Benchmark(
        "fuzz",
        "benchmarks.fuzz.command",
        "Random problems and settings, checked by independent formulas",
        in_all=False,
    ),
)
BENCHMARKS = {one.name: one for one in _TABLE}
