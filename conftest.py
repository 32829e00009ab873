"""Doctests of modules that need an optional dependency are skipped where it is not installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# Parts of paths, from the package on, and the module that the doctests there import.
NEEDS = {
    "dask/": "dask",
    "models/modules.py": "torch",
    "models/network.py": "torch",
    "estimators/network/": "torch",
    "estimators/boosting/classifier.py": "lightgbm",
    "estimators/ranking/boosted.py": "lightgbm",
}


def pytest_collection_modifyitems(items):
    """Mark the doctests that cannot run."""
    package = Path(__file__).parent / "fairconstrained"
    for item in items:
        if not isinstance(item, pytest.DoctestItem) or not item.path.is_relative_to(package):
            continue
        path = item.path.relative_to(package).as_posix()
        for part, module in NEEDS.items():
            if path.startswith(part) and find_spec(module) is None:
                item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))
