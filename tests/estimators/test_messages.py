"""Errors and warnings: each names the argument, what was found and what is valid."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from fairconstrained import (
    ConvergenceWarning,
    DemographicParity,
    EqualizedOdds,
    FairLogisticClassifier,
    FairRanker,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    InputWarning,
    VacuousConstraintWarning,
    compare,
    make_biased_classification,
)
from fairconstrained.domains import Box, L1Ball
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.objectives import PairwiseLoss
from fairconstrained.penalties import SCAD
from fairconstrained.plotting import GroupRateDisplay, ScoreDensityDisplay
from fairconstrained.solvers import IPC, AugmentedLagrangian
from fairconstrained.solvers import SOLVERS as REGISTERED

X, Y, GROUPS = make_biased_classification(200, 4, gap=0.4, random_state=0)
QUERY = np.arange(200) // 50
FRAME = pd.DataFrame(X, columns=list("abcd"))
SOLVERS = [repr(name) for name in ("auto", *REGISTERED)]
SURROGATES = ["'sigmoid'", "'ramp'"]
INSTANCE, PARENTHESES = "an instance of", "add parentheses"


@contextmanager
def raises(error, *words):
    """Expect this class of error or that of parameters, its message holding all the words."""
    with pytest.raises(error) as found:
        yield
    assert found.type in (error, InvalidParameterError)
    message = str(found.value)
    assert [word for word in words if word not in message] == [], message


def fit(X=X, y=Y, groups=GROUPS, sample_weight=None, **options):
    classifier = FairLogisticClassifier(**options)
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


PARITIES = ["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
NAMES = {  # an option, and what its message has beside the option's name and the valid ones
    "constraint": ({"constraint": "parity"}, ["constraint='parity'", *map(repr, PARITIES)]),
    "one of a list": ({"constraint": ["equalized_odds", "x"]}, ["constraint='x'", PARITIES[0]]),
    "solver": ({"solver": "newton"}, ["solver='newton'", *SOLVERS]),
    "surrogate": ({"surrogate": "step"}, ["surrogate='step'", *SURROGATES]),
    "own surrogate": (
        {"constraint": DemographicParity(surrogate="step")},
        ["surrogate='step'", *SURROGATES],
    ),
    "loss": ({"loss": "log"}, ["loss='log'", "'logistic'", "'truncated_logistic'", "'hinge'"]),
    "against": (
        {"constraint": DemographicParity(against="all")},
        ["against='all'", "'pairs'", "'overall'"],
    ),
    "enforce": ({"enforce": "both"}, ["enforce", "'score'", "'decision'"]),
    "own kappa": ({"constraint": DemographicParity(2)}, ["kappa", "between 0 and 1", "2"]),
}
OBJECTS = {
    **{
        name: ({name: kind}, [name, kind.__name__, PARENTHESES])
        for name, kind in {
            "constraint": EqualizedOdds, "solver": IPC, "surrogate": Ramp, "loss": Logistic,
        }.items()
    },
    "domain": ({"domain": L1Ball}, ["domain", "L1Ball", INSTANCE]),
    "name of a domain": ({"domain": "l1"}, ["domain", INSTANCE, "Domain", "'l1'"]),
    "number for a domain": ({"domain": 3.0}, ["domain", INSTANCE, "Domain", "3.0"]),
    "number for a solver": ({"solver": 3}, ["solver", "an instance of Solver", "3", *SOLVERS]),
    "no solver": ({"solver": None}, ["solver", "an instance of Solver", "None", *SOLVERS]),
}  # fmt: skip
VALID = {  # by parameter: what is said of it, and values that are not valid
    "kappa": ("between 0 and 1", [-0.1, 1.5, np.nan, "0.1", None, True]),
    "alpha": ("[0.0, inf)", [-1.0, np.nan, np.inf, "0.1", None, SCAD, np.ones(1), True]),
    "tol": ("range (0.0, inf)", [0.0, -1.0, np.nan, "small", None, True]),
    "max_iter": ("range [1, inf)", [0, -3, 1.5, "many", True]),
    "verbose": ("an int", ["loud", None]),
    **dict.fromkeys(("fit_intercept", "use_sensitive", "warm_start"), ("bool", ["no", None, 2])),
}


@pytest.mark.cases(len(NAMES))
@pytest.mark.parametrize(("options", "words"), NAMES.values(), ids=NAMES)
def test_unknown_names_are_answered_with_the_valid_ones(options, words):
    with raises(ValueError, *words):
        fit(**options)


@pytest.mark.cases(len(OBJECTS))
@pytest.mark.parametrize(("options", "words"), OBJECTS.values(), ids=OBJECTS)
def test_what_is_no_instance(options, words):
    with raises(TypeError, *words):
        fit(**options)


@pytest.mark.cases(len(VALID))
@pytest.mark.parametrize("name", VALID)
def test_numbers_and_switches(name):
    said, values = VALID[name]
    for value in values:
        with raises(ValueError, name, repr(value), said):
            fit(**{name: value})


def test_valid_numbers_of_other_types():
    assert fit(kappa=np.float32(0.1), alpha=0, max_iter=np.int64(50), verbose=False).violation_ < 1
    assert fit(kappa=1, fit_intercept=np.True_).result_.converged
    assert fit(constraint=DemographicParity(0.1), kappa=None).result_.converged


@pytest.mark.parametrize("solver", ["auto", "ipc", AugmentedLagrangian()])
def test_beta_with_a_solver_that_has_none(solver):
    with pytest.warns(InputWarning, match="beta=2.0 is not used") as said:
        fit(beta=2.0, solver=solver)
    (text,) = [str(one.message) for one in said if "beta" in str(one.message)]
    assert "'3s-econ'" in text and "'plada-stochastic'" in text and "constraint__beta" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": IPC(), "surrogate": "ramp"}, ["IPC", "weakly convex", "ssg"]),
        ({"solver": AugmentedLagrangian(), "loss": "hinge"}, ["smooth", "ssg"]),
        ({"solver": REGISTERED["ipp-ssg"](), "surrogate": "ramp"}, ["weakly convex", "ssg"]),
    ],
)
def test_a_solver_that_cannot(options, words):
    with raises(IncompatibleSolverError, "use one of the solvers", *words):
        fit(**options)


NEEDED = ["'demographic_parity'", "sensitive_features", "sensitive_columns"]
MISSING = "missing values in 100 of 200 rows"
COLUMNS = {"groups": None, "sensitive_columns": ["sex"]}
NO_GROUPS = {
    "not given": ({"groups": None}, [*NEEDED, "needs groups"]),
    "no columns": ({"groups": None, "sensitive_columns": []}, NEEDED),
    "a function of nothing": ({"groups": None, "sensitive_columns": lambda X: None}, NEEDED),
    "given twice": ({"sensitive_columns": [0]}, ["given twice", *NEEDED[1:]]),
    "missing in X": (
        {"X": FRAME.assign(sex=np.where(GROUPS > 0, None, "f")), **COLUMNS},
        ["sensitive_columns", MISSING],
    ),
    "missing in polars": (
        {"groups": [None if group else "a" for group in GROUPS]},
        ["sensitive_features", MISSING],
    ),
    "groups too short": ({"groups": GROUPS[1:]}, ["sensitive_features has 199 rows, X has 200"]),
    "a function of too few": (
        {"groups": None, "sensitive_columns": lambda X: ["a"]},
        ["sensitive_columns has 1 rows, X has 200"],
    ),
    "y too short": ({"y": Y[1:]}, ["y has 199 rows, X has 200"]),
    "weights too few": ({"sample_weight": np.ones(3)}, ["sample_weight", "(3,)", "(200,)"]),
    "a name": ({"groups": "sex"}, ["sensitive_features", "'sex'", "X['sex']", NEEDED[2]]),
    "dictionaries": ({"groups": [{}] * 200}, ["sensitive_features must hold strings", "dict"]),
    "no such name": ({"X": FRAME, **COLUMNS}, [NEEDED[2], "'sex'", "['a', 'b', 'c', 'd']"]),
    "no names": (COLUMNS, [NEEDED[2], "'sex'", "4 columns without names"]),
    **{
        f"no column {k}": ({"groups": None, "sensitive_columns": [k]}, [NEEDED[2], str(k)])
        for k in (4, -5)
    },
    **{
        f"not columns: {value}": (
            {"groups": None, "sensitive_columns": value},
            [NEEDED[2], "names or positions", "found"],
        )
        for value in (0.5, [0.5], [True, False, False, False], True, [None], [b"a"])
    },
    "all columns": (
        {"groups": None, "sensitive_columns": [0, 1, 2, 3]},
        ["sensitive_columns=[0, 1, 2, 3]", "no features are left"],
    ),
    "one class": ({"y": ["no"] * 200}, ["y must have two classes", "one class: 'no'"]),
}


@pytest.mark.cases(len(NO_GROUPS))
@pytest.mark.parametrize(("given", "words"), NO_GROUPS.values(), ids=NO_GROUPS)
def test_rows_groups_and_columns(given, words):
    with raises(ValueError, *words):
        fit(**given)


@pytest.mark.parametrize(
    ("weight", "words"),
    [(np.zeros(200), "non-zero"), (-np.ones(200), "Negative"), (np.full(200, np.nan), "NaN")],
)
def test_weights(weight, words):
    with pytest.raises(ValueError, match=f"(?i)sample.weight.*{words}|{words}.*sample.weight"):
        fit(sample_weight=weight)


class TestWarnings:
    def test_one_group_only(self):
        with pytest.warns(VacuousConstraintWarning, match="fewer than two groups.*found: 0"):
            alone = fit(groups=np.zeros(200, dtype=int))
        free = fit(constraint=None)
        np.testing.assert_allclose(alone.coef_, free.coef_, atol=1e-6)
        assert alone.result_.converged and alone.violation_ == 0.0

    @pytest.mark.parametrize("constraint", ["equalized_odds", "intra_group_auc"])
    def test_cells_without_rows_have_the_names_of_groups_and_labels(self, constraint):
        groups = np.where((Y == 0) & (np.arange(200) % 4 == 0), "c", np.array(["a", "b"])[GROUPS])
        with pytest.warns(VacuousConstraintWarning) as found:
            clf = fit(y=np.where(Y, "yes", "no"), groups=groups, constraint=constraint)
        said = " ".join(str(one.message) for one in found)
        assert "'group c | label yes' has no rows" in said and "label +1" not in said
        assert all(one.filename == __file__ for one in found)
        assert clf.result_.converged
        # of rates two groups have positives, and three have negatives
        assert len(clf.multipliers_) == (8 if constraint == "equalized_odds" else 2)

    def test_too_few_iterations(self):
        with pytest.warns(ConvergenceWarning) as found:
            classifier = fit(kappa=1.0, max_iter=1, tol=1e-8)
        (message,) = (str(one.message) for one in found)
        assert message == classifier.result_.message and found[0].filename == __file__
        for word in ("iteration limit", "1 iterations", "objective", "KKT residual", "max_iter"):
            assert word in message
        assert classifier.predict(X).shape == (200,)

    def test_no_fair_model(self):
        opposite = np.where(GROUPS > 0, 1.0, -1.0)[:, None]
        with pytest.warns(InfeasibleConstraintWarning, match="least violation is 0.4") as found:
            classifier = fit(opposite, domain=Box(1.0, 2.0), fit_intercept=False)
        assert classifier.coef_ == pytest.approx(1.0)  # the least unfair one
        assert "raise kappa" in str(found[0].message)
        assert classifier.result_.status.name == "INFEASIBLE"


@pytest.mark.parametrize("model", ["layers", "boosted", "classifier"])
def test_the_objective_of_pairs_bounds_no_mean_loss_of_groups(model):
    clf = FairLogisticClassifier("bounded_group_loss", loss=PairwiseLoss())
    ranker, query = FairRanker("bounded_group_loss", model=model), {"query": QUERY}
    estimator, more = (clf, {}) if model == "classifier" else (ranker, query)
    with pytest.raises(
        (ValueError, TypeError), match=r"BoundedGroupLoss needs .* BoundedGroupLoss\(loss="
    ):
        estimator.fit(X, Y, sensitive_features=GROUPS, **more)


def test_comparisons_and_displays_of_models():
    ranker = FairRanker(max_iter=20).fit(X, Y, query=QUERY, sensitive_features=GROUPS)
    for display in (GroupRateDisplay, ScoreDensityDisplay):
        with pytest.raises(ValueError, match=r"FairRanker ranks the rows.*use compare_rankers"):
            display.from_estimator(ranker, X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="different names"):
        compare({1: fit(), "1": fit()}, X, Y, GROUPS)
