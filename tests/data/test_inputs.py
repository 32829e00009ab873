"""Features, labels, groups and weights that cannot be used: each error names the argument."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose
from sklearn.utils.sparsefuncs import mean_variance_axis

import fairconstrained as fc

N = 200
X, Y, GROUPS = fc.make_biased_classification(N, 4, gap=0.4, random_state=0)
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES)
POLARS = pl.DataFrame(X, schema=NAMES)
DAYS = [datetime.datetime(2000, 1, 1) + datetime.timedelta(k) for k in range(N)]


def fit(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    clf = fc.FairLogisticClassifier(**options)
    return clf.fit(X, y, sample_weight, sensitive_features=groups)


MODEL = fit()
SMALL, SEVERAL = fit(X * 0.01), fc.NeymanPearsonClassifier().fit(X * 0.01, Y)
OTHER = fc.NeymanPearsonClassifier()
FAR = np.array([[1.0, 0.0, 0.0, 0.0], [1e308, -1e308, 1e308, 1e308]])


def with_value(value):
    changed = X.copy()
    changed[3, 2] = value
    return changed


def unlabelled(value):
    return pd.Series(Y, dtype=object).where(np.arange(N) > 4, value)


def masked(values, rows=3):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[:rows] = True
    return np.ma.masked_array(values, mask)


TOO_LARGE = "X has values that are too large to be squared in the column {} "
FAR_ROWS = r"X has values that are too large in 1 of 2 rows .*1"
NO_LABELS = r"y has missing values .* in 5 of 200 rows"
TYPES = "y has labels of several types"
SQUARED = {
    "array": (lambda: fit(with_value(1e300)), TOO_LARGE.format(2)),
    "frame": (lambda: fit(pd.DataFrame(with_value(1e300), columns=NAMES)), TOO_LARGE.format("'c'")),
    "polars": (lambda: fit(pl.DataFrame(with_value(1e300), NAMES)), TOO_LARGE.format("'c'")),
    "sparse": (lambda: fit(sp.csr_array(with_value(1e300))), TOO_LARGE.format(2)),
    "several columns": (lambda: fit(X * 1e200), "in the columns 0, 1, 2, 3 "),
    "too small": (
        lambda: fit(X * np.array([1.0, 1e-160, 1.0, 1.0])),
        "too small to be squared in the column 1 ",
    ),
    "Neyman-Pearson": (lambda: OTHER.fit(with_value(1e200), Y), TOO_LARGE.format(2)),
    "predict": (lambda: SMALL.predict(FAR), FAR_ROWS),
    "predict of Neyman-Pearson": (lambda: SEVERAL.predict(FAR), FAR_ROWS),
    "large weights": (lambda: fit(sample_weight=np.full(N, 1e200)), "sample_weight is too large"),
    "small weights": (lambda: fit(sample_weight=np.full(N, 1e-200)), "sample_weight is too small"),
}
KINDS = {
    "lazy X": (lambda: fit(POLARS.lazy()), r"X is a LazyFrame.*X.collect\(\)"),
    "lazy groups": (
        lambda: fit(groups=pl.DataFrame({"sex": GROUPS}).lazy()),
        "sensitive_features is a LazyFrame",
    ),
    "dates of pandas": (
        lambda: fit(FRAME.assign(born=DAYS)),
        "X has dates or times in the column 'born': convert",
    ),
    "dates of polars": (
        lambda: fit(POLARS.with_columns(born=pl.Series(DAYS))),
        "X has dates or times in the column 'born': convert",
    ),
    "names": (lambda: MODEL.predict(FRAME.set_axis(list("aabb"), axis=1)), "X .*'a', 'b': leave"),
    "text": (lambda: fit(FRAME.assign(town="here")), "numbers in the column 'town'.*OneHotEncoder"),
    "name of groups": (lambda: fit(groups="grp"), "sensitive_features .*'grp'.*sensitive_columns"),
    "name of weights": (
        lambda: fit(sample_weight="balanced"),
        "sample_weight .*'balanced'.*compute_sample_weight",
    ),
    "name of labels": (lambda: fit(y="label"), "y must hold .*'label'"),
    "labels nan": (lambda: fit(y=unlabelled(np.nan)), NO_LABELS),
    "labels of Neyman-Pearson": (lambda: OTHER.fit(X, unlabelled(None)), NO_LABELS),
    "array of types": (lambda: fit(y=np.array([0, "yes"] * 100, dtype=object)), TYPES),
    "masked X": (lambda: fit(masked(X)), "^X is a masked array in which 12 of 800 entries"),
    "masked rows": (lambda: MODEL.predict(masked(X)), "^X is a masked array"),
    "masked y": (lambda: fit(y=masked(Y)), "^y is a masked array in which 3 of 200 entries"),
    "masked weights": (
        lambda: fit(sample_weight=masked(np.ones(N))),
        "^sample_weight is a masked array in which 3 of 200",
    ),
    "masked groups": (
        lambda: fit(groups=masked(GROUPS)),
        "sensitive_features has missing values in 3 of",
    ),
}
CASES = SQUARED | KINDS


def test_features_that_are_not_checked_end_the_fit():
    X = with_value(np.nan)
    with sklearn.config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        fit(X)


class Undefined(fc.functions.Sigmoid):
    def value(self, t):
        return np.full_like(t, np.nan)


@pytest.mark.parametrize("solver", ["auto", "augmented-lagrangian", "ipc"])
def test_a_surrogate_that_returns_nan_ends_the_fit(solver):
    with pytest.raises(ValueError, match="a constraint is not a number"):
        fit(surrogate=Undefined(), solver=solver)


@pytest.mark.cases(len(CASES))
@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.cases(8)
@pytest.mark.parametrize("scale", [1e-130, 1e-100, 1e100, 1e130])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_other_scales_change_nothing(make, scale):
    units = np.array([1.0, scale, 1.0, 1.0])
    clf = fit(make(X * units))
    assert clf.objective_ == pytest.approx(MODEL.objective_, rel=1e-4)
    assert_allclose(clf.coef_ * units, MODEL.coef_, atol=1e-3)


def test_constant_columns_of_a_sparse_matrix():
    """Rounding makes some of their variances slightly negative, which is nothing to warn of."""
    rng = np.random.default_rng(0)
    constant = np.tile(rng.uniform(0.1, 1e3, 40), (N, 1))
    weight = rng.uniform(0.1, 3.0, N)
    _, variance = mean_variance_axis(sp.csr_matrix(constant), axis=0, weights=weight)
    assert variance.min() < 0.0
    clf = fit(sp.csr_array(np.column_stack([X, constant])), sample_weight=weight)
    assert np.isfinite(clf.coef_).all() and np.isfinite(clf.feature_scale_).all()


MANY_GROUPS = [
    (X[:, 0].argsort() // 2 / 7, r"100 groups of 200 rows, 2\.0 rows.*pd\.cut"),
    ([f"p{k // 4}" for k in range(N)], r"50 groups of 200 rows, 4\.0 .*merge groups"),
    (np.column_stack([np.arange(N) % 5, np.arange(N) // 10]), r"pd\.cut"),
]


@pytest.mark.parametrize(("groups", "message"), MANY_GROUPS)
def test_many_groups_warn(groups, message):
    with pytest.warns(fc.InputWarning, match=message):
        fit(groups=groups, kappa=1.0, max_iter=1, tol=10.0)


PATH = fc.fairness_path(fc.FairLogisticClassifier(), X, Y, sensitive_features=GROUPS, n_kappas=3)
POINTS = [
    *(((k,), {}, rf"index must be .* integer in \[-3, 2\].*{k!r}") for k in (0.05, 99, 3, -4)),
    *(((k,), {}, "index must be .*kappa=tolerance") for k in ("0", True)),
    ((), {}, "takes the position of a point"),
    ((), {"index": 1, "kappa": 0.1}, "takes the position of a point"),
    *(((), {"kappa": k}, "kappa must be a number") for k in ("0.1", True)),
    *(((), {"kappa": k}, "below the tolerances") for k in (np.nan, -1.0, 0.0)),
]


@pytest.mark.cases(len(POINTS))
@pytest.mark.parametrize(("args", "options", "message"), POINTS)
def test_points_of_a_path(args, options, message):
    with pytest.raises(ValueError, match=message):
        PATH.estimator_at(*args, **options)
    assert PATH.estimator_at(np.int64(-3)) is PATH.estimator_at(0)
