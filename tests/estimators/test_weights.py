"""Weights of rows: units, weights of zero for rows or a whole class, and `class_weight`."""

from functools import partial

import numpy as np
import pytest
from _support.classifiers import EVERY
from _support.every_estimator import MODELS, OF_RANKERS, arguments, model_needs_groups
from _support.gaps import divided
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression

import fairconstrained as fc
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss, QueryParity
from fairconstrained.datasets import make_biased_ranking

X, Y, GROUPS = fc.make_biased_classification(400, 4, gap=0.4, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(40, 8, random_state=1)
RANDOM = np.random.default_rng(0)
WEIGHT, OF_QUERIES = RANDOM.uniform(0.5, 2.0, len(Y)), RANDOM.uniform(0.5, 2.0, 40)[QUERY]
RANKER = partial(fc.FairRanker, kappa=0.25, random_state=0)
TREES = fc.BoostedScores(n_estimators=10, num_leaves=4, n_jobs=1)
ESTIMATORS = EVERY | {
    "cv": partial(EVERY["cv"], max_gap=1.0),
    "neyman_pearson": fc.NeymanPearsonClassifier,
    "thresholds": lambda: fc.FairThresholds(LogisticRegression(C=np.inf), cv=2),
    "ranker": RANKER,
    "boosted ranker": partial(RANKER, model=TREES),
}


def scores(estimator, factor=1.0, absent=None):
    """Return the scores of all rows by a fit to weighted rows.

    With `absent`, some rows are left out or have weight zero; of rankers they are whole queries.
    """
    if isinstance(estimator, fc.FairRanker):
        rows, weight, kept = [DOCUMENTS, RELEVANT], OF_QUERIES, QUERY % 2 == 0
        params = {"sensitive_features": QUALITY, "query": QUERY}
    else:
        rows, weight, kept = [X, Y], WEIGHT, np.arange(len(Y)) % 16 < 8
        params = {"sensitive_features": GROUPS}
    if isinstance(estimator, fc.NeymanPearsonClassifier):
        params = {}
    every, weight = rows[0], factor * weight
    if absent == "left out":
        rows, weight = [one[kept] for one in rows], weight[kept]
        params = {name: one[kept] for name, one in params.items()}
    elif absent == "weight zero":
        weight = weight * kept
    estimator.fit(*rows, sample_weight=weight, **params)
    return getattr(estimator, "decision_function", estimator.predict)(every)


@pytest.mark.cases(2)
@pytest.mark.parametrize("factor", [37.0, 1e-3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_unit_of_the_weights_does_not_matter(name, factor):
    found, expected = scores(ESTIMATORS[name](), factor), scores(ESTIMATORS[name]())
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_row_of_weight_zero_is_as_if_absent(name):
    left_out = scores(ESTIMATORS[name](), absent="left out")
    of_zero = scores(ESTIMATORS[name](), absent="weight zero")
    assert_allclose(of_zero, left_out, rtol=1e-7, atol=1e-7)


REPEATED = {
    "logistic": ESTIMATORS["logistic"],
    "three classes": partial(ESTIMATORS["logistic"], tol=1e-7),
    "hinge": partial(ESTIMATORS["hinge"], alpha=1e-2),
    "neyman_pearson": partial(fc.NeymanPearsonClassifier, kappa=0.4),
    "ranker": partial(RANKER, QueryParity(0.1, loss="logistic"), alpha=1e-2, tol=1e-6),
    "boosting": partial(
        fc.FairBoostingClassifier, min_child_samples=1, n_estimators=3, max_bin=20_000, n_jobs=1,
        lightgbm_params={"min_data_in_bin": 1},
    ),
    "boosted ranker": ESTIMATORS["boosted ranker"],
    # Training amplifies rounding; a few steps are compared.
    "network": partial(
        fc.FairNetworkClassifier, hidden_layer_sizes=(6,), max_epochs=6, early_stopping=False,
        tol=1e-8, random_state=0,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.cases(len(REPEATED))
@pytest.mark.parametrize("name", REPEATED)
def test_weights_are_repetitions(name):
    weighted = REPEATED[name]()
    rows, given = [X, Y], {"sensitive_features": GROUPS}
    if name == "three classes":
        rows = [X, OF_THREE]
    elif isinstance(weighted, fc.FairRanker):
        rows, given = [DOCUMENTS, RELEVANT], {"sensitive_features": QUALITY, "query": QUERY}
    elif name == "neyman_pearson":
        given = {}
    weight = np.random.default_rng(0).integers(1, 3, len(rows[1]))
    weighted.fit(*rows, sample_weight=weight, **given)
    again = np.repeat(np.arange(len(weight)), weight)
    given = {key: values[again] for key, values in given.items()}
    repeated = clone(weighted).fit(*(values[again] for values in rows), **given)
    trees = name.startswith("boost")  # their bins are of rows
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=0.04 if trees else 1e-5)
    assert getattr(weighted, "gap_", 0) == pytest.approx(getattr(repeated, "gap_", 0), abs=1e-4)
    if not trees:
        both = [getattr(one, "decision_function", one.predict) for one in (weighted, repeated)]
        assert_allclose(*(scores(rows[0]) for scores in both), atol=1e-4)


OF_THRESHOLDS = [{"cv": 0.3, "kappa": 1.0}, {"per_group": True},
{"confidence": 0.5, "kappa": 0.3}]  # fmt: skip


@pytest.mark.parametrize("options", OF_THRESHOLDS, ids=str)
def test_rows_of_weight_zero_are_absent_from_thresholds(options):
    kept = np.arange(len(Y)) % 16 < 8
    left_out = fc.FairThresholds(LogisticRegression(), random_state=0, **{"cv": 2, **options})
    of_zero = clone(left_out).fit(X, Y, WEIGHT * kept, sensitive_features=GROUPS)
    left_out.fit(X[kept], Y[kept], WEIGHT[kept], sensitive_features=GROUPS[kept])
    assert_array_equal(of_zero.predict(X, GROUPS), left_out.predict(X, GROUPS))
    assert_allclose(of_zero.threshold_, left_out.threshold_, rtol=1e-9)
    if "cv" in options:
        found = of_zero.validation_indices_
        assert_array_equal(found, np.flatnonzero(kept)[left_out.validation_indices_])


FROM_THE_FREE_MODEL = {"roc_parity", "partial_dp", "weak_partial_dp", "churn"}
GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.62)}


@pytest.fixture(scope="module")
def unbalanced():
    """Rows with three times as many labels of one class, and weights."""
    X, y, groups = fc.make_biased_classification(700, 4, gap=0.3, random_state=0)
    kept = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.35)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, kept.sum())
    weight[::17] = 0.0
    return X[kept], y[kept], groups[kept], weight


