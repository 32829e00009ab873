"""Tests of fairconstrained.problem: problems, what is made of them, and evaluations."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from _support.small_problems import PROBLEMS, data, problem_of, two_models
from _support.toy_terms import RateAboveThreshold
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import fairconstrained as fc
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import L2, Proximity
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import average, cell_matrix
from fairconstrained.terms.classes import class_losses


def lagrangian(problem, w, multipliers):
    at = problem.at(w)
    return at.objective + at.constraints @ multipliers


def finite_difference(problem, w, multipliers, h=1e-6):
    steps = h * np.eye(len(w))
    ahead = np.array([lagrangian(problem, w + step, multipliers) for step in steps])
    behind = np.array([lagrangian(problem, w - step, multipliers) for step in steps])
    return (ahead - behind) / (2.0 * h)


def assert_gradient(problem, w, multipliers):
    expected = finite_difference(problem, w, multipliers)
    assert_allclose(problem.at(w).gradient(multipliers), expected, rtol=1e-6, atol=1e-8)


def values(problem, w):
    """Return the objective and the constraints in one array."""
    at = problem.at(w)
    return np.append(at.objective, at.constraints)


def gradients(problem, w):
    """Return the gradients of the objective and of the constraints, one per row."""
    at, unit = problem.at(w), np.eye(problem.n_constraints)
    return np.array([at.gradient(), *(at.gradient(one, objective=0.0) for one in unit)])


def test_gradient_of_the_lagrangian(problem, w, multipliers):
    assert_gradient(problem, w, multipliers)
    nothing = np.zeros_like(multipliers)
    assert_allclose(problem.at(w).gradient(), finite_difference(problem, w, nothing), atol=1e-8)
    both = gradients(problem, w)
    assert_allclose(both[0] + multipliers @ both[1:], problem.at(w).gradient(multipliers))


def test_shapes_names_and_violation(problem, w):
    at = problem.at(w)
    assert at.constraints.shape == (problem.n_constraints,) == (len(problem.names),)
    assert at.decided.constraints.shape == at.constraints.shape
    assert at.violation == max(0.0, *at.constraints, 0.0)
    assert at.zero_one_violation == max(0.0, *at.decided.constraints, 0.0)


def test_flags_say_what_the_parts_are():
    flags = {name: (p.smooth, p.convex, p.weakly_convex) for name, p in PROBLEMS.items()}
    assert flags == {
        "demographic_parity": (True, False, True),
        "equal_opportunity": (True, False, True),
        "several": (False, False, False),
        "hinge": (False, False, True),
        "unconstrained": (True, True, True),
        "two_models": (False, False, False),
    }
    assert PROBLEMS["several"].modulus == -np.inf


def test_decided_constraints_are_those_of_the_predictions():
    rows = data()
    problem, w = problem_of(rows, fc.DemographicParity(0.05)), np.array([1.0, -0.5, 0.2, 0.1])
    decisions = (rows[0] @ w[:3] + w[3] > 0).astype(float)
    masks = [rows[2] == k for k in np.unique(rows[2])]
    rates = [np.average(decisions[mask], weights=rows[3][mask]) for mask in masks]
    at = problem.at(w)
    assert_allclose(at.decided.gap, np.ptp(rates))
    assert_allclose(at.zero_one_violation, max(0.0, np.ptp(rates) - 0.05))
    epigraph = problem.epigraph(bound=0.4).at(np.append(w, 0.02))
    assert_allclose(epigraph.decided.constraints[:-1], at.decided.constraints - 0.02)
    assert_allclose(epigraph.decided.constraints[-1], at.objective - 0.4)
    weights_only = CompositeFunction(penalty=L2(1.0))
    assert np.isnan(problem.with_constraints([weights_only]).at(w).decided.gap)
    assert np.isnan(problem.with_constraints(()).at(w).decided.gap)


@dataclass(frozen=True, eq=False)
class CountingModel(LinearModel):
    """A linear model that counts its passes."""

    passes: Counter = field(default_factory=Counter)

    def scores(self, w):
        self.passes["forward"] += 1
        return super().scores(w)

    def vjp(self, w, v):
        self.passes["backward"] += 1
        return super().vjp(w, v)


def test_one_forward_and_one_backward_pass_for_hundreds_of_constraints():
    rows = data(n_rows=400, n_groups=20)
    constraints = fc.DemographicParity(0.05), fc.EqualizedOdds(0.1)
    problem = problem_of(rows, *constraints, make=CountingModel)
    assert problem.n_constraints == 3 * 20 * 19
    at = problem.at(np.ones(4))
    passes = problem.objective.model.passes
    assert not passes
    at.gradient(np.ones(problem.n_constraints))
    assert passes == {"forward": 1, "backward": 1}
    assert np.isfinite([at.objective, at.violation, at.zero_one_violation, at.decided.gap]).all()
    assert passes == {"forward": 1, "backward": 1}
    assert problem.passes == 1.0


def test_parts_on_other_rows_make_one_pass_each():
    problem = two_models().uncounted()
    assert len(problem.models) == 2
    assert problem.n_rows == 40 + 24
    at = problem.at(np.ones(4))
    assert at.objective
    assert problem.counter.rows == 40
    assert at.violation
    assert problem.passes == 1.0


def test_evaluation_counter_counts_fractions_for_batches(problem, w):
    rows = [np.arange(model.n_rows // 4) for model in problem.models]
    batch = problem.batch(*rows)
    for draws in (1, 2):
        values(batch, w + draws)  # at a point that it was just at nothing is read again
        assert problem.passes == batch.passes == draws * 0.25
    measured = problem.uncounted()
    values(measured, w)
    assert (problem.passes, measured.passes) == (0.5, 1.0)


def test_batches_are_unbiased(problem, w, multipliers):
    """Single rows of all models, each as often as any other."""
    sizes = [model.n_rows for model in problem.models]
    n = np.lcm.reduce(sizes)
    draws = [problem.batch(*(np.array([i % size]) for size in sizes)) for i in range(n)]
    assert_allclose(np.mean([values(b, w) for b in draws], axis=0), values(problem, w), atol=1e-12)
    found = np.mean([b.at(w).gradient(multipliers) for b in draws], axis=0)
    assert_allclose(found, problem.at(w).gradient(multipliers), atol=1e-12)


def test_every_model_needs_a_batch():
    with pytest.raises(ValueError, match="2 models need as many, got 1"):
        two_models().batch(np.arange(3))


def test_strata_separate_the_cells_of_every_model():
    (_, y, groups, _), (_, labels, members, _) = data(), data(1, n_rows=24)
    by_cell = [f"{a} {b}" for a, b in zip(groups, y, strict=True)]
    by_positives = [f"{a} {b}" for a, b in zip(members, labels == 1, strict=True)]
    for strata, cells in zip(two_models().strata(), (by_cell, by_positives), strict=True):
        pairs = set(zip(strata.tolist(), cells, strict=True))
        assert len(pairs) == len(set(cells)) == strata.max() + 1


def test_proximal_adds_the_quadratic_to_every_function(problem, w, multipliers, rng):
    center, rho = rng.normal(size=problem.n_variables), 0.7
    proximal = problem.proximal(center, rho)
    quadratic = 0.5 * rho * np.sum((w - center) ** 2)
    assert_allclose(values(proximal, w), values(problem, w) + quadratic)
    assert_gradient(proximal, w, multipliers)
    for known in (problem.uncounted(), problem):  # computed anew, or from the known one
        assert_allclose(problem.modulus + rho, known.proximal(center, rho).modulus)


def test_the_modulus_is_a_lower_bound_on_the_curvature(problem, rng):
    if not problem.weakly_convex:
        assert problem.modulus == -np.inf
        return
    convex = problem.proximal(np.zeros(4), -problem.modulus)
    for a, b in rng.normal(scale=2.0, size=(30, 2, 4)):
        chord = 0.5 * (values(convex, a) + values(convex, b))
        assert np.all(values(convex, 0.5 * (a + b)) <= chord + 1e-12)


def test_convexify_majorises_and_touches(problem, w, rng):
    majorant = problem.convexify(w)
    assert problem.counter.rows == 0.0
    assert majorant.convex
    assert_allclose(values(majorant, w), values(problem, w), atol=1e-12)
    assert_allclose(gradients(majorant, w), gradients(problem, w), atol=1e-12)
    for step in rng.normal(size=(50, 4)):
        other = w + rng.uniform(0.0, 2.0) * step
        assert np.all(values(majorant, other) >= values(problem, other) - 1e-12)


@pytest.mark.parametrize("bound", [None, 0.6])
def test_epigraph_minimises_the_violation(problem, w, rng, bound):
    epigraph, level = problem.epigraph(bound), 0.3
    v = np.append(w, level)
    at, original = epigraph.at(v), problem.at(w)
    assert epigraph.n_variables == problem.n_variables + 1
    assert at.objective == level
    expected = original.constraints - level
    if bound is not None:
        expected = np.append(expected, original.objective - bound)
    assert_allclose(at.constraints, expected, atol=1e-14)
    kept = problem.constraints if bound is None else problem.parts
    assert epigraph.smooth == all(part.smooth for part in kept)
    assert_gradient(epigraph, v, rng.uniform(0.1, 1.0, size=epigraph.n_constraints))


def test_terms_may_own_variables(rng):
    """The thresholds of two terms follow the weights, each with its own place and start."""
    X, y, groups, weight = data()
    model = LinearModel(X)
    cells = cell_matrix(np.unique(groups, return_inverse=True)[1], weight, 3).toarray()
    first = CompositeFunction(model, RateAboveThreshold(cells), auxiliary=slice(4, 7))
    term = RateAboveThreshold(cells[:1], kappa=0.1)
    second = CompositeFunction(model, term, auxiliary=slice(7, 8))
    objective = CompositeFunction(model, average(fc.functions.Logistic(), y, weight))
    problem = Problem(objective, (first, second), LeadingDomain(fc.domains.L2Ball(1.0), 4))
    assert problem.n_variables == 8
    assert_array_equal(problem.start(), [0.0] * 4 + [0.7] * 4)
    w, multipliers = rng.normal(size=8), rng.uniform(size=4)
    assert_gradient(problem, w, multipliers)
    assert_gradient(problem.proximal(np.zeros(8), 0.3), w, multipliers)
    assert_gradient(problem.epigraph(0.5), np.append(w, 0.2), rng.uniform(size=5))
    draws = [problem.batch(np.array([i])) for i in range(40)]
    found = np.mean([b.at(w).gradient(multipliers) for b in draws], axis=0)
    assert_allclose(found, problem.at(w).gradient(multipliers), atol=1e-12)


@pytest.mark.parametrize("level", [0.3, np.linspace(-0.2, 0.3, 6)], ids=["number", "array"])
def test_affine_functions_may_be_added_to_outputs(rng, level):
    """Of three groups and of a part of the penalty alone: values, gradients, largest, gaps."""
    plain = problem_of(data(), fc.DemographicParity(0.05))
    part, slope = plain.constraints[0], rng.normal(size=4)
    moved = replace(part.shifted(level), slope=slope)
    problem = plain.with_constraints([moved, CompositeFunction(penalty=L2(0.1), level=-0.2)])
    w, multipliers = rng.normal(size=4), rng.uniform(size=7)
    at, there, some = problem.at(w), plain.at(w), np.arange(6)
    outputs = there.constraints + slope @ w + level
    assert_allclose(at.constraints, np.append(outputs, 0.05 * w @ w - 0.2))
    assert at.violation == max(0.0, at.constraints.max())
    assert_array_equal(at.largest(-np.inf, 3), np.argsort(-at.constraints)[:3])
    assert_allclose(at.constraint_gradients(some), there.constraint_gradients(some) + slope)
    assert_gradient(problem, w, multipliers)
    assert_allclose(at.decided.constraints[:6], there.decided.constraints + slope @ w + level)
    assert at.gap == there.gap
    assert_allclose(at.gaps[0][1], 0.05 - np.broadcast_to(level, 6))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_terms_may_take_scores_of_several_classes(rng, fit_intercept):
    X = data()[0]
    labels = np.arange(40) % 3
    model = LinearModel(X, fit_intercept, n_outputs=3)
    term = class_losses(fc.functions.Sigmoid(), labels, np.ones(40), [0, 1, 2], [0.4] * 3)
    objective = CompositeFunction(penalty=Proximity(np.ones(model.n_parameters), 0.1))
    problem = Problem(objective, (CompositeFunction(model, term),))
    w = rng.normal(size=problem.n_variables)
    assert problem.n_variables == 3 * (3 + fit_intercept)
    assert_gradient(problem, w, rng.uniform(size=3))
    scores = model.scores(w)
    losses = [
        sum(expit(scores[i, k] - scores[i, l]) for l in range(3) if l != k)
        for i, k in enumerate(labels)
    ]
    expected = [np.mean(np.array(losses)[labels == k]) - 0.4 for k in range(3)]
    assert_allclose(problem.at(w).constraints, expected)
