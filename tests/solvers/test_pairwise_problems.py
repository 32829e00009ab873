"""Problems of pairs: solved, rounded, and in an estimator."""

import numpy as np
import pytest
from _support.pairs import data, numbers
from _support.problems import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import make_biased_classification
from fairconstrained.constraints import GroupAUCParity, InterGroupAUCParity, IntraGroupAUCParity
from fairconstrained.functions.losses import Logistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import MeanLoss, PairwiseLoss, PartialAUC
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS
from fairconstrained.terms.difference_sums import soft_top


def small_problem(*constraints, objective=None, class_sep=1.0):
    """Return the training of a linear classifier on 300 generated rows of three groups."""
    X, y, groups = make_biased_classification(
        300, 3, n_groups=3, gap=0.4, class_sep=class_sep, random_state=1
    )
    signs, weight, model = 2.0 * y - 1.0, np.ones(len(y)), LinearModel(X)
    return Problem(
        CompositeFunction(
            model, (objective or MeanLoss(Logistic())).bind(signs, weight), Leading(L2(1e-2), 3)
        ),
        tuple(CompositeFunction(model, c.bind(signs, groups, weight)) for c in constraints),
    )


SOLVED = {
    "group_auc": lambda: small_problem(GroupAUCParity(0.1)),
    "inter_group_auc": lambda: small_problem(InterGroupAUCParity(0.3)),
    "intra_group_auc": lambda: small_problem(IntraGroupAUCParity(0.2)),
    "intra_group_auc, sigmoid": lambda: small_problem(
        IntraGroupAUCParity(0.02, surrogate="sigmoid")
    ),
    "auc loss": lambda: small_problem(GroupAUCParity(0.1), objective=PairwiseLoss("squared_hinge")),
}


@pytest.mark.parametrize("problem_name", SOLVED)
def test_solvers_find_the_solution_that_scipy_finds(problem_name):
    problem = SOLVED[problem_name]()
    expected = reference(problem, starts=2)
    for name, error in (("ipc", 1e-4), ("augmented-lagrangian", 1e-4), ("ssg", 1e-2)):
        result = SOLVERS[name]().minimize(problem, random_state=0)
        assert result.violation <= 1e-4, name
        assert abs(result.objective - expected) <= error * abs(expected), name
        assert problem.at(result.w).constraints.max() > -1e-2, "no constraint is active"
        assert result.multipliers.max() > 0.0


@pytest.mark.parametrize("ranks", [(0.0, 0.4), (0.1, 0.5)])
def test_partial_auc_is_solved_by_rounding_and_by_subgradients(ranks):
    problem = small_problem(objective=PartialAUC(ranks), class_sep=2.0)
    assert not problem.smooth
    results = [SOLVERS[name]().minimize(problem) for name in ("smoothing", "ssg")]
    assert results[0].converged
    assert results[0].objective <= results[1].objective * (1.0 + 1e-4)
    assert results[1].objective <= results[0].objective * (1.0 + 2e-2)
    assert results[0].objective < problem.at(problem.start()).objective - 0.05


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("ranks", [(0.0, 0.4), (0.2, 0.7)])
def test_rounded_sums_have_their_gradient_and_subgradient_error(loss, ranks, rng):
    y, _, weight, _ = data(11)
    term, scores = PartialAUC(ranks, loss=loss).bind(y, weight), rng.normal(size=len(y))
    rounded, one, h = term.smoothed(0.3), np.ones(1), 1e-6
    assert rounded.smooth
    steps = h * np.eye(len(y))
    change = [(rounded.value(scores + e) - rounded.value(scores - e))[0] for e in steps]
    gradient = rounded.vjp(scores, one)[0]
    assert_allclose(gradient, np.array(change) / (2.0 * h), rtol=1e-6, atol=1e-8)
    assert_array_equal(term.subgradient_error(scores), 0.0)
    if term.convex:  # then the gradient is an epsilon-subgradient of the term itself
        for other in scores + rng.normal(size=(100, len(y))) * rng.choice([0.01, 0.3, 2.0]):
            below = (
                term.value(scores) + gradient @ (other - scores) - rounded.subgradient_error(scores)
            )
            assert term.value(other)[0] >= below[0] - 1e-12
    narrow = term.smoothed(1e-6)
    assert_allclose(narrow.value(scores), term.value(scores), atol=1e-5)


@given(
    values=st.lists(st.tuples(numbers, st.floats(0.1, 2.0)), min_size=1, max_size=9),
    level=st.floats(0.01, 0.99),
    width=st.sampled_from([0.01, 0.5, 4.0]),
)
def test_soft_top_holds_its_level(values, level, width):
    v, w = np.array(values).T
    shares = soft_top(v, w, level, width)
    assert w @ shares == pytest.approx(level * w.sum())
    order = np.argsort(v)
    assert np.all(np.diff(shares[order]) >= -1e-12)
    assert np.all((shares >= 0.0) & (shares <= 1.0))
