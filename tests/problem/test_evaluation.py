"""Evaluations own and share their forward passes; problems need abilities of their terms."""

import gc
import weakref

import numpy as np
import pytest
from _support.small_problems import data
from _support.toy_terms import CellMeansAlone
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem import CompositeFunction, Problem
from fairconstrained.terms.cell_means import average


def test_an_evaluation_like_another_reads_no_rows(problem, w, multipliers):
    first = problem.at(w)
    first.gradient(multipliers)
    read = problem.counter.rows
    for other in (problem, problem.uncounted(), problem.proximal(w, 1.0), problem.smoothed(0.1)):
        shared = other.at(w.copy(), like=first)
        anew = other.uncounted().at(w)
        before = other.counter.rows
        assert_array_equal(shared.gradient(multipliers), anew.gradient(multipliers))
        assert_array_equal(shared.constraints, anew.constraints)
        assert other.counter.rows == before
    assert problem.counter.rows == read


def test_an_evaluation_elsewhere_shares_nothing(problem, w, multipliers):
    first = problem.at(w)
    first.gradient(multipliers)
    for step in (np.eye(len(w))[0], np.eye(len(w))[-1]):
        moved = problem.at(w + step, like=first)
        assert_array_equal(moved.constraints, problem.at(w + step).constraints)
        assert moved.objective == problem.at(w + step).objective


def test_an_evaluation_made_from_another_does_not_keep_it_alive(problem, w):
    first = problem.at(w)
    assert np.isfinite(first.objective)
    scores = weakref.ref(first.scores_of(problem.objective))
    second = problem.proximal(w, 1.0).at(w, like=first)
    assert scores() is not None
    del first
    gc.collect()
    assert second.scores_of(problem.objective) is scores()
    del second
    gc.collect()
    assert scores() is None


def test_solve_returns_the_evaluation_at_the_result(problem):
    from fairconstrained.solvers import default_solver

    result, at = default_solver(problem).solve(problem, tol=1e-2)
    assert_array_equal(at.w, result.w)
    assert at.objective == result.objective
    read = problem.counter.rows
    assert_array_equal(problem.at(result.w, like=at).constraints, at.constraints)
    assert problem.counter.rows - read <= sum(model.n_rows for model in problem.models)


def test_gradients_of_some_constraints_are_those_of_unit_multipliers(problem, w):
    at, m = problem.at(w), problem.n_constraints
    for which in (np.arange(m), np.arange(m)[::-2], np.zeros(0, dtype=int)):
        found = at.constraint_gradients(which)
        assert found.shape == (len(which), problem.n_variables)
        for row, j in zip(found, which, strict=True):
            expected = at.gradient(np.eye(m)[j], objective=0.0)
            np.testing.assert_allclose(row, expected, rtol=1e-10, atol=1e-14)


def test_gradients_that_a_pass_keeps_are_those_of_the_weights_asked_for():
    X, y, groups = fc.make_biased_classification(300, gap=0.3, random_state=0)
    problem = fc.FairLogisticClassifier("equalized_odds", 0.02).bind(X, y, None, groups).problem
    w, rng = np.linspace(-1.0, 1.0, problem.n_variables), np.random.default_rng(0)
    at, multipliers = problem.at(w), np.zeros(problem.n_constraints)
    for _ in range(4):
        multipliers[:] = rng.random(len(multipliers))  # the same array with other values
        expected = problem.at(w).gradient(multipliers)
        assert_allclose(at.gradient(multipliers), expected, atol=1e-14)
        near = problem.proximal(w, 0.1).at(w, like=at)
        assert_allclose(near.gradient(multipliers), expected, atol=1e-14)
        assert_allclose(at.gradient(), problem.at(w).gradient())
        assert_allclose(
            at.constraint_gradients(np.arange(len(multipliers))).T @ multipliers,
            expected - problem.at(w).gradient(),
            atol=1e-12,
        )


def test_required_abilities_alone_make_a_smooth_problem():
    X, y, groups, weight = data()
    model = LinearModel(X)
    rates = CellMeansAlone(fc.DemographicParity(0.1).bind(y, groups, weight))
    objective = CompositeFunction(model, average(fc.functions.Logistic(), y, weight))
    whole = Problem(objective, (CompositeFunction(model, rates),))
    assert whole.smooth
    assert whole.smoothable  # nothing needs rounding
    assert not whole.batchable
    assert not whole.difference_of_convex
    assert not whole.weakly_convex
    assert whole.smoothed(0.1).at(whole.start()).objective == pytest.approx(np.log(2.0))
    with pytest.raises(TypeError, match="CellMeansAlone has no batches of rows"):
        whole.batch(np.arange(3))
    with pytest.raises(TypeError, match="convexify needs a difference of convex functions"):
        whole.convexify(whole.start())
    names = fc.solvers.available_solvers(whole)
    assert {"augmented-lagrangian", "ssg", "3s-econ", "plada"} <= set(names)
    assert not [name for name in names if "stochastic" in name]
    with pytest.raises(fc.IncompatibleSolverError, match="draws batches of rows"):
        fc.solvers.SOLVERS["ssg-stochastic"]().minimize(whole)
