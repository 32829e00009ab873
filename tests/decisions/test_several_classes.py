"""Predictions of several classes: their gaps, and the search for bounds on them."""

import numpy as np
import pytest
from _support.labelled_rows import by_formula
from _support.three_classes import three_classes
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier, constraints, fairness_report
from fairconstrained.constraints import DisparateImpact, MinorityRate
from fairconstrained.decisions.score_line import ClassIntercept, ClassScores, Line, points_between
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
    everything, intercept = random.standard_normal(len(w)), search.shifts[random.integers(3)][0]
    scores = fit.model.forward(w)[0]
    for direction, of in (everything, search.rows_on_line), (intercept, search.rows_on_shift):
        by = fit.model.forward(direction)[0]
        line = Line(search.parts, w, direction, {search.model: of(scores, by)})
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
        some = random.choice(len(points), 15)
        found = [search.evaluate(line.model(points[k])) for k in some]
        assert_allclose(correct.sum(axis=0)[some], [one.accuracy for one in found], atol=1e-12)
        assert_allclose(violations.max(axis=0)[some], [one.violation for one in found], atol=1e-12)
        kinds.append(type(line.rows[search.model]))
    assert kinds == [ClassScores, ClassIntercept]


def test_sharp_soft_max_rates_are_those_of_predictions():
    fit, search = searched("equalized_odds")
    one = search.evaluate(fit.unconstrained.result.w)
    parts = [steeper_part(smooth_parts(search)[1], factor) for factor in (1.0, 8.0, 1e4)]
    values = [part.term.value(one.scores[search.model]) for part in parts]
    errors = [np.abs(each - search.outputs(one)[0]).max() for each in values]
    assert errors[0] > errors[1] > errors[2] < 2e-3


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


K, ENDS, RNG = 4, (0.1, 0.5), np.random.default_rng(0)
X, GROUPS = RNG.normal(size=(240, 2)), RNG.integers(0, 2, 240)
SCORES = 0.7 * X @ RNG.normal(size=(2, K)) + np.outer(GROUPS, [0.8, 0.0, -0.5, 0.0])
Y = (SCORES + RNG.gumbel(size=(240, K))).argmax(axis=1)
X = np.column_stack([X, GROUPS + 0.5 * RNG.normal(size=240)])


GIVEN = {
    "disparate_impact": constraints.DisparateImpact(0.5),
    "balanced_rate": constraints.BalancedRate(beta=1.0),
    "minority_rate": constraints.MinorityRate(0.2, minority=1),
    "weak_partial_dp": constraints.WeakPartialDemographicParity(ranks=ENDS),
}
OF_TWO_CLASSES = {"bounded_group_loss", "intersectional_loss", "coverage", "churn"}
OF_SCORES = {"group_auc", "inter_group_auc", "intra_group_auc", "roc_parity", "partial_dp"}
OF_PREDICTIONS = {*constraints.CLASSIFIER_CONSTRAINTS} - OF_TWO_CLASSES - OF_SCORES


def check(clf, gaps):
    """Compare what the fit and the report say with the gaps of the classes."""
    assert_allclose(clf.decision_gap_, max(gaps), atol=1e-12)
    found = (
        fairness_report(clf, X, Y, GROUPS).constraints["decisions"].groupby(level="class").first()
    )
    assert_allclose(found[["all classes", *map(str, range(K))]], [max(gaps), *gaps], atol=1e-12)


def gap(name, decided, own):
    """Return the gap of predictions of a class, by the formula."""
    if name == "minority_rate":  # the formula is that of the smallest group
        return 1.0 - decided[GROUPS == 1].sum() / decided.sum()
    rule = GIVEN.get(name) or constraints.CONSTRAINTS[name](kappa=0.1)
    signs = [np.where(each, 1, -1) for each in (own, decided)]
    return by_formula(rule, signs[0], GROUPS, np.ones(len(Y)), signs[1], decisions=True).gap


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fairconstrained.InputWarning")
@pytest.mark.parametrize("enforce", ["score", "decision"])
@pytest.mark.parametrize("name", sorted(OF_PREDICTIONS))
def test_gaps_are_those_of_predictions(name, enforce):
    clf = FairLogisticClassifier(GIVEN.get(name, name), 0.1, enforce=enforce, random_state=0)
    predicted = clf.fit(X, Y, sensitive_features=GROUPS).predict(X)
    check(clf, [gap(name, predicted == k, k == Y) for k in range(K)])


@pytest.mark.parametrize(("name", "n_strata"), [("group_auc", 2), ("partial_dp", 1)])
def test_constraints_on_scores_are_met(name, n_strata):
    given = {"sensitive_features": GROUPS[:90], "control_features": np.arange(90) % n_strata}
    clf = FairLogisticClassifier(name, 0.4, enforce="decision", max_iter=20)
    assert clf.fit(X[:90], Y[:90], **given).decision_gap_ <= 0.4 + 1e-9
