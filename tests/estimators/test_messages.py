"""Errors and warnings: each names the argument, what was found and what is valid."""

import re
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from fairconstrained import (
    ConvergenceWarning,
    DemographicParity,
    EqualizedOdds,
    FairLogisticClassifier,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    InputWarning,
    VacuousConstraintWarning,
    make_biased_classification,
)
from fairconstrained.domains import Box, L1Ball
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Ramp
from fairconstrained.penalties import SCAD
from fairconstrained.solvers import IPC, AugmentedLagrangian
from fairconstrained.solvers import SOLVERS as REGISTERED

X, Y, GROUPS = make_biased_classification(200, 4, gap=0.4, random_state=0)
NAMES = ["'demographic_parity'", "'equal_opportunity'", "'predictive_equality'", "'equalized_odds'"]
SOLVERS = [repr(name) for name in ("auto", *REGISTERED)]
LOSSES = ["'logistic'", "'truncated_logistic'", "'hinge'"]


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


UNKNOWN = {
    "constraint": ({"constraint": "parity"}, "constraint='parity'", NAMES),
    "one of a list": ({"constraint": ["equalized_odds", "x"]}, "constraint='x'", NAMES),
    "solver": ({"solver": "newton"}, "solver='newton'", SOLVERS),
    "surrogate": ({"surrogate": "step"}, "surrogate='step'", ["'sigmoid'", "'ramp'"]),
    "own surrogate": (
        {"constraint": DemographicParity(surrogate="step")},
        "surrogate='step'",
        ["'sigmoid'", "'ramp'"],
    ),
    "loss": ({"loss": "log"}, "loss='log'", LOSSES),
    "against": (
        {"constraint": DemographicParity(against="all")},
        "against='all'",
        ["'pairs'", "'overall'"],
    ),
    "enforce": ({"enforce": "both"}, "enforce", ["'score'", "'decision'"]),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_names_are_answered_with_the_valid_ones(case):
    options, found, valid = UNKNOWN[case]
    with raises(ValueError, found, *valid):
        fit(**options)


@pytest.mark.parametrize("value", [IPC, 3, None], ids=repr)
def test_a_solver_is_a_name_or_an_instance(value):
    with raises(TypeError, "solver", "an instance of Solver", repr(value), *SOLVERS):
        fit(solver=value)


CLASSES = {"constraint": EqualizedOdds, "solver": IPC, "surrogate": Ramp, "loss": Logistic}


@pytest.mark.parametrize("argument", [*CLASSES, "domain"])
def test_a_class_for_an_instance(argument):
    value = {**CLASSES, "domain": L1Ball}[argument]
    advice = ["an instance of"] if argument == "domain" else ["add parentheses"]
    with raises(TypeError, argument, value.__name__, *advice):
        fit(**{argument: value})


NUMBERS = {
    "kappa": [-0.1, 1.5, np.nan, "0.1", None, True],
    "alpha": [-1.0, np.nan, np.inf, "0.1", None, SCAD, np.ones(1), True],
    "tol": [0.0, -1.0, np.nan, "small", None, True],
    "max_iter": [0, -3, 1.5, "many", True],
    "fit_intercept": ["no", None, 2],
    "use_sensitive": ["no", None],
    "warm_start": ["no", None],
    "verbose": ["loud", None],
}
VALID = {
    "kappa": "between 0 and 1",
    "alpha": "[0.0, inf)",
    "tol": "range (0.0, inf)",
    "max_iter": "range [1, inf)",
    "verbose": "an int",
}


@pytest.mark.parametrize(
    ("argument", "value"), [(name, value) for name, values in NUMBERS.items() for value in values]
)
def test_numbers_and_switches(argument, value):
    with raises(ValueError, argument, repr(value), VALID.get(argument, "bool")):
        fit(**{argument: value})


@pytest.mark.parametrize("value", ["l1", 3.0])
def test_a_domain_is_an_instance(value):
    with raises(TypeError, "domain", "an instance of", "Domain", repr(value)):
        fit(domain=value)


def test_kappa_of_a_constraint():
    with raises(ValueError, "kappa", "between 0 and 1", "2"):
        fit(constraint=DemographicParity(2))
    assert fit(constraint=DemographicParity(0.1), kappa=None).result_.converged


def test_valid_numbers_of_other_types():
    assert fit(kappa=np.float32(0.1), alpha=0, max_iter=np.int64(50), verbose=False).violation_ < 1
    assert fit(kappa=1, fit_intercept=np.True_).result_.converged


@pytest.mark.parametrize("solver", ["auto", "ipc", AugmentedLagrangian()])
def test_beta_with_a_solver_that_has_none(solver):
    with pytest.warns(InputWarning, match="beta=2.0 is not used") as said:
        fit(beta=2.0, solver=solver)
    (text,) = [str(one.message) for one in said if "beta" in str(one.message)]
    assert "'3s-econ'" in text and "'plada-stochastic'" in text and "constraint__beta" in text


INCOMPATIBLE = {
    "ipc ramp": ({"solver": IPC(), "surrogate": "ramp"}, ["IPC", "weakly convex", "ssg"]),
    "AL hinge": ({"solver": AugmentedLagrangian(), "loss": "hinge"}, ["smooth", "ssg"]),
    "IPP ramp": (
        {"solver": REGISTERED["ipp-ssg"](), "surrogate": "ramp"},
        ["weakly convex", "ssg"],
    ),
}


@pytest.mark.parametrize("case", INCOMPATIBLE)
def test_a_solver_that_cannot(case):
    options, words = INCOMPATIBLE[case]
    with raises(IncompatibleSolverError, "use one of the solvers", *words):
        fit(**options)


MISSING = {
    "nan": np.where(GROUPS > 0, 1.0, np.nan),
    "None": [None if group else "a" for group in GROUPS],
    "NA": pd.Series(["a", "b"], dtype="string").reindex(np.where(GROUPS > 0, 5, 0)),
    "NaT": pd.Series(pd.Timestamp(0)).reindex(np.where(GROUPS > 0, 5, 0)),
    "category": pd.Categorical.from_codes(-GROUPS, ["a"]),
    "polars": pl.Series([None if group else "a" for group in GROUPS]),
    "polars frame": pl.DataFrame({"n": [None if group else 1 for group in GROUPS]}),
    "one of two columns": np.column_stack([GROUPS, np.where(GROUPS > 0, np.nan, 0.0)]),
}


class TestGroups:
    def test_not_given(self):
        words = ["'demographic_parity'", "sensitive_features", "sensitive_columns"]
        with raises(ValueError, *words, "needs groups"):
            fit(groups=None)
        with raises(ValueError, *words):
            fit(groups=None, sensitive_columns=[])
        with raises(ValueError, *words):
            fit(groups=None, sensitive_columns=lambda X: None)

    def test_given_twice(self):
        with raises(ValueError, "given twice", "sensitive_features", "sensitive_columns"):
            fit(sensitive_columns=[0])

    @pytest.mark.parametrize("kind", MISSING)
    def test_missing(self, kind):
        with raises(ValueError, "sensitive_features", "missing values in 100 of 200 rows"):
            fit(groups=MISSING[kind])

    def test_missing_in_a_column_of_X(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(GROUPS > 0, None, "f"))
        with raises(ValueError, "sensitive_columns", "missing values in 100 of 200 rows"):
            fit(frame, groups=None, sensitive_columns=["sex"])

    def test_wrong_lengths_raise(self):
        with raises(ValueError, "sensitive_features has 199 rows, X has 200"):
            fit(groups=GROUPS[1:])
        with raises(ValueError, "sensitive_columns has 1 rows, X has 200"):
            fit(groups=None, sensitive_columns=lambda X: ["a"])
        with raises(ValueError, "y has 199 rows, X has 200"):
            fit(y=Y[1:])
        with raises(ValueError, "sample_weight", "(3,)", "(200,)"):
            fit(sample_weight=np.ones(3))

    def test_shapes(self):
        with raises(ValueError, "sensitive_features must have one dimension, or two", "3"):
            fit(groups=np.zeros((200, 1, 1)))
        with raises(ValueError, "sensitive_features has no columns"):
            fit(groups=np.zeros((200, 0)))
        with raises(ValueError, "sensitive_features", "'sex'", "X['sex']", "sensitive_columns"):
            fit(groups="sex")
        with raises(ValueError, "sensitive_features must hold strings", "dict"):
            fit(groups=[{}] * 200)

    def test_no_such_column(self):
        frame = pd.DataFrame(X, columns=list("abcd"))
        with raises(ValueError, "sensitive_columns", "'sex'", "['a', 'b', 'c', 'd']"):
            fit(frame, groups=None, sensitive_columns=["sex"])
        with raises(ValueError, "sensitive_columns", "'sex'", "4 columns without names"):
            fit(groups=None, sensitive_columns="sex")
        for position in (4, -5):
            with raises(ValueError, "sensitive_columns", str(position), "4 columns"):
                fit(groups=None, sensitive_columns=[position])

    @pytest.mark.parametrize("value", [0.5, [0.5], [True, False, False, False], True, [None], b"a"])
    def test_invalid_columns_raise(self, value):
        with raises(ValueError, "sensitive_columns", "names or positions", "found"):
            fit(groups=None, sensitive_columns=value if value != b"a" else [value])

    def test_no_features_are_left(self):
        with raises(ValueError, "sensitive_columns=[0, 1, 2, 3]", "no features are left"):
            fit(groups=None, sensitive_columns=[0, 1, 2, 3])


class TestLabelsAndWeights:
    def test_one_class(self):
        with raises(ValueError, "y must have two classes", "one class: 'no'"):
            fit(y=["no"] * 200)

    @pytest.mark.parametrize(
        ("weight", "words"),
        [(np.zeros(200), "non-zero"), (-np.ones(200), "Negative"), (np.full(200, np.nan), "NaN")],
    )
    def test_weights(self, weight, words):
        with pytest.raises(ValueError, match=f"(?i)sample.weight.*{words}|{words}.*sample.weight"):
            fit(sample_weight=weight)


class TestWarnings:
    def test_one_group_only(self):
        with pytest.warns(VacuousConstraintWarning, match="fewer than two groups.*found: 0"):
            alone = fit(groups=np.zeros(200, dtype=int))
        free = fit(constraint=None)
        np.testing.assert_allclose(alone.coef_, free.coef_, atol=1e-6)
        assert alone.result_.converged and alone.violation_ == 0.0

    def test_a_group_without_positives(self):
        groups = np.where((Y == 0) & (np.arange(200) % 4 == 0), "c", np.array(["a", "b"])[GROUPS])
        cell = re.escape("the cell 'group c | label yes' has no rows")
        labels = np.array(["no", "yes"])[Y]
        with pytest.warns(VacuousConstraintWarning, match=f"EqualizedOdds: {cell}"):
            classifier = fit(y=labels, groups=groups, constraint="equalized_odds")
        assert classifier.result_.converged
        assert len(classifier.multipliers_) == 2 + 6  # two groups have positives, three negatives

    def test_a_message_per_empty_cell(self):
        groups = np.where(Y == 0, "c", np.array(["a", "b"])[GROUPS])
        with pytest.warns(VacuousConstraintWarning) as found:
            fit(groups=groups, constraint="equalized_odds")
        said = " ".join(str(one.message) for one in found)
        for cell in ("group c | label 1", "group a | label 0", "group b | label 0"):
            assert f"'{cell}'" in said
        assert "'all groups | label 0'" in said

    def test_constraints_of_pairs_name_the_class(self):
        groups = np.where(Y == 0, "c", np.array(["a", "b"])[GROUPS])
        with pytest.warns(VacuousConstraintWarning) as found:
            fit(y=np.where(Y, "yes", "no"), groups=groups, constraint="intra_group_auc")
        said = " ".join(str(one.message) for one in found)
        assert "'group c | label yes'" in said and "label +1" not in said

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
