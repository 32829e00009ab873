"""How much of the library a default fit enters: files, functions, calls, depth.

The whole fit, and the part from the call of the solver on. Calls of other packages do not count,
and the depth is that of the library's own frames.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import fairconstrained
from benchmarks.harness.options import Default
from benchmarks.harness.tables import Row, write_table
from fairconstrained import FairLogisticClassifier, make_biased_classification

PACKAGE = str(Path(fairconstrained.__file__).parent)


class Calls:
    """The calls of the library's functions while it is the profile function.

    Parameters
    ----------
    inside : str
        Calls count within a file whose path contains it.
    """

    def __init__(self, inside: str):
        self.inside, self.begun = inside, 0
        self.functions: set[tuple[str, str]] = set()
        self.calls = self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Count a call or a return."""
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(PACKAGE):
            return
        step = 1 if event == "call" else -1
        counts = self.begun > 0
        self.begun += step * (self.inside in file)
        if not counts and not self.begun:
            return
        self.depth += step
        if step > 0:
            self.calls += 1
            self.functions.add((file, frame.f_code.co_qualname))
            self.deepest = max(self.deepest, self.depth)

    def of(self, action: Callable[[], object]) -> Row:
        """Return the counts of an action."""
        sys.setprofile(self)
        try:
            action()
        finally:
            sys.setprofile(None)
        files = {file for file, _ in self.functions}
        return {
            "files": len(files),
            "functions": len(self.functions),
            "calls": self.calls,
            "depth": self.deepest,
        }


def add_options(parser: ArgumentParser) -> None:
    """Add --rows and --columns."""
    parser.add_argument("--rows", type=int, default=Default(1000, 1000), help="rows of X")
    parser.add_argument("--columns", type=int, default=Default(10, 10), help="columns of X")


def run(options: Namespace) -> None:
    """Write trace.md and trace.csv."""
    X, y, groups = make_biased_classification(
        options.rows, n_features=options.columns, random_state=0
    )
    rows: list[Row] = []
    for constraint in ("demographic_parity", "equalized_odds"):
        model = FairLogisticClassifier(constraint, kappa=0.02)
        model.fit(X, y, sensitive_features=groups)  # imports and caches come first
        for part, inside in (("whole fit", PACKAGE), ("from the solver's call on", "/solvers/")):
            counts = Calls(inside).of(partial(model.fit, X, y, sensitive_features=groups))
            rows.append({"constraint": constraint, "part": part, **counts})
    write_table(
        rows, "trace", f"{options.rows} x {options.columns}: what a fit enters", options.out
    )
