"""Rows for validation choose the weights of a network."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")
from fairconstrained import FairNetworkClassifier, make_biased_classification
from fairconstrained.solvers import Solver
from fairconstrained.solvers.base import Iterate

X, Y, GROUPS = make_biased_classification(400, 5, gap=0.4, class_sep=2.0, random_state=0)


def fitted(**options):
    clf = FairNetworkClassifier(
        hidden_layer_sizes=(6,), max_epochs=60, random_state=0, early_stopping=True, **options
    )
    return clf.fit(X, Y, sensitive_features=GROUPS)


class StaysAtTheStart(Solver):
    """A method whose first iterate is the start."""

    def __init__(self, max_iter=1, tol=1e-4):
        self.max_iter, self.tol = max_iter, tol

    def iterate(self, problem, start):
        yield Iterate(problem.at(start.w), None, 0)


def test_a_start_that_is_chosen_says_what_that_means():
    start = fitted(solver=StaysAtTheStart())
    assert start.n_iter_ == 0
    for text in (start.result_.message, str(start.result_)):
        assert "after 0 iterations" in text and "The weights are those of the start" in text
    assert "those of the start" not in fitted().result_.message
