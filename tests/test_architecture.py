"""Imports between packages follow one order, and no module is part of a cycle."""

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fairconstrained"
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))

# Every line may import from the lines above it, not from its own line nor from those below.
ORDER = """
exceptions utils
functions datasets
terms penalties domains models data
shards
problem metrics
objectives constraints solvers bounds
decisions inspection
estimators
deployment model_selection dask
plotting
reporting
command_line
__init__
__main__
"""
LEVELS = {name: level for level, line in enumerate(ORDER.split("\n")) for name in line.split()}


@cache
def tree_of(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def imports(path, *, types=True):
    """Yield the dotted names of the library and the benchmarks that a file imports.

    Imports in functions count; without `types` those for type checkers alone do not.
    """
    checked = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.If) and not types]
    checked = [node for node in checked if ast.unparse(node.test) == "TYPE_CHECKING"]
    left_out = {node for block in checked for node in ast.walk(block)}
    for node in ast.walk(tree_of(path)):
        if node in left_out:
            continue
        assert getattr(node, "level", 0) == 0, f"{path}: relative import in line {node.lineno}"
        above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if re.match(r"(fairconstrained|benchmarks)\b", above + alias.name):
                yield above + alias.name


def dotted(module):
    """Return the name of a module for its path."""
    parts = ["fairconstrained", *module.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_module_is_part_of_a_cycle():
    modules, graph = {dotted(module) for module in MODULES}, {}
    for module in MODULES:
        names = set(imports(PACKAGE / module, types=False))
        graph[dotted(module)] = {n if n in modules else n.rpartition(".")[0] for n in names}
        graph[dotted(module)] &= modules
    assert "fairconstrained.solvers.base" in graph["fairconstrained.solvers.sqp"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_every_package_has_its_place():
    tops = {module.split("/")[0].removesuffix(".py") for module in MODULES}
    assert sorted(LEVELS) == sorted(tops)


def test_imports_follow_the_order():
    for module in MODULES:
        own = module.split("/")[0].removesuffix(".py")
        names = {f"{name}.__init__".split(".")[1] for name in imports(PACKAGE / module)}
        wrong = [name for name in names - {own} if LEVELS.get(name, 99) >= LEVELS[own]]
        assert not wrong, f"{module} must not import from {wrong}"


def test_every_package_says_what_belongs_in_it():
    for package in (name for name in LEVELS if (PACKAGE / name).is_dir()):
        tree = tree_of(PACKAGE / package / "__init__.py")
        assert ast.get_docstring(tree), f"{package}/__init__.py has no docstring"


def test_the_architecture_names_what_exists():
    """Dotted names are files, modules, or names in the module or the class before the dot."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    code = {dotted(module): (PACKAGE / module).read_text() for module in MODULES}
    names = re.findall(r"`([A-Za-z_]+(?:\.[A-Za-z_]+)+)`", text)
    assert len(names) > 30
    for name in names:
        home, _, last = name.rpartition(".")
        places = [
            source
            for module, source in code.items()
            if module.endswith(f".{home}") or re.search(rf"^class {home}\b", source, re.MULTILINE)
        ]
        exists = (PACKAGE / name).is_file() or any(module.endswith(f".{name}") for module in code)
        exists = exists or any(re.search(rf"\b{last}\b", source) for source in places)
        assert exists, f"ARCHITECTURE.md names {name}, which does not exist"


@pytest.mark.parametrize("folder", ["fairconstrained", "benchmarks"])
def test_what_starts_with_an_underscore_is_imported_by_its_holder_only(folder):
    """The holder of a module is its package, that of another name its module."""
    for path in (ROOT / folder).rglob("*.py"):
        if "tests" in path.parts:
            continue
        importer = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in imports(path):
            for private in re.finditer(r"\b_[^_]", name):
                holder = name[: private.start()]
                assert f"{importer}.".startswith(holder), f"{importer} must not import {name}"


def test_few_modules_lie_outside_packages():
    assert len([module for module in MODULES if "/" not in module]) <= 6


def test_third_parties_are_declared():
    """A module imports only the hard dependencies at its top level."""
    allowed = {"numpy", "pandas", "sklearn", "scipy", "threadpoolctl", "jinja2", "fairconstrained"}
    for module in MODULES:
        for node in tree_of(PACKAGE / module).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for top in {name.split(".")[0] for name in names}:
                assert top in allowed or top in sys.stdlib_module_names, f"{module} imports {top}"


@pytest.mark.parametrize("folder", ["fairconstrained", "benchmarks", "tests"])
def test_files_have_at_most_400_lines(folder):
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert not [str(path) for path, size in sizes.items() if size > 400]


def test_warnings_point_to_the_line_of_the_user():
    direct = [one for one in MODULES if "warnings.warn(" in (PACKAGE / one).read_text()]
    assert direct == ["exceptions.py"], "use exceptions.warn, which finds the user's line"
