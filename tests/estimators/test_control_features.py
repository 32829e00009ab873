"""Groups that are compared within strata: `control_features` at every door."""

import numpy as np
import pandas as pd
import pytest
from _support.registry_of_objects import CONSTRAINTS
from fairlearn.metrics import demographic_parity_difference
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import fairconstrained as fc
from fairconstrained import metrics
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.models import LinearModel

N = 1500
# groups differ in two of three strata, in opposite directions
RNG = np.random.default_rng(0)
SEX = pd.Series(RNG.choice(["f", "m"], N), name="sex")
BAND = pd.Series(RNG.choice(["high", "low", "mid"], N), name="band")
X = RNG.normal(size=(N, 3))
X[:, 0] += 1.5 * ((BAND == "low") & (SEX == "f")) + 0.7 * ((BAND == "high") & (SEX == "m"))
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.5).astype(int)
GIVEN = {"sensitive_features": SEX, "control_features": BAND}


def gaps_within(values, strata=BAND, sex=SEX):
    """Return the difference of the mean values of two groups in each stratum."""
    by_cell = pd.Series(np.asarray(values)).groupby([strata.to_numpy(), sex.to_numpy()]).mean()
    return by_cell.unstack().diff(axis=1).iloc[:, -1].abs()


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: repr(one)[:40])
def test_a_constraint_is_on_each_stratum_as_on_its_rows_alone(constraint):
    if constraint.needs_queries or not constraint.needs_groups:
        pytest.skip("it is not on groups of rows of a classifier")
    groups = Groups.encode(fc.with_strata(SEX, BAND))
    data = TrainingData(X, 2.0 * Y - 1.0, np.array([0, 1]), groups, np.ones(N))
    weight = np.random.default_rng(1).normal(size=X.shape[1] + 1)
    model = LinearModel(X)

    def free(data, rows):
        return model.scores(weight)[slice(None) if rows is None else rows], data

    parts = constraint.parts(model, data, free)
    alone = []
    for name in ["high", "low", "mid"]:
        rows = np.flatnonzero(name == BAND)
        members = Groups.encode(SEX[rows])
        inside = TrainingData(X[rows], data.y[rows], data.classes, members, np.ones(len(rows)))
        scores, own = model.scores(weight)[rows], LinearModel(X[rows])
        (part,) = constraint.parts(own, inside, lambda data, _, s=scores: (s, data))
        alone.append((part.term, scores))
    assert len(parts) == len(alone)
    for part, (term, scores) in zip(parts, alone, strict=True):
        auxiliary = term.auxiliary_for(lambda w, t=term, s=scores: t.value(s, w))
        value = part.term.value(part.model.scores(weight), auxiliary)
        np.testing.assert_allclose(value, term.value(scores, auxiliary), atol=1e-12)
        assert part.model is model and all("band=" in str(name) for name in part.term.names)


OF_DECISIONS = [
    fc.FairLogisticClassifier(kappa=0.03, enforce="decision"),
    fc.FairLogisticClassifier("equalized_odds", kappa=0.1, enforce="decision"),
    fc.FairBoostingClassifier(kappa=0.03, enforce="decision", max_iter=20, random_state=0),
    fc.FairThresholds(fc.FairLogisticClassifier(None), kappa=0.03),
    fc.FairThresholds(fc.FairLogisticClassifier(None), kappa=0.03, per_group=True),
]


@pytest.mark.parametrize("estimator", OF_DECISIONS, ids=lambda one: repr(one)[:60])
def test_predictions_meet_the_bound_in_every_stratum(estimator):
    estimator.fit(X, Y, **GIVEN)
    predicted = estimator.predict(X, *[SEX] * getattr(estimator, "per_group", False))
    assert estimator.bound_met_
    assert estimator.groups_.tolist() == [
        f"{sex} | band={band}" for band in ("high", "low", "mid") for sex in ("f", "m")
    ]
    for rows in (Y == 0, Y == 1) if estimator.constraint == "equalized_odds" else (Y >= 0,):
        gaps = gaps_within(predicted[rows], BAND[rows], SEX[rows])
        assert gaps.max() <= estimator.kappa + 1e-12


