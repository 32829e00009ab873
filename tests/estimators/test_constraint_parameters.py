"""Parameters of constraints by name (``constraint__ratio``), however the constraint is given."""

import pytest
from sklearn.base import clone

import fairconstrained as fc
from fairconstrained.constraints import CONSTRAINTS, BalancedRate

FREE = fc.FairLogisticClassifier(None)
X, Y, GROUPS = fc.make_biased_classification(400, 3, gap=0.5, random_state=0)


def fitted(*args, **options):
    return fc.FairLogisticClassifier(*args, **options).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_parameters_of_all_constraints(name):
    clf = fc.FairLogisticClassifier(name)
    nested = {
        key.removeprefix("constraint__"): value
        for key, value in clf.get_params().items()
        if key.startswith("constraint__")
    }
    assert nested == CONSTRAINTS[name]().get_params()
    assert CONSTRAINTS[name]().tolerance in nested


def test_lists_have_nested_parameters():
    clf = fc.FairLogisticClassifier(["demographic_parity", fc.EqualizedOdds(0.2)])
    params = clf.get_params()
    assert params["constraint__0"] == "demographic_parity"
    assert params["constraint__0__kappa"] is None and params["constraint__1__kappa"] == 0.2
    assert not [name for name in clf.get_params(deep=False) if "__" in name]


def test_setting_parameters_leaves_the_list_that_was_given():
    given = ["demographic_parity", "equalized_odds"]
    clf = fc.FairLogisticClassifier(given)
    clf.set_params(constraint__0__kappa=0.1, constraint__1=fc.DisparateImpact(0.5))
    assert given == ["demographic_parity", "equalized_odds"]
    assert clf.constraint[0].kappa == 0.1 and clf.constraint[1].ratio == 0.5
    copied = clone(clf)
    assert copied.constraint is not clf.constraint
    assert copied.constraint[0].kappa == 0.1 and copied.constraint[0] is not clf.constraint[0]


@pytest.mark.parametrize("estimator", [fc.FairLogisticClassifier([]), fc.FairThresholds(FREE, ())])
def test_an_empty_list_is_an_error(estimator):
    with pytest.raises(ValueError, match=r"constraint=.* names no constraint.*pass None"):
        estimator.fit(X, Y, sensitive_features=GROUPS)


INVALID_PARAMETERS = [
    ("disparate_impact", "constraint__kappa", "Invalid parameter .kappa. for Disparate"),
    (None, "constraint__ratio", "constraint=None is not a constraint"),
    ("parity", "constraint__ratio", "constraint='parity' is not a constraint"),
    (["demographic_parity"], "constraint__1__kappa", "constraint is a list of 1"),
    (["demographic_parity"], "constraint__kappa", "constraint is a list of 1"),
    (["demographic_parity"], "constraint__0__c", "Invalid parameter .c. for Demographic"),
    ("disparate_impact", "ratio", "Invalid parameter 'ratio'"),
]


@pytest.mark.parametrize(("constraint", "name", "said"), INVALID_PARAMETERS)
def test_invalid_parameters(constraint, name, said):
    with pytest.raises(ValueError, match=said):
        fc.FairLogisticClassifier(constraint).set_params(**{name: 0.1})


WITH_THEIR_OWN = [
    ("disparate_impact", "constraint__ratio"),
    ("demographic_parity", "goal='fairness'"),
    ("minority_rate", "constraint__c"),
    (fc.DemographicParity(0.2), "constraint__kappa"),
    (fc.DemographicParity(ratio=0.8), "constraint__ratio"),
    (BalancedRate(1.2), "constraint__r"),
    (["disparate_impact", fc.DemographicParity(0.2)], "constraint__0__ratio"),
]


@pytest.mark.cases(7)
@pytest.mark.parametrize(("constraint", "own"), WITH_THEIR_OWN, ids=repr)
def test_an_unused_kappa_warns(constraint, own):
    with pytest.warns(fc.InputWarning, match=f"kappa=0.2 is not used: .*{own}"):
        fitted(constraint, kappa=0.2, goal="fairness" if "goal" in own else "accuracy")


WITHOUT_WARNING = ["disparate_impact", fc.DemographicParity(0.2), None, BalancedRate(1.2)]


@pytest.mark.parametrize("constraint", WITHOUT_WARNING, ids=repr)
def test_the_default_kappa_and_none_do_not_warn(constraint):
    fitted(constraint)
    fitted(constraint, kappa=None)
