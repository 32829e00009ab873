"""Linear classifiers on dask collections: the solution of the data in memory, lazily predicted."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import fairconstrained
from fairconstrained import ConstantDecisionWarning, SelectionRate, make_biased_classification
from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.dask import FairLogisticClassifier
from fairconstrained.objectives import PairwiseLoss

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")


N_ROWS = 3000
RANKS = {"partial_dp", "weak_partial_dp"}
IN_MEMORY = {"churn", "query_parity"}
NAMES = sorted(CONSTRAINTS.keys() - IN_MEMORY)


@pytest.fixture(scope="module")
def rows():
    """Rows in memory: features, labels, groups and weights."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.3, n_groups=3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)
    return np.asarray(X), np.asarray(y), np.asarray(groups), weight


def arrays(*values, chunks=700):
    return tuple(da.from_array(value, chunks=chunks) for value in values)


def frames(rows, n_partitions=4):
    """Return the rows as parts of one dask dataframe."""
    X, y, groups, weight = rows
    names = [f"x{k}" for k in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    table = table.assign(label=y, group=pd.Categorical(groups), weight=weight)
    table.index = pd.Index(np.arange(N_ROWS) + 10, name="id")
    frame = dd.from_pandas(table, npartitions=n_partitions)
    return frame[names], frame["label"], frame["group"], frame["weight"]


def fits(*rows, parts=None, kind=FairLogisticClassifier, **options):
    """Return the fits to collections and in memory of X, y, groups and perhaps weights."""
    X, y, groups, *weight = rows
    local = getattr(fairconstrained, kind.__name__)(**options)
    here = local.fit(X, y, *weight, sensitive_features=groups)
    dX, dy, dgroups, *dweight = arrays(*rows) if parts is None else parts
    return kind(**options).fit(dX, dy, *dweight, sensitive_features=dgroups), here


def assert_same_fit(there, here):
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-6)
    assert there.result_.status == here.result_.status
    assert there.kkt_residual_ == pytest.approx(here.kkt_residual_, abs=1e-6)
    np.testing.assert_allclose(there.multipliers_, here.multipliers_, atol=1e-5)
    assert there.gap_ == pytest.approx(here.gap_, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_every_constraint_has_the_solution_of_the_rows_in_memory(rows, name):
    given = {"ranks": (0.1, 0.4)} if name in RANKS else {}
    if name == "bounded_group_loss":
        given = {"bound": 0.7}
    there, here = fits(*rows, constraint=CONSTRAINTS[name](**given), kappa=0.05)
    if name in RANKS | {"roc_parity", "intersectional_loss"}:
        # the order of sums changes their paths within `tol`
        assert there.objective_ == pytest.approx(here.objective_, abs=1e-5)
        assert there.violation_ <= 1e-4
    else:
        assert_same_fit(there, here)
    # of ranks and pairs there are histograms
    precision = 0.01 if name in RANKS or name.endswith("auc") else 1e-6
    assert there.decision_gap_ == pytest.approx(here.decision_gap_, abs=precision)


@pytest.mark.parametrize("argument", range(4))
def test_masked_arrays(rows, argument):
    names = ("X", "y", "sensitive_features", "sample_weight")
    values = list(rows)
    mask = np.zeros(values[argument].shape, dtype=bool)
    mask[:5] = True
    values[argument] = np.ma.masked_array(values[argument], mask)
    dX, dy, dgroups, dweight = arrays(*values)
    with pytest.raises(ValueError, match=f"{names[argument]} (is a masked array|has missing)"):
        FairLogisticClassifier().fit(dX, dy, dweight, sensitive_features=dgroups)


@pytest.mark.parametrize("options", [{"goal": "fairness"}, {"solver": "plada"}])
def test_other_goals_and_solvers(rows, options):
    there, here = fits(*rows[:3], **options)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)


def test_scores_on_one_side_of_the_threshold_are_reported(rows):
    X, y, groups = arrays(*rows[:3])
    clf = FairLogisticClassifier(loss="auc", kappa=0.02)
    with pytest.warns(ConstantDecisionWarning, match="met in this way only"):
        clf.fit(X, y, sensitive_features=groups)
    assert clf.decision_gap_ == pytest.approx(0.0, abs=1e-12)
    assert "not in memory" in clf.certify(X, y, sensitive_features=groups).reason


def test_frames_with_an_index_and_categories(rows):
    X, (dX, *others) = rows[0], frames(rows)
    there, here = fits(*rows, parts=(dX, *others), constraint="equalized_odds")
    assert_same_fit(there, here)
    assert there.feature_names_in_.tolist() == list(dX.columns)
    assert isinstance(there.predict(dX), dd.Series)
    computed = there.predict(dX).compute()
    assert computed.index.tolist() == list(range(10, N_ROWS + 10))
    np.testing.assert_array_equal(computed, here.predict(X))
    probabilities = there.predict_proba(dX).compute()
    assert probabilities.columns.tolist() == here.classes_.tolist()
    np.testing.assert_allclose(probabilities, here.predict_proba(X), atol=1e-6)


