"""The search for bounds on predictions of several classes: lines and sharpness."""

import numpy as np
import pytest
from _support.three_classes import three_classes
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier
from fairconstrained.constraints import DisparateImpact, MinorityRate
from fairconstrained.decisions.score_line import ClassScores, Line, points_between
from fairconstrained.decisions.smooth_rounds import smooth_parts, steeper_part

N = 300
RATES = [
    "demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds",
    "error_rate_parity", DisparateImpact(0.9), MinorityRate(0.45), "balanced_rate",
]  # fmt: skip


def searched(constraint, kappa=0.02, seed=0, **weights):
    X, y, groups = three_classes(N, seed=seed)
    clf = FairLogisticClassifier(constraint, kappa, enforce="decision")
    fit = clf.bind(X, y, weights.get("sample_weight"), sensitive_features=groups)
    return fit, fit.decision_task(fit.solve()[0]).candidates()


def lines_of(fit, search, random):
    """Return a line of all classes and one of a single class, with points between the flips."""
    w = fit.unconstrained.result.w
    everything, single = random.standard_normal(len(w)), np.zeros_like(w)
    single[random.integers(len(w))] = 1.0
    scores = fit.model.forward(w)[0]
    for direction in (everything, single):
        by = fit.model.forward(direction)[0]
        line = Line(search.parts, w, direction, {search.model: search.rows_on_line(scores, by)})
        yield line, points_between(line.flips(), 512, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constraint", RATES, ids=str)
def test_counts_on_lines_are_those_of_every_model(constraint, weighted):
    random = np.random.default_rng(1)
    weight = random.uniform(0.1, 3.0, N) if weighted else None
    fit, search = searched(constraint, sample_weight=weight)
    kinds = []
    for line, points in lines_of(fit, search, random):
        correct, violations = line.outputs(points)
        accuracy = correct.sum(axis=0)
        some = random.choice(len(points), 15)
        found = [search.evaluate(line.model(points[k])) for k in some]
        assert_allclose(accuracy[some], [one.accuracy for one in found], atol=1e-12)
        assert_allclose(violations.max(axis=0)[some], [one.violation for one in found], atol=1e-12)
        kinds.append(type(line.rows[search.model]))
    assert kinds == [ClassScores, ClassScores]


def test_sharp_soft_max_rates_are_those_of_predictions():
    fit, search = searched("equalized_odds")
    one = search.evaluate(fit.unconstrained.result.w)
    errors = []
    for factor in (1.0, 8.0, 1e4):
        part = steeper_part(smooth_parts(search)[1], factor)
        values = part.term.value(one.scores[search.model])
        errors.append(np.abs(values - search.outputs(one)[0]).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 2e-3


@pytest.mark.parametrize("number", [0, 1])
def test_smooth_errors_and_constraints_have_the_derivatives_of_their_values(number):
    fit, search = searched("demographic_parity")
    w = fit.unconstrained.result.w
    scores = fit.model.forward(w)[0]
    part = smooth_parts(search)[number]
    statistics, pullback = part.term.forward(scores)
    random = np.random.default_rng(0)
    v, direction = random.standard_normal(part.term.n_outputs), random.standard_normal(scores.shape)
    slope = np.sum(pullback(part.term.head_vjp(statistics, v))[0] * direction)
    ends = [part.term.value(scores + h * direction) @ v for h in (1e-6, -1e-6)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)
