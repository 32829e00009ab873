"""compare and compare_rankers: the table of several models against the single measures."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairconstrained as fc

X, Y, GROUPS = fc.make_biased_classification(3000, 4, gap=0.3, random_state=0)
DATA = X, Y, GROUPS = (X, Y, np.array(["a", "b", "c"])[GROUPS + (X[:, 1] > 1.0)])
LATER = [one[1500:] for one in DATA]


@pytest.fixture(scope="module")
def models():
    X, y, groups = (one[:1500] for one in DATA)
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return {
        "logistic": logistic,
        "forest": RandomForestClassifier(10, random_state=0).fit(X, y),
        "svm": LinearSVC(random_state=0).fit(X, y),
        "rule": VotingClassifier([("bayes", GaussianNB())]).fit(X, y),
        "fair": fc.FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups),
        "thresholds": fc.FairThresholds(logistic, kappa=0.05, per_group=True, cv="prefit").fit(
            X, y, sensitive_features=groups
        ),
    }


def test_the_measures_are_those_of_each_model(models):
    X, y, groups = LATER
    table = fc.compare(models, X, y, groups)
    assert table.index.tolist() == list(models) and table.index.name == "model"
    for name, model in models.items():
        row = table.loc[name]
        known = {"sensitive_features": groups} if name == "thresholds" else {}
        decisions = model.predict(X, **known)
        assert row["accuracy"] == pytest.approx(np.mean(decisions == y))
        assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
        assert row["selection_rate"] == pytest.approx(decisions.mean())
        gaps = fc.metrics.rate_gaps(y, decisions, sensitive_features=groups)
        for rate in ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy"):
            for ending, column in {"": "gap", "_low": "low", "_high": "high"}.items():
                assert row[f"{rate}_gap{ending}"] == pytest.approx(gaps.loc[rate, column])
        if hasattr(model, "predict_proba"):
            probability = model.predict_proba(X)[:, 1]
            assert row["brier"] == pytest.approx(brier_score_loss(y, probability))
        else:
            assert np.isnan(row["brier"])
    scores = models["svm"].decision_function(X)
    assert table.loc["svm", "auc"] == pytest.approx(roc_auc_score(y, scores))
    assert np.isnan(table.loc["rule", "auc"])
    least = table["selection_rate_gap"].idxmin()
    assert least == "thresholds" and table.loc[least, "cost"] > 0.0


def test_the_cost_is_relative_to_the_reference(models):
    X, y, groups = LATER
    table = fc.compare(models, X, y, groups, reference="rule")
    expected = table.loc["rule", "accuracy"] - table["accuracy"]
    np.testing.assert_allclose(table["cost"], expected, atol=1e-12)
    assert table.loc["rule", ["cost", "cost_low", "cost_high"]].tolist() == [0.0, 0.0, 0.0]
    others = table.drop("rule")
    assert np.all(others["cost_low"] < others["cost"])
    assert np.all(others["cost"] < others["cost_high"])


def test_bad_arguments(models):
    with pytest.raises(ValueError, match="models must be a mapping"):
        fc.compare(models["fair"], X, Y, GROUPS)
    with pytest.raises(ValueError, match="reference='other' is not the name"):
        fc.compare(models, X, Y, GROUPS, reference="other")
    with pytest.raises(ValueError, match="empty mapping"):
        fc.compare({}, X, Y, GROUPS)
    with pytest.raises(ValueError, match="No groups are known"):
        fc.compare({"forest": models["forest"]}, X, Y)
    with pytest.raises(ValueError, match="confidence"):
        fc.compare(models, X, Y, GROUPS, confidence=1.5)


DOCUMENTS, RELEVANT, QUERY, QUALITY = fc.make_biased_ranking(15, 3, n_documents=30, random_state=0)
RANKED = {"query": QUERY, "sensitive_features": QUALITY}


RANKERS = {
    "before": fc.FairRanker(None).fit(DOCUMENTS, RELEVANT, query=QUERY),
    "after": fc.FairRanker(kappa=0.05).fit(DOCUMENTS, RELEVANT, **RANKED),
}


def test_rows_of_unknown_groups_count_in_the_ndcg_of_all_rows(rng):
    groups = pd.Series(QUALITY).astype("Float64").mask(rng.random(len(RELEVANT)) < 0.2)
    options = {"query": QUERY, "groups_missing": "ignore_in_constraint"}
    found = fc.compare_rankers(RANKERS["after"], DOCUMENTS, RELEVANT, groups, **options)
    assert found.groups["rows"].sum() == groups.notna().sum()
    expected = fc.metrics.mean_ndcg(RELEVANT, RANKERS["after"].predict(DOCUMENTS), query=QUERY)
    assert found.summary["ndcg"].iloc[0] == pytest.approx(expected)
    with pytest.raises(ValueError, match="missing"):
        fc.compare_rankers(RANKERS["after"], DOCUMENTS, RELEVANT, groups, query=QUERY)


def test_all_forms_of_a_comparison():
    found = fc.compare_rankers(RANKERS, DOCUMENTS, RELEVANT, QUALITY, query=QUERY)
    text = str(found)
    assert text.startswith(f"before, after on {len(RELEVANT)} rows of 15 queries")
    assert f"{found.summary.loc['after', 'ndcg']:.3f}" in text
    assert "| after | " in found.to_markdown()
    assert found.to_frame("errors").equals(found.errors)
    page, told = found.to_html(), json.loads(found.to_json())
    assert told["summary"][1]["kappa"] == 0.05
    assert all(told["provenance"]["data"] in text for text in (page, found.to_markdown()))
    assert page.startswith("<!DOCTYPE html>") and page.count("</table>") == 4
    with pytest.raises(ValueError, match="table='nothing' is unknown"):
        found.to_frame("nothing")


def test_classifiers_are_refused():
    classifier = LogisticRegression().fit(DOCUMENTS, RELEVANT)
    with pytest.raises(ValueError, match="LogisticRegression is a classifier"):
        fc.compare_rankers(classifier, DOCUMENTS, RELEVANT, QUALITY, query=QUERY)


REPORTS_OF_CLASSIFIERS = {
    "fairness_report": lambda model: fc.fairness_report(
        model, DOCUMENTS, RELEVANT, sensitive_features=QUALITY
    ),
    "compare": lambda model: fc.compare({"ranker": model}, DOCUMENTS, RELEVANT, QUALITY),
    "GroupMetricsDisplay": lambda model: fc.plotting.GroupMetricsDisplay.from_estimator(
        model, DOCUMENTS, RELEVANT, sensitive_features=QUALITY
    ),
}


@pytest.mark.parametrize("report", REPORTS_OF_CLASSIFIERS)
def test_reports_of_classifiers_refuse_rankers(report):
    with pytest.raises(ValueError, match=r"FairRanker ranks the rows.*use compare_rankers"):
        REPORTS_OF_CLASSIFIERS[report](RANKERS["after"])
