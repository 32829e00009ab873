"""Tests of terms and of their abilities, over all functions, constraints and objectives."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from _support import registry_of_objects as objects
from _support.toy_terms import RateAboveThreshold
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained.constraints import ROCParity
from fairconstrained.terms import CellMeans, Term
from fairconstrained.terms.cell_means import average, cell_matrix
from fairconstrained.terms.classes import class_losses

N_ROWS, N_CELLS, N_OUTPUTS = 12, 3, 4
Y = np.where(np.arange(N_ROWS) % 2, 1.0, -1.0)
GROUPS = np.arange(N_ROWS) // 2 % 3
WEIGHT = np.linspace(0.5, 2.0, N_ROWS)


def overlapping(function, *, sparse=True, seed=1):
    """Return a term with overlapping cells, margins and combinations of either sign."""
    rng = np.random.default_rng(seed)
    cells = rng.random((N_CELLS, N_ROWS)) * (rng.random((N_CELLS, N_ROWS)) < 0.7)
    cells /= cells.sum(axis=1, keepdims=True)
    combination = rng.normal(size=(N_OUTPUTS, N_CELLS)) * (rng.random((N_OUTPUTS, N_CELLS)) < 0.8)
    signs = rng.choice([-1.0, 1.0], size=N_ROWS)
    combination = sp.csr_array(combination) if sparse else combination
    head = {"combination": combination, "offset": rng.normal(size=N_OUTPUTS)}
    return CellMeans(sp.csc_array(cells), function, signs, names=tuple("abcd"), **head)


def times(factor, term):
    scaled = {k: factor * getattr(term, k) for k in ("combination", "offset", "constant")}
    return replace(term, **scaled)


AT = np.linspace(-1.0, 1.0, N_ROWS)
DIFFERENCES = [f for f in objects.SCALAR_FUNCTIONS if f.difference_of_convex]
TERMS = {
    **{f"loss-{objects.label(f)}": average(f, Y, WEIGHT) for f in objects.LOSSES},
    **{f"bound-{objects.label(c)}": c.bind(Y, GROUPS, WEIGHT) for c in objects.CONSTRAINTS},
    **{f"objective-{objects.label(o)}": o.bind(Y, WEIGHT) for o in objects.OBJECTIVES},
    **{f"cells-{objects.label(f)}": overlapping(f) for f in DIFFERENCES},
    "dense": overlapping(objects.SURROGATES[0], sparse=False),
    "scaled": times(-0.7, overlapping(objects.SURROGATES[0])),
    "majorant": overlapping(objects.SURROGATES[0]).convexify(AT),
    "rounded majorant": overlapping(objects.SURROGATES[2]).convexify(AT).smoothed(0.3),
}


@pytest.fixture(params=TERMS)
def term(request):
    return TERMS[request.param]


def shardable(term):
    return term.shardable


@pytest.fixture(params=[name for name, term in TERMS.items() if shardable(term)])
def summed(request):
    """A term whose statistics are sums over rows; test_pairs.py has the batches of the others."""
    return TERMS[request.param]


@pytest.fixture
def scores(rng):
    return rng.normal(scale=1.5, size=N_ROWS)


def gradient(term, scores, v, auxiliary=None):
    """Return the gradient of <v, c> with respect to the scores by central differences."""
    own = () if auxiliary is None else (auxiliary,)
    out, h = np.zeros(scores.shape), 1e-6
    for i in np.ndindex(scores.shape):
        step = np.zeros(scores.shape)
        step[i] = h
        change = term.value(scores + step, *own) - term.value(scores - step, *own)
        out[i] = v @ change / (2.0 * h)
    return out


def on_scores(term, scores, v):
    return term.vjp(scores, v)[0]


@pytest.mark.parametrize("function", objects.SCALAR_FUNCTIONS, ids=objects.label)
@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
def test_value_is_the_formula(function, sparse, scores):
    term = overlapping(function, sparse=sparse)
    cells, combination = term.cells.toarray(), overlapping(function, sparse=False).combination
    for j, value in enumerate(term.value(scores)):
        expected = -term.offset[j]
        for k in range(N_CELLS):
            for i in range(N_ROWS):
                phi = function.value(np.array([term.signs[i] * scores[i]]))[0]
                expected += combination[j, k] * cells[k, i] * phi
        assert_allclose(value, expected, rtol=1e-12, atol=1e-14)
    assert_allclose(term.gap(scores), term.value(scores) + term.offset)
    assert (term.n_rows, term.n_outputs) == (N_ROWS, N_OUTPUTS)


def test_vjp_is_the_finite_difference(term, scores, rng):
    v = rng.normal(size=term.n_outputs)
    back, own = term.vjp(scores, v)
    assert back.shape == scores.shape
    assert own.size == term.n_auxiliary
    assert_allclose(back, gradient(term, scores, v), rtol=1e-5, atol=1e-8)


def affine(term, n_statistics):
    """Return whether the head is affine, so that unbiased statistics give unbiased gradients."""
    units = np.eye(term.n_outputs)
    low, middle, high = (np.full(n_statistics, level) for level in (0.0, 0.45, 1.0))
    return all(
        np.allclose(term.head_vjp(low, u), term.head_vjp(other, u))
        for u in units
        for other in (middle, high)
    )


def assert_unbiased(term, scores, v, draws):
    """Compare the mean over all equally likely draws (rows, weights) with the full term."""
    statistics, back = 0.0, np.zeros(scores.shape)
    for rows, weights in draws:
        batch = term.take(rows, weights)
        assert batch.n_rows == len(rows)
        statistics = statistics + batch.forward(scores[rows])[0] / len(draws)
        np.add.at(back, rows, on_scores(batch, scores[rows], v) / len(draws))
    assert_allclose(statistics, term.forward(scores)[0], rtol=1e-10, atol=1e-12)
    if affine(term, statistics.size):
        assert_allclose(back, on_scores(term, scores, v), rtol=1e-10, atol=1e-12)


SINGLE = [(np.array([i]), np.full(1, float(N_ROWS))) for i in range(N_ROWS)]
DRAWS = {
    "one row": SINGLE,
    "two rows, repeated ones too": [
        (np.array([i, j]), np.full(2, N_ROWS / 2)) for i in range(N_ROWS) for j in range(N_ROWS)
    ],
    "one of the first three rows and two of the others": [
        (np.array([i % 3, 3 + i, 3 + (i + 4) % 9]), np.array([3.0, 4.5, 4.5])) for i in range(9)
    ],
}


@pytest.mark.parametrize("draws", DRAWS)
def test_batches_are_unbiased(summed, draws, scores, rng):
    assert_unbiased(summed, scores, rng.normal(size=summed.n_outputs), DRAWS[draws])


def test_statistics_and_gradients_of_shards_add_up(summed, scores, rng):
    u = rng.normal(size=summed.n_statistics)
    whole, pullback = summed.forward(scores)
    shards = np.array_split(rng.permutation(N_ROWS), 3)
    passes = [summed.take(rows, np.ones(len(rows))).forward(scores[rows]) for rows in shards]
    merged = np.sum([statistics for statistics, _ in passes], axis=0)
    assert_allclose(merged, whole, rtol=1e-10, atol=1e-12)
    assert_allclose(summed.head(merged), summed.value(scores), rtol=1e-10, atol=1e-12)
    expected, own = pullback(u)
    for rows, (_, back) in zip(shards, passes, strict=True):
        assert_allclose(back(u)[0], expected[rows], rtol=1e-9, atol=1e-11)
    assert_allclose(sum(back(u)[1] for _, back in passes), own, rtol=1e-9, atol=1e-11)


def test_a_table_of_weights_is_pulled_back_row_by_row(scores, rng):
    term = ROCParity(0.1, thresholds=[0.0, 0.5]).bind(Y, GROUPS, WEIGHT)
    pullback, table = term.forward(scores)[1], rng.normal(size=(3, 6))
    assert_allclose(pullback(table)[0], [pullback(u)[0] for u in table], rtol=1e-10, atol=1e-12)
    assert pullback(table[:0])[0].shape == (0, N_ROWS)


OF_ATOMS = [
    *(c.bind for c in objects.CONSTRAINTS if shardable(c.bind(Y, GROUPS, WEIGHT))),
    *(lambda y, groups, weight, loss=loss: average(loss, y, weight) for loss in objects.LOSSES),
]


@pytest.mark.parametrize("bind", OF_ATOMS)
def test_a_term_on_one_row_per_atom_gives_the_term_on_all_rows(bind, scores, rng):
    """Atoms are the rows of one group and one label."""
    y = rng.permutation(Y)
    pairs, atoms = np.unique(np.column_stack([GROUPS, y]), axis=0, return_inverse=True)
    atoms, total = atoms.ravel(), np.bincount(atoms.ravel(), WEIGHT)
    full = bind(y, GROUPS, WEIGHT)
    by_atom = bind(pairs[:, 1], pairs[:, 0].astype(int), total)
    term = by_atom.take(atoms, WEIGHT / total[atoms])
    v = rng.normal(size=full.n_outputs)
    assert list(term.names) == list(full.names)
    assert_allclose(term.value(scores), full.value(scores), rtol=1e-11, atol=1e-13)
    assert_allclose(on_scores(term, scores, v), on_scores(full, scores, v), rtol=1e-9, atol=1e-12)


def test_a_batch_of_all_rows_is_the_term(term, scores):
    whole = term.take(np.arange(N_ROWS), np.ones(N_ROWS))
    assert_allclose(whole.value(scores), term.value(scores), rtol=1e-12)


def test_pushforward_is_the_adjoint_of_the_pullback(term, scores, rng):
    if not hasattr(term, "pushforward"):
        return
    statistics, pullback = term._with_function(term.function).forward(scores)
    push = term._with_function(term.function).pushforward(scores)
    u, change = rng.normal(size=len(statistics)), rng.normal(size=N_ROWS)
    own = np.zeros(term.n_auxiliary)
    assert_allclose(u @ push(change, own), pullback(u)[0] @ change, rtol=1e-9, atol=1e-11)


def test_convexify_majorises_and_touches(term, scores, rng):
    if not term.difference_of_convex:  # a ratio of averages
        with pytest.raises(TypeError, match="difference of convex functions"):
            term.convexify(scores)
        return
    majorant, v = term.convexify(scores), rng.normal(size=term.n_outputs)
    assert majorant.convex
    assert_allclose(majorant.value(scores), term.value(scores), rtol=1e-10, atol=1e-12)
    slopes = on_scores(term, scores, v)
    assert_allclose(on_scores(majorant, scores, v), slopes, rtol=1e-10, atol=1e-12)
    for other in rng.normal(scale=3.0, size=(50, N_ROWS)):
        assert np.all(majorant.value(other) >= term.value(other) - 1e-12)


def test_a_quadratic_of_the_weak_curvature_makes_the_term_convex(term, rng):
    bend = term.weak_curvature()
    assert bend.shape == (N_ROWS,)
    assert np.all(bend >= 0.0)
    assert not term.convex or not np.any(bend)
    if not np.all(np.isfinite(bend)):
        assert not (term.smooth and term.difference_of_convex)  # a kink that points down
        return
    for a, b in rng.normal(scale=2.0, size=(30, 2, N_ROWS)):
        left, middle, right = (term.value(s) + 0.5 * (bend @ s**2) for s in (a, 0.5 * (a + b), b))
        assert np.all(middle <= 0.5 * (left + right) + 1e-12)


def test_strata_are_the_rows_of_the_same_cells():
    term = overlapping(objects.SURROGATES[0])
    strata, member = term.strata(), term.cells.toarray() != 0
    assert_array_equal(np.unique(strata), np.arange(strata.max() + 1))
    for i in range(N_ROWS):
        assert_array_equal(strata == strata[i], np.all(member == member[:, [i]], axis=0))


def test_the_zero_one_version_is_a_term(term, scores):
    zero_one = term.zero_one()
    assert isinstance(zero_one, Term)
    assert zero_one.value(scores).shape == (zero_one.n_outputs,)
    assert zero_one.zero_one().value(scores).shape == (zero_one.n_outputs,)


def test_a_term_has_only_the_abilities_it_declares():
    toy = RateAboveThreshold(cell_matrix(GROUPS, WEIGHT, 3).toarray())
    assert toy.batchable
    assert not toy.curved
    assert not toy.shardable
    assert not toy.difference_of_convex
    with pytest.raises(TypeError, match="needs a difference of convex functions"):
        toy.convexify(np.zeros(N_ROWS))
    assert not toy.weakly_convex  # nothing is known of it


@pytest.mark.parametrize("function", [f for f in objects.LOSSES if f.smooth], ids=objects.label)
@pytest.mark.parametrize("factor", [1.0, -0.7])
def test_class_losses_split_touch_and_keep_to_their_curvature(function, factor, rng):
    labels = np.arange(N_ROWS) % 4  # of which three have an output
    term = times(factor, class_losses(function, labels, WEIGHT, [2, 0, 3], [0.1, 0.2, 0.3]))
    scores = rng.normal(size=(N_ROWS, 4))
    majorant, bend = term.convexify(scores), term.weak_curvature()
    assert_allclose(majorant.value(scores), term.value(scores), atol=1e-12)
    for a, b in rng.normal(scale=2.0, size=(20, 2, N_ROWS, 4)):
        assert np.all(majorant.value(a) >= term.value(a) - 1e-12)
        left, middle, right = (
            term.value(s) + 0.5 * np.sum(bend[:, None] * s**2) for s in (a, 0.5 * (a + b), b)
        )
        assert np.all(middle <= 0.5 * (left + right) + 1e-12)
