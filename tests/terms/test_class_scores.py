"""Terms of several classes: log odds, losses, and terms of every class's log odds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import expit, logit, softmax
from sklearn.metrics import log_loss

from fairconstrained import constraints
from fairconstrained.functions.losses import Hinge, Logistic
from fairconstrained.functions.surrogates import Ramp, Sigmoid, Stretched
from fairconstrained.terms import classes
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import cell_matrix

N, K = 60, 4
RNG = np.random.default_rng(0)
Y, GROUPS = np.arange(N) % K, RNG.integers(0, 2, N)
SCORES = 2.0 * RNG.standard_normal((N, K))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
RATES = {
    "demographic parity": constraints.DemographicParity(0.05),
    "equal opportunity": constraints.EqualOpportunity(0.05),
    "predictive equality": constraints.PredictiveEquality(0.05),
    "equalized odds": constraints.EqualizedOdds(0.05, against="overall"),
    "error rates": constraints.ErrorRateParity(0.05),
    "disparate impact": constraints.DisparateImpact(0.8),
    "balanced rates": constraints.BalancedRate(beta=1.0, kappa=0.05),
    "minority": constraints.MinorityRate(0.3),
}
RANKS = {
    "group AUC": constraints.GroupAUCParity(0.05),
    "inter-group AUC": constraints.InterGroupAUCParity(0.05, surrogate="sigmoid"),
    "intra-group AUC": constraints.IntraGroupAUCParity(0.05),
    "ROC": constraints.ROCParity(0.05, thresholds=[-1.0, 0.0]),
}


def by_class(constraint):
    terms = [constraint.bind(np.where(k == Y, 1.0, -1.0), GROUPS, WEIGHTS) for k in range(K)]
    return classes.ByClass(tuple(terms), tuple("abcd"))


def numerical(function, scores):
    return approx_fprime(scores.ravel(), function, 1e-6).reshape(scores.shape)


def test_the_sigmoid_of_log_odds_is_the_soft_max():
    assert_allclose(expit(classes.log_odds(SCORES)), softmax(SCORES, axis=1), rtol=1e-12)


def test_log_odds_of_small_differences_are_exact():
    assert_allclose(classes.log_odds(np.full((1, K), 1e6)), -np.log(K - 1.0) * np.ones((1, K)))


def test_the_largest_score_is_predicted_and_the_first_of_equal_ones():
    scores = np.array([[0.0, 2.0, 1.0], [3.0, 3.0, 3.0]])
    assert_array_equal(classes.predicted(scores), [[-1.0, 1.0, -1.0], [1.0, -1.0, -1.0]])


LOSS = classes.MultinomialLoss(cell_matrix(np.zeros(N, dtype=int), WEIGHTS, 1), Y)


def test_the_multinomial_loss_is_the_log_loss_and_its_gradient():
    expected = log_loss(Y, softmax(SCORES, axis=1), sample_weight=WEIGHTS)
    assert_allclose(LOSS.value(SCORES), expected)
    wrong = np.average(SCORES.argmax(axis=1) != Y, weights=WEIGHTS)
    assert_allclose(LOSS.zero_one().value(SCORES), wrong)
    found = LOSS.vjp(SCORES, np.array([3.0]))[0]
    expected = numerical(lambda s: 3.0 * LOSS.value(s.reshape(N, K))[0], SCORES)
    assert_allclose(found, expected, atol=1e-7)


def test_shards_of_the_multinomial_loss_add_up():
    pieces = np.array_split(np.arange(N), 3)
    found = [LOSS.take(rows, np.ones(len(rows))).forward(SCORES[rows])[0] for rows in pieces]
    assert_allclose(np.sum(found, axis=0), LOSS.forward(SCORES)[0])


@pytest.mark.parametrize("name", {**RATES, **RANKS})
def test_gradients(name):
    term = by_class({**RATES, **RANKS}[name])
    v = np.random.default_rng(1).standard_normal(term.n_outputs)
    found, own = term.vjp(SCORES, v, term.auxiliary_start)
    assert own.shape == (term.n_auxiliary,)
    expected = numerical(lambda s: v @ term.value(s.reshape(N, K), term.auxiliary_start), SCORES)
    assert_allclose(found, expected, atol=1e-5)
    assert np.isfinite(term.vjp(1e4 * SCORES, 1e3 * v, term.auxiliary_start)[0]).all()


@pytest.mark.parametrize("name", RATES)
def test_values_are_those_of_each_class_on_probabilities(name):
    term, columns = by_class(RATES[name]), logit(softmax(SCORES, axis=1))
    each = [one.value(columns[:, k]) for k, one in enumerate(term.terms)]
    assert_allclose(term.value(SCORES), np.concatenate(each), atol=1e-9)
    assert len(term.names) == term.n_outputs
    assert term.names[0].startswith("class a: ")


@pytest.mark.parametrize("name", RATES)
def test_zero_one_versions_count_the_predicted_class(name):
    strict = by_class(RATES[name]).zero_one()
    assert strict.counts_predictions
    decided = SCORES.argmax(axis=1)
    columns = [np.where(decided == k, 1.0, -1.0) for k in range(K)]
    pairs = list(zip(strict.terms, columns, strict=True))
    assert_allclose(strict.value(SCORES), np.concatenate([one.value(s) for one, s in pairs]))
    assert_allclose(strict.gap(SCORES), np.concatenate([one.gap(s) for one, s in pairs]))


@pytest.mark.parametrize("name", RATES)
def test_batches_of_all_rows_are_the_term(name):
    term = by_class(RATES[name])
    assert term.batchable
    order = np.random.default_rng(2).permutation(N)
    assert_allclose(
        term.take(order, np.full(len(order), term.n_rows / len(order))).value(SCORES[order]),
        term.value(SCORES),
        atol=1e-12,
    )
    assert len(term.strata()) == N


def test_ramps_are_smoothed():
    term = by_class(constraints.DemographicParity(0.05, surrogate="ramp"))
    assert not term.smooth
    assert term.smoothable
    rounded = term.smoothed(0.1)
    assert rounded.smooth
    near = np.abs(rounded.value(SCORES) - term.value(SCORES))
    assert near.max() <= 0.1
    assert rounded.subgradient_error(SCORES).shape == (term.n_outputs,)


def test_terms_without_an_ability_are_not_left_out():
    """A bound on some of the classes only would be a silent error."""

    class Unable(Term):
        n_rows, n_outputs, names = 4, 1, ("none",)
        forward = head = head_vjp = zero_one = None

    able = constraints.DemographicParity(0.1).bind(np.ones(4), np.array([0, 0, 1, 1]), np.ones(4))
    term = classes.ByClass((able, Unable()), ("a", "b"))
    assert not term.batchable
    with pytest.raises(TypeError, match="Unable has no batches"):
        term.take(np.arange(2), np.ones(2))


FUNCTIONS = [Stretched(Sigmoid(0.7)), Stretched(Ramp()), Logistic(), Hinge()]


@pytest.mark.cases(12)
@pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
@pytest.mark.parametrize(("kept", "left_out"), [([2, 0], []), ([0], [0]), ([1, 2, 3], [0])])
def test_losses_of_classes_are_the_formula(function, kept, left_out, rng):
    """3S-Econ, equation (3): class 1 is compared with 2..K, class k >= 2 with 2..K without k."""
    bounds = np.linspace(0.5, 0.7, len(kept))
    term = classes.class_losses(function, Y, WEIGHTS, kept, bounds, left_out=left_out)
    expected = []
    for k in kept:
        rows, others = k == Y, [j for j in range(K) if j != k and j not in left_out]
        pairs = sum(function.value(SCORES[rows, k] - SCORES[rows, j]) for j in others)
        expected.append(np.average(pairs, weights=WEIGHTS[rows]))
    assert_allclose(term.gap(SCORES), expected)
    assert_allclose(term.value(SCORES), expected - bounds)
    v, other = rng.normal(size=len(kept)), SCORES + rng.normal(size=SCORES.shape)
    slopes = numerical(lambda s: v @ term.value(s.reshape(N, K)), SCORES)
    assert_allclose(term.vjp(SCORES, v)[0], slopes, atol=1e-6)
    majorant = term.convexify(SCORES)
    assert_allclose(majorant.value(SCORES), term.value(SCORES))
    assert np.all(majorant.value(other) >= term.value(other) - 1e-12)
