"""Values of different kinds that are not valid, by the kind of argument and by parameter."""

import numpy as np

from fairconstrained import make_biased_classification
from fairconstrained.domains import L1Ball
from fairconstrained.functions.losses import Logistic
from fairconstrained.functions.surrogates import Sigmoid
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

SHARED = {
    "alpha": [*NUMBER, None, -1, L1(-1.0), SCAD(float("nan")), L2("a")],
    "fit_intercept": SWITCH,
    "solver": [*CHOICE, None],
    "max_iter": COUNT,
    "tol": [*NUMBER, None, 0, -1],
    "warm_start": SWITCH,
    "random_state": SEED,
    "verbose": ["a", None, 1.5, [1], THING, -1],
}
FAIR = {
    "constraint": ["nonsense", 3, [3], [], object, {"a": 1}],
    "kappa": [*SHARE, None],
    "goal": [*CHOICE, None],
    "max_loss_increase": [*NUMBER, None, 0, -1],
    "beta": ["a", -1, NAN, [1], True],
    "surrogate": ["nonsense", 3, ["a"], THING, Sigmoid],
    "loss": ["nonsense", 3, ["a"], THING, None, Logistic],
    "domain": ["l1", 3, [1], THING, L1Ball],
    "sensitive_columns": ["zz", 0.5, [0.5], [None], THING],
    "use_sensitive": SWITCH,
    "bound": SWITCH,
    "combine": [*CHOICE, None],
    "groups_missing": [*CHOICE, None],
    "group_interactions": SWITCH,
    "enforce": [*CHOICE, None],
    "confidence": OPEN_SHARE,
    "holdout": [*OPEN_SHARE, None],
    "pos_label": ["nonsense", 7, NAN, ["a"], THING],
    "class_weight": ["nonsense", 3, [1, 2], {9: 1.0}, {0: -1.0}, {0: "a"}, True],
    "threshold": ["a", NAN, [0.5], True, 1j, THING],
    **SHARED,
}
OWN_CV = {
    "kappas": NUMBERS,
    "n_kappas": [1, *COUNT, None],
    "alphas": ["a", 3, [], ["x"], [-1], [None]],
    "max_gap": ["a", -1, NAN, None, [1], True],
    "refit": ["best", 3, None, ["a"], True],
    "cv": [1, 0, "a", 1.5, True, THING],
    "n_jobs": ["a", 1.5, 0, [1], THING],
}
NEYMAN_PEARSON = {
    "priority": ["a", 7, [1], THING, 1.5],
    "kappa": ["a", -1, NAN, {7: 1.0}, {1: -1.0}, [1], True],
    "surrogate": ["nonsense", 3, ["a"], None, THING],
    "radius": ["a", 0, -1, NAN, [1], True],
    **SHARED,
}
