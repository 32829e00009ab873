"""Missing values in sensitive features: an error, a group, or rows in no constraint."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import (
    DemographicParity,
    FairLogisticClassifier,
    MinorityRate,
    make_biased_classification,
)
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS

X, Y, CODES = make_biased_classification(600, 4, gap=0.3, random_state=0)
KNOWN = np.arange(len(Y)) % 5 > 0
SEX = pd.Series(np.where(CODES, "m", "f"), dtype=object).where(KNOWN, None)
AGE = pd.Series(np.where(np.arange(len(Y)) % 2, "old", "young"), dtype=object)
AGE[::7] = np.nan


def gap(clf, groups, scores=None):
    """Return the difference of the means of two groups, by default of probabilities."""
    scores = clf.predict_proba(X)[:, 1] if scores is None else scores
    means = pd.Series(scores).groupby(groups).mean()  # without the rows that have none
    return means.max() - means.min()


def fitted(groups, **options):
    return FairLogisticClassifier(**{"kappa": 0.02, "tol": 1e-6, **options}).fit(
        X, Y, sensitive_features=groups
    )


MESSAGES = {
    "raise": (SEX, {}, r"120 of 600 rows.*'own_group'.*'ignore_in_constr"),
    "all missing": (
        pd.Series([None] * len(Y)),
        {"groups_missing": "own_group"},
        "only missing values",
    ),
    "all ignored": (
        pd.Series([None] * len(Y)),
        {"groups_missing": "ignore_in_constraint"},
        "only missing values",
    ),
    "unknown": (
        SEX,
        {"groups_missing": "drop"},
        r"groups_missing.* among .*'own_group'.*Got 'drop'",
    ),
    "interactions": (
        None,
        {
            "groups_missing": "ignore_in_constraint",
            "group_interactions": True,
            "sensitive_columns": [3],
        },
        "some rows have none; use 'own_group'",
    ),
}


@pytest.mark.cases(len(MESSAGES))
@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    groups, options, message = MESSAGES[case]
    with pytest.raises(ValueError, match=message):
        fitted(groups, **options)


class TestIgnore:
    """Rows whose group is missing count in the loss, and in no constraint."""

    def test_the_constraint_is_on_the_known_rows(self):
        clf = fitted(SEX, groups_missing="ignore_in_constraint")
        assert_array_equal(clf.groups_, ["f", "m"])
        assert gap(clf, SEX) == pytest.approx(0.02, abs=1e-4)
        left_out = FairLogisticClassifier(kappa=0.02, tol=1e-6)
        left_out.fit(X[KNOWN], Y[KNOWN], sensitive_features=SEX[KNOWN])
        assert np.abs(clf.coef_ - left_out.coef_).max() > 1e-3
        loose = fitted(SEX, groups_missing="ignore_in_constraint", kappa=1.0)
        assert_allclose(loose.coef_, fitted(None, constraint=None).coef_, atol=1e-4)
        strict = fitted(SEX, groups_missing="ignore_in_constraint", kappa=0.1, enforce="decision")
        assert gap(strict, SEX, strict.predict(X)) <= 0.1

    @pytest.mark.parametrize("name", sorted(CLASSIFIER_CONSTRAINTS))
    def test_is_the_term_of_the_known_rows(self, name):
        options = {"kappa": 0.3, "groups_missing": "ignore_in_constraint", "max_iter": 2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = FairLogisticClassifier(name, **options).fit(X, Y, sensitive_features=SEX)
        assert np.isfinite(clf.gap_)
        if name not in ("roc_parity", "partial_dp", "weak_partial_dp"):  # theirs are in the fit
            made = CLASSIFIER_CONSTRAINTS[name]().with_defaults(
                kappa=0.3, surrogate="sigmoid", loss="logistic"
            )
            term = made.bind(np.where(Y[KNOWN] == 1, 1.0, -1.0), SEX[KNOWN], np.ones(KNOWN.sum()))
            gap = term.gap(clf.decision_function(X)[KNOWN]).max(initial=0.0)
            assert clf.gap_ == pytest.approx(gap)

    def test_rows_of_a_constraint_s_own(self):
        rule = MinorityRate(0.3, minority="f", reference=X, reference_groups=SEX)
        clf = FairLogisticClassifier(rule, groups_missing="ignore_in_constraint").fit(X, Y)
        assert clf.violation_ <= 1e-4


@pytest.mark.parametrize("dtype", [float, "Int64"])
@pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
def test_whole_numbers_have_the_names_that_they_have_without_missing_values(missing, dtype):
    codes = pd.Series(CODES + 1).where(KNOWN).astype(dtype)
    clf = fitted(codes, groups_missing=missing, constraint=DemographicParity(against="1"))
    assert [str(name) for name in clf.groups_][:2] == ["1", "2"]
    assert clf.bound_met_
    # so that a fold by chance without missing values has them as well
    assert list(map(str, fitted(CODES + 1.0).groups_)) == ["1", "2"]
