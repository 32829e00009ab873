"""Reports on the training rows give the gaps of the fit, also where groups are missing."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairconstrained import FairLogisticClassifier, fairness_report
from fairconstrained.constraints import (
    CONSTRAINTS,
    MinorityRate,
    PartialDemographicParity,
    ROCParity,
    WeakPartialDemographicParity,
)

N = 240
OWN = {  # what each attribute would otherwise choose on its own, which reports do not measure
    "roc_parity": ROCParity(thresholds=[-1.0, 0.0, 1.0]),
    "partial_dp": PartialDemographicParity(0.3, ranks=(0.1, 0.6)),
    "weak_partial_dp": WeakPartialDemographicParity(ranks=(0.1, 0.6)),
}
NAMES = sorted(set(CONSTRAINTS) - {"query_parity"})


rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
GROUPS = pd.DataFrame({"a": rng.choice(["x", "y"], N), "b": rng.choice(["u", "v"], N)})
Y = (X.sum(axis=1) + (GROUPS["a"] == "x") + rng.logistic(size=N) > 0.5).astype(int)
for name in GROUPS:
    GROUPS[name] = GROUPS[name].where(rng.random(N) > 0.2, None)
X[GROUPS["a"].isna()] += 0.5
DATA = X, Y, GROUPS


def first_row(X, y, groups, constraint, **options):
    """Return a fitted classifier and the first constraint of its report on the same rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cells without rows, fits that are short of the tolerance
        clf = FairLogisticClassifier(constraint, random_state=0, max_iter=50, **options)
        clf.fit(X, y, sensitive_features=groups)
        report = fairness_report(clf, X, y, groups)
    return clf, report.to_frame("constraints").iloc[0]


@pytest.mark.parametrize("groups_missing", ["own_group", "ignore_in_constraint"])
@pytest.mark.parametrize("combine", ["intersection", "marginal"])
@pytest.mark.parametrize("name", NAMES)
def test_the_report_on_the_training_rows_is_the_fit(name, combine, groups_missing):
    constraint = OWN.get(name, name) if combine == "marginal" else name
    if name == "minority_rate" and combine == "marginal":
        constraint = MinorityRate(minority="a=x")
    clf, found = first_row(X, Y, GROUPS, constraint, combine=combine, groups_missing=groups_missing)
    assert found["decisions"] == pytest.approx(clf.decision_gap_, abs=1e-9)
    if name != "partial_dp":  # its thresholds are variables of the fit
        assert found["scores"] == pytest.approx(clf.gap_, abs=1e-7)


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_was_chosen_in_fit_is_measured_on_other_rows(name):
    X, y, groups = DATA
    groups = groups["a"].fillna("x")
    clf = FairLogisticClassifier(name, kappa=0.1, random_state=0, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X[:120], y[:120], sensitive_features=groups[:120])
        found = fairness_report(clf, X[120:], y[120:], groups[120:]).to_frame("constraints").iloc[0]
    (chosen,) = clf.constraint_choices_
    bound = CONSTRAINTS[name](0.1, **chosen)
    term = bound.bind(2.0 * y[120:] - 1.0, groups[120:].to_numpy(), np.ones(120)).zero_one()
    assert chosen
    assert found["decisions"] == pytest.approx(term.gap(clf.decision_function(X[120:])).max())
