"""FairBoostingClassifier: messages, categories, and the optional dependency."""

import sys

import numpy as np
import pandas as pd
import pytest
from _support.boosting import fitted, rows, small
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairBoostingClassifier

DATA = X, Y, GROUPS = rows()


@pytest.fixture(scope="module")
def model():
    return fitted(data=DATA, kappa=0.03)


class TestMessages:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"lightgbm_params": {"boosting": "dart"}}, "DART"),
            ({"lightgbm_params": {"boosting_type": "rf"}}, "random forests"),
            ({"lightgbm_params": {"objective": "binary"}}, "must not contain 'objective'"),
            ({"lightgbm_params": {"app": "binary"}}, "must not contain 'app'"),
            ({"lightgbm_params": {"lambda_l2": 1.0}}, "it is the parameter reg_lambda of Fair"),
            ({"lightgbm_params": {"linear_tree": True}}, "constant values"),
            (
                {"lightgbm_params": {"monotone_constraints": [1] * 5}},
                "it is the parameter monotone_constraints",
            ),
            (
                {"lightgbm_params": {"monotonic_cst": [1] * 5}},
                "it is the parameter monotone_constraints",
            ),
            ({"lightgbm_params": {"path_smoth": 5}}, "Did you mean 'path_smooth' or"),
            ({"lightgbm_params": {"lambda_l3": 5}}, "'lambda_l2'"),
            ({"categorical_features": ["town"]}, "X has no column 'town'"),
            ({"categorical_features": [7]}, "X has no column 7"),
            ({"categorical_features": [True]}, "mask of 1 columns; X has 5"),
            ({"categorical_features": [0]}, "integers from 0"),
        ],
    )
    def test_bad_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            fitted(data=DATA, **options)

    def test_what_is_set_anyway_may_be_given(self):
        one = fitted(data=DATA, n_estimators=3)
        given = {"verbose": -1, "deterministic": True, "boosting": "gbdt"}
        other = fitted(data=DATA, n_estimators=3, lightgbm_params=given)
        assert_array_equal(one.decision_function(DATA[0]), other.decision_function(DATA[0]))


class TestCategories:
    def test_a_category_matters_natively(self):
        random = np.random.default_rng(0)
        codes, groups = random.integers(0, 12, 3000), random.integers(0, 2, 3000)
        y = (np.isin(codes, [1, 4, 7, 10]) ^ (random.random(3000) < 0.1)).astype(int)
        table = pd.DataFrame({"town": pd.Categorical.from_codes(codes, list("abcdefghijkl"))})
        options = {"n_estimators": 5, "num_leaves": 2, "reg_lambda": 0.0}
        clf = small(**options).fit(table, y, sensitive_features=groups)
        assert clf.score(table, y) > 0.85  # one split separates the categories
        by_position = small(**options, categorical_features=[0])
        by_position.fit(codes[:, None], y, sensitive_features=groups)
        assert_allclose(by_position.decision_function(codes[:, None]), clf.decision_function(table))

    def test_unknown_categories_are_missing_values(self):
        X = pd.DataFrame({"town": pd.Categorical(["a", "b", None] * 300), "x": np.arange(900.0)})
        y, groups = (X["town"] == "b").astype(int), np.arange(900) % 2
        clf = small().fit(X, y, sensitive_features=groups)
        other = X.assign(town=pd.Categorical(["z"] * 900))
        missing = X.assign(town=pd.Categorical([None] * 900, categories=["a", "b"]))
        assert_array_equal(clf.decision_function(other), clf.decision_function(missing))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r'pip install "fairconstrained\[boosting\]"'):
        FairBoostingClassifier().fit(DATA[0], DATA[1], sensitive_features=DATA[2])
