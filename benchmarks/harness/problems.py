"""Problems of linear models on the benchmarks' data, built without an estimator."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.data import Data
from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import WholeSpace
from fairconstrained.estimators.binding import Unconstrained, with_constraints
from fairconstrained.estimators.linear import linear_model
from fairconstrained.functions.losses import Logistic
from fairconstrained.objectives import MeanLoss
from fairconstrained.penalties import L2
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem


def signs(y: np.ndarray) -> np.ndarray:
    """Return labels -1 and +1, the larger label as +1."""
    return np.where(y == np.max(y), 1.0, -1.0)


def logistic_problem(rows: Data, constraint: Constraint) -> Problem:
    """Return the problem of the estimator's defaults: logistic loss and an L2 penalty of 1e-4."""
    X, y, groups = rows
    data = TrainingData(X, signs(y), np.array([0, 1]), Groups.encode(groups), np.ones(len(y)))
    model, penalty, domain = linear_model(
        data.X, data.sample_weight, penalty=L2(1e-4), domain=WholeSpace(), fit_intercept=True
    )
    loss = MeanLoss(Logistic()).bind(data.y, data.sample_weight)
    free = Problem(CompositeFunction(model, loss, penalty), domain=domain)
    return with_constraints(free, [constraint], data, Unconstrained(free))
