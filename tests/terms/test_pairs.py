"""Terms, constraints and objectives of pairs of rows, of queries too, by definition."""

import warnings
from itertools import permutations, product

import numpy as np
import pytest
from _support import labelled_rows
from _support.registry_of_objects import OBJECTIVES
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from benchmarks.fuzz.formulas import mean_loss, pair_mean
from fairconstrained import constraints
from fairconstrained.data.labels import pairs_within
from fairconstrained.exceptions import VacuousConstraintWarning
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.losses import LOSSES, Hinge, Logistic, Quadratic, SquaredHinge
from fairconstrained.functions.surrogates import PositivePart, Ramp, Sigmoid
from fairconstrained.objectives import PairwiseLoss, PartialAUC, QueryPairLoss
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.difference_sums import Ranked, pair_sum

KINDS = (
    constraints.GroupAUCParity,
    constraints.InterGroupAUCParity,
    constraints.IntraGroupAUCParity,
)
PARITIES = pytest.mark.parametrize("kind", KINDS)
EXACT = (Hinge(), SquaredHinge(), Indicator())
KINKED = (Ramp(0.7321), PositivePart(0.3, 0.7321))  # differences of scores seldom hit these kinks
ROUNDED = tuple(kinked.smoothed(0.3) for kinked in KINKED)


numbers = st.integers(-6, 6).map(lambda k: k / 2)  # ties, and differences of exactly one


def data(seed, n_groups=3, n_rows=36):
    """Return labels, groups, weights and scores with ties; every group has both labels."""
    *rows, scores = labelled_rows.data(seed, n_groups, n_rows)
    return *rows, scores.round(1)


@pytest.mark.parametrize("function", [*EXACT, *KINKED, *ROUNDED, Logistic(), Sigmoid()], ids=repr)
@given(
    x=st.lists(st.tuples(numbers, st.floats(0.1, 2.0)), max_size=9),
    y=st.lists(st.tuples(numbers, st.floats(0.1, 2.0)), max_size=9),
)
def test_pair_sum_is_the_double_sum(function, x, y):
    (s, a), (t, b) = (np.array(one, dtype=float).reshape(-1, 2).T for one in (x, y))
    value, slopes = pair_sum(function, Ranked(s, a), Ranked(t, b))
    difference = s[:, None] - t
    phi = function.value(difference)
    if isinstance(function, Indicator):  # ties count half
        phi = 0.5 * (np.sign(difference) + 1.0)
    assert_allclose(value, a @ phi @ b, rtol=1e-10, atol=1e-10)
    slope = a[:, None] * function.derivative(difference, phi) * b
    on_first, on_second = slopes()
    assert_allclose(on_first, slope.sum(axis=1), rtol=1e-10, atol=1e-10)
    assert_allclose(on_second, -slope.sum(axis=0), rtol=1e-10, atol=1e-10)


def every_draw(strata, sizes):
    """Return all draws of given numbers of rows from strata, with replacement, and the weights."""
    members = [np.flatnonzero(strata == k) for k in range(len(sizes))]
    draws = product(*(product(rows, repeat=n) for rows, n in zip(members, sizes, strict=True)))
    counts = [np.full(n, len(rows) / n) for rows, n in zip(members, sizes, strict=True)]
    return [np.array([i for part in draw for i in part]) for draw in draws], np.concatenate(counts)


BY_STRATA = [
    *(
        lambda y, groups, weight, kind=kind, surrogate=surrogate: kind(
            0.1, surrogate=surrogate
        ).bind(y, groups, weight)
        for kind in KINDS
        for surrogate in ("quadratic", "sigmoid")
    ),
    *(
        lambda y, groups, weight, loss=loss: PairwiseLoss(loss).bind(y, weight)
        for loss in ("quadratic", "hinge", "squared_hinge", "logistic")
    ),
]


@pytest.mark.parametrize("make", BY_STRATA)
def test_batches_drawn_by_strata_are_unbiased(make, rng):
    """Over all equally likely draws value and gradient average to those on all rows."""
    y, groups = np.array([-1, 1, -1, 1] * 2 + [1]), np.array(list("aabb") * 2 + ["a"])
    weight, scores = rng.uniform(0.5, 2.0, size=9), rng.normal(size=9)
    term = make(y, groups, weight)
    strata = term.strata()
    sizes = [2] + [1] * (int(strata.max()))
    draws, weights = every_draw(strata, sizes)
    v = rng.normal(size=term.n_outputs)
    value, back = np.zeros(term.n_outputs), np.zeros(9)
    for rows in draws:
        batch = term.take(rows, weights)
        value += batch.value(scores[rows]) / len(draws)
        np.add.at(back, rows, batch.vjp(scores[rows], v)[0] / len(draws))
    assert_allclose(value, term.value(scores), rtol=1e-9, atol=1e-12)
    assert_allclose(back, term.vjp(scores, v)[0], rtol=1e-9, atol=1e-12)


