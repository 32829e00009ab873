"""Row labels of pandas objects: the same labels in another order are an error everywhere."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained import metrics

N = 120
X, Y, GROUPS = fc.make_biased_classification(N, 3, gap=0.4, random_state=0)
LABELS = pd.Index([f"r{k}" for k in range(N)])
ORDER = np.random.default_rng(0).permutation(N)
FRAME = pd.DataFrame(X, columns=list("abc"), index=LABELS)
SERIES = {
    "y": pd.Series(Y, LABELS),
    "sensitive_features": pd.Series(GROUPS, LABELS),
    "sample_weight": pd.Series(np.linspace(1.0, 2.0, N), LABELS),
}


def fitted(X, y, groups):
    return fc.FairLogisticClassifier().fit(X, y, sensitive_features=groups)


GAP = pytest.approx(fitted(X, Y, GROUPS).gap_, abs=1e-6)
MODEL = fitted(FRAME, SERIES["y"], SERIES["sensitive_features"])


def path_validation(**rows):
    held = {f"{name}_val": values for name, values in rows.items()}
    held |= {"sensitive_features": GROUPS, "X_val": FRAME}
    fc.fairness_path(fc.FairLogisticClassifier(), X, Y, **held)


def pipeline(y, **rows):
    model = make_pipeline(StandardScaler(), fc.FairLogisticClassifier())
    model.fit(FRAME, y, **{f"fairlogisticclassifier__{name}": rows[name] for name in rows})


def scorer(y, **rows):
    fc.make_fairness_scorer(metrics.group_auc_difference)(MODEL, FRAME, y, **rows)


def metric(name):
    decisions = pd.Series(X[:, 0] > 0, LABELS) * 1
    return lambda y, **rows: getattr(metrics, name)(y, decisions, **rows)


PLACES = {
    "fit": lambda **rows: fc.FairLogisticClassifier().fit(FRAME, **rows),
    "fit hinge": lambda **rows: fc.FairHingeClassifier().fit(FRAME, **rows),
    "cross-validation": lambda **rows: fc.FairLogisticClassifierCV(cv=2).fit(FRAME, **rows),
    "path": lambda **rows: fc.fairness_path(fc.FairLogisticClassifier(), FRAME, n_kappas=2, **rows),
    "validation rows": path_validation,
    "pipeline": pipeline,
    "report": lambda **rows: fc.fairness_report(MODEL, FRAME, **rows),
    "scorer": scorer,
    **{
        f"metric {name}": metric(name)
        for name in metrics.__all__
        if "query" not in signature(getattr(metrics, name)).parameters
    },
}
WITHOUT_GROUPS = {
    "Neyman-Pearson": lambda **rows: fc.NeymanPearsonClassifier().fit(FRAME, **rows),
    "score": lambda **rows: MODEL.score(FRAME, **rows),
}
CASES = [(place, name) for place in PLACES for name in SERIES]
CASES += [(place, name) for place in WITHOUT_GROUPS for name in ("y", "sample_weight")]


@pytest.mark.cases(12)
@pytest.mark.parametrize(("place", "name"), CASES)
def test_another_order_is_an_error_that_names_both_arguments(place, name):
    rows = SERIES | {name: SERIES[name].iloc[ORDER]}
    if place in WITHOUT_GROUPS:
        del rows["sensitive_features"]
    with pytest.raises(ValueError, match="same row labels in another order") as error:
        (PLACES | WITHOUT_GROUPS)[place](**rows)
    said = str(error.value)
    assert name in said or (name == "y" and "y_true" in said)
    assert ".loc[" in said and ".index]" in said and ".to_numpy()" in said


def test_rows_of_constraints_and_of_functions_of_x():
    groups = SERIES["sensitive_features"].iloc[ORDER]
    rule = fc.MinorityRate(0.4, minority=0, reference=FRAME, reference_groups=groups)
    with pytest.raises(ValueError, match="reference and reference_groups have the same row labels"):
        fc.FairLogisticClassifier(rule).fit(X, Y)
    clf = fc.FairLogisticClassifier(sensitive_columns=lambda rows: (rows["a"] > 0).iloc[ORDER])
    with pytest.raises(ValueError, match="X and sensitive_columns have the same row labels"):
        clf.fit(FRAME, Y)


ARRAYS_ARE_MATCHED = {
    "default index": pd.Series(GROUPS),
    "same labels": pd.Series(GROUPS, index=LABELS),
    "array": GROUPS,
    "list": GROUPS.tolist(),
    "polars": pl.Series(GROUPS),
    "frame": pd.DataFrame({"sex": GROUPS}),
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("kind", ARRAYS_ARE_MATCHED)
def test_arrays_are_matched_by_position_without_warning(kind):
    other = ARRAYS_ARE_MATCHED[kind]
    assert fitted(FRAME, SERIES["y"], other).gap_ == GAP
    assert fitted(pd.DataFrame(X), Y, other).gap_ == GAP


def test_labels_that_occur_more_than_once():
    index = LABELS.where(np.arange(N) > 2, "r0")
    y = pd.Series(Y, index)
    with pytest.raises(ValueError, match="y and sensitive_features have the same row labels"):
        fitted(X, y, pd.Series(GROUPS, index[ORDER]))
    assert fitted(X, y, pd.Series(GROUPS, index)).gap_ == GAP
    with pytest.warns(fc.InputWarning, match="different row labels"):
        fitted(X, y, SERIES["sensitive_features"])


INDEXES = {
    "default": None,
    "strings": LABELS,
    "dates": pd.date_range("2000", periods=N),
    "shuffled integers": ORDER + 7,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kind", INDEXES)
def test_folds_of_a_cross_validation_are_accepted(kind, same):
    """Folds keep the index; what they have of a default index carries no information either."""
    frame = pd.DataFrame(X, columns=list("abc"), index=INDEXES[kind]).assign(sex=GROUPS)
    y = pd.Series(Y, index=INDEXES[kind] if same else None)
    gap = fc.make_fairness_scorer(metrics.group_auc_difference, sensitive_columns=["sex"])
    search = GridSearchCV(
        fc.FairLogisticClassifier(sensitive_columns=["sex"]),
        {"kappa": [0.9, 0.8]},  # so large that the predictions are not far from them
        scoring={"accuracy": "accuracy", "gap": gap},
        refit="accuracy",
        cv=3,
    )
    assert np.isfinite(search.fit(frame, y).cv_results_["mean_test_gap"]).all()
    clf = fc.FairLogisticClassifier().set_params(kappa=0.9)
    with config_context(enable_metadata_routing=True):
        clf.set_fit_request(sensitive_features=True)
        params = {"sensitive_features": frame["sex"]}
        scores = cross_validate(clf, frame[list("abc")], y, params=params, cv=3)["test_score"]
    assert np.isfinite(scores).all()
