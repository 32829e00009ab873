"""Certificates of boosted trees, recomputed from values alone."""

import numpy as np
import pytest
from _support.boosting import rows, small
from _support.certificates import residual
from numpy.testing import assert_allclose

from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss

OPTIONS = {
    "plain": {},
    "label, weights and threshold": {"pos_label": 0, "class_weight": "balanced", "threshold": 0.4},
    "last trees": {"n_fitted_trees": 8},
}
lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")


def indicators(booster, X):
    """Return the one-hot leaves of the rows, the leaf values and the sizes of the trees."""
    leaves = booster.predict(X, pred_leaf=True)
    trees = booster.dump_model()["tree_info"]
    blocks, values, sizes = [], [], [tree["num_leaves"] for tree in trees]
    for k, size in enumerate(sizes):
        blocks.append((leaves[:, [k]] == np.arange(size)).astype(float))
        values += [booster.get_leaf_output(k, leaf) for leaf in range(size)]
    return np.hstack(blocks), np.array(values), sizes


@pytest.mark.cases(6)
@pytest.mark.filterwarnings("ignore:The same class is predicted")  # kappa is small for some
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", OPTIONS)
def test_certificates_of_all_constraints_follow_from_values_alone(name, weighted, kind):
    """Slopes are differences of the Lagrangian's values; leaves are LightGBM's."""
    (X, y, groups), options = rows(), OPTIONS[kind]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    constraint = BoundedGroupLoss(0.5) if name == "bounded_group_loss" else name
    clf = small(constraint, kappa=0.05, tol=3e-5, **options)  # differences reach over kinks
    fit = clf.bind(X, y, weight, groups)  # the same seed grows the same trees
    clf.fit(X, y, weight, sensitive_features=groups)
    boosted = lightgbm.Booster(model_str=fit.model.grown.trees.text)
    matrix, values, sizes = indicators(boosted, X)
    if kind == "last trees":  # those before are one column with a factor
        n = sum(sizes[:-8])
        matrix = np.column_stack([matrix[:, :n] @ values[:n], matrix[:, n:]])
        values = np.append(1.0, values[n:])
    w, n = clf.result_.w, len(values)
    favourable = y == clf.pos_label_
    signs = np.where(favourable, 1.0, -1.0)
    if "class_weight" in options:
        totals = np.bincount(y, weight)
        weight = weight * (weight.sum() / (2.0 * totals))[y]
    shift = fit.data.convention.threshold

    def scores(w):
        return matrix @ w[:n] + w[n]

    def values_at(w):
        margins = signs * (scores(w) + shift)
        loss = np.average(np.logaddexp(0.0, -margins), weights=weight)
        distance = w[:n] - values  # from the boosted ones
        parts = [part.term.value(scores(w), w[part.auxiliary]) for part in fit.problem.constraints]
        return loss + 0.5 * clf.alpha * distance @ distance, np.concatenate(parts)

    sign = 1.0 if clf.pos_label_ == clf.classes_[1] else -1.0
    assert_allclose(sign * (scores(w) + shift), clf.decision_function(X), rtol=0, atol=1e-12)
    objective, at = values_at(w)
    found = residual(clf.multipliers_, values_at, w)
    assert clf.objective_ == pytest.approx(objective, rel=1e-10)
    assert max(0.0, at.max()) == pytest.approx(clf.violation_, abs=1e-12)
    assert clf.violation_ <= 1e-4
    assert np.all(clf.multipliers_ >= 0.0)
    assert clf.multipliers_.max() > 0.01 or name not in ("demographic_parity", "equalized_odds")
    assert found <= 1.01e-4
    if fit.problem.smooth:
        assert clf.kkt_residual_ == pytest.approx(found, rel=1e-2, abs=1e-6)
    else:  # near a kink another subgradient than the difference may be better
        assert clf.kkt_residual_ <= 1.01 * found + 1e-6