def test_arrays_are_predicted_lazily_as_arrays(rows):
    X, y, _, weight = rows
    dX, dy, dgroups, dweight = arrays(*rows)
    model = FairLogisticClassifier().fit(dX, dy, sensitive_features=dgroups)
    local = model.to_local()
    assert type(local) is fairconstrained.FairLogisticClassifier
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        lazy = getattr(model, method)(dX)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == dX.chunks[0]
        np.testing.assert_allclose(lazy.compute(), getattr(local, method)(X))
    assert model.score(dX, dy, dweight) == pytest.approx(local.score(X, y, weight))
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), local.predict_proba(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_value_that_is_common_in_some_blocks_only_has_the_scale_of_all_rows(
    rows, form, class_weight
):
    X, y, groups, weight = rows
    order = np.argsort(X[:, 0], kind="stable")
    X, y, groups, weight = X[order], y[order], groups[order], weight[order]
    X = np.where(np.arange(N_ROWS)[:, None] < N_ROWS * np.linspace(0.3, 0.9, X.shape[1]), 2.0, X)
    dX, *others = arrays(X, y, groups, weight)
    parts = dX.map_blocks(form), *others
    there, here = fits(form(X), y, groups, weight, parts=parts, class_weight=class_weight)
    np.testing.assert_allclose(there.feature_scale_, here.feature_scale_, rtol=1e-9)
    assert not np.allclose(here.feature_scale_, X.std(axis=0), rtol=0.1)
    assert_same_fit(there, here)


def test_sensitive_columns_of_a_frame(rows):
    X, y, groups, _ = rows
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(group=groups)
    here = in_memory_classifier(sensitive_columns="group").fit(table, y)
    frame = dd.from_pandas(table.assign(label=y), npartitions=3)
    there = FairLogisticClassifier(sensitive_columns="group")
    there.fit(frame.drop(columns="label"), frame["label"])
    assert_same_fit(there, here)
    assert there.groups_.tolist() == here.groups_.tolist()
    predicted = there.predict(frame.drop(columns="label")).compute()
    np.testing.assert_array_equal(predicted, here.predict(table))


@pytest.mark.parametrize("combine", ["intersection", "marginal"])
def test_several_attributes_and_missing_groups(rows, combine):
    X, y, groups, _ = rows
    table = pd.DataFrame({"first": groups.astype(str), "second": np.arange(N_ROWS) % 2 == 0})
    table.loc[::50, "first"] = None
    options = {"combine": combine, "groups_missing": "ignore_in_constraint"}
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x").assign(label=y), npartitions=3)
    features, sensitive = frame.drop(columns="label"), dd.from_pandas(table, npartitions=3)
    there, here = fits(X, y, table, parts=(features, frame["label"], sensitive), **options)
    assert_same_fit(there, here)
    assert there.groups_.tolist() == here.groups_.tolist()
    with pytest.raises(ValueError, match=r"missing values in 60 of 3000 rows"):
        FairLogisticClassifier().fit(features, frame["label"], sensitive_features=sensitive)


def test_rows_of_weight_zero_and_partitions_without_rows(rows):
    assert_same_fit(*fits(*rows[:3], np.where(np.arange(N_ROWS) < 800, 0.0, rows[3])))


def test_chunks_along_columns_and_rows_are_brought_together(rows):
    chunks = (900, 3), 500, N_ROWS
    parts = [da.from_array(one, chunks=size) for one, size in zip(rows, chunks, strict=False)]
    assert_same_fit(*fits(*rows[:3], parts=parts))


def test_bad_collections(rows):
    X, y, groups, _ = rows
    dX, dy, dgroups = arrays(X, y, groups)
    model = FairLogisticClassifier()
    with pytest.raises(TypeError, match=r"y must be a dask array.*got ndarray"):
        model.fit(dX, y, sensitive_features=dgroups)
    with pytest.raises(TypeError, match=r"X must be a dask array"):
        model.fit(X, dy, sensitive_features=dgroups)
    with pytest.raises(ValueError, match=r"y has 2900 rows, X has 3000"):
        model.fit(dX, dy[:2900], sensitive_features=dgroups)
    with pytest.raises(ValueError, match="needs groups"):
        model.fit(dX, dy)
    with pytest.raises(ValueError, match=r"label.* 1 class|one class"):
        model.fit(dX, dy * 0, sensitive_features=dgroups)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(dX * np.nan, dy, sensitive_features=dgroups)
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x"), npartitions=2)
    with pytest.raises(ValueError, match=r"y has 5 partitions, X has 2"):
        model.fit(frame, dy, sensitive_features=dgroups)
    with pytest.raises(NotFittedError):
        model.predict(dX)
    fitted = model.fit(dX, dy, sensitive_features=dgroups)
    with pytest.raises(TypeError, match=r"X must be a dask array.*to_local"):
        fitted.predict(X)


NEED_ALL_ROWS = [
    (
        {"constraint": CONSTRAINTS["group_auc"](surrogate="sigmoid")},
        r"pairs of rows.*surrogate='quadratic'.*fairconstrained\.FairLogisticClassifier",
    ),
    ({"loss": PairwiseLoss("logistic")}, r"pairs of rows.*PairwiseLoss, loss='quadratic'"),
    ({"loss": "partial_auc"}, "not a sum over rows.*TopPairs"),
]


@pytest.mark.parametrize(("options", "message"), NEED_ALL_ROWS)
def test_options_that_need_all_rows_raise(rows, options, message):
    X, y, groups, _ = rows
    dX, dy, dgroups = arrays(X, y, groups)
    passed = None if "sensitive_columns" in options else dgroups
    with pytest.raises(ValueError, match=message):
        FairLogisticClassifier(**options).fit(dX, dy, sensitive_features=passed)


def test_a_path_follows_the_solutions_of_the_rows_in_memory(rows):
    X, y, groups, _ = rows
    given = {"sensitive_features": groups, "n_kappas": 4}
    here = fairconstrained.fairness_path(in_memory_classifier(), X, y, **given)
    dX, dy, dgroups = arrays(X, y, groups)
    given["sensitive_features"] = dgroups
    there = fairconstrained.fairness_path(FairLogisticClassifier(), dX, dy, **given)
    np.testing.assert_allclose(there.kappas, here.kappas, rtol=1e-6)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-4)
    np.testing.assert_allclose(there.train_accuracy, here.train_accuracy, atol=1e-3)
    assert isinstance(there.estimator_at(-1).predict(dX), da.Array)


