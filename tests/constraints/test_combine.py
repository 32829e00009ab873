"""Several sensitive attributes: crossed, or each on its own; and rows that constraints bring."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fairconstrained import FairLogisticClassifier, constraints, make_biased_classification

# The helpers here set kappa for all constraints, also those with a tolerance of their own.
pytestmark = pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")


X, Y, CODES = make_biased_classification(400, 4, gap=0.5, random_state=0)
NOISE = np.random.default_rng(0).normal(size=len(Y))
GROUPS = pd.DataFrame({"sex": np.array(["f", "m"])[CODES], "old": X[:, 0] + NOISE > 0.0})


def fitted(X, y, groups=None, sample_weight=None, **options):
    options = {"kappa": 0.02, **options}
    return FairLogisticClassifier(**options).fit(X, y, sample_weight, sensitive_features=groups)


def test_every_attribute_is_fair_and_the_intersections_need_not_be():
    rates = fitted(X, Y, GROUPS, combine="marginal").predict_proba(X)[:, 1]
    for column in GROUPS:
        of_groups = pd.Series(rates).groupby(GROUPS[column].to_numpy()).mean()
        assert np.ptp(of_groups) == pytest.approx(0.02, abs=1e-3)
    of_cells = pd.Series(rates).groupby([GROUPS["sex"], GROUPS["old"]]).mean()
    assert np.ptp(of_cells) > 0.03


@pytest.mark.parametrize(
    "name", sorted(set(constraints.CLASSIFIER_CONSTRAINTS) - {"bounded_group_loss"})
)
def test_every_constraint_takes_it(name):
    options = {"minority": "sex=f"} if name == "minority_rate" else {}
    constraint = constraints.CLASSIFIER_CONSTRAINTS[name](**options)
    classifier = fitted(X, Y, GROUPS, constraint=constraint, combine="marginal", kappa=0.2)
    assert classifier.violation_ <= 1e-4
    assert len(classifier.groups_) == 4


OF_ONE_COLUMN = [
    constraints.DemographicParity(0.05),
    constraints.MinorityRate(0.48, minority="old=True"),
    constraints.IntersectionalLossParity(0.05),
    constraints.IntersectionalLossParity(0.05, membership="columns"),
]


@pytest.mark.cases(4)
@pytest.mark.parametrize("constraint", OF_ONE_COLUMN)
def test_a_missing_value_of_one_attribute_changes_no_other(constraint):
    table = GROUPS.assign(sex=GROUPS["sex"] == "f").astype(object)
    part = table.assign(sex=np.where(np.arange(400) % 3 > 0, table["sex"], None))
    options = {"combine": "marginal", "groups_missing": "ignore_in_constraint"}
    clf, w = FairLogisticClassifier(constraint, **options), np.linspace(-1.0, 1.0, 5)
    problems = (clf.bind(X, Y, None, groups).problem for groups in (part, table))
    found, expected = (problem.at(w).constraints for problem in problems)
    assert len(found) == len(expected)
    assert found[-1] == pytest.approx(expected[-1], abs=1e-12)  # of "old", which is complete
    if len(found) > 1:
        assert abs(found[0] - expected[0]) > 1e-4


# The rows that `MinorityRate` is about are read as X is.


def share(classifier, X, members):
    """Return the minority's share of the positive decisions, by probabilities."""
    rates = classifier.predict_proba(X)[:, 1]
    return rates[members].sum() / rates.sum()


def test_the_training_rows_are_the_reference_rows_by_default():
    sex = GROUPS["sex"]
    same = {"solver": "augmented-lagrangian"}  # there are no Hessians of two sets of rows
    default = fitted(X, Y, sex, constraint=constraints.MinorityRate(0.48, minority="f"), **same)
    rule = constraints.MinorityRate(0.48, minority="f", reference=X, reference_groups=sex)
    assert_allclose(default.coef_, fitted(X, Y, constraint=rule, **same).coef_, atol=1e-8)
    assert share(default, X, sex == "f") == pytest.approx(0.48, abs=1e-4)


OTHERS, SEX = X[250:], GROUPS["sex"].to_numpy()[250:]


WRONG_REFERENCES = [
    (OTHERS[:, :3], SEX, r"^reference: X has 3 features.*4"),
    (OTHERS, SEX[1:], "reference_groups has 149 rows, reference has 150"),
    (OTHERS, None, r"no groups: pass reference_groups.*sensitive_columns"),
    (None, SEX, "reference_groups are given without reference"),
    (None, None, "needs groups"),
    (OTHERS, np.where(SEX == "f", None, SEX), "reference_groups has missing values"),
]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("Z", "sex", "message"), WRONG_REFERENCES)
def test_reference_rows_and_groups_that_do_not_fit(Z, sex, message):
    given, groups = {"reference": Z, "reference_groups": sex}, Y[:250] if sex is SEX else None
    with pytest.raises(ValueError, match=message):
        fitted(X[:250], Y[:250], groups, constraint=constraints.MinorityRate(**given))
