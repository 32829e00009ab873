"""List the benchmarks, run one, or run all: ``python -m benchmarks [NAME] [options]``."""

import subprocess
import sys
import time
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

from benchmarks.harness.options import make_parser, parse
from benchmarks.harness.results import write_table

# A benchmark is a module beside this one, or the package of the fuzzer.
BENCHMARKS = sorted({path.stem for path in Path(__file__).parent.glob("[a-z]*.py")} | {"fuzz"})
_USAGE = """
python -m benchmarks NAME --help         the options of a benchmark
python -m benchmarks NAME [--quick] ...  run it; --quick takes small data and few settings
python -m benchmarks all [--quick]       run all of them, each in its own process
"""


def load(name: str):
    """Return the module of a benchmark, with `add_options(parser)` and `run(options)`."""
    return import_module(f"benchmarks.{'fuzz.command' if name == 'fuzz' else name}")


def listing() -> str:
    """Return the names of the benchmarks with the first line of their documentation."""
    lines = [f"  {name:12}  {load(name).__doc__.splitlines()[0]}" for name in BENCHMARKS]
    return "\n".join(["Benchmarks:", *lines]) + "\n" + _USAGE


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of a benchmark's options."""
    module = load(name)
    parser = make_parser(name, module.__doc__)
    module.add_options(parser)
    return parser


def run_all(arguments: list[str]) -> int:
    """Run every benchmark in a process of its own; return how many of them failed."""
    options = parse(make_parser("all", "Run every benchmark in its own process"), arguments)
    rows = []
    for name in BENCHMARKS:
        if name in ("fuzz", "mutants"):  # they test the library and its tests
            continue
        start = time.perf_counter()
        ended = subprocess.run([sys.executable, "-m", "benchmarks", name, *arguments], check=False)
        status = "done" if ended.returncode == 0 else f"exit status {ended.returncode}"
        rows.append({"benchmark": name, "seconds": time.perf_counter() - start, "status": status})
    write_table(rows, "all", "Duration of every benchmark", options.out)
    return sum(row["status"] != "done" for row in rows)


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(listing())
        return 0
    name, *rest = arguments
    if name == "all":
        return run_all(rest)
    if name not in BENCHMARKS:
        print(f"There is no benchmark {name!r}.\n\n{listing()}", file=sys.stderr)
        return 2
    module, options = load(name), parse(parser_of(name), rest)
    if not options.no_run:
        module.run(options)
    for page in getattr(module, "PAGES", ()) if options.docs is not None else ():
        page.write(options.docs, None if options.no_run else options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
