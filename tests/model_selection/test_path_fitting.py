"""The frontier: its points are those of single fits, certified, cheap, and independent of order."""

from dataclasses import replace

import numpy as np
import pytest
from _support.gaps import divided, gap_of
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairconstrained as fc
from fairconstrained import constraints
from fairconstrained.estimators.fit import Fit

DATA = X, Y, GROUPS = fc.make_biased_classification(1000, 6, gap=0.4, random_state=0)


def path_of(estimator=None, rows=(X, Y, GROUPS), **options):
    X, y, groups = rows
    estimator = estimator or fc.FairLogisticClassifier()
    return fc.fairness_path(estimator, X, y, sensitive_features=groups, **options)


def held_out(data, estimator, first=400, **options):
    """Return the path of the rows from `first` on, which is measured on the others."""
    rows = dict(zip(("X", "y", "sensitive_features"), data, strict=True))
    return fc.fairness_path(estimator, **divided(np.arange(first), **rows), **options)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_points_are_those_of_single_fits_at_two_passes_each(constraint):
    path = path_of(fc.FairLogisticClassifier(constraint), n_kappas=6)
    assert set(path.statuses) == {"converged"}
    for k, kappa in enumerate(path.kappas):
        single = fc.FairLogisticClassifier(constraint, kappa=kappa)
        single.fit(X, Y, sensitive_features=GROUPS)
        assert path.objectives[k] == pytest.approx(single.objective_, rel=1e-4)
        assert path.violations[k] <= 1e-4 and path.kkt_residuals[k] <= 1e-4
        assert path.gaps[k] <= kappa + 1e-4
    cheap = path_of(fc.FairLogisticClassifier(constraint))
    assert len(cheap) == 30 and set(cheap.statuses) == {"converged"}
    assert cheap.data_passes.sum() <= 2.2 * len(cheap)


def test_it_begins_where_the_constraint_stops_binding():
    path = path_of(n_kappas=5)
    free = fc.FairLogisticClassifier(None).fit(X, Y)
    assert path.objectives[0] == pytest.approx(free.objective_, rel=1e-4)
    assert path.kappas[0] == pytest.approx(path.gaps[0], abs=1e-3)
    assert path.kappas[-1] == pytest.approx(0.01 * path.kappas[0])
    assert path.multipliers[-1].max() > 0.1 > path.multipliers[0].max()
    assert np.all(np.diff(path.objectives) > -1e-4), "a smaller kappa costs more"
    assert np.all(np.diff(path.kappas) < 0)


# Constraints that have no kappa say so; the others all have a path.
@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_constraint_that_has_a_kappa_has_a_path(name):
    X, y, groups = (part[:200] for part in DATA)
    estimator = fc.FairLogisticClassifier(name, alpha=1e-2)
    try:
        path = path_of(estimator, (X, y, groups), n_kappas=3, min_ratio=0.5)
    except ValueError as error:
        assert "does not take its tolerance" in str(error) or "needs" in str(error)
        parameters = fc.constraints.CLASSIFIER_CONSTRAINTS[name]().get_params()
        assert "kappa" not in parameters or name == "disparate_impact"
        return
    single = fc.FairLogisticClassifier(name, kappa=path.kappas[1], alpha=1e-2)
    single.fit(X, y, sensitive_features=groups)
    if single.result_.converged and path.statuses[1] == "converged":
        assert path.objectives[1] <= single.objective_ * 1.01
        assert path.violations[1] <= 1e-4


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_no_point_is_worse_than_a_stricter_one(monkeypatch):
    """Points that end at another local optimum are solved again from the next one."""
    rows = fc.make_biased_classification(300, 4, gap=0.3, random_state=0)
    kappas = [0.2, 0.1, 0.05]
    right = path_of(rows=rows, kappas=kappas)
    original, calls = Fit.solve, []

    def ends_badly_at_first(self, **options):
        problem = self.problem
        calls.append(problem)
        result, at = original(self, **options)
        if len(calls) != 2:
            return result, at
        w = np.append(np.zeros(result.w.size - 1), -3.0)
        return replace(result, w=w, objective=problem.at(w).objective), problem.at(w)

    monkeypatch.setattr(Fit, "solve", ends_badly_at_first)
    path = path_of(rows=rows, kappas=kappas)
    assert len(calls) == 4
    objectives = [one.objective_ for one in path.estimators]
    assert np.all(np.diff(objectives) >= 0.0)
    assert objectives == pytest.approx([one.objective_ for one in right.estimators], rel=1e-4)
    assert path.data_passes[1] > right.data_passes[1]


