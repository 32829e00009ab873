"""Groups of several attributes are shown as "SEX=1, MARRIAGE=0", at every door."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    MinorityRate,
    fairness_report,
    make_biased_classification,
    metrics,
)
from fairconstrained.constraints import GroupAUCParity, IntersectionalLossParity, ROCParity

X, Y, MARRIAGE = make_biased_classification(800, 4, gap=0.4, random_state=0)
GROUPS = pd.DataFrame({"SEX": 1 + np.arange(len(Y)) % 2, "MARRIAGE": MARRIAGE})
SHOWN = [f"SEX={sex}, MARRIAGE={state}" for sex in (1, 2) for state in (0, 1)]
MODEL = FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=GROUPS)
GIVEN = {"sensitive_features": GROUPS}


def all_shown(text):
    return all(name in text for name in SHOWN) and "(1, 0)" not in text


def test_metrics():
    rates = metrics.group_rates(Y, MODEL.predict(X), **GIVEN)
    assert rates.index.tolist() == [*SHOWN, "all rows"]
    gaps = metrics.rate_gaps(Y, MODEL.predict(X), **GIVEN)
    assert set(gaps["highest"]) | set(gaps["lowest"]) <= set(SHOWN)
    assert metrics.class_error_rates(Y, MODEL.predict(X), **GIVEN).columns.tolist() == SHOWN
    unnamed = metrics.group_rates(Y, MODEL.predict(X), sensitive_features=GROUPS.to_numpy())
    assert unnamed.index[0] == "attribute 0=1, attribute 1=0"


def test_reports():
    report = fairness_report(MODEL, X, Y, **GIVEN)
    assert all_shown(str(report)) and all_shown(report.to_html())
    assert report.groups.index.tolist()[:4] == SHOWN


@pytest.mark.parametrize(
    "constraint",
    ["demographic_parity", GroupAUCParity(0.5), ROCParity(0.3), IntersectionalLossParity(0.3)],
    ids=str,
)
def test_constraints(constraint):
    clf = FairLogisticClassifier(constraint, kappa=0.3)
    names = " ".join(clf.bind(X, Y, None, GROUPS).problem.names)
    assert all_shown(names)


@pytest.mark.parametrize("minority", ["SEX=2, MARRIAGE=0", (2, 0)])
def test_a_minority_has_either_name(minority):
    clf = FairLogisticClassifier(MinorityRate(0.2, minority=minority))
    clf.fit(X, Y, sensitive_features=GROUPS)
    assert clf.constraint_choices_[0]["minority"] == (2, 0)
    (name,) = clf.bind(X, Y, None, GROUPS).problem.names
    assert "SEX=2, MARRIAGE=0" in name
    assert clf.violation_ <= 1e-4
    assert "SEX=2, MARRIAGE=0" in str(fairness_report(clf, X, Y, **GIVEN))


def test_a_group_without_thresholds():
    options = {"kappa": 0.3, "per_group": True, "cv": "prefit"}
    free = FairLogisticClassifier(None).fit(X, Y)
    model = FairThresholds(free, **options).fit(X, Y, sensitive_features=GROUPS)
    unknown = pd.DataFrame({"SEX": [9], "MARRIAGE": [0]})
    with pytest.raises(ValueError, match="the group 'SEX=9, MARRIAGE=0'") as error:
        model.predict(X[:1], sensitive_features=unknown)
    assert all_shown(str(error.value))
    one = FairThresholds(free, kappa=0.3, cv="prefit").fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(AttributeError, match=r"With one threshold for all rows it is threshold_\."):
        one.thresholds_  # noqa: B018
