"""Errors and warnings: each names the argument, what was found and what is valid."""

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from fairconstrained import (
    ConvergenceWarning,
    FairLogisticClassifier,
    FairRanker,
    InfeasibleConstraintWarning,
    VacuousConstraintWarning,
    make_biased_classification,
)
from fairconstrained.domains import Box
from fairconstrained.objectives import PairwiseLoss

X, Y, GROUPS = make_biased_classification(200, 4, gap=0.4, random_state=0)
QUERY = np.arange(200) // 50


@contextmanager
def raises(error, *words):
    """Expect this class of error or that of parameters, its message holding all the words."""
    with pytest.raises(error) as found:
        yield
    assert found.type in (error, InvalidParameterError)
    message = str(found.value)
    assert [word for word in words if word not in message] == [], message


def fit(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    classifier = FairLogisticClassifier(**options)
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


def test_labels_in_a_column_of_objects():
    with raises(ValueError, "y has the dtype object", "such as True", "`y.astype(int)`"):
        fit(y=(Y == 1).astype(object))


def test_missing_queries():
    with raises(ValueError, "query has missing values", "in 1 of 200 rows", "needs a value"):
        query = np.append(np.nan, QUERY[1:])
        FairRanker().fit(X, Y, query=query, sensitive_features=GROUPS)


def test_groups_may_be_infinite():
    assert fit(groups=np.where(GROUPS, np.inf, 1.0)).groups_.tolist() == [1.0, np.inf]


def test_one_group_only_warns():
    with pytest.warns(VacuousConstraintWarning, match="fewer than two groups.*found: 0"):
        alone = fit(groups=np.zeros(200, dtype=int))
    free = fit(constraint=None)
    np.testing.assert_allclose(alone.coef_, free.coef_, atol=1e-6)
    assert alone.result_.converged and alone.violation_ == 0.0


@pytest.mark.parametrize("constraint", ["equalized_odds", "intra_group_auc"])
def test_cells_without_rows_have_the_names_of_groups_and_labels(constraint):
    groups = np.where((Y == 0) & (np.arange(200) % 4 == 0), "c", np.array(["a", "b"])[GROUPS])
    with pytest.warns(VacuousConstraintWarning) as found:
        clf = fit(y=np.where(Y, "yes", "no"), groups=groups, constraint=constraint)
    said = " ".join(str(one.message) for one in found)
    assert "'group c | label yes' has no rows" in said and "label +1" not in said
    assert all(one.filename == __file__ for one in found)
    assert clf.result_.converged
    # of rates two groups have positives, and three have negatives
    assert len(clf.multipliers_) == (8 if constraint == "equalized_odds" else 2)


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning) as found:
        classifier = fit(kappa=1.0, max_iter=1, tol=1e-8)
    (message,) = (str(one.message) for one in found)
    assert message == classifier.result_.message and found[0].filename == __file__
    for word in ("iteration limit", "1 iterations", "objective", "KKT residual", "max_iter"):
        assert word in message
    assert classifier.predict(X).shape == (200,)


def test_no_fair_model_warns():
    opposite = np.where(GROUPS > 0, 1.0, -1.0)[:, None]
    with pytest.warns(InfeasibleConstraintWarning, match="least violation is 0.4") as found:
        classifier = fit(opposite, domain=Box(1.0, 2.0), fit_intercept=False)
    assert classifier.coef_ == pytest.approx(1.0)  # the least unfair one
    assert "raise kappa" in str(found[0].message)
    assert classifier.result_.status.name == "INFEASIBLE"


@pytest.mark.parametrize("model", ["layers", "boosted", "classifier"])
def test_the_objective_of_pairs_bounds_no_mean_loss_of_groups(model):
    clf = FairLogisticClassifier("bounded_group_loss", loss=PairwiseLoss())
    ranker, query = FairRanker("bounded_group_loss", model=model), {"query": QUERY}
    estimator, more = (clf, {}) if model == "classifier" else (ranker, query)
    with pytest.raises((ValueError, TypeError), match=r"BoundedGroupLoss: loss.*quadratic"):
        estimator.fit(X, Y, sensitive_features=GROUPS, **more)
