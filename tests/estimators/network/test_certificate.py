"""The certificate of networks for every constraint, from values of the Lagrangian alone."""

import warnings

import numpy as np
import pytest
from _support.certificates import residual
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from fairconstrained import (  # noqa: E402
    ConvergenceWarning,
    FairNetworkClassifier,
    InfeasibleConstraintWarning,
    make_biased_classification,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss  # noqa: E402

X, Y, GROUPS = make_biased_classification(300, 3, gap=0.4, class_sep=2.0, random_state=0)
OPTIONS = {"hidden_layer_sizes": (4,), "activation": "tanh", "max_epochs": 60, "alpha": 1e-3}


@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_slopes_are_differences_of_values_that_pytorch_computes(name):
    constraint = BoundedGroupLoss(0.5) if name == "bounded_group_loss" else name
    clf = FairNetworkClassifier(constraint, 0.05, early_stopping=False, random_state=0, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", InfeasibleConstraintWarning)
        clf.fit(X, Y, sensitive_features=GROUPS)
    parts = clf.bind(X, Y, None, GROUPS).problem.constraints
    network, rows = clf.to_torch(), torch.tensor(X)
    weights = [one for one in network.parameters() if one.dim() == 2]
    first = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
    own, n = clf.result_.w[len(first) :], len(first)
    signs = np.where(clf.classes_[1] == Y, 1.0, -1.0)

    def at(w):
        torch.nn.utils.vector_to_parameters(torch.tensor(w[:n]), network.parameters())
        with torch.no_grad():
            scores = network(rows).numpy().ravel()
            squares = sum(float((one**2).sum()) for one in weights)
        loss = np.logaddexp(0.0, -signs * scores).mean() + 0.5 * OPTIONS["alpha"] * squares
        gaps = [part.term.value(scores, w[part.auxiliary]) for part in parts]
        return scores, loss, np.concatenate(gaps)

    w = np.append(first, own)
    scores, loss, gaps = at(w)
    expected = residual(clf.multipliers_, lambda w: at(w)[1:], w, 1e-6)
    assert_allclose(scores, clf.decision_function(X), atol=1e-9)
    assert loss == pytest.approx(clf.objective_, rel=1e-8)
    assert max(0.0, gaps.max()) == pytest.approx(clf.violation_, abs=1e-8)
    assert clf.kkt_residual_ == pytest.approx(expected, rel=1e-2, abs=1e-6)
