"""Many dense rows in memory: read once per evaluation, with the values of the plain problem."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, SelectionRate, make_biased_classification
from fairconstrained.data import validation
from fairconstrained.shards import sums as shard_sums
from fairconstrained.shards.model import ShardedData, drawn
from fairconstrained.utils import arrays as row_blocks
from fairconstrained.utils.arrays import grouped

N_ROWS = 3000
CONSTRAINTS = [None, "demographic_parity", "equal_opportunity", "equalized_odds"]
CONSTRAINTS += ["error_rate_parity", "disparate_impact", "balanced_rate"]
CONSTRAINTS.append(["demographic_parity", "predictive_equality"])
OPTIONS = [
    *({"constraint": constraint} for constraint in CONSTRAINTS),
    {"class_weight": "balanced"},
    {"class_weight": {1: 3.0}, "loss": "quadratic"},
    {"threshold": 0.3},
    {"pos_label": 0},
    {"fit_intercept": False, "surrogate": "ramp"},
    {"goal": "fairness"},
]


@pytest.fixture
def many(monkeypatch):
    """Let a few thousand rows count as many, in several blocks."""
    monkeypatch.setattr(validation, "MANY_ROWS", 1000)
    monkeypatch.setattr(row_blocks, "_BLOCK", 700)
    monkeypatch.setattr(shard_sums, "_BLOCK_ROWS", 512)


def drawn_rows(dtype=np.float32, n_groups=3):
    """Return rows, labels, groups and weights of which some are zero."""
    X, y, groups = make_biased_classification(N_ROWS, gap=0.3, n_groups=n_groups, random_state=0)
    weight = np.random.default_rng(0).integers(0, 4, N_ROWS) / 2.0
    return X.astype(dtype), y, groups, weight


def both(monkeypatch, classifier, X, y, groups=None, weight=None):
    """Return the fit by atoms, and the one of the same rows in the plain way."""
    by_atom = classifier.bind(X, y, weight, groups)
    with monkeypatch.context() as patch:
        patch.setattr(validation, "MANY_ROWS", N_ROWS + 1)
        plain = classifier.bind(X, y, weight, groups)
    assert isinstance(by_atom.data, ShardedData) and not isinstance(plain.data, ShardedData)
    return by_atom, plain


def assert_same(by_atom, plain, seed=0):
    """Assert that two problems agree at a random point, with all derivatives."""
    first, second = by_atom.problem, plain.problem
    random = np.random.default_rng(seed)
    w, multipliers = random.standard_normal(first.n_variables), random.random(first.n_constraints)
    one, other = first.at(w), second.at(w)
    assert_allclose(one.objective, other.objective, rtol=1e-12)
    assert_allclose(one.constraints, other.constraints, atol=1e-13)
    assert_allclose(one.gradient(multipliers), other.gradient(multipliers), atol=1e-12)
    which = np.arange(first.n_constraints)
    rows = one.constraint_gradients(which), other.constraint_gradients(which)
    assert_allclose(*rows, atol=1e-12)
    assert_allclose(one.decided.constraints, other.decided.constraints, atol=1e-13)
    assert_allclose([one.gap, one.decided.gap], [other.gap, other.decided.gap], atol=1e-13)
    assert first.n_rows == second.n_rows


@pytest.mark.cases(7)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_derivatives_are_those_of_the_plain_problem(
    many, monkeypatch, options, weighted
):
    X, y, groups, weight = drawn_rows()
    classifier = FairLogisticClassifier(**{"constraint": "equalized_odds", "kappa": 0.05} | options)
    assert_same(*both(monkeypatch, classifier, X, y, groups, weight if weighted else None))


LAYOUTS = {
    "by rows": np.asarray,
    "by columns": np.asfortranarray,
    "frame": pd.DataFrame,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_layout_of_the_features_does_not_matter(many, monkeypatch, layout, dtype):
    X, y, groups, weight = drawn_rows(dtype)
    classifier = FairLogisticClassifier("equalized_odds", 0.05)
    assert_same(*both(monkeypatch, classifier, LAYOUTS[layout](X), y, groups, weight))


NEED_SCORES = [
    {"solver": "ipc"},
    {"max_iter": 5},
    {"enforce": "decision"},
    {"threshold": SelectionRate(0.3)},
    {"constraint": "roc_parity"},
]


@pytest.mark.parametrize("options", NEED_SCORES, ids=str)
def test_fits_that_need_scores_keep_them(many, options):
    X, y, groups, _ = drawn_rows()
    fit = FairLogisticClassifier(**options).bind(X, y, None, groups)
    assert not isinstance(fit.data, ShardedData) and fit.data.y.dtype == float
    assert fit.data.groups.codes.dtype == np.intp and fit.data.sample_weight.flags.c_contiguous


def test_sparse_rows_and_many_groups_are_kept_as_they_are(many):
    X, y, groups, _ = drawn_rows()
    clf = FairLogisticClassifier("demographic_parity", 0.05)
    assert not isinstance(clf.bind(sp.csr_matrix(X), y, None, groups).data, ShardedData)
    assert not isinstance(clf.bind(X, y, None, np.arange(N_ROWS) % 40).data, ShardedData)
    assert not isinstance(clf.bind(X, y, None, groups, path=True).data, ShardedData)


def test_a_fit_needs_little_memory_beyond_the_features():
    random = np.random.default_rng(0)
    X = random.standard_normal((400_000, 50), dtype=np.float32)
    groups = random.choice(["a", "b"], len(X))
    X[:, 0] += groups == "a"
    y = X[:, :3].sum(axis=1) + random.logistic(size=len(X)) > 0.5
    clf = FairLogisticClassifier("equalized_odds", 0.02, bound=False)
    clf.fit(X[:1000], y[:1000], sensitive_features=groups[:1000])  # what it imports is not counted
    tracemalloc.start()
    clf.fit(X, y, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert clf.result_.converged and clf.multipliers_.max() > 1e-3
    assert peak < 0.1 * X.nbytes


def test_rows_are_read_once_for_values_derivatives_and_decisions(many, monkeypatch):
    X, y, groups, _ = drawn_rows()
    problem = FairLogisticClassifier("equalized_odds", 0.05).bind(X, y, None, groups).problem
    shards, reads = type(problem.models[0].shards), []
    gather = shards.gather
    monkeypatch.setattr(shards, "gather", lambda *given: reads.append(1) or gather(*given))
    at = problem.at(np.random.default_rng(0).standard_normal(problem.n_variables))
    assert at.objective > 0.0 and at.gradient(np.ones(problem.n_constraints)).any()
    assert at.decided.gap > 0.0 and len(reads) == 1


@pytest.mark.parametrize("size", [60, 400])
def test_rows_are_drawn_from_every_stratum_in_proportion(monkeypatch, size):
    monkeypatch.setattr(row_blocks, "_BLOCK", 100)
    codes = np.random.default_rng(0).choice(4, 2000, p=[0.6, 0.3, 0.095, 0.005]).astype(np.uint8)
    strata = np.array([1, 0, 2, 1])
    rows, weights = drawn(codes, strata, size, 20)
    of_rows = strata[codes]
    order, starts = grouped(of_rows)
    sizes, taken = np.diff(starts), np.bincount(of_rows[rows])
    expected = np.minimum(np.maximum(np.round(size * sizes / 2000), 20), sizes)
    assert_array_equal(taken, expected)
    assert_array_equal(rows, np.unique(rows))
    assert_allclose(weights, (sizes / taken)[of_rows[rows]])
    assert_allclose(weights.sum(), 2000)
    assert np.isin(rows, order).all()
