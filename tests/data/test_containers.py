"""What X and the groups may be held in, and how they are named: the same model comes out."""

import numpy as np
import pytest
import scipy.sparse as sp
from _support.containers import CONTAINERS, DENSE, SPARSE, assert_same
from _support.every_estimator import MODELS, arguments, model_needs_groups
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from fairconstrained import FairLogisticClassifier, MinorityRate, make_biased_classification

X, Y, GROUPS = make_biased_classification(300, 5, gap=0.4, random_state=0)
X[np.random.default_rng(0).random(X.shape) < 0.3] = 0.0  # something for sparse formats


def fitted(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    clf = FairLogisticClassifier(**{"kappa": 0.02, **options})
    return clf.fit(X, y, sample_weight, sensitive_features=groups)


MODEL = fitted()


@pytest.mark.cases(7)
@pytest.mark.parametrize("name", CONTAINERS)
def test_features(name):
    rows = CONTAINERS[name](X)
    clf = fitted(rows)
    assert_same(clf, MODEL, atol=1e-7 if name in SPARSE else 1e-10)  # sums in another order
    assert_allclose(clf.predict_proba(rows), MODEL.predict_proba(X), rtol=1e-5)
    assert_array_equal(clf.predict(rows), MODEL.predict(X))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_float32(container):
    single = container(X.astype(np.float32))
    clf = fitted(single)
    assert clf.result_.converged and clf.coef_.dtype == np.float64
    assert_same(clf, MODEL, atol=1e-3)
    assert_allclose(clf.predict_proba(single), MODEL.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("container", [np.array, sp.csr_array, DENSE["pandas"]])
def test_arguments_of_the_user_are_not_changed(container):
    weight = np.where(Y > 0, 0.0, 2.0) + (GROUPS > 0)
    given = [container(X), Y.copy(), GROUPS.copy(), weight]
    before = [part.copy() for part in given]
    fitted(*given).predict(given[0])
    for part, same in zip(given, before, strict=True):
        if sp.issparse(part):
            part, same = part.toarray(), same.toarray()
        assert_array_equal(part, same)


NAMES = [["no", "yes"], [False, True], [-1, 1], [0.0, 7.0]]
NAMES += [np.array(["-", "x"], object), np.array([0, 1], ">i4")]  # as some files hold them


@pytest.mark.cases(6)
@pytest.mark.parametrize("names", NAMES)
def test_names_of_classes(names):
    renamed = fitted(y=np.array(names)[Y])
    assert_same(renamed, MODEL, atol=0)
    assert_array_equal(renamed.classes_, names)
    assert set(renamed.predict(X).tolist()) == set(np.array(names).tolist())


def test_orders_of_classes_rows_and_groups_do_not_matter():
    order = np.random.default_rng(0).permutation(300)
    assert_same(fitted(X[order], Y[order], GROUPS[order]), MODEL, atol=1e-7)
    first, turned = (fitted(y=labels, tol=1e-7) for labels in (Y, 1 - Y))
    assert_allclose(turned.coef_, -first.coef_, atol=1e-4)
    assert_array_equal(turned.predict(X), 1 - first.predict(X))
    options = {"n_groups": 4, "gap": 0.5, "class_sep": 4.0, "random_state": 1}
    features, y, groups = make_biased_classification(300, 5, **options)
    reference = fitted(features, y, groups)
    for names in (["d", "c", "b", "a"], ["b", "d", "a", "c"]):
        clf = fitted(features, y, np.array(names)[groups])
        assert_same(clf, reference, atol=1e-7)
        assert clf.decision_gap_ == pytest.approx(reference.decision_gap_, abs=1e-12)


def repeated(X):
    """Return the matrix with every entry written as the sum of two large ones."""
    plain = sp.csr_matrix(X)
    large = np.where(np.arange(plain.nnz) % 2, 64.0, -64.0)
    values = np.c_[plain.data + large, -large].ravel()
    return sp.csr_matrix((values, np.repeat(plain.indices, 2), plain.indptr * 2), plain.shape)


@pytest.mark.cases(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*MODELS, "reference rows", "columns of X"])
def test_repeated_indices_of_csr_are_summed(name):
    rows, y, given = arguments(name) if name in MODELS else (X, Y, {})
    twice, fits = repeated(rows), []
    values = twice.data.copy()
    for form in (sp.csr_matrix(rows), twice):
        rule = MinorityRate(0.3, minority=0, reference=form, reference_groups=GROUPS)
        others = {
            "reference rows": FairLogisticClassifier(rule),
            "columns of X": FairLogisticClassifier(sensitive_columns=lambda part: part[:, [0]] > 0),
        }
        fits.append(clone((MODELS | others)[name]).fit(form, y, **given))
    plain, summed = fits
    if hasattr(plain, "decision_function"):
        scores = plain.decision_function(rows)
        assert_allclose(summed.decision_function(rows), scores, atol=1e-6)
    by_group = given if model_needs_groups(plain) else {}
    assert_allclose(summed.predict(twice, **by_group), plain.predict(rows, **by_group), atol=1e-9)
    assert_array_equal(twice.data, values)
