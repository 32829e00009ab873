"""FairRanker with hidden layers: its fitted attributes are arrays, and make its module."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse as sp

from fairconstrained import FairRanker, make_biased_ranking

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

X, Y, QUERY, _ = make_biased_ranking(12, 3, n_documents=30, random_state=0)


def fitted(**options):
    ranker = FairRanker(None, max_iter=30, random_state=0, **options)
    with warnings.catch_warnings():  # few iterations
        warnings.simplefilter("ignore")
        return ranker.fit(X, Y, query=QUERY)


@pytest.fixture(scope="module")
def ranker():
    return fitted(hidden_layer_sizes=(3,))


def test_the_module_is_made_from_arrays_and_gives_the_scores(ranker):
    assert not any(isinstance(one, torch.nn.Module) for one in vars(ranker).values())
    with torch.no_grad():
        scores = ranker.module_(torch.tensor(X)).numpy()
    np.testing.assert_allclose(ranker.predict(X), scores, atol=1e-12)
    assert_array_equal(ranker.predict(sp.csr_array(X)), ranker.predict(X))


def test_only_a_network_has_a_module(ranker):
    assert not hasattr(FairRanker(), "module_")
    linear = fitted(hidden_layer_sizes=(3,)).set_params(hidden_layer_sizes=())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear.fit(X, Y, query=QUERY)
    assert not hasattr(linear, "module_") and not hasattr(linear, "weights_")
    assert hasattr(linear, "coef_") and not hasattr(ranker, "coef_")


@pytest.mark.cases(0)
def test_training_goes_on_with_shorter_steps_if_weights_explode():
    """One query per step, and queries of 1 to 40 rows: the first steps are far too long."""
    rng = np.random.RandomState(0)
    sizes = [1, 2, 3, 40, 5, 1, 8, 12, 7, 20, 15, 9, 6, 25, 4, 30]
    query = np.repeat(np.arange(len(sizes)), sizes)
    X, groups = rng.randn(len(query), 4), rng.randint(0, 2, len(query))
    y = (X[:, 0] + 0.5 * groups + 0.7 * rng.randn(len(query)) > 0.3).astype(int)
    y[query == 3], y[query == 9] = 1, 0
    rows = rng.permutation(len(query))
    X, y, query, groups = X[rows], y[rows], query[rows], groups[rows]
    ranker = FairRanker(hidden_layer_sizes=(4,), random_state=0, kappa=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(X, y, query=query, sensitive_features=groups)
    assert ranker.result_.status.value != "diverged"
    assert ranker.violation_ <= ranker.result_.solver.tol
    assert ranker.score(X, y, query=query) > 0.9
