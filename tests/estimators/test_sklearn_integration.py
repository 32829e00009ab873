"""FairLogisticClassifier among scikit-learn's tools: checks, pipelines, searches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from fairconstrained import (
    DemographicParity,
    EqualizedOdds,
    FairLogisticClassifier,
    make_biased_classification,
)
from fairconstrained.functions.surrogates import Sigmoid
from fairconstrained.solvers import IPC, AugmentedLagrangian

X, Y, GROUPS = make_biased_classification(300, 5, gap=0.4, random_state=0)


@pytest.fixture
def frame():
    """A table with the numbers, a column of strings and the sensitive attribute."""
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
    table["town"] = np.where(np.arange(300) % 3, "north", "south")
    table["sex"] = np.where(GROUPS > 0, "m", "f")
    return table, Y


class TestWithoutRouting:
    """The groups are columns of X: nothing has to be routed."""

    def test_parameters_of_objects_are_searched(self, frame):
        table, y = frame
        numbers = table.drop(columns="town")
        classifier = FairLogisticClassifier(
            EqualizedOdds(kappa=0.1, surrogate=Sigmoid()),
            solver=AugmentedLagrangian(),
            sensitive_columns="sex",
        )
        grid = {
            "constraint__kappa": [0.05, 0.3],
            "constraint__surrogate__scale": [1.0, 0.5],
            "solver__sigma": [1.0, 10.0],
        }
        search = GridSearchCV(classifier, grid, cv=2, error_score="raise").fit(numbers, y)
        assert len(search.cv_results_["params"]) == 8
        best = search.best_estimator_
        assert best.get_params()["constraint__kappa"] == search.best_params_["constraint__kappa"]
        assert best.result_.solver.sigma == search.best_params_["solver__sigma"]
        assert classifier.constraint.kappa == 0.1 and classifier.solver.sigma == 3.0


class TestParameters:
    def test_fit_changes_no_object(self):
        constraint, solver = DemographicParity(), IPC(AugmentedLagrangian(max_inner=500))
        said = repr((constraint, solver))
        classifier = FairLogisticClassifier(constraint, kappa=0.3, solver=solver, max_iter=7)
        classifier.fit(X, Y, sensitive_features=GROUPS)
        assert repr((constraint, solver)) == said and constraint.kappa is None
        assert classifier.result_.solver.max_iter == 7


def test_verbose_prints_a_line_per_outer_iteration(capsys):
    FairLogisticClassifier(kappa=0.02).fit(X, Y, sensitive_features=GROUPS)
    assert capsys.readouterr().out == ""
    classifier = FairLogisticClassifier(kappa=0.02, verbose=1).fit(X, Y, sensitive_features=GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == classifier.n_iter_ == len(classifier.result_.trace)
    assert lines[-1].startswith(f"[FairLogisticClassifier] iteration {classifier.n_iter_}: ")
    for word in ("objective", "violation", "KKT residual"):
        assert word in lines[0]
