"""Whether a bound is met is said in the same way by every estimator, path and report."""

import re

import numpy as np
import pytest
from _support.classifiers import SINGLE, quietly
from _support.every_estimator import MODELS, OF_CLASSIFIERS, arguments
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    FairLogisticClassifier,
    FairThresholds,
    fairness_report,
    make_biased_classification,
)
from fairconstrained.constraints import BoundedGroupLoss


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_says_whether_its_bound_is_met(name):
    X, y, given = arguments(name)
    model = quietly(clone(MODELS[name]).fit, X, y, **given)
    if getattr(model, "constraint", "losses") is None:
        assert model.bound_met_ is None and model.bound_violation_ == 0.0
        assert not str(model.result_).startswith("bound")
        return
    if getattr(model, "certificate_", None) is not None:
        assert model.bound_met_ is model.certificate_.certified
    elif getattr(model, "enforce", "score") == "decision":
        assert model.bound_met_ is (model.bound_violation_ == 0.0)
        assert model.bound_violation_ == pytest.approx(max(model.decision_gap_ - 0.3, 0.0))
    else:
        assert model.bound_violation_ == model.violation_
        assert model.bound_met_ is bool(model.violation_ <= 1e-4)
    if not isinstance(model, FairThresholds):
        assert str(model.result_).startswith("bound met" if model.bound_met_ else "bound not")


IMPOSSIBLE = {
    **{f"{name}, scores": (make, {}) for name, make in SINGLE.items()},
    **{f"{name}, decisions": (make, {"enforce": "decision"}) for name, make in SINGLE.items()},
    "thresholds": (lambda *args: FairThresholds(LogisticRegression(), *args), {}),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_bound_that_cannot_be_met_is_given_with_the_figure_that_exceeds_it(name):
    make, options = IMPOSSIBLE[name]
    X, y, given = OF_CLASSIFIERS
    model = quietly(make(BoundedGroupLoss(0.01), **options).fit, X, y, **given)
    assert model.bound_met_ is False and model.bound_violation_ > 0.01
    if name == "thresholds":
        return
    value, limit = re.match(r"bound not met: (\S+) > (\S+);", str(model.result_)).groups()
    assert float(limit) == pytest.approx(0.01)
    assert float(value) - 0.01 == pytest.approx(model.bound_violation_, abs=1e-3)
    assert "not met" in model.result_._repr_html_()


def test_decisions_that_miss_their_bound_are_not_hidden_by_scores_that_meet_it():
    rng = np.random.default_rng(0)
    X, y, _ = make_biased_classification(400, 3, random_state=0)
    groups = rng.integers(8, size=len(y))
    model = FairLogisticClassifier("error_rate_parity", kappa=0.001, enforce="decision")
    quietly(model.fit, X, y, sensitive_features=groups)
    wrong = model.predict(X) != y
    gap = np.ptp([wrong[groups == k].mean() for k in range(8)])
    assert gap > 0.001 and model.decision_gap_ == pytest.approx(gap)
    assert model.bound_met_ is False
    assert model.bound_violation_ == pytest.approx(gap - 0.001)
    assert str(model.result_).startswith(f"bound not met: {gap:.3f} > 0.001;")
    report = fairness_report(model, X, y, groups)
    assert report.model.loc["bound", "value"].startswith("not met")
    assert "not met" in str(report) and "not met" in report.to_json()
