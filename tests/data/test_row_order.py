"""Fits to few rows end at the same model for every order of rows and groups and every container."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairHingeClassifier, FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.data.row_order import sorted_rows
from fairconstrained.data.validation import TrainingData
from fairconstrained.solvers import OnlineStochastic, StochasticSwitchingSubgradient, ThreeSEcon

OF_CLASSIFIERS = sorted(set(CONSTRAINTS) - {"query_parity"})
ORDER = np.random.default_rng(0).permutation(90)


def rows(seed=0, n=90):
    X, y, groups = make_biased_classification(n, 6, gap=0.3, random_state=seed)
    return X, y, groups


def fitted(X, y, groups, constraint="roc_parity", kind=FairLogisticClassifier, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant decisions and cells without rows
        return kind(constraint, **options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("enforce", ["score", "decision"])
@pytest.mark.parametrize("constraint", OF_CLASSIFIERS)
def test_the_model_does_not_depend_on_the_order_of_the_rows(constraint, enforce):
    X, y, groups = rows()
    clf = fitted(X, y, groups, constraint, enforce=enforce)
    other = fitted(X[ORDER], y[ORDER], groups[ORDER], constraint, enforce=enforce)
    assert_array_equal(other.coef_, clf.coef_)
    assert_array_equal(other.intercept_, clf.intercept_)


@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_matrix, np.asfortranarray, pd.DataFrame]
)
def test_the_model_does_not_depend_on_the_container(container):
    X, y, groups = rows(1)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    clf = fitted(X, y, groups, kind=FairHingeClassifier, enforce="decision")
    other = fitted(container(X), y, groups, kind=FairHingeClassifier, enforce="decision")
    assert_array_equal(other.coef_, clf.coef_)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.csr_matrix])
@pytest.mark.parametrize("constraint", OF_CLASSIFIERS)
def test_sparse_rows_are_sorted_as_well(constraint, container):
    X, y, groups = rows(1)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    clf = fitted(container(X), y, groups, constraint)
    other = fitted(container(X[ORDER]), y[ORDER], groups[ORDER], constraint)
    assert_array_equal(other.coef_, clf.coef_)


def test_rows_that_are_held_out_are_the_same_for_every_order():
    X, y, groups = rows(n=1200)
    order = np.random.default_rng(1).permutation(1200)
    options = {"enforce": "decision", "confidence": 0.9, "random_state": 0, "kappa": 0.3}
    clf = fitted(X, y, groups, "demographic_parity", **options)
    other = fitted(X[order], y[order], groups[order], "demographic_parity", **options)
    assert_array_equal(other.coef_, clf.coef_)


@pytest.mark.parametrize(
    "options",
    [
        {"enforce": "decision", "confidence": 0.9, "kappa": 0.3},
        {"solver": StochasticSwitchingSubgradient(max_iter=200, polish=False)},
        {"solver": OnlineStochastic(max_iter=200, polish=False)},
        {"solver": ThreeSEcon(max_iter=200, polish=False)},
    ],
    ids=["held-out rows", "StochasticSwitchingSubgradient", "OnlineStochastic", "ThreeSEcon"],
)
def test_rows_that_are_drawn_do_not_depend_on_the_names_of_groups(options):
    X, y, groups = make_biased_classification(1200, 5, n_groups=3, gap=0.5, random_state=1)
    first, *others = (
        fitted(X, y, np.array(list(names))[groups], "demographic_parity", random_state=0, **options)
        for names in ("abc", "cab", "bca")
    )
    for other in others:
        assert_allclose(other.coef_, first.coef_, atol=1e-9)


def test_positions_are_those_of_the_rows_that_are_passed():
    rng = np.random.default_rng(2)
    X, y, weight = rng.integers(0, 3, (40, 2)).astype(float), np.ones(40), rng.random(40)
    data = TrainingData(X, y, np.array([0, 1]), None, weight)
    ordered = sorted_rows(data)
    assert_array_equal(ordered.X, X[ordered.positions])
    assert_array_equal(ordered.sample_weight, weight[ordered.positions])
    sparse = replace(data, X=sp.csr_array(X))
    assert_array_equal(sorted_rows(sparse).X.toarray(), ordered.X)
    assert_array_equal(sorted_rows(sparse, dense=True).X, ordered.X)
    some = ordered.take(np.array([3, 5]))
    assert_array_equal(some.X, X[some.positions])


def test_many_rows_stay_where_they_are():
    data = TrainingData(
        np.arange(3000.0)[::-1, None], np.ones(3000), np.array([0, 1]), None, np.ones(3000)
    )
    assert sorted_rows(data) is data
