"""Compare a classifier without and with a fairness constraint, on example data or on a file.

``python -m fairconstrained --help`` lists the options.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import fairconstrained
from fairconstrained.command_line import EXAMPLES, SHOWN, DataError, run_example, run_own_data
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.utils.validation import check_kappa


def _tolerance(text: str) -> float:
    try:
        return check_kappa(float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1") from error


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
    parser = argparse.ArgumentParser(
        prog="python -m fairconstrained",
        description="Fit a classifier without and with a fairness constraint, and compare them.",
    )
    parser.add_argument(
        "--version", action="version", version=f"fairconstrained {fairconstrained.__version__}"
    )
    parser.add_argument("file", nargs="?", help="a CSV or Parquet file; without one, example data")
    parser.add_argument(
        "--data", choices=list(EXAMPLES), default="diabetes",
        help="the example: diabetes comes with scikit-learn; adult is read from the folder that "
        "FAIRCONSTRAINED_DATA names, else from OpenML (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--constraint", choices=list(CLASSIFIER_CONSTRAINTS), default="demographic_parity",
        metavar="NAME",
        help="the fairness criterion: " + ", ".join(CLASSIFIER_CONSTRAINTS)
        + " (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--kappa", type=_tolerance, help="the largest gap allowed")
    own = parser.add_argument_group("for a file")
    own.add_argument("--target", help="the column to predict")
    own.add_argument("--positive", help="the favourable value of the target")
    own.add_argument("--sensitive", nargs="+", default=[], help="the columns that make the groups")
    own.add_argument(
        "--enforce", choices=["score", "decision"], default="score",
        help="whether kappa bounds the gap of the mean probabilities or of the predictions "
        "(default: %(default)s)",
    )  # fmt: skip
    own.add_argument(
        "--test-size", type=_share, default=0.25,
        help="the share of the rows that is used for testing only (default: %(default)s)",
    )  # fmt: skip
    own.add_argument("--seed", type=_seed, default=0, help="the seed of the split (default: 0)")
    own.add_argument("--report", help="write a report on the test rows to this HTML file")
    own.add_argument("--model", help="write the fair model to this .skops or .joblib file")
    own.add_argument("--json", help="write all measures to this JSON file")
    own.add_argument("--path", help="plot accuracy against the gap, for many kappas, to this file")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.file is not None:
        try:
            return run_own_data(options)
        except (DataError, ImportError) as error:
            print(error, file=sys.stderr)
            return 1
    roles = options.target, options.positive, options.sensitive
    if any((*roles, options.report, options.model, options.json, options.path)):
        parser.error(
            "--target, --positive, --sensitive and the files to write need a file with data."
        )
    if options.constraint not in SHOWN:
        parser.error(f"with example data --constraint is one of {', '.join(SHOWN)}.")
    return run_example(options.data, options.constraint, options.kappa)


if __name__ == "__main__":
    sys.exit(main())
