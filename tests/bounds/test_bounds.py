"""No model that meets the constraints has an objective below the bound."""

from dataclasses import replace

import numpy as np
import pytest

import fairconstrained as fc
from fairconstrained.bounds import optimality_gap
from fairconstrained.bounds.branching import interpolated
from fairconstrained.bounds.fenchel import Box, class_bound
from fairconstrained.bounds.relaxation import Lagrangian
from fairconstrained.bounds.tables import Tables
from fairconstrained.constraints import BoundedGroupLoss, IntersectionalLossParity, ROCParity
from fairconstrained.functions import Hinge

pytestmark = [  # kappa is small for some constraints, and not used by others
    pytest.mark.filterwarnings("ignore::fairconstrained.InfeasibleConstraintWarning"),
    pytest.mark.filterwarnings("ignore::fairconstrained.InputWarning"),
]
CONSTRAINTS = ["demographic_parity", "equal_opportunity", "equalized_odds", "error_rate_parity"]
CONSTRAINTS += ["disparate_impact", BoundedGroupLoss(0.65), [CONSTRAINTS[0], "predictive_equality"]]


def rows(seed, n=150, n_features=1, round_to=None):
    source = np.random.default_rng(seed)
    groups = source.random(n) < 0.35
    X = source.normal(size=(n, n_features)) + 1.5 * groups[:, None]
    if round_to:
        X = np.round(X / round_to) * round_to
    chance = 1.0 / (1.0 + np.exp(-1.5 * X.sum(axis=1) + 0.3))
    return X, (source.random(n) < chance).astype(int), groups.astype(int), source.random(n) + 0.5


def fitted(constraint, data, **options):
    X, y, groups, weights = data
    model = fc.FairLogisticClassifier(constraint, **{"kappa": 0.03, "alpha": 1e-2, **options})
    model.fit(X, y, weights, sensitive_features=groups)
    problem = model.bind(X, y, weights, groups).problem
    return model, problem, problem.at(model.result_.w)


def of_a_grid(problem, at):
    """Return the points of a grid, and the least objective of those that violate no more."""
    slopes, intercepts = np.meshgrid(np.linspace(-4, 4, 41), np.linspace(-6, 6, 41))
    points = [problem.at(np.array(w)) for w in zip(slopes.ravel(), intercepts.ravel(), strict=True)]
    feasible = [point.objective for point in points if point.violation <= at.violation]
    return points, min([at.objective, *feasible])


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("round_to", [None, 0.5])
def test_no_point_of_a_grid_is_below_the_bound(constraint, round_to):
    model, problem, at = fitted(constraint, rows(1, round_to=round_to))
    _, best = of_a_grid(problem, at)
    gap = optimality_gap(at, model.multipliers_, stop=0.0).gap
    assert at.objective * (1.0 - gap) <= best
    source = np.random.default_rng(0)
    lagrangian = Lagrangian.of(at, np.arange(problem.n_constraints))
    for each in (lagrangian, lagrangian.pooled()):
        for _ in range(20):
            multipliers = source.exponential(size=problem.n_constraints)
            w = at.w + source.normal(size=2)
            assert each.relaxed(multipliers).at(w).bound <= best


RELAXED = [
    ("demographic_parity", {}),
    ("equalized_odds", {"surrogate": fc.functions.Sigmoid(0.3)}),
    ("demographic_parity", {"surrogate": "ramp"}),
    ("equal_opportunity", {"threshold": 0.3}),
    (ROCParity(thresholds=[-1.0, 0.0, 2.0]), {}),
    ("error_rate_parity", {"loss": "squared_hinge"}),
    ("demographic_parity", {"loss": "quadratic"}),
    ("demographic_parity", {"loss": "hinge"}),
    ("bounded_group_loss", {"loss": "hinge", "kappa": 0.8}),
]


@pytest.mark.parametrize(("constraint", "options"), RELAXED, ids=str)
def test_no_point_of_a_grid_is_below_the_bound_of_tables(constraint, options):
    model, problem, at = fitted(constraint, rows(1), **options)
    points, best = of_a_grid(problem, at)
    source, every = np.random.default_rng(0), np.arange(problem.n_constraints)
    for exact in (False, True):
        tables = Tables.of(at, every, exact=exact)
        for scale in (0.0, 1e-2, 1.0):
            multipliers = scale * source.exponential(size=problem.n_constraints)
            relaxed = tables.relaxed(multipliers)
            bound = relaxed.at(at.w + 0.1 * source.normal(size=2)).bound
            assert bound <= best
            lagrangian = min(p.objective + multipliers @ p.values(every) for p in points)
            assert bound <= lagrangian - at.violation * multipliers.sum() + 1e-12
    gap = optimality_gap(at, model.multipliers_, stop=1e-4).gap
    assert at.objective * (1.0 - gap) <= best
    assert gap < 0.5


