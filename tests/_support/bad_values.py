"""Values of different kinds that are not valid, by the kind of argument and by parameter."""

from inspect import signature

import numpy as np

import fairconstrained as fc
from fairconstrained import FairLogisticClassifier, make_biased_classification, solvers
from fairconstrained.penalties import L1, L2, SCAD

N = 60
X, Y, GROUPS = make_biased_classification(N, 3, gap=0.4, random_state=0)
NAN, THING = float("nan"), object()

NUMBER = ["a", NAN, [0.1], True, 1j]
SHARE = [*NUMBER, -0.1, 1.1]
OPEN_SHARE = ["a", 0, 1, NAN, [0.9], True]
CHOICE = ["nonsense", 3, ["a"], b"x", THING]
SWITCH = ["yes", None, 2, [], 0.5]
COUNT = [0, -1, 1.5, "a", True]
SEED = ["a", 1.5, -1, [1], THING]
MATRIX = ["a", None, 3, X[:, 0], [["a"]] * N, np.full((N, 3), NAN), np.zeros((N, 0)), X * 1j]
LABELS = ["a", None, 3, Y[:-1], np.full(N, NAN), X]
WEIGHTS = [
    "balanced", [1], -np.ones(N), np.full(N, NAN), ["a"] * N, np.zeros(N), X, THING,
    np.ones((N, 1)), np.ones(N) * 1j,
]  # fmt: skip
MEMBERS = ["grp", 3, GROUPS[:-1], [None] * N, np.zeros((N, 1, 1)), [{}] * N, np.full(N, NAN), THING]
NUMBERS = ["a", [-1.0], [], [NAN], [[0.1]], 3j, THING, ["x"], [2.0]]

POSITIVE, NOT_NEGATIVE = ["a", 0, -1, NAN, [1]], ["a", -1, NAN, [1], None]


def _each(names, values):
    return dict.fromkeys(names.split(), values)


PARAMETERS = {  # of estimators
    **_each("fit_intercept warm_start use_sensitive bound group_interactions per_group", SWITCH),
    **_each("goal solver combine groups_missing enforce response_method", [*CHOICE, None]),
    **_each("activation device model", [*CHOICE, None]),
    **_each("holdout validation_fraction", [*OPEN_SHARE, None]),
    **_each("max_iter n_estimators n_fitted_trees", COUNT),
    **_each("n_iter_no_change max_epochs", [*COUNT, None]),
    **_each("num_leaves max_bin n_kappas", [1, *COUNT, None]),
    **_each("subsample colsample_bytree", ["a", 0, 1.5, NAN, None]),
    **_each("min_child_samples min_child_weight min_split_gain", NOT_NEGATIVE),
    **_each("reg_alpha reg_lambda", NOT_NEGATIVE),
    "alpha": [*NUMBER, None, -1, L1(-1.0), SCAD(float("nan")), L2("a")],
    "tol": [*NUMBER, None, 0, -1],
    "random_state": SEED,
    "verbose": ["a", None, 1.5, [1], THING, -1],
    "constraint": ["nonsense", 3, [3], [], object, {"a": 1}],
    "kappa": [*SHARE, None],
    "max_loss_increase": [*NUMBER, None, 0, -1],
    "beta": ["a", -1, NAN, [1], True],
    "surrogate": ["nonsense", 3, ["a"], THING, fc.functions.Sigmoid],
    "loss": ["nonsense", 3, ["a"], THING, None, fc.functions.Logistic],
    "domain": ["l1", 3, [1], THING, fc.domains.L1Ball],
    "sensitive_columns": ["zz", 0.5, [0.5], [None], THING],
    "confidence": OPEN_SHARE,
    "pos_label": ["nonsense", 7, NAN, ["a"], THING],
    "class_weight": ["nonsense", 3, [1, 2], {9: 1.0}, {0: -1.0}, {0: "a"}, True],
    "threshold": ["a", NAN, [0.5], True, 1j, THING],
    "kappas": NUMBERS,
    "alphas": ["a", 3, [], ["x"], [-1], [None]],
    "max_gap": ["a", -1, NAN, None, [1], True],
    "refit": ["best", 3, None, ["a"], True],
    "cv": [1, 0, "a", 1.5, True, THING],
    "n_jobs": ["a", 1.5, 0, [1], THING],
    "priority": ["a", 7, [1], THING, 1.5],
    "radius": ["a", 0, -1, NAN, [1], True],
    "early_stopping": SWITCH,
    "learning_rate": [*POSITIVE, None],
    "max_depth": ["a", 1.5, None, [1]],
    "subsample_freq": ["a", -1, 1.5, None],
    "categorical_features": ["all", 3, [7], ["town"], [True]],
    "monotone_constraints": ["a", 3, [1], [2, 0, 0], {"town": 1}],
    "lightgbm_params": ["a", 3, ["dart"], {"boosting": "dart"}, {"nonsense": 2}],
    "hidden_layer_sizes": ["a", 5, (0,), (-1,), (1.5,), None],
    "module": ["a", 3, [1], THING],
    "batch_size": ["a", 0, 1.5, [1]],
    "estimator": ["a", None, 3, FairLogisticClassifier, THING],
}
OF_KIND = {  # where they are others
    "FairLogisticClassifierCV": {"kappa": []},  # not in fit
    "NeymanPearsonClassifier": {
        "kappa": ["a", -1, NAN, {7: 1.0}, {1: -1.0}, [1], True],
        "surrogate": ["nonsense", 3, ["a"], None, THING],
    },
    "FairNetworkClassifier": {"early_stopping": SWITCH[:1] + SWITCH[2:], "learning_rate": POSITIVE},
    "FairRanker": {"kappa": [*NUMBER, -1], "loss": [*CHOICE, None]},
    "FairThresholds": {"constraint": ["nonsense", 3, [3], object, {"a": 1}]},
}