@PARITIES
def test_a_group_without_a_class_is_named_and_left_out(kind):
    y, groups, weight, scores = data(4)
    y[groups == "d"] = -1
    rest = groups != "d"
    if kind is constraints.GroupAUCParity:  # which does not look at labels
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kind(0.1).bind(y, groups, weight).n_outputs == 6
        return
    with pytest.warns(VacuousConstraintWarning, match=r"'group d \| label \+1' has no rows"):
        term = kind(0.1).bind(y, groups, weight)
    expected = kind(0.1).bind(y[rest], groups[rest], weight[rest])
    assert term.names == expected.names
    assert_allclose(term.value(scores), expected.value(scores[rest]), atol=1e-12)
    assert_array_equal(term.vjp(scores, np.ones(2))[0][~rest], 0.0)


OF_ALL_PAIRS = [one for one in OBJECTIVES if not isinstance(one, QueryPairLoss)]


@pytest.mark.cases(len(OF_ALL_PAIRS))
@pytest.mark.parametrize("objective", OF_ALL_PAIRS, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_objectives_of_pairs_are_their_formulas(objective, seed):
    y, _, weight, scores = labelled_rows.data(seed)  # without ties, which have no order
    value = objective.bind(y, weight).value(scores)
    assert_allclose(value, mean_loss(objective, scores, y, weight), rtol=1e-10)


def test_only_losses_that_do_not_increase_have_a_partial_auc():
    y = np.array([1, -1, -1])
    for loss in (Quadratic(), Logistic()):
        with pytest.raises(TypeError, match="use 'squared_hinge' or 'hinge'"):
            PartialAUC(loss=loss).bind(y, np.ones(3))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_objectives_need_both_classes_and_stay_as_they_are(objective):
    before = repr(objective)
    assert repr(clone(objective)) == before
    with pytest.raises(ValueError, match="both classes; got 0 negative and 2 positive"):
        objective.bind(np.ones(2), np.ones(2))
    y, _, weight, scores = data(10)
    term = objective.bind(y, weight)
    assert_allclose(term.value(scores + 3.0), term.value(scores), rtol=1e-9)  # no intercept
    assert repr(objective) == before


N_QUERIES = 5


def rows(seed=0, n_queries=N_QUERIES, n_groups=2, length=12):
    """Return labels, groups, weights, unsorted queries and scores; queries have all pairs."""
    rng = np.random.default_rng(seed)
    n = n_queries * length
    order = rng.permutation(n)
    position = np.arange(n) % length
    y = np.where(position % 2, 1.0, -1.0)[order]
    groups = np.array(list("cab"))[:n_groups][position // 2 % n_groups][order]
    query = np.array([f"q{k}" for k in rng.permutation(n_queries)])[np.arange(n) // length][order]
    return y, groups, rng.uniform(0.5, 2.0, n), query, rng.normal(size=n)


def gaps(phi, y, groups, weight, query, scores):
    """Return the differences of every query and ordered pair of groups, by name."""
    out, names = {}, np.unique(groups)
    for q in np.unique(query):
        cells = {(k, s): (query == q) & (groups == k) & (y == s) for k in names for s in (1, -1)}
        for a, b in permutations(names, 2):
            pairs = [(cells[a, 1], cells[b, -1]), (cells[b, 1], cells[a, -1])]
            ends = [pair_mean(phi, *((scores[k], weight[k]) for k in pair)) for pair in pairs]
            title = f"error({a}+, {b}- | query {q}) - error({b}+, {a}- | query {q}) <= 0.1"
            out[title] = ends[0] - ends[1]
    return out


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_constraint_is_its_definition(loss, n_groups):
    y, groups, weight, query, scores = rows(n_groups=n_groups)
    term = constraints.QueryParity(0.1, loss=loss).bind(y, groups, weight, query)
    expected = gaps(LOSSES[loss]().value, y, groups, weight, query, scores)
    assert set(term.names) == set(expected)
    assert_allclose(term.gap(scores), [expected[name] for name in term.names], rtol=1e-12)
    assert_allclose(term.value(scores), term.gap(scores) - 0.1)
    errors = gaps(lambda t: 0.5 - 0.5 * np.sign(t), y, groups, weight, query, np.round(scores))
    found = term.zero_one().gap(np.round(scores))  # with ties
    assert_allclose(found, [errors[name] for name in term.names], atol=1e-13)


def test_the_average_is_the_mean_over_queries():
    y, groups, weight, query, scores = rows(n_groups=3)
    each = constraints.QueryParity(0.1).bind(y, groups, weight, query)
    mean = constraints.QueryParity(0.1, average=True).bind(y, groups, weight, query)
    by_kind = each.gap(scores).reshape(N_QUERIES, -1).mean(axis=0)
    assert_allclose(mean.gap(scores), by_kind, rtol=1e-12)
    assert mean.names[0] == "mean over queries of error(a+, b-) - error(b+, a-) <= 0.1"
    assert mean.output_blocks is None


@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_the_objective_is_its_definition(average):
    y, _, weight, query, scores = rows(length=6)
    keep = np.random.default_rng(1).random(len(y)) < 0.8  # queries of different lengths
    y, weight, query, scores = y[keep], weight[keep], query[keep], scores[keep]
    value = QueryPairLoss("logistic", average=average).bind(y, weight, query).value(scores)[0]
    means, masses, phi = [], [], LOSSES["logistic"]().value
    for q in np.unique(query):
        first, second = ((query == q) & (y == label) for label in (1, -1))
        means.append(pair_mean(phi, *((scores[k], weight[k]) for k in (first, second))))
        masses.append(weight[first].sum() * weight[second].sum())
    expected = np.average(means, weights=masses if average == "pairs" else None)
    assert value == pytest.approx(expected, rel=1e-12)


TERMS = {
    "objective": lambda y, g, w, q: QueryPairLoss().bind(y, w, q),
    "per query": lambda y, g, w, q: constraints.QueryParity(0.1, loss="logistic").bind(y, g, w, q),
    "average": lambda y, g, w, q: constraints.QueryParity(0.1, average=True).bind(y, g, w, q),
}


@pytest.fixture(params=TERMS)
def bound(request):
    y, groups, weight, query, scores = rows()
    return TERMS[request.param](y, groups, weight, query), scores


def test_batches_of_one_query_are_unbiased(bound, rng):
    term, scores = bound
    v, blocks = rng.normal(size=term.n_outputs), term.blocks()
    values, gradient = [], np.zeros(term.n_rows)
    for block in range(N_QUERIES):
        chosen = rng.permutation(np.flatnonzero(blocks == block))
        batch = term.take(chosen, np.full(len(chosen), float(N_QUERIES)))
        values.append(batch.value(scores[chosen]))
        gradient[chosen] += batch.vjp(scores[chosen], v)[0] / N_QUERIES
    assert_allclose(np.mean(values, axis=0), term.value(scores), rtol=1e-12)
    assert_allclose(gradient, term.vjp(scores, v)[0], rtol=1e-11, atol=1e-14)


def test_a_batch_that_splits_a_query_is_an_error(bound):
    term, _ = bound
    for chosen in (np.arange(7), np.repeat(np.flatnonzero(term.blocks() == 0), 2)):
        with pytest.raises(ValueError, match="must hold all rows of each of its queries once"):
            term.take(chosen, np.full(len(chosen), term.n_rows / len(chosen)))


def test_the_outputs_of_a_query_are_exact_on_its_rows(rng):
    y, groups, weight, query, scores = rows(n_groups=3)
    term = constraints.QueryParity(0.1).bind(y, groups, weight, query)
    assert_array_equal(np.bincount(term.output_blocks), np.full(N_QUERIES, 6))
    for drawn in ([3], [0, 4]):
        chosen = rng.permutation(np.flatnonzero(np.isin(term.blocks(), drawn)))
        outputs = np.flatnonzero(np.isin(term.output_blocks, drawn))
        part = term.take_outputs(chosen, outputs)
        assert_allclose(part.value(scores[chosen]), term.value(scores)[outputs], rtol=1e-12)
        v = rng.normal(size=len(outputs))
        full = np.zeros(term.n_outputs)
        full[outputs] = v
        expected = term.vjp(scores, full)[0][chosen]
        assert_allclose(part.vjp(scores[chosen], v)[0], expected, rtol=1e-11, atol=1e-14)


def test_pairs_within_are_all_pairs_sorted_by_query(rng):
    positive, queries = rng.random(40) < 0.3, rng.integers(0, 6, 40)
    first, second = pairs_within(positive, queries)
    expected = {
        (i, j)
        for i in range(40)
        for j in range(40)
        if positive[i] and not positive[j] and queries[i] == queries[j]
    }
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert len(first) == len(expected)
    assert np.all(np.diff(queries[first]) >= 0)


def test_numbers_of_queries_without_pairs_are_in_the_warning():
    y, groups, weight, query, scores = rows()
    y = np.where(query == "q1", 1.0, y)  # no negatives
    groups = np.where(query == "q2", "a", groups)  # no pairs across groups
    with pytest.warns(VacuousConstraintWarning, match="asked of 2 of 5 queries") as found:
        term = constraints.QueryParity(0.1).bind(y, groups, weight, query)
    assert "1 have no rows with label +1 or none with label -1" in str(found[0].message)
    assert "and 1 have no pairs of them across two groups" in str(found[0].message)
    assert term.n_outputs == 6
    assert np.isfinite(term.value(scores)).all()


def test_terms_on_the_same_rows_must_have_the_same_queries():
    y, groups, weight, query, _ = rows()
    model = object()
    terms = [QueryPairLoss().bind(y, weight, query)]
    terms.append(constraints.QueryParity(0.1).bind(y, groups, weight))
    objective, part = (CompositeFunction(model, term) for term in terms)  # type: ignore[arg-type]
    problem = Problem(objective, (part,), n_variables=1)
    with pytest.raises(ValueError, match="must have the same blocks"):
        problem.blocks()
