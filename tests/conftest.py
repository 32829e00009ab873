"""What all tests share: the profile of hypothesis, the data, small problems."""

import os
import sys
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy comes in: scikit-learn's checks use it

import numpy as np
import pytest
import sklearn
from _support.small_problems import PROBLEMS
from hypothesis import settings

settings.register_profile("tests", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("tests")


@pytest.fixture
def data_folder(monkeypatch):
    """The folder of the benchmark data, which FAIRCONSTRAINED_DATA then names."""
    beside_the_project = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("FAIRCONSTRAINED_DATA") or beside_the_project)
    if not folder.is_dir():
        pytest.skip(f"no benchmark data: FAIRCONSTRAINED_DATA is not set and no folder {folder}")
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(folder))
    return folder


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a test has drawn, if it has drawn at all."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def routing():
    """Metadata routing."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=PROBLEMS)
def problem(request):
    """A small problem, with a counter of its own."""
    return PROBLEMS[request.param].uncounted()


@pytest.fixture
def w(problem, rng):
    return rng.normal(size=problem.n_variables)


@pytest.fixture
def multipliers(problem, rng):
    return rng.uniform(0.1, 1.0, size=problem.n_constraints)
