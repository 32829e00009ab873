"""Tests of synthetic data: the gap, the rates and the shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse as sp

from fairconstrained.datasets import make_biased_classification


def group_rates(positive, groups):
    return np.bincount(groups, weights=positive) / np.bincount(groups)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("gap", "n_groups", "rates"),
    [
        (0.2, 2, [0.4, 0.6]),
        (0.6, 3, [0.2, 0.5, 0.8]),
        (0.3, 4, [0.35, 0.45, 0.55, 0.65]),
        (0.0, 2, [0.5, 0.5]),
    ],
)
def test_bayes_classifier_has_the_given_gap(gap, n_groups, rates, sparse):
    X, _, groups, coef = make_biased_classification(
        200_000, gap=gap, n_groups=n_groups, sparse=sparse, return_coef=True, random_state=0
    )
    # Five standard deviations of a rate over a group of at least 50,000 are 0.011.
    assert_allclose(group_rates(X @ coef > 0, groups), rates, atol=0.011)


def test_labels_follow_the_model():
    X, y, groups, coef = make_biased_classification(
        200_000, gap=0.5, class_sep=3.0, flip_y=0.1, return_coef=True, random_state=1
    )
    expected = 0.1 + 0.8 / (1 + np.exp(-3.0 * (X @ coef)))
    # The labels agree with their probabilities in every bin of the score and in every group.
    bins = np.digitize(X @ coef, [-1.0, -0.3, 0.0, 0.3, 1.0]) * 2 + groups
    assert_allclose(group_rates(y, bins), group_rates(expected, bins), atol=0.02)


def test_shapes_and_types():
    X, y, groups = make_biased_classification(101, 7, n_groups=3, random_state=0)
    assert isinstance(X, np.ndarray) and X.shape == (101, 7)
    assert set(y) == {0, 1} and y.shape == (101,)
    assert sorted(np.bincount(groups)) == [33, 34, 34]


def test_informative_features_come_first():
    *_, coef = make_biased_classification(n_features=8, n_informative=3, return_coef=True)
    assert_array_equal(coef != 0, [True] * 3 + [False] * 5)
    assert_allclose(np.linalg.norm(coef), 1.0)
    *_, default = make_biased_classification(n_features=8, return_coef=True)
    assert np.count_nonzero(default) == 5
    *_, few = make_biased_classification(n_features=2, return_coef=True)
    assert np.count_nonzero(few) == 2


def test_sparse_output():
    X, _, _ = make_biased_classification(1000, 200, n_informative=2, sparse=True, random_state=0)
    assert sp.issparse(X) and X.format == "csr" and X.shape == (1000, 200)
    assert X[:, :2].nnz == 2000
    assert_allclose(X[:, 2:].nnz / (1000 * 198), 0.05, atol=0.001)


def test_all_features_may_be_informative():
    X, _, _ = make_biased_classification(50, 4, n_informative=4, sparse=True, random_state=0)
    assert X.shape == (50, 4)


def test_random_state():
    first, again = (make_biased_classification(50, random_state=3) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert_array_equal(one, other)
    rng = np.random.RandomState(3)
    from_generator = make_biased_classification(50, random_state=rng)
    assert_array_equal(from_generator[0], first[0])
    assert not np.array_equal(make_biased_classification(50, random_state=rng)[0], first[0])


@settings(max_examples=30, deadline=None)
@given(
    n_samples=st.integers(1, 50),
    n_features=st.integers(1, 8),
    n_groups=st.integers(2, 5),
    gap=st.floats(0, 0.999),
    flip_y=st.floats(0, 0.499),
    sparse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_valid_arguments_give_finite_data(
    n_samples, n_features, n_groups, gap, flip_y, sparse, seed
):
    X, y, groups = make_biased_classification(
        n_samples,
        n_features,
        n_groups=n_groups,
        gap=gap,
        flip_y=flip_y,
        sparse=sparse,
        random_state=seed,
    )
    assert X.shape == (n_samples, n_features)
    assert np.isfinite(X.data if sparse else X).all()
    assert set(y) <= {0, 1} and set(groups) <= set(range(n_groups))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, r"'n_samples' parameter of make_biased_classification must be an int"),
        ({"n_samples": 2.5}, "'n_samples' parameter"),
        ({"n_samples": True}, "'n_samples' parameter"),
        ({"n_features": 0}, "'n_features' parameter"),
        ({"n_features": "3"}, "'n_features' parameter .* Got '3'"),
        ({"n_groups": 1}, r"'n_groups' parameter .* \[2, inf\)"),
        ({"gap": 1.0}, r"'gap' parameter .* \[0.0, 1.0\). Got 1.0"),
        ({"gap": -0.1}, "'gap' parameter"),
        ({"gap": float("nan")}, "'gap' parameter"),
        ({"gap": "0.2"}, "'gap' parameter"),
        ({"n_informative": 0}, "'n_informative' parameter"),
        ({"n_informative": 11}, "n_informative=11 must be at most n_features, 10"),
        ({"class_sep": -1}, "'class_sep' parameter"),
        ({"flip_y": 0.5}, r"'flip_y' parameter .* \[0.0, 0.5\)"),
        ({"random_state": "seed"}, "'random_state' parameter"),
    ],
)
def test_invalid_arguments_raise(options, message):
    with pytest.raises(ValueError, match=message):
        make_biased_classification(**options)
