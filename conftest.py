"""Which tests run: a few cases of each function, and doctests whose dependency is installed."""

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


CASES = 4  # of a test function; many functions run over every registered object


def pytest_addoption(parser):
    """Add --grid."""
    parser.addoption("--grid", action="store_true", help="run every case of every test function")


def pytest_collection_modifyitems(config, items):
    """Keep a few cases of each test function, and mark the doctests that cannot run."""
    if not config.getoption("--grid"):
        keep_a_few(config, items)
    mark_doctests(items)


def keep_a_few(config, items):
    """Deselect all but `CASES` cases of every test function, evenly spaced."""
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    left_out = set()
    for group in cases.values():
        if len(group) > CASES:
            step = (len(group) - 1) / (CASES - 1)
            kept = {round(k * step) for k in range(CASES)}
            left_out.update(id(item) for k, item in enumerate(group) if k not in kept)
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]


def mark_doctests(items):
    """Mark the doctests that cannot run."""
    package = Path(__file__).parent / "fairconstrained"
    for item in items:
        if not isinstance(item, pytest.DoctestItem) or not item.path.is_relative_to(package):
            continue
        path = item.path.relative_to(package).as_posix()
        for part, module in NEEDS.items():
            if path.startswith(part) and find_spec(module) is None:
                item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))