COLUMN = {"group_interactions": True, "sensitive_columns": [0]}
OPTIONS = {
    "a share": {"threshold": SelectionRate(0.2)},
    "a share, parity of errors": {"threshold": SelectionRate(0.6), "constraint": "equalized_odds"},
    # paths differ by rounding, and end as near as tol
    "a share, ROC": {"threshold": SelectionRate(0.3), "constraint": "roc_parity", "tol": 1e-8},
    "a share of predictions": {"threshold": SelectionRate(0.3), "enforce": "decision"},
    "interactions": COLUMN,
    "interactions, features": COLUMN | {"use_sensitive": True, "constraint": "equalized_odds"},
    "interactions and a share": COLUMN | {"threshold": SelectionRate(0.4)},
    "interactions of predictions": COLUMN | {"enforce": "decision"},
}
X, Y, GROUPS = make_biased_classification(2500, gap=0.3, n_groups=3, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
DATA = np.column_stack([GROUPS, X]), Y, WEIGHT


@pytest.mark.parametrize("value", ["yes", 1, None, [True]])
def test_disk_is_a_switch(value):
    X, y, _ = (da.from_array(one, chunks=len(one)) for one in DATA)
    clf = FairLogisticClassifier(sensitive_columns=[0])
    clf.disk = value
    with pytest.raises(ValueError, match="disk must be True, False or 'auto'"):
        clf.fit(X, y)


def fitted(kind, options, X, y, weight):
    given = {"constraint": "demographic_parity", "kappa": 0.05, **options}
    sensitive = {} if "sensitive_columns" in given else {"sensitive_features": X[:, 0]}
    return kind(**given).fit(X, y, weight, **sensitive)


@pytest.mark.parametrize("name", ["interactions of predictions", "a share, ROC", "ranks"])
def test_few_rows_are_copied_and_have_the_fit_of_rows_in_memory(name, monkeypatch):
    monkeypatch.setattr("fairconstrained.dask.estimators.MOST_COLLECTED", len(Y))
    options = OPTIONS.get(name, {"constraint": "partial_dp", "enforce": "decision"})
    here = fitted(in_memory_classifier, options, *DATA)
    there = fitted(FairLogisticClassifier, options, *arrays(*DATA))
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert repr(there.decision_search_) == repr(here.decision_search_)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_options_that_read_the_rows_more_than_once_mean_the_same(name):
    here = fitted(in_memory_classifier, OPTIONS[name], *DATA)
    there = fitted(FairLogisticClassifier, OPTIONS[name], *arrays(*DATA))
    if "enforce" in OPTIONS[name]:
        assert there.decision_search_.met
        assert there.decision_gap_ <= 0.05 + 1e-9
        assert there.score(*map(da.from_array, DATA)) == pytest.approx(here.score(*DATA), abs=0.01)
    else:
        assert_same_fit(there, here)
        assert there.threshold_ == pytest.approx(here.threshold_, abs=1e-7)
        predicted = there.predict(da.from_array(DATA[0], chunks=900)).compute()
        np.testing.assert_array_equal(predicted, here.predict(DATA[0]))
        assert there.result_.data_passes == here.result_.data_passes
    rate = OPTIONS[name].get("threshold")
    if rate is not None:
        X, _, weight = DATA
        selected = weight @ (there.predict(da.from_array(X)).compute() == there.pos_label_)
        assert selected / weight.sum() == pytest.approx(rate.rate, abs=0.02 * rate.rate)
