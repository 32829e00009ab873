"""Imports point down only, as ARCHITECTURE.md draws them."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fairconstrained"
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
# From, to: the table of solvers is read where the error is raised that lists them.
ALLOWED = {("solvers/base.py", "solvers/__init__.py")}


def drawn_layers():
    """Return {module: layer}, the lowest one 0; blank lines separate layers."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = re.search(r"^## Layers$.*?^```text\n(.*?)^```$", text, re.S | re.M)
    assert block is not None, "ARCHITECTURE.md has no fenced list of layers"
    layers = [[line.split()[0] for line in part.splitlines()] for part in block[1].split("\n\n")]
    return {name: level for level, names in enumerate(reversed(layers)) for name in names}


def file_of(dotted):
    """Return the module's file in the package: None for a name that is not a module."""
    path = PACKAGE.joinpath(*dotted.split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return str(candidate.relative_to(PACKAGE))
    return None


def imports(module):
    """Return the files that a module imports, wherever in it the statement is."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import in line {node.lineno}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {file_of(name) or file_of(node.module) for name in names if ours(name)}
        elif isinstance(node, ast.Import):
            found |= {file_of(alias.name) for alias in node.names if ours(alias.name)}
    return found


def ours(dotted):
    return dotted.split(".")[0] == "fairconstrained"


def test_every_module_is_drawn_and_no_other():
    assert sorted(drawn_layers()) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    layers = drawn_layers()
    wrong = [
        other
        for other in imports(module)
        if layers[other] >= layers[module] and (module, other) not in ALLOWED
    ]
    assert not wrong, f"{module} must not import {wrong}"


def test_the_exception_is_still_needed():
    for module, other in ALLOWED:
        assert other in imports(module)


@pytest.mark.parametrize("module", MODULES)
def test_third_parties_are_declared(module):
    """Nothing but the hard dependencies is imported when a module is."""
    allowed = {"numpy", "pandas", "sklearn", "scipy", "threadpoolctl", "fairconstrained"}
    tree = ast.parse((PACKAGE / module).read_text())
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for top in {name.split(".")[0] for name in names}:
            assert top in allowed or top in sys.stdlib_module_names, f"{module} imports {top}"
