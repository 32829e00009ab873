"""Keep results of runs in files, with the commit that they are of, so that a table can go on."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness.options import ROOT


@cache
def commit() -> str:
    """Return the commit of the checkout, with a + if files differ from it."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def stamp(result: dict[str, Any]) -> dict[str, str]:
    """Return the commit and the date of a result, by default those of now."""
    now = {"commit": commit(), "date": time.strftime("%Y-%m-%d")}
    return {name: result.get(name) or default for name, default in now.items()}


class Store:
    """Results in a folder, one file each, named by its key: delete files to run them again."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, key: tuple[str, ...]) -> Path:
        name = re.sub(r"[^\w.+-]+", "_", " ".join(key))
        return self.folder / f"{name}.json"

    def get(self, key: tuple[str, ...]) -> dict[str, Any] | None:
        """Return a result, or None if there is none."""
        path = self._path(key)
        return json.loads(path.read_text()) if path.exists() else None

    def of(self, key: tuple[str, ...], run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a result; if there is none it is measured, written and printed."""
        result = self.get(key)
        if result is None:
            result = self.put(key, run())
            print(*key, *result.values(), flush=True)
        return result

    def put(self, key: tuple[str, ...], result: dict[str, Any]) -> dict[str, Any]:
        """Write a result, with the commit and the date, and return it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = {**result, **stamp({})}
        path = self._path(key)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(result))
        temporary.replace(path)  # an interrupted run leaves no half of a file
        return result
