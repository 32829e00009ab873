"""Options that benchmarks share, and defaults that ``--quick`` changes."""

import argparse
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Default:
    """The default of an option: one value for a full run, one for a quick one."""

    full: object
    quick: object

    def __str__(self) -> str:
        """Return both, for ``--help``."""
        return f"{_text(self.full)}; with --quick: {_text(self.quick)}"


def _text(value) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Show the defaults, and the description as it is."""


def make_parser(name: str, description: str) -> ArgumentParser:
    """Return a parser without options whose ``--help`` shows the defaults."""
    given = {"prog": f"python -m benchmarks {name}", "description": description}
    return ArgumentParser(formatter_class=_Formatter, **given)


def add_choice(parser, option: str, choices: list[str], *, quick: list[str], help: str):
    """Add an option that takes some of the choices: all by default, `quick` with ``--quick``."""
    names = list(choices)
    both, text = Default(names, list(quick)), f"{help}: some of {', '.join(names)}"
    parser.add_argument(option, nargs="+", choices=names, metavar="NAME", default=both, help=text)


def add_numbers(parser: ArgumentParser, option: str, full: list, quick: list, help: str) -> None:
    """Add an option that takes some numbers, of the type of its defaults."""
    kind = type(full[0])
    parser.add_argument(option, type=kind, nargs="+", default=Default(full, quick), help=help)


def parse(parser: ArgumentParser, arguments: list[str]) -> Namespace:
    """Return the options of a benchmark, with those that all benchmarks have."""
    text = "small data, few settings and repetitions"
    parser.add_argument("--quick", action="store_true", help=text)
    results = ROOT / "benchmarks" / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder of the tables")
    text = "the folder of the documentation: put the tables and the page there"
    parser.add_argument("--docs", type=Path, default=None, help=text)
    text = "write the page in --docs again, from the tables that are there"
    parser.add_argument("--no-run", action="store_true", help=text)
    options = parser.parse_args(arguments)
    for name, value in vars(options).items():
        if isinstance(value, Default):
            setattr(options, name, value.quick if options.quick else value.full)
    return options
