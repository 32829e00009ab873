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
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness.options import ROOT, Default
from benchmarks.harness.results import Row, at_most, write_table

LESS = 2
_SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutable(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes that `mutate` can change: no annotations, defaults or docstrings."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    statements = [statement for function in functions for statement in function.body]
    inner = [each for each in statements if not isinstance(each, ast.FunctionDef | ast.Raise)]
    nodes = dict.fromkeys(node for each in inner for node in ast.walk(each))
    return [node for node in nodes if _changes(node)]


def _changes(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=operator) | ast.Compare(ops=[operator]):
            return type(operator) in _SWAPPED
        case ast.BoolOp() | ast.IfExp() | ast.Constant(value=bool() | int() | float()):
            return True
    return False


def mutate(node: ast.AST) -> None:
    """Change a node in place."""
    match node:
        case ast.BinOp() | ast.BoolOp():
            node.op = _SWAPPED[type(node.op)]()
        case ast.Compare():
            node.ops = [_SWAPPED[type(node.ops[0])]()]
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int()):
            node.value += 1
        case ast.Constant():
            node.value = 2.0 * node.value + 0.1


def tests_of(package: str) -> list[str]:
    """Return the folder of a package's tests, or the files that import the package."""
    if (ROOT / "tests" / package).is_dir():
        return [f"tests/{package}"]
    files, name = sorted((ROOT / "tests").rglob("test_*.py")), f"fairconstrained.{package}"
    return [str(file.relative_to(ROOT)) for file in files if name in file.read_text()]


def survives(copy: Path, tests: list[str], seconds: float, *options: str) -> bool:
    """Return whether all tests pass in the copy, within the limit."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        given = {"cwd": copy, "timeout": seconds, "capture_output": True, "text": True}
        run = subprocess.run([*command, *options, *tests], **given)
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


def add_options(parser) -> None:
    """Add how many mutants, and their seed."""
    parser.add_argument("--count", type=int, default=Default(60, 2), help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutants")
    parser.add_argument("--seconds", type=float, default=1800.0, help="limit of a run of tests")


def run(options) -> None:
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
