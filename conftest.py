"""Which tests run: a few cases of each function, and those whose dependencies are installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# Parts of paths, from the package on, and the module that the doctests there import.
NEEDS = {
    "dask/": "dask",
    "models/modules.py": "torch",
    "models/network.py": "torch",
    "estimators/network.py": "torch",
    "estimators/boosting.py": "lightgbm",
    "estimators/ranker_models.py": "lightgbm",
}


# A test that fails because one of these cannot be imported is skipped.
OPTIONAL = (
    "cloudpickle",
    "dask",
    "distributed",
    "lightgbm",
    "matplotlib",
    "pyarrow",
    "skops",
    "torch",
)


CASES = 3  # of a test function in the default run; `cases` of pyproject.toml marks exceptions


def pytest_addoption(parser):
    """Add --grid and --tenth."""
    parser.addoption("--grid", action="store_true", help="run every case of every test function")
    help = "run a tenth of the other cases as well, another one for each of 10 successive numbers"
    parser.addoption("--tenth", type=int, metavar="N", help=help)


def pytest_collection_modifyitems(config, items):
    """Keep a few cases of each test function, and mark the doctests that cannot run."""
    if not config.getoption("--grid"):
        keep_a_few(config, items)
    mark_doctests(items)


def keep_a_few(config, items):
    """Deselect all but a few cases of every test function, evenly spaced."""
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    left_out = [item for group in cases.values() for item in beyond_a_few(group)]
    if (tenth := config.getoption("--tenth")) is not None:
        left_out = [item for k, item in enumerate(left_out) if (k - tenth) % 10]
    config.hook.pytest_deselected(items=left_out)
    identities = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in identities]


def beyond_a_few(group):
    """Return the cases of a function that the default run leaves out."""
    marker = group[0].get_closest_marker("cases")
    n = CASES if marker is None else marker.args[0]
    kept = {round(k * (len(group) - 1) / max(n - 1, 1)) for k in range(n)}
    return [item for k, item in enumerate(group) if len(group) > n and k not in kept]


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    """Skip where what a fixture needs is not installed."""
    return (yield from skipped_without_its_extra())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Skip where what a test needs is not installed."""
    return (yield from skipped_without_its_extra())


def skipped_without_its_extra():
    """Run a part of a test; skip it at an ImportError that names an optional package not there."""
    try:
        return (yield)
    except ImportError as error:
        missing = [name for name in OPTIONAL if name in str(error) and find_spec(name) is None]
        if not missing:
            raise
        pytest.skip(f"{missing[0]} is not installed")
