"""Certificates of boosted trees, recomputed from values alone."""

import numpy as np
import pytest
from _support.boosting import rows, small
from _support.certificates import complementarity, stationarity
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.utils.class_weight import compute_sample_weight

from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss

OTHERS = {"pos_label": 0, "class_weight": "balanced", "threshold": 0.4}


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


def rates_of(constraint, y, groups):
    """Return the rows of each rate that the constraint compares, by group."""
    if constraint == "demographic_parity":
        return [[groups == 0, groups == 1]]
    return [[(groups == a) & (y == label) for a in (0, 1)] for label in (1, 0)]


@pytest.mark.parametrize("n_fitted", [None, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_leaf_values_are_a_kkt_point_given_the_trees(constraint, weighted, n_fitted):
    (X, y, groups), kappa, alpha = rows(), 0.03, 0.1
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    clf = small(constraint, kappa=kappa, alpha=alpha, n_fitted_trees=n_fitted)
    fit = clf.bind(X, y, weight if weighted else None, groups)
    clf.fit(X, y, weight if weighted else None, sensitive_features=groups)
    matrix, values, sizes = indicators(clf.booster_, X)
    intercept = clf.result_.w[-1]  # the first tree contains it
    values[: sizes[0]] -= intercept
    text = fit.model.grown.trees.text  # the same seed grows the same trees
    boosted = indicators(lightgbm.Booster(model_str=text), X)[1]
    if n_fitted is not None:  # the trees before the last ones are one column with a factor
        n = sum(sizes[:-n_fitted])
        factor = values[:n] @ boosted[:n] / (boosted[:n] @ boosted[:n])
        assert_allclose(values[:n], factor * boosted[:n], atol=1e-14)
        matrix = np.column_stack([matrix[:, :n] @ boosted[:n], matrix[:, n:]])
        values, boosted = np.append(factor, values[n:]), np.append(1.0, boosted[n:])
    scores = matrix @ values + intercept
    assert_allclose(scores, clf.decision_function(X), rtol=0, atol=1e-12)

    share = weight / weight.sum()
    distance = values - boosted
    objective = share @ np.logaddexp(0.0, -(2 * y - 1) * scores) + alpha / 2 * distance @ distance
    assert_allclose(clf.objective_, objective, rtol=1e-10)

    gaps, slopes = [], []
    probability = expit(scores)
    for first, second in rates_of(constraint, y, groups):
        first, second = (weight * cell / weight[cell].sum() for cell in (first, second))
        for sign in (1.0, -1.0):
            difference = sign * (first - second)
            gaps.append(difference @ probability - kappa)
            slopes.append(difference * probability * (1.0 - probability))
    assert_allclose(clf.violation_, max(0.0, *gaps), atol=1e-12)
    assert clf.violation_ <= 1e-4
    assert clf.gap_ == pytest.approx(max(gaps) + kappa)

    gaps, slopes, multipliers = np.array(gaps), np.array(slopes), clf.multipliers_
    order = [np.argmin(abs(gaps - g)) for g in _constraints(fit, clf)]
    gaps, slopes = gaps[order], slopes[order]
    on_scores = share * (probability - y) + multipliers @ slopes
    gradient = np.append(matrix.T @ on_scores + alpha * distance, on_scores.sum())
    stationarity, above, below = np.linalg.norm(gradient), np.maximum(gaps, 0), np.maximum(-gaps, 0)
    complementarity = multipliers @ below + multipliers @ above / max(1.0, multipliers.sum())
    assert np.all(multipliers >= 0.0) and multipliers.max() > 0.01  # a constraint is active
    assert_allclose(clf.kkt_residual_, max(stationarity, complementarity), rtol=1e-6, atol=1e-10)
    assert clf.kkt_residual_ <= 1e-4


def _constraints(fit, clf):
    """Return the constraints' values in the library's order, only to match the order."""
    return fit.problem.at(clf.result_.w).constraints


@pytest.mark.filterwarnings("ignore:The same class is predicted")  # kappa is small for some
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("options", [{}, OTHERS], ids=["plain", "label, weights and threshold"])
def test_certificates_of_all_constraints_follow_from_values_alone(name, options):
    """Slopes are differences of the Lagrangian's values; leaves are LightGBM's."""
    X, y, groups = rows()
    constraint = BoundedGroupLoss(0.5) if name == "bounded_group_loss" else name
    clf = small(constraint, kappa=0.05, tol=3e-5, **options)  # differences reach over kinks
    fit = clf.bind(X, y, None, groups)
    clf.fit(X, y, sensitive_features=groups)
    matrix, values, _ = indicators(lightgbm.Booster(model_str=fit.model.grown.trees.text), X)
    w, n = clf.result_.w, len(values)
    favourable = y == clf.pos_label_
    signs = np.where(favourable, 1.0, -1.0)
    weight = compute_sample_weight(options.get("class_weight"), y)
    shift = fit.data.convention.threshold

    def scores(w):
        return matrix @ w[:n] + w[n]

    def constraints(w):
        parts = fit.problem.constraints
        return np.concatenate([part.term.value(scores(w), w[part.auxiliary]) for part in parts])

    def lagrangian(w):
        margins = signs * (scores(w) + shift)
        loss = np.average(np.logaddexp(0.0, -margins), weights=weight)
        distance = w[:n] - values  # from the boosted ones
        penalty = 0.5 * clf.alpha * distance @ distance
        return loss + penalty + clf.multipliers_ @ constraints(w)

    sign = 1.0 if clf.pos_label_ == clf.classes_[1] else -1.0
    assert_allclose(sign * (scores(w) + shift), clf.decision_function(X), rtol=0, atol=1e-12)
    at = constraints(w)
    residual = max(stationarity(lagrangian, w), complementarity(clf.multipliers_, at))
    assert max(0.0, at.max()) == pytest.approx(clf.violation_, abs=1e-12)
    assert clf.violation_ <= 1e-4
    assert np.all(clf.multipliers_ >= 0.0)
    assert residual <= 1.01e-4
    if fit.problem.smooth:
        assert clf.kkt_residual_ == pytest.approx(residual, rel=1e-2, abs=1e-6)
    else:  # near a kink another subgradient than the difference may be better
        assert clf.kkt_residual_ <= 1.01 * residual + 1e-6
