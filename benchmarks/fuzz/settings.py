"""Which estimator a case has, with random settings, constraints and data that suit it."""

from dataclasses import replace
from inspect import signature

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fuzz import data as forms
from benchmarks.fuzz.data import DataSpec, Rng, Settings, every, maybe, one_of, some
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.domains import Box, L1Ball, L2Ball
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.objectives import PairwiseLoss, PartialAUC
from fairconstrained.penalties import L1, L2, SCAD
from fairconstrained.solvers import SOLVERS

KAPPAS = (0.0, 0.005, 0.02, 0.05, 0.05, 0.1, 0.3, 1.0)


_SURROGATES_OF_PAIRS = ["quadratic", "quadratic", "sigmoid", "ramp", Sigmoid(0.5)]
_PAIRS = {"kappa": [None, 0.0, 0.02, 0.1, 0.5, 2.0], "surrogate": _SURROGATES_OF_PAIRS}
_CHOICES: Settings = {  # of parameters, by their names
    "kappa": [None] * 19 + [*KAPPAS],
    "surrogate": [None] * 15 + ["sigmoid", "ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)],
    "against": ["pairs"] * 4 + ["overall"],
    "ratio": [0.8, 0.8, 0.5, 1.0, 0.0],
    "r": [None, None, None, 1.05, 1.25, 1.45],
    "beta": [1.0, 1.0, 0.5, 2.0],
    "c": [None, None, 0.0, 0.1, 0.3, 0.5],
    "bound": [0.3, 0.5, 0.6, 0.69, 0.8, 1.0],
    "loss": ["hinge", "logistic", "truncated_logistic", "quadratic"],
    "membership": ["crossed", "crossed", "columns", "thresholds"],
    "thresholds": [10, 3, [0.25]],
    "min_share": [0.01, 0.1, 0.0],
    "average": [False] * 4 + [True],
    "n_thresholds": [400, 20],
    "ranks": ["auto", (0.0, 0.25), (0.05, 0.3), (0.3, 0.7), (0.0, 1.0), (0.7, 1.0)],
    "n_ranks": [10, 10, 3, 1],
}
_OF_NAME: dict[str, Settings] = {
    **dict.fromkeys(("group_auc", "inter_group_auc", "intra_group_auc"), _PAIRS),
    "roc_parity": {"thresholds": [None, [0.0], [-1.0, 0.0, 1.0], [0.2 * k for k in range(-9, 10)]]},
    "query_parity": {"kappa": [None, 0.05, 0.25, 1.0], "average": [False, True]},
}
NAMES = [name for name in CONSTRAINTS if name not in ("query_parity", "coverage", "churn")]


def drawn(rng: Rng, name: str):
    """Return a constraint; parameters that are no choice of ours have their defaults."""
    kind, choices = CONSTRAINTS[name], _CHOICES | _OF_NAME.get(name, {})
    parameters = [parameter for parameter in signature(kind).parameters if parameter in choices]
    options = every(rng, **{parameter: choices[parameter] for parameter in parameters})
    if {"kappa", "ratio"} <= options.keys():
        del options["kappa" if maybe(rng, 0.15) else "ratio"]
    return kind(**options)


def named(rng: Rng, names: list[str], share: float = 0.3):
    """Return the name of a constraint, or an object."""
    name = one_of(rng, names)
    return name if maybe(rng, share) else drawn(rng, name)


def several(rng: Rng):
    """Return a name, an object or a list of two."""
    name = one_of(rng, NAMES)
    if maybe(rng, 0.25):
        return name
    if maybe(rng, 0.1):
        return [drawn(rng, name), drawn(rng, one_of(rng, NAMES[:8]))]
    return drawn(rng, name)


def as_objects(constraint) -> list:
    """Return the constraints as a list of objects; names stand for the defaults."""
    if constraint is None:
        return []
    given = constraint if isinstance(constraint, list) else [constraint]
    return [CONSTRAINTS[each]() if isinstance(each, str) else each for each in given]


Drawn = tuple[str, Settings, DataSpec]  # the name of an estimator, its settings, the data
FAST = ("auto", "ipc", "augmented-lagrangian", "smoothing", "sqp")
_SLOW_ROWS = 120  # the most rows for solvers that take seconds where others do not
_PAIRWISE = [PairwiseLoss(), PairwiseLoss("hinge"), "auc", "partial_auc", PartialAUC((0.0, 0.5))]
_LOSSES = {
    "FairLogisticClassifier": ["truncated_logistic", "hinge", "squared_hinge", "quadratic"],
    "FairHingeClassifier": ["squared_hinge"],
}
_PENALTIES = [1e-4, 1e-4, 1e-4, 1e-3, 0.0, 1e-6, 1e-2, 1.0, L2(1e-3), L1(1e-3), SCAD(0.02)]


_DOMAINS = [
    kind(size) for size in (0.5, 2.0, 20.0) for kind in (L1Ball, L2Ball, lambda b: Box(-b, b))
]
_COMMON: Settings = {
    "kappa": (0.6, KAPPAS),
    "alpha": (0.5, _PENALTIES),
    "fit_intercept": (0.1, [False]),
    "random_state": (0.9, range(100)),
}


def _data_set(rng: Rng, least: int = 30, most: int = 5000, **changes) -> DataSpec:
    """Return a data set: about 300 rows in the median, a few of thousands."""
    n_rows = min(max(int(np.exp(rng.normal(np.log(250.0), 0.9))), 30), 5000)
    n_features = int(rng.integers(1, 13))
    if maybe(rng, 0.08):
        n_rows, n_features = int(rng.integers(30, 80)), int(rng.integers(80, 160))
    containers = ["numpy"] * 4 + ["float32", "fortran", "csr", "csc", "frame", "shuffled", "list"]
    drawn = DataSpec(
        n_rows=max(least, min(n_rows, most)),
        n_features=n_features,
        labels=one_of(rng, list(forms.LABELS)),
        n_groups=(int(one_of(rng, [2, 2, 2, 2, 3, 3, 4, 6])),),
        seed=int(rng.integers(2**31)),
        design=one_of(rng, [*forms.DESIGNS, *["gaussian"] * 4, "binary"]),
        scale=one_of(rng, ["unit"] * 5 + list(forms.SCALES)),
        container=one_of(rng, containers),
        positives=float(one_of(rng, [0.5, 0.5, 0.3, 0.7, 0.1, 0.05])),
        signal=float(one_of(rng, [1.0, 1.0, 2.0, 0.0, 5.0])),
        smallest=float(one_of(rng, [0.5, 0.5, 0.3, 0.1, 0.03])),
        group_kind=one_of(rng, list(forms.GROUP_KINDS)),
        weights=one_of(rng, ["none"] * 6 + list(forms.WEIGHTS)),
    )
    return replace(drawn, **changes)


def _solver(rng: Rng) -> Settings:
    """Return the solver, and now and then few iterations."""
    name = "auto" if maybe(rng, 0.75) else one_of(rng, tuple(SOLVERS))
    settings = {} if name == "auto" else {"solver": name}
    if maybe(rng, 0.1 if name in FAST else 0.8):
        settings["max_iter"] = int(one_of(rng, [1, 3, 10, 50, 200]))
    return settings


def _two_classes(rng: Rng, estimator: str = "FairLogisticClassifier") -> Drawn:
    """Return settings of a classifier of two classes under constraints."""
    settings = {"constraint": several(rng)} | _solver(rng)
    settings |= some(
        rng,
        **_COMMON,
        surrogate=(0.2, ["ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)]),
        loss=(0.2, _LOSSES[estimator]),
        domain=(0.15, _DOMAINS),
        warm_start=(0.05, [True]),
    )
    named_loss = settings["constraint"] == "bounded_group_loss"  # it takes the estimator's
    if estimator == "FairLogisticClassifier" and not named_loss and maybe(rng, 0.05):
        settings["loss"] = one_of(rng, _PAIRWISE)
    if maybe(rng, 0.05):
        settings |= {"goal": "fairness", "max_loss_increase": one_of(rng, [0.001, 0.01, 0.1])}
    elif maybe(rng, 0.2):
        settings["enforce"] = "decision"
    return estimator, settings, _with_sensitive(rng, settings, _data_set(rng))


def _with_sensitive(rng: Rng, settings: Settings, data: DataSpec) -> DataSpec:
    """Add settings that are about sensitive columns, and return data to match."""
    constraints = as_objects(settings["constraint"])
    if maybe(rng, 0.15):
        kind = one_of(rng, ["strings", "floats", "integers"])
        data = replace(data, n_groups=(2, int(rng.integers(2, 4))), group_kind=kind)
        settings["combine"] = one_of(rng, ["intersection", "marginal", "marginal"])
        if any(type(each).__name__ == "MinorityRate" for each in constraints):
            settings["combine"] = "intersection"  # with "marginal" the minority has to be named
    in_frame = data.container in forms.FRAMES
    if maybe(rng, 0.1):
        kind = data.group_kind if in_frame else one_of(rng, ["integers", "floats"])
        data = replace(data, missing=0.1, group_kind=kind)
        settings["groups_missing"] = one_of(rng, ["own_group", "ignore_in_constraint"])
    if maybe(rng, 0.15):
        data = replace(data, sensitive_in_X=True)
        if not in_frame:
            data = replace(data, group_kind="integers", missing=0.0, design="gaussian")
            settings.pop("groups_missing", None)
        numeric = data.group_kind in ("integers", "floats") and not data.missing
        settings["use_sensitive"] = numeric and maybe(rng, 0.3)
        crossed = settings.get("combine") != "marginal" and not data.missing
        settings["group_interactions"] = crossed and maybe(rng, 0.4)
    read = {getattr(each, "membership", "crossed") for each in constraints}
    if "columns" in read:  # group columns that an intersectional constraint can read
        data = replace(data, n_groups=(2,) * len(data.n_groups), group_kind="integers", missing=0.0)
    elif "thresholds" in read:
        data = replace(data, group_kind="floats", missing=0.0)
    if read - {"crossed"}:
        settings.pop("groups_missing", None)
    return data


_OF_CLASSIFIERS = (  # settings of every classifier of two classes
    "constraint", "kappa", "surrogate", "random_state", "goal", "max_loss_increase", "enforce",
    "combine", "groups_missing", "use_sensitive",
)  # fmt: skip
_PLAIN: Settings = {"missing": 0.0, "sensitive_in_X": False}
_OF_PATHS = ("loss", "alpha", "surrogate", "domain", "fit_intercept", "random_state")


def _kept(rng: Rng, names: tuple[str, ...], most: int = 5000) -> tuple[Settings, DataSpec]:
    """Return some settings of a linear classifier, and at most so many rows."""
    _, settings, data = _two_classes(rng)
    kept = {name: value for name, value in settings.items() if name in names}
    return kept, replace(data, n_rows=min(data.n_rows, most))


def _neyman_pearson(rng: Rng) -> Drawn:
    n_classes = int(one_of(rng, [2, 2, 3, 4, 5]))
    data = _data_set(rng, 20 * n_classes, n_classes=n_classes)
    shares = np.array([0.1, 0.3, 0.6, 0.9, 1.5])
    kappas = (0.5 * (n_classes - 1) * shares).tolist()  # in units of the loss of guessing
    losses = ["ramp", "logistic", "hinge", "truncated_logistic"]
    options = _COMMON | {"kappa": (0.6, kappas), "surrogate": (0.4, losses)}
    settings = _solver(rng) | some(rng, **options, radius=(0.2, [0.3, 2.0, 20.0]))
    data = replace(data, n_features=min(data.n_features, 20))
    return "NeymanPearsonClassifier", settings, data


def _path(rng: Rng) -> Drawn:
    settings, data = _kept(rng, _OF_PATHS)
    if settings.get("loss") in _PAIRWISE:
        del settings["loss"]
    settings["constraint"] = one_of(rng, NAMES[:5])
    data = replace(data, n_groups=(2,), **_PLAIN)
    return "fairness_path", settings, data


def _alternatives(rng: Rng) -> Drawn:
    _, settings, data = _path(rng)
    balanced = {"smallest": 0.5, "positives": 0.5, "weights": "none", "signal": 1.0}
    return "find_alternatives", settings, replace(data, n_rows=max(200, data.n_rows), **balanced)


def _cross_validated(rng: Rng) -> Drawn:
    _, settings, data = _path(rng)
    settings.pop("alpha", None)
    settings |= {"n_kappas": 4, "cv": 3, "alphas": (1e-3,), "max_gap": 0.1}
    changes = {"smallest": 0.5, "positives": 0.5, "weights": one_of(rng, ["none", "uniform"])}
    data = replace(data, n_rows=max(120, min(data.n_rows, 1000)), **changes)
    return "FairLogisticClassifierCV", settings, data


def _boosting(rng: Rng) -> Drawn:
    settings, data = _kept(rng, _OF_CLASSIFIERS, 2000)
    settings |= {"n_estimators": int(one_of(rng, [1, 5, 20, 50])), "n_jobs": 1}
    settings |= some(
        rng,
        learning_rate=(0.3, [0.03, 0.3]),
        num_leaves=(0.3, [2, 4, 31]),
        min_child_samples=(0.3, [1, 20]),
        reg_lambda=(0.3, [0.0, 1.0]),
        colsample_bytree=(0.3, [0.5]),
        early_stopping=(0.3, [True]),
        n_fitted_trees=(0.3, [None, 1]),
    )
    return "FairBoostingClassifier", {"random_state": 0} | settings, data


def _network(rng: Rng) -> Drawn:
    settings, data = _kept(rng, _OF_CLASSIFIERS, 400)
    layers = one_of(rng, [(8,), (4, 4), ()])
    settings |= {"hidden_layer_sizes": layers, "max_epochs": int(one_of(rng, [1, 5, 20]))}
    settings |= some(rng, activation=(0.3, ["tanh", "relu"]))
    return "FairNetworkClassifier", {"random_state": 0} | settings, data


def _several_classes(rng: Rng) -> Drawn:
    data = _data_set(rng, 60, 400)
    data = replace(data, n_classes=int(one_of(rng, [3, 3, 4])), n_features=min(data.n_features, 12))
    data = replace(data, labels=one_of(rng, ["integers", "strings", "objects"]))
    of_two = ("bounded_group_loss", "intersectional_loss")
    constraint = named(rng, [name for name in NAMES if name not in of_two])
    options = _COMMON | {"surrogate": (0.2, ["ramp"]), "solver": (0.2, FAST)}
    settings = {"constraint": constraint, **some(rng, **options), "random_state": 0}
    return "FairLogisticClassifier", settings, data


def _thresholds(rng: Rng) -> Drawn:
    """Return settings of thresholds on the scores of a classifier fitted to the same rows."""
    data = _data_set(rng, most=600, scale="unit")
    base = one_of(rng, [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)])
    settings = {"estimator": base, "constraint": named(rng, NAMES[:6])}
    settings |= {"cv": "prefit", "random_state": 0}
    settings |= some(rng, kappa=(0.6, KAPPAS), per_group=(0.5, [True]))
    return "FairThresholds", settings, data


def _ranker(rng: Rng) -> Drawn:
    """Return settings of a ranker with linear scores."""
    data = _data_set(rng, 60, 400, smallest=0.5, n_groups=(2,))
    constraint = named(rng, ["query_parity"])
    settings = some(rng, kappa=(0.4, [0.05, 0.1, 0.5]), alpha=(0.4, [1e-3, 1e-2, 0.1]))
    return "FairRanker", {"constraint": constraint, "random_state": 0} | settings, data


def _collections(rng: Rng) -> Drawn:
    """Return settings of a classifier on dask collections."""
    settings, data = _kept(rng, ("kappa", "random_state"), 600)
    settings["constraint"] = one_of(rng, NAMES[:9])  # sums over rows
    settings |= some(rng, alpha=(0.5, [0.0, 1e-3, 0.1]))
    data = replace(data, group_kind="strings", n_groups=data.n_groups[:1], **_PLAIN)
    others = {"labels": ["integers", "strings"], "weights": ["none", "uniform", "integers"]}
    drawn_forms = every(rng, container=["numpy", "float32", "frame"], **others)
    return "dask.FairLogisticClassifier", settings, replace(data, **drawn_forms)


_ESTIMATORS = [
    (0.66, _two_classes),
    (0.16, lambda rng: _two_classes(rng, "FairHingeClassifier")),
    (0.14, _neyman_pearson),
    (0.025, _path),
    (0.015, _cross_validated),
]
_OTHER_MODELS = (_network, _boosting)
_OTHER_KINDS = (_several_classes, _thresholds, _ranker, _collections, _alternatives)
_EVERY = 12  # a case of another model, and one of another kind of estimator, after so many
_OTHER_KIND = 8  # the first index with another kind of estimator


def draw(rng: Rng, index: int) -> Drawn:
    """Return an estimator, its settings and its data; some indices have another model or kind."""
    turn, rest = divmod(index, _EVERY)
    if rest == _EVERY - 1:
        return _OTHER_MODELS[turn % len(_OTHER_MODELS)](rng)
    if rest == _OTHER_KIND:
        return _OTHER_KINDS[turn % len(_OTHER_KINDS)](rng)
    shares, kinds = zip(*_ESTIMATORS, strict=True)
    name, settings, data = kinds[int(rng.choice(len(shares), p=shares))](rng)
    slow = settings.get("solver", "auto") not in FAST
    return name, settings, replace(data, n_rows=min(data.n_rows, _SLOW_ROWS)) if slow else data
