"""Workers read plain partitions without scikit-learn, with the result of the estimator's checks."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.utils.validation import validate_data

from fairconstrained import FairLogisticClassifier
from fairconstrained.dask._rows import Reader
from fairconstrained.data.sensitive_columns import SensitiveColumns

FRAME = pd.DataFrame({"a": [1.0, 2.0, 4.0], "sex": [0, 1, 1], "b": [0.5, 0.25, -1.0]})
TABLES = {
    "float64 array": FRAME.to_numpy(),
    "float32 array": FRAME.to_numpy(np.float32),
    "integers": FRAME.astype(np.int16).to_numpy(),
    "columns first": np.asfortranarray(FRAME.to_numpy()),
    "frame": FRAME,
    "float32 frame": FRAME.astype(np.float32),
    "short integers and float32": FRAME.astype({"a": "f4", "sex": "i1", "b": "f4"}),
    "bool and float": FRAME.astype({"sex": bool}),
    "missing values allowed": FRAME.astype({"sex": "Int64"}),
    "sparse": scipy.sparse.csr_array(FRAME.to_numpy()),
}


def reader_of(X, **options):
    estimator = FairLogisticClassifier(**options)
    validate_data(estimator, X, reset=True, skip_check_array=True)
    columns = SensitiveColumns(estimator)
    return columns, Reader(columns)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("X", TABLES.values(), ids=list(TABLES))
def test_features_and_groups_are_those_of_the_estimator(X, hidden):
    options = {"sensitive_columns": [1], "use_sensitive": False} if hidden else {}
    columns, reader = reader_of(X, **options)
    wanted = columns.features(columns.table(X), reset=False)
    found = reader.features(X, 3.0)
    assert found.dtype == wanted.dtype
    dense = [one.toarray() if scipy.sparse.issparse(one) else one for one in (found, wanted)]
    assert_array_equal(*dense)
    groups, expected = reader.groups(X), columns.groups(X)
    assert (groups is None) == (expected is None) == (not hidden)
    if hidden:
        dense = [one.toarray() if scipy.sparse.issparse(one) else one for one in (groups, expected)]
        assert_array_equal(*map(np.asarray, dense))


WRONG_ROWS = [
    (FRAME.assign(a=[1.0, np.nan, 2.0]), "contains NaN"),
    (FRAME.assign(a=[1.0, np.inf, 2.0]), "contains infinity"),
    (FRAME[["b", "sex", "a"]], "feature names should match"),
    (FRAME.drop(columns="b"), "feature names should match"),
    (FRAME.assign(a=["x", "y", "z"]), "'a'"),
    (FRAME.assign(a=pd.to_datetime(["2020-01-01"] * 3)), "dates or times"),
    (FRAME.assign(a=[1e200, 0.0, 1.0]), "'a'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG_ROWS)
def test_errors_are_those_of_rows_in_memory(wrong, message):
    _, reader = reader_of(FRAME)
    with pytest.raises(ValueError, match=message):
        reader.features(wrong, 3.0)


WORKER = """
import pickle, sys
import numpy as np
import pandas as pd
from fairconstrained.dask._rows import prepare
from fairconstrained.dask._shards import make_shard, on_shards

reader, request = pickle.load(open(sys.argv[1], "rb"))
X = pd.DataFrame({"a": np.arange(4.0), "b": [1.0, 0.0, 0.0, 2.0]})
y, groups = pd.Series([0, 1, 0, 1]), pd.Series([0, 0, 1, 1])
prepared = prepare(reader, X, y, groups, None, None)
shard = make_shard(False, prepared, np.arange(len(prepared.table)))
_, [sums] = on_shards(request, shard)
assert all(np.isfinite(one).all() for one in sums)
wrong = {"sklearn", "scipy.stats", "fairconstrained.estimators"} & set(sys.modules)
assert not wrong, wrong
"""


def test_workers_do_not_import_scikit_learn(tmp_path):
    """Preparing a partition of numbers, making its shard and a round."""
    cloudpickle = pytest.importorskip("cloudpickle")
    from fairconstrained.dask._rows import packed
    from fairconstrained.shards.sums import statistics

    X = pd.DataFrame({"a": np.arange(4.0), "b": [1.0, 0.0, 0.0, 2.0]})
    *_, reader = reader_of(X)
    problem = (
        FairLogisticClassifier("equalized_odds", 0.1)
        .bind(X, [0, 1, 0, 1], sensitive_features=[0, 0, 1, 1])
        .problem
    )
    terms = [(part.term, np.zeros(0), True) for part in problem.parts]
    request = packed((statistics, np.add, [(np.ones(2), 0.0)], terms))
    path = tmp_path / "given.pickle"
    path.write_bytes(cloudpickle.dumps((reader, request)))
    command = [sys.executable, "-c", WORKER, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
