"""The real problems on which every solver is judged, as Problems, with reference objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairconstrained import DemographicParity, EqualizedOdds
from fairconstrained.constraints import Constraint
from fairconstrained.data.groups import Groups
from fairconstrained.datasets import fetch_a9a, fetch_bank, fetch_compas, fetch_law_school
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.estimators.fit import TrainingData, build_problem
from fairconstrained.functions.losses import Logistic, Loss
from fairconstrained.penalties.base import L2, Penalty
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, Result


def encode(frame):
    """Return numeric columns standardised and the others one-hot, as an array."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
    ).fit_transform(frame)


def _a9a():
    data = fetch_a9a()
    return data.data, data.target, data.sensitive_features


def _bank():
    data = fetch_bank(version="additional")
    return encode(data.data), data.target, data.sensitive_features["age"]


def _compas():
    data = fetch_compas()
    rows = data.sensitive_features["race"].isin(["African-American", "Caucasian"])
    X = encode(data.data[rows])
    return X, data.target[rows], data.sensitive_features["race"][rows].astype(str)


def _law_school():
    data = fetch_law_school()
    return encode(data.data), data.target, data.sensitive_features["race"]


DATA: dict[str, Callable] = {
    "a9a": _a9a,
    "bank": _bank,
    "compas": _compas,
    "law school": _law_school,
}
CONSTRAINTS: dict[str, Constraint] = {
    "demographic parity 0.02": DemographicParity(0.02),
    "equalized odds 0.05": EqualizedOdds(0.05),
}


@cache
def training_data(name: str) -> TrainingData:
    """Return a data set as checked arrays; the positive class is the larger label."""
    X, y, groups = DATA[name]()
    labels = np.where(np.asarray(y) == np.max(y), 1.0, -1.0)
    weight = np.ones(len(labels))
    return TrainingData(X, labels, np.array([-1, 1]), Groups.encode(groups), weight)


@dataclass(frozen=True, eq=False)
class RealProblem:
    """A problem of the grid: data set, constraint, and what is minimised."""

    data: str
    constraint: str
    loss: Loss = field(default_factory=Logistic)
    penalty: Penalty = field(default_factory=lambda: L2(1e-4))
    domain: Domain = field(default_factory=WholeSpace)

    def build(self) -> Problem:
        """Return a new Problem (its counter starts at zero)."""
        return build_problem(
            training_data(self.data),
            [CONSTRAINTS[self.constraint]],
            loss=self.loss,
            penalty=self.penalty,
            domain=self.domain,
            fit_intercept=True,
        )

    @cache  # noqa: B019  (a handful of frozen instances)
    def reference(self) -> Result:
        """Return the solution to a KKT residual of 1e-7."""
        return AugmentedLagrangian(tol=1e-7, max_iter=300).minimize(self.build())


GRID = [RealProblem(data, constraint) for data in DATA for constraint in CONSTRAINTS]
