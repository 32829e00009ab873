"""Keep results of runs in files, with the version of the code that they are of."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import fairconstrained
from benchmarks.harness import data

_NO_PART_OF_A_FIT = ("plotting", "reporting", "model_selection", "metrics", "inspection")


@cache
def version() -> str:
    """Return a hash of the code of the library and of the data sets of the benchmarks.

    Comments, docstrings and layout do not change it, nor do packages that no fit uses.
    """
    root = Path(fairconstrained.__file__).parent
    digest = hashlib.sha256(_code(Path(data.__file__)).encode())
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NO_PART_OF_A_FIT:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(_code(path).encode())
    return digest.hexdigest()[:12]


def _code(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


class Store:
    """Results as JSON files in a folder, one for each key.

    Parameters
    ----------
    folder : Path
        Where the files are.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, key: tuple[str, ...]) -> Path:
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:20]}.json"

    def get(self, key: tuple[str, ...], *, any_version: bool = False) -> dict[str, Any] | None:
        """Return what was stored for a key by this version of the library, or by any."""
        path = self._path(key)
        stored = json.loads(path.read_text()) if path.exists() else None
        if stored is None or not (any_version or stored["version"] == version()):
            return None
        return stored

    def put(self, key: tuple[str, ...], result: dict[str, Any]) -> dict[str, Any]:
        """Store a result and return it with the version of the library."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = {**result, "key": list(key), "version": version()}
        path = self._path(key)
        temporary = path.with_suffix(f".{id(result)}.tmp")
        temporary.write_text(json.dumps(result))
        temporary.replace(path)
        return result
