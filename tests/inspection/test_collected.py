"""The outputs of several models on the same rows, and the groups that are shown of many."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.inspection.collected import collect
from fairconstrained.inspection.outputs import Outputs
from fairconstrained.inspection.shown import choose_groups

X, Y, Z = make_biased_classification(300, 4, random_state=0)


def test_outputs_of_models_of_any_library():
    models = {
        "fair": FairLogisticClassifier(kappa=0.1).fit(X, Y, sensitive_features=Z),
        "search": GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, Y),
        "forest": RandomForestClassifier(5, random_state=0).fit(X, Y),
        "scores only": Perceptron().fit(X, Y),
    }
    found = collect(models, X, Y, Z).against_rest(None)
    assert list(found.outputs) == list(models)
    for name, model in models.items():
        one = found.outputs[name]
        assert np.array_equal(one.decided, model.predict(X) == 1)
        assert np.array_equal(one.centred > 0, one.decided)
        assert one.threshold == 0.0
    assert found.outputs["scores only"].probability is None
    assert found.positive == 1 and found.classes == [0, 1] and not found.weighted


def test_the_other_class_as_the_positive_one_mirrors_all_outputs():
    model = LogisticRegression().fit(X, Y)
    one, other = (collect(model, X, Y, Z).against_rest(k) for k in (1, 0))
    assert np.array_equal(one.labels, ~other.labels)
    assert np.array_equal(one.outputs[""].decided, ~other.outputs[""].decided)
    assert one.outputs[""].scores == pytest.approx(-other.outputs[""].scores)
    assert one.outputs[""].probability == pytest.approx(1.0 - other.outputs[""].probability)


THRESHOLDS = [
    ([True, True], [-1.0, 2.0], np.nextafter(-1.0, -2.0)),
    ([False, False], [-1.0, 2.0], 2.0),
    ([True, False], [-1.0, 2.0], np.nan),
    ([True, False], None, np.nan),
]


@pytest.mark.parametrize(("decided", "scores", "threshold"), THRESHOLDS)
def test_thresholds(decided, scores, threshold):
    scores = None if scores is None else np.array(scores)
    output = Outputs(None, [0, 1], np.array(decided).astype(int), None, scores, positive=1)
    assert output.threshold == pytest.approx(threshold, nan_ok=True)
    assert np.array_equal(output.centred > 0, output.decided)


def test_groups_of_the_model_that_knows_them():
    frame = pd.DataFrame(X).add_prefix("x").assign(group=Z)
    fair = FairLogisticClassifier(sensitive_columns=["group"]).fit(frame, Y)
    plain = LogisticRegression().fit(frame, Y)
    for models in ({"a": fair, "b": plain}, {"a": plain, "b": fair}):
        assert np.array_equal(collect(models, frame, Y).groups.codes, Z)
    with pytest.raises(ValueError, match="pass sensitive_features"):
        collect(plain, frame, Y)


def test_missing_groups_and_rows_of_weight_zero():
    model, some = LogisticRegression().fit(X, Y), np.where(np.arange(len(Y)) % 3 == 0, None, Z)
    with pytest.raises(ValueError, match="missing values"):
        collect(model, X, Y, some)
    assert (~collect(model, X, Y, some, groups_missing="ignore_in_constraint").groups.known).sum()
    assert len(collect(model, X, Y, some, groups_missing="own_group").groups) == 3
    weight = np.arange(len(Y)) % 2
    found = collect(model, X, Y, Z, weight)
    assert len(found.labels) == len(found.outputs[""].decided) == weight.sum()


def test_invalid_models_raise():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="empty mapping"):
        collect({}, X, Y, Z)
    other = LogisticRegression().fit(X, np.where(Y, "yes", "no"))
    with pytest.raises(ValueError, match=r"different classes: 'a' has \[0, 1\], 'b' has"):
        collect({"a": model, "b": other}, X, Y, Z)
    with pytest.raises(ValueError, match="pos_label=7 is not one of"):
        collect(model, X, Y, Z).against_rest(7)
    with pytest.raises(ValueError, match="label 5, which is not among"):
        collect(model, X, np.where(Y, 5, 0), Z)


@pytest.mark.parametrize("n_groups", [9, 30, 200])
def test_many_groups_show_extremes_and_the_largest(n_groups, rng):
    values, sizes = rng.random(n_groups), rng.integers(1, 1000, n_groups)
    values[3] = np.nan
    choice = choose_groups(values, sizes)
    assert len(choice.shown) == 8
    assert sorted([*choice.shown, *choice.others]) == list(range(n_groups))
    assert {np.nanargmax(values), np.nanargmin(values)} <= set(choice.shown)
    between = np.setdiff1d(np.arange(n_groups), np.argsort(values)[[0, 1, 2, -4, -3, -2]])
    assert between[np.argmax(sizes[between])] in choice.shown
    shown = values[choice.shown]
    assert np.all(np.diff(shown[~np.isnan(shown)]) <= 0.0)
    assert choice.label.startswith(f"{n_groups - 8} other")
