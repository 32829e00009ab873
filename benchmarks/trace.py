"""How much of the library a default fit enters: files, functions, calls, depth.

The whole fit, and the part from the call of the solver on. Calls of other packages do not count,
and the depth is that of the library's own frames.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import pandas as pd

import fairconstrained
from benchmarks.harness.results import Row, Rows, write_table
from fairconstrained import FairLogisticClassifier, make_biased_classification

PACKAGE = str(Path(fairconstrained.__file__).parent)


def counts(action: Callable[[], object], inside: str) -> Row:
    """Return what an action enters of the library, below files that have `inside` in their path."""
    entered, depth = list[tuple[int, str, str]](), 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal depth
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(PACKAGE):
            return
        if event == "return":
            depth = max(depth - 1, 0)
        elif depth or inside in file:
            depth += 1
            entered.append((depth, file, frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    calls = pd.DataFrame(entered, columns=["depth", "file", "function"])
    return {
        "files": calls.file.nunique(),
        "functions": len(calls[["file", "function"]].drop_duplicates()),
        "calls": len(calls),
        "depth": calls.depth.max(),
    }


def add_options(parser) -> None:
    """Add --rows and --columns."""
    parser.add_argument("--rows", type=int, default=1000, help="rows of X")
    parser.add_argument("--columns", type=int, default=10, help="columns of X")


def rows_of(X: object, y: object, groups: object) -> Rows:
    """Yield a row for each constraint and part of a fit."""
    for constraint in ("demographic_parity", "equalized_odds"):
        model = FairLogisticClassifier(constraint, kappa=0.02)
        model.fit(X, y, sensitive_features=groups)  # imports and caches come first
        for part, inside in (("whole fit", PACKAGE), ("from the solver's call on", "/solvers/")):
            fit = partial(model.fit, X, y, sensitive_features=groups)
            yield {"constraint": constraint, "part": part, **counts(fit, inside)}


def run(options) -> None:
    """Write trace.md and trace.csv."""
    data = make_biased_classification(options.rows, n_features=options.columns, random_state=0)
    title = f"{options.rows} x {options.columns}: what a fit enters"
    write_table(rows_of(*data), "trace", title, options.out)
