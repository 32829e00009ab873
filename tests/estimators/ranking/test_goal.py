"""goal="fairness" of rankers: the least gap for a loss that is nearly the best."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairconstrained import BoostedScores, FairRanker, fairness_path, make_biased_ranking
from fairconstrained.constraints import QueryParity
from fairconstrained.estimators import ranker_models as models

X, Y, QUERY, GROUPS = make_biased_ranking(25, 4, random_state=0)
AVERAGE = QueryParity(average=True)


def fairest(constraint=AVERAGE, **options):
    ranker = FairRanker(constraint, goal="fairness", random_state=0, **options)
    return ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)


def test_the_loss_allowed_is_spent_on_fairness():
    free = FairRanker(None).fit(X, Y, query=QUERY)
    unfair = FairRanker(AVERAGE, 1.0).fit(X, Y, query=QUERY, sensitive_features=GROUPS)
    fair = fairest(max_loss_increase=0.02)
    assert fair.result_.converged
    assert_allclose(fair.objective_, 1.02 * free.objective_, rtol=2e-4)
    assert fair.gap_ < unfair.gap_ - 0.1
    assert fair.multipliers_[-1] > 0.0, "the constraint on the loss is active"


def test_a_larger_loss_allows_a_smaller_gap():
    gaps = [fairest(max_loss_increase=m).gap_ for m in (0.001, 0.02, 0.1)]
    assert gaps[0] > gaps[1] + 0.05 > gaps[2] + 0.1


def test_both_goals_meet():
    fair = fairest(max_loss_increase=0.02, tol=1e-5)
    accurate = FairRanker(AVERAGE, kappa=fair.gap_, tol=1e-5)
    accurate = accurate.fit(X, Y, query=QUERY, sensitive_features=GROUPS)
    assert_allclose(accurate.objective_, fair.objective_, rtol=1e-4)


def test_a_constraint_for_every_query_gives_the_gap_of_the_worst():
    fair = fairest("query_parity", max_loss_increase=0.1)
    free = FairRanker(None).fit(X, Y, query=QUERY)
    problem = fair.bind(X, Y, sensitive_features=GROUPS, query=QUERY).problem
    assert fair.violation_ <= fair.tol
    assert fair.gap_ < problem.at(free.result_.w).gap - 0.05
    assert problem.at(fair.result_.w[:-1]).gap == pytest.approx(fair.gap_, abs=1e-9)


def test_boosted_scores():
    pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")
    trees = BoostedScores(n_estimators=20, num_leaves=6, n_jobs=1)
    free = FairRanker(None, model=trees, random_state=0).fit(X, Y, query=QUERY)
    fair = fairest(model=trees, max_loss_increase=0.02)
    problem = (
        FairRanker(AVERAGE, kappa=0.25).bind(X, Y, sensitive_features=GROUPS, query=QUERY).problem
    )
    unfair = problem.constraints[0].term.value(free.predict(X)).max() + 0.25
    assert fair.result_.converged
    assert fair.objective_ <= 1.02 * free.objective_ + 1e-4
    assert fair.gap_ < 0.1 * unfair
    assert np.isfinite(fair.predict(X)).all()


class TestNetworks:
    """With few steps: networks are not trained to the end."""

    ROWS = make_biased_ranking(10, 3, n_documents=20, random_state=0)

    @pytest.fixture(autouse=True)
    def few_steps(self, monkeypatch):
        pytest.importorskip("torch", reason="networks need PyTorch, an optional dependency")
        monkeypatch.setattr(models, "_LEAST_STEPS", 200)

    def network(self, **options):
        return FairRanker(AVERAGE, hidden_layer_sizes=(3,), random_state=0, **options)

    @pytest.mark.cases(0)
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_gap_falls_within_the_loss_allowed(self):
        X, y, query, groups = self.ROWS
        fair = self.network(goal="fairness", max_loss_increase=0.05, max_iter=3)
        fair.fit(X, y, query=query, sensitive_features=groups)
        fit = fair.bind(X, y, sensitive_features=groups, query=query)
        free = fit.unconstrained.result
        assert fair.violation_ <= fair.tol
        assert fair.objective_ <= 1.05 * free.objective + 1e-3
        assert fair.gap_ < fit.problem.at(free.w).gap - 0.1
        again = self.network().bind(X, y, sensitive_features=groups, query=query)
        assert again.unconstrained.result.objective == free.objective, "random_state is used"

    @pytest.mark.cases(0)
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_paths(self):
        X, y, query, groups = self.ROWS
        path = fairness_path(
            self.network(), X, y, kappas=[1.0, 0.1], query=query, sensitive_features=groups
        )
        assert path.violations.max() <= 1e-4
        assert np.all(path.gaps <= path.kappas + 1e-4)
        assert path.objectives[1] > path.objectives[0]
        scores = path.estimator_at(1).predict(X)
        term = AVERAGE.bind(2 * y - 1, groups, np.ones(len(y)), query)
        assert term.gap(scores).max() == pytest.approx(path.gaps[1], abs=1e-9)