def test_one_stratum_is_none_and_names_of_strata_do_not_matter():
    renamed = BAND.map({"high": "z", "mid": "b", "low": "c"}).rename(("of", 2))
    levels = pd.DataFrame({("of", "low"): BAND == "low", ("of", "high"): BAND == "high"})
    clf = fc.FairLogisticClassifier(kappa=0.02)
    strata = [None, np.zeros(N), BAND, renamed, levels]
    fits = [clone(clf).fit(X, Y, **GIVEN | {"control_features": one}) for one in strata]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)
    np.testing.assert_allclose(fits[2].coef_, fits[3].coef_, rtol=1e-5)
    np.testing.assert_allclose(fits[2].coef_, fits[4].coef_, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*(band=rare|found. none)")
def test_the_doors_of_model_selection():
    clf = fc.FairLogisticClassifier(kappa=0.02)
    fitted = clf.fit(X, Y, **GIVEN)
    path = fc.fairness_path(clf, X, Y, **GIVEN, kappas=[0.1, 0.02])
    np.testing.assert_allclose(path.coefs[-1], fitted.coef_.ravel(), rtol=1e-3, atol=1e-4)
    held = {f"{name}_val": values for name, values in GIVEN.items()} | {"X_val": X, "y_val": Y}
    measured = fc.fairness_path(clf, X, Y, **GIVEN, kappas=[0.1, 0.02], **held)
    gap = gaps_within(fitted.predict(X)).max()
    assert measured.validation["val_decision_gap"][-1] == pytest.approx(gap, abs=1e-3)
    held = {name: values[BAND != "low"] for name, values in held.items()}  # a stratum has no rows
    trees = fc.FairBoostingClassifier(n_estimators=3, n_jobs=1)
    path = fc.fairness_path(trees, X, Y, **GIVEN, kappas=[0.1], **held)
    rows = held["control_features_val"], held["sensitive_features_val"]
    gap = gaps_within(path.estimators[0].predict(held["X_val"]), *rows).max()
    assert path.validation["val_decision_gap"][0] == pytest.approx(gap)
    rare = {**GIVEN, "control_features": BAND.mask(BAND.index == 0, "rare")}  # not in every part
    searched = fc.FairLogisticClassifierCV(kappas=[0.1, 0.02], cv=KFold(3), max_gap=0.1)
    options = {"enforce": "decision", "confidence": 0.6, "random_state": 0}
    for each in (searched, fc.FairLogisticClassifier(kappa=0.3, **options)):
        assert each.fit(X, Y, **rare).groups_.tolist()[-1] == f"{SEX[0]} | band=rare"
    grid = GridSearchCV(clf, {"kappa": [0.1, 0.02]}, cv=KFold(3)).fit(X, Y, **GIVEN)
    assert grid.best_estimator_.groups_.tolist() == fitted.groups_.tolist()
    both, ones = {"sensitive_features": fc.with_strata(SEX, BAND)}, np.ones(N)
    for metric in (metrics.roc_parity_difference, demographic_parity_difference):
        score = fc.make_fairness_scorer(metric)(clf, X, Y, **both, sample_weight=ones)
        assert score == pytest.approx(-gaps_within(clf.predict(X)).max())


def test_reports_compare_within_strata():
    clf = fc.FairLogisticClassifier(kappa=0.02).fit(X, Y, **GIVEN)
    widest = gaps_within(clf.predict(X)).max()
    report = fc.fairness_report(clf, X, Y, SEX, control_features=BAND)
    assert report.constraints["decisions"].iloc[0] == pytest.approx(widest)
    assert len(report.to_frame("groups")) == 7
    assert "f | band=low" in report.to_html()
    table = fc.compare({"fair": clf}, X, Y, SEX, control_features=BAND)
    assert table["selection_rate_gap"].iloc[0] == pytest.approx(widest)


METRICS = [
    metrics.roc_parity_difference,
    metrics.partial_demographic_parity_difference,
    metrics.weak_partial_demographic_parity_difference,
    metrics.group_auc_difference,
    metrics.inter_group_auc_difference,
    metrics.intra_group_auc_difference,
    lambda y, s, **rows: metrics.predictive_parity_difference(y, s > 0.5, **rows),
]


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_the_largest_over_strata(metric):
    weight = np.random.default_rng(3).integers(1, 4, N)
    rows = [np.flatnonzero(name == BAND) for name in ("high", "low", "mid")]
    each = [metric(Y[r], X[r, 0], sensitive_features=SEX[r], sample_weight=weight[r]) for r in rows]
    assert metric(Y, X[:, 0], sample_weight=weight, **GIVEN) == pytest.approx(max(each))


def test_tables_of_rates_have_the_largest_gap_within_a_stratum():
    predicted = (X[:, 0] > 0).astype(int)
    gaps, within = metrics.rate_gaps(Y, predicted, **GIVEN), gaps_within(predicted)
    assert gaps.loc["selection_rate", "gap"] == pytest.approx(within.max())
    assert gaps.loc["selection_rate", "highest"].endswith(f"band={within.idxmax()}")
    assert len(metrics.group_rates(Y, predicted, **GIVEN)) == 7


def test_strata_with_groups_from_columns_and_on_dask():
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=SEX)
    named = fc.FairLogisticClassifier(kappa=0.02, sensitive_columns=["sex"])
    named.fit(frame, Y, control_features=BAND)
    fitted = fc.FairLogisticClassifier(kappa=0.02).fit(X, Y, **GIVEN)
    np.testing.assert_allclose(named.coef_[:, :3], fitted.coef_, rtol=1e-6)
    array = pytest.importorskip("dask.array")
    from fairconstrained import dask as on_dask

    parts = (array.from_array(np.asarray(values), chunks=500) for values in (X, Y, SEX, BAND))
    names, local = ["X", "y", *GIVEN], on_dask.FairLogisticClassifier(kappa=0.02)
    local.fit(**dict(zip(names, parts, strict=True)))
    np.testing.assert_allclose(local.coef_, fitted.coef_, rtol=1e-3, atol=1e-4)
    assert local.groups_[0] == "f | stratum=high"


