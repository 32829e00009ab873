"""Tests of deployment: converted models have equal predictions, and files are safe to load."""

import numpy as np
import pandas as pd
import pytest
from _support.classifiers import quietly
from _support.every_estimator import MODELS, OF_CLASSIFIERS, TREES, arguments, model_needs_groups
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import fairconstrained as fc
from fairconstrained.deployment import reasons, to_sklearn, trusted_types
from fairconstrained.penalties import SCAD

X, Y, GROUPS = fc.make_biased_classification(300, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def frame():
    """A DataFrame with named columns, including a column of groups as strings."""
    columns = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    columns.insert(1, "sex", np.where(GROUPS == 0, "f", "m"))
    return columns, np.where(Y == 1, "yes", "no")


@pytest.fixture(scope="module", params=[fc.FairLogisticClassifier, fc.FairHingeClassifier])
def fitted(request):
    return request.param(kappa=0.05).fit(X, Y, sensitive_features=GROUPS)


@pytest.fixture(scope="module")
def skops():
    return pytest.importorskip("skops.io", reason="skops is not installed (extra 'deploy')")


def assert_equal_outputs(plain, model, X):
    """Assert that two models have the same scores, probabilities and predictions."""
    np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), atol=1e-12)
    assert np.array_equal(plain.predict(X), model.predict(X))
    assert hasattr(plain, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_converted_model_has_equal_predictions(fitted):
    plain = fitted.to_sklearn()
    before = fitted.decision_function(X)
    expected = LogisticRegression if hasattr(fitted, "predict_proba") else LinearSVC
    assert type(plain) is expected
    assert_equal_outputs(plain, fitted, X)
    assert_equal_outputs(plain, fitted, sp.csr_array(X))
    plain.coef_[:] = plain.intercept_[:] = 7.0  # it is a copy
    assert np.array_equal(fitted.decision_function(X), before)


def test_converted_model_has_the_attributes_of_a_fitted_one(fitted):
    plain = fitted.to_sklearn()
    real = clone(plain).set_params(max_iter=1_000_000).fit(X, Y)
    assert set(vars(plain)) == set(vars(real))
    for name in ("coef_", "intercept_", "classes_"):
        assert getattr(plain, name).shape == getattr(real, name).shape
        assert getattr(plain, name).dtype == getattr(real, name).dtype
    assert plain.n_features_in_ == 4 and np.max(plain.n_iter_) == fitted.n_iter_


def test_names_and_labels_are_kept(frame):
    X, y = frame
    X = X.drop(columns="sex")
    fair = fc.FairLogisticClassifier().fit(X, y, sensitive_features=frame[0]["sex"])
    plain = fair.to_sklearn()
    assert plain.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert plain.classes_.tolist() == ["no", "yes"]
    assert_equal_outputs(plain, fair, X)


def test_hidden_column_has_zero_weight_or_is_left_out_and_a_visible_one_stays():
    whole = np.column_stack([X[:, :2], GROUPS, X[:, 2:]])
    fair = fc.FairLogisticClassifier(sensitive_columns=[2]).fit(whole, Y)
    assert_equal_outputs(fair.to_sklearn(), fair, whole)
    smaller = fair.to_sklearn(sensitive="leave_out")
    assert smaller.n_features_in_ == 4
    np.testing.assert_allclose(smaller.predict_proba(X), fair.predict_proba(whole), atol=1e-12)
    seen = clone(fair).set_params(use_sensitive=True).fit(whole, Y)
    assert_equal_outputs(seen.to_sklearn(sensitive="leave_out"), seen, whole)


def test_pipeline_drops_the_column_of_strings(frame):
    X, y = frame
    fair = make_pipeline(fc.FairLogisticClassifier(sensitive_columns=["sex"])).fit(X, y)
    plain = to_sklearn(fair, sensitive="leave_out")
    assert [name for name, _ in plain.steps] == ["columns", "fairlogisticclassifier"]
    assert_equal_outputs(plain, fair, X)
    assert_equal_outputs(plain, fair, X.assign(sex="not known"))


def test_pipeline_and_search(frame):
    X, y = frame
    codes = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((codes, ["sex"]), remainder=StandardScaler())
    pipeline = make_pipeline(columns, fc.FairLogisticClassifier(sensitive_columns=[0, 1]))
    search = GridSearchCV(pipeline, {"fairlogisticclassifier__kappa": [0.05]}, cv=2).fit(X, y)
    for sensitive in ("zero", "leave_out"):
        assert_equal_outputs(to_sklearn(search, sensitive=sensitive), search.best_estimator_, X)


def test_coefficients_per_group_cannot_be_converted():
    whole = np.column_stack([X, GROUPS])
    fair = fc.FairLogisticClassifier(sensitive_columns=[4], group_interactions=True).fit(whole, Y)
    with pytest.raises(ValueError, match="group_interactions=True: it has coefficients for each"):
        fair.to_sklearn()
    with pytest.raises(ValueError, match="deploy the model as it is"):
        to_sklearn(make_pipeline(StandardScaler(), fair))


def test_unsupported_models_raise():
    with pytest.raises(NotFittedError):
        fc.FairLogisticClassifier().to_sklearn()
    with pytest.raises(ValueError, match="pipeline that ends in one; found LogisticRegression"):
        to_sklearn(LogisticRegression().fit(X, Y))
    with pytest.raises(ValueError, match=r"'zero'.*'leave_out'"):
        fc.FairLogisticClassifier(None).fit(X, Y).to_sklearn(sensitive="drop")


def test_converted_model_has_no_untrusted_types(fitted, skops):
    saved = skops.dumps(make_pipeline(StandardScaler().fit(X), fitted.to_sklearn()))
    assert skops.get_untrusted_types(data=saved) == []
    assert_equal_outputs(skops.loads(saved)[-1], fitted, X)


OPTIONS = {
    **{name: {"solver": name} for name in fc.solvers.SOLVERS},
    "objects": {"constraint": fc.EqualizedOdds(0.1, against="overall"), "alpha": SCAD(0.02)},
    "list": {"constraint": ["demographic_parity", "roc_parity"], "domain": fc.domains.L1Ball(20.0)},
    "names": {"constraint": "partial_dp", "loss": "truncated_logistic"},
    "certificate": {"enforce": "decision", "confidence": 0.5, "kappa": 0.3, "max_iter": None},
    "oracle": {"solver": fc.solvers.IPC(oracle=fc.solvers.SwitchingSubgradient(max_iter=50))},
}


def test_functions_are_not_trusted(skops):
    exceptions = pytest.importorskip("skops.io.exceptions")
    whole = np.column_stack([X, GROUPS])
    fair = fc.FairLogisticClassifier(sensitive_columns=last_column).fit(whole, Y)
    with pytest.raises(exceptions.UntrustedTypesFoundException, match="last_column"):
        skops.loads(skops.dumps(fair), trusted=trusted_types())


def last_column(X):
    return np.asarray(X)[:, -1]


def test_onnx(fitted):
    convert = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    single = X.astype(np.float32)
    exported = convert.to_onnx(to_sklearn(fitted), single[:1])
    session = runtime.InferenceSession(exported.SerializeToString())
    labels, scores = session.run(None, {session.get_inputs()[0].name: single})[:2]
    assert np.array_equal(labels, fitted.predict(single))
    if hasattr(fitted, "predict_proba"):
        probabilities = np.array([[row[c] for c in fitted.classes_] for row in scores])
        np.testing.assert_allclose(probabilities, fitted.predict_proba(single), atol=1e-5)


NUMBERS = ("numbers", StandardScaler(), ["a", "b"])
TABLE = {
    "named": [NUMBERS, ("rest", "passthrough", ["sex"])],
    "mixed": [NUMBERS, ("rest", "passthrough", ["c", "sex", "d"])],
    "two": [("first", "passthrough", ["sex"]), NUMBERS, ("rest", "passthrough", ["d", "c"])],
    "remainder": [NUMBERS],
}


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("parts", TABLE)
def test_columns_that_are_only_passed_through_need_not_be_there(frame, parts, output):
    X, y = frame
    X = X.assign(sex=(X["sex"] == "m").astype(float))
    columns = ColumnTransformer(
        TABLE[parts],
        remainder="passthrough" if parts == "remainder" else "drop",
        verbose_feature_names_out=False,
    ).set_output(transform=output)
    made = columns.fit(X).get_feature_names_out().tolist()
    where = ["sex"] if output == "pandas" else [made.index("sex")]
    model = make_pipeline(columns, fc.FairLogisticClassifier(sensitive_columns=where))
    before = model.fit(X, y).decision_function(X)
    plain = to_sklearn(model, sensitive="leave_out")
    assert len(plain.steps) == 2
    assert_equal_outputs(plain, model, X)
    without = X.drop(columns="sex")
    np.testing.assert_allclose(plain.decision_function(without), before, atol=1e-12)
    assert plain[0].get_feature_names_out().tolist() == [one for one in made if one != "sex"]
    np.testing.assert_array_equal(model.decision_function(X), before)  # it is unchanged
    with pytest.raises(ValueError, match="columns are missing"):
        model.predict(without)


def test_columns_that_another_step_makes_are_selected(frame):
    X, y = frame
    codes = OneHotEncoder(sparse_output=False, drop="if_binary")
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (codes, ["sex"]))
    model = make_pipeline(columns, fc.FairLogisticClassifier(sensitive_columns=[-1])).fit(X, y)
    plain = to_sklearn(model, sensitive="leave_out")
    assert [name for name, _ in plain.steps][1] == "columns"
    assert_equal_outputs(plain, model, X)


