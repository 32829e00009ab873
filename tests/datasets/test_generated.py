"""Generated data: queries with documents of two groups, and rows of classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc


@pytest.mark.parametrize("generated", [None, 600])
def test_every_query_has_enough_documents_of_each_kind(generated):
    options = {"min_positives": 6, "n_generated": generated, "random_state": 1}
    X, y, query, groups = fc.make_biased_ranking(40, 5, **options)
    assert X.shape == (len(y), 5)
    assert_array_equal(np.unique(query), np.arange(40))
    assert np.all(np.diff(query) >= 0)
    found = np.bincount((query * 2 + y) * 2 + groups).reshape(-1, 2, 2)  # by label and group
    assert found.sum(axis=2).min() >= 6
    assert found.min() >= 3


def test_the_share_of_positives_is_as_asked_for():
    _, y, _, groups = fc.make_biased_ranking(
        400, 6, positives=0.3, min_positives=1, n_documents=80, random_state=0
    )
    assert y.mean() == pytest.approx(0.3, abs=0.02)
    assert groups.mean() == pytest.approx(0.6, abs=0.02)


def test_context_is_the_group_and_the_means_of_the_query():
    options = {"max_documents": 20, "random_state": 3}
    plain, y, query, groups = fc.make_biased_ranking(10, 4, **options)
    X, *others = fc.make_biased_ranking(10, 4, context=True, **options)
    for one, other in zip(others, (y, query, groups), strict=True):
        assert_array_equal(one, other)
    assert X.shape[1] == 9
    assert_array_equal(X[:, :4], plain)
    assert_array_equal(X[:, 4], groups)
    for q in range(10):
        assert_allclose(X[query == q, 5:], np.tile(plain[query == q].mean(axis=0), (20, 1)))


def test_rankers_without_constraints_differ_more_where_weights_depend_on_the_group():
    gaps = []
    for effect in (0.0, 0.7):
        X, y, query, groups = fc.make_biased_ranking(80, 4, group_effect=effect, random_state=0)
        scores = fc.FairRanker(constraint=None).fit(X, y, query=query).predict(X)
        members = {"query": query, "sensitive_features": groups}
        gaps.append(fc.metrics.query_parity_difference(y, scores, quantile=0.9, **members))
    assert gaps[1] > gaps[0] + 0.1


BAD = {"n_queries": 0, "n_features": 1, "n_documents": 0.5, "positives": 1.5, "group_effect": 1}
BAD |= {"noise": -1, "min_positives": 0, "max_documents": 3, "n_generated": 10}
BAD |= {"context": "yes", "random_state": "a"}


@pytest.mark.parametrize(("argument", "value"), BAD.items())
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=rf"'{argument}' parameter|{argument} must"):
        fc.make_biased_ranking(**{"n_queries": 20, "n_features": 3, argument: value})


def test_too_few_queries_is_an_error_that_has_their_number():
    with pytest.raises(ValueError, match=r"n_queries=20: only \d+ of 20 generated.* Raise n_gen"):
        fc.make_biased_ranking(20, 3, n_documents=10, n_generated=20, random_state=0)


def group_rates(positive, groups):
    return np.bincount(groups, weights=positive) / np.bincount(groups)


RATES_OF_GAPS = [
    (0.2, [0.4, 0.6]),
    (0.6, [0.2, 0.5, 0.8]),
    (0.3, [0.35, 0.45, 0.55, 0.65]),
    (0.0, [0.5, 0.5]),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("gap", "rates"), RATES_OF_GAPS)
def test_bayes_classifier_has_the_given_gap(gap, rates, sparse):
    options = {"sparse": sparse, "return_coef": True, "random_state": 0}
    X, _, groups, coef = fc.make_biased_classification(
        200_000, gap=gap, n_groups=len(rates), **options
    )
    # Five standard deviations of a rate over a group of at least 50,000 are 0.011.
    assert_allclose(group_rates(X @ coef > 0, groups), rates, atol=0.011)


def test_labels_follow_the_model():
    X, y, groups, coef = fc.make_biased_classification(
        200_000, gap=0.5, class_sep=3.0, flip_y=0.1, return_coef=True, random_state=1
    )
    expected = 0.1 + 0.8 / (1 + np.exp(-3.0 * (X @ coef)))
    # The labels agree with their probabilities in every bin of the score and in every group.
    bins = np.digitize(X @ coef, [-1.0, -0.3, 0.0, 0.3, 1.0]) * 2 + groups
    assert_allclose(group_rates(y, bins), group_rates(expected, bins), atol=0.02)


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
    options = {"n_groups": n_groups, "gap": gap, "flip_y": flip_y, "sparse": sparse}
    data = fc.make_biased_classification(n_samples, n_features, random_state=seed, **options)
    X, y, groups = data
    assert X.shape == (n_samples, n_features)
    assert np.isfinite(X.data if sparse else X).all()
    assert set(y) <= {0, 1} and set(groups) <= set(range(n_groups))
