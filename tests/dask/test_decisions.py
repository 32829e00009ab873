"""Decisions, their bounds, also in the population, and scores of rows in dask collections."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import fairconstrained
from fairconstrained import FairLogisticClassifier as in_memory_classifier
from fairconstrained import exceptions, make_biased_classification
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.dask import FairLogisticClassifier
from fairconstrained.decisions.held_out import claims_on_all

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")


N_ROWS = 1500
OPTIONS = {
    "partial_dp": {"ranks": (0.1, 0.4), "n_ranks": 3},
    "weak_partial_dp": {"ranks": (0.1, 0.4)},
    "roc_parity": {"n_thresholds": 5},
    "bounded_group_loss": {"bound": 0.3},
}
SLOW = {"partial_dp", "group_auc", "inter_group_auc", "intra_group_auc", "roc_parity"}
TESTABLE = [name for name, kind in CLASSIFIER_CONSTRAINTS.items() if not kind().cannot_be_tested]


def constraint(name):
    return CLASSIFIER_CONSTRAINTS[name](**OPTIONS.get(name, {}))


@pytest.fixture(scope="module")
def rows():
    """Rows in memory: features, labels, weights and groups."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.3, n_groups=3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_ROWS)
    return np.asarray(X), np.asarray(y), weight, np.asarray(groups)


def fewer(rows, name):
    """Return fewer rows and groups for constraints that take long."""
    if name not in SLOW:
        return rows
    X, y, weight, groups = (part[300:900] for part in rows)
    return X, y, weight, groups % 2


def fit_both(kind, rows, options, chunks=400):
    """Return the fit of the rows in memory and that of collections, with the warnings of each."""
    X, y, weight, groups = rows
    found = []
    for estimator, parts in (
        (getattr(fairconstrained, kind.__name__)(**options), rows),
        (kind(**options), [da.from_array(part, chunks=chunks) for part in rows]),
    ):
        X, y, weight, groups = parts
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(X, y, weight, sensitive_features=groups)
        # memory has soft labels as well, which may expect larger gaps on new rows
        kinds = {one.category for one in caught} - {exceptions.GeneralizationWarning}
        found.append((estimator, kinds))
    return found


def violation_in_memory(here, there, rows):
    """Return the violation of the collections' model on all rows, and its accuracy."""
    X, y, weight, groups = rows
    local = there.to_local()
    fit = here.bind(X, y, weight, sensitive_features=groups)
    w = fit.problem.start()
    variables = local._variables(fit)
    w[: len(variables)] = variables
    return fit.problem.at(w).zero_one_violation, local.score(X, y, weight)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", sorted(CLASSIFIER_CONSTRAINTS.keys() - {"churn"}))
def test_decisions_on_all_rows_meet_the_bound_as_in_memory(rows, name):
    options = {"constraint": constraint(name), "kappa": 0.1, "enforce": "decision"}
    rows = fewer(rows, name)
    (here, at_home), (there, elsewhere) = fit_both(FairLogisticClassifier, rows, options)
    violation, accuracy = violation_in_memory(here, there, rows)
    search = there.decision_search_
    assert search.met and here.decision_search_.met
    assert violation <= 1e-9
    assert search.accuracy == pytest.approx(accuracy, abs=1e-9)
    if name != "minority_rate":  # its search may end elsewhere where sums are rounded differently
        assert search.accuracy >= here.decision_search_.accuracy - 0.02
    better = search.accuracy > here.decision_search_.accuracy  # also where that is a constant
    assert elsewhere == at_home or (better and elsewhere < at_home)
    assert there.result_.data_passes == search.data_passes > search.data_passes_on_scores


ZERO = {"constraint": "demographic_parity", "kappa": 0.0}
TIGHT = CLASSIFIER_CONSTRAINTS["bounded_group_loss"](bound=0.01)
IMPOSSIBLE = {"constraint": TIGHT, "solver": "exact-penalty"}  # the default of collections


