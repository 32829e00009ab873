"""Parameters follow scikit-learn's conventions without scikit-learn."""

import pytest
from sklearn.base import clone

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import DemographicParity
from fairconstrained.functions import Ramp, Sigmoid
from fairconstrained.utils.registry import Parametrized


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


def test_an_unknown_parameter_is_an_error():
    with pytest.raises(ValueError, match="Invalid parameter 'third' for Pair"):
        Pair().set_params(third=1)
    with pytest.raises(ValueError, match="Invalid parameter 'third'"):
        Pair(second=Pair()).set_params(second__third=1)


def test_the_representation_has_what_differs_from_the_defaults():
    assert repr(Pair()) == "Pair()"
    assert repr(Pair(second=Pair(first=2.5))) == "Pair(second=Pair(first=2.5))"


def test_scikit_learn_clones_and_searches_nested_parameters():
    pair = Pair(second=Pair(first=3))
    cloned = clone(pair)
    assert cloned.second is not pair.second and cloned.second.first == 3
    fair = FairLogisticClassifier(DemographicParity(0.1, surrogate=Sigmoid(0.5)))
    assert fair.get_params()["constraint__surrogate__scale"] == 0.5
    changed = clone(fair).set_params(constraint__surrogate__scale=2.0)
    assert changed.constraint.surrogate.scale == 2.0 and fair.constraint.surrogate.scale == 0.5
    changed.set_params(constraint__surrogate=Ramp(0.25))
    assert "surrogate=Ramp(scale=0.25)" in repr(changed)
