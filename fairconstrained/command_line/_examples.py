"""The comparison on example data."""

from __future__ import annotations

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

from fairconstrained.command_line._comparison import Figures, exit_status, table, unit, verdict
from fairconstrained.constraints import CONSTRAINTS, Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.datasets import fetch_adult
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.inspection.assessment import AssessedRows

_FOLDS = 5

# The table shows gaps of rates that are bounded by kappa.
SHOWN = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds")


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
    """

    load: Callable[[], tuple[pd.DataFrame, pd.Series]]
    question: str
    sensitive: str
    kappa: float


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
    ),
    "adult": Example(
        _load_adult,
        "Does a person earn more than 50,000 dollars a year?",
        "sex",
        0.05,
    ),
}

_NEXT_RUNS = (
    ("adult", "demographic_parity", 0.05, "--data adult"),
    ("diabetes", "equalized_odds", 0.01, "--constraint equalized_odds --kappa 0.01"),
    ("adult", "demographic_parity", 0.01, "--data adult --kappa 0.01"),
    (
        "adult",
        "equal_opportunity",
        0.01,
        "--data adult --constraint equal_opportunity --kappa 0.01",
    ),
)


def next_runs(data: str, constraint: str, kappa: float) -> list[str]:
    """Return the options of two further runs, which differ from the one just made."""
    made = data, constraint, kappa
    others = [run for run in _NEXT_RUNS if run[:3] != made]
    # After the first run the other data set comes first, then more of the same one.
    others.sort(key=lambda run: data == "adult" and run[0] != data)
    return [options for *_, options in others[:2]]


def run_example(data: str, name: str, kappa: float | None, check: bool = False) -> int:
    """Print the comparison on a data set; return the exit status.

    Parameters
    ----------
    data : str
        The name of the data set.
    name : str
        The name of the constraint.
    kappa : float or None
        Its tolerance; None takes the data set's default.
    check : bool, default=False
        Whether a bound that is not met is the exit status.
    """
    example = EXAMPLES[data]
    kappa = example.kappa if kappa is None else kappa
    constraint = CONSTRAINTS[name](kappa=kappa)
    try:
        X, y = example.load()
    except OSError as error:
        advice = "\n".join([str(error), *getattr(error, "__notes__", [])])
        print(f"The data set {data!r} is not available.\n{advice}", file=sys.stderr)
        return 1
    found, fair = compare(X, y, example.sensitive, constraint)
    groups = sorted(X[example.sensitive].unique())
    introduction = _introduction(X, example, constraint, name)
    conclusion = _conclusion(found, next_runs(data, name, kappa))
    print(verdict(fair), introduction, table(found, groups), conclusion, sep="\n\n")
    return exit_status(fair, check)


def _pipeline(sensitive: str, constraint: Constraint | None) -> Pipeline:
    """Return the classifier behind a one-hot encoding of the categories."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categories = make_column_selector(dtype_include="category")
    columns = make_column_transformer(
        (encoder, categories), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    return make_pipeline(columns, FairLogisticClassifier(constraint, sensitive_columns=[sensitive]))


def compare(
    X: pd.DataFrame, y: pd.Series, sensitive: str, constraint: Constraint
) -> tuple[dict[tuple[str, str], Figures], FairLogisticClassifier]:
    """Return the figures of both models, and the fair model, fitted to all rows.

    The cross-validated figures estimate those on new rows.
    """
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    groups, labels = Groups.encode(X[sensitive]), 2.0 * y.to_numpy() - 1.0
    shown = groups.labels
    found = {}
    for name, used in (("unconstrained", None), ("fair", constraint)):
        model, start = _pipeline(sensitive, used), time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        seen = model.decision_function(X)
        unseen = cross_val_predict(model, X, y, cv=folds, method="decision_function")
        for rows, scores, spent in (("training", seen, seconds), ("cross-validated", unseen, None)):
            assessed = AssessedRows(labels, scores, groups, np.ones(len(labels)))
            found[name, rows] = Figures.of(assessed, constraint, shown, spent)
    return found, model[-1]


def _introduction(X: pd.DataFrame, example: Example, constraint: Constraint, name: str) -> str:
    sizes = X[example.sensitive].value_counts().sort_index()
    groups = ", ".join(f"{group} ({size})" for group, size in sizes.items())
    return (
        f"{example.question} {len(X)} rows, {X.shape[1] - 1} features.\n"
        f"Groups by {example.sensitive}, a column that neither model has: {groups}.\n"
        f"Constraint: {name.replace('_', ' ')} with kappa = {constraint.kappa:g}.\n"
        f"{unit(constraint)}"
    )


def _conclusion(found: dict[tuple[str, str], Figures], options: Sequence[str]) -> str:
    before, after = found["unconstrained", "training"], found["fair", "training"]
    unseen = [found[name, "cross-validated"].decision_gap for name in ("unconstrained", "fair")]
    lines = [
        "kappa bounds the gap of the mean predicted probabilities on the training rows; it is now "
        f"{after.score_gap:.3f}.",
        "Predictions compare probabilities with 1/2. kappa does not bound their gap. It changes "
        f"from {before.decision_gap:.3f} to {after.decision_gap:.3f}",
        f"on the training rows and from {unseen[0]:.3f} to {unseen[1]:.3f} in the "
        "cross-validation.",
        "",
        "Try next:",
        *(f"  {python()} -m fairconstrained {one}" for one in options),
        "and docs/tour.md for your own data.",
    ]
    return "\n".join(lines)


def python() -> str:
    """Return the command of this interpreter, relative to the current folder if possible."""
    program, here = Path(sys.executable), Path.cwd()
    return os.fspath(program.relative_to(here) if program.is_relative_to(here) else program)
