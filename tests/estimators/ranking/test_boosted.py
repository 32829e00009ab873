"""FairRanker with boosted scores: bounds, certificate, LightGBM's model, arguments."""

import numpy as np
import pytest

pytest.importorskip("lightgbm", reason="LightGBM, the extra 'boosting', is not installed")

import fairconstrained as fc
from fairconstrained.data.labels import Queries
from fairconstrained.data.validation import TrainingData
from fairconstrained.estimators.score_lagrangian import PairLoss
from fairconstrained.metrics import query_parity_difference

X, Y, QUERY, GROUPS = fc.make_biased_ranking(40, 4, n_documents=30, random_state=0)
SMALL = {"n_estimators": 15, "num_leaves": 6, "min_child_samples": 20, "n_jobs": 1}


def boosted(constraint="query_parity", kappa=0.1, *, trees=None, **options):
    model = fc.BoostedScores(**{**SMALL, **(trees or {})})
    return fc.FairRanker(constraint, kappa, model=model, **{"random_state": 0, **options})


def fitted(*args, X=X, **options):
    return boosted(*args, **options).fit(X, Y, query=QUERY, sensitive_features=GROUPS)


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def test_the_constraints_hold_and_bind(ranker):
    assert ranker.result_.status.value == "converged"
    assert ranker.violation_ <= 1e-4
    assert ranker.multipliers_.max() > 1e-3
    free = fitted(None)
    assert ranker.objective_ > free.objective_ + 1e-3
    term = fc.constraints.QueryParity(0.1).bind(2 * Y - 1, GROUPS, np.ones(len(Y)), QUERY)
    assert ranker.gap_ == pytest.approx(term.gap(ranker.predict(X)).max(), abs=1e-9)
    assert ranker.gap_ == pytest.approx(0.1, abs=1e-4)
    assert term.gap(free.predict(X)).max() > 0.15
    found = query_parity_difference(Y, ranker.predict(X), query=QUERY, sensitive_features=GROUPS)
    assert ranker.decision_gap_ == pytest.approx(found)


OTHER_CONSTRAINTS = [
    fc.constraints.QueryParity(average=True),
    fc.constraints.QueryParity(loss="logistic"),
    "inter_group_auc",
    [fc.constraints.QueryParity(0.1), "intra_group_auc"],
]


@pytest.mark.parametrize("constraint", OTHER_CONSTRAINTS, ids=str)
def test_other_constraints_hold_and_bind(constraint):
    ranker = fitted(constraint, 0.01)
    assert ranker.violation_ <= 1e-4
    assert ranker.multipliers_.max() > 1e-4


def test_linear_scores_have_no_trees():
    linear = fc.FairRanker(kappa=0.25)
    with pytest.raises(AttributeError, match=r"to_lightgbm") as error:
        linear.to_lightgbm()
    assert "model='boosted'" in str(error.value.__cause__)


def test_the_number_of_trees_is_chosen_by_queries_set_aside():
    trees = {"n_estimators": 60, "early_stopping": True, "n_iter_no_change": 5}
    trees |= {"learning_rate": 0.3, "min_child_samples": 5}
    ranker = fitted(None, trees=trees)
    assert 1 <= ranker.n_estimators_ < 60
    assert fitted("query_parity", 0.3, trees=trees).violation_ <= 1e-4


SHARE = {"constraint_fraction": 0.4}
AVERAGE = fc.constraints.QueryParity(average=True)


def test_the_bound_holds_on_the_queries_set_aside():
    ranker = fitted(AVERAGE, 0.05, trees=SHARE)
    fit = ranker.bind(X, Y, None, GROUPS, query=QUERY)
    aside = fit.split[1]
    assert len(aside.query) == 16
    (rows,) = np.nonzero(np.isin(QUERY, aside.query.names))
    bind = fc.constraints.QueryParity(0.05, average=True).bind
    term = bind(2 * Y[rows] - 1, GROUPS[rows], np.ones(len(rows)), QUERY[rows])
    assert ranker.result_.converged
    assert term.gap(ranker.predict(X[rows])).max() == pytest.approx(0.05, abs=1e-4)
    whole = bind(2 * Y - 1, GROUPS, np.ones(len(Y)), QUERY)  # what `gap_` refers to
    assert ranker.gap_ == pytest.approx(whole.gap(ranker.predict(X)).max(), abs=1e-9)
    assert ranker.multipliers_.max() > 1e-3


@pytest.mark.parametrize("constraint", ["query_parity", fc.constraints.QueryParity()], ids=str)
def test_constraints_of_single_queries_are_refused(constraint):
    with pytest.raises(ValueError, match=r"constraint_fraction=0\.4.*the same on these rows"):
        fitted(constraint, trees=SHARE)


def rows():
    y = np.where(Y > 0, 1.0, -1.0)
    queries = Queries.encode(QUERY, len(Y))
    return TrainingData(X, y, np.array([0, 1]), None, np.ones(len(Y)), query=queries)


def test_slopes_and_curvatures_of_the_loss_are_derivatives(rng):
    loss, scores = PairLoss(rows(), fc.objectives.QueryPairLoss()), rng.normal(size=len(Y))

    def mean(scores):
        return loss.total * float(loss.term.value(scores)[0])

    slopes, curvatures = loss.derivatives(scores)
    for k in rng.choice(len(Y), 5, replace=False):
        step = np.zeros(len(Y))
        step[k] = 1e-3
        ahead, behind = mean(scores + step), mean(scores - step)
        assert slopes[k] == pytest.approx((ahead - behind) / 2e-3, rel=1e-5, abs=1e-8)
        second = (ahead + behind - 2.0 * mean(scores)) / 1e-6
        assert curvatures[k] == pytest.approx(second, rel=1e-3, abs=1e-6)


BAD_PARAMETERS = [
    ({"model": fc.BoostedScores}, TypeError, "model must be .* add parentheses"),
    ({"hidden_layer_sizes": (8,)}, ValueError, "hidden_layer_sizes=.* BoostedScores"),
    ({"alpha": 1.0}, ValueError, "alpha=1.0 is a parameter of linear scores"),
    ({"warm_start": True}, ValueError, "warm_start=True"),
    ({"loss": fc.objectives.QueryPairLoss(fc.functions.Hinge())}, ValueError, "second derivatives"),
    ({"loss": "logistic"}, ValueError, "loss of pairs within queries"),
    ({"model": fc.BoostedScores(n_estimators=0)}, ValueError, "'n_estimators' parameter .*must be"),
    ({"model": fc.BoostedScores(alpha=-1.0)}, ValueError, "'alpha' parameter .*must be"),
    ({"model": fc.BoostedScores(constraint_fraction=1)}, ValueError, "constraint_fraction"),
    (
        {"model": fc.BoostedScores(lightgbm_params={"mc": [1, 1, 1]})},
        ValueError,
        "it is the parameter monotone_constraints",
    ),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_named(options, error, message):
    ranker = fc.FairRanker(**{"model": "boosted", **options})
    with pytest.raises(error, match=message):
        ranker.fit(X, Y, query=QUERY, sensitive_features=GROUPS)
