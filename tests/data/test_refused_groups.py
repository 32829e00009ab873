"""Groups at every door: those that are refused, and the names of intersections."""

from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from _support.every_estimator import MODELS, OF_CLASSIFIERS, WITHOUT_GROUPS, arguments
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained import metrics
from fairconstrained.data.groups import Groups
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

X, Y, GIVEN = OF_CLASSIFIERS
N = len(Y)
MODEL = LogisticRegression().fit(X, Y)
FREE = fc.FairLogisticClassifier()


def ragged(n):
    rows = [("a", "x"), ("b", "y")] * (n // 2)
    return [*rows[:7], ("b",), *rows[8:]]


def repeated(n):
    return pd.DataFrame(np.arange(2 * n).reshape(n, 2) % 2, columns=["sex", "sex"])


def probabilities(n):
    share = np.random.default_rng(0).uniform(size=n)
    return np.column_stack([share, 1.0 - share])


P = probabilities(N)[:, 0]
WRONG = {
    "ragged tuples": (
        ragged,
        r"^sensitive_features has .*row 0 has 2, \('a', 'x'\), and row 7 has 1, \('b',\)",
    ),
    "ragged series": (
        lambda n: pd.Series(ragged(n)),
        r"^sensitive_features has .*row 7 has 1, \('b',\)",
    ),
    "a repeated name": (repeated, "^sensitive_features has .*several columns of the name 'sex'"),
    "probabilities": (probabilities, r"make (\d+) groups of \1 rows"),
    "one probability": (lambda n: probabilities(n)[:, 0], r"make (\d+) groups of \1 rows"),
}


def metric(function, groups):
    queries = {"query": np.arange(N) % 5} if "query" in signature(function).parameters else {}
    name = function.__name__
    of_decisions = "rate" in name or name.startswith(("neyman", "predictive", "impact"))
    predicted = Y if of_decisions else MODEL.decision_function(X)
    function(Y, predicted, sensitive_features=groups, **queries)


def thresholds_without_constraints(groups):
    clf = fc.FairThresholds(LogisticRegression(), None, per_group=True, cv=2)
    clf.fit(X, Y, sensitive_features=groups)


def fit(name, groups):
    features, y, given = arguments(name)
    clone(MODELS[name]).fit(features, y, **given | {"sensitive_features": groups})


def displayed(kind, groups):
    kind.from_estimator(MODEL, X, Y, sensitive_features=groups)


DOORS = {
    "path": lambda groups: fc.fairness_path(FREE, X, Y, sensitive_features=groups),
    "report": lambda groups: fc.fairness_report(MODEL, X, Y, sensitive_features=groups),
    "comparison": lambda groups: fc.compare({"a": MODEL}, X, Y, sensitive_features=groups),
    "per group": thresholds_without_constraints,
    "display of predictions": lambda groups: GroupRateDisplay.from_predictions(
        Y, X[:, 0], sensitive_features=groups
    ),
}
for kind in (ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay):
    DOORS[kind.__name__] = partial(displayed, kind)
METRICS = {
    name: partial(metric, getattr(metrics, name))
    for name in metrics.__all__
    if "sensitive_features" in signature(getattr(metrics, name)).parameters
}


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", sorted(MODELS.keys() - WITHOUT_GROUPS))
@pytest.mark.parametrize("kind", WRONG)
def test_every_estimator(name, kind):
    make, message = WRONG[kind]
    rows = len(arguments(name)[1])
    with pytest.raises(ValueError, match=message):
        fit(name, make(rows))


@pytest.mark.cases(16)
@pytest.mark.parametrize("door", DOORS | METRICS)
@pytest.mark.parametrize("kind", WRONG)
def test_every_door(door, kind):
    make, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        (DOORS | METRICS)[door](make(N))


@pytest.mark.parametrize("door", DOORS)
def test_groups_that_are_encoded_are_taken_as_they_are(door):
    DOORS[door](Groups.encode(GIVEN["sensitive_features"]))


@pytest.mark.parametrize("columns", [["s", "s"], [0, "s"], [0, 0], [0, -11]])
def test_a_column_of_x_that_is_named_twice(columns):
    table = pd.DataFrame(np.column_stack([GIVEN["sensitive_features"], X])).add_prefix("x")
    table = table.rename(columns={"x0": "s"})
    for model in (fc.FairLogisticClassifier(), fc.FairThresholds(LogisticRegression())):
        with pytest.raises(ValueError, match="sensitive_columns names a column of X twice"):
            model.set_params(sensitive_columns=columns).fit(table, Y)


MESSAGES = {
    "probabilities": (probabilities(N), r"make 600 groups of 600 rows.*probabilities\.argmax"),
    "one column": (P, r"make 600 groups.*probabilities\.argmax"),
    "amounts": (np.round(5e4 * P, 2), r"make \d+ groups of 600 rows.*pd\.cut"),
    "names": ([f"person {k}" for k in range(N)], "make 600 groups of 600 rows.*merge groups"),
    "just too many": (np.arange(N) % 301, "make 301 groups of 600 rows"),
}


@pytest.mark.cases(10)
@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("combine", ["intersection", "marginal"])
def test_the_message_says_what_to_do(kind, combine):
    groups, message = MESSAGES[kind]
    with pytest.raises(ValueError, match=message):
        fc.FairLogisticClassifier(combine=combine).fit(X, Y, sensitive_features=groups)
    if np.ndim(groups) == 1:
        table = pd.DataFrame(X).add_prefix("x").assign(group=groups)
        with pytest.raises(ValueError, match=message):
            fc.FairLogisticClassifier(combine=combine, sensitive_columns=["group"]).fit(table, Y)


ROWS, LABELS, MARRIAGE = fc.make_biased_classification(800, 4, gap=0.4, random_state=0)
CROSSED = pd.DataFrame({"SEX": 1 + np.arange(len(LABELS)) % 2, "MARRIAGE": MARRIAGE})
SHOWN = [f"SEX={sex}, MARRIAGE={state}" for sex in (1, 2) for state in (0, 1)]
OF_CROSSED = fc.FairLogisticClassifier(kappa=0.1).fit(ROWS, LABELS, sensitive_features=CROSSED)
BOTH = {"sensitive_features": CROSSED}


def all_shown(text):
    return all(name in text for name in SHOWN) and "(1, 0)" not in text


def test_metrics_name_intersections():
    decided = OF_CROSSED.predict(ROWS)
    rates = metrics.group_rates(LABELS, decided, **BOTH)
    assert rates.index.tolist() == [*SHOWN, "all rows"]
    gaps = metrics.rate_gaps(LABELS, decided, **BOTH)
    assert set(gaps["highest"]) | set(gaps["lowest"]) <= set(SHOWN)
    assert metrics.class_error_rates(LABELS, decided, **BOTH).columns.tolist() == SHOWN
    unnamed = metrics.group_rates(LABELS, decided, sensitive_features=CROSSED.to_numpy())
    assert unnamed.index[0] == "attribute 0=1, attribute 1=0"


def test_reports_name_intersections():
    report = fc.fairness_report(OF_CROSSED, ROWS, LABELS, **BOTH)
    assert all_shown(str(report)) and all_shown(report.to_html())
    assert report.groups.index.tolist()[:4] == SHOWN


NAMED_BY = [
    "demographic_parity",
    fc.constraints.GroupAUCParity(0.5),
    fc.constraints.ROCParity(0.3),
    fc.constraints.IntersectionalLossParity(0.3),
]


@pytest.mark.parametrize("constraint", NAMED_BY, ids=str)
def test_constraints_name_intersections(constraint):
    clf = fc.FairLogisticClassifier(constraint, kappa=0.3)
    names = " ".join(clf.bind(ROWS, LABELS, None, CROSSED).problem.names)
    assert all_shown(names)


@pytest.mark.parametrize("minority", ["SEX=2, MARRIAGE=0", (2, 0)])
def test_a_minority_has_either_name(minority):
    clf = fc.FairLogisticClassifier(fc.MinorityRate(0.2, minority=minority))
    clf.fit(ROWS, LABELS, sensitive_features=CROSSED)
    assert clf.constraint_choices_[0]["minority"] == (2, 0)
    (name,) = clf.bind(ROWS, LABELS, None, CROSSED).problem.names
    assert "SEX=2, MARRIAGE=0" in name
    assert clf.violation_ <= 1e-4
    assert "SEX=2, MARRIAGE=0" in str(fc.fairness_report(clf, ROWS, LABELS, **BOTH))


def test_a_group_without_thresholds():
    options = {"kappa": 0.3, "per_group": True, "cv": "prefit"}
    free = fc.FairLogisticClassifier(None).fit(ROWS, LABELS)
    model = fc.FairThresholds(free, **options).fit(ROWS, LABELS, sensitive_features=CROSSED)
    unknown = pd.DataFrame({"SEX": [9], "MARRIAGE": [0]})
    with pytest.raises(ValueError, match="the group 'SEX=9, MARRIAGE=0'") as error:
        model.predict(ROWS[:1], sensitive_features=unknown)
    assert all_shown(str(error.value))
    one = fc.FairThresholds(free, kappa=0.3, cv="prefit")
    one.fit(ROWS, LABELS, sensitive_features=CROSSED)
    with pytest.raises(AttributeError, match=r"With one threshold for all rows it is threshold_\."):
        one.thresholds_  # noqa: B018
