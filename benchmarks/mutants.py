"""Power of the tests: how many random mutants the default run kills, and how many the full grid.

A mutant has one operator, comparison, constant or condition of the library changed. It is killed if
a test of its package's folder fails, or takes longer than the limit. The default run is to kill at
least as many mutants as the full grid (``pytest --grid``), less two. The mutants are made in a copy
of the tree.
"""

import ast
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness.options import ROOT, Default
from benchmarks.harness.tables import Row, at_most, write_table

LESS = 2
_BINARY: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult,
}  # fmt: skip
_COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _bodies(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of the statements of functions: no annotations, defaults or docstrings."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef | ast.Raise):
                    yield from ast.walk(statement)


def mutable(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes that `mutate` can change."""
    nodes = []
    for node in dict.fromkeys(_bodies(tree)):
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)
        binary = isinstance(node, ast.BinOp) and type(node.op) in _BINARY
        compared = isinstance(node, ast.Compare) and len(node.ops) == 1
        if number or binary or compared or isinstance(node, ast.BoolOp | ast.IfExp):
            nodes.append(node)
    return nodes


def mutate(node: ast.AST) -> None:
    """Change a node in place."""
    match node:
        case ast.BinOp():
            node.op = _BINARY[type(node.op)]()
        case ast.Compare():
            node.ops = [_COMPARED[type(node.ops[0])]()]
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int() | float()):
            node.value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value + 0.1


def tests_of(package: str) -> list[str]:
    """Return the folder of a package's tests, or the files that import the package."""
    if (ROOT / "tests" / package).is_dir():
        return [f"tests/{package}"]
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(f.relative_to(ROOT)) for f in files if f"fairconstrained.{package}" in f.read_text()
    ]


def survives(copy: Path, tests: list[str], seconds: float, *options: str) -> bool:
    """Return whether all tests pass in the copy, within the limit."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *options, *tests], cwd=copy, timeout=seconds, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return False
    if run.returncode not in (0, 1, 2):  # an error of the command, or no tests
        raise RuntimeError(f"pytest {' '.join(tests)}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode == 0


def mutants(count: int, seed: int) -> Iterator[tuple[Path, str, str]]:
    """Yield a file of the library, its changed text, and what is changed: packages take turns."""
    rng = np.random.default_rng(seed)
    library = ROOT / "fairconstrained"
    packages = [folder for folder in sorted(library.iterdir()) if (folder / "__init__.py").exists()]
    order = [packages[k] for k in rng.permutation(len(packages))]
    for k in range(count):
        files = sorted(order[k % len(order)].rglob("*.py"))
        sizes = np.array([len(mutable(ast.parse(file.read_text()))) for file in files], float)
        file = files[rng.choice(len(files), p=sizes / sizes.sum())]
        tree = ast.parse(file.read_text())
        nodes = mutable(tree)
        node = nodes[rng.integers(len(nodes))]
        before = ast.unparse(node)
        mutate(node)
        what = f"line {node.lineno}: {before} -> {ast.unparse(node)}"  # type: ignore[attr-defined]
        yield file.relative_to(ROOT), ast.unparse(tree), what


def add_options(parser: ArgumentParser) -> None:
    """Add how many mutants, and their seed."""
    parser.add_argument("--count", type=int, default=Default(60, 2), help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutants")
    parser.add_argument("--seconds", type=float, default=1800.0, help="limit of a run of tests")


def run(options: Namespace) -> None:
    """Write mutants.md and mutants.csv."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "results"))
        for file, text, what in mutants(options.count, options.seed):
            tests = tests_of(file.parts[1])
            (copy / file).write_text(text)
            default = not survives(copy, tests, options.seconds)
            full = default or not survives(copy, tests, options.seconds, "--grid")
            shutil.copy(ROOT / file, copy / file)
            rows.append({"file": str(file), "mutant": what, "default": default, "full": full})
            print(*rows[-1].values(), flush=True)
    default, full = (sum(row[name] for row in rows) for name in ("default", "full"))
    title = f"{default} of {len(rows)} mutants killed by the default run, {full} by the full grid"
    write_table(rows, "mutants", f"{title}: {at_most(full - LESS, default)}", options.out)
