"""FairRanker: its attributes, arguments and certificate, its goal, and training in batches."""

import numpy as np
import pandas as pd
import pytest
from _support.certificates import residual
from numpy.testing import assert_allclose
from sklearn.base import clone

import fairconstrained as fc
from benchmarks.fuzz.formulas import pair_mean

X, Y, QUERY, GROUPS = fc.make_biased_ranking(12, 3, n_documents=30, random_state=0)


def fitted(*args, **options):
    ranker = fc.FairRanker(*args, **{"kappa": 0.25 if args else 0.1, **options})
    return ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def cells(scores, phi):
    """Return the means over the pairs of every query: of 0 above 1 and of 1 above 0."""

    def rows(query, group, label):
        inside = scores[(query == QUERY) & (group == GROUPS) & (label == Y)]
        return inside, np.ones(len(inside))

    pairs = [[(rows(q, 0, 1), rows(q, 1, 0)), (rows(q, 1, 1), rows(q, 0, 0))] for q in range(12)]
    return np.array([[pair_mean(phi, *pair) for pair in one] for one in pairs])


def test_the_constraints_hold_and_bind(ranker):
    assert ranker.result_.status.value == "converged"
    assert ranker.violation_ <= 1e-4
    assert ranker.multipliers_.shape == (24,)
    assert ranker.multipliers_.max() > 1e-3
    unconstrained = fc.FairRanker(constraint=None).fit(X, Y, query=QUERY)
    assert ranker.objective_ > unconstrained.objective_ + 1e-3
    assert np.isnan(unconstrained.gap_)


def test_gaps_are_those_of_the_means_of_pairs(ranker):
    scores = ranker.predict(X)
    assert_allclose(scores, X @ ranker.coef_)
    proxies = cells(scores, lambda t: np.maximum(1.0 - t, 0.0))
    errors = cells(scores, lambda t: (t < 0) + 0.5 * (t == 0))
    assert ranker.gap_ == pytest.approx(np.abs(proxies[:, 0] - proxies[:, 1]).max(), abs=1e-9)
    assert ranker.gap_ <= 0.1 + 1e-4
    largest = np.abs(errors[:, 0] - errors[:, 1]).max()
    assert ranker.decision_gap_ == pytest.approx(largest)
    found = fc.metrics.query_parity_difference(Y, scores, query=QUERY, sensitive_features=GROUPS)
    assert found == pytest.approx(largest)


def test_the_certificate_is_recomputed_from_outside():
    """With a smooth loss: the Lagrangian, in the units of X, by loops."""
    ranker = fitted(fc.constraints.QueryParity(0.05, loss="logistic"), tol=1e-6)
    weights = ranker.coef_ * ranker.feature_scale_

    def logistic(t):
        return np.log1p(np.exp(-t))

    def values(w):
        scores = X @ (w / ranker.feature_scale_)
        of_labels = [[scores[(q == QUERY) & (k == Y)] for k in (1, 0)] for q in range(12)]
        losses = [logistic(first[:, None] - second).ravel() for first, second in of_labels]
        differences = np.subtract(*cells(scores, logistic).T)
        constraints = np.column_stack([differences, -differences]).ravel() - 0.05
        return np.concatenate(losses).mean() + 0.5e-4 * w @ w, constraints

    objective, constraints = values(weights)
    assert ranker.result_.status.value == "converged"
    assert residual(ranker.multipliers_, values, weights) <= 1e-6
    assert constraints.max() <= 1e-6
    assert ranker.objective_ == pytest.approx(objective, abs=1e-10)


def test_the_score_is_the_mean_ndcg(ranker):
    expected = fc.metrics.mean_ndcg(Y, ranker.predict(X), query=QUERY)
    assert ranker.score(X, Y, query=QUERY) == pytest.approx(expected)
    for y, query, named in ((Y[1:], QUERY, "y"), (Y, QUERY[1:], "query")):
        with pytest.raises(ValueError, match=f"^{named} has .* rows, X has"):
            ranker.score(X, y, query=query)


def test_rows_need_not_be_sorted_and_labels_may_be_anything(ranker, rng):
    order = rng.permutation(len(Y))
    names = np.array([f"query {k}" for k in rng.permutation(12)])
    other = clone(ranker).fit(
        pd.DataFrame(X[order], columns=list("abc")),
        np.array(["no", "yes"])[Y[order]],
        query=names[QUERY[order]].tolist(),
        sensitive_features=np.array(["low", "high"])[GROUPS[order]],
    )
    assert other.classes_.tolist() == ["no", "yes"]
    assert other.objective_ == pytest.approx(ranker.objective_, abs=1e-4)
    assert_allclose(other.coef_, ranker.coef_, atol=2e-3)
    table = pd.DataFrame(X, columns=list("abc"))
    score = other.score(table, np.array(["no", "yes"])[Y], query=QUERY)
    assert score == pytest.approx(ranker.score(X, Y, query=QUERY), abs=1e-2)


def test_queries_are_needed(ranker):
    with pytest.raises(ValueError, match=r"FairRanker.fit needs query=.*metadata routing"):
        fc.FairRanker().fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match=r"FairRanker.score needs query=.*metadata routing"):
        ranker.score(X, Y)


def test_classifiers_do_not_take_queries():
    for options in ({"constraint": "query_parity"}, {"loss": "query_pairs"}):
        with pytest.raises(ValueError, match="use FairRanker"):
            fc.FairLogisticClassifier(**options).fit(X, Y, sensitive_features=GROUPS)


def test_a_warm_start_takes_fewer_iterations():
    ranker = fitted(fc.constraints.QueryParity(0.1, loss="logistic"), warm_start=True, solver="ipc")
    first = ranker.result_.data_passes
    ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)
    assert ranker.result_.converged
    assert ranker.result_.data_passes < first


DOCUMENTS, RELEVANT, OF_DOCUMENTS, QUALITY = fc.make_biased_ranking(25, 4, random_state=0)
AVERAGE, ROWS = fc.constraints.QueryParity(average=True), (DOCUMENTS, RELEVANT)
GIVEN = {"query": OF_DOCUMENTS, "sensitive_features": QUALITY}


def fairest(constraint=AVERAGE, **options):
    ranker = fc.FairRanker(constraint, goal="fairness", random_state=0, **options)
    return ranker.fit(*ROWS, **GIVEN)


def test_the_loss_allowed_is_spent_on_fairness():
    free = fc.FairRanker(None).fit(*ROWS, query=OF_DOCUMENTS)
    unfair = fc.FairRanker(AVERAGE, 1.0).fit(*ROWS, **GIVEN)
    fair = fairest(max_loss_increase=0.02)
    assert fair.result_.converged
    assert_allclose(fair.objective_, 1.02 * free.objective_, rtol=2e-4)
    assert fair.gap_ < unfair.gap_ - 0.1
    assert fair.multipliers_[-1] > 0.0, "the constraint on the loss is active"


def test_a_constraint_for_every_query_gives_the_gap_of_the_worst():
    fair = fairest("query_parity", max_loss_increase=0.1)
    free = fc.FairRanker(None).fit(*ROWS, query=OF_DOCUMENTS)
    problem = fair.bind(*ROWS, **GIVEN).problem
    assert fair.violation_ <= fair.tol
    assert fair.gap_ < problem.at(free.result_.w).gap - 0.05
    assert problem.at(fair.result_.w[:-1]).gap == pytest.approx(fair.gap_, abs=1e-9)