def test_points_of_decisions_meet_their_bounds_and_none_is_less_accurate_than_a_stricter_one():
    rows = fc.make_biased_classification(300, 4, gap=0.3, random_state=2)
    estimator, kappas = fc.FairLogisticClassifier(enforce="decision"), [0.1, 0.05, 0.03, 0.02, 0.01]
    path = path_of(estimator, rows=rows, kappas=kappas)
    assert path.bounds_met.all() and np.all(path.decision_gaps <= path.kappas + 1e-12)
    assert np.all(np.diff(path.train_accuracy) <= 0.0) and path.train_accuracy[0] > 0.6


def test_validation_rows_are_measured():
    path = held_out(DATA, fc.FairLogisticClassifier(), n_kappas=12)
    X, y, groups = (part[:400] for part in DATA)
    for k in (0, 5, 11):
        model = path.estimator_at(k)
        decided, chance = model.predict(X), model.predict_proba(X)[:, 1]
        assert path.validation["val_accuracy"][k] == pytest.approx(model.score(X, y))
        assert path.validation["val_decision_gap"][k] == pytest.approx(gap_of(decided, groups))
        assert path.validation["val_gap"][k] == pytest.approx(gap_of(chance, groups))
        loss = -np.log(model.predict_proba(X)[np.arange(400), y]).mean()
        assert path.validation["val_loss"][k] == pytest.approx(loss)


def test_sensitive_columns_and_interactions():
    X, y, groups = (part[:400] for part in DATA)
    table = np.column_stack([X, groups])
    estimator = fc.FairLogisticClassifier(sensitive_columns=[-1], group_interactions=True)
    path = fc.fairness_path(estimator, table, y, n_kappas=3, X_val=table, y_val=y)
    assert path.coefs.shape == (3, 2, 7) and path.intercepts.shape == (3, 2)
    assert_allclose(path.validation["val_accuracy"], path.train_accuracy)
    assert_allclose(path.validation["val_gap"], path.gaps, atol=1e-9)


ARGUMENTS = [
    ({"kappas": [-0.1]}, "kappas must be a list of one or more finite numbers"),
    ({"kappas": []}, "kappas must be a list of one or more finite numbers"),
    ({"n_kappas": 1}, "'n_kappas' parameter of fairness_path"),
    ({"min_ratio": 1.5}, "'min_ratio' parameter of fairness_path"),
    ({"X_val": np.ones((3, 6))}, "need X_val and y_val"),
    ({"sensitive_features_val": [1]}, "need X_val and y_val"),
    ({"X_val": np.ones((3, 6)), "y_val": [0, 1]}, "one value per row of X_val"),
    ({"X_val": np.ones((2, 6)), "y_val": [0, 7]}, "y_val has the label 7, which is not among"),
    ({"X_val": np.ones((2, 6)), "y_val": [0, 1]}, "sensitive_features_val is missing"),
]
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
ESTIMATORS = [
    (fc.FairLogisticClassifier(None), "constraint=None has no tolerance"),
    (fc.FairLogisticClassifier(goal="fairness"), "set goal='accuracy'"),
    (fc.FairLogisticClassifier(fc.DemographicParity(0.1)), "leave kappa at None"),
    ("demographic_parity", "must be a FairLogisticClassifier"),
    (SCALED, "or a pipeline that ends in one; got LogisticReg"),
]
BAD = [(fc.FairLogisticClassifier(), *case) for case in ARGUMENTS]
BAD += [(estimator, {}, message) for estimator, message in ESTIMATORS]


