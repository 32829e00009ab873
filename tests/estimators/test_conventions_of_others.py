"""What estimators of scikit-learn and LightGBM have, ours have: kinds of X and of coefficients."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from _support.every_estimator import MODELS, arguments
from numpy.testing import assert_array_equal
from sklearn.base import clone

from fairconstrained import FairRanker, FairThresholds

LINEAR = [
    name
    for name, model in MODELS.items()
    if "logistic" in name or "hinge" in name or name in ("cv", "Neyman-Pearson")
]
OWN_FEATURES = [name for name, model in MODELS.items() if not isinstance(model, FairThresholds)]


def fitted(name, X=None):
    features, y, given = arguments(name)
    model = clone(MODELS[name])
    if name == "cv":
        model.set_params(max_gap=1.0)
    return model.fit(features if X is None else X, y, **given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.cases(2)
@pytest.mark.parametrize("fill", [np.nan, 1.0])
@pytest.mark.parametrize("name", OWN_FEATURES)
def test_sparse_frames_with_any_fill_value(name, fill):
    X = arguments(name)[0].round(1)
    X[:40, 0] = 0.0 if np.isnan(fill) else fill
    dense = pd.DataFrame(X).add_prefix("x")
    sparse = dense.astype(pd.SparseDtype(float, fill))
    expected, model = fitted(name, dense), fitted(name, sparse)
    assert_array_equal(model.predict(sparse), expected.predict(dense))
    assert_array_equal(model.predict(dense.iloc[:7]), expected.predict(sparse.iloc[:7]))


@pytest.mark.parametrize("name", LINEAR)
def test_coefficients_may_be_sparse(name):
    X, y, given = arguments(name)
    model = fitted(name)
    coef, scores = model.coef_.copy(), model.decision_function(X)
    assert model.sparsify() is model and sp.issparse(model.coef_)
    assert_array_equal(model.decision_function(X), scores)
    if hasattr(model, "to_sklearn"):
        plain = model.to_sklearn()
        assert_array_equal(plain.predict(X), model.predict(X))
    if hasattr(model, "warm_start"):
        warm = model.set_params(warm_start=True).fit(X, y, **given)
        assert isinstance(warm.coef_, np.ndarray)
    else:
        assert model.densify() is model
    model.sparsify().densify()
    assert isinstance(model.coef_, np.ndarray) and model.coef_.shape == coef.shape


def test_number_of_classes():
    assert not hasattr(clone(MODELS["boosting"]), "n_classes_")
    assert fitted("boosting").n_classes_ == 2
    assert not hasattr(FairRanker(), "n_classes_")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OWN_FEATURES)
def test_fit_and_predict_take_tensors_under_array_api_dispatch(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y, given = arguments(name)
    expected = fitted(name).predict(X)
    with sklearn.config_context(array_api_dispatch=True):  # which SCIPY_ARRAY_API allows
        rows, labels = torch.tensor(X), torch.tensor(y)
        given = {key: torch.tensor(value) for key, value in given.items()}
        found = clone(MODELS[name]).fit(rows, labels, **given).predict(rows)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected)
