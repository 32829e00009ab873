"""Solvers on every constraint, on pairs of rows and on networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pytest
from _support.pairs import data
from _support.problems import classification
from numpy.testing import assert_allclose, assert_array_equal

import fairconstrained as fc
from fairconstrained import solvers
from fairconstrained.constraints import CLASSIFIER_CONSTRAINTS
from fairconstrained.estimators.solving import data_pass_limit
from fairconstrained.functions.losses import Hinge, Logistic, Loss
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.models import Model
from fairconstrained.models.linear import LinearModel
from fairconstrained.objectives import PartialAUC
from fairconstrained.penalties import L2, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.kkt import KKT, estimate_multipliers, objective_scale
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.registry import without_kinks
from fairconstrained.terms.cell_means import average


def test_polishing_ends_what_first_order_steps_leave_unfinished() -> None:
    problem = classification(fc.EqualizedOdds(0.02, surrogate=Ramp()), n_groups=3)
    rough = solvers.PLADA(max_iter=20, polish=False).minimize(problem)
    fine = solvers.PLADA(max_iter=20).minimize(problem)
    assert not rough.converged
    assert fine.converged
    assert fine.data_passes > rough.data_passes
    assert fine.trace.data_passes[-1] == pytest.approx(fine.data_passes)
    assert fine.n_iter == fine.trace.iteration[-1] > rough.n_iter


def test_the_pass_limit_of_polishing_is_not_that_of_the_run(monkeypatch) -> None:
    monkeypatch.setattr(solvers.base, "_MOST_PASSES", 3)
    problem = classification(fc.EqualizedOdds(0.02, surrogate=Ramp()), n_groups=3)
    result = solvers.PLADA(max_iter=20).minimize(problem, max_data_passes=1000)
    assert result.data_passes < 100
    assert result.status is solvers.Status.ITERATION_LIMIT


@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.ConstantDecisionWarning")
@pytest.mark.parametrize(
    ("constraint", "surrogate", "n_rows", "n_features", "most"),
    [
        ("group_auc", "quadratic", 700, 10, 50),
        ("group_auc", "quadratic", 60, 3, 150),
        ("intra_group_auc", "quadratic", 60, 3, 150),
        ("roc_parity", "sigmoid", 60, 3, 400),
        ("roc_parity", "ramp", 60, 3, 1100),
        ("weak_partial_dp", "ramp", 60, 3, 1100),
        ("equalized_odds", "ramp", 856, 10, 500),
    ],
)
def test_problems_without_an_interior_are_solved_to_the_tolerance(
    constraint: str, surrogate: str, n_rows: int, n_features: int, most: float
) -> None:
    """With 60 rows the data passes are those of two solvers, see `best_of`."""
    X, y, groups = fc.make_biased_classification(n_rows, n_features, random_state=0)
    clf = fc.FairLogisticClassifier(constraint, kappa=0.0, surrogate=surrogate)
    result = clf.fit(X, y, sensitive_features=groups).result_
    assert result.converged
    assert result.data_passes <= most
    constant = np.mean(y)
    entropy = -constant * np.log(constant) - (1.0 - constant) * np.log1p(-constant)
    assert result.objective <= entropy


def test_tolerances_are_relative_where_the_loss_is_near_zero() -> None:
    X, _, groups = fc.make_biased_classification(300, 5, random_state=0)
    y = (X[:, 0] + 0.3 * X[:, 1] > 0.0).astype(int)
    options = {"kappa": 0.3, "alpha": 1e-6}
    rough = fc.FairLogisticClassifier(**options).fit(X, y, sensitive_features=groups)
    exact = fc.FairLogisticClassifier(**options, tol=1e-9).fit(X, y, sensitive_features=groups)
    assert rough.result_.converged
    assert rough.objective_ == pytest.approx(exact.objective_, rel=2e-3)
    problem = classification(fc.DemographicParity(0.1))
    assert objective_scale(problem.at(problem.start())) == 1.0


def relative_loss(name: str, constraint: str, surrogate: str) -> float:
    """Return by how much the objective of a named solver exceeds the best one known."""
    problem = fitted_problem(constraint, surrogate)
    solver = without_kinks(problem, solvers.SOLVERS[name]())
    limit = data_pass_limit(problem, solver.tol)
    result = solver.minimize(problem, random_state=0, max_data_passes=limit)
    assert result.violation <= 1e-3
    assert result.data_passes <= 1.1 * limit
    others = (solvers.Smoothing(), solvers.Smoothing(solvers.ExactPenalty()))
    found = [other.minimize(problem) for other in others]
    best = min(one.objective for one in found if one.violation <= 1e-3)
    return result.objective / best - 1.0


def fitted_problem(constraint: str, surrogate: str):
    X, y, groups = fc.make_biased_classification(300, 5, random_state=0)
    kappa = {"bounded_group_loss": 0.6}.get(constraint, 0.05)
    clf = fc.FairLogisticClassifier(constraint, kappa=kappa, surrogate=surrogate)
    return clf.bind(X, y, None, groups).problem


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", solvers.SOLVERS)
def test_every_solver_on_a_constraint(name: str) -> None:
    assert relative_loss(name, "equalized_odds", "sigmoid") <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["sigmoid", "ramp"])
@pytest.mark.parametrize("constraint", CLASSIFIER_CONSTRAINTS)
@pytest.mark.parametrize("name", solvers.SOLVERS)
def test_every_solver_on_every_constraint(name: str, constraint: str, surrogate: str) -> None:
    assert relative_loss(name, constraint, surrogate) <= 0.02


@dataclass(frozen=True, eq=False)
class TanhNetwork(Model):
    r"""Scores :math:`\tanh(X W + 1 b^\top) a + c` of one hidden layer.

    The parameters are W (n_features, n_hidden), b, a (n_hidden,) and c, in this order.
    """

    X: np.ndarray
    n_hidden: int = 4

    @property
    def n_rows(self):
        return len(self.X)

    @property
    def n_parameters(self):
        return (self.X.shape[1] + 2) * self.n_hidden + 1

    def _split(self, w):
        n, h = self.X.shape[1], self.n_hidden
        inner, shift, outer, offset = np.split(w, np.cumsum([n * h, h, h]))
        return inner.reshape(n, h), shift, outer, offset

    def start(self, random_state):
        """Return random weights: at zero the gradient of the inner layer vanishes."""
        w = random_state.standard_normal(self.n_parameters)
        w[: self.X.shape[1] * self.n_hidden] /= np.sqrt(self.X.shape[1])
        w[-1] = 0.0
        return w

    def forward(self, w):
        inner, shift, outer, offset = self._split(w)
        units = np.tanh(self.X @ inner + shift)
        return units @ outer + offset, partial(self._back, units, outer)

    def _back(self, units, outer, v):
        back = np.outer(v, outer) * (1.0 - units**2)
        return np.concatenate([(self.X.T @ back).ravel(), back.sum(axis=0), units.T @ v, [v.sum()]])

    def batch(self, rows):
        return replace(self, X=self.X[rows])

    def on(self, X):
        return replace(self, X=X)

    def offset(self):
        return np.eye(self.n_parameters)[-1]


def network_problem(loss: Loss, surrogate: str | Ramp) -> Problem:
    """Return the training of a network on labels that no linear score separates."""
    X, y, groups = fc.make_biased_classification(300, 3, gap=0.4, class_sep=1.0, random_state=0)
    signs = np.where((y > 0) ^ (np.abs(X[:, 2]) > 1.2), 1.0, -1.0)
    weight, model = np.ones(len(y)), TanhNetwork(X)
    parity = fc.DemographicParity(0.05, surrogate=surrogate).bind(signs, groups, weight)
    penalty = Leading(L2(1e-3), model.n_parameters)
    objective = CompositeFunction(model, average(loss, signs, weight), penalty)
    return Problem(objective, (CompositeFunction(model, parity),))


NETWORKS = {
    "smooth": lambda: network_problem(Logistic(), "sigmoid"),
    "hinge and ramp": lambda: network_problem(Hinge(), Ramp()),
}


USABLE = {name: solvers.available_solvers(make()) for name, make in NETWORKS.items()}


RUNS = [(name, solver) for name, usable in USABLE.items() for solver in usable]


NOT_ABLE = [(name, s) for name in USABLE for s in solvers.SOLVERS if s not in USABLE[name]]


# Local minima differ: those found from this start lie within a twelfth of one another.
SPREAD = 1.12


SHORTER = {"plada-stochastic": 1500, "ssg-stochastic": 50}


@cache
def solved(name: str, solver: str) -> solvers.Result:
    short = solvers.SOLVERS[solver]().with_options(max_iter=SHORTER.get(solver))
    return short.minimize(NETWORKS[name](), random_state=0)


@cache
def unconstrained(name: str) -> float:
    """Return the violation of the network without constraints."""
    problem = NETWORKS[name]()
    free = problem.with_constraints(())
    return problem.at(solvers.default_solver(free).minimize(free, random_state=0).w).violation


@pytest.mark.parametrize(("name", "solver"), RUNS)
def test_solvers_that_can_train_a_fair_network(name: str, solver: str) -> None:
    """The residual is recomputed from the point and its multipliers by formula."""
    problem, result = NETWORKS[name](), solved(name, solver)
    start, at = problem.at(problem.start(0)), problem.at(result.w)
    best = min(solved(name, other).objective for other in ("smoothing", "ssg"))
    assert unconstrained(name) > 0.05  # the constraint is active
    assert result.violation <= 1e-4
    assert result.objective <= 0.9 * start.objective
    assert result.objective <= SPREAD * best
    assert (result.objective, result.violation) == pytest.approx((at.objective, at.violation))
    assert result.multipliers.shape == (problem.n_constraints,)
    assert result.multipliers.min() >= 0.0
    assert np.isfinite(result.kkt_residual)
    if problem.smooth:
        found = KKT.of(at, result.multipliers)
        assert result.kkt_residual == pytest.approx(found.residual, rel=1e-6, abs=1e-12)
        assert KKT.of(at, estimate_multipliers(at)).stationarity <= 0.05


@pytest.mark.parametrize(("name", "solver"), NOT_ABLE)
def test_the_others_refuse(name: str, solver: str) -> None:
    with pytest.raises(fc.IncompatibleSolverError, match="use one of the solvers"):
        solvers.SOLVERS[solver]().minimize(NETWORKS[name]())


def test_partial_auc_is_solved_by_rounding_and_by_subgradients():
    X, y, _ = fc.make_biased_classification(300, 3, class_sep=2.0, random_state=1)
    auc = PartialAUC((0.0, 0.4)).bind(2.0 * y - 1.0, np.ones(len(y)))
    problem = Problem(CompositeFunction(LinearModel(X), auc, L2(1e-2)))
    assert not problem.smooth
    results = [solvers.SOLVERS[name]().minimize(problem) for name in ("smoothing", "ssg")]
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
            near = term.value(scores) + gradient @ (other - scores)
            below = near - rounded.subgradient_error(scores)
            assert term.value(other)[0] >= below[0] - 1e-12
    narrow = term.smoothed(1e-6)
    assert_allclose(narrow.value(scores), term.value(scores), atol=1e-5)