def by_row(class_weight, y, weight):
    """Return the weights of the rows times those of their classes."""
    if class_weight == "balanced":
        counted = weight > 0
        totals = [weight[counted & (y == k)].sum() for k in (0, 1)]
        class_weight = {k: sum(totals) / (2.0 * totals[k]) for k in (0, 1)}
    return weight * np.array([class_weight.get(k, 1.0) for k in (0, 1)])[y]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 4.0}, {1: 3.0}])
def test_without_constraints_it_is_logistic_regression(unbalanced, class_weight, weighted):
    X, y, _, weight = unbalanced
    weight = weight if weighted else np.ones(len(y))
    ours = fc.FairLogisticClassifier(None, alpha=0.0, class_weight=class_weight, tol=1e-8)
    ours.fit(X, y, weight)
    # scikit-learn's "balanced" counts weights since 1.7 only: these are the same weights as a dict
    given = class_weight
    if class_weight == "balanced":
        ratio = by_row("balanced", y, weight)
        given = {k: ratio[(y == k) & (weight > 0)][0] / weight[(y == k) & (weight > 0)][0]
                 for k in (0, 1)}  # fmt: skip
    theirs = LogisticRegression(C=np.inf, class_weight=given, tol=1e-10, max_iter=1000)
    theirs.fit(X, y, weight)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_constraints_count_people_not_class_weights(unbalanced, name):
    X, y, groups, weight = unbalanced
    constraint = GIVEN.get(name, name)
    clf = fc.FairLogisticClassifier(constraint, 0.05, class_weight="balanced")
    clf.fit(X, y, weight, sensitive_features=groups)
    plain = fc.FairLogisticClassifier(constraint, 0.05).bind(X, y, weight, groups)
    balanced = clf.bind(X, y, weight, groups)
    coef, intercept = np.full((1, X.shape[1]), 0.3), np.full(1, -0.2)
    ours, theirs = (
        fit.problem.at(fit.problem.start_at(fit.model.variables(coef, intercept)))
        for fit in (balanced, plain)
    )
    if name not in FROM_THE_FREE_MODEL:
        assert_allclose(ours.constraints, theirs.constraints, atol=1e-12)
    assert ours.objective != pytest.approx(theirs.objective, abs=1e-3)