WRONG_STRATA = [
    ({"control_features": BAND}, "there are no groups: pass sensitive_features"),
    ({"sensitive_features": SEX, "control_features": BAND[:-1]}, "control_features has 1499"),
    ({"sensitive_features": SEX, "control_features": BAND.where(BAND != "low")}, "control_"),
    ({**GIVEN, "sensitive_features": fc.with_strata(SEX, BAND)}, "sensitive_features has groups"),
]


@pytest.mark.parametrize(("given", "message"), WRONG_STRATA)
def test_strata_that_cannot_be_used(given, message):
    with pytest.raises(ValueError, match=message):
        fc.FairLogisticClassifier().fit(X, Y, **given)


@pytest.mark.filterwarnings("ignore:.* fewer than two groups have rows:UserWarning")
def test_strata_of_few_rows_or_of_one_label_are_named():
    few = BAND.mask(np.arange(N) < 12, "rare").mask((np.arange(N) < 12) & (Y == 1), "one")
    clf, vacuous = fc.FairLogisticClassifier("predictive_equality"), fc.VacuousConstraintWarning
    few_rows = pytest.warns(UserWarning, match="In the strata band=one, band=rare the")
    with few_rows, pytest.warns(vacuous, match="'group f . band=one . label 0', 'group m"):
        clf.fit(X, Y, sensitive_features=SEX, control_features=few)
