"""Measures of calibration and of rankings."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import ndcg_score, precision_score, roc_auc_score

import fairconstrained as fc
from fairconstrained import metrics
from fairconstrained.constraints import CalibrationParity
from fairconstrained.metrics.ranking import query_gaps

X, Y, GROUPS = fc.make_biased_classification(800, 3, gap=0.4, random_state=0)


MODEL = fc.FairLogisticClassifier(None).fit(X, Y)


P, DECIDED = MODEL.predict_proba(X)[:, 1], MODEL.predict(X)


MEMBERS = {"sensitive_features": GROUPS}


def test_predictive_parity_is_the_gap_of_precisions():
    each = [precision_score(Y[k == GROUPS], DECIDED[k == GROUPS]) for k in (0, 1)]
    gap = metrics.predictive_parity_difference(Y, DECIDED, **MEMBERS)
    assert gap == pytest.approx(abs(each[0] - each[1]), rel=1e-12)
    row = fc.FairnessReport.from_predictions(Y, DECIDED, **MEMBERS).gaps.loc["precision"]
    assert row["gap"] == pytest.approx(gap) and row["low"] <= gap <= row["high"]
    overall = max(abs(rate - precision_score(Y, DECIDED)) for rate in each)
    against = metrics.predictive_parity_difference(Y, DECIDED, method="to_overall", **MEMBERS)
    assert against == pytest.approx(overall, rel=1e-12)
    nobody = np.where(GROUPS == 0, DECIDED, 0)
    assert metrics.predictive_parity_difference(Y, nobody, **MEMBERS) == 0.0


def test_the_gap_is_that_of_the_constraint():
    report = fc.FairnessReport.from_predictions(Y, DECIDED, y_score=P, **MEMBERS)
    term = CalibrationParity(kappa=0.05).bind(np.where(Y > 0, 1, -1), GROUPS, np.ones(len(Y)))
    row = report.gaps.loc["calibration"]
    assert row["gap"] == pytest.approx(term.gap(MODEL.decision_function(X)).max(), abs=1e-9)
    assert 0.0 <= row["low"] <= row["gap"] <= row["high"]
    calibration = report.to_frame("calibration")
    pd.testing.assert_frame_equal(calibration, metrics.group_calibration(Y, P, **MEMBERS))
    assert "labels minus probabilities" in report.to_html()
    assert fc.FairnessReport.from_predictions(Y, DECIDED, **MEMBERS).calibration.empty


def test_probabilities_are_between_0_and_1():
    with pytest.raises(ValueError, match="y_pred must hold the probabilities"):
        metrics.group_calibration(Y, 3.0 * P, **MEMBERS)


@pytest.fixture
def rows(rng):
    """Labels, scores with ties, unsorted queries and groups."""
    n = 120
    y = (rng.random(n) < 0.4).astype(int)
    scores = np.round(rng.normal(size=n), 1)
    query = rng.choice(["x", "y", "z", "w"], n)
    return y, scores, query, rng.choice(["a", "b", "c"], n)


@pytest.mark.parametrize("k", [None, 1, 10])
def test_ndcg_is_the_mean_of_scikit_learns(rows, rng, k):
    _, scores, query, _ = rows
    relevance = rng.integers(0, 5, len(scores))
    rows_of = [query == q for q in np.unique(query)]
    expected = [ndcg_score([relevance[rows]], [scores[rows]], k=k) for rows in rows_of]
    found = metrics.mean_ndcg(relevance, scores, query=query, k=k)
    assert found == pytest.approx(np.mean(expected))


def test_queries_without_relevant_rows_do_not_count():
    y, scores, query = [1, 0, 0, 0], [1.0, 0.0, 0.0, 1.0], [1, 1, 2, 2]
    assert metrics.mean_ndcg(y, scores, query=query) == 1.0
    assert np.isnan(metrics.mean_ndcg([0, 0], [1.0, 2.0], query=[1, 1]))


def test_the_pairwise_error_of_one_query_is_one_minus_the_auc(rows):
    y, scores, _, _ = rows
    error = metrics.pairwise_error(y, scores, query=np.zeros(len(y)))
    assert error == pytest.approx(1.0 - roc_auc_score(y, scores))


def test_errors_by_query_and_group(rows):
    y, scores, query, groups = rows
    table = metrics.query_pairwise_errors(y, scores, query=query, sensitive_features=groups)
    assert table.index.tolist() == pd.unique(query).tolist()
    for (a, b), column in table.items():
        for q, value in column.items():
            high = scores[(query == q) & (groups == a) & (y == 1)]
            low = scores[(query == q) & (groups == b) & (y == 0)]
            apart = high[:, None] - low[None, :]
            assert value == pytest.approx(np.mean((apart < 0) + 0.5 * (apart == 0)))
    gaps = [
        max(abs(row[a, b] - row[b, a]) for a in "abc" for b in "abc") for _, row in table.iterrows()
    ]
    assert_allclose(query_gaps(table), gaps)
    arguments = {"query": query, "sensitive_features": groups}
    assert metrics.query_parity_difference(y, scores, **arguments) == pytest.approx(max(gaps))
    median = metrics.query_parity_difference(y, scores, quantile=0.5, **arguments)
    assert median == pytest.approx(np.median(gaps))


def test_queries_without_pairs_are_nan_and_do_not_count():
    y, groups, query = [1, 0, 1, 1], ["a", "b", "a", "b"], [1, 1, 2, 2]
    table = metrics.query_pairwise_errors(y, [1.0, 2, 3, 4], query=query, sensitive_features=groups)
    assert table.loc[1, ("a", "b")] == 1.0
    assert np.isnan(table.loc[1, ("b", "a")])
    assert table.loc[2].isna().all()
    arguments = {"query": query, "sensitive_features": groups}
    assert np.isnan(metrics.query_parity_difference(y, [1.0, 2, 3, 4], **arguments))


def test_relevances_must_be_numbers_from_zero():
    with pytest.raises(ValueError, match="y_true must hold relevances, numbers >= 0"):
        metrics.mean_ndcg(["a", "b"], [1.0, 2.0], query=[1, 1])
    with pytest.raises(ValueError, match="the least one is -1"):
        metrics.mean_ndcg([-1, 1], [1.0, 2.0], query=[1, 1])
