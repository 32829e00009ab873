"""FairRanker with hidden layers: its fitted attributes are arrays, and make its module."""

import numpy as np
import pytest
from _support.classifiers import quietly
from numpy.testing import assert_array_equal
from scipy import sparse as sp

from fairconstrained import ConvergenceWarning, FairRanker, make_biased_ranking

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

X, Y, QUERY, GROUPS = make_biased_ranking(12, 3, n_documents=30, random_state=0)


def fitted(**options):
    ranker = FairRanker(None, max_iter=30, random_state=0, **options)
    return quietly(ranker.fit, X, Y, query=QUERY)


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
    quietly(linear.fit, X, Y, query=QUERY)
    assert not hasattr(linear, "module_") and not hasattr(linear, "weights_")
    assert hasattr(linear, "coef_") and not hasattr(ranker, "coef_")


def test_the_last_layer_meets_a_bound_that_the_run_does_not():
    ranker = FairRanker(kappa=0.05, hidden_layer_sizes=(8,), max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="The last layer was fitted once more"):
        ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)
    assert ranker.bound_met_ and ranker.gap_ <= 0.05 + ranker.tol
    assert np.ptp(ranker.predict(X)) > 0.1
