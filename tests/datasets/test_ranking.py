"""Tests of generated queries with documents of two groups."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairRanker, make_biased_ranking
from fairconstrained.metrics import query_parity_difference


def counts(y, query, groups):
    """Return the number of documents of every query, label and group."""
    return np.bincount((query * 2 + y) * 2 + groups).reshape(-1, 2, 2)


@pytest.mark.parametrize("generated", [None, 600])
def test_every_query_has_enough_documents_of_each_kind(generated):
    X, y, query, groups = make_biased_ranking(
        40, 5, min_positives=6, n_generated=generated, random_state=1
    )
    assert X.shape == (len(y), 5)
    assert_array_equal(np.unique(query), np.arange(40))
    assert np.all(np.diff(query) >= 0)
    found = counts(y, query, groups)
    assert found.sum(axis=2).min() >= 6
    assert found.min() >= 3


def test_thinned_queries_keep_what_they_were_accepted_for():
    options = {"n_documents": 120, "min_positives": 10, "random_state": 0}
    _, y, query, groups = make_biased_ranking(30, 4, max_documents=46, **options)
    found = counts(y, query, groups)
    assert found.sum(axis=(1, 2)).max() == 46
    assert found.sum(axis=2).min() >= 10
    assert found.min() >= 5


def test_the_share_of_positives_is_as_asked_for():
    _, y, _, groups = make_biased_ranking(
        400, 6, positives=0.3, min_positives=1, n_documents=80, random_state=0
    )
    assert y.mean() == pytest.approx(0.3, abs=0.02)
    assert groups.mean() == pytest.approx(0.6, abs=0.02)


def test_context_is_the_group_and_the_means_of_the_query():
    options = {"max_documents": 20, "random_state": 3}
    plain, y, query, groups = make_biased_ranking(10, 4, **options)
    X, *others = make_biased_ranking(10, 4, context=True, **options)
    for one, other in zip(others, (y, query, groups), strict=True):
        assert_array_equal(one, other)
    assert X.shape[1] == 9
    assert_array_equal(X[:, :4], plain)
    assert_array_equal(X[:, 4], groups)
    for q in range(10):
        assert_allclose(X[query == q, 5:], np.tile(plain[query == q].mean(axis=0), (20, 1)))


def test_the_seed_decides():
    one, other, third = (make_biased_ranking(5, 3, random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(one[0], other[0])
    assert one[0].shape != third[0].shape or not np.array_equal(one[0], third[0])


def test_rankers_without_constraints_differ_more_where_weights_depend_on_the_group():
    gaps = []
    for effect in (0.0, 0.7):
        X, y, query, groups = make_biased_ranking(80, 4, group_effect=effect, random_state=0)
        scores = FairRanker(constraint=None).fit(X, y, query=query).predict(X)
        gaps.append(
            query_parity_difference(y, scores, query=query, sensitive_features=groups, quantile=0.9)
        )
    assert gaps[1] > gaps[0] + 0.1


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n_queries", 0),
        ("n_features", 1),
        ("n_documents", 0.5),
        ("positives", 1.5),
        ("group_effect", 1),
        ("noise", -1),
        ("min_positives", 0),
        ("max_documents", 3),
        ("n_generated", 10),
        ("context", "yes"),
        ("random_state", "a"),
    ],
)
def test_bad_arguments_are_named(argument, value):
    with pytest.raises(ValueError, match=rf"'{argument}' parameter|{argument} must"):
        make_biased_ranking(**{"n_queries": 20, "n_features": 3, argument: value})


def test_too_few_queries_is_an_error_that_has_their_number():
    with pytest.raises(ValueError, match=r"n_queries=20: only \d+ of 20 generated queries"):
        make_biased_ranking(20, 3, n_documents=10, n_generated=20, random_state=0)
    with pytest.raises(ValueError, match=r"only 0 of .* Raise n_generated or n_documents"):
        make_biased_ranking(20, 3, n_documents=2, min_positives=30, random_state=0)
