"""Row labels of pandas objects: the same labels in another order are an error everywhere."""

from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    FairHingeClassifier,
    FairLogisticClassifier,
    FairLogisticClassifierCV,
    InputWarning,
    MinorityRate,
    NeymanPearsonClassifier,
    fairness_path,
    fairness_report,
    make_biased_classification,
    make_fairness_scorer,
    metrics,
)
from fairconstrained.data.inputs import check_same_rows

N = 120
X, Y, GROUPS = make_biased_classification(N, 3, gap=0.4, random_state=0)
LABELS = pd.Index([f"r{k}" for k in range(N)])
ORDER = np.random.default_rng(0).permutation(N)
FRAME = pd.DataFrame(X, columns=list("abc"), index=LABELS)
SERIES = {
    "y": pd.Series(Y, LABELS),
    "sensitive_features": pd.Series(GROUPS, LABELS),
    "sample_weight": pd.Series(np.linspace(1.0, 2.0, N), LABELS),
}
REORDERED = {name: one.iloc[ORDER] for name, one in SERIES.items()}


def fitted(*args, **options):
    return FairLogisticClassifier(**options).fit(*args[:2], sensitive_features=args[2])


def mixed(name):
    """Return y, sensitive_features and sample_weight, one of them in another order."""
    return {**SERIES, name: REORDERED[name]}


def fit(estimator):
    return lambda rows: estimator.fit(FRAME, **rows)


def fit_without_groups(rows):
    NeymanPearsonClassifier().fit(FRAME, rows["y"], rows["sample_weight"])


def score(rows):
    model = fitted(FRAME, SERIES["y"], SERIES["sensitive_features"])
    model.score(FRAME, rows["y"], rows["sample_weight"])


def path(rows):
    fairness_path(FairLogisticClassifier(), FRAME, n_kappas=2, **rows)


def path_validation(rows):
    held = {f"{name}_val": one for name, one in rows.items()}
    fairness_path(FairLogisticClassifier(), X, Y, sensitive_features=GROUPS, X_val=FRAME, **held)


def pipeline(rows):
    model = make_pipeline(StandardScaler(), FairLogisticClassifier())
    options = {f"fairlogisticclassifier__{name}": rows[name] for name in rows if name != "y"}
    model.fit(FRAME, rows["y"], **options)


def report(rows):
    model = fitted(FRAME, SERIES["y"], SERIES["sensitive_features"])
    fairness_report(model, FRAME, **rows)


def scorer(rows):
    model = fitted(FRAME, SERIES["y"], SERIES["sensitive_features"])
    scored = make_fairness_scorer(metrics.group_auc_difference)
    scored(model, FRAME, rows.pop("y"), **rows)


def metric(name):
    def call(rows):
        getattr(metrics, name)(rows.pop("y"), pd.Series(X[:, 0] > 0, LABELS) * 1, **rows)

    return call


PLACES = {
    "fit": fit(FairLogisticClassifier()),
    "fit hinge": fit(FairHingeClassifier()),
    "cross-validation": fit(FairLogisticClassifierCV(n_kappas=2, cv=2)),
    "Neyman-Pearson": fit_without_groups,
    "score": score,
    "path": path,
    "validation rows": path_validation,
    "pipeline": pipeline,
    "report": report,
    "scorer": scorer,
    **{
        f"metric {name}": metric(name)
        for name in metrics.__all__
        if "query" not in signature(getattr(metrics, name)).parameters
    },
}
WITHOUT_GROUPS = ("Neyman-Pearson", "score")


CASES = [
    (place, name)
    for place in PLACES
    for name in SERIES
    if name != "sensitive_features" or place not in WITHOUT_GROUPS
]


@pytest.mark.parametrize(("place", "name"), CASES)
def test_another_order_is_an_error_that_names_both_arguments(place, name):
    with pytest.raises(ValueError, match="same row labels in another order") as found:
        PLACES[place](mixed(name))
    said = str(found.value)
    assert name in said or (name == "y" and "y_true" in said)
    assert ".loc[" in said and ".index]" in said and ".to_numpy()" in said


def test_reference_rows():
    rule = MinorityRate(
        0.4, minority=0, reference=FRAME, reference_groups=REORDERED["sensitive_features"]
    )
    with pytest.raises(ValueError, match="reference and reference_groups have the same row labels"):
        FairLogisticClassifier(rule).fit(X, Y)


def test_groups_that_a_function_returns_in_another_order():
    clf = FairLogisticClassifier(sensitive_columns=lambda rows: (rows["a"] > 0).iloc[ORDER])
    with pytest.raises(ValueError, match="X and sensitive_columns have the same row labels"):
        clf.fit(FRAME, Y)