UNMET = {"constant": (ZERO, exceptions.ConstantDecisionWarning)}
UNMET["infeasible"] = (IMPOSSIBLE, exceptions.InfeasibleConstraintWarning)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", UNMET)
def test_warnings_and_violations_are_those_of_rows_in_memory(name):
    options, category = UNMET[name]
    X, y, groups = make_biased_classification(300, gap=0.6, n_groups=3, random_state=3)
    given = X, y, np.random.default_rng(0).uniform(0.5, 2.0, 300), groups
    options = {**options, "enforce": "decision"}
    fits = fit_both(FairLogisticClassifier, given, options, chunks=90)
    (here, at_home), (there, elsewhere) = fits
    assert category in at_home
    assert elsewhere == at_home
    assert there.decision_search_.constant == here.decision_search_.constant
    assert there.decision_search_.violation <= here.decision_search_.violation + 1e-9


@pytest.mark.cases(1)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
@pytest.mark.parametrize("chunks", [150, 400, N_ROWS])
def test_the_result_does_not_depend_on_the_partitions(rows, chunks, order):
    blocks = [np.array_split(part, 4) for part in rows]
    moved = [np.concatenate([part[k] for k in order]) for part in blocks]
    X, y, weight, groups = (da.from_array(part, chunks=chunks) for part in moved)
    model = FairLogisticClassifier(kappa=0.05, enforce="decision")
    model.fit(X, y, weight, sensitive_features=groups)
    X, y, weight, groups = rows
    whole = fairconstrained.FairLogisticClassifier(kappa=0.05, enforce="decision")
    whole.fit(X, y, weight, sensitive_features=groups)
    assert model.decision_gap_ <= 0.05 + 1e-9
    accuracy = whole.decision_search_.accuracy
    assert model.decision_search_.accuracy == pytest.approx(accuracy, abs=0.005)


SURE = {"enforce": "decision", "confidence": 0.9, "random_state": 0, "kappa": 0.1}


