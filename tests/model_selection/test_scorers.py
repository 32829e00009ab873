"""Scorers of fairness for searches, of classifiers and rankers, and rules for refit."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from _support.gaps import rate_gap
from fairlearn import metrics as theirs
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained import metrics
from fairconstrained.metrics import mean_ndcg, query_parity_difference

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:fairlearn")

# By the endings of the names of fairlearn's metrics.
GREATER_IS_BETTER = {"_ratio": True, "_group_min": True, "_difference": False, "_group_max": False}


make_gap_scorer = partial(fc.make_fairness_scorer, greater_is_better=False)
X, Y, GROUPS = fc.make_biased_classification(900, 5, gap=0.4, random_state=0)


NAMES = {
    "strings": ["no", "yes"],
    "signs": [-1, 1],
    "one and two": [1, 2],
    "bools": [False, True],
    "reversed": ["good", "bad"],  # sorted, the second one of y comes first
}
FAIRLEARN = [
    theirs.demographic_parity_difference,
    theirs.demographic_parity_ratio,
    theirs.equalized_odds_difference,
    theirs.equalized_odds_ratio,
]


@pytest.mark.parametrize("metric", FAIRLEARN, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", NAMES)
def test_the_score_does_not_depend_on_names_of_classes(kind, metric):
    names = np.array(NAMES[kind])
    y = 1 - Y if kind == "reversed" else Y
    scorer = fc.make_fairness_scorer(metric)
    plain = LogisticRegression().fit(X, names.argsort()[y])
    renamed = LogisticRegression().fit(X, names[y])
    expected = scorer(plain, X, names.argsort()[y], sensitive_features=GROUPS)
    found = scorer(renamed, X, names[y], sensitive_features=GROUPS)
    assert found == pytest.approx(expected, abs=1e-12)
    assert 0.1 < abs(found) < 1.0


def test_measures_of_scores_and_a_named_positive_class():
    names = np.array(["no", "yes"])[Y]
    model = LogisticRegression().fit(X, names)
    scores = model.decision_function(X)
    for label in ("no", "yes"):
        scorer = fc.make_fairness_scorer(
            metrics.intra_group_auc_difference, response_method="decision_function", pos_label=label
        )
        given = {"sensitive_features": GROUPS, "pos_label": label}
        expected = metrics.intra_group_auc_difference(names, scores, **given)
        assert scorer(model, X, names, sensitive_features=GROUPS) == pytest.approx(-expected)


def test_more_than_two_classes_are_left_as_they_are():
    three = np.array(["a", "b", "c"])[Y + (X[:, 0] > 1)]
    model = LogisticRegression().fit(X, three)
    scorer = fc.make_fairness_scorer(metrics.neyman_pearson_error, priority="a")
    given = {"priority": "a", "sensitive_features": GROUPS}
    expected = metrics.neyman_pearson_error(three, model.predict(X), **given)
    assert scorer(model, X, three, sensitive_features=GROUPS) == -expected
    parity = theirs.demographic_parity_difference
    with pytest.raises(ValueError, match=r"the rate of the label 1, and the classes are \['a'"):
        fc.make_fairness_scorer(parity)(model, X, three, sensitive_features=GROUPS)
    scorer = fc.make_fairness_scorer(parity, pos_label="c")
    expected = rate_gap(three, model.predict(X) == "c", sensitive_features=GROUPS)
    assert scorer(model, X, three, sensitive_features=GROUPS) == pytest.approx(-expected)


def test_an_unknown_label():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match=r"y_true has the label 2, .*classes \[0, 1\]"):
        fc.make_fairness_scorer(FAIRLEARN[0])(model, X, 2 * Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(("ending", "greater_is_better"), GREATER_IS_BETTER.items())
def test_the_direction_is_inferred_for_fairlearn(ending, greater_is_better):
    metrics_of = [getattr(theirs, name) for name in dir(theirs) if name.endswith(ending)]
    directions = {fc.make_fairness_scorer(each).greater_is_better for each in metrics_of}
    assert directions == {greater_is_better}


def test_the_direction_is_required_of_other_functions():
    def my_ratio(y_true, y_pred, *, sensitive_features):
        return 1.0

    for metric in (rate_gap, my_ratio, theirs.make_derived_metric):
        with pytest.raises(
            (ValueError, TypeError),
            match=r"'greater_is_better'|greater_is_better must|'metric'|metric must",
        ):
            fc.make_fairness_scorer(metric)
    assert fc.make_fairness_scorer(my_ratio, greater_is_better=True).greater_is_better


def test_columns_of_x():
    table = pd.DataFrame(X, columns=list("abcde")).assign(sex=np.where(GROUPS, "m", "f"))
    clf = fc.FairLogisticClassifier(sensitive_columns=["sex"]).fit(table, Y)
    expected = rate_gap(Y, clf.predict(table), sensitive_features=GROUPS)
    by_name = fc.make_fairness_scorer(FAIRLEARN[0], sensitive_columns="sex")
    assert by_name(clf, table, Y) == pytest.approx(-expected)
    called = make_gap_scorer(rate_gap, sensitive_columns=lambda X: X["sex"])
    assert called(clf, table, Y) == pytest.approx(-expected)
    by_position = fc.make_fairness_scorer(theirs.demographic_parity_difference, sensitive_columns=5)
    numbered = table.set_axis(range(6), axis=1)
    clf = clf.set_params(sensitive_columns=5).fit(numbered, Y)
    assert by_position(clf, numbered, Y) == pytest.approx(-expected)


@pytest.mark.parametrize("hold", [lambda g: pd.Series(g, name=0), lambda g: [(k,) for k in g]])
def test_weights_and_options(hold):
    clf = fc.FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)
    weight, metric = np.random.default_rng(0).uniform(0.1, 1.0, len(Y)), FAIRLEARN[2]
    given = {"sensitive_features": GROUPS[9:], "sample_weight": weight[9:], "method": "to_overall"}
    expected, weight[:9] = metric(Y[9:], clf.predict(X[9:]), **given), 0.0
    groups = hold(np.r_[[2] * 9, GROUPS[9:]].tolist())  # all rows of a group have no weight
    scorer = fc.make_fairness_scorer(metric, method="to_overall")
    found = scorer(clf, X, Y, sensitive_features=groups, sample_weight=weight)
    assert found == pytest.approx(-expected)


@pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
@pytest.mark.parametrize("metric", [*FAIRLEARN[:1], metrics.predictive_parity_difference])
def test_missing_groups_mean_what_the_estimator_says(metric, missing):
    some = pd.Series(GROUPS).where(X[:, 0] < 1.0)
    clf = fc.FairLogisticClassifier(groups_missing=missing).fit(X, Y, sensitive_features=some)
    rows = some.notna() | (missing == "own_group")
    members = some.fillna(2.0)[rows]
    expected = metric(Y[rows], clf.predict(X)[rows], sensitive_features=members)
    scorer = fc.make_fairness_scorer(metric)
    assert scorer(clf, X, Y, sensitive_features=some) == pytest.approx(-expected)


def test_scorers_without_groups():
    clf = fc.FairLogisticClassifier(None).fit(X, Y)
    with pytest.raises(ValueError, match="the scorer of rate_gap has no groups: enable"):
        make_gap_scorer(rate_gap)(clf, X, Y)
    with pytest.raises(ValueError, match="groups are given twice"):
        scorer = make_gap_scorer(rate_gap, sensitive_columns=[0])
        scorer(clf, X, Y, sensitive_features=GROUPS)
    with pytest.raises(TypeError, match="metric must take sensitive_features"):
        fc.make_fairness_scorer(lambda y_true, y_pred: 0.0)
    assert repr(make_gap_scorer(rate_gap)) == "make_fairness_scorer(rate_gap)"


# Weights reach every step of a pipeline, its score and its scorers, in one line.


def test_cross_validation_has_the_weighted_fits_and_scores(routing):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(Y))
    clf = fc.FairLogisticClassifier(kappa=0.05)
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    gap = fc.make_fairness_scorer(theirs.demographic_parity_difference)
    accuracy = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    scoring = {"gap": gap, "accuracy": accuracy}
    found = cross_validate(
        make_pipeline(scaler, clf), X, Y, cv=KFold(2), scoring=scoring,
        params={"sensitive_features": GROUPS, "sample_weight": weight},
    )  # fmt: skip
    for k, (train, test) in enumerate(KFold(2).split(X)):
        seen = scaler.fit(X[train], sample_weight=weight[train])
        model = clone(clf).fit(
            seen.transform(X[train]), Y[train], weight[train], sensitive_features=GROUPS[train]
        )
        decided = model.predict(seen.transform(X[test]))
        options = {"sample_weight": weight[test]}
        right = accuracy_score(Y[test], decided, **options)
        assert found["test_accuracy"][k] == pytest.approx(right)
        options["sensitive_features"] = GROUPS[test]
        expected = theirs.demographic_parity_difference(Y[test], decided, **options)
        assert found["test_gap"][k] == pytest.approx(-expected)


def test_a_metric_without_weights_cannot_ask_for_them():
    with pytest.raises(ValueError, match="rate_gap takes no sample_weight"):
        make_gap_scorer(rate_gap).set_score_request(sample_weight=True)


DOCUMENTS, RELEVANT, QUERY, QUALITY = fc.make_biased_ranking(15, 3, n_documents=30, random_state=0)
RANKER = fc.FairRanker(kappa=0.1).fit(DOCUMENTS, RELEVANT, query=QUERY, sensitive_features=QUALITY)


def test_scores_of_rankers_are_those_of_the_metrics():
    low, scores = DOCUMENTS[:, 0] > 0.0, RANKER.predict(DOCUMENTS)
    rows = {"query": QUERY, "sensitive_features": fc.with_strata(QUALITY, low)}
    gap = fc.make_fairness_scorer(query_parity_difference)(RANKER, DOCUMENTS, RELEVANT, **rows)
    each = [(s, {"query": QUERY[s], "sensitive_features": QUALITY[s]}) for s in (low, ~low)]
    assert gap == -max(query_parity_difference(RELEVANT[s], scores[s], **g) for s, g in each)
    ndcg = fc.make_fairness_scorer(mean_ndcg, k=5)(RANKER, DOCUMENTS, RELEVANT, query=QUERY)
    assert ndcg == mean_ndcg(RELEVANT, scores, query=QUERY, k=5)


OF_LABELS = [
    (mean_ndcg, "has no queries"),
    (query_parity_difference, "has no queries"),
    (theirs.demographic_parity_difference, "FairRanker predicts scores"),
]


@pytest.mark.parametrize(("metric", "said"), OF_LABELS)
def test_metrics_of_labels_and_missing_queries_are_refused(metric, said):
    with pytest.raises(ValueError, match=said):
        fc.make_fairness_scorer(metric)(RANKER, DOCUMENTS, RELEVANT, sensitive_features=QUALITY)


def test_rows_of_weight_zero_are_left_out_of_the_gain():
    y, scores, query = [1, 0, 1, 0], [0.5, 0.9, 0.8, 0.2], ["a", "a", "b", "b"]
    weight = np.array([1.0, 0.0, 1.0, 3.0])
    found = mean_ndcg(y, scores, query=query, sample_weight=weight)
    y, scores, query, weight = (np.delete(each, 1) for each in (y, scores, query, weight))
    assert found == mean_ndcg(y, scores, query=query, sample_weight=weight)


GAPS = np.array([-0.3, -0.04, -0.02, -0.01])
RATIOS = np.array([0.3, 0.81, 0.9, 0.99])


def results(gaps=GAPS):
    return {"mean_test_accuracy": np.array([0.9, 0.8, 0.8, np.nan]), "mean_test_gap": gaps}


LIMITS = [
    (0.5, {}, GAPS, 0),
    (0.05, {}, GAPS, 2),  # of equals the fairer one
    (0.05, {}, -GAPS, 2),  # the sign does not matter
    (0.8, {"at_least": True}, RATIOS, 2),
    (0.2, {"at_least": True}, RATIOS, 0),
]


@pytest.mark.cases(5)
@pytest.mark.parametrize(("limit", "options", "gaps", "best"), LIMITS)
def test_the_best_within_the_limit(limit, options, gaps, best):
    assert fc.best_score_within("gap", limit, **options)(results(gaps)) == best


def test_best_scores_that_there_are_not():
    with pytest.raises(ValueError, match=r"no score 'dp'; it has \['accuracy', 'gap'\]"):
        fc.best_score_within("dp", 0.1)(results())
    with pytest.raises(ValueError, match="'limit' parameter of best_score_within"):
        fc.best_score_within("gap", -0.1)
    with pytest.raises(ValueError, match="nan for all candidates"):
        fc.best_score_within("gap", 0.1)(results(np.full(4, np.nan)))
    expected = "best_score_within('gap', 0.1, score='accuracy')"
    assert repr(fc.best_score_within("gap", 0.1)) == expected
