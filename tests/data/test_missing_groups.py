"""Groups that are missing, or known in probability."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import quietly
from fairlearn.metrics import demographic_parity_difference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.decisions.left_out import score_changes
from fairconstrained.metrics import group_rates, rate_gaps, roc_parity_difference

X, Y, CODES = fc.make_biased_classification(600, 4, gap=0.3, random_state=0)


KNOWN = np.arange(len(Y)) % 5 > 0


SEX = pd.Series(np.where(CODES, "m", "f"), dtype=object).where(KNOWN, None)


AGE = pd.Series(np.where(np.arange(len(Y)) % 2, "old", "young"), dtype=object)


AGE[::7] = np.nan


def gap(clf, groups, scores=None):
    """Return the difference of the means of two groups, by default of probabilities."""
    scores = clf.predict_proba(X)[:, 1] if scores is None else scores
    means = pd.Series(scores).groupby(groups).mean()  # without the rows that have none
    return means.max() - means.min()


def fitted(groups, **options):
    clf = fc.FairLogisticClassifier(**{"kappa": 0.02, "tol": 1e-6, **options})
    return clf.fit(X, Y, sensitive_features=groups)


OWN, IGNORED = ({"groups_missing": how} for how in ("own_group", "ignore_in_constraint"))
NONE = pd.Series([None] * len(Y))
INTERACTING = IGNORED | {"group_interactions": True, "sensitive_columns": [3]}
MESSAGES = {
    "raise": (SEX, {}, r"120 of 600 rows.*'own_group'.*'ignore_in_constr"),
    "all missing": (NONE, OWN, "only missing values"),
    "all ignored": (NONE, IGNORED, "only missing values"),
    "unknown": (SEX, {"groups_missing": "drop"}, "groups_missing.*'own_group'.*Got 'drop'"),
    "interactions": (None, INTERACTING, "some rows have none; use 'own_group'"),
}


@pytest.mark.cases(len(MESSAGES))
@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    groups, options, message = MESSAGES[case]
    with pytest.raises(ValueError, match=message):
        fitted(groups, **options)


# Rows whose group is missing count in the loss, and in no constraint.


def test_ignored_rows_count_in_the_loss_and_in_no_constraint():
    clf = fitted(SEX, groups_missing="ignore_in_constraint")
    assert_array_equal(clf.groups_, ["f", "m"])
    assert gap(clf, SEX) == pytest.approx(0.02, abs=1e-4)
    left_out = fc.FairLogisticClassifier(kappa=0.02, tol=1e-6)
    left_out.fit(X[KNOWN], Y[KNOWN], sensitive_features=SEX[KNOWN])
    assert np.abs(clf.coef_ - left_out.coef_).max() > 1e-3
    loose = fitted(SEX, groups_missing="ignore_in_constraint", kappa=1.0)
    assert_allclose(loose.coef_, fitted(None, constraint=None).coef_, atol=1e-4)
    strict = fitted(SEX, groups_missing="ignore_in_constraint", kappa=0.1, enforce="decision")
    assert gap(strict, SEX, strict.predict(X)) <= 0.1


@pytest.mark.parametrize("name", sorted({*CLASSIFIER_CONSTRAINTS} - {"coverage", "churn"}))
def test_the_gap_is_that_of_the_term_of_the_known_rows(name):
    options = {"kappa": 0.3, "groups_missing": "ignore_in_constraint", "max_iter": 2}
    clf = fc.FairLogisticClassifier(name, **options)
    quietly(clf.fit, X, Y, sensitive_features=SEX)
    assert np.isfinite(clf.gap_)
    if name not in ("roc_parity", "partial_dp", "weak_partial_dp"):  # theirs are in the fit
        made = CLASSIFIER_CONSTRAINTS[name]()
        made = made.with_defaults(kappa=0.3, surrogate="sigmoid", loss="logistic")
        term = made.bind(np.where(Y[KNOWN] == 1, 1.0, -1.0), SEX[KNOWN], np.ones(KNOWN.sum()))
        gap = term.gap(clf.decision_function(X)[KNOWN]).max(initial=0.0)
        assert clf.gap_ == pytest.approx(gap)


@pytest.mark.parametrize("dtype", [float, "Int64"])
@pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
def test_whole_numbers_have_the_names_that_they_have_without_missing_values(missing, dtype):
    codes = pd.Series(CODES + 1).where(KNOWN).astype(dtype)
    clf = fitted(codes, groups_missing=missing, constraint=fc.DemographicParity(against="1"))
    assert [str(name) for name in clf.groups_][:2] == ["1", "2"]
    assert clf.bound_met_
    # so that a fold by chance without missing values has them as well
    assert list(map(str, fitted(CODES + 1.0).groups_)) == ["1", "2"]


MODELS = [
    fc.FairLogisticClassifier(kappa=0.03, groups_missing="own_group"),
    fc.FairLogisticClassifier(kappa=0.03, enforce="decision"),
    fc.FairBoostingClassifier(kappa=0.03, enforce="decision", n_estimators=20, n_jobs=1),
    fc.FairThresholds(LogisticRegression(), kappa=0.03),
]


@pytest.fixture(scope="module")
def data():
    """Rows whose true groups are drawn from their probabilities, which depend on the features."""
    X, y, _ = fc.make_biased_classification(3000, gap=0.3, random_state=0)
    chance = 1.0 / (1.0 + np.exp(-2.0 * (X[:, 0] + X[:, 1])))
    groups = np.where(np.random.default_rng(0).random(3000) < chance, "a", "b")
    return X, y, groups, np.column_stack([chance, 1.0 - chance])


def rates_by_hand(decided, P):
    return P.T @ decided / P.sum(axis=0)


def test_certain_probabilities_are_groups_and_others_do_not_change_what_trees_may_do(data):
    X, y, groups, P = data
    certain = fc.GroupProbabilities(np.column_stack([groups == "b", groups == "a"]), ["b", "a"])
    trees = fc.FairBoostingClassifier(kappa=1.0, n_estimators=5, n_jobs=1)
    fits = *((clf, certain) for clf in MODELS[:2]), (trees, fc.GroupProbabilities(P, ["a", "b"]))
    for clf, new in fits:
        both = [clf.fit(X, y, sensitive_features=g).decision_function(X[:5]) for g in (groups, new)]
        assert_allclose(*both, rtol=1e-6)
    gaps = [rate_gaps(y, X[:, 0] > 0, sensitive_features=each) for each in (certain, groups)]
    pd.testing.assert_frame_equal(*gaps)


@pytest.mark.parametrize("clf", MODELS, ids=lambda clf: f"{type(clf).__name__}")
def test_models_meet_the_bound_in_probability_and_nearly_in_truth(data, clf):
    X, y, groups, P = data
    given = pd.DataFrame(P, columns=["a", "b"])
    decided = clf.fit(X, y, sensitive_features=given).predict(X)
    a, b = rates_by_hand(decided, P)
    for metric in (demographic_parity_difference, roc_parity_difference):
        score = fc.make_fairness_scorer(metric)(clf, X, y, sensitive_features=given)
        assert score == pytest.approx(-abs(a - b))
    if not isinstance(clf, fc.FairThresholds):  # whose gap is that of out-of-fold scores
        assert clf.decision_gap_ == pytest.approx(abs(a - b))
    if getattr(clf, "enforce", "decision") == "decision":
        assert abs(a - b) <= 0.03 + 1e-3
    true = abs(decided[groups == "a"].mean() - decided[groups == "b"].mean())
    assert abs(true - abs(a - b)) < 0.05


def test_known_groups_correct_a_proxy_whose_error_depends_on_the_features(data):
    X, _, groups, P = data
    wrong = np.clip(P[:, 0] - 0.3 * np.tanh(X[:, 0]), 0.01, 0.99)
    some = np.where(np.arange(3000) % 3 == 0, groups, None)
    names, wrong = ["a", "b"], np.column_stack([wrong, 1.0 - wrong])
    corrected = fc.GroupProbabilities(wrong, names, known=some, given=X)
    decided = (X[:, 0] > 0).astype(int)
    true = [decided[groups == name].mean() for name in names]
    before, after = (rates_by_hand(decided, part) for part in (wrong, corrected[names].to_numpy()))
    assert np.abs(after - true).max() < 0.02 < np.abs(before - true).max()
    assert corrected["a"].to_numpy()[::3].tolist() == (groups[::3] == "a").astype(float).tolist()


def test_intervals_with_known_groups_count_the_error_of_the_probabilities(data):
    X, y, groups, P = data
    decided, names = (X[:, 0] > 0).astype(int), ["a", "b"]
    true = np.ptp([decided[groups == name].mean() for name in names])
    wrong = np.clip(P[:, 0] - 0.3 * np.tanh(X[:, 0]), 0.01, 0.99)
    seen = np.random.default_rng(0).random(3000) < 0.1
    members, some = np.column_stack([groups == "a", groups == "b"]), np.where(seen, groups, None)
    partly = fc.GroupProbabilities(np.column_stack([wrong, 1.0 - wrong]), names, known=some)
    tables = [rate_gaps(y, decided, sensitive_features=g) for g in (partly[names], partly, groups)]
    plain, counted, exact = (each.loc["selection_rate", "gap":"high"] for each in tables)
    assert not plain["low"] <= true <= plain["high"]
    assert counted["low"] <= true <= counted["high"]
    width = exact["high"] - exact["low"]
    assert width < counted["high"] - counted["low"] < 5.0 * width
    guesses = partly.to_numpy()[:, 2:]
    assert np.isnan(guesses[~seen]).all()
    sums = [
        np.where(seen[:, None], guesses, partly[names]).T @ values
        + (members - guesses)[seen].T @ values[seen] / seen.mean()
        for values in (decided, np.ones(3000))
    ]
    assert counted["gap"] == pytest.approx(np.ptp(sums[0] / sums[1]))
    given = {"sensitive_features": partly, "constraint": "demographic_parity"}
    report = fc.FairnessReport.from_predictions(y, {"0": decided}, **given)
    assert any("Intervals of rates cover the error" in note for note in report.notes)
    assert report.constraints["decisions"].iloc[0] == report.gaps["gap"].iloc[0] == counted["gap"]


@pytest.mark.filterwarnings("ignore:the probabilities guess")
def test_all_rows_are_as_many_as_they_are(data):
    X, y, groups, _ = data
    decided, even = (X[:, 0] > 0).astype(int), fc.GroupProbabilities(np.full((3000, 2), 0.5), "ab")
    tables = [group_rates(y, decided, sensitive_features=each) for each in (even, groups)]
    pd.testing.assert_series_equal(*(table.loc["all rows"] for table in tables))
    given, shown = {"0": decided, "1": y}, ("rows", "sentences")
    make = fc.FairnessReport.from_predictions
    reports = [make(y, given, sensitive_features=each).to_dict() for each in (even, groups)]
    assert [reports[0][k] for k in shown] == [reports[1][k] for k in shown]


@pytest.mark.parametrize("hold", [pd.Series, pd.array, list], ids=["Series", "array", "list"])
def test_known_groups_are_named_as_the_columns_are(data, hold):
    *_, groups, P = data
    numbers = [None if k % 7 else int(group == "a") for k, group in enumerate(groups)]
    corrected = fc.GroupProbabilities(pd.DataFrame(P, columns=[1, 0]), known=hold(numbers))
    assert corrected["1"][::7].tolist() == numbers[::7]


def test_probabilities_are_checked_where_they_are_used(data):
    _, y, _, P = data
    some = fc.GroupProbabilities(P, ["a", "b"])
    for part in (some.reindex(range(1, 3001)), some[["a"]]):
        with pytest.raises(ValueError, match="sensitive_features must hold probabilities"):
            group_rates(y, y, sensitive_features=part)


def test_a_proxy_that_knows_nothing_is_warned_of():
    with pytest.warns(fc.InputWarning, match="no better than the largest group"):
        fc.GroupProbabilities(np.full((100, 2), [0.7, 0.3]), ["a", "b"])


SURE = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]


NO_PROBABILITIES = [
    ([[0.5, 0.6]], ["a", "b"], {}, "sum to 1"),
    ([[1.5, -0.5]], ["a", "b"], {}, "probabilities >= 0"),
    ([[1.0]], ["a"], {}, "at least two groups"),
    ([[0.5, 0.5]], None, {}, "as many names in columns"),
    ([[0.9, 0.1], [0.1, 0.9]], ["a", "b"], {"known": ["a", "c"]}, "known must have"),
    (SURE, ["a", "b"], {"known": list("aabb"), "given": [["no"]] * 4}, "given must have"),
    (SURE, ["a", "b"], {"known": list("aabb"), "given": [[np.nan]] * 4}, "given must have"),
    (SURE, ["a", "b"], {"known": list("aabb"), "given": [[1.0]] * 3}, "given must have"),
    ([[0.9, 0.1], [0.1, 0.9]], ["a", "a"], {}, "several columns of the name 'a'"),
    ([[0.9, 0.1], [0.1, 0.9]], ["a", "b"], {"given": [[1], [2]]}, "pass known"),
]


@pytest.mark.parametrize(("P", "columns", "options", "message"), NO_PROBABILITIES)
def test_what_are_no_probabilities_is_refused(P, columns, options, message):
    with pytest.raises(ValueError, match=message):
        fc.GroupProbabilities(P, columns, **options)


def test_what_needs_the_group_of_every_row_is_refused(data):
    X, y, groups, P = data
    some = fc.GroupProbabilities(P, ["a", "b"])
    by_group = fc.FairThresholds(LogisticRegression(), per_group=True)
    tested = fc.FairLogisticClassifier(confidence=0.9, enforce="decision")
    for clf in (by_group, tested, fc.FairRanker()):
        rows = {"query": np.arange(3000) // 30} if isinstance(clf, fc.FairRanker) else {}
        with pytest.raises(ValueError, match="the group of every row"):
            clf.fit(X, y, sensitive_features=some, **rows)
    known = fc.GroupProbabilities(P, ["a", "b"], known=[*groups[:300], *[None] * 2700])
    for each in (some, some.round(), known):
        with pytest.raises(ValueError, match="probabilities of groups are for rates"):
            rate_gaps(y, y, sensitive_features=each, control_features=groups)


STOPPING = [
    fc.FairBoostingClassifier(early_stopping=True, random_state=0),
    fc.FairNetworkClassifier(hidden_layer_sizes=(4,), max_epochs=20, random_state=0),
]


@pytest.mark.parametrize("clf", STOPPING)
def test_rows_for_validation_have_no_copy_among_the_others(data, clf):
    X, y, _, P = data
    fit = clf.bind(X, y, sensitive_features=fc.GroupProbabilities(P, ["a", "b"]))
    trained, others = (np.unique(rows.positions) for rows in fit.split)
    assert len(trained) + len(others) == len(y) == len(np.union1d(trained, others))
    assert len(others) == pytest.approx(0.1 * len(y), abs=1)
    clf.fit(X, y, sensitive_features=fc.GroupProbabilities(P, ["a", "b"]))
    assert_array_equal(clf.validation_indices_, others)


@pytest.mark.parametrize("cv", [0.3, [(range(2000), range(2000, 3000))], 3])
def test_rows_of_uncertain_groups_are_one_row_of_the_classifier_with_thresholds(data, cv):
    X, y, groups, P = data
    P = fc.GroupProbabilities(P, ["a", "b"])
    clf = fc.FairThresholds(LogisticRegression(), kappa=1.0, cv=cv, random_state=0)
    fits = [clone(clf).fit(X, y, sensitive_features=groups), clf.fit(X, y, sensitive_features=P)]
    assert_array_equal(*(each.estimator_.coef_ for each in fits))
    assert_array_equal(*(getattr(each, "validation_indices_", 0) for each in fits))
    assert fits[0].threshold_ == fits[1].threshold_


def test_expected_gaps_count_a_row_of_uncertain_group_as_one(data):
    X, y, _, P = data
    weight, clf = np.linspace(1.0, 2.0, 3000), fc.FairLogisticClassifier(enforce="decision")
    fit = clf.bind(X, y, weight, sensitive_features=fc.GroupProbabilities(P, ["a", "b"]))
    shares, rows = weight[:, None] * P / (weight @ P), fit.data.groups.original
    of_places = shares[rows, fit.data.groups.codes] ** 2 @ fit.data.variances
    assert of_places == pytest.approx(((shares[:, 0] - shares[:, 1]) ** 2).sum())
    free = clf.set_params(constraint=None).bind(X, y, weight).problem
    changes = score_changes(fit.problem.at(free.start()), np.zeros(2), rows)
    assert_allclose(changes, score_changes(free.at(free.start()), np.zeros(0))[rows])
