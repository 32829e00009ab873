"""Tests of fairconstrained.metrics against definitions in plain loops, and other libraries."""

import inspect
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from _support.labelled_rows import by_formula
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import confusion_matrix, ndcg_score, precision_score, roc_auc_score

import fairconstrained as fc
from fairconstrained import constraints, metrics
from fairconstrained.metrics.ranking import query_gaps

rows = st.tuples(
    st.integers(0, 1),  # label
    st.sampled_from("abc"),
    st.integers(-4, 4).map(lambda k: k / 2),  # score, with ties
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),  # weight
)
tables = st.lists(rows, min_size=1, max_size=14).filter(lambda t: any(row[3] for row in t))
RANKS = st.sampled_from([(0.0, 1.0), (0.0, 0.25), (0.05, 0.3), (0.4, 0.7), (0.7, 1.0)])
METRICS = [getattr(metrics, name) for name in metrics.__all__]
OF_GROUPS = [  # test_ranking_metrics.py has those within queries
    one
    for one in METRICS
    if one.__name__.endswith("difference")
    and "query" not in inspect.signature(one).parameters
    and one is not metrics.predictive_parity_difference  # of predictions
]
each = pytest.mark.parametrize("metric", OF_GROUPS, ids=lambda one: one.__name__)


KINDS = {
    "partial_demographic_parity": constraints.PartialDemographicParity,
    "weak_partial_demographic_parity": constraints.WeakPartialDemographicParity,
    "roc_parity": partial(constraints.PartialDemographicParity, ranks=(0.0, 1.0)),
    "group_auc": constraints.GroupAUCParity,
    "inter_group_auc": constraints.InterGroupAUCParity,
    "intra_group_auc": constraints.IntraGroupAUCParity,
}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_metrics_are_pickled_and_say_what_they_take_and_return(metric) -> None:
    assert pickle.loads(pickle.dumps(metric)) is metric
    signature = inspect.signature(metric)
    assert list(signature.parameters)[:2] == ["y_true", "y_pred"]
    kinds = [parameter.annotation for parameter in signature.parameters.values()]
    assert signature.empty not in [*kinds, signature.return_annotation]


def columns(table):
    """Return labels, groups, scores and weights."""
    y, groups, scores, weight = zip(*table, strict=True)
    return np.array(y), np.array(groups), np.array(scores), np.array(weight)


def call(metric, table, **options):
    y, groups, scores, weight = columns(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return metric(y, scores, sensitive_features=groups, sample_weight=weight, **options)


@each
@given(table=tables, ranks=RANKS, threshold=st.sampled_from([-1.0, 0.0, 0.5]))
def test_metrics_are_what_the_formulas_of_the_constraints_say_of_decisions(
    metric, table, ranks, threshold
):
    known = columns([row for row in table if row[3] > 0.0])
    given, taken = {"ranks": ranks, "threshold": threshold}, inspect.signature(metric).parameters
    given = {name: value for name, value in given.items() if name in taken}
    y, groups, scores, weight = known[0] * 2 - 1, known[1], known[2], known[3]
    constraint = KINDS[metric.__name__.removesuffix("_difference")](kappa=0.1)
    if "ranks" in given:
        constraint.set_params(ranks=ranks)
    scores = scores - given.get("threshold", 0.0)
    gap = by_formula(constraint, y, groups, weight, scores, decisions=True).gap
    assert call(metric, table, **given) == pytest.approx(np.nan_to_num(gap), abs=1e-9)


@given(table=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20))
def test_class_error_rates_match_the_confusion_matrix(table):
    y, predicted = np.array(table).T
    counts = confusion_matrix(y, predicted, labels=[0, 1, 2])
    rates = metrics.class_error_rates(y, predicted)
    assert set(rates.index) == set(y.tolist())
    for k in rates.index:
        assert rates[k] == pytest.approx(1.0 - counts[k, k] / counts[k].sum())
    assert metrics.neyman_pearson_error(y, predicted) == pytest.approx(rates.max())
    others = rates.drop(index=1, errors="ignore")
    found = metrics.neyman_pearson_error(y, predicted, priority=1)
    assert found == pytest.approx(others.max(), nan_ok=True)


def test_class_error_rates_by_group_use_weights():
    given = {"sensitive_features": list("aabbc"), "sample_weight": [3.0, 1.0, 2.0, 1.0, 0.0]}
    rates = metrics.class_error_rates(list("nnnpq"), list("npppq"), **given)
    assert rates.loc["n"].tolist() == [0.25, 1.0]
    assert rates.loc["p", "b"] == 0.0
    assert np.isnan(rates.loc["p", "a"]) and rates.shape == (2, 2)
    frame = {"sensitive_features": pd.DataFrame({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1]})}
    assert metrics.class_error_rates([0, 0, 1, 1], [0, 1, 1, 0], **frame).shape == (2, 4)


