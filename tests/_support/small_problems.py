"""Small problems on generated rows: one line each in `PROBLEMS`."""

import numpy as np

from fairconstrained.constraints import DemographicParity, EqualizedOdds, EqualOpportunity
from fairconstrained.functions.losses import Hinge, Logistic, TruncatedLogistic
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import L2, SCAD, Leading
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import average


def data(seed=3, n_rows=40, n_groups=3):
    """Return X, y, groups and weights of rows; every group has both labels."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_rows) % 2, 1, -1)
    groups = np.array([f"G{k:02d}" for k in np.arange(n_rows) // 2 % n_groups])
    X = rng.normal(size=(n_rows, 3)) + 0.5 * y[:, None]
    return X, y, groups, rng.uniform(0.5, 2.0, size=n_rows)


def problem_of(rows, *constraints, loss=None, penalty=None, make=LinearModel):
    """Return the problem of a linear model, all parts on the same rows."""
    X, y, groups, weight = rows
    model = make(X)
    objective = CompositeFunction(model, average(loss or Logistic(), y, weight))
    objective = objective.add(Leading(penalty, 3)) if penalty else objective
    bound = (CompositeFunction(model, one.bind(y, groups, weight)) for one in constraints)
    return Problem(objective, tuple(bound))


def two_models():
    """Return the loss on some rows; constraints on others, without labels' weights, and on both."""
    (X, y, groups, weight), (Z, labels, members, ones) = data(), data(1, n_rows=24)
    model, reference = LinearModel(X), LinearModel(Z)
    odds = EqualizedOdds(0.02, against="overall").bind(y, groups, weight)
    opportunity = EqualOpportunity(0.1, surrogate="ramp").bind(labels, members, ones)
    constraints = (
        CompositeFunction(reference, DemographicParity(0.05).bind(labels, members, ones)),
        CompositeFunction(model, odds, L2(0.01)),
        CompositeFunction(reference, opportunity),
        CompositeFunction(slope=np.array([1.0, 0.0, 0.0, 1.0]), level=-0.5),
    )
    return Problem(CompositeFunction(model, average(Logistic(), y, weight)), constraints)


PROBLEMS = {
    "demographic_parity": problem_of(data(), DemographicParity(0.05)),
    "equal_opportunity": problem_of(data(), EqualOpportunity(0.05), penalty=L2(0.1)),
    "several": problem_of(
        data(),
        DemographicParity(0.05, surrogate="ramp"),
        EqualizedOdds(0.1),
        loss=TruncatedLogistic(),
        penalty=SCAD(0.05),
    ),
    "hinge": problem_of(data(), EqualizedOdds(0.1, against="overall"), loss=Hinge()),
    "unconstrained": problem_of(data(), penalty=L2(0.1)),
    "two_models": two_models(),
}
