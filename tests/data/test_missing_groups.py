"""Missing values in sensitive features: an error, a group, or rows in no constraint."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, MinorityRate, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData

X, Y, CODES = make_biased_classification(600, 4, gap=0.3, random_state=0)
KNOWN = np.arange(len(Y)) % 5 > 0
SEX = pd.Series(np.where(CODES, "m", "f"), dtype=object).where(KNOWN, None)
AGE = pd.Series(np.where(np.arange(len(Y)) % 2, "old", "young"), dtype=object)
AGE[::7] = np.nan
VALUES = {"None": None, "nan": np.nan, "NA": pd.NA, "NaT": pd.NaT}


def rates(clf, groups, kinds, rows=None):
    probability = clf.predict_proba(X)[:, 1]
    rows = np.ones(len(Y), dtype=bool) if rows is None else rows
    return [probability[rows & np.asarray(groups == kind)].mean() for kind in kinds]


def fitted(groups, **options):
    return FairLogisticClassifier(**{"kappa": 0.02, "tol": 1e-6, **options}).fit(
        X, Y, sensitive_features=groups
    )


class TestEncoding:
    @pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
    def test_every_kind_of_missing(self, value):
        values = pd.Series(["f", value, "m", "f"], dtype=object)
        own = Groups.encode(values, missing="own_group")
        assert own.names.tolist() == ["f", "m", "missing"] and own.codes.tolist() == [0, 2, 1, 0]
        ignored = Groups.encode(values, missing="ignore_in_constraint")
        assert ignored.names.tolist() == ["f", "m"] and ignored.codes.tolist() == [0, -1, 1, 0]
        assert ignored.known.tolist() == [True, False, True, True]

    def test_numbers(self):
        own = Groups.encode(np.array([2.0, np.nan, 1.0]), missing="own_group")
        assert own.names.tolist() == [1.0, 2.0, "missing"] and own.codes.tolist() == [1, 2, 0]

    def test_several_columns(self):
        table = pd.DataFrame({"sex": ["f", None, "m"], "old": [True, False, None]})
        own = Groups.encode(table, missing="own_group")
        assert set(own.names.tolist()) == {("f", True), ("missing", False), ("m", "missing")}
        ignored = Groups.encode(table, missing="ignore_in_constraint")
        assert ignored.names.tolist() == [("f", True)] and ignored.codes.tolist() == [0, -1, -1]
        alone = Groups.encode(table, missing="ignore_in_constraint", combine="marginal")
        assert [one.known.tolist() for one in alone.separate] == [
            [True, False, True],
            [True, True, False],
        ]

    def test_take(self):
        groups = Groups.encode(["a", None, "b", "c"], missing="ignore_in_constraint")
        taken = groups.take(np.array([1, 3, 2]))
        assert taken.names.tolist() == ["b", "c"] and taken.codes.tolist() == [-1, 1, 0]


class TestMessages:
    def test_raise_names_the_options(self):
        with pytest.raises(ValueError, match=r"120 of 600 rows.*'own_group'.*'ignore_in_constr"):
            fitted(SEX)

    def test_a_group_named_missing_raises(self):
        with pytest.raises(ValueError, match=r"a group called 'missing'.*rename"):
            Groups.encode(["missing", None], missing="own_group")

    @pytest.mark.parametrize("missing", ["own_group", "ignore_in_constraint"])
    def test_all_missing(self, missing):
        with pytest.raises(ValueError, match="only missing values"):
            fitted(pd.Series([None] * len(Y)), groups_missing=missing)

    def test_unknown_option(self):
        with pytest.raises(ValueError, match=r"groups_missing.* among .*'own_group'.*Got 'drop'"):
            fitted(SEX, groups_missing="drop")

    def test_interactions_need_a_group(self):
        clf = FairLogisticClassifier(
            groups_missing="ignore_in_constraint", group_interactions=True, sensitive_columns=[4]
        )
        with pytest.raises(ValueError, match="some rows have none; use 'own_group'"):
            clf.fit(np.column_stack([X, CODES]), Y)


class TestOwnGroup:
    def test_is_the_same_as_a_name(self):
        clf = fitted(SEX, groups_missing="own_group")
        assert_array_equal(clf.groups_, ["f", "m", "missing"])
        assert_allclose(clf.coef_, fitted(SEX.fillna("missing")).coef_)

    def test_in_columns_of_X_with_interactions(self):
        table = pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)
        clf = FairLogisticClassifier(
            sensitive_columns=["sex"], groups_missing="own_group", group_interactions=True
        ).fit(table, Y)
        assert clf.coef_.shape == (3, 5) and clf.predict(table).shape == Y.shape


class TestIgnore:
    def test_bounds_the_known_rows(self):
        clf = fitted(SEX, groups_missing="ignore_in_constraint")
        assert_array_equal(clf.groups_, ["f", "m"])
        first, second = rates(clf, SEX, ["f", "m"])
        assert abs(first - second) == pytest.approx(0.02, abs=1e-4)

    def test_the_rows_count_in_the_loss(self):
        """As if the constraint were on other rows than the loss: here given by weights."""
        clf = fitted(SEX, groups_missing="ignore_in_constraint")
        left_out = FairLogisticClassifier(kappa=0.02, tol=1e-6).fit(
            X[KNOWN], Y[KNOWN], sensitive_features=SEX[KNOWN]
        )
        assert np.abs(clf.coef_ - left_out.coef_).max() > 1e-3

    def test_no_constraint_left_is_no_constraint(self):
        loose = fitted(SEX, groups_missing="ignore_in_constraint", kappa=1.0)
        assert_allclose(loose.coef_, fitted(None, constraint=None).coef_, atol=1e-4)

    def test_marginal(self):
        table = pd.DataFrame({"sex": SEX, "age": AGE})
        clf = fitted(table, groups_missing="ignore_in_constraint", combine="marginal")
        assert abs(np.subtract(*rates(clf, SEX, ["f", "m"]))) <= 0.02 + 1e-4
        assert abs(np.subtract(*rates(clf, AGE, ["old", "young"]))) <= 0.02 + 1e-4

    @pytest.mark.parametrize("name", sorted(CLASSIFIER_CONSTRAINTS))
    def test_is_the_term_of_the_known_rows(self, name):
        options = {"kappa": 0.3, "groups_missing": "ignore_in_constraint", "max_iter": 2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = FairLogisticClassifier(name, **options)
            clf.fit(X, Y, sensitive_features=SEX)
        assert np.isfinite(clf.gap_)
        if name not in ("roc_parity", "partial_dp", "weak_partial_dp"):  # theirs are in the fit
            made = CLASSIFIER_CONSTRAINTS[name]().with_defaults(
                kappa=0.3, surrogate="sigmoid", loss="logistic"
            )
            term = made.bind(np.where(Y[KNOWN] == 1, 1.0, -1.0), SEX[KNOWN], np.ones(KNOWN.sum()))
            gap = term.gap(clf.decision_function(X)[KNOWN]).max(initial=0.0)
            assert clf.gap_ == pytest.approx(gap)

    def test_enforced_on_decisions(self):
        clf = fitted(SEX, groups_missing="ignore_in_constraint", kappa=0.1, enforce="decision")
        decisions = pd.Series(clf.predict(X))
        assert abs(decisions[SEX == "f"].mean() - decisions[SEX == "m"].mean()) <= 0.1

    def test_rows_of_a_constraint_s_own(self):
        rule = MinorityRate(0.3, minority="f", reference=X, reference_groups=SEX)
        clf = FairLogisticClassifier(rule, groups_missing="ignore_in_constraint").fit(X, Y)
        assert clf.violation_ <= 1e-4

    def test_missing_groups_of_other_rows_have_no_code(self):
        clf = FairLogisticClassifier(groups_missing="ignore_in_constraint")
        data = TrainingData.check(clf, X, Y, SEX, None)
        assert not data.groups.known.all()
        _, groups = data.others(X[:5], SEX[:5], "groups")
        assert groups.codes[0] == -1