def every_reason(model, rows, **options):
    """Return the contributions of all features, (n_rows, n_features), by name."""
    table = reasons(model, rows, n=100, **options)
    return table.set_index("feature", append=True)["contribution"].droplevel("rank").unstack()


@pytest.mark.parametrize("pos_label", [0, 1])
def test_reasons_of_linear_models_sum_to_the_difference_of_scores(pos_label):
    clf = fc.FairLogisticClassifier(kappa=0.1, pos_label=pos_label, threshold=0.4)
    clf.fit(X, Y, sensitive_features=GROUPS)
    sign = 1.0 if pos_label else -1.0
    scores, selected = sign * clf.decision_function(X), X[clf.predict(X) == pos_label]
    exact = sign * clf.coef_[0] * (X - selected.mean(axis=0))
    scores -= sign * clf.decision_function(selected).mean()
    np.testing.assert_allclose(exact.sum(axis=1), scores, atol=1e-9)
    plain = clf.to_sklearn()  # the model in it has no favourable class
    for model, given in ((clf, {}), (plain, {}), (plain.estimator, {"pos_label": pos_label})):
        parts = every_reason(model, X, reference=selected, **given)
        np.testing.assert_allclose(parts, exact, atol=1e-9)
    table = reasons(clf.sparsify(), X[:5], n=2, reference=selected)
    np.testing.assert_allclose(table["contribution"].loc[:, 1], exact[:5].min(axis=1), atol=1e-9)
    assert table["feature"].loc[3, 1] == exact[3].argmin() and len(table) == 10
    assert table["value"].loc[3, 1] == X[3, exact[3].argmin()]


