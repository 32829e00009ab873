"""beta, the parameter of "3s-econ" and "plada" that searches go over beside kappa."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from fairconstrained import (
    FairBoostingClassifier,
    FairLogisticClassifier,
    FairRanker,
    InputWarning,
    NeymanPearsonClassifier,
    make_biased_classification,
    make_biased_ranking,
)
from fairconstrained.model_selection import fairness_path
from fairconstrained.solvers import PLADA, SOLVERS, ThreeSEcon

X, Y, GROUPS = make_biased_classification(300, 4, gap=0.4, random_state=0)
WITH_BETA = ["3s-econ", "3s-econ-stochastic", "plada", "plada-stochastic"]


def fitted(beta: float, **options: object) -> FairLogisticClassifier:
    model = FairLogisticClassifier(kappa=0.02, beta=beta, random_state=0, **options)
    with warnings.catch_warnings():  # fifty steps are too few, which is said
        warnings.simplefilter("ignore")
        return model.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("solver", WITH_BETA)
def test_before_polishing_two_values_give_different_coefficients(solver: str) -> None:
    alone = SOLVERS[solver](polish=False)
    first, second = (fitted(beta, solver=alone, max_iter=50).coef_ for beta in (0.1, 5.0))
    assert np.abs(first - second).max() > 1e-3


def test_alpha_of_plada_is_fixed_where_beta_is_given() -> None:
    assert fitted(0.5, solver="plada", max_iter=50).result_.solver.alpha == 10.0
    own = fitted(0.5, solver=PLADA(alpha=3.0, polish=False), max_iter=50).result_.solver
    assert (own.alpha, own.beta) == (3.0, 0.5)
    assert fitted(0.5, solver=ThreeSEcon(polish=False), max_iter=50).result_.solver.beta == 0.5


def test_a_search_over_beta_that_no_fit_uses_says_so_once() -> None:
    grid = {"kappa": [0.1, 0.2], "beta": [0.1, 10.0]}
    search = GridSearchCV(FairLogisticClassifier(), grid, cv=2, error_score="raise")
    with pytest.warns(InputWarning, match="beta=.* is not used") as record:
        search.fit(X, Y, sensitive_features=GROUPS)
    assert len([one for one in record if "beta=" in str(one.message)]) == 1


def test_a_path_without_such_a_solver_says_so() -> None:
    with pytest.warns(InputWarning, match="beta=1.0 is not used"):
        path = fairness_path(
            FairLogisticClassifier(beta=1.0), X, Y, sensitive_features=GROUPS, n_kappas=3
        )
    assert len(path) == 3


def test_fits_without_such_a_solver_say_so_once() -> None:
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    *rows, query, groups = make_biased_ranking(8, 4, random_state=0)
    with pytest.warns(InputWarning, match="beta=.* is not used") as record:
        FairRanker(beta=0.3).fit(*rows, query=query, sensitive_features=groups)
        FairBoostingClassifier(None, n_estimators=3, beta=0.3).fit(X, Y)
    assert len([one for one in record if "beta=" in str(one.message)]) == 2


def test_every_estimator_with_a_solver_has_it() -> None:
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    boosted = FairBoostingClassifier(kappa=0.1, n_estimators=5, solver="plada", beta=0.3)
    two = NeymanPearsonClassifier(solver="plada", beta=0.3)
    *rows, query, groups = make_biased_ranking(8, 4, random_state=0)
    ranker = FairRanker(solver="plada", beta=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boosted.fit(X, Y, sensitive_features=GROUPS)
        two.fit(X, Y)
        ranker.fit(*rows, query=query, sensitive_features=groups)
    for model in (boosted, two, ranker):
        solver = model.result_.replaces or model.result_.solver
        assert isinstance(solver, PLADA) and solver.beta == 0.3
