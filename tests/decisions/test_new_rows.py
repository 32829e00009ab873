"""The gaps that are expected on new rows: against draws, at every door, and the warning."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from fairconstrained import (
    DemographicParity,
    FairBoostingClassifier,
    FairLogisticClassifier,
    FairThresholds,
    GeneralizationWarning,
    fairness_report,
)
from fairconstrained.decisions.new_rows import expected_gaps


def drawn(n_rows, seed, n_features=25, share=0.15):
    """Return rows with a small group, whose labels the many features hardly tell."""
    rng = np.random.default_rng(seed)
    small = rng.random(n_rows) < share
    X = rng.standard_normal((n_rows, n_features))
    X[:, 0] += np.where(small, -0.8, 0.2)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(0.5 - 2.0 * X[:, 0]))).astype(int)
    return X, y, np.where(small, "small", "large")


def gaps(clf, X, y, groups, constraint):
    """Return the gaps of true and false positive rates, or that of error rates."""
    decided = clf.predict(X)
    events = [y == 1, y == 0] if constraint == "equalized_odds" else [y >= 0]
    value = decided != y if constraint == "error_rate_parity" else decided
    return [np.ptp([value[e & (groups == k)].mean() for k in ("small", "large")]) for e in events]


@pytest.mark.parametrize("constraint", ["equalized_odds", "error_rate_parity"])
def test_the_expected_gap_is_near_that_of_as_many_new_rows(constraint):
    figures = []
    for seed in range(6):
        X, y, groups = drawn(1000, seed, 4)
        clf = FairLogisticClassifier(constraint, 0.02, enforce="decision")
        clf.fit(X, y, sensitive_features=groups)
        measured = gaps(clf, *drawn(1000, 100 + seed, 4), constraint)
        training = gaps(clf, X, y, groups, constraint)
        search = clf.decision_search_
        assert [one.training for one in search.expected_gaps] == pytest.approx(training, abs=1e-12)
        assert all(one.bound == pytest.approx(0.02) for one in search.expected_gaps)
        figures += zip(
            training, [one.expected for one in search.expected_gaps], measured, strict=True
        )
    training, expected, measured = np.mean(figures, axis=0)
    assert 3.0 * training < measured and 0.7 * measured < expected < 1.4 * measured


DOORS = {
    "linear": FairLogisticClassifier(enforce="decision"),
    "groups and all": FairLogisticClassifier(
        DemographicParity(against="overall"), enforce="decision"
    ),
    "ratio": FairLogisticClassifier("disparate_impact", enforce="decision"),
    "trees": FairBoostingClassifier(enforce="decision", n_estimators=5, n_jobs=1),
    "thresholds": FairThresholds(LogisticRegression(), per_group=True, cv=2),
    "confidence": FairLogisticClassifier(
        kappa=0.3, enforce="decision", confidence=0.5, random_state=0
    ),
}


@pytest.mark.parametrize("clf", DOORS.values(), ids=DOORS)
def test_every_door_tells_the_gap_on_new_rows(clf):
    if isinstance(clf, FairBoostingClassifier):
        pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    X, y, groups = drawn(600, 0, n_features=3, share=0.4)
    clf.fit(X, y, sensitive_features=groups)
    found = clf.decision_search_.expected_gaps
    assert max(one.training for one in found) == pytest.approx(clf.decision_gap_, abs=1e-9)
    assert all(one.expected > one.training - 1e-3 for one in found)
    shown = fairness_report(clf, X, y, groups).model["value"]
    assert f"{found[0].expected:.4f} expected on new rows" in shown[f"gap: {found[0].name}"]


def test_rows_in_shards_have_the_same_figures():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    import fairconstrained.dask as collections

    rows = X, y, weight, groups = (
        *drawn(900, 0, 3)[:2],
        np.linspace(0.5, 2.0, 900),
        drawn(900, 0, 3)[2],
    )
    options = {"constraint": "equalized_odds", "kappa": 0.05, "enforce": "decision"}
    there = collections.FairLogisticClassifier(**options)
    there.fit(
        *[da.from_array(part, 400) for part in rows[:3]],
        sensitive_features=da.from_array(groups, 400),
    )
    here = FairLogisticClassifier(**options).bind(X, y, weight, sensitive_features=groups)
    at = here.problem.at(there.to_local()._variables(here))
    for sharded, expected in zip(
        there.decision_search_.expected_gaps, expected_gaps(at, None), strict=True
    ):
        assert sharded.name.replace("'", "") == expected.name
        assert sharded.training == pytest.approx(expected.training, abs=1e-9)
        assert sharded.expected == pytest.approx(expected.expected, abs=1e-9)
        assert sharded.expected > sharded.training


def test_a_gap_of_more_than_twice_the_bound_warns_and_fits_on_in_folds():
    X, y, groups = drawn(400, 0)
    clf = FairLogisticClassifier("equalized_odds", 0.02, enforce="decision")
    with pytest.warns(GeneralizationWarning, match="more than twice its bound of 0.02"):
        clf.fit(X, y, sensitive_features=groups)
    worst = max(one.expected for one in clf.decision_search_.expected_gaps)
    assert worst > 0.04 and clf.bound_met_
    with config_context(enable_metadata_routing=True), pytest.warns(GeneralizationWarning):
        clf.set_fit_request(sensitive_features=True)
        scores = cross_val_score(clf, X, y, cv=3, params={"sensitive_features": groups})
    assert np.isfinite(scores).all()
