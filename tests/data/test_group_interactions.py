"""group_interactions=True: coefficients of their own for every group, read from columns of X."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import (
    FairLogisticClassifier,
    VacuousConstraintWarning,
    make_biased_classification,
)
from fairconstrained.functions.losses import Logistic


@pytest.fixture(scope="module")
def table():
    X, y, groups = make_biased_classification(600, 4, n_groups=3, gap=0.4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(1, "town", np.array(["Ulm", "Bonn", "Kiel"])[groups])
    flipped = np.where(groups == 1, -frame["c"], frame["c"])  # what a tells differs between groups
    return frame, (y + (flipped > 1.0) > 0).astype(int)


def classifier(**options):
    return FairLogisticClassifier(
        **{"sensitive_columns": ["town"], "group_interactions": True, **options}
    )


def test_every_group_has_a_row_of_coefficients(table):
    X, y = table
    fit = classifier().fit(X, y)
    assert fit.coef_.shape == (3, 5) and fit.intercept_.shape == (3,)
    assert_array_equal(fit.groups_, ["Bonn", "Kiel", "Ulm"])
    assert np.all(fit.coef_[:, 1] == 0.0), "the column itself is not a feature"
    numbers = X.drop(columns="town").to_numpy()
    for k, town in enumerate(fit.groups_):
        rows = (X["town"] == town).to_numpy()
        expected = numbers[rows] @ np.delete(fit.coef_[k], 1) + fit.intercept_[k]
        assert_allclose(fit.decision_function(X)[rows], expected)
    assert fit.result_.converged and fit.violation_ <= 1e-4


def test_the_objective_is_that_of_the_expanded_features(table):
    """(x, z, z x) written out by hand, without a constraint and with no penalty to speak of."""
    X, y = table
    fit = classifier(constraint=None, alpha=1e-9).fit(X, y)
    numbers = X.drop(columns="town").to_numpy()
    z = np.column_stack([X["town"] == town for town in ("Kiel", "Ulm")]).astype(float)
    crossed = np.hstack([numbers, z, *(z[:, [k]] * numbers for k in (0, 1))])
    plain = FairLogisticClassifier(None, alpha=1e-9).fit(crossed, y)
    assert_allclose(fit.objective_, plain.objective_, rtol=1e-4)
    margins = (2.0 * y - 1.0) * fit.decision_function(X)
    assert_allclose(fit.objective_, Logistic().value(margins).mean(), rtol=1e-5)
    assert fit.objective_ < 0.98 * FairLogisticClassifier(None).fit(numbers, y).objective_


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_dense_and_sparse_agree(table, make):
    X, y = table
    numeric = X.assign(town=X["town"].map({"Ulm": 0.0, "Bonn": 1.0, "Kiel": 2.0}))
    frame, rows = classifier().fit(numeric, y), make(numeric.to_numpy())
    other = classifier(sensitive_columns=[1]).fit(rows, y)
    assert_allclose(other.coef_, frame.coef_, atol=1e-8)
    assert_allclose(other.decision_function(rows), frame.decision_function(numeric), atol=1e-8)
    assert np.any(classifier(use_sensitive=True).fit(numeric, y).coef_[:, 1])


def test_warm_start(table):
    X, y = table
    fit = classifier(warm_start=True).fit(X, y)
    cold = fit.result_.data_passes
    before = fit.coef_.copy()
    fit.fit(X, y)
    assert fit.result_.data_passes < 0.6 * cold
    assert_allclose(fit.coef_, before, atol=1e-2)
    fit.set_params(group_interactions=False).fit(X, y)  # nothing to start from: another shape
    assert fit.coef_.shape == (1, 5)


def test_unknown_groups_raise(table):
    X, y = table
    for towns in (["Bonn", "Kiel"], ["Ulm"]):
        rows = X["town"].isin(towns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousConstraintWarning)  # of one group
            fit = classifier().fit(X[rows], y[rows])
        assert fit.coef_.shape == (len(towns), 5)
        with pytest.raises(ValueError, match=rf"which no row had in fit.*\{towns}"):
            fit.predict(X)


MISTAKES = {
    "several groups": ({"combine": "marginal"}, "group_interactions=True.*combine='marginal'"),
    "not columns": ({"sensitive_columns": None}, "group_interactions=True.*sensitive_columns"),
    "not a switch": (
        {"group_interactions": "yes"},
        "'group_interactions' parameter .*'bool'.*'yes'",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_reported(table, case):
    options, message = MISTAKES[case]
    with pytest.raises(ValueError, match=message):
        classifier(**options).fit(table[0], table[1])
    assert clone(classifier(**options)).get_params()["group_interactions"] is not False