@pytest.mark.parametrize("constraint", [*CONSTRAINTS[:5], CONSTRAINTS[6]], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_model_of_several_classes_is_below_the_bound(constraint, fit_intercept):
    X, _, groups, weights = rows(7, n=90, n_features=2)
    source = np.random.default_rng(0)
    y = np.argmax(X @ source.normal(size=(2, 3)) + source.gumbel(size=(90, 3)), axis=1)
    data = X, y, groups, weights
    options = {"kappa": 0.1, "fit_intercept": fit_intercept}
    model, problem, at = fitted(constraint, data, **options)
    gap = optimality_gap(at, model.multipliers_, stop=0.0).gap
    starts = source.normal(size=(3, len(at.w))) * [[0.5], [1.0], [3.0]]
    others = [model.result_.solver.minimize(problem, start) for start in starts]
    others = [other.objective for other in others if other.violation <= at.violation + 1e-9]
    assert at.objective * (1.0 - gap) <= min([at.objective, *others]) + 1e-9
    # at any multipliers and from any point
    for scale in (0.1, 10.0):
        multipliers = scale * source.exponential(size=problem.n_constraints)
        there = problem.at(at.w + 0.1 * source.normal(size=len(at.w)))
        bound, _ = class_bound(there, multipliers, 20.0, lambda bound: False)
        assert bound <= min([at.objective, *others]) or at.violation > there.violation


def test_several_classes_with_small_multipliers_are_the_best():
    source = np.random.default_rng(1)
    groups = source.integers(2, size=600)
    X = source.normal(size=(600, 3)) + 0.5 * groups[:, None] * [1, 0, 0]
    y = np.argmax(X + source.gumbel(size=(600, 3)), axis=1)
    model, *_ = fitted("demographic_parity", (X, y, groups, np.ones(600)), tol=1e-7, kappa=0.08)
    assert model.multipliers_.max() > 0.01
    assert "globally optimal" in str(model.result_)


def test_tables_and_closed_forms_agree():
    model, problem, at = fitted("equalized_odds", rows(2, n=400))
    chosen = np.arange(problem.n_constraints)
    for scale in (0.1, 1.0, 5.0):
        multipliers = scale * model.multipliers_
        closed = Lagrangian.of(at, chosen).relaxed(multipliers).at(at.w)
        table = Tables.of(at, chosen, exact=True).relaxed(multipliers).at(at.w)
        assert table.value == pytest.approx(closed.value, rel=1e-3)
        np.testing.assert_allclose(table.gradient, closed.gradient, atol=1e-3)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_no_point_of_a_box_is_below_its_bound(constraint):
    _, problem, at = fitted(constraint, rows(1))
    plain = replace(problem.models[0], X=problem.models[0].X, shift=None, scale=None)
    lagrangian = replace(Lagrangian.of(at, np.arange(problem.n_constraints)), model=plain)
    grid = interpolated(lagrangian, np.ones(1), 0.3)
    assert grid.model.n_rows < lagrangian.model.n_rows
    source = np.random.default_rng(0)
    for _ in range(20):
        multipliers = source.exponential(size=problem.n_constraints)
        middle, width = source.normal(size=2), source.exponential(size=2) * 0.5
        box = Box(middle - width, middle + width)
        values = []
        for w in middle + width * source.uniform(-1.0, 1.0, size=(50, 2)):
            scores = plain.scores(w)
            up, down = np.logaddexp(0.0, -scores), np.logaddexp(0.0, scores)
            p, q, c, level = lagrangian.combined(multipliers)
            value = p @ up + q @ down + c @ (1.0 / (1.0 + np.exp(-scores))) + level
            values.append(value + lagrangian.penalty.value(w))
        for each in (lagrangian, grid):
            point = each.relaxed(multipliers, box).at(middle)
            assert point.bound <= min(values) + 1e-12


def test_a_solution_with_small_multipliers_is_the_best():
    X, y, groups = fc.make_biased_classification(2000, gap=0.06, random_state=0)
    model = fc.FairLogisticClassifier(None, tol=1e-7).fit(X, y)
    chances = model.predict_proba(X)[:, 1]
    gap = abs(chances[groups == 1].mean() - chances[groups == 0].mean())
    constrained = fc.FairLogisticClassifier(kappa=0.98 * gap, tol=1e-7)
    model = constrained.fit(X, y, sensitive_features=groups)
    assert model.gap_ == pytest.approx(model.kappa, abs=1e-6)
    assert model.optimality_gap_ < 1e-5
    assert "globally optimal" in str(model.result_)
    assert "globally optimal" in model.result_._repr_html_()


def test_the_gap_depends_on_no_unit():
    X, y, groups, weights = rows(3, n=400, n_features=3)
    units = np.array([1e3, 1.0, 1e-3])
    gaps = []
    for data in (
        (X, y, groups, weights),
        (X * units, y, groups, 7.0 * weights),
        (X[::-1], y[::-1], 1 - groups[::-1], weights[::-1]),
    ):
        model, _, at = fitted("equalized_odds", data, tol=1e-6)
        gaps.append(optimality_gap(at, model.multipliers_, stop=0.0).gap)
    np.testing.assert_allclose(gaps, gaps[0], rtol=0.05)


def test_a_violating_point_is_compared_with_those_that_violate_no_more():
    data = rows(5, n=200)
    _, problem, at = fitted("demographic_parity", data, kappa=0.05)
    (part,) = problem.constraints
    stricter = problem.with_constraints([part.shifted(0.04)]).at(at.w)
    multipliers = np.array([0.3, 0.0])
    same = [optimality_gap(one, multipliers, stop=1.0).gap for one in (at, stricter)]
    assert stricter.violation == pytest.approx(0.04, abs=1e-4)
    assert same[0] == pytest.approx(same[1], abs=1e-4)


def test_leaf_values_are_compared_given_the_trees():
    X, y, groups = fc.make_biased_classification(600, random_state=0)
    model = fc.FairBoostingClassifier(n_estimators=20, kappa=0.05)
    model.fit(X, y, sensitive_features=groups)
    assert 0.0 <= model.optimality_gap_ < 0.5
    assert "model of the same trees" in str(model.result_) or model.optimality_gap_ <= 1e-5


def test_the_last_layer_of_a_network_is_compared_given_the_others():
    from fairconstrained import FairNetworkClassifier
    from fairconstrained.estimators.network_training import last_layer, refit
    from fairconstrained.solvers.base import Start

    X, y, groups = fc.make_biased_classification(600, gap=0.1, random_state=0)
    model = FairNetworkClassifier(kappa=0.03, hidden_layer_sizes=(6,), random_state=0)
    model.fit(X, y, sensitive_features=groups)
    assert "network with the same hidden layers" in str(model.result_)
    fit = model.bind(X, y, None, groups)
    problem, start, _ = last_layer(fit.problem, model.weights_)
    best = refit(problem, Start(start), 1e-6)
    objective = problem.at(start).objective
    assert best.violation <= 1e-6
    assert best.objective < objective
    for gap in (model.optimality_gap_, model.certify(X, y, sensitive_features=groups).gap):
        assert objective * (1.0 - gap) <= best.objective
        assert gap < 0.3


def test_certify_goes_further_and_keeps_what_it_proved(capsys):
    X, y, groups = fc.make_biased_classification(400, n_features=2, gap=0.2, random_state=0)
    model = fc.FairLogisticClassifier(kappa=0.02, verbose=0).fit(X, y, sensitive_features=groups)
    before, coef = model.optimality_gap_, model.coef_
    assert before > 0.1
    model.verbose = 1
    gap = model.certify(X, y, sensitive_features=groups, gap=0.05, seconds=60.0)
    assert "optimality gap" in capsys.readouterr().out
    assert model.optimality_gap_ == gap.gap <= 0.05
    assert str(gap) == model.result_.optimality
    assert model.coef_ is coef
    attributes = dict(vars(model))
    weaker = model.certify(X, y, sensitive_features=groups, gap=0.9)
    assert model.optimality_gap_ == gap.gap < weaker.gap
    with pytest.raises(ValueError, match="needs the rows that the model was fitted to"):
        model.certify(X[::-1], y, sensitive_features=groups)
    with pytest.raises(ValueError, match="one group per row"):
        model.certify(X[:, :1], y, sensitive_features=groups[:5])
    assert vars(model) == attributes
    with pytest.raises(ValueError, match="'seconds' parameter of certify"):
        model.certify(X, y, sensitive_features=groups, seconds=0.0)
    decided = fc.FairLogisticClassifier(enforce="decision").fit(X, y, sensitive_features=groups)
    assert "enforce='decision'" in str(decided.certify(X, y, sensitive_features=groups))
    share = fc.FairLogisticClassifier(threshold=fc.SelectionRate(0.3))
    share.fit(X, y, sensitive_features=groups)  # its threshold follows the scores
    assert share.certify(X, y, sensitive_features=groups, gap=0.9).gap == share.optimality_gap_


def test_losses_that_are_subtracted_have_bounds_without_a_warning():
    source = np.random.default_rng(0)
    X, percentages = source.integers(0, 2, (600, 3)).astype(float), source.random((600, 2)).round(1)
    y = (source.random(600) < 0.05 * (1.0 + X[:, 0] + percentages[:, 0])).astype(int)
    parity = IntersectionalLossParity(0.0, loss="logistic", membership="thresholds", thresholds=3)
    model = fc.FairLogisticClassifier(parity).fit(X, y, sensitive_features=percentages)
    assert "not above zero" in model.optimality_gap_reason_


WITHOUT_A_BOUND = [
    (fc.FairLogisticClassifier(loss="truncated_logistic"), "the loss is not a convex function"),
    (fc.FairHingeClassifier(loss=type("K", (Hinge,), {"kinks": ()})(), tol=1.0), "has no bound"),
    (fc.FairLogisticClassifier(alpha=0.0), "the penalty is neither L2 nor elastic net"),
    (fc.FairLogisticClassifier(enforce="decision"), "enforce='decision'"),
    (fc.FairLogisticClassifier(goal="fairness"), "goal='fairness'"),
    (fc.FairLogisticClassifier("partial_dp"), "constraints are not on averages"),
    (fc.FairLogisticClassifier(bound=False), "not asked for"),
]


@pytest.mark.parametrize(("model", "reason"), WITHOUT_A_BOUND, ids=str)
def test_where_no_bound_is_known_the_reason_is_said(model, reason):
    X, y, groups = fc.make_biased_classification(300, gap=0.1, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    assert model.optimality_gap_ is None
    assert reason in model.optimality_gap_reason_
    assert "above that of the best" not in str(model.result_)


def test_the_bound_does_not_change_the_model_and_paths_state_it_when_asked():
    X, y, groups = fc.make_biased_classification(300, gap=0.1, random_state=0)
    models = [
        fc.FairLogisticClassifier(bound=bound).fit(X, y, sensitive_features=groups)
        for bound in (True, False)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].result_.data_passes == models[1].result_.data_passes
    options = {"sensitive_features": groups, "n_kappas": 3, "min_ratio": 0.5}
    path = fc.fairness_path(fc.FairLogisticClassifier(), X, y, **options)
    assert path.estimators[0].optimality_gap_ is None
    assert np.isnan(path.optimality_gaps).all()
    stated = fc.fairness_path(fc.FairLogisticClassifier(), X, y, bound=True, **options)
    np.testing.assert_array_equal(stated.coefs, path.coefs)
    assert stated.optimality_gaps[0] < 0.01
    assert "best" in str(stated.estimators[-1].result_) or stated.optimality_gaps[-1] < 1e-5
    for bound in (False, True):
        chosen = fc.FairLogisticClassifierCV(kappas=[0.1], max_gap=1.0, cv=2, bound=bound)
        chosen.fit(X, y, sensitive_features=groups)
        assert (chosen.optimality_gap_ is not None) == bound


def test_rows_that_are_read_by_atom_have_the_same_gap(monkeypatch):
    X, y, groups = fc.make_biased_classification(3000, gap=0.06, random_state=0)
    model, gaps = fc.FairLogisticClassifier(kappa=0.05, tol=1e-6), []
    for many in (10_000, 1_000):
        monkeypatch.setattr("fairconstrained.data.validation.MANY_ROWS", many)
        at = model.bind(X, y, sensitive_features=groups).problem.at(
            model.fit(X, y, sensitive_features=groups).result_.w
        )
        assert at.problem.models[0].in_memory == (many > 3000)
        gaps.append(optimality_gap(at, model.multipliers_, stop=0.0).gap)
    assert gaps[0] == pytest.approx(gaps[1], rel=0.1, abs=1e-5)