@pytest.mark.cases(len(BAD))
@pytest.mark.parametrize(("estimator", "options", "message"), BAD)
def test_bad_arguments(estimator, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        path_of(estimator, **options)


def test_one_warning_for_all_points():
    estimator = fc.FairLogisticClassifier(solver="ssg", max_iter=2)
    with pytest.warns(fc.ConvergenceWarning, match="of the path's 4 points") as caught:
        path_of(estimator, n_kappas=4)
    assert sum(issubclass(one.category, fc.ConvergenceWarning) for one in caught) == 1


@pytest.mark.parametrize("memory", [False, True])
def test_of_a_pipeline_it_is_the_path_of_the_last_step_on_what_the_others_make(memory, tmp_path):
    before, last = StandardScaler().fit(X[100:]), fc.FairLogisticClassifier()
    pipeline = make_pipeline(StandardScaler(), last, memory=str(tmp_path) if memory else None)
    path = held_out(DATA, pipeline, first=100, n_kappas=3)
    scaled = before.transform(X), Y, GROUPS
    expected = held_out(scaled, last, first=100, n_kappas=3)
    assert_allclose(path.coefs, expected.coefs)
    assert_array_equal(path.validation["val_accuracy"], expected.validation["val_accuracy"])
    one = path.estimator_at(1)
    assert one.score(X[:100], Y[:100]) == path.validation["val_accuracy"][1]
    assert list(one.named_steps) == ["standardscaler", "fairlogisticclassifier"]
    with pytest.raises(NotFittedError):
        pipeline.predict(X)


def test_points_by_tolerance_and_by_position():
    kappas = [0.2, 0.1, 0.05, 0.02]
    path = path_of(kappas=kappas[::-1])
    for k, kappa in enumerate(kappas):
        assert path.estimator_at(kappa=kappa) is path.estimator_at(index=k) is path.estimators[k]
    assert path.estimator_at(kappa=0.07).kappa == 0.05  # within the bound
    assert path.estimator_at(kappa=1.0).kappa == 0.2
    assert path.estimator_at(kappa=0.05 - 1e-12).kappa == 0.05


ROWS, LABELS, MEMBERS = fc.make_biased_classification(300, n_features=4, gap=0.3, random_state=1)


class Squared(constraints.DemographicParity):
    """A constraint that declares nothing, and is bound anew."""

    subtracts_kappa = False

    def bind(self, y, groups, sample_weight):
        term = super().bind(y, groups, sample_weight)
        return replace(term, offset=term.offset**2)


FOLLOW = {
    name: (name, True) for name in constraints.CLASSIFIER_CONSTRAINTS if name != "disparate_impact"
}
OF_ITS_OWN = {  # constraints, and which outputs follow the kappa of the estimator
    "disparate_impact": ("disparate_impact", False),
    "declares nothing": (Squared(), True),
    "kappa": (constraints.DemographicParity(kappa=0.1), False),
    "ratio": (constraints.DemographicParity(ratio=0.8), False),
    "r": (constraints.BalancedRate(r=1.1), False),
    "bound": (constraints.BoundedGroupLoss(bound=0.6), False),
    "kappa of ranks": (constraints.PartialDemographicParity(kappa=0.1), False),
    "some": (
        [constraints.DemographicParity(), constraints.EqualizedOdds(kappa=0.3)],
        [True] * 2 + [False] * 4,
    ),
}
CONSTRAINTS = FOLLOW | OF_ITS_OWN


@pytest.mark.cases(len(CONSTRAINTS))
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_problem_is_the_one_bound_with_this_kappa(name):
    constraint, follows = CONSTRAINTS[name]
    base = fc.FairLogisticClassifier(constraint, kappa=0.0)
    strict = base.bind(ROWS, LABELS, None, MEMBERS)
    if name in OF_ITS_OWN:
        assert np.all((strict.tolerance_slopes != 0.0) == follows)
    for kappa in (0.0, 0.07, 0.4):
        bound = clone(base).set_params(kappa=kappa).bind(ROWS, LABELS, None, MEMBERS).problem
        w = bound.start()
        w[:5] = np.random.default_rng(1).normal(size=5)
        here, there = strict.with_kappa(kappa).problem.at(w), bound.at(w)
        assert_allclose(here.constraints, there.constraints, atol=1e-12)
        assert_allclose(here.gap, there.gap, atol=1e-12)
        weights = np.arange(1.0, 1.0 + bound.n_constraints)
        assert_allclose(here.gradient(weights), there.gradient(weights), atol=1e-12)
