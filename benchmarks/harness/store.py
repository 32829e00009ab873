"""Keep results of runs in files, with the version of the code that they are of.

Results that a page of the documentation shows are published beside it, in ``docs/results``: the
page can be made again, and one of its tables alone, where the runs were not made.
"""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import fairconstrained
from benchmarks.harness import data

_DIGITS = 8  # of published numbers
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


def _rounded(value: Any) -> Any:
    """Return JSON data with `_DIGITS` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


class Store:
    """Results as JSON files in a folder, one for each key.

    Parameters
    ----------
    folder : Path
        Where the files are.
    docs : Path or None, default=None
        Folder of the pages. Results that were published there are known as well.

    Attributes
    ----------
    taken : dict
        The results that were taken or put, by key.
    """

    def __init__(self, folder: Path, docs: Path | None = None):
        self.folder = folder
        self.published = None if docs is None else docs / "results" / f"{folder.name}.jsonl"
        self.taken: dict[tuple[str, ...], dict[str, Any]] = {}

    def _path(self, key: tuple[str, ...]) -> Path:
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:20]}.json"

    @cached_property
    def _known(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """The published results by key."""
        if self.published is None or not self.published.exists():
            return {}
        results = map(json.loads, self.published.read_text().splitlines())
        return {tuple(one["key"]): one for one in results}

    def get(self, key: tuple[str, ...], *, any_version: bool = False) -> dict[str, Any] | None:
        """Return what was stored for a key by this version of the library, or by any."""
        path = self._path(key)
        stored = json.loads(path.read_text()) if path.exists() else self._known.get(key)
        if stored is None or not (any_version or stored["version"] == version()):
            return None
        self.taken[key] = stored
        return stored

    def put(self, key: tuple[str, ...], result: dict[str, Any]) -> dict[str, Any]:
        """Store a result and return it with the version of the library."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = {**result, "key": list(key), "version": version()}
        path = self._path(key)
        temporary = path.with_suffix(f".{id(result)}.tmp")
        temporary.write_text(json.dumps(result))
        temporary.replace(path)
        self.taken[key] = result
        return result

    def publish(self, *, without: tuple[str, ...] = ()) -> None:
        """Write the results that were taken or put beside the page, one in a line.

        Other results that were published are kept.

        Parameters
        ----------
        without : tuple of str, default=()
            What pages do not show, and is too long to be published.
        """
        assert self.published is not None
        self.published.parent.mkdir(parents=True, exist_ok=True)
        kept = {**self._known, **self.taken}
        shown = [
            {name: value for name, value in kept[key].items() if name not in without}
            for key in sorted(kept)
        ]
        lines = [json.dumps(_rounded(one)) for one in shown]
        self.published.write_text("".join(f"{line}\n" for line in lines))

    def versions_in_words(self) -> str:
        """Return a sentence if the results are of several versions of the code, else nothing."""
        n_versions = len({one["version"] for one in self.taken.values()})
        return f" The results are of {n_versions} versions of the code." if n_versions > 1 else ""
