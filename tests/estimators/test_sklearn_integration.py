"""FairLogisticClassifier among scikit-learn's tools: checks, pipelines, searches."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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


def to_columns(**options):
    return ColumnTransformer(
        [
            ("scaled", StandardScaler(), make_column_selector(dtype_include=np.number)),
            ("dummies", OneHotEncoder(sparse_output=False), ["town"]),
            ("kept", "passthrough", ["sex"]),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


class TestWithoutRouting:
    """The groups are columns of X: nothing has to be routed."""

    def test_columns_are_found_by_name_after_a_column_transformer(self, frame):
        table, y = frame
        pipeline = make_pipeline(to_columns(), FairLogisticClassifier(sensitive_columns=["sex"]))
        pipeline.fit(table, y)
        classifier = pipeline[-1]
        assert_array_equal(classifier.groups_, ["f", "m"])
        names = [*(f"x{k}" for k in range(5)), "town_north", "town_south", "sex"]
        assert_array_equal(classifier.feature_names_in_, names)
        assert classifier.coef_[0, -1] == 0.0 and np.all(classifier.coef_[0, :5])
        assert pipeline.predict(table.sample(frac=1.0, random_state=0)).shape == (300,)

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

    def test_a_callable_on_the_columns(self, frame):
        table, y = frame
        named = FairLogisticClassifier(sensitive_columns=["sex"])
        called = FairLogisticClassifier(sensitive_columns=lambda X: X["x4"] > 0)
        numbers = table.drop(columns="town")
        assert_array_equal(named.fit(numbers, y).groups_, ["f", "m"])
        called.fit(numbers.drop(columns="sex"), y)
        assert_array_equal(called.groups_, [False, True])
        assert np.all(called.coef_)  # a callable leaves no column out


@pytest.mark.usefixtures("routing")
class TestWithRouting:
    """The groups are passed beside X, through scikit-learn's metadata routing."""

    @pytest.mark.parametrize(
        "grid",
        [{"kappa": [0.02, 0.3]}, {"alpha": [1e-4, 1.0]}, {"solver": ["ipc", IPC(rho=0.1)]}],
        ids=lambda grid: next(iter(grid)),
    )
    def test_grid_search(self, grid):
        search = GridSearchCV(FairLogisticClassifier(), grid, cv=2, error_score="raise")
        search.fit(X, Y, sensitive_features=GROUPS, sample_weight=np.ones(300))
        assert_array_equal(search.best_estimator_.groups_, [0, 1])
        (name,) = grid
        assert len(set(map(str, search.cv_results_[f"param_{name}"]))) == 2


class TestParameters:
    def test_fit_changes_no_object(self):
        constraint, solver = DemographicParity(), IPC(AugmentedLagrangian(max_inner=500))
        said = repr((constraint, solver))
        classifier = FairLogisticClassifier(constraint, kappa=0.3, solver=solver, max_iter=7)
        classifier.fit(X, Y, sensitive_features=GROUPS)
        assert repr((constraint, solver)) == said and constraint.kappa is None
        assert classifier.result_.solver.max_iter == 7

    def test_repr_and_set_params(self):
        classifier = FairLogisticClassifier("equal_opportunity", kappa=0.1)
        said = "FairLogisticClassifier(constraint='equal_opportunity', kappa=0.1)"
        assert repr(classifier) == said
        assert classifier.set_params(kappa=0.2, solver=IPC()).set_params(solver__rho=1.0)
        assert classifier.kappa == 0.2 and classifier.solver.rho == 1.0
        with pytest.raises(ValueError, match="kapa"):
            classifier.set_params(kapa=1)


def test_verbose_prints_a_line_per_outer_iteration(capsys):
    FairLogisticClassifier(kappa=0.02).fit(X, Y, sensitive_features=GROUPS)
    assert capsys.readouterr().out == ""
    classifier = FairLogisticClassifier(kappa=0.02, verbose=1).fit(X, Y, sensitive_features=GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == classifier.n_iter_ == len(classifier.result_.trace)
    assert lines[-1].startswith(f"[FairLogisticClassifier] iteration {classifier.n_iter_}: ")
    for word in ("objective", "violation", "KKT residual"):
        assert word in lines[0]
