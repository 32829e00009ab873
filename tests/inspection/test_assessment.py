"""What constraints ask of outputs, also where groups are missing."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import quietly

from fairconstrained import FairLogisticClassifier, constraints, fairness_report
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.inspection.assessment import AssessedRows, assess
from fairconstrained.metrics.rates import RATES

COMPARED = {
    "demographic_parity": ("selection_rate",),
    "disparate_impact": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "predictive_equality": ("false_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
    "error_rate_parity": ("error_rate",),
    "predictive_parity": ("precision",),
}


def rows(n=400, seed=0):
    random = np.random.default_rng(seed)
    groups = Groups.encode(random.choice(["a", "b", "c"], n))
    given = random.choice([-1.0, 1.0], n), np.array([-1, 1]), groups, np.ones(n)
    return AssessedRows(TrainingData(None, *given), random.normal(size=n))


def bound(name):
    """Return a constraint that can be measured on any rows."""
    fixed = {"roc_parity": constraints.ROCParity(thresholds=[0.0]), "partial_dp": None}
    if name.endswith("partial_dp"):
        fixed[name] = constraints.CLASSIFIER_CONSTRAINTS[name](ranks=(0.2, 0.6))
    return fixed.get(name) or constraints.CLASSIFIER_CONSTRAINTS[name]()


@pytest.mark.parametrize("name", constraints.CLASSIFIER_CONSTRAINTS)
def test_the_rates_that_a_constraint_names_are_its_gap(name):
    constraint, some = bound(name), rows()
    assert constraint.rates_compared == COMPARED.get(name, ())
    assert set(constraint.rates_compared) <= set(RATES)
    found = assess(constraint, some, 0.95)
    if not constraint.rates_compared:
        known = found.low <= found.on_predictions <= found.high
        assert known == (name == "calibration_parity") != np.isnan(found.low)
        return
    (predictions,) = some.predictions()
    rates = [predictions.cells(rate)[0] for rate in constraint.rates_compared]
    gaps = [np.ptp(one) for one in rates]
    if constraint.compares_ratios:
        gaps = [1.0 - one.min() / one.max() for one in rates]
    assert found.on_predictions == pytest.approx(max(gaps))
    assert found.low <= found.on_predictions <= found.high


@pytest.mark.parametrize(("against", "name"), [("b", "b"), ("overall", "all rows")])
def test_a_named_group_or_all_rows_are_compared_with_every_group(against, name):
    found = assess(constraints.DemographicParity(0.05, against=against), rows(), 0.95)
    table = rows().predictions()[0].rates(["selection_rate"], 0.95)["selection_rate"]
    assert found.on_predictions == pytest.approx((table - table[name]).abs().max())
    assert found.low <= found.on_predictions <= found.high < 1.0
    assert name in {found.deciding[end].group for end in ("highest", "lowest")}


TOLERANCES = [
    (constraints.DemographicParity(0.07), 0.07),
    (constraints.DemographicParity(ratio=0.8), 0.2),
    (constraints.DisparateImpact(0.9), 0.1),
    (constraints.MinorityRate(0.3, minority="a"), 0.7),
    (constraints.BalancedRate(r=1.1), 1.1),
]


@pytest.mark.parametrize(("constraint", "tolerance"), TOLERANCES)
def test_tolerance(constraint, tolerance):
    assert assess(constraint, rows(), 0.95).tolerance == pytest.approx(tolerance)


NOT_MEASURED = [
    (constraints.PartialDemographicParity(), "chooses the range on the training rows; give ranks"),
    (constraints.PartialDemographicParity(1.0, ranks=(0.0, 0.5)), ""),
    (constraints.ROCParity(), "thresholds are chosen on the training rows; give thresholds"),
    (constraints.ROCParity(thresholds=[0.0]), ""),
    (constraints.MinorityRate(reference=np.zeros((2, 1))), "reference rows"),
    (constraints.MinorityRate(), ""),
]


@pytest.mark.parametrize(("constraint", "why"), NOT_MEASURED)
def test_why_a_constraint_cannot_be_measured_elsewhere(constraint, why):
    assert why in constraint.bound_to_training_rows
    assert bool(constraint.bound_to_training_rows) == bool(why)
    found = assess(constraint, rows(), 0.95)
    assert np.isnan(found.on_predictions) == bool(why) == (found.state == "not measured")


def test_a_new_constraint_needs_its_class_only():
    class Precision(constraints.DemographicParity):
        """A class of its own is reported with what it says of itself."""

        rates_compared = ("accuracy",)

    assert Precision().rates_compared == ("accuracy",) and not Precision().cannot_be_tested
    resolved = constraints.resolve_constraints(Precision(), kappa=0.1)
    assert isinstance(resolved[0], constraints.Constraint)


N = 240
OWN = {  # what each attribute would otherwise choose on its own, which reports do not measure
    "roc_parity": constraints.ROCParity(thresholds=[-1.0, 0.0, 1.0]),
    "partial_dp": constraints.PartialDemographicParity(0.3, ranks=(0.1, 0.6)),
    "weak_partial_dp": constraints.WeakPartialDemographicParity(ranks=(0.1, 0.6)),
}
NAMES = sorted(set(constraints.CONSTRAINTS) - {"query_parity", "churn"})
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
GROUPS = pd.DataFrame({"a": RNG.choice(["x", "y"], N), "b": RNG.choice(["u", "v"], N)})
Y = (X.sum(axis=1) + (GROUPS["a"] == "x") + RNG.logistic(size=N) > 0.5).astype(int)
GROUPS = GROUPS.apply(lambda names: names.where(RNG.random(N) > 0.2, None))
X[GROUPS["a"].isna()] += 0.5


@pytest.mark.parametrize("groups_missing", ["own_group", "ignore_in_constraint"])
@pytest.mark.parametrize("combine", ["intersection", "marginal"])
@pytest.mark.parametrize("name", NAMES)
def test_the_report_on_the_training_rows_is_the_fit(name, combine, groups_missing):
    constraint = OWN.get(name, name) if combine == "marginal" else name
    if name == "minority_rate" and combine == "marginal":
        constraint = constraints.MinorityRate(minority="a=x")
    options = {"combine": combine, "groups_missing": groups_missing, "max_iter": 50}
    clf = FairLogisticClassifier(constraint, random_state=0, **options)
    quietly(clf.fit, X, Y, sensitive_features=GROUPS)
    found = quietly(fairness_report, clf, X, Y, GROUPS).to_frame("constraints").iloc[0]
    assert found["decisions"] == pytest.approx(clf.decision_gap_, abs=1e-9)
    if name != "partial_dp":  # its thresholds are variables of the fit
        assert found["scores"] == pytest.approx(clf.gap_, abs=1e-7)


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_was_chosen_in_fit_is_measured_on_other_rows(name):
    groups, later = GROUPS["a"].fillna("x"), slice(120, None)
    clf = FairLogisticClassifier(name, kappa=0.1, random_state=0, max_iter=50)
    quietly(clf.fit, X[:120], Y[:120], sensitive_features=groups[:120])
    report = quietly(fairness_report, clf, X[later], Y[later], groups[later])
    found = report.to_frame("constraints").iloc[0]
    (chosen,) = clf.constraint_choices_
    bound = constraints.CONSTRAINTS[name](0.1, **chosen)
    term = bound.bind(2.0 * Y[later] - 1.0, groups[later].to_numpy(), np.ones(120)).zero_one()
    assert chosen
    assert found["decisions"] == pytest.approx(term.gap(clf.decision_function(X[later])).max())
