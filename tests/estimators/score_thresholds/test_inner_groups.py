"""The classifier inside FairThresholds, when it is one of this library's."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained import FairLogisticClassifier, FairThresholds, make_biased_classification

X, Y, CODES = make_biased_classification(400, 4, gap=0.3, random_state=0)
SEX = pd.Series(np.where(CODES == 1, "m", "f"))
TABLE = pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)


@pytest.mark.parametrize("groups_missing", ["own_group", "ignore_in_constraint"])
def test_a_classifier_without_a_constraint_needs_no_groups(groups_missing):
    missing = SEX.mask(np.arange(400) % 7 == 0)
    options = {"per_group": True, "groups_missing": groups_missing, "kappa": 0.1}
    clf = FairThresholds(FairLogisticClassifier(None), **options)
    clf.fit(X, Y, sensitive_features=missing)
    assert clf.decision_search_.met
    assert clf.decision_gap_ <= 0.1


def test_a_classifier_with_a_constraint_gets_the_groups():
    clf = FairThresholds(FairLogisticClassifier(kappa=0.05), kappa=0.1)
    clf.fit(X, Y, sensitive_features=SEX)
    assert clf.estimator_.groups_.tolist() == ["f", "m"]


def test_columns_that_are_taken_out_of_x_are_named():
    inner = FairLogisticClassifier(None, sensitive_columns=["sex"])
    clf = FairThresholds(inner, sensitive_columns="sex", kappa=0.1)
    with pytest.raises(ValueError, match=r"taken out of X.*use_sensitive=True"):
        clf.fit(TABLE, Y)
    clf.set_params(use_sensitive=True).fit(TABLE, Y)
    assert clf.decision_gap_ <= 0.1