@each
@given(table=tables)
def test_metrics_are_between_0_and_1_and_invariant_to_group_names_and_order(metric, table):
    found = call(metric, table)
    assert 0.0 <= found <= 1.0 + 1e-12
    renamed = [(y, {"a": "z", "b": "b", "c": "7"}[g], s, w) for y, g, s, w in reversed(table)]
    assert call(metric, renamed) == pytest.approx(found, abs=1e-12)
    monotone = [(y, g, np.exp(s) - 1.0, w) for y, g, s, w in table]  # keeps the sign as well
    assert call(metric, monotone) == pytest.approx(found, abs=1e-12)


@each
@given(table=tables)
def test_weights_equal_repeated_rows(metric, table):
    whole = [(*row[:3], float(int(row[3]))) for row in table]
    repeated = [(*row[:3], 1.0) for row in whole for _ in range(int(row[3]))]
    if repeated:
        assert call(metric, whole) == pytest.approx(call(metric, repeated), abs=1e-9)


OF_PREDICTIONS = ["group_rates", "rate_gaps", "class_error_rates", "neyman_pearson_error"]


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_metrics_of_predictions_take_labels_only(name):
    metric, groups = getattr(metrics, name), {"sensitive_features": list("aabb")}
    for scores in ([0.1, 0.9, 0.4, 0.6], np.array([0.1, 0.9, 0.4, 0.6], dtype=object)):
        said = r"y_pred .*such as 0\.1.* Pass predictions, not scores"
        with pytest.raises(ValueError, match=said):
            metric([0, 1, 0, 1], scores, **groups)
    metric([0, 1, 0, 1], np.array([0, 1, 1, 1], dtype=object), **groups)
    with pytest.raises(ValueError, match="different types"):
        metric([0, 1, 0, 1], ["0", "1", "0", "1"], **groups)
    with pytest.raises(ValueError, match="y_true has no rows"):
        metric([], [], sensitive_features=[])
    for weight in (np.ones((4, 1)), np.ones(4) * 1j):
        with pytest.raises(ValueError, match="sample_weight"):
            metric([0, 1, 0, 1], [0, 1, 1, 1], sample_weight=weight, **groups)


def test_a_single_label_needs_the_positive_class():
    with pytest.raises(ValueError, match="as pos_label"):
        metrics.group_rates(["yes"], ["yes"], sensitive_features=["a"])


def test_a_group_without_a_class_is_named():
    y, scores, groups = [0, 1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5], list("aabbc")
    with pytest.warns(UndefinedMetricWarning, match="Group c has no positive rows"):
        found = metrics.intra_group_auc_difference(y, scores, sensitive_features=groups)
    assert found == 0.0


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
    term = constraints.CalibrationParity(kappa=0.05).bind(
        np.where(Y > 0, 1, -1), GROUPS, np.ones(len(Y))
    )
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
def scored(rng):
    """Labels, scores with ties, unsorted queries and groups."""
    n = 120
    y = (rng.random(n) < 0.4).astype(int)
    scores = np.round(rng.normal(size=n), 1)
    query = rng.choice(["x", "y", "z", "w"], n)
    return y, scores, query, rng.choice(["a", "b", "c"], n)


@pytest.mark.parametrize("k", [None, 1, 10])
def test_ndcg_is_the_mean_of_scikit_learns(scored, rng, k):
    _, scores, query, _ = scored
    relevance = rng.integers(0, 5, len(scores))
    rows_of = [query == q for q in np.unique(query)]
    expected = [ndcg_score([relevance[rows]], [scores[rows]], k=k) for rows in rows_of]
    found = metrics.mean_ndcg(relevance, scores, query=query, k=k)
    assert found == pytest.approx(np.mean(expected))


def test_queries_without_relevant_rows_do_not_count():
    y, scores, query = [1, 0, 0, 0], [1.0, 0.0, 0.0, 1.0], [1, 1, 2, 2]
    assert metrics.mean_ndcg(y, scores, query=query) == 1.0
    assert np.isnan(metrics.mean_ndcg([0, 0], [1.0, 2.0], query=[1, 1]))


def test_the_pairwise_error_of_one_query_is_one_minus_the_auc(scored):
    y, scores, _, _ = scored
    error = metrics.pairwise_error(y, scores, query=np.zeros(len(y)))
    assert error == pytest.approx(1.0 - roc_auc_score(y, scores))


def test_errors_by_query_and_group(scored):
    y, scores, query, groups = scored
    table = metrics.query_pairwise_errors(y, scores, query=query, sensitive_features=groups)
    assert table.index.tolist() == pd.unique(query).tolist()
    for (a, b), column in table.items():
        for q, value in column.items():
            high = scores[(query == q) & (groups == a) & (y == 1)]
            low = scores[(query == q) & (groups == b) & (y == 0)]
            apart = high[:, None] - low[None, :]
            assert value == pytest.approx(np.mean((apart < 0) + 0.5 * (apart == 0)))
    gaps = np.abs(table.to_numpy() - table[[(b, a) for a, b in table]]).max(axis=1)
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
