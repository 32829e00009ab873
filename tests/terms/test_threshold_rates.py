"""Tests of averages at many thresholds: the fast ways against the formula, and ROC parity."""

import numpy as np
import pytest
from _support.problems import classification, reference
from _support.registry_of_objects import label
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import DemographicParity, ROCParity
from fairconstrained.functions.base import Parabola, SumFunction
from fairconstrained.functions.elementary import Identity, Indicator, PositivePart
from fairconstrained.functions.surrogates import Ramp, Sigmoid, SigmoidMinus, SigmoidPlus
from fairconstrained.metrics import roc_parity_difference
from fairconstrained.solvers import IDCA, IPC, AugmentedLagrangian, SwitchingSubgradient
from fairconstrained.solvers.interior_point import InteriorPoint
from fairconstrained.solvers.smoothing import Smoothing
from fairconstrained.terms._kernel_sums import FAST, Cells, kernel_sums
from fairconstrained.terms._kernel_sums.base import DirectSums, positions
from fairconstrained.terms._kernel_sums.piecewise import (
    LinearSums,
    ParabolaSums,
    RoundedSums,
    StepSums,
)
from fairconstrained.terms._kernel_sums.sigmoid import SigmoidSums
from fairconstrained.terms._kernel_sums.split_sigmoid import SigmoidMinusSums
from fairconstrained.terms.cell_means import cell_matrix

N_ROWS, N_CELLS, N_THRESHOLDS = 2000, 3, 40
FUNCTIONS = {
    Sigmoid(): SigmoidSums,
    Sigmoid(0.3): SigmoidSums,
    Sigmoid(6.0): SigmoidSums,
    Sigmoid(0.01): DirectSums,  # sums over bins would cost more
    SigmoidMinus(): SigmoidMinusSums,
    SigmoidMinus(0.3): SigmoidMinusSums,
    SigmoidMinus(0.01): DirectSums,
    SigmoidPlus(): FAST[SigmoidPlus],
    SigmoidPlus(6.0): FAST[SigmoidPlus],
    Ramp(): LinearSums,
    Ramp(2.5): LinearSums,
    PositivePart(-0.5, 2.0): LinearSums,
    Ramp().smoothed(0.3): RoundedSums,
    PositivePart(0.5).smoothed(0.1): RoundedSums,
    Parabola(0.7): ParabolaSums,
    Indicator(): StepSums,
    SumFunction(Sigmoid(0.4), Parabola(0.2)): FAST[SumFunction],
    SumFunction(PositivePart(), Parabola(0.2)).smoothed(0.2): FAST[SumFunction],
    Identity(): DirectSums,
}
EVERY = pytest.mark.parametrize("function", FUNCTIONS, ids=label)


def cells_of(kind, rng):
    """Return cells that hold every row, that leave some out, or that overlap."""
    weight = rng.uniform(0.5, 2.0, N_ROWS)
    matrix = cell_matrix(rng.integers(0 if kind == "all" else -1, N_CELLS, N_ROWS), weight, N_CELLS)
    if kind == "overlapping":
        matrix = (matrix + cell_matrix(rng.integers(-1, N_CELLS, N_ROWS), weight, N_CELLS)).tocsc()
    return Cells(matrix)


@EVERY
@pytest.mark.parametrize("kind", ["all", "some", "overlapping"])
@pytest.mark.parametrize("spread", [0.01, 3.0, 40.0])
def test_fast_sums_are_the_formula(function, kind, spread, rng):
    cells, scores = cells_of(kind, rng), spread * rng.normal(size=N_ROWS)
    thresholds = rng.permutation(np.linspace(-7.0, 8.0, N_THRESHOLDS))
    fast = kernel_sums(function, cells, scores, thresholds)
    exact = DirectSums(function, cells, scores, thresholds)
    change, u = rng.normal(size=N_ROWS), rng.normal(size=(N_CELLS, N_THRESHOLDS))
    if spread == 3.0:
        assert isinstance(fast, FUNCTIONS[function])
    size = max(1.0, spread**2)
    assert_allclose(fast.values(), exact.values(), atol=1e-12 * size)
    assert_allclose(fast.subgradient_error(), exact.subgradient_error(), atol=1e-13)
    assert_allclose(fast.push(change), exact.push(change), atol=1e-9)
    assert_allclose(fast.slopes(), exact.slopes(), atol=1e-9)
    assert_allclose(fast.pull(u), exact.pull(u), atol=1e-9)


