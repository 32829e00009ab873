"""A cluster of worker processes: the same solution, also if a worker ends in mid-fit."""

import os
import signal

import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained import make_biased_classification

da = pytest.importorskip("dask.array", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")

from fairconstrained.dask import FairLogisticClassifier  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own, of processes that end


X, Y, GROUPS = make_biased_classification(4000, gap=0.3, random_state=0)
DATA = X, Y, GROUPS = (np.asarray(X, dtype=np.float32), np.asarray(Y), np.asarray(GROUPS))


@pytest.fixture(scope="module")
def in_memory():
    return in_memory_classifier("equalized_odds", 0.02).fit(X, Y, sensitive_features=GROUPS)


def fitted(rows, **attributes):
    X, y, groups = (da.from_array(values, chunks=500) for values in rows)
    model = FairLogisticClassifier("equalized_odds", 0.02)
    vars(model).update(attributes)
    return model.fit(X, y, sensitive_features=groups)


@pytest.mark.cases(1)
@pytest.mark.parametrize("disk", [True, False, "auto"])
def test_the_solution_is_that_of_the_rows_in_memory(client, in_memory, disk):
    model = fitted(DATA, disk=disk)
    assert model.objective_ == pytest.approx(in_memory.objective_, rel=1e-8)
    np.testing.assert_allclose(model.coef_, in_memory.coef_, atol=1e-6)
    assert model.result_.data_passes == in_memory.result_.data_passes


def test_a_client_that_is_set_as_attribute_has_tasks_with_names(client, in_memory):
    model = fitted(DATA, client=client)
    np.testing.assert_allclose(model.coef_, in_memory.coef_, atol=1e-6)
    names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"fairconstrained-prepare", "fairconstrained-statistics"} <= names


def test_a_worker_that_ends_in_mid_fit_changes_nothing(client, in_memory):
    X, y, groups = (da.from_array(values, chunks=500) for values in DATA)
    ended = []

    class EndAWorker(FairLogisticClassifier):
        def _minimize(self, problem, *args, **kwargs):
            shards = problem.objective.model.shards
            gather = shards.gather

            def ending(function, *arguments):
                ended.append(function.__name__)
                if len(ended) == 4:
                    processes = client.run(os.getpid)
                    os.kill(next(iter(processes.values())), signal.SIGKILL)
                return gather(function, *arguments)

            object.__setattr__(shards, "gather", ending)
            return super()._minimize(problem, *args, **kwargs)

    model = EndAWorker("equalized_odds", 0.02).fit(X, y, sensitive_features=groups)
    assert len(ended) > 4
    np.testing.assert_allclose(model.coef_, in_memory.coef_, atol=1e-6)
    again = fitted(DATA)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-9)
