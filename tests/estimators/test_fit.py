"""A Fit: options and data as a problem, other tolerances, other rows, attributes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairconstrained import (
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    make_biased_classification,
)

X, Y, GROUPS = make_biased_classification(400, 4, gap=0.3, random_state=0)


REFITS = {
    "more classes": {"y": np.digitize(X[:, 0], [-0.5, 0.5]), "confidence": None},
    "no held-out rows": {"confidence": None},
}


@pytest.mark.parametrize("name", REFITS)
def test_a_second_fit_keeps_nothing_of_the_first(name):
    options = {"kappa": 0.3, "enforce": "decision", "confidence": 0.9, "random_state": 0}
    clf = FairLogisticClassifier(**options).fit(X, Y, sensitive_features=GROUPS)
    other = {"y": Y, **options, **REFITS[name]}
    y = other.pop("y")
    clf.set_params(**other).fit(X, y, sensitive_features=GROUPS)
    fresh = FairLogisticClassifier(**other).fit(X, y, sensitive_features=GROUPS)
    assert vars(clf).keys() == vars(fresh).keys()
    assert_array_equal(clf.predict(X), fresh.predict(X))


def test_a_second_search_keeps_nothing_of_the_first():
    search = FairLogisticClassifierCV(kappas=[0.3], max_gap=1.0, cv=2)
    search.fit(X, Y, sensitive_features=GROUPS)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    search.fit(X, y, sensitive_features=GROUPS)
    assert not {"pos_label_", "threshold_", "score_threshold_"} & vars(search).keys()