def test_rows_in_one_order_give_one_model():
    """The gap is measured with the right groups: that of arrays."""
    reference = fitted(X, Y, GROUPS)
    shuffled = fitted(FRAME.iloc[ORDER], REORDERED["y"], REORDERED["sensitive_features"])
    assert shuffled.gap_ == pytest.approx(reference.gap_, abs=1e-6)
    by_label = REORDERED["sensitive_features"].loc[FRAME.index]
    assert fitted(FRAME, SERIES["y"], by_label).gap_ == pytest.approx(reference.gap_, abs=1e-6)
    by_position = fitted(FRAME, SERIES["y"], SERIES["sensitive_features"].to_numpy())
    assert by_position.gap_ == pytest.approx(reference.gap_, abs=1e-6)


@pytest.mark.parametrize(
    "other",
    [
        pd.Series(GROUPS),
        pd.Series(GROUPS, index=LABELS),
        GROUPS,
        GROUPS.tolist(),
        pl.Series(GROUPS),
        pd.DataFrame({"sex": GROUPS}),
    ],
    ids=["default index", "same labels", "array", "list", "polars", "frame"],
)
def test_arrays_are_matched_by_position_without_warning(other):
    reference = pytest.approx(fitted(X, Y, GROUPS).gap_, abs=1e-6)
    assert fitted(FRAME, SERIES["y"], other).gap_ == reference
    assert fitted(pd.DataFrame(X), Y, other).gap_ == reference


def test_other_labels_warn():
    other = pd.Series(GROUPS, index=[f"s{k}" for k in range(N)])
    with pytest.warns(InputWarning, match="X and sensitive_features have different row labels"):
        model = fitted(FRAME, Y, other)
    assert model.gap_ == pytest.approx(fitted(X, Y, GROUPS).gap_, abs=1e-6)


def test_a_default_index_beside_the_same_labels_in_another_order_warns():
    with pytest.warns(InputWarning, match="same row labels in another order; their rows are"):
        fitted(pd.DataFrame(X), Y, pd.Series(GROUPS, index=ORDER))


def test_labels_that_occur_more_than_once():
    index = LABELS.where(np.arange(N) > 2, "r0")
    one, other = pd.Series(Y, index), pd.Series(GROUPS, index[ORDER])
    with pytest.raises(ValueError, match="y and sensitive_features have the same row labels"):
        check_same_rows(y=one, sensitive_features=other)
    check_same_rows(y=one, sensitive_features=pd.Series(GROUPS, index))
    with pytest.warns(InputWarning, match="different row labels"):
        check_same_rows(y=one, sensitive_features=SERIES["sensitive_features"])


@pytest.mark.parametrize("rows", [SERIES, REORDERED], ids=["same order", "another order"])
def test_other_lengths_are_left_to_the_checks_of_lengths(rows):
    y = rows["y"].iloc[:-1]
    check_same_rows(X=FRAME, y=y)
    with pytest.raises(ValueError, match=f"^y has {N - 1} rows, X has {N}: "):
        fitted(FRAME, y, GROUPS)


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
    gap = make_fairness_scorer(metrics.group_auc_difference, sensitive_columns=["sex"])
    search = GridSearchCV(
        FairLogisticClassifier(sensitive_columns=["sex"]),
        {"kappa": [0.9, 0.8]},  # so large that the predictions are not far from them
        scoring={"accuracy": "accuracy", "gap": gap},
        refit="accuracy",
        cv=3,
    )
    assert np.isfinite(search.fit(frame, y).cv_results_["mean_test_gap"]).all()
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            FairLogisticClassifier().set_fit_request(sensitive_features=True),
            frame[list("abc")], y, params={"sensitive_features": frame["sex"]}, cv=3,
        )  # fmt: skip
    assert np.isfinite(found["test_score"]).all()


class TestParts:
    """Parts of one table: `pd.Series(Y)` and `pd.Series(GROUPS)` have default indexes."""

    X, y, groups = pd.DataFrame(X), pd.Series(Y), pd.Series(GROUPS)
    first, second = np.arange(5, 65), np.arange(55, 115)  # with common rows
    shuffled = train_test_split(np.arange(N), test_size=0.5, random_state=0)

    @pytest.mark.parametrize(
        ("rows", "others"),
        [
            shuffled,
            (np.sort(shuffled[0]), np.sort(shuffled[1])),
            (np.arange(0, 120, 2), np.arange(1, 120, 2)),
        ],
    )
    def test_the_groups_of_other_rows_warn(self, rows, others):
        X, y, groups = self.X.iloc[rows], self.y.iloc[rows], self.groups.iloc[others]
        with pytest.warns(InputWarning, match="X and sensitive_features have different row labels"):
            check_same_rows(X=X, y=y, sensitive_features=groups)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("rows", [first, second, *shuffled])
    def test_the_groups_of_the_same_rows_do_not(self, rows):
        X, y, groups = self.X.iloc[rows], self.y.iloc[rows], self.groups.iloc[rows]
        check_same_rows(X=X, y=y, sensitive_features=groups)
        check_same_rows(X=X, y=y.to_numpy(), sensitive_features=groups.tolist())
        check_same_rows(X=X, y=y, sensitive_features=groups.reset_index(drop=True))
