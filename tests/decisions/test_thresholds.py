"""Thresholds on given scores, against all thresholds that there are."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import milp
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairThresholds, constraints, make_biased_classification
from fairconstrained.data.groups import Groups
from fairconstrained.decisions import threshold_choices, threshold_search
from fairconstrained.models.trees import ThresholdModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem

LIMITS = (2.0, -1.0)
BANDED = {
    "demographic parity": [constraints.DemographicParity(0.15)],
    "equal opportunity": [constraints.EqualOpportunity(0.2)],
    "predictive equality": [constraints.PredictiveEquality(0.2)],
    "equalized odds": [constraints.EqualizedOdds(0.25)],
    "ratio": [constraints.DemographicParity(ratio=0.7)],
    "disparate impact": [constraints.DisparateImpact(0.8)],
    "balanced rate": [constraints.BalancedRate(r=0.8, beta=0.6)],
    "two constraints": [constraints.DemographicParity(0.2), constraints.EqualOpportunity(0.3)],
}
OTHERS = {
    "error rates": [constraints.ErrorRateParity(0.1)],
    "against overall": [constraints.DemographicParity(0.1, against="overall")],
    "minority": [constraints.MinorityRate(0.4)],
    "group loss": [constraints.BoundedGroupLoss(0.4)],
    "parity and errors": [constraints.DemographicParity(0.2), constraints.ErrorRateParity(0.1)],
}


def rows(seed, n=18, n_groups=3, *, ties=True, weighted=False):
    """Return scores, labels, groups and weights of few rows, with gaps that are too large."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % n_groups
    scores = rng.uniform(size=n) ** np.linspace(0.5, 2.0, n_groups)[groups]
    if ties:
        scores = scores.round(1)
    y = np.where(rng.uniform(size=n) < scores, 1.0, -1.0)
    y[:n_groups], y[n_groups : 2 * n_groups] = 1.0, -1.0
    return scores, y, groups, rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)


def task_of(rules, scores, y, groups, weight, *, per_group=True):
    codes = groups if per_group else np.zeros_like(groups)
    model = ThresholdModel(scores, codes, int(codes.max()) + 1, np.arange(len(y)))
    named = Groups.encode(groups)
    parts = [CompositeFunction(model, one.bind(y, named, weight)) for one in rules]
    wrong = CompositeFunction(model, threshold_search.wrong_predictions(y, weight))
    problem = Problem(wrong, tuple(parts))
    return threshold_search.ThresholdTask(problem, y, weight, LIMITS)


def best_of_all(task):
    """Return the largest accuracy of all thresholds that meet the constraints."""
    best = -np.inf
    model = task.problem.objective.model
    codes = range(model.n_thresholds)
    values = [np.append(-0.5, np.unique(model.given[model.codes == k])) for k in codes]
    for w in product(*values):
        at = task.problem.uncounted().at(np.array(w))
        if at.zero_one_violation == 0.0:
            best = max(best, 1.0 - at.objective)
    return best


@pytest.mark.cases(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BANDED | OTHERS)
def test_one_threshold_for_each_group_is_the_best(name, weighted):
    binding = 0
    for seed in range(6):
        task = task_of((BANDED | OTHERS)[name], *rows(seed, weighted=weighted))
        assert threshold_search.can_be_searched(task.choices) == (name in BANDED)
        found, best = task.search(), best_of_all(task)
        assert found.met == np.isfinite(best)
        if found.met:
            at = task.problem.at(found.w)
            assert at.zero_one_violation == 0.0
            assert found.accuracy == pytest.approx(1.0 - at.objective, abs=1e-12)
            assert found.accuracy == pytest.approx(best, abs=1e-9)
            near = 1e-8 if name in BANDED else 1e-6
            assert found.accuracy_bound == pytest.approx(best, abs=near)
            binding += found.accuracy < found.accuracy_unconstrained - 1e-9
    if name != "group loss":  # the most accurate thresholds have the least error in every group
        least = 1 if weighted and name in OTHERS else 2
        assert binding >= least, "the constraint should cost accuracy"


@pytest.mark.parametrize("rule", [*(BANDED | OTHERS).values(), [constraints.PredictiveParity(0.1)]])
def test_a_single_threshold_is_the_best(rule):
    for seed in range(4):
        task = task_of(rule, *rows(seed, n=30), per_group=False)
        found, best = task.search(), best_of_all(task)
        assert found.met == np.isfinite(best)
        if found.met:
            assert [found.accuracy, found.accuracy_bound] == pytest.approx([best] * 2, abs=1e-12)


def test_many_rows_and_groups_are_proved_to_be_near_the_best():
    scores, y, groups, weight = rows(0, n=6000, n_groups=12, ties=False)
    found = task_of([constraints.EqualizedOdds(0.1)], scores, y, groups, weight).search()
    assert found.met and not found.constant
    assert found.accuracy_bound - found.accuracy <= 0.002
    assert found.accuracy_bound < found.accuracy_unconstrained - 0.001


def test_tightened_tasks_meet_smaller_tolerances():
    task = task_of([constraints.DemographicParity(0.2)], *rows(1, n=300, ties=False))
    shifts = np.linspace(0.05, 0.15, task.problem.n_constraints)
    (found,) = task.below(task.search(), [shifts])
    assert found.met
    at = task.problem.at(found.w)
    assert np.all(at.decided.constraints <= -shifts + 1e-9)


def test_thresholds_lie_between_scores_that_differ_by_one_ulp():
    low = 0.3
    high = np.nextafter(low, 1.0)
    scores, y = np.array([low, high, low, high]), np.array([-1.0, 1.0, -1.0, 1.0])
    groups, parity = np.array([0, 0, 1, 1]), constraints.DemographicParity(0.1)
    task = task_of([parity], scores, y, groups, np.ones(4))
    assert task.search().accuracy == 1.0


def test_rates_are_in_a_band_where_the_constraints_hold():
    rng = np.random.default_rng(0)
    for constraint in (
        constraints.DemographicParity(0.1),
        constraints.DisparateImpact(0.7),
        constraints.BalancedRate(0.9, 0.8),
    ):
        choices = task_of([constraint], *rows(0)).choices
        (band,) = choices.bands
        rates = rng.uniform(size=(choices.n_cells, 20))
        inside = rates.max(axis=0) <= band.top(rates.min(axis=0))
        assert_array_equal(inside, choices.violations(rates) <= 0.0)


def test_the_mixed_integer_programs_print_nothing(capfd, monkeypatch):
    X, y, groups = make_biased_classification(600, 4, gap=0.4, random_state=0)
    programs = []

    def counted(*given, **options):
        programs.append(milp(*given, **options))
        return programs[-1]

    monkeypatch.setattr(threshold_choices, "milp", counted)
    clf = FairThresholds(LogisticRegression(), constraints.MinorityRate(0.3), per_group=True, cv=2)
    clf.fit(X, y, sensitive_features=groups)
    assert programs and capfd.readouterr() == ("", "")