def test_paths_weigh_the_held_out_loss_as_the_loss(unbalanced):
    X, y, groups, _ = unbalanced
    seen = np.arange(len(y)) < 300
    clf = fc.FairLogisticClassifier(class_weight={0: 1.0, 1: 5.0})
    rows = divided(np.flatnonzero(~seen), X=X, y=y, sensitive_features=groups)
    path = fc.fairness_path(clf, kappas=[0.1, 0.05], **rows)
    margins = np.where(y > 0, 1.0, -1.0)[~seen] * path.estimators[0].decision_function(X[~seen])
    expected = np.average(np.logaddexp(0.0, -margins), weights=np.where(y[~seen] > 0, 5.0, 1.0))
    assert path.validation["val_loss"][0] == pytest.approx(expected)


CONSTANT_OR_EARLY = pytest.mark.filterwarnings(  # few rows are held out; small networks
    "ignore::fairconstrained.ConstantDecisionWarning", "ignore::fairconstrained.ConvergenceWarning"
)
CLASSIFIERS = [name for name, model in MODELS.items() if not isinstance(model, fc.FairRanker)]
OF_THREE = np.where(X[:, 0] > 1.0, 2, Y)


def limit_is_reached(model, X, lost, y, **groups):
    """Check the classes, that the class is never predicted, and its probability."""
    assert_array_equal(model.classes_, np.unique(y))
    if getattr(model, "threshold", None) is None:  # a share of the rows is selected anyway
        assert lost not in model.predict(X, **groups)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X)[:, list(model.classes_).index(lost)].max() < 1e-3


@CONSTANT_OR_EARLY
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


OF_THREE_CLASSES = [{}, {"enforce": "decision"}, {"class_weight": "balanced"}]


@CONSTANT_OR_EARLY
@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("options", OF_THREE_CLASSES, ids=str)
def test_three_classes(options, lost):
    model = fc.FairLogisticClassifier(kappa=0.3, **options)
    model.fit(X, OF_THREE, 1.0 * (lost != OF_THREE), sensitive_features=GROUPS)
    limit_is_reached(model, X, lost, OF_THREE)


@CONSTANT_OR_EARLY
def test_balanced_classes_are_those_that_have_weight():
    """The weights of the two others are those of a fit without the third."""
    counted = OF_THREE != 2
    options = {"constraint": None, "class_weight": "balanced", "alpha": 0.1, "tol": 1e-7}
    of_three = fc.FairLogisticClassifier(**options).fit(X, OF_THREE, 1.0 * counted)
    of_two = fc.FairLogisticClassifier(**options).fit(X[counted], Y[counted])
    assert_allclose(of_three.predict_proba(X)[:, :2].sum(axis=1), 1.0, atol=1e-5)
    assert_allclose(of_three.feature_scale_, of_two.feature_scale_, rtol=1e-9)


@CONSTANT_OR_EARLY
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


@CONSTANT_OR_EARLY
def test_what_has_no_limit_says_so():
    with pytest.raises(ValueError, match=r"priority: all rows of the class 0 have weight zero"):
        fc.NeymanPearsonClassifier().fit(X, Y, 1.0 * (Y == 1))
    X_, y, given = OF_RANKERS
    with pytest.raises(ValueError, match=r"needs rows of both classes"):
        fc.FairRanker().fit(X_, y, sample_weight=1.0 * (y == 0), **given)
