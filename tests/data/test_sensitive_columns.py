"""sensitive_columns: their names, X without them, and coefficients for each of their groups."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.classifiers import EVERY, quietly
from _support.containers import CONTAINERS, assert_same
from _support.gaps import rate_gap
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import fairconstrained as fc

FEATURES = list("abc")


X, Y, GROUPS = fc.make_biased_classification(400, 3, gap=0.3, random_state=0)


X[np.random.default_rng(0).random(X.shape) < 0.3] = 0.0  # something for sparse formats


COLUMNS = ["a", "sex", "b", "c", "age"]


NUMBERS = np.column_stack([X[:, 0], GROUPS, X[:, 1:], np.arange(400) % 3 > 0])


TABLE = pd.DataFrame(NUMBERS, columns=COLUMNS).drop(columns="age")


AGES = np.where(np.arange(400) % 3, "young", "old")
WORDS = TABLE.assign(sex=np.where(GROUPS > 0, "m", "f"), age=AGES)


def fitted(X, y=Y, groups=None, **options):
    return fc.FairLogisticClassifier(**options).fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def model():
    return fitted(TABLE, sensitive_columns=["sex"])


WAYS = ["sex", ["sex"], ("sex",), pd.Index(["sex"]), 1, [1], [-3], np.array([1])]


@pytest.mark.cases(8)
@pytest.mark.parametrize("way", WAYS, ids=repr)
def test_equivalent_arguments(model, way):
    clf = fitted(TABLE, sensitive_columns=way)
    assert_same(clf, model)
    assert clf.coef_[0, 1] == 0.0 and np.all(np.delete(clf.coef_[0], 1))
    assert_allclose(np.delete(clf.coef_, 1, axis=1), fitted(X, Y, GROUPS).coef_, atol=1e-10)
    assert_array_equal(clf.groups_, [0, 1])
    assert clf.n_features_in_ == 4 and clf.feature_scale_[1] == 1.0


@pytest.mark.cases(7)
@pytest.mark.parametrize("container", CONTAINERS)
def test_positions_and_functions_in_any_container(container):
    numbers = NUMBERS[:, :4]
    made = CONTAINERS[container](numbers)

    def positive(rows):
        if hasattr(rows, "columns"):
            return rows[rows.columns[0]] > 0.5
        assert rows.ndim == 2  # lists come as arrays, sparse formats as CSR
        return rows[:, [0]] > 0.5

    clf, reference = fitted(made, sensitive_columns=[-3]), fitted(numbers, sensitive_columns=[1])
    assert_same(clf, reference, atol=1e-7)
    assert_array_equal(clf.predict(made), reference.predict(numbers))
    clf = fitted(made, sensitive_columns=positive)
    assert_same(clf, fitted(numbers, Y, numbers[:, 0] > 0.5), atol=1e-7)
    assert np.all(clf.coef_) and clf.groups_.tolist() == [False, True]


def test_a_table_of_pyarrow(model):
    rows = pytest.importorskip("pyarrow", reason="pyarrow is not installed").table(dict(TABLE))
    clf = fitted(rows, sensitive_columns=["sex"])
    assert_same(clf, model)
    assert_array_equal(clf.predict(rows.select(FEATURES)), model.predict(TABLE))


def test_the_sensitive_column_does_not_decide(model):
    scores = model.predict_proba(TABLE)
    exchanged = model.predict_proba(TABLE.assign(sex=1 - TABLE["sex"]))
    assert_allclose(exchanged, scores, rtol=1e-14)  # sums depend on how memory is aligned
    assert_array_equal(model.predict(TABLE.assign(sex=None)), model.predict(TABLE))
    free = fitted(TABLE, constraint=None, sensitive_columns=["sex"])
    expected = fitted(X, constraint=None).coef_
    assert_allclose(np.delete(free.coef_, 1, axis=1), expected, atol=1e-10)


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", EVERY)
def test_every_classifier_predicts_without_them(name):
    clf = EVERY[name](sensitive_columns=["sex", "age"]).fit(WORDS, Y)
    for columns in (FEATURES, COLUMNS[:4], ["a", "b", "c", "age"]):
        assert_array_equal(clf.decision_function(WORDS[columns]), clf.decision_function(WORDS))
        assert_array_equal(clf.predict(WORDS[columns]), clf.predict(WORDS))
    clf = EVERY[name](sensitive_columns=[1]).fit(NUMBERS[:, :4], Y)
    for rows in (X, sp.csr_array(X)):
        assert_array_equal(clf.predict(rows), clf.predict(NUMBERS[:, :4]))


def used(**options):
    return fitted(TABLE, sensitive_columns=["sex"], **options)


def validation_rows(**groups):
    clf = fc.FairLogisticClassifier(sensitive_columns=["sex"])
    features = TABLE[FEATURES] if groups else TABLE
    path = fc.fairness_path(clf, TABLE, Y, kappas=[0.05], X_val=features, y_val=Y, **groups)
    return path.validation


ABSENT = {
    "a feature": (lambda: used().predict(TABLE[["a", "b"]]), "feature names"),
    "another feature": (
        lambda: used().predict(TABLE.assign(d=1.0)[["a", "b", "d"]]),
        "feature names",
    ),
    "columns of an array": (
        lambda: fitted(NUMBERS, sensitive_columns=[1, 4]).predict(NUMBERS[:, :2]),
        "2 features",
    ),
    "in fit": (lambda: fitted(TABLE[FEATURES], sensitive_columns=["sex"]), "X has no column 'sex'"),
    "interactions": (
        lambda: used(group_interactions=True).predict(TABLE[FEATURES]),
        "which X does not have here",
    ),
    "used": (lambda: used(use_sensitive=True).predict(TABLE[FEATURES]), "feature names"),
    "report, a feature": (
        lambda: fc.fairness_report(used(), TABLE[["a", "sex", "c"]], Y),
        r"now missing:\s+- b",
    ),
    "report, the groups": (
        lambda: fc.fairness_report(used(), TABLE[FEATURES], Y),
        "which X does not have here.*it has no column 'sex'",
    ),
}


@pytest.mark.cases(len(ABSENT))
@pytest.mark.parametrize("case", ABSENT)
def test_what_is_absent_is_named(case):
    call, message = ABSENT[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_groups_may_be_passed_instead(model):
    whole = fc.fairness_report(model, TABLE, Y).to_frame("gaps")
    given = fc.fairness_report(model, TABLE[FEATURES], Y, TABLE["sex"]).to_frame("gaps")
    pd.testing.assert_frame_equal(whole, given)
    assert validation_rows(sensitive_features_val=TABLE["sex"]) == validation_rows()


MEANINGS = (
    r"sensitive_columns: 2 has two meanings\. It may be the column at position 2 of X, whose "
    r"label is 1, or the column with the label 2, which is at position 3\. Make the labels "
    r"strings, `X\.columns = X\.columns\.astype\(str\)`, and pass the name of the column: "
    r"'1' or '2'\.$"
)


@pytest.mark.cases(4)
@pytest.mark.parametrize("columns", [2, [2], np.array([2]), pd.Index([2])], ids=str)
def test_integers_are_positions_and_refused_where_they_are_labels_as_well(columns):
    numbers = np.column_stack([X[:, :2], X[:, 2] > 0.0, GROUPS])
    frame = pd.DataFrame(numbers, columns=(10, 0, 1, 2))
    for use_sensitive in (False, True):
        with pytest.raises(ValueError, match=MEANINGS):
            fitted(frame, sensitive_columns=columns, use_sensitive=use_sensitive)
    clf = fitted(frame.set_axis(["10", "0", "1", "2"], axis=1), sensitive_columns=["2"])
    scorer = fc.make_fairness_scorer(rate_gap, greater_is_better=False, sensitive_columns=columns)
    with pytest.raises(ValueError, match=MEANINGS):
        scorer(clf, frame, Y)


@pytest.fixture(scope="module")
def table():
    X, y, groups = fc.make_biased_classification(600, 4, n_groups=3, gap=0.4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(1, "town", np.array(["Ulm", "Bonn", "Kiel"])[groups])
    flipped = np.where(groups == 1, -frame["c"], frame["c"])  # what a tells differs between groups
    return frame, (y + (flipped > 1.0) > 0).astype(int)


def classifier(**options):
    options = {"sensitive_columns": ["town"], "group_interactions": True, **options}
    return fc.FairLogisticClassifier(**options)


def test_every_group_has_a_row_of_coefficients(table):
    X, y = table
    fit = classifier().fit(X, y)
    assert fit.coef_.shape == (3, 5) and fit.intercept_.shape == (3,)
    assert_array_equal(fit.groups_, ["Bonn", "Kiel", "Ulm"])
    assert np.all(fit.coef_[:, 1] == 0.0), "the column itself is not a feature"
    numbers = X.drop(columns="town").to_numpy()
    for k, town in enumerate(fit.groups_):
        rows = (X["town"] == town).to_numpy()
        expected = numbers[rows] @ np.delete(fit.coef_[k], 1) + fit.intercept_[k]
        assert_allclose(fit.decision_function(X)[rows], expected)
    assert fit.result_.converged and fit.violation_ <= 1e-4
    X = X.assign(town=np.where(X.index == 0, "Rom", X["town"]))
    bound = {"constraint": fc.DemographicParity(0.5, against="overall"), "enforce": "decision"}
    fit = quietly(classifier(**bound, confidence=0.8, random_state=0).fit, X, y)
    assert fit.holdout_indices_[0] == 0 and fit.coef_.shape == (4, 5), "no row of Rom to train on"


def test_the_objective_is_that_of_the_expanded_features(table):
    """(x, z, z x) written out by hand, without a constraint and with no penalty to speak of."""
    X, y = table
    fit = classifier(constraint=None, alpha=1e-9).fit(X, y)
    numbers = X.drop(columns="town").to_numpy()
    z = np.column_stack([X["town"] == town for town in ("Kiel", "Ulm")]).astype(float)
    crossed = np.hstack([numbers, z, *(z[:, [k]] * numbers for k in (0, 1))])
    plain = fc.FairLogisticClassifier(None, alpha=1e-9).fit(crossed, y)
    assert_allclose(fit.objective_, plain.objective_, rtol=1e-4)
    margins = (2.0 * y - 1.0) * fit.decision_function(X)
    assert_allclose(fit.objective_, fc.functions.Logistic().value(margins).mean(), rtol=1e-5)


def test_warm_start(table):
    X, y = table
    fit = classifier(warm_start=True).fit(X, y)
    cold = fit.result_.data_passes
    before = fit.coef_.copy()
    fit.fit(X, y)
    assert fit.result_.data_passes < 0.6 * cold
    assert_allclose(fit.coef_, before, atol=1e-2)
    fit.set_params(group_interactions=False).fit(X, y)  # nothing to start from: another shape
    assert fit.coef_.shape == (1, 5)


def test_unknown_groups_raise(table):
    X, y = table
    for towns in (["Bonn", "Kiel"], ["Ulm"]):
        rows = X["town"].isin(towns)
        fit = quietly(classifier().fit, X[rows], y[rows])  # of one group
        assert fit.coef_.shape == (len(towns), 5)
        with pytest.raises(ValueError, match=rf"which no row had in fit.*\{towns}"):
            fit.predict(X)


MISTAKES = {
    "several groups": ({"combine": "marginal"}, "group_interactions=True.*combine='marginal'"),
    "not columns": ({"sensitive_columns": None}, "group_interactions=True.*sensitive_columns"),
    "not a switch": (
        {"group_interactions": "yes"},
        "'group_interactions' parameter .*'bool'.*'yes'",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_reported(table, case):
    options, message = MISTAKES[case]
    with pytest.raises(ValueError, match=message):
        classifier(**options).fit(table[0], table[1])
    assert clone(classifier(**options)).get_params()["group_interactions"] is not False