def test_reasons_of_trees_pipelines_thresholds_and_hidden_columns():
    table = pd.DataFrame(X, columns=list("abcd")).assign(group=np.where(GROUPS == 1, "g", "h"))
    trees = fc.FairBoostingClassifier(n_estimators=10, sensitive_columns=["group"], random_state=0)
    trees.fit(table, Y)
    parts = every_reason(trees, table)
    assert parts.columns.tolist() == list("abcd")
    scores = trees.decision_function(table)
    np.testing.assert_allclose(parts.sum(axis=1), scores - scores.mean(), atol=1e-9)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    thresholds = fc.FairThresholds(pipeline)
    thresholds.fit(X, Y, sensitive_features=GROUPS)
    for model in (thresholds, fc.NeymanPearsonClassifier().fit(X, Y)):
        scores = model.decision_function(X)
        parts = every_reason(model, X)
        np.testing.assert_allclose(parts.sum(axis=1), scores - scores.mean(), atol=1e-9)
    table = table[list("abcd")]
    for last in (LogisticRegression(), FixedThresholdClassifier(LogisticRegression())):
        pipeline = make_pipeline(StandardScaler(), last).fit(table, Y)  # scaled rows are an array
        assert every_reason(pipeline, table).columns.tolist() == list("abcd")


