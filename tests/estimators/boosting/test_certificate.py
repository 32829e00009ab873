"""Certificates of boosted trees from values alone, and the multiplier rule from formulas."""

from functools import partial

import numpy as np
import pytest
from _support.boosting import rows, small
from _support.certificates import residual
from numpy.testing import assert_allclose
from scipy.special import expit

from fairconstrained import DemographicParity, constraints, make_biased_classification
from fairconstrained.estimators.score_lagrangian import ScoreLagrangian
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.trees import ScoreModel, ScoreSpace
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.cell_means import average

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
@pytest.mark.parametrize("name", constraints.CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", OPTIONS)
def test_certificates_of_all_constraints_follow_from_values_alone(name, weighted, kind):
    """Slopes are differences of the Lagrangian's values; leaves are LightGBM's."""
    (X, y, groups), options = rows(), OPTIONS[kind]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    constraint = constraints.BoundedGroupLoss(0.5) if name == "bounded_group_loss" else name
    clf = small(constraint, kappa=0.05, tol=3e-5, **options)  # differences reach over kinks
    fit = clf.bind(X, y, weight, groups)  # the same seed grows the same trees
    clf.fit(X, y, weight, sensitive_features=groups)
    boosted = lightgbm.Booster(model_str=fit.model.grown.text)
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


N = 300


def problem_of(constraint):
    X, y, groups = make_biased_classification(N, 3, random_state=0)
    signs, weight = 2.0 * y - 1.0, np.ones(N)
    model = ScoreModel(ScoreSpace([X]), np.arange(N))
    term, end = constraint.bind(signs, groups, weight), N
    part = CompositeFunction(model, term, auxiliary=slice(N, end + term.n_auxiliary))
    loss = CompositeFunction(model, average(Logistic(), signs, weight))
    return Problem(loss, (part,)), groups


def hessian_of(scores):
    return expit(scores) * expit(-scores) / N


def test_the_gradient_is_that_of_the_augmented_lagrangian(rng):
    problem, groups = problem_of(DemographicParity(0.0))
    scores, rate = rng.normal(size=N) + 0.5 * groups, 0.1
    lagrangian = ScoreLagrangian(problem, rate)
    gradient, factor = lagrangian.step(scores, lambda: hessian_of(scores))
    sigma = lagrangian.penalty / (rate * lagrangian._squares * lagrangian._gram)
    values = problem.at(scores).constraints
    slope = expit(scores) * expit(-scores)
    signed = np.where(groups == 0, 1.0, -1.0) / np.bincount(groups)[groups]
    weights = np.maximum(sigma * values, 0.0)  # the multipliers are zero at first
    assert_allclose(gradient, (weights[0] - weights[1]) * signed * slope, rtol=1e-10, atol=1e-14)
    assert factor == 1.0


def test_multipliers_rise_while_a_constraint_is_violated_and_fall_after(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1)
    unfair, fair = 2.0 * groups - 1.0, np.zeros(N)
    seen = []
    for scores in (unfair, unfair, unfair, fair, fair):
        lagrangian.step(scores, partial(hessian_of, scores))
        seen.append(lagrangian.multipliers.max())
    assert seen[0] == 0.0 < seen[1] < seen[2]
    assert seen[4] < seen[3] < seen[2]
    assert lagrangian.violation(unfair) == pytest.approx(problem.at(unfair).violation)


def test_multipliers_follow_constraints_on_other_rows(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1)
    fair, elsewhere = 0.1 * rng.normal(size=N), np.array([0.3, -0.4])
    for _ in range(3):
        gradient, _ = lagrangian.step(fair, partial(hessian_of, fair), elsewhere)
    assert problem.at(fair).violation == 0.0
    assert lagrangian.multipliers[0] > 0.0 == lagrangian.multipliers[1]
    assert gradient @ (groups == 0) > 0.0 > gradient @ (groups == 1)


def test_zero_one_violations_are_those_of_predictions(rng):
    problem, groups = problem_of(DemographicParity(0.05))
    lagrangian = ScoreLagrangian(problem, 0.1, zero_one=True)
    scores = np.where(groups == 0, 0.01, -0.01)
    assert lagrangian.violation(scores) == pytest.approx(0.95)
    assert lagrangian.violation(np.ones(N)) == 0.0
    assert problem.at(scores).violation == 0.0


def test_variables_of_terms_are_moved(rng):
    parity = constraints.PartialDemographicParity(0.0, ranks=(0.1, 0.6), n_ranks=3)
    problem, groups = problem_of(parity)
    lagrangian = ScoreLagrangian(problem, 0.1, first_score=-1.0)
    start = lagrangian.auxiliary.copy()
    assert_allclose(start, problem.start()[N:] - 1.0)
    scores = rng.normal(size=N) + groups
    lagrangian.step(scores, lambda: hessian_of(scores))
    assert np.any(lagrangian.auxiliary != start)
    assert np.abs(lagrangian.auxiliary - start).max() <= 0.1 + 1e-12


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_grown_trees_nearly_meet_an_active_bound(constraint):
    X, y, groups = rows(4000)
    fit = small(constraint, kappa=0.03, n_estimators=100).bind(X, y, None, groups)
    at = fit.problem.at(fit.model.grown.first.w)
    free = small(None, n_estimators=100).fit(X, y)
    unfair = fit.problem.constraints[0].term.value(free.decision_function(X)).max()
    assert at.violation <= 5e-3 < 0.05 < unfair
    assert at.objective < 0.69
