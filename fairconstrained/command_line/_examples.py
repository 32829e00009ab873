"""Example data, with the answers to the questions that the command line asks about a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from fairconstrained.command_line._files import DataError
from fairconstrained.datasets import fetch_adult


@dataclass(frozen=True)
class Example:
    """A table, and the options that a file would be given with.

    Attributes
    ----------
    load : callable
        Returns the table.
    options : dict
        The options by name: what the file is called, its columns, and a kappa that is active.
    """

    load: Callable[[], pd.DataFrame]
    options: dict[str, Any]

    def table(self) -> pd.DataFrame:
        """Return the table.

        Raises
        ------
        DataError
            If the data cannot be fetched.
        """
        try:
            return self.load()
        except OSError as error:
            advice = "\n".join([str(error), *getattr(error, "__notes__", [])])
            name = self.options["file"]
            raise DataError(f"The data set {name!r} is not available.\n{advice}") from error


def _diabetes() -> pd.DataFrame:
    bunch = load_diabetes(scaled=False, as_frame=True)
    age = np.where(bunch.data["age"] >= 50, "50 and over", "under 50")
    fast = np.where(bunch.target > bunch.target.median(), "fast", "slow")
    return bunch.data.assign(age=age, progression=fast)


def _adult() -> pd.DataFrame:
    bunch = fetch_adult()
    categories = bunch.data.select_dtypes("category").astype(object)
    income = np.where(bunch.target, ">50K", "<=50K")
    return bunch.data.assign(**dict(categories.items()), income=income)


EXAMPLES = {
    "diabetes": Example(
        _diabetes,
        {
            "file": "diabetes",
            "target": "progression",
            "positive": "fast",
            "sensitive": ["age"],
            "kappa": 0.02,
        },
    ),
    "adult": Example(
        _adult,
        {
            "file": "adult",
            "target": "income",
            "positive": ">50K",
            "sensitive": ["sex"],
            "kappa": 0.05,
        },
    ),
}


def next_runs() -> str:
    """Return what to try after an example."""
    program, here = Path(sys.executable), Path.cwd()
    python = os.fspath(program.relative_to(here) if program.is_relative_to(here) else program)
    return (
        "Try next:\n"
        f"  {python} -m fairconstrained --constraint equalized_odds --report report.html\n"
        f"  {python} -m fairconstrained data.csv --target COLUMN --sensitive COLUMN\n"
        "and docs/tour.md for your own data."
    )
