"""Compare a classifier without and with a fairness constraint, on example data or on a file.

``python -m fairconstrained --help`` lists the options.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import NoReturn

import fairconstrained
from fairconstrained.command_line import EXAMPLES, DataError, run_own_data
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, resolve_constraints

_DEFAULTS = {"enforce": "score", "test_size": 0.25, "seed": 0}
_COLUMNS = "target", "positive", "sensitive"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, without the list of all options, and exit."""
        self.exit(2, f"{self.prog}: {message}\n")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return share


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0 to 2**32 - 1")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m fairconstrained",
        description="Fit a classifier without and with a fairness constraint, and compare them.",
    )
    parser.add_argument(
        "--version", action="version", version=f"fairconstrained {fairconstrained.__version__}"
    )
    parser.add_argument("file", nargs="?", help="a CSV or Parquet file; without one, example data")
    parser.add_argument(
        "--data", choices=list(EXAMPLES),
        help="the example: diabetes comes with scikit-learn; adult is read from the folder that "
        "FAIRCONSTRAINED_DATA names, else from OpenML (default: diabetes)",
    )  # fmt: skip
    parser.add_argument(
        "--constraint", choices=list(CLASSIFIER_CONSTRAINTS), default="demographic_parity",
        metavar="NAME",
        help="the fairness criterion: " + ", ".join(CLASSIFIER_CONSTRAINTS)
        + " (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--kappa", type=float, help="the largest gap allowed")
    parser.add_argument(
        "--check", action="store_true", help="exit with status 3 if the bound is not met"
    )
    columns = parser.add_argument_group("for a file")
    columns.add_argument("--target", help="the column to predict")
    columns.add_argument("--positive", help="the favourable value of the target")
    columns.add_argument("--sensitive", nargs="+", help="the columns that make the groups")
    parser.add_argument(
        "--enforce", choices=["score", "decision"],
        help="whether kappa bounds the gap of the mean probabilities or of the predictions "
        f"(default: {_DEFAULTS['enforce']})",
    )  # fmt: skip
    parser.add_argument(
        "--test-size", type=_share,
        help="the share of the rows that is used for testing only "
        f"(default: {_DEFAULTS['test_size']})",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=_seed, help=f"the seed of the split (default: {_DEFAULTS['seed']})"
    )
    parser.add_argument("--report", help="write a report on the test rows to this HTML file")
    parser.add_argument("--model", help="write the fair model to this .skops or .joblib file")
    parser.add_argument("--json", help="write all measures to this JSON file")
    parser.add_argument(
        "--path", help="plot accuracy against the gap, for many kappas, to this file"
    )
    return parser


def _options(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> Namespace:
    """Return the options with their defaults; the parser refuses those that have no effect."""
    options = parser.parse_args(arguments)
    given = {name: value for name, value in vars(options).items() if value is not None}
    if "file" in given and "data" in given:
        parser.error("--data is for example data, and there is a file: leave out one of them.")
    idle = [f"--{name}" for name in _COLUMNS if name in given]
    if "file" not in given and idle:
        parser.error(f"without a file with data, {' and '.join(idle)} cannot be used.")
    if "file" not in given:
        example = EXAMPLES[options.data or "diabetes"].options
        (asked,) = resolve_constraints(options.constraint)
        takes = {name for name in example if name != "kappa" or asked.takes_kappa}
        given = {"data": "diabetes"} | {name: example[name] for name in takes} | given
    try:
        (asked,) = resolve_constraints(options.constraint, kappa=options.kappa)
        asked.checked_kappa()
    except ValueError as error:
        parser.error(f"argument --kappa: {error}")
    return Namespace(**{**vars(options), **_DEFAULTS, **given})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit status."""
    options = _options(_parser(), arguments)
    try:
        return run_own_data(options)
    except (DataError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
