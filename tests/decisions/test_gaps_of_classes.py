"""Several classes: gaps of decisions are those of `predict`, recomputed with NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from fairconstrained import FairLogisticClassifier, constraints, fairness_report

N, K, ENDS, RANGE = 240, 4, (0.1, 0.5), (0.2, 0.6)


def population(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    scores = 0.7 * X @ rng.normal(size=(2, K)) + np.outer(groups, [0.8, 0.0, -0.5, 0.0])
    y = (scores + rng.gumbel(size=(n, K))).argmax(axis=1)
    return np.column_stack([X, groups + 0.5 * rng.normal(size=n)]), y, groups


X, Y, GROUPS = population()
FIRST, SECOND = GROUPS == 0, GROUPS == 1


def gap(values, rows=slice(None)):
    """Return the difference of the two groups' means among some rows."""
    inside = np.zeros(len(values), dtype=bool)
    inside[rows] = True
    return abs(values[inside & FIRST].mean() - values[inside & SECOND].mean())


def rates(decided):
    return np.array([decided[FIRST].mean(), decided[SECOND].mean()])


def auc(positive, score, rows):
    return roc_auc_score(positive[rows], score[rows])


def inter(score, own):
    either = [(FIRST & own) | (SECOND & ~own), (SECOND & own) | (FIRST & ~own)]
    return abs(auc(own, score, either[0]) - auc(own, score, either[1]))


def ranked(score):
    """Return the scores of a group in the range of ranks."""
    rank = np.arange(len(score)) / len(score)
    return np.sort(score)[::-1][(rank >= RANGE[0] - 1e-12) & (rank < RANGE[1] - 1e-12)]


OF_PREDICTIONS = {
    "demographic_parity": lambda decided, own: gap(decided),
    "equal_opportunity": lambda decided, own: gap(decided, own),
    "predictive_equality": lambda decided, own: gap(decided, ~own),
    "equalized_odds": lambda decided, own: max(gap(decided, own), gap(decided, ~own)),
    "error_rate_parity": lambda decided, own: gap(decided != own),
    "calibration_parity": lambda decided, own: gap(decided.astype(float) - own),
    "predictive_parity": lambda decided, own: gap(own, decided),
    "disparate_impact": lambda decided, own: np.ptp(rates(decided)) / max(*rates(decided), 1e-9),
    "balanced_rate": lambda decided, own: 1.0 + gap(decided),
    "minority_rate": lambda decided, own: 1.0 - decided[SECOND].sum() / decided.sum(),
    "weak_partial_dp": lambda decided, own: np.ptp(np.clip(rates(decided), *ENDS)) / 0.4,
}
OF_LOG_ODDS = {
    "group_auc": lambda score, own: abs(roc_auc_score(FIRST, score) - 0.5),
    "inter_group_auc": inter,
    "intra_group_auc": lambda score, own: abs(auc(own, score, FIRST) - auc(own, score, SECOND)),
    "roc_parity": lambda score, own: max(gap(score > level) for level in (-1.0, 0.0, 1.0)),
    "partial_dp": lambda score, own: ks_2samp(ranked(score[FIRST]), ranked(score[SECOND]))[0],
}
GIVEN = {
    "disparate_impact": constraints.DisparateImpact(0.5),
    "minority_rate": constraints.MinorityRate(0.2, minority=1),
    "weak_partial_dp": constraints.WeakPartialDemographicParity(ranks=ENDS),
    "partial_dp": constraints.PartialDemographicParity(ranks=RANGE),
    "roc_parity": constraints.ROCParity(thresholds=[-1.0, 0.0, 1.0]),
}


def fitted(name, enforce, kappa):
    clf = FairLogisticClassifier(GIVEN.get(name, name), kappa, enforce=enforce, random_state=0)
    return clf.fit(X, Y, sensitive_features=GROUPS)


def check(clf, gaps):
    """Compare what the fit and the report say with the gaps of the classes."""
    assert_allclose(clf.decision_gap_, max(gaps), atol=1e-12)
    decisions = fairness_report(clf, X, Y, GROUPS).constraints["decisions"]
    found = decisions.groupby(level="class").first()
    assert_allclose(found["all classes"], max(gaps), atol=1e-12)
    assert_allclose([found[str(k)] for k in range(K)], gaps, atol=1e-12)


def test_every_constraint_of_several_classes_is_here():
    of_two_classes = {"bounded_group_loss", "intersectional_loss", "coverage", "churn"}
    assert {*OF_PREDICTIONS, *OF_LOG_ODDS} == {*constraints.CLASSIFIER_CONSTRAINTS} - of_two_classes


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fairconstrained.InputWarning")
@pytest.mark.parametrize("enforce", ["score", "decision"])
@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_gaps_are_those_of_predictions(name, enforce):
    clf = fitted(name, enforce, 0.1)
    predicted = clf.predict(X)
    check(clf, [OF_PREDICTIONS[name](predicted == k, k == Y) for k in range(K)])
