"""Probabilities of groups, and names of rows, are not taken for groups, at every door."""

from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from _support.every_estimator import MODELS, WITHOUT_GROUPS, arguments, generated_rows, needed
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, cross_validate

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    InputWarning,
    compare,
    fairness_path,
    fairness_report,
    metrics,
)
from fairconstrained.__main__ import main
from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.plotting import GroupMetricsDisplay, GroupRateDisplay, ScoreDensityDisplay

ROWS = generated_rows()
X, Y, GIVEN = ROWS[False]
N = len(Y)
P = np.random.default_rng(0).uniform(size=N)
PROBABILITIES = np.column_stack([P, 1.0 - P])
REFUSED = {
    "probabilities": (PROBABILITIES, r"make 600 groups of 600 rows.*probabilities\.argmax"),
    "one column": (P, r"make 600 groups.*probabilities\.argmax"),
    "amounts": (np.round(5e4 * P, 2), r"make \d+ groups of 600 rows.*pd\.cut"),
    "names": ([f"person {k}" for k in range(N)], "make 600 groups of 600 rows.*merge groups"),
    "just too many": (np.arange(N) % 301, "make 301 groups of 600 rows"),
}
MODEL = LogisticRegression().fit(X, Y)
OF_GROUPS = [
    name
    for name in metrics.__all__
    if "sensitive_features" in signature(getattr(metrics, name)).parameters
]


@pytest.mark.parametrize("name", sorted(MODELS.keys() - WITHOUT_GROUPS))
def test_fit_refuses_them(name):
    needed(name)
    features, y, given = arguments(name, ROWS)
    given["sensitive_features"] = np.random.default_rng(0).uniform(size=len(y))
    with pytest.raises(ValueError, match=f"make {len(y)} groups of {len(y)} rows"):
        clone(MODELS[name]).fit(features, y, **given)


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("combine", ["intersection", "marginal"])
def test_the_message_says_what_to_do(kind, combine):
    groups, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message):
        FairLogisticClassifier(combine=combine).fit(X, Y, sensitive_features=groups)


def fit_dask():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from fairconstrained.dask import FairLogisticClassifier as OnDask

    parts = (da.from_array(one, chunks=200) for one in (X, Y, PROBABILITIES))
    features, y, groups = (one.rechunk((200, *one.shape[1:])) for one in parts)
    OnDask().fit(features, y, sensitive_features=groups)


def columns_of_x():
    clf = FairLogisticClassifier(sensitive_columns=[0])
    clf.fit(np.column_stack([P, X]), Y)


def thresholds_without_constraints():
    clf = FairThresholds(LogisticRegression(), None, per_group=True, cv=2)
    clf.fit(X, Y, sensitive_features=PROBABILITIES)


def displays(display):
    display.from_predictions(Y, MODEL.predict_proba(X)[:, 1], sensitive_features=PROBABILITIES)


DOORS = {
    "columns of X": columns_of_x,
    "dask": fit_dask,
    "per group": thresholds_without_constraints,
    "path": partial(fairness_path, FairLogisticClassifier(), X, Y, sensitive_features=P),
    "report": partial(fairness_report, MODEL, X, Y, sensitive_features=P),
    "comparison": partial(compare, {"a": MODEL}, X, Y, sensitive_features=P),
    **{
        f"display {one.__name__}": partial(one.from_estimator, MODEL, X, Y, sensitive_features=P)
        for one in (ScoreDensityDisplay, GroupRateDisplay, GroupMetricsDisplay)
    },
    "display of predictions": partial(displays, GroupRateDisplay),
}


@pytest.mark.parametrize("name", DOORS)
def test_every_door_refuses_them(name):
    with pytest.raises(ValueError, match="make 600 groups of 600 rows"):
        DOORS[name]()


@pytest.mark.parametrize("name", OF_GROUPS)
def test_metrics_refuse_them(name):
    metric = getattr(metrics, name)
    queries = {"query": np.arange(N) % 5} if "query" in signature(metric).parameters else {}
    predicted = Y if "rate" in name or "neyman" in name else MODEL.decision_function(X)
    with pytest.raises(ValueError, match="make 600 groups of 600 rows"):
        metric(Y, predicted, sensitive_features=PROBABILITIES, **queries)


def test_the_command_line_refuses_them(tmp_path, capsys):
    path = tmp_path / "people.csv"
    pd.DataFrame(X).assign(y=Y, p=P).to_csv(path, index=False)
    assert main([str(path), "--target", "y", "--sensitive", "p"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("--sensitive p: the column has 600 values, and every group needs many")


class TestAllowed:
    """Few rows never raise: a fold may have as many groups as rows."""

    def test_a_small_fold(self):
        few = np.arange(50)
        with pytest.warns(InputWarning, match="1.0 rows each"):
            FairLogisticClassifier(kappa=1.0).fit(X[few], Y[few], sensitive_features=few)
        rates = metrics.group_rates(Y[few], Y[few], sensitive_features=few)
        assert len(rates) == 51  # and all rows

    @pytest.mark.parametrize("run", [cross_validate, cross_val_predict])
    def test_a_fold_with_more_groups_than_half_its_rows(self, run):
        groups = np.arange(200) % 100
        split = [(np.arange(100), np.arange(100, 200))]
        every = [*split, split[0][::-1]]
        clf = FairThresholds(LogisticRegression(), kappa=1.0, cv=2)
        params = {"sensitive_features": groups}
        with config_context(enable_metadata_routing=True), pytest.warns(InputWarning):
            run(clf, X[:200], Y[:200], cv=every, params=params)

    def test_half_as_many_groups_as_rows(self):
        groups = np.arange(N) % 300
        with pytest.warns(InputWarning, match="2.0 rows each"):
            FairLogisticClassifier(kappa=1.0).fit(X, Y, sensitive_features=groups)

    def test_groups_that_are_not_compared(self):
        FairLogisticClassifier(None).fit(X, Y, sensitive_features=PROBABILITIES)
        cuts = IntersectionalLossParity(0.1, membership="thresholds", thresholds=3, loss="logistic")
        clf = FairLogisticClassifier(cuts).fit(X, Y, sensitive_features=PROBABILITIES)
        assert clf.violation_ <= 1e-3
