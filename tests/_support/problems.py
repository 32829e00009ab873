"""The problems that every solver is tried on: one line each in `PROBLEMS`."""

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.optimize import minimize

import fairconstrained as fc
from benchmarks.harness.paper_problems import simple_example
from fairconstrained.domains import Box, Domain, L1Ball, L2Ball, Leading, WholeSpace
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans, average, cell_matrix


def classification(
    *constraints: fc.constraints.Constraint,
    n_groups: int = 2,
    loss: fc.functions.Loss | None = None,
    domain: Domain | None = None,
    seed: int = 0,
) -> Problem:
    """Return the training of a linear classifier on small generated data."""
    X, y, groups = fc.make_biased_classification(
        400, 4, n_groups=n_groups, gap=0.4, class_sep=1.0, random_state=seed
    )
    signs, weight = 2.0 * y - 1.0, np.ones(len(y))
    model = LinearModel(X)
    objective = average(loss or fc.functions.Logistic(), signs, weight)
    return Problem(
        CompositeFunction(model, objective, LeadingPenalty(fc.penalties.L2(1e-2), 4)),
        tuple(CompositeFunction(model, c.bind(signs, groups, weight)) for c in constraints),
        Leading(domain or WholeSpace(), 4),
    )


def rate_between(low: float, high: float, domain: Domain | None = None, function=None) -> Problem:
    """Return a problem whose start violates: the rate of all rows is to lie in [low, high]."""
    problem = classification()
    model = problem.objective.model
    cell = cell_matrix(np.zeros(model.n_rows, dtype=int), np.ones(model.n_rows), 1)
    both_ways = np.array([[1.0], [-1.0]])
    names = (f"rate <= {high}", f"rate >= {low}")
    offset = np.array([high, -low])
    rate = CellMeans(cell, function or Sigmoid(), combination=both_ways, offset=offset, names=names)
    return Problem(problem.objective, (CompositeFunction(model, rate),), domain or WholeSpace())


def toy_of_ipc() -> Problem:
    """Return E1: min x'Ax/2 s.t. x'Bx/2 <= 10, |x|_1 <= 1; its solutions are (0, +-1)."""
    return simple_example(small=True).problem


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "unconstrained": classification,
    "demographic parity": lambda: classification(fc.DemographicParity(0.05)),
    "equalized odds, 3 groups": lambda: classification(fc.EqualizedOdds(0.1), n_groups=3),
    "zero gap": lambda: classification(fc.DemographicParity(0.0)),
    "against overall": lambda: classification(
        fc.DemographicParity(0.05, against="overall"), n_groups=4
    ),
    "two constraints": lambda: classification(fc.DemographicParity(0.1), fc.EqualOpportunity(0.02)),
    "truncated logistic": lambda: classification(
        fc.DemographicParity(0.05), loss=fc.functions.TruncatedLogistic()
    ),
    "box": lambda: classification(fc.DemographicParity(0.05), domain=Box(-0.2, 0.2)),
    "L1 ball": lambda: classification(fc.DemographicParity(0.05), domain=L1Ball(0.4)),
    "L2 ball": lambda: classification(fc.DemographicParity(0.05), domain=L2Ball(0.3)),
    "infeasible start": lambda: rate_between(0.8, 0.9),
}

NON_SMOOTH: dict[str, Callable[[], Problem]] = {
    "hinge": lambda: classification(fc.DemographicParity(0.05), loss=fc.functions.Hinge()),
    "ramp": lambda: classification(fc.DemographicParity(0.05, surrogate=Ramp())),
}


def reference(problem: Problem, starts: int = 5) -> float:
    """Return the least objective that scipy finds from several starts (SLSQP).

    Balls become inequality constraints of scipy's own, so that nothing of ours is tested by
    itself but the functions and gradients, which other tests compare with finite differences.
    """
    rng = np.random.default_rng(0)
    n, ball = problem.n_variables, getattr(problem.domain, "domain", problem.domain)
    bounds, units = None, np.eye(problem.n_constraints)
    rules: list[dict] = []
    if isinstance(ball, Box):
        size = getattr(problem.domain, "size", n)
        bounds = [(ball.lower, ball.upper)] * size + [(None, None)] * (n - size)
    if isinstance(ball, L2Ball):
        rules = [{"type": "ineq", "fun": lambda w: ball.radius**2 - w[:4] @ w[:4]}]
    if isinstance(ball, L1Ball):  # its faces
        signs = np.array(list(product((-1.0, 1.0), repeat=4)))
        rules = [{"type": "ineq", "fun": lambda w: ball.radius - signs @ w[:4]}]
    if problem.n_constraints:

        def gradients(w):
            return np.array([-problem.at(w).gradient(unit, objective=0.0) for unit in units])

        values = {"fun": lambda w: -problem.at(w).constraints, "jac": gradients}
        rules.append({"type": "ineq", **values})
    best = np.inf
    for k in range(starts):
        found = minimize(
            lambda w: problem.at(w).objective,
            problem.start() + (k > 0) * 0.3 * rng.standard_normal(n),
            jac=lambda w: problem.at(w).gradient(),
            bounds=bounds,
            constraints=rules,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 1000},
        )
        if problem.at(found.x).violation < 1e-8:
            best = min(best, float(found.fun))
    return best