def test_reasons_name_the_categories_of_trees():
    pytest.importorskip("lightgbm")
    size = np.where(X[:, 0] > 0.0, "small", "large").astype(object)
    size[:5] = None
    table = pd.DataFrame({"size": pd.Categorical(size), "b": X[:, 1]})
    trees = fc.FairBoostingClassifier(None, n_estimators=5, random_state=0).fit(table, Y)
    told = reasons(trees, table[:20], n=2).reset_index().set_index(["feature", "row"])["value"]
    assert told["size"].sort_index().isna().tolist() == [True] * 5 + [False] * 15
    assert told["size"].sort_index()[5:].tolist() == size[5:20].tolist()
    assert told["b"].sort_index().tolist() == X[:20, 1].tolist()


def test_reasons_that_are_not_known():
    several = fc.FairLogisticClassifier(None).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(TypeError, match="contributions to the scores of FairLogisticClassifier"):
        reasons(several, X)
    for other in (RandomForestClassifier(2, random_state=0), RFE(LogisticRegression())):
        with pytest.raises(TypeError, match=f"the scores of {type(other).__name__}"):
            reasons(other.fit(X, Y), X)
    with pytest.raises(ValueError, match="X is one row, which would be compared with itself"):
        reasons(fc.FairLogisticClassifier(None).fit(X, Y), X[:1])


def test_every_estimator_is_among_the_models():
    public = [getattr(fc, name) for name in fc.__all__]
    estimators = {one for one in public if hasattr(one, "fit")}
    assert estimators == {type(one) for one in MODELS.values()}


LOADED = MODELS | {
    name: fc.FairLogisticClassifier(**{"random_state": 0, "max_iter": 2, **options})
    for name, options in OPTIONS.items()
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", LOADED)
def test_a_fitted_estimator_is_loaded_with_its_parameters_and_result(name, skops):
    X, y, given = arguments(name) if name in MODELS else OF_CLASSIFIERS
    model = quietly(clone(LOADED[name]).fit, X, y, **given)
    saved = skops.dumps(model)
    booster = ["lightgbm.basic.Booster"] if "boost" in name else []
    assert set(skops.get_untrusted_types(data=saved)) - set(trusted_types()) == set(booster)
    loaded = skops.loads(saved, trusted=trusted_types() + booster)
    by_group = {key: given[key] for key in ("sensitive_features",) if model_needs_groups(model)}
    again = quietly(clone(loaded).fit, X, y, **given)
    for other in (loaded, again):
        predicted = other.predict(X, **by_group)
        np.testing.assert_array_equal(predicted, model.predict(X, **by_group))
    assert set(vars(loaded)) == set(vars(model))
    assert repr(loaded.get_params()) == repr(model.get_params())
    for result in ("status", "message", "trace") if hasattr(model, "result_") else ():
        assert getattr(loaded.result_, result) == getattr(model.result_, result)


def test_categories_and_names_of_groups_are_loaded(skops):
    X, y, given = OF_CLASSIFIERS
    towns = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(y)) % 3])
    table = pd.DataFrame(X).add_prefix("f").assign(town=towns)
    groups = pd.DataFrame({"one": given["sensitive_features"], "town": towns.astype(str)})
    model = fc.FairBoostingClassifier(**TREES).fit(table, y, **given)
    loaded = skops.loads(skops.dumps(model), trusted=[*trusted_types(), "lightgbm.basic.Booster"])
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    model = clone(MODELS["thresholds, per group"]).fit(X, y, sensitive_features=groups)
    loaded = skops.loads(skops.dumps(model), trusted=trusted_types())
    pd.testing.assert_series_equal(loaded.thresholds_, model.thresholds_)
