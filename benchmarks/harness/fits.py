"""Fits of the estimator on a9a that several benchmarks measure, and scikit-learn's counterpart."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import product
from typing import Any

from sklearn.linear_model import LogisticRegression

from benchmarks.harness.data import Data, load
from benchmarks.harness.options import Default, add_choice
from fairconstrained import FairLogisticClassifier

ALPHA = 1e-4
KAPPAS = (0.1, 0.05, 0.02, 0.01)
CONSTRAINTS = ("demographic_parity", "equalized_odds")


def add_grid(parser: ArgumentParser, quick: Sequence[str] = CONSTRAINTS) -> None:
    """Add the options for which fits are measured, and on how many rows."""
    add_choice(parser, "--constraints", CONSTRAINTS, quick=quick, help="constraints")
    parser.add_argument(
        "--kappas", type=float, nargs="+", default=Default(list(KAPPAS), [0.05]), help="tolerances"
    )
    parser.add_argument(
        "--rows", type=int, default=Default(None, 3000), help="the first so many rows of a9a"
    )


def grid(options: Namespace) -> list[tuple[str, float]]:
    """Return constraints and kappas."""
    return list(product(options.constraints, options.kappas))


def rows_of(options: Namespace) -> Data:
    """Return the rows of a9a that the options ask for."""
    X, y, groups = load("a9a")
    return X[: options.rows], y[: options.rows], groups[: options.rows]


def where(options: Namespace) -> str:
    """Return what the rows are, for titles."""
    return "a9a" if options.rows is None else f"The first {options.rows:,} rows of a9a"


def fit(X: Any, y: Any, groups: Any, constraint: Any, kappa: float) -> FairLogisticClassifier:
    """Return our fit with everything else at its default."""
    clf = FairLogisticClassifier(constraint, kappa, alpha=ALPHA)
    return clf.fit(X, y, sensitive_features=groups)


def logistic_regression(n_rows: int) -> LogisticRegression:
    """Return scikit-learn's estimator with the same penalty (its loss is a sum, ours a mean)."""
    return LogisticRegression(solver="lbfgs", tol=1e-4, C=1.0 / (n_rows * ALPHA), max_iter=1000)
