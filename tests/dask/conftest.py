"""One cluster of worker processes for the whole run."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes with one thread each."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": "1GiB"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client, which dask takes as the default while it is open."""
    from distributed import Client

    with Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def few_rows_stay_in_partitions(monkeypatch):
    """Rows of tests are few; they stay where those of larger collections do."""
    monkeypatch.setattr("fairconstrained.dask.estimators.MOST_COLLECTED", 0)