def fitted(rows, chunks=400, weighted=False, **options):
    X, y, weight, groups = (da.from_array(part, chunks=chunks) for part in rows)
    model = FairLogisticClassifier(**{**SURE, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConstantDecisionWarning)
        warnings.simplefilter("ignore", exceptions.InputWarning)  # kappa is not used by all
        model.fit(X, y, weight if weighted else None, sensitive_features=groups)
    return model, model.held_out_rows(X).compute()


@pytest.mark.cases(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TESTABLE)
def test_the_certificate_is_that_of_the_held_out_rows_in_memory(rows, name, weighted):
    options = {"constraint": constraint(name), "kappa": 0.3}
    rows = fewer(rows, name)
    model, held = fitted(rows, weighted=weighted, holdout=0.5, **options)
    X, y, weight, groups = rows
    weight = weight if weighted else np.ones(len(y))
    certificate, local = model.certificate_, model.to_local()
    assert certificate.n_held_out == held.sum()
    assert certificate.confidence == 0.9
    in_memory = fairconstrained.FairLogisticClassifier(options["constraint"], 0.3)
    data = in_memory.bind(X[held], y[held], weight[held], sensitive_features=groups[held]).data
    kept = in_memory.bind(X[~held], y[~held], weight[~held], sensitive_features=groups[~held])
    bound = [
        one.as_bound(part.term)
        for one, part in zip(kept.constraints, kept.problem.constraints, strict=True)
    ]
    claims = claims_on_all(bound, data)
    assert [one.name for one in claims] == certificate.names
    scores = local.decision_function(X[held])
    scores = scores if data.positions is None else scores[data.positions]  # few rows: sorted
    limits = np.array([c.limit(s, 0.1) for c, s in (one.given(scores) for one in claims)])
    if certificate.n_accepted:
        between = 0.02 if name == "partial_dp" else 1e-9
        assert np.all(certificate.bounds >= limits - 1e-9)
        np.testing.assert_allclose(certificate.bounds, limits, atol=between)
        assert certificate.certified


def test_the_draw_depends_on_seed_and_partition_only(rows):
    rows = [part[:450] for part in rows]
    options = {"kappa": 0.9, "chunks": 150}  # few steps of the search
    first, held = fitted(rows, **options)
    again, same = fitted(rows, **options)
    np.testing.assert_array_equal(same, held)
    np.testing.assert_array_equal(again.coef_, first.coef_)
    weight = np.where(np.arange(450) < 150, 0.0, 1.0)
    weighted = (*rows[:2], weight, rows[3])
    model, other = fitted(weighted, weighted=True, random_state=1, **options)
    assert np.any(other != held)
    assert len({tuple(held[start : start + 150]) for start in (0, 150, 300)}) == 3
    assert model.certificate_.n_held_out == np.sum(other & (weight > 0.0))


def test_rows_are_named_after_a_fit_with_confidence(rows):
    X, y, _, groups = (part[:300] for part in rows)
    table = pd.DataFrame(X).add_prefix("x").assign(label=y, group=groups)
    table.index = pd.Index(np.arange(300) + 7)
    frame = dd.from_pandas(table, npartitions=3)
    features = frame.drop(columns=["label", "group"])
    given = {"y": frame["label"], "sensitive_features": frame["group"]}
    model = FairLogisticClassifier(kappa=0.9).fit(features, **given)
    with pytest.raises(NotFittedError):
        model.held_out_rows(features)
    model.set_params(**{**SURE, "kappa": 0.9}).fit(features, **given)
    held = model.held_out_rows(features).compute()
    assert held.index.tolist() == table.index.tolist()
    assert held.sum() == model.certificate_.n_held_out
    with pytest.raises(TypeError, match="X must be a dask array"):
        model.held_out_rows(X)


def test_few_held_out_rows():
    X, y, groups = make_biased_classification(60, gap=0.3, random_state=0)
    parts = [da.from_array(np.asarray(part), chunks=20) for part in (X, y, groups)]
    model = FairLogisticClassifier(**{**SURE, "kappa": 0.01})
    with pytest.warns(exceptions.ConstantDecisionWarning, match="too few to show"):
        model.fit(parts[0], parts[1], sensitive_features=parts[2])
    assert model.decision_search_.constant
    with pytest.raises(ValueError, match="none are left for training, or none are held out"):
        model.set_params(holdout=1e-9).fit(parts[0], parts[1], sensitive_features=parts[2])


N_SCORED = 900
AT_700 = da.arange(N_SCORED, chunks=300) == 700


@pytest.fixture(scope="module")
def given():
    """A fitted model, and the features, labels and weights that it is scored on."""
    X, y, groups = make_biased_classification(N_SCORED, gap=0.3, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N_SCORED)
    X, y, groups, weight = (da.from_array(part, chunks=300) for part in (X, y, groups, weight))
    return FairLogisticClassifier().fit(X, y, sensitive_features=groups), X, y, weight


OTHER_LABELS = [
    (lambda y: y.astype(str), r"y has the label '0', which is not among the classes \[0, 1\]"),
    (lambda y: 2 * y - 1, r"y has the label -1, which is not among the classes \[0, 1\]"),
    (lambda y: da.where(AT_700, np.nan, y), "y has missing"),
]


@pytest.mark.parametrize(("change", "message"), OTHER_LABELS)
def test_labels_are_those_of_the_fit(given, change, message):
    model, X, y, _ = given
    with pytest.raises(ValueError, match=message):
        model.score(X, change(y))


WRONG_WEIGHTS = [
    (np.nan, "sample_weight contains NaN or infinity"),
    (np.inf, "sample_weight contains NaN or infinity"),
    (-1.0, "Negative values in data passed to `sample_weight`"),
]


@pytest.mark.parametrize(("value", "message"), WRONG_WEIGHTS)
def test_weights_are_finite_and_not_negative(given, value, message):
    model, X, y, weight = given
    with pytest.raises(ValueError, match=message):
        model.score(X, y, da.where(AT_700, value, weight))


def test_weights_may_be_zero_in_a_partition_but_not_in_all(given):
    model, X, y, weight = given
    kept = da.where(da.arange(N_SCORED, chunks=300) < 300, 0.0, weight)
    rows = (part[300:].compute() for part in (X, y, weight))
    assert model.score(X, y, kept) == pytest.approx(model.to_local().score(*rows))
    with pytest.raises(ValueError, match="sample_weight is zero for all of them"):
        model.score(X, y, 0.0 * weight)


def test_rows_in_another_order_are_an_error(given):
    _, X, y, _ = given
    table = pd.DataFrame(X.compute()).add_prefix("x").assign(label=y.compute())
    table.index = pd.Index([f"row {k:03d}" for k in range(N_SCORED)])
    frame = dd.from_pandas(table, npartitions=3)
    features, labels = frame.drop(columns="label"), frame["label"]
    model = FairLogisticClassifier().fit(features, labels, sensitive_features=frame["x0"] > 0.0)
    turned = labels.map_partitions(lambda part: part[::-1])
    with pytest.raises(ValueError, match="X and y have the same row labels in another order"):
        model.score(features, turned)


dask = pytest.importorskip("dask", reason="dask is not installed")
N_OF_TABLE = 600
ROWS, LABELS, MEMBERS = make_biased_classification(N_OF_TABLE, gap=0.3, n_groups=3, random_state=0)


def assert_same_groups_and_fit(there, here):
    assert there.groups_.tolist() == here.groups_.tolist()
    assert there.gap_ == pytest.approx(here.gap_, abs=1e-7)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


def partitions_with_columns(table, orders):
    """Return a dask dataframe whose partitions have these columns; the first names them for all."""
    places = np.array_split(np.arange(N_OF_TABLE), len(orders))
    pairs = zip(places, orders, strict=True)
    parts = [dask.delayed(table.iloc[rows][order]) for rows, order in pairs]
    return dd.from_delayed(parts, meta=table[orders[0]].iloc[:0], verify_meta=False)


def test_columns_of_groups_in_another_order_in_some_partitions():
    old = np.arange(N_OF_TABLE) % 3 == 0
    table = pd.DataFrame({"sex": MEMBERS == 0, "old": old, "other": LABELS == 0})
    here = in_memory_classifier(combine="marginal")
    here.fit(ROWS, LABELS, sensitive_features=table[["sex", "old"]])
    frame = pd.DataFrame(ROWS).add_prefix("x").assign(label=LABELS)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    given = frame.drop(columns="label"), frame["label"]
    there = FairLogisticClassifier(combine="marginal")
    orders = [["sex", "old"], ["old", "sex"], ["sex", "old"]]
    there.fit(*given, sensitive_features=partitions_with_columns(table, orders))
    assert_same_groups_and_fit(there, here)
    orders[1] = ["sex", "other"]
    with pytest.raises(ValueError, match=r"has the columns \['sex', 'other'\], and the groups"):
        there.fit(*given, sensitive_features=partitions_with_columns(table, orders))


def test_columns_that_a_function_returns_in_another_order():
    table, old = pd.DataFrame(ROWS).add_prefix("x"), np.arange(N_OF_TABLE) % 3 == 0
    table = table.assign(sex=MEMBERS == 0, old=old)

    def sensitive(part):
        swapped = len(part) and part.index[0] == N_OF_TABLE // 3
        return part[["old", "sex"] if swapped else ["sex", "old"]]

    options = {"combine": "marginal", "sensitive_columns": sensitive}
    here = in_memory_classifier(**options).fit(table, LABELS)
    frame = table.assign(label=LABELS)
    frame = partitions_with_columns(frame, [list(frame.columns)] * 3)
    there = FairLogisticClassifier(**options).fit(frame.drop(columns="label"), frame["label"])
    assert_same_groups_and_fit(there, here)
