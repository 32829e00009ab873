"""Features, labels, groups and weights that cannot be used: each error names the argument."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from fairconstrained import (
    FairLogisticClassifier,
    InputWarning,
    NeymanPearsonClassifier,
    fairness_path,
    make_biased_classification,
)
from fairconstrained.constraints import IntersectionalLossParity
from fairconstrained.domains import L2Ball

X, Y, GROUPS = make_biased_classification(200, 4, gap=0.4, random_state=0)
NAMES = list("abcd")


def fit(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    classifier = FairLogisticClassifier(**options)
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


def with_value(value, row=3, column=2):
    changed = X.copy()
    changed[row, column] = value
    return changed


FORMS = {
    "array": lambda X: X,
    "frame": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "sparse": sp.csr_array,
    "float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


class TestSizes:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("value", [1e300, -1e160, 1e154])
    def test_values_that_cannot_be_squared(self, form, value):
        value = np.sign(value) * 1e30 if form == "float32" else value
        name = "'c'" if form in ("frame", "polars") else "2"
        with pytest.raises(ValueError, match=f"X has values that are too large .* column {name} "):
            fit(FORMS[form](with_value(value)))

    @pytest.mark.parametrize("size", [1e-160, 1e-200, 1e-300])
    def test_columns_whose_squares_vanish(self, size):
        with pytest.raises(ValueError, match="too small to be squared in the column 1 "):
            fit(X * np.array([1.0, size, 1.0, 1.0]))

    def test_several_columns_are_named(self):
        with pytest.raises(ValueError, match="in the columns 0, 1, 2, 3 "):
            fit(X * 1e200)

    @pytest.mark.parametrize("scale", [1e-130, 1e-100, 1e100, 1e130])
    @pytest.mark.parametrize("form", ["array", "sparse"])
    def test_other_scales_change_nothing(self, form, scale):
        units = np.array([1.0, scale, 1.0, 1.0])
        model, reference = fit(FORMS[form](X * units)), fit(FORMS[form](X))
        assert model.objective_ == pytest.approx(reference.objective_, rel=1e-4)
        np.testing.assert_allclose(model.coef_ * units, reference.coef_, atol=1e-3)

    def test_with_a_domain(self):
        with pytest.raises(ValueError, match="too large to be squared in the column 2 "):
            fit(with_value(1e200), domain=L2Ball(1.0))

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    def test_rows_to_predict(self, method):
        """An overflow was a warning of NumPy and a score of infinity or nan."""
        rows = np.array([[1.0, 0.0, 0.0, 0.0], [1e308, -1e308, 1e308, 1e308]])
        model = fit(X * 0.01)
        with pytest.raises(ValueError, match=r"X has values that are too large in 1 of 2 rows .*1"):
            getattr(model, method)(rows)
        several = NeymanPearsonClassifier().fit(X * 0.01, Y)
        with pytest.raises(ValueError, match="X has values that are too large in 1 of 2 rows"):
            several.predict(rows)

    def test_of_the_columns_that_the_model_sees(self):
        frame = pd.DataFrame(X, columns=NAMES).assign(sex=np.where(GROUPS, 1e300, 1.0))
        assert fit(frame, groups=None, sensitive_columns=["sex"]).result_.converged

    def test_several_classes(self):
        with pytest.raises(ValueError, match="too large to be squared in the column 2 "):
            NeymanPearsonClassifier().fit(with_value(1e200), Y)

    def test_constant_columns_of_a_sparse_matrix(self):
        """Rounding makes some of their variances slightly negative, which is nothing to warn of."""
        rng = np.random.default_rng(0)
        constant = np.tile(rng.uniform(0.1, 1e3, 40), (len(X), 1))
        weight = rng.uniform(0.1, 3.0, len(X))
        _, variance = mean_variance_axis(sp.csr_matrix(constant), axis=0, weights=weight)
        assert variance.min() < 0.0
        rows = sp.csr_array(np.column_stack([X, constant]))
        model = fit(rows, sample_weight=weight)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.feature_scale_).all()

    @pytest.mark.parametrize("form", ["array", "float32"])
    @pytest.mark.parametrize("size", [1e-100, 1e100])
    def test_other_units_of_weights_change_nothing(self, form, size):
        model, reference = fit(FORMS[form](X), sample_weight=np.full(200, size)), fit(X)
        assert model.objective_ == pytest.approx(reference.objective_, rel=1e-4)

    @pytest.mark.parametrize("size", [1e200, 1e-200])
    def test_weights_that_cannot_be_squared(self, size):
        with pytest.raises(ValueError, match=r"sample_weight is too (large|small)"):
            fit(sample_weight=np.full(200, size))


class TestGroupSizes:
    def test_a_column_of_numbers_warns(self):
        with pytest.warns(InputWarning, match=r"100 groups of 200 rows, 2.0 rows.*pd.cut"):
            fit(groups=X[:, 0].argsort() // 2 / 7, kappa=1.0, max_iter=1, tol=10.0)

    def test_strings_and_several_columns(self):
        names = np.array([f"p{k // 4}" for k in range(200)])
        with pytest.warns(InputWarning, match=r"50 groups of 200 rows, 4.0 .*merge groups"):
            fit(groups=names, kappa=1.0, max_iter=1, tol=10.0)
        both = np.column_stack([np.arange(200) % 5, np.arange(200) // 10])
        with pytest.warns(InputWarning, match="pd.cut"):
            fit(groups=both, kappa=1.0, max_iter=1, tol=10.0)

    def test_enough_rows_are_silent(self):
        assert fit(groups=np.arange(200) % 20, kappa=1.0).result_.converged
        assert fit(X[:18], Y[:18], GROUPS[:18], kappa=1.0).result_.converged

    def test_thresholds_of_a_column_of_numbers_are_silent(self):
        rule = IntersectionalLossParity(0.5, membership="thresholds", thresholds=2, loss="logistic")
        assert fit(groups=X[:, 0], constraint=rule).result_.converged

    def test_without_a_constraint(self):
        assert fit(groups=X[:, 0], constraint=None).result_.converged


class TestKindsOfInput:
    def test_a_lazy_frame(self):
        frame = pl.DataFrame(X, schema=NAMES)
        with pytest.raises(ValueError, match=r"X is a LazyFrame.*X.collect\(\)"):
            fit(frame.lazy())
        with pytest.raises(ValueError, match=r"X is a LazyFrame"):
            fit(frame).predict(frame.lazy())
        with pytest.raises(ValueError, match=r"sensitive_features is a LazyFrame"):
            fit(groups=pl.DataFrame({"sex": GROUPS}).lazy())
        with pytest.raises(ValueError, match=r"y is a LazyFrame"):
            fit(y=pl.DataFrame({"y": Y}).lazy())

    @pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
    def test_dates_in_a_frame(self, library):
        days = [datetime.datetime(2000, 1, 1) + datetime.timedelta(k) for k in range(200)]
        columns = {**dict(zip(NAMES, X.T, strict=True)), "born": days}
        with pytest.raises(ValueError, match="X has dates or times in the column 'born': convert"):
            fit(library.DataFrame(columns))

    def test_other_dates(self):
        with pytest.raises(ValueError, match="X has dates or times in the column"):
            fit(np.zeros((200, 2), dtype="datetime64[D]"))
        objects = pd.DataFrame(X, columns=NAMES).assign(born=[datetime.date(2000, 1, 1)] * 200)
        with pytest.raises(TypeError, match=r"not numbers in the column 'born'.*dates"):
            fit(objects)

    def test_dates_among_the_sensitive_columns_only(self):
        frame = pd.DataFrame(X, columns=NAMES)
        frame["day"] = pd.to_datetime(np.where(GROUPS, "2000-01-01", "2000-01-02"))
        assert len(fit(frame, groups=None, sensitive_columns=["day"]).groups_) == 2

    def test_text(self):
        frame = pd.DataFrame(X, columns=NAMES).assign(town="here")
        with pytest.raises(ValueError, match=r"not numbers in the column 'town'.*OneHotEncoder"):
            fit(frame)

    def test_strings_for_rows(self):
        with pytest.raises(ValueError, match=r"sensitive_features .*'grp'.*sensitive_columns"):
            fit(groups="grp")
        with pytest.raises(ValueError, match=r"sample_weight .*'balanced'.*compute_sample_weight"):
            fit(sample_weight="balanced")
        with pytest.raises(ValueError, match=r"y must hold .*'label'"):
            fit(y="label")
        with pytest.raises(ValueError, match=r"X must hold .*'table.csv'"):
            fit("table.csv")

    @pytest.mark.parametrize("value", [np.nan, None, pd.NA])
    def test_missing_labels(self, value):
        labels = pd.Series(Y, dtype=object).where(np.arange(200) > 4, value)
        with pytest.raises(ValueError, match=r"y has missing values .* in 5 of 200 rows"):
            fit(y=labels)
        with pytest.raises(ValueError, match=r"y has missing values .* in 5 of 200 rows"):
            NeymanPearsonClassifier().fit(X, labels)

    def test_labels_of_several_types(self):
        with pytest.raises(ValueError, match="y has labels of several types"):
            fit(y=[0, "yes"] * 100)
        with pytest.raises(ValueError, match="y has labels of several types"):
            fit(y=np.array([0, "yes"] * 100, dtype=object))


@pytest.fixture(scope="module")
def path():
    return fairness_path(FairLogisticClassifier(), X, Y, sensitive_features=GROUPS, n_kappas=3)


class TestOtherArguments:
    @pytest.mark.parametrize("k", [0.05, 99, 3, -4, "0", True])
    def test_points_of_a_path(self, path, k):
        pattern = r"index must be .* integer in \[-3, 2\].*kappa=tolerance"
        with pytest.raises(ValueError, match=pattern) as found:
            path.estimator_at(k)
        assert repr(k) in str(found.value)
        assert path.estimator_at(np.int64(-3)) is path.estimator_at(0)

    @pytest.mark.parametrize("given", [{}, {"index": 1, "kappa": 0.1}])
    def test_a_point_has_a_position_or_a_tolerance(self, path, given):
        with pytest.raises(ValueError, match="takes the position of a point"):
            path.estimator_at(**given)

    @pytest.mark.parametrize("kappa", ["0.1", True, np.nan, -1.0, 0.0])
    def test_tolerances_of_points(self, path, kappa):
        with pytest.raises(ValueError, match=r"kappa must be a number|below the tolerances"):
            path.estimator_at(kappa=kappa)


def masked(values, rows=3):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[:rows] = True
    return np.ma.masked_array(values, mask)


class TestMaskedArrays:
    @pytest.mark.parametrize("sensitive_columns", [None, [0]])
    def test_masked_features(self, sensitive_columns):
        options = {"sensitive_columns": sensitive_columns}
        with pytest.raises(ValueError, match=r"^X is a masked array in which 12 of 800 entries"):
            fit(masked(X), groups=None if sensitive_columns else GROUPS, **options)
        with pytest.raises(ValueError, match=r"^X is a masked array"):
            fit().predict(masked(X))
        with pytest.raises(ValueError, match=r"^X is a masked array"):
            NeymanPearsonClassifier().fit(X, Y).predict(masked(X))

    def test_masked_labels(self):
        with pytest.raises(ValueError, match=r"^y is a masked array in which 3 of 200 entries"):
            fit(y=masked(Y))

    def test_masked_weights(self):
        with pytest.raises(ValueError, match=r"^sample_weight is a masked array in which 3 of 200"):
            fit(sample_weight=masked(np.ones(200)))

    def test_masked_groups_are_missing(self):
        with pytest.raises(ValueError, match="sensitive_features has missing values in 3 of 200"):
            fit(groups=masked(GROUPS))
        known = np.where(np.arange(200) < 3, np.nan, GROUPS)
        expected = fit(groups=known, groups_missing="ignore_in_constraint")
        found = fit(groups=masked(GROUPS), groups_missing="ignore_in_constraint")
        np.testing.assert_array_equal(found.coef_, expected.coef_)

    def test_arrays_without_masked_entries(self):
        found = fit(masked(X, 0), masked(Y, 0), masked(GROUPS, 0), masked(np.ones(200), 0))
        np.testing.assert_allclose(found.coef_, fit().coef_)