def of_estimator(kind):
    """Return the values for every parameter of a class of estimators."""
    values = PARAMETERS | OF_KIND.get(kind.__name__, {})
    return {name: values[name] for name in signature(kind).parameters}


OF_CONSTRAINTS = {
    "kappa": ["a", -1, NAN, [0.1], True],
    "surrogate": ["nonsense", 3, ["a"], THING, fc.functions.Sigmoid],
    "against": [*CHOICE, None],
    "ratio": SHARE,
    "c": SHARE,
    "rate": SHARE,
    "previous": ["a", 3, [1], THING],
    "r": ["a", -1, 9, NAN, [1], True],
    "beta": ["a", -1, 0, NAN, None, True],
    "bound": ["a", -1, NAN, [1], True],
    "loss": ["nonsense", 3, ["a"], THING, fc.functions.Logistic],
    "membership": [*CHOICE, None],
    "thresholds": ["a", 0, [], ["x"], [NAN], THING],
    "min_share": [*SHARE, 1, None],
    "average": SWITCH,
    "ranks": ["nonsense", 3, (0.3, 0.1), (0, 2), ("a", "b"), (0.1,), None],
    "n_ranks": [*COUNT, None],
    "n_thresholds": [*COUNT, None],
    "minority": ["zz", 3, [1], THING, 1.5],
    "reference": ["a", 3, X[:, 0], X[:, :2], np.full((5, 3), NAN)],
    "reference_groups": ["a", GROUPS[:-1], 3, [None] * N, np.zeros((N, 1, 1))],
}
OF_METRICS = {
    "y_true": LABELS,
    "y_pred": LABELS,
    "sensitive_features": MEMBERS,
    "control_features": MEMBERS,
    "sample_weight": WEIGHTS,
    "method": [*CHOICE, None],
    "ranks": OF_CONSTRAINTS["ranks"],
    "threshold": ["a", NAN, None, [1], True],
    "pos_label": ["zz", 7, [1], THING, 1.5],
    "confidence": [*OPEN_SHARE, None],
    "priority": ["zz", [1], THING, (0,), b"a"],
    "query": LABELS,
    "k": [*COUNT],
    "quantile": [*SHARE, None],
    "reference": ["zz", 7, [1], THING, {"zz": 1}],
    "least_share": [*SHARE, None],
    "tops": NUMBERS,
}
OF_RANKERS = {"y": LABELS, "query": [*LABELS[:4], [{}] * N]}
STEPS = solvers.PolyakSteps
OF_SOLVERS = {
    **_each("max_iter max_inner", [-1, 1.5, "a", True, [1], None]),
    "memory": [-1, 1.5, "a", True, [1]],
    **_each("check_every batch_size n_sampled", [0, -1, 1.5, "a", [1]]),
    **_each("q checkpoint_size", [0, -1, 1.5, "root", True]),
    **_each("tol decay u_max", ["a", -1, NAN, [1], True, None]),
    **_each("rho sigma growth mu width nu V alpha c1 c2 offset eta", [*POSITIVE, True]),
    **_each("tau gamma_0 delta radius strength", [*POSITIVE, True]),
    "beta": ["a", -1, NAN, [1], None],
    "shrink": ["a", 0, 1, NAN, None],
    "extrapolation": ["a", -0.1, 1.1, NAN, None],
    **_each("exact linearized polish safeguard", ["yes", 2, [], 0.5, THING, None]),
    **_each("oracle solver", ["ssg", 3, [1], THING, solvers.IPC]),
    "steps": ["a", 3, [1], THING, STEPS, STEPS(first=-1.0), STEPS("a")],
    "multipliers": ["a", 3, [1], THING, np.ones(2)],
    "features": ["a", 3, [1], THING, [[NAN]]],
    "dual": CHOICE,
}
