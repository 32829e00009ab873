"""Compare a classifier without and with a fairness constraint on example data.

``python -m fairconstrained --help`` lists the data sets and constraints.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.datasets import fetch_adult
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_kappa

_FOLDS = 5


@dataclass(frozen=True)
class Example:
    """A data set for the comparison.

    Parameters
    ----------
    load : callable
        Returns (X, y): a DataFrame with a column of groups, and a Series of 0 and 1.
    question : str
        The question that y answers.
    sensitive : str
        The column of X with the groups; no model uses it.
    kappa : float
        The default tolerance; the constraint is active with it.
    next_runs : tuple of str
        Options of further runs, which are suggested at the end.
    """

    load: Callable[[], tuple[pd.DataFrame, pd.Series]]
    question: str
    sensitive: str
    kappa: float
    next_runs: tuple[str, ...]


def _load_diabetes() -> tuple[pd.DataFrame, pd.Series]:
    bunch = load_diabetes(scaled=False, as_frame=True)
    age = np.where(bunch.data["age"] >= 50, "50 and over", "under 50")
    return bunch.data.assign(age=age), (bunch.target > bunch.target.median()).astype(int)


def _load_adult() -> tuple[pd.DataFrame, pd.Series]:
    bunch = fetch_adult()
    return bunch.data.assign(sex=bunch.data["sex"].astype(str)), bunch.target


EXAMPLES = {
    "diabetes": Example(
        _load_diabetes,
        "Will the disease of a patient progress faster than the median?",
        "age",
        0.02,
        ("--data adult", "--constraint equalized_odds --kappa 0.01"),
    ),
    "adult": Example(
        _load_adult,
        "Does a person earn more than 50,000 dollars a year?",
        "sex",
        0.05,
        ("--data adult --kappa 0.01", "--data adult --constraint equal_opportunity --kappa 0.01"),
    ),
}

# The table shows gaps of rates that are bounded by kappa.
SHOWN = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")


def _pipeline(sensitive: str, constraint: Constraint | None) -> Pipeline:
    """Return the classifier behind a one-hot encoding of the categories."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categories = make_column_selector(dtype_include="category")
    columns = make_column_transformer(
        (encoder, categories), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    return make_pipeline(columns, FairLogisticClassifier(constraint, sensitive_columns=[sensitive]))


@dataclass(frozen=True)
class Figures:
    """Accuracy, rates and gaps of a model on some rows: one line of the table."""

    accuracy: float
    rates: list[float]
    decision_gap: float
    probability_gap: float
    seconds: float | None = None

    def cells(self) -> list[str]:
        """Return the figures as text."""
        numbers = [self.accuracy, *self.rates, self.decision_gap, self.probability_gap]
        seconds = "" if self.seconds is None else f"{self.seconds:.2f}"
        return [f"{number:.3f}" for number in numbers] + [seconds]


def _figures(
    scores: Array, y: pd.Series, groups: pd.Series, constraint: Constraint, seconds: float | None
) -> Figures:
    term = constraint.bind(2.0 * y.to_numpy() - 1.0, groups.to_numpy(), np.ones(len(y)))
    decisions = pd.Series(scores > 0, index=groups.index)
    return Figures(
        accuracy=float((decisions == (y == 1)).mean()),
        rates=list(decisions.groupby(groups).mean()),
        decision_gap=float(term.zero_one().gap(scores).max()),
        probability_gap=float(term.gap(scores).max()),
        seconds=seconds,
    )


def compare(
    X: pd.DataFrame, y: pd.Series, sensitive: str, constraint: Constraint
) -> dict[tuple[str, str], Figures]:
    """Return the figures of both models on the training rows and in a cross-validation.

    The cross-validated figures estimate those on new rows.
    """
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    found = {}
    for name, used in (("unconstrained", None), ("fair", constraint)):
        model, start = _pipeline(sensitive, used), time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        seen = model.decision_function(X)
        unseen = cross_val_predict(model, X, y, cv=folds, method="decision_function")
        found[name, "training"] = _figures(seen, y, X[sensitive], constraint, seconds)
        found[name, "cross-validated"] = _figures(unseen, y, X[sensitive], constraint, None)
    return found


def _table(found: dict[tuple[str, str], Figures], groups: Sequence[str]) -> str:
    """Return the figures as a table in plain text."""
    above = ["", "", "", *["rate of"] * len(groups), "gap of", "gap of", ""]
    below = ["model", "rows", "accuracy", *groups, "predictions", "probabilities", "seconds"]
    lines = [above, below]
    lines += [[*where, *figures.cells()] for where, figures in found.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def align(cells: list[str]) -> str:
        words = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        return "  ".join(words + numbers).rstrip()

    return "\n".join(map(align, lines))


def _introduction(X: pd.DataFrame, example: Example, constraint: Constraint, name: str) -> str:
    sizes = X[example.sensitive].value_counts().sort_index()
    groups = ", ".join(f"{group} ({size})" for group, size in sizes.items())
    return (
        f"{example.question} {len(X)} rows, {X.shape[1] - 1} features.\n"
        f"Groups by {example.sensitive}, which neither model uses: {groups}.\n"
        f"Constraint: {name.replace('_', ' ')} with kappa = {constraint.kappa:g}."
    )


def _conclusion(found: dict[tuple[str, str], Figures], kappa: float, example: Example) -> str:
    before, after = found["unconstrained", "training"], found["fair", "training"]
    unseen = [found[name, "cross-validated"].decision_gap for name in ("unconstrained", "fair")]
    lines = [
        "kappa bounds the gap of the mean predicted probabilities on the training rows; it is now "
        f"{after.probability_gap:.3f}.",
        "Predictions compare probabilities with 1/2. kappa does not bound their gap. It changes "
        f"from {before.decision_gap:.3f} to {after.decision_gap:.3f}",
        f"on the training rows and from {unseen[0]:.3f} to {unseen[1]:.3f} in the "
        "cross-validation.",
        "",
        "Try next:",
        *(f"  {_python()} -m fairconstrained {options}" for options in example.next_runs),
        "and README.md for your own data.",
    ]
    return "\n".join(lines)


def _python() -> str:
    """Return the command of this interpreter, relative to the current folder if possible."""
    program, here = Path(sys.executable), Path.cwd()
    return os.fspath(program.relative_to(here) if program.is_relative_to(here) else program)


def _tolerance(text: str) -> float:
    try:
        return check_kappa(float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError("a number between 0 and 1 is needed") from error


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fairconstrained",
        description="Fit a classifier without and with a fairness constraint, and compare them.",
    )
    parser.add_argument(
        "--data", choices=list(EXAMPLES), default="diabetes",
        help="diabetes comes with scikit-learn; adult is read from the folder that "
        "FAIRCONSTRAINED_DATA names, else from OpenML (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--constraint", choices=SHOWN, default="demographic_parity",
        help="the fairness criterion (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--kappa", type=_tolerance, help="the largest gap allowed")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit status."""
    options = _arguments(arguments)
    example = EXAMPLES[options.data]
    kappa = example.kappa if options.kappa is None else options.kappa
    constraint = CONSTRAINTS[options.constraint](kappa=kappa)
    try:
        X, y = example.load()
    except OSError as error:
        advice = "\n".join([str(error), *getattr(error, "__notes__", [])])
        print(f"The data set {options.data!r} is not available.\n{advice}", file=sys.stderr)
        return 1
    print(_introduction(X, example, constraint, options.constraint), flush=True)
    found = compare(X, y, example.sensitive, constraint)
    groups = sorted(X[example.sensitive].unique())
    print(f"\n{_table(found, groups)}\n\n{_conclusion(found, kappa, example)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
