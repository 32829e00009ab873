"""Compare a classifier without and with a fairness constraint, on a file or on example data.

``python -m fairconstrained --help`` lists the options.
"""

import argparse
import ast
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import fairconstrained
from fairconstrained.command_line import OPTION_OF, DataError, print_text, run
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, resolve_constraints

_EXAMPLE = {
    "file": str(Path(__file__).with_name("command_line") / "diabetes.csv"),
    "target": "progression",
    "positive": "fast",
    "sensitive": ["age"],
}
_CONSTRAINT = "demographic_parity"
_EXAMPLE_KAPPA = 0.02  # where the constraint is active
_OBJECTS = ("", ".penalties", ".domains", ".functions", ".solvers")  # modules with values of --set


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, without the list of all options, and exit."""
        self.exit(2, f"{self.prog}: {message}\n")

    def print_help(self, file: Any = None) -> None:
        """Print the help; that its reader stops is no error."""
        print_text(self.format_help().rstrip())


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


def _pair(text: str) -> tuple[str, str]:
    """Return a name and its value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of a parameter: a literal or an object, else text."""
    name, value = _pair(text)
    if name in OPTION_OF:
        raise argparse.ArgumentTypeError(f"{name} has an option of its own: {OPTION_OF[name]}")
    try:
        return name, _value(ast.parse(value, mode="eval").body)
    except (SyntaxError, ValueError):
        return name, value
    except TypeError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from error


def _value(node: ast.expr) -> Any:
    """Return a literal of Python, or an object of this library such as ``SelectionRate(0.2)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for part in _OBJECTS:
            kind = getattr(import_module(f"fairconstrained{part}"), node.func.id, None)
            if isinstance(kind, type):
                given = {str(each.arg): _value(each.value) for each in node.keywords}
                return kind(*map(_value, node.args), **given)
    return ast.literal_eval(node)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m fairconstrained",
        description="Fit a classifier without and with a fairness constraint, and compare them.",
    )
    add = parser.add_argument
    add("--version", action="version", version=f"fairconstrained {fairconstrained.__version__}")
    add("file", nargs="?", help="a CSV or Parquet file; without one, an example is run")
    add(
        "--constraint", choices=list(CLASSIFIER_CONSTRAINTS), action="append", metavar="NAME",
        help="the fairness criterion: " + ", ".join(CLASSIFIER_CONSTRAINTS)
        + f" (default: {_CONSTRAINT})",
    )  # fmt: skip
    tolerance = parser.add_mutually_exclusive_group().add_argument
    tolerance("--kappa", type=float, help="the largest gap allowed (default: 0.05; example: 0.02)")
    tolerance("--ratio", type=_share, help="the smallest ratio of rates allowed, in place of kappa")
    add(
        "--enforce", choices=["score", "decision"], default="score",
        help="whether kappa bounds the gap of the mean probabilities or of the predictions "
        "(default: %(default)s)",
    )  # fmt: skip
    add(
        "--confidence", type=_share,
        help="with --enforce decision: bound the gap in the population with this confidence, "
        "and report intervals with it (default of intervals: 0.95)",
    )  # fmt: skip
    add("--check", action="store_true", help="exit with status 3 if the bound is not met")
    column = parser.add_argument_group("for a file").add_argument
    column("--target", metavar="COLUMN", help="the column to predict")
    column("--positive", metavar="VALUE", help="its favourable value; all others are one class")
    columns: Any = {"nargs": "+", "action": "extend", "metavar": "COLUMN", "default": []}
    column("--sensitive", **columns, help="the columns that form the groups")
    column(
        "--reference", type=_pair, **columns | {"metavar": "COLUMN=VALUE"},
        help="the reference groups of impact ratios (default: those selected most often)",
    )  # fmt: skip
    column(
        "--control", **columns,
        help="columns of strata, such as income bands: groups are compared in each stratum",
    )  # fmt: skip
    column("--drop", **columns, help="columns that are not features")
    column("--weight", metavar="COLUMN", help="the column with the weights of the rows")
    column(
        "--encoding",
        help="the encoding of the file (default: by its byte-order mark, or UTF-8, or cp1252)",
    )
    add(
        "--combine", choices=["intersection", "marginal"], default="intersection",
        help="whether rows with equal values in all sensitive columns form a group, or each "
        "column has its own groups (default: %(default)s)",
    )  # fmt: skip
    add(
        "--set", nargs="+", action="extend", default=[], type=_setting, metavar="NAME=VALUE",
        help="any other parameter of FairLogisticClassifier, such as alpha=0.01 or "
        "threshold=SelectionRate(0.2); constraint__NAME is a parameter of the constraint",
    )  # fmt: skip
    add(
        "--test-size", type=_share, default=0.25,
        help="the share of the rows that is used for testing only (default: %(default)s)",
    )  # fmt: skip
    add(
        "--least-share", type=_share, default=0.02,
        help="groups with a smaller share of the rows do not set the highest rate "
        "(default: %(default)s)",
    )  # fmt: skip
    add("--seed", type=_seed, default=0, help="the seed of the split (default: %(default)s)")
    add("--report", metavar="FILE", help="write a report on test rows to this .html or .md file")
    add("--model", metavar="FILE", help="write the fair model to this .skops or .joblib file")
    add("--json", metavar="FILE", help="write all measures to this JSON file")
    add("--path", metavar="FILE", help="plot accuracy against the gap, for many kappas")
    return parser


def _options(arguments: Sequence[str] | None) -> Namespace:
    """Return the options; those of the example if there is no file."""
    parser = _parser()
    options = parser.parse_args(arguments)
    options.constraint, *others = options.constraint or [_CONSTRAINT]
    if others:  # the last one alone would count
        parser.error("argument --constraint: name one; estimators in Python take a list of them")
    (constraint,) = resolve_constraints(options.constraint)
    if options.file is None:
        columns = [
            "target", "positive", "sensitive", "control", "reference", "drop", "weight", "encoding",
        ]  # fmt: skip
        if idle := " and ".join(f"--{name}" for name in columns if getattr(options, name)):
            parser.error(f"without a file with data, {idle} cannot be used: name it first.")
        vars(options).update(_EXAMPLE)
        if options.kappa is None and options.ratio is None and constraint.takes_kappa:
            options.kappa = _EXAMPLE_KAPPA
    try:
        constraint.with_defaults(kappa=options.kappa).checked_kappa()
    except ValueError as error:
        parser.error(f"argument --kappa: {error}")
    return options


def _next_runs() -> str:
    """Return what to try after the example."""
    program, here = Path(sys.executable), Path.cwd()
    python = os.fspath(program.relative_to(here) if program.is_relative_to(here) else program)
    return (
        "\nTry next:\n"
        f"  {python} -m fairconstrained --constraint equalized_odds --report report.html\n"
        f"  {python} -m fairconstrained data.csv --target COLUMN --sensitive COLUMN\n"
        "and docs/tour.md for your own data."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit status."""
    options = _options(arguments)
    try:
        status = run(options)
    except (DataError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.file == _EXAMPLE["file"]:
        print_text(_next_runs())
    return status


if __name__ == "__main__":
    sys.exit(main())
