"""Scorers check the outputs of models that are not of scikit-learn, as reports do."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import make_biased_classification, make_fairness_scorer
from fairconstrained.metrics import roc_parity_difference

X, Y, GROUPS = make_biased_classification(300, gap=0.4, random_state=0)
LABELS = LogisticRegression().fit(X, Y).predict(X)


class Model:
    """A model with neither `classes_` nor a base class."""

    def __init__(self, output):
        self.output = output

    def predict(self, X):
        return self.output(LABELS.copy())

    def predict_proba(self, X):
        return np.column_stack([1.0 - LABELS, LABELS])


def gap(y_true, y_pred, sensitive_features):
    one, other = (y_pred[sensitive_features == k].mean() for k in np.unique(GROUPS))
    return abs(one - other)


def score(model, metric=gap, method="predict"):
    scorer = make_fairness_scorer(metric, greater_is_better=False, response_method=method)
    return scorer(model, X, Y, sensitive_features=GROUPS)


WRONG = {
    "text": (lambda y: y.astype(str), "different types"),
    "probabilities": (lambda y: 0.2 + 0.5 * y, "no labels, such as"),
    "a third label": (lambda y: np.where(X[:, 0] > 1.0, 7, y), "Two classes are needed"),
    "nan": (lambda y: np.where(X[:, 0] > 1.0, np.nan, y), "missing values"),
    "few rows": (lambda y: y[:-3], "it returned 297 for 300 rows"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_outputs_that_are_no_labels_are_refused(kind):
    output, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        score(Model(output))


def test_a_model_without_classes_is_measured_by_the_labels_of_the_rows():
    model = Model(lambda y: y)
    assert score(model) == pytest.approx(-gap(Y, LABELS, GROUPS))
    expected = -roc_parity_difference(Y, LABELS.astype(float), sensitive_features=GROUPS)
    assert score(model, roc_parity_difference, method="predict_proba") == pytest.approx(expected)


@pytest.mark.parametrize("weight", [np.ones((300, 1)), np.full(300, 1j)])
def test_weights_are_one_number_per_row(weight):
    def total(y_true, y_pred, sensitive_features, sample_weight):
        return float(sample_weight.sum())

    scorer = make_fairness_scorer(total, greater_is_better=True)
    with pytest.raises(ValueError, match=r"^sample_weight .*must"):
        scorer(Model(lambda y: y), X, Y, sensitive_features=GROUPS, sample_weight=weight)
