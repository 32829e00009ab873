"""Parameters as scikit-learn has them, messages on missing extras, and equality of values."""

import numpy as np
import pytest
from _support.registry_of_objects import DOMAINS, PENALTIES, SCALAR_FUNCTIONS
from hypothesis import given
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from fairconstrained.utils.arguments import Parametrized, import_extra
from fairconstrained.utils.arrays import same_values


class Pair(Parametrized):
    def __init__(self, first=1, second=None):
        self.first = first
        self.second = second


class Nothing(Parametrized):
    pass


def test_nested_parameters_are_read_and_set():
    pair = Pair(second=Pair(first=3))
    assert pair.get_params(deep=False) == {"first": 1, "second": pair.second}
    assert pair.get_params()["second__first"] == 3
    assert pair.set_params(first=2, second__first=5) is pair
    assert (pair.first, pair.second.first) == (2, 5)
    replaced = pair.set_params(second=Pair(), second__first=7)  # in this order
    assert replaced.second.first == 7
    assert Nothing().get_params() == {}
    assert type("Heir", (Pair,), {})(3, second=4).get_params() == {"first": 3, "second": 4}


def test_copies_have_the_parameters_of_the_original():
    for one in (*SCALAR_FUNCTIONS, *PENALTIES, *DOMAINS):
        copied = clone(one)
        assert copied is not one and repr(copied) == repr(one)


def test_an_unknown_parameter_is_an_error():
    with pytest.raises(ValueError, match="Invalid parameter 'third' for Pair"):
        Pair().set_params(third=1)
    with pytest.raises(ValueError, match="Invalid parameter 'third'"):
        Pair(second=Pair()).set_params(second__third=1)


def test_the_error_names_what_needs_the_module_and_how_to_install_it():
    with pytest.raises(ImportError, match=r"this test needs absent_module.*\[boosting\]"):
        import_extra("absent_module", "boosting", "this test")


def test_an_import_error_within_a_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import absent_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_module"):
        import_extra("half_installed", "boosting", "this test")


@given(arrays(float, 4), arrays(float, 4))
def test_equal_bits_are_equal_values(first, second):
    if same_values(first, second):
        assert np.array_equal(first, second, equal_nan=True)
    elif np.array_equal(first, second):
        assert np.any(np.signbit(first) != np.signbit(second))  # zeros of either sign
