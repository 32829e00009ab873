"""`pos_label`: the favourable label, which need not be the second of the sorted classes."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import EVERY, SINGLE
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, fairness_path, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS, BoundedGroupLoss

GIVEN = {"bounded_group_loss": BoundedGroupLoss(0.62)}


@pytest.fixture(scope="module")
def rows():
    """Rows with labels 0 and 1, and with names of which the favourable one comes first."""
    X, y, groups = make_biased_classification(500, 4, gap=0.3, random_state=0)
    return X, y, np.where(y > 0, "accept", "reject"), groups


def both(make, rows, constraint, **options):
    """Return the classifiers of the two codings; their favourable decisions are the same."""
    X, y, names, groups = rows
    by_number = make(constraint, **options).fit(X, y, sensitive_features=groups)
    by_name = make(constraint, pos_label="accept", **options)
    return by_number, by_name.fit(X, names, sensitive_features=groups)


def assert_mirrored(by_number, by_name, X):
    assert by_name.classes_.tolist() == ["accept", "reject"]
    assert by_name.pos_label_ == "accept"
    assert_array_equal(by_name.predict(X) == "accept", by_number.predict(X) == 1)
    scores = by_name.decision_function(X)
    assert_allclose(scores, -by_number.decision_function(X), atol=1e-10)
    assert_array_equal(by_name.predict(X), by_name.classes_[(scores > 0).astype(int)])
    for name in ("objective_", "violation_", "gap_", "decision_gap_", "multipliers_"):
        assert_allclose(getattr(by_name, name), getattr(by_number, name), atol=1e-10)


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIER_CONSTRAINTS)
def test_every_constraint_protects_the_favourable_label(rows, name):
    constraint = GIVEN.get(name, name)
    assert_mirrored(*both(FairLogisticClassifier, rows, constraint), rows[0])


BOTH = [(name, one) for name in EVERY for one in ("score", "decision")]


BOTH.remove(("cv", "decision"))  # a path varies the tolerance on scores


@pytest.mark.parametrize(("name", "enforce"), BOTH)
def test_every_classifier_has_the_scores_of_the_second_class(rows, name, enforce):
    options = {} if name == "cv" else {"enforce": enforce, "kappa": 0.1}
    by_number, by_name = both(EVERY[name], rows, "equal_opportunity", **options)
    assert_mirrored(by_number, by_name, rows[0])
    if hasattr(by_number, "predict_proba"):
        one, other = by_number.predict_proba(rows[0]), by_name.predict_proba(rows[0])
        assert_allclose(other, one[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("name", SINGLE)
def test_exported_models_agree(rows, name):
    X, _, names, groups = rows
    clf = SINGLE[name](pos_label="accept", threshold=0.4).fit(X, names, sensitive_features=groups)
    scores = clf.decision_function(X)
    if name == "boosting":
        exported = clf.to_lightgbm().predict(X, raw_score=True)
    elif name == "network":
        import torch

        with torch.no_grad():
            exported = clf.to_torch()(torch.tensor(X)).numpy()
    else:
        plain = clf.to_sklearn()
        assert_array_equal(plain.predict(X), clf.predict(X))
        exported = plain.decision_function(X)
    assert_allclose(exported, scores, atol=1e-10)


def test_paths_and_their_validation(rows):
    X, y, names, groups = rows
    seen, later = slice(0, 300), slice(300, None)

    def path(labels, **options):
        clf = FairLogisticClassifier("equal_opportunity", **options)
        return fairness_path(
            clf, X[seen], labels[seen], sensitive_features=groups[seen], n_kappas=4,
            X_val=X[later], y_val=labels[later], sensitive_features_val=groups[later],
        )  # fmt: skip

    one, other = path(y), path(names, pos_label="accept")
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame(), atol=1e-9)


def test_the_text_names_a_favourable_string_that_was_not_chosen(rows):
    X, y, names, groups = rows
    clf = FairLogisticClassifier()
    assert "favourable" not in repr(clf)
    assert "favourable" not in repr(clf.fit(X, y, sensitive_features=groups))
    assert repr(clf.fit(X, names, sensitive_features=groups)).count("favourable") == 1
    assert "'reject'" in repr(clf)
    chosen = FairLogisticClassifier(pos_label="accept").fit(X, names, sensitive_features=groups)
    assert "favourable" not in repr(chosen)
