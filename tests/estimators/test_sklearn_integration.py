"""FairLogisticClassifier among scikit-learn's tools: checks, pipelines, searches."""

import joblib
import numpy as np
import pandas as pd
import pytest
from _support.columns import first_above_half, first_above_zero, last_above_zero
from _support.sklearn_checks import BOUND_ON_FEATURES, failed_checks
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
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

CHECKED = {
    "unconstrained": FairLogisticClassifier(constraint=None),
    "first > 0.5": FairLogisticClassifier(sensitive_columns=first_above_half),
    "first > 0": FairLogisticClassifier(sensitive_columns=first_above_zero),
    "last > 0": FairLogisticClassifier(sensitive_columns=last_above_zero),
    "equalized odds": FairLogisticClassifier(
        "equalized_odds", sensitive_columns=first_above_half, use_sensitive=True
    ),
}


BOUNDED = ("first > 0.5", "first > 0", "last > 0")


# Some checks cast NaN to integers; in others all rows are in one group.
@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_check_estimator(name):
    excused = BOUND_ON_FEATURES if name in BOUNDED else None
    assert failed_checks(CHECKED[name], excused) == []


@pytest.fixture
def data():
    return make_biased_classification(300, 5, gap=0.4, random_state=0)


@pytest.fixture
def frame(data):
    """A table with the numbers, a column of strings and the sensitive attribute."""
    X, y, groups = data
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
    table["town"] = np.where(np.arange(300) % 3, "north", "south")
    table["sex"] = np.where(groups > 0, "m", "f")
    return table, y


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

    def test_grid_search(self, frame):
        table, y = frame
        pipeline = make_pipeline(to_columns(), FairLogisticClassifier(sensitive_columns=["sex"]))
        grid = {
            "fairlogisticclassifier__kappa": [0.02, 0.2],
            "fairlogisticclassifier__solver": ["ipc", AugmentedLagrangian()],
        }
        search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise")
        with joblib.parallel_config("threading"):
            search.fit(table, y)
        assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
        assert search.best_estimator_[-1].result_.converged

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
    def test_grid_search(self, data, grid):
        X, y, groups = data
        search = GridSearchCV(FairLogisticClassifier(), grid, cv=2, error_score="raise")
        search.fit(X, y, sensitive_features=groups, sample_weight=np.ones(300))
        assert_array_equal(search.best_estimator_.groups_, [0, 1])
        (name,) = grid
        assert len(set(map(str, search.cv_results_[f"param_{name}"]))) == 2

    def test_cross_validate_and_predict(self, data):
        X, y, groups = data
        params = {"sensitive_features": groups, "sample_weight": np.ones(300)}
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            FairLogisticClassifier(kappa=0.02),
        )
        # In 1.6 a pipeline without a scorer cannot be scored with weights.
        accuracy = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        found = cross_validate(
            pipeline, X, y, cv=3, params=params, scoring=accuracy, return_estimator=True
        )
        assert all(one[-1].violation_ <= 1e-4 for one in found["estimator"])
        predicted = cross_val_predict(FairLogisticClassifier(), X, y, cv=3, params=params)
        assert accuracy_score(y, predicted) > 0.6


class TestParameters:
    def test_fit_changes_no_object(self, data):
        X, y, groups = data
        constraint, solver = DemographicParity(), IPC(AugmentedLagrangian(max_inner=500))
        said = repr((constraint, solver))
        classifier = FairLogisticClassifier(constraint, kappa=0.3, solver=solver, max_iter=7)
        classifier.fit(X, y, sensitive_features=groups)
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


def test_verbose_prints_a_line_per_outer_iteration(data, capsys):
    X, y, groups = data
    FairLogisticClassifier(kappa=0.02).fit(X, y, sensitive_features=groups)
    assert capsys.readouterr().out == ""
    classifier = FairLogisticClassifier(kappa=0.02, verbose=1)
    classifier.fit(X, y, sensitive_features=groups)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == classifier.n_iter_ == len(classifier.result_.trace)
    assert lines[-1].startswith(f"[FairLogisticClassifier] iteration {classifier.n_iter_}: ")
    for word in ("objective", "violation", "KKT residual"):
        assert word in lines[0]
