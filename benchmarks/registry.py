"""The benchmarks by name: each is a module, whose docstring begins with what it measures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Protocol, cast


class Module(Protocol):
    """What a benchmark's module has.

    Importing the module and adding its options must not import optional packages
    (matplotlib, fairlearn): import them in the functions that use them.
    """

    __doc__: str

    @staticmethod
    def add_options(parser: ArgumentParser) -> None:
        """Add the benchmark's own options; --quick and --out are there already."""

    @staticmethod
    def run(options: Namespace) -> None:
        """Measure, print the tables and write them to `options.out`."""


BENCHMARKS = (
    "compare", "targets", "speed", "trace", "scale", "all_solvers", "decisions", "bounds", "peers",
    "papers", "fuzz", "mutants",
)  # fmt: skip


def load(name: str) -> Module:
    """Import and return the module of a benchmark."""
    return cast(Module, import_module(f"benchmarks.{'fuzz.command' if name == 'fuzz' else name}"))


def description(name: str) -> str:
    """Return what a benchmark measures, in one line."""
    return load(name).__doc__.partition("\n")[0]