@EVERY
def test_pull_is_the_adjoint_of_push(function, rng):
    cells, scores = cells_of("overlapping", rng), rng.normal(size=N_ROWS)
    sums = kernel_sums(function, cells, scores, np.linspace(-2.0, 2.0, N_THRESHOLDS))
    change, u = rng.normal(size=N_ROWS), rng.normal(size=(N_CELLS, N_THRESHOLDS))
    assert_allclose(np.sum(u * sums.push(change)), sums.pull(u) @ change, rtol=1e-9, atol=1e-9)


@given(
    scale=st.floats(0.05, 20.0),
    middle=st.floats(-50.0, 50.0),
    spread=st.floats(0.0, 30.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_sigmoids_are_right_to_the_proven_error(scale, middle, spread, seed):
    rng = np.random.default_rng(seed)
    cells = cells_of("all", rng)
    scores = middle + spread * rng.normal(size=N_ROWS)
    thresholds = rng.uniform(-30.0, 30.0, size=N_THRESHOLDS)
    function = Sigmoid(scale)
    fast = SigmoidSums(function, cells, scores, thresholds)
    exact = DirectSums(function, cells, scores, thresholds)
    assert_allclose(fast.values(), exact.values(), atol=1e-12)
    assert_allclose(fast.slopes(), exact.slopes(), atol=1e-9 / scale)


def test_scores_of_800_do_not_overflow(rng):
    cells, scores = cells_of("all", rng), rng.choice([-800.0, 0.1, 800.0], size=N_ROWS)
    thresholds = np.linspace(-1.0, 1.0, N_THRESHOLDS)
    for function in (Sigmoid(), Ramp()):
        fast = kernel_sums(function, cells, scores, thresholds)
        exact = DirectSums(function, cells, scores, thresholds)
        assert_allclose(fast.values(), exact.values(), atol=1e-10)
        assert np.all(np.isfinite(fast.pull(np.ones((N_CELLS, N_THRESHOLDS)))))


def test_tables_are_kept_and_grow(rng):
    cells, memory = cells_of("all", rng), {}
    thresholds = np.linspace(-5.0, 5.0, N_THRESHOLDS)
    for spread in (0.1, 3.0, 1.0, 8.0):
        scores = spread * rng.normal(size=N_ROWS) + spread
        fast = kernel_sums(Sigmoid(), cells, scores, thresholds, memory)
        exact = DirectSums(Sigmoid(), cells, scores, thresholds)
        assert_allclose(fast.values(), exact.values(), atol=1e-12)
    assert len(memory) == 1


def test_batches_share_the_tables_of_all_rows(rng):
    problem = classification(ROCParity(0.05, thresholds=np.linspace(-3.0, 3.0, 200)))
    term = problem.constraints[0].term
    rows = rng.choice(term.n_rows, 150)
    batch = term.take(rows, np.full(150, term.n_rows / 150))
    scores = 2.0 * rng.normal(size=term.n_rows)
    term.forward(scores)
    tables = dict(term._memory)
    batch.forward(scores[rows])
    assert tables
    assert batch._memory == tables


class Steep(Sigmoid):
    """A user's own function that happens to derive from one that has a fast way."""

    def value(self, t):
        return 0.5 + 0.5 * t / np.sqrt(1.0 + t * t)

    def derivative(self, t, value):
        return 0.5 / np.sqrt(1.0 + t * t) ** 3


def test_a_subclass_is_not_taken_for_its_base(rng):
    cells, scores = cells_of("all", rng), rng.normal(size=N_ROWS)
    thresholds = np.linspace(-1.0, 1.0, N_THRESHOLDS)
    sums = kernel_sums(Steep(), cells, scores, thresholds)
    expected = cells.matrix @ Steep().value(scores[:, None] - thresholds)
    assert_allclose(sums.values(), expected, rtol=1e-12)


@given(
    cuts=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30),
    seed=st.integers(0, 2**32 - 1),
)
def test_positions_are_those_of_searchsorted(cuts, seed):
    rng, cuts = np.random.default_rng(seed), np.sort(cuts)
    points = np.concatenate([rng.choice(cuts, 500), rng.uniform(-1e3, 1e3, 2000), cuts + 1e-9])
    assert_array_equal(positions(cuts, points), np.searchsorted(cuts, points))


def roc_data(n_groups=3, n_rows=60):
    rng = np.random.default_rng(5)
    groups = np.arange(n_rows) % n_groups
    return np.where(rng.random(n_rows) < 0.5, 1, -1), groups, rng.uniform(0.5, 2.0, n_rows)


@pytest.mark.parametrize("against", ["pairs", "overall"])
def test_roc_parity_is_demographic_parity_at_every_threshold(against, rng):
    y, groups, weight = roc_data()
    thresholds = [0.5, -1.0, 2.0]
    term = ROCParity(0.1, thresholds=thresholds, against=against).bind(y, groups, weight)
    plain = DemographicParity(0.1, against=against).bind(y, groups, weight)
    scores = rng.normal(size=len(y))
    expected = np.column_stack([plain.value(scores - theta) for theta in thresholds]).ravel()
    assert_allclose(term.value(scores), expected, atol=1e-12)
    zero_one = np.column_stack(
        [plain.zero_one().gap(scores - theta) for theta in thresholds]
    ).ravel()
    assert_allclose(term.zero_one().gap(scores), zero_one, atol=1e-12)
    assert len(set(term.names)) == term.n_outputs


@pytest.mark.parametrize("thresholds", [[], [[0.0]], [np.nan], np.inf])
def test_thresholds_must_be_numbers(thresholds):
    with pytest.raises(ValueError, match="thresholds must be a list of one or more finite numbers"):
        ROCParity(thresholds=thresholds).bind(*roc_data())


def test_bind_without_thresholds_says_where_they_come_from():
    with pytest.raises(ValueError, match="scores of the model without constraints"):
        ROCParity().bind(*roc_data())


@pytest.mark.parametrize("count", [0, 2.5, True, "many"])
def test_the_number_of_thresholds_must_be_a_count(count):
    X, y, groups = make_biased_classification(60, random_state=0)
    clf = FairLogisticClassifier(ROCParity(n_thresholds=count))
    with pytest.raises(ValueError, match="n_thresholds must be an integer >= 1"):
        clf.fit(X, y, sensitive_features=groups)


def test_the_estimator_takes_the_grid_of_the_unconstrained_scores():
    X, y, groups = make_biased_classification(400, gap=0.4, random_state=0)
    clf = FairLogisticClassifier(ROCParity(n_thresholds=50), kappa=0.05)
    clf.fit(X, y, sensitive_features=groups)
    free = FairLogisticClassifier(None).fit(X, y)
    assert clf.result_.converged
    assert clf.violation_ <= 1e-4
    measured, before = (
        roc_parity_difference(y, one.decision_function(X), sensitive_features=groups)
        for one in (clf, free)
    )
    assert measured < before - 0.1
    assert clf.decision_gap_ <= measured + 1e-12  # at the thresholds of the grid only
    assert clf.decision_gap_ > 0.5 * measured


GRID = [-1.5, -0.5, 0.0, 0.5, 1.5]
SOLVERS = {
    "ipc": (IPC(), 1e-4),
    "augmented-lagrangian": (AugmentedLagrangian(), 1e-4),
    "idca": (IDCA(), 1e-3),
    "ssg": (SwitchingSubgradient(), 1e-2),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_find_what_scipy_finds(name):
    solver, error = SOLVERS[name]
    problem = classification(ROCParity(0.03, thresholds=GRID))
    result = solver.minimize(problem, random_state=0)
    assert result.violation <= 1e-4
    assert result.objective == pytest.approx(reference(problem), rel=error)
    assert problem.at(result.w).constraints.max() > -1e-2


def test_idca_with_the_barrier_converges_on_the_ramp():
    problem = classification(ROCParity(0.03, thresholds=GRID, surrogate="ramp"))
    seen = []
    solver = IDCA(InteriorPoint(max_iter=1), max_iter=60)
    result = solver.minimize(problem, callback=lambda one: seen.append(one.violation))
    assert result.converged
    assert max(seen) == 0.0
    assert result.objective == pytest.approx(Smoothing().minimize(problem).objective, rel=1e-3)
    assert problem.at(result.w).constraints.max() > -1e-3
