"""A class whose rows all have weight zero, as bootstrap counts give: the fit is the limit."""

import numpy as np
import pytest
from _support.classifiers import EVERY
from _support.every_estimator import MODELS, OF_RANKERS, arguments, model_needs_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier

import fairconstrained as fc

pytestmark = [  # few rows are held out; small networks
    pytest.mark.filterwarnings("ignore::fairconstrained.ConstantDecisionWarning"),
    pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning"),
]
X, Y, GROUPS = fc.make_biased_classification(400, 4, gap=0.4, random_state=0)
CLASSIFIERS = [name for name, model in MODELS.items() if not isinstance(model, fc.FairRanker)]
OF_THREE = np.where(X[:, 0] > 1.0, 2, Y)


def limit_is_reached(model, X, lost, y, **groups):
    """Check the classes, that the class is never predicted, and its probability."""
    assert_array_equal(model.classes_, np.unique(y))
    if getattr(model, "threshold", None) is None:  # a share of the rows is selected anyway
        assert lost not in model.predict(X, **groups)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X)[:, list(model.classes_).index(lost)].max() < 1e-3


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes(name, lost):
    X, y, given = arguments(name)
    model = clone(MODELS[name])
    if isinstance(model, fc.NeymanPearsonClassifier):
        model.set_params(priority=1 - lost)
    model.fit(X, y, sample_weight=1.0 * (y != lost), **given)
    groups = given if model_needs_groups(model) else {}
    limit_is_reached(model, X, lost, y, **groups)
    assert model.bound_met_


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize(
    "options", [{}, {"enforce": "decision"}, {"class_weight": "balanced"}], ids=str
)
def test_three_classes(options, lost):
    model = fc.FairLogisticClassifier(kappa=0.3, **options)
    model.fit(X, OF_THREE, 1.0 * (lost != OF_THREE), sensitive_features=GROUPS)
    limit_is_reached(model, X, lost, OF_THREE)


def test_balanced_classes_are_those_that_have_weight():
    """The weights of the two others are those of a fit without the third."""
    counted = OF_THREE != 2
    options = {"constraint": None, "class_weight": "balanced", "alpha": 0.1, "tol": 1e-7}
    of_three = fc.FairLogisticClassifier(**options).fit(X, OF_THREE, 1.0 * counted)
    of_two = fc.FairLogisticClassifier(**options).fit(X[counted], Y[counted])
    assert_allclose(of_three.predict_proba(X)[:, :2].sum(axis=1), 1.0, atol=1e-5)
    assert_allclose(of_three.feature_scale_, of_two.feature_scale_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The least populated class")  # in folds of two rows
@pytest.mark.parametrize("name", EVERY)
def test_bags_of_few_positives(name):
    """Of 2% positives some bags have none."""
    table, labels = np.column_stack([GROUPS, X])[:100], (np.arange(100) < 2).astype(int)
    bags = BaggingClassifier(EVERY[name](sensitive_columns=[0]), n_estimators=4, random_state=2)
    bags.fit(table, labels)
    without = [not labels[rows].any() for rows in bags.estimators_samples_]
    assert any(without) and not all(without)
    for model, lost in zip(bags.estimators_, without, strict=True):
        assert_array_equal(model.classes_, [0, 1])
        if lost:
            limit_is_reached(model, table, 1, labels)


def test_what_has_no_limit_says_so():
    with pytest.raises(ValueError, match=r"priority: all rows of the class 0 have weight zero"):
        fc.NeymanPearsonClassifier().fit(X, Y, 1.0 * (Y == 1))
    X_, y, given = OF_RANKERS
    with pytest.raises(ValueError, match=r"needs rows of both classes"):
        fc.FairRanker().fit(X_, y, sample_weight=1.0 * (y == 0), **given)
