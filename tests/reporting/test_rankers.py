"""compare_rankers: figures by loops, groups, text, messages; other reports refuse rankers."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    FairRanker,
    compare,
    compare_rankers,
    fairness_report,
    make_biased_ranking,
)
from fairconstrained.metrics import mean_ndcg, pairwise_error, query_parity_difference
from fairconstrained.plotting import GroupMetricsDisplay

X, Y, QUERY, GROUPS = make_biased_ranking(15, 3, n_documents=30, random_state=0)
ROWS = {"query": QUERY, "sensitive_features": GROUPS}


@pytest.fixture(scope="module")
def models():
    return {
        "before": FairRanker(None).fit(X, Y, query=QUERY),
        "after": FairRanker(kappa=0.05).fit(X, Y, **ROWS),
    }


@pytest.fixture(scope="module")
def found(models):
    return compare_rankers(models, X, Y, GROUPS, query=QUERY)


class TestFigures:
    def test_all_rows(self, models, found):
        for name, model in models.items():
            scores, row = model.predict(X), found.summary.loc[name]
            assert row["ndcg"] == pytest.approx(mean_ndcg(Y, scores, query=QUERY))
            assert row["ndcg"] == pytest.approx(model.score(X, Y, query=QUERY))
            assert row["ndcg_low"] < row["ndcg"] < row["ndcg_high"]
            assert row["pairwise_error"] == pytest.approx(pairwise_error(Y, scores, query=QUERY))
            difference = query_parity_difference(Y, scores, **ROWS)
            assert row["largest_gap"] == pytest.approx(difference)
        assert found.summary["queries_compared"].tolist() == [15, 15]
        assert found.summary.loc["after", "gap_on_scores"] == pytest.approx(models["after"].gap_)
        assert found.summary.loc["after", "kappa"] == 0.05
        assert np.isnan(found.summary.loc["before", "kappa"])

    def test_errors_are_means_over_queries(self, models, found):
        scores, means = models["after"].predict(X), {}
        for a in (0, 1):
            for b in (0, 1):
                by_query = []
                for q in np.unique(QUERY):
                    high = scores[(q == QUERY) & (Y == 1) & (a == GROUPS)]
                    low = scores[(q == QUERY) & (Y == 0) & (b == GROUPS)]
                    if len(high) and len(low):
                        apart = high[:, None] - low[None, :]
                        by_query.append(np.mean((apart < 0) + 0.5 * (apart == 0)))
                means[a, b] = np.mean(by_query)
        for (a, b), value in means.items():
            assert found.errors.loc[("after", a), b] == pytest.approx(value)
        gap = abs(means[0, 1] - means[1, 0])
        assert found.summary.loc["after", "gap_of_means"] == pytest.approx(gap)

    def test_groups(self, models, found):
        scores, rows = models["before"].predict(X), GROUPS == 1
        row = found.groups.loc[("before", 1)]
        assert row["rows"] == rows.sum()
        assert row["relevant"] == Y[rows].sum()
        expected = mean_ndcg(Y[rows], scores[rows], query=QUERY[rows])
        assert row["ndcg"] == pytest.approx(expected)


class TestGroups:
    def test_marginal_groups_are_those_of_the_model(self, rng):
        table = pd.DataFrame({"quality": GROUPS, "old": rng.random(len(Y)) < 0.5})
        ranker = FairRanker(None, combine="marginal").fit(X, Y, query=QUERY)
        found = compare_rankers(ranker, X, Y, table, query=QUERY)
        names = found.groups.index.get_level_values("group").tolist()
        assert names == ["quality=0", "quality=1", "old=False", "old=True"]
        assert np.isnan(found.errors.loc[("FairRanker", "quality=0"), "old=True"])

    def test_sensitive_columns(self, models, found):
        table = np.column_stack([X, GROUPS])
        ranker = FairRanker(kappa=0.05, sensitive_columns=[3]).fit(table, Y, query=QUERY)
        summary = compare_rankers({"after": ranker}, table, Y, query=QUERY).summary
        expected = found.summary.loc["after", "largest_gap"]
        assert summary.loc["after", "largest_gap"] == pytest.approx(expected, abs=1e-3)

    def test_rows_of_unknown_groups_count_in_the_ndcg_of_all_rows(self, models, rng):
        groups = pd.Series(GROUPS).astype("Float64").mask(rng.random(len(Y)) < 0.2)
        options = {"query": QUERY, "groups_missing": "ignore_in_constraint"}
        found = compare_rankers(models["after"], X, Y, groups, **options)
        assert found.groups["rows"].sum() == groups.notna().sum()
        expected = mean_ndcg(Y, models["after"].predict(X), query=QUERY)
        assert found.summary["ndcg"].iloc[0] == pytest.approx(expected)
        with pytest.raises(ValueError, match="missing"):
            compare_rankers(models["after"], X, Y, groups, query=QUERY)


class TestInterface:
    def test_text_and_markdown(self, found):
        text = str(found)
        assert text.startswith(f"before, after on {len(Y)} rows of 15 queries")
        assert f"{found.summary.loc['after', 'ndcg']:.3f}" in text
        assert "| after | " in found.to_markdown()
        assert found.to_frame("errors").equals(found.errors)
        assert json.loads(found.to_json())["summary"][1]["kappa"] == 0.05
        page = found.to_html()
        assert page.startswith("<!DOCTYPE html>") and page.count("</table>") == 3
        with pytest.raises(ValueError, match="table='nothing' is unknown"):
            found.to_frame("nothing")

    def test_models_of_other_libraries(self, found):
        other = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
        row = compare_rankers({"other": other}, X, Y, GROUPS, query=QUERY).summary.loc["other"]
        assert row["ndcg"] == pytest.approx(mean_ndcg(Y, other.predict(X), query=QUERY))
        assert np.isnan(row["gap_on_scores"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"models": {}}, "is an empty mapping"),
            ({"sensitive_features": None}, "No groups are known"),
            ({"query": QUERY[:-1]}, "query has"),
            ({"y": Y + 5}, r"y has the label 5, which is not among the classes \[0, 1\]"),
            ({"confidence": 2.0}, "confidence"),
            ({"k": 0}, "k must be"),
        ],
    )
    def test_bad_arguments_are_named(self, models, options, message):
        rows = {"X": X, "y": Y, "sensitive_features": GROUPS, "query": QUERY}
        given = {"models": models, **rows, **options}
        with pytest.raises(ValueError, match=message):
            compare_rankers(**given)

    def test_classifiers_are_refused(self):
        classifier = LogisticRegression().fit(X, Y)
        with pytest.raises(ValueError, match="LogisticRegression is a classifier"):
            compare_rankers(classifier, X, Y, GROUPS, query=QUERY)


@pytest.mark.parametrize(
    "report",
    [
        lambda model: fairness_report(model, X, Y, sensitive_features=GROUPS),
        lambda model: compare({"ranker": model}, X, Y, GROUPS),
        lambda model: GroupMetricsDisplay.from_estimator(model, X, Y, sensitive_features=GROUPS),
    ],
    ids=["fairness_report", "compare", "GroupMetricsDisplay"],
)
def test_reports_of_classifiers_refuse_rankers(models, report):
    with pytest.raises(ValueError, match=r"FairRanker ranks the rows.*use compare_rankers"):
        report(models["after"])
