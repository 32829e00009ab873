"""Precision and calibration in the large by group: values, intervals, weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score

from fairconstrained import FairLogisticClassifier, FairnessReport, make_biased_classification
from fairconstrained.constraints import CalibrationParity
from fairconstrained.metrics import group_calibration, predictive_parity_difference

X, Y, GROUPS = make_biased_classification(800, 3, gap=0.4, random_state=0)
MODEL = FairLogisticClassifier(None).fit(X, Y)
P, DECIDED = MODEL.predict_proba(X)[:, 1], MODEL.predict(X)
MEMBERS = {"sensitive_features": GROUPS}


def test_predictive_parity_is_the_gap_of_precisions():
    each = [precision_score(Y[k == GROUPS], DECIDED[k == GROUPS]) for k in (0, 1)]
    gap = predictive_parity_difference(Y, DECIDED, **MEMBERS)
    assert gap == pytest.approx(abs(each[0] - each[1]), rel=1e-12)
    row = FairnessReport.from_predictions(Y, DECIDED, **MEMBERS).gaps.loc["precision"]
    assert row["gap"] == pytest.approx(gap) and row["low"] <= gap <= row["high"]
    overall = max(abs(rate - precision_score(Y, DECIDED)) for rate in each)
    against = predictive_parity_difference(Y, DECIDED, method="to_overall", **MEMBERS)
    assert against == pytest.approx(overall, rel=1e-12)
    nobody = np.where(GROUPS == 0, DECIDED, 0)
    assert predictive_parity_difference(Y, nobody, **MEMBERS) == 0.0


def test_the_gap_is_that_of_the_constraint():
    report = FairnessReport.from_predictions(Y, DECIDED, y_score=P, **MEMBERS)
    term = CalibrationParity(kappa=0.05).bind(np.where(Y > 0, 1, -1), GROUPS, np.ones(len(Y)))
    row = report.gaps.loc["calibration"]
    assert row["gap"] == pytest.approx(term.gap(MODEL.decision_function(X)).max(), abs=1e-9)
    assert 0.0 <= row["low"] <= row["gap"] <= row["high"]
    calibration = report.to_frame("calibration")
    pd.testing.assert_frame_equal(calibration, group_calibration(Y, P, **MEMBERS))
    assert "labels minus probabilities" in report.to_html()
    assert FairnessReport.from_predictions(Y, DECIDED, **MEMBERS).calibration.empty


def test_probabilities_are_between_0_and_1():
    with pytest.raises(ValueError, match="y_pred must hold the probabilities"):
        group_calibration(Y, 3.0 * P, **MEMBERS)
