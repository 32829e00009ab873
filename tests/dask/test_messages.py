"""What a round sends: functions and arguments as bytes."""

import numpy as np
import pytest

pytest.importorskip("cloudpickle", reason="dask is not installed")

from fairconstrained.dask._messages import packed, unpacked
from fairconstrained.objectives import resolve_objective
from fairconstrained.shards.sums import statistics


def term(totals):
    return resolve_objective("loss", "logistic").bind(np.array([-1.0, 1.0]), totals)


def test_functions_and_arrays_come_back():
    function, (values, number) = unpacked(packed((statistics, (np.arange(3.0), 2))))
    assert function is statistics
    np.testing.assert_array_equal(values, [0.0, 1.0, 2.0])
    assert number == 2


def test_functions_without_a_module_of_their_own_come_back():
    assert unpacked(packed(lambda x: x + 1))(2) == 3


def test_a_term_is_unpacked_once():
    one, other = term(np.array([3.0, 2.0])), term(np.array([5.0, 1.0]))
    first = unpacked(packed([(one, np.zeros(0)), (other, np.zeros(0))]))
    again = unpacked(packed([(one, np.zeros(0))]))
    assert again[0][0] is first[0][0]
    assert first[1][0] is not first[0][0]
    np.testing.assert_allclose(first[1][0].cells.data, [5.0 / 6.0, 1.0 / 6.0])
