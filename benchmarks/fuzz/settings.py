"""Which estimator a case has, with random settings and data that suit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fuzz.constraint_settings import DRAW, as_objects, constraints
from benchmarks.fuzz.data import (
    DESIGNS,
    GROUP_KINDS,
    KAPPAS,
    LABELS,
    SCALES,
    WEIGHTS,
    Chosen,
    DataSpec,
    Rng,
    maybe,
    one_of,
)
from fairconstrained.constraints import QueryParity
from fairconstrained.domains import Box, L1Ball, L2Ball
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.objectives import PairwiseLoss, PartialAUC
from fairconstrained.penalties import L1, L2, SCAD
from fairconstrained.solvers import SOLVERS

FAST = ("auto", "ipc", "augmented-lagrangian", "smoothing", "sqp")
_SLOW_ROWS = 120  # the most rows for solvers that take seconds where others do not
_PAIRS = [PairwiseLoss(), PairwiseLoss("hinge"), "auc", "partial_auc", PartialAUC((0.0, 0.5))]
_LOSSES = {
    "FairLogisticClassifier": ["truncated_logistic", "hinge", "squared_hinge", "quadratic"],
    "FairHingeClassifier": ["squared_hinge"],
}
_PENALTIES = [1e-4, 1e-4, 1e-4, 1e-3, 0.0, 1e-6, 1e-2, 1.0, L2(1e-3), L1(1e-3), SCAD(0.02)]
Optional = dict[str, tuple[float, Callable[[], Any]]]


def _drawn(rng: Rng, settings: dict[str, Any], optional: Optional) -> dict[str, Any]:
    """Return settings with some of the optional ones."""
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()
    return settings


def _of(rng: Rng, values: Any) -> Callable[[], Any]:
    return lambda: one_of(rng, values)


def _data_set(rng: Rng) -> DataSpec:
    """Return a data set: about 300 rows in the median, a few of thousands."""
    n_rows = min(max(int(np.exp(rng.normal(np.log(250.0), 0.9))), 30), 5000)
    n_features = int(rng.integers(1, 13))
    if maybe(rng, 0.08):
        n_rows, n_features = int(rng.integers(30, 80)), int(rng.integers(80, 160))
    labels = one_of(rng, LABELS)
    containers = ["numpy"] * 4 + ["float32", "fortran", "csr", "csc", "frame", "shuffled", "list"]
    n_groups = (int(one_of(rng, [2, 2, 2, 2, 3, 3, 4, 6])),)
    return DataSpec(
        seed=int(rng.integers(2**31)),
        n_rows=n_rows,
        n_features=n_features,
        design=one_of(rng, [*DESIGNS, *["gaussian"] * 4, "binary"]),
        scale=one_of(rng, ["unit"] * 5 + list(SCALES)),
        container=one_of(rng, containers),
        labels=labels,
        positives=float(one_of(rng, [0.5, 0.5, 0.3, 0.7, 0.1, 0.05])),
        signal=float(one_of(rng, [1.0, 1.0, 2.0, 0.0, 5.0])),
        n_groups=n_groups,
        smallest=float(one_of(rng, [0.5, 0.5, 0.3, 0.1, 0.03])),
        group_kind=one_of(rng, [kind for kind in GROUP_KINDS if kind != "booleans"]),
        weights=one_of(rng, ["none"] * 6 + list(WEIGHTS)),
    )


def _solver(rng: Rng) -> dict[str, Any]:
    """Return the solver, and now and then few iterations."""
    name = "auto" if maybe(rng, 0.75) else one_of(rng, tuple(SOLVERS))
    settings: dict[str, Any] = {} if name == "auto" else {"solver": name}
    if maybe(rng, 0.1 if name in FAST else 0.8):
        settings["max_iter"] = int(one_of(rng, [1, 3, 10, 50, 200]))
    return settings


def _domain(rng: Rng) -> Any:
    size = float(one_of(rng, [0.5, 2.0, 20.0]))
    return one_of(rng, [L1Ball, L2Ball, lambda b: Box(-b, b)])(size)


def _two_classes(rng: Rng, estimator: str) -> Chosen:
    """Return settings of a classifier of two classes under constraints."""
    settings: dict[str, Any] = {"constraint": constraints(rng)}
    settings |= _solver(rng)
    optional: Optional = {
        "kappa": (0.6, _of(rng, KAPPAS)),
        "alpha": (0.5, _of(rng, _PENALTIES)),
        "surrogate": (0.2, _of(rng, ["ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])),
        "loss": (0.2, _of(rng, _LOSSES[estimator])),
        "domain": (0.15, lambda: _domain(rng)),
        "fit_intercept": (0.1, lambda: False),
        "warm_start": (0.05, lambda: True),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }
    _drawn(rng, settings, optional)
    named_loss = settings["constraint"] == "bounded_group_loss"  # it takes the estimator's
    if estimator == "FairLogisticClassifier" and not named_loss and maybe(rng, 0.05):
        settings["loss"] = one_of(rng, _PAIRS)
    if maybe(rng, 0.05):
        settings |= {"goal": "fairness", "max_loss_increase": one_of(rng, [0.001, 0.01, 0.1])}
    elif maybe(rng, 0.2):
        settings["enforce"] = "decision"
    return _with_sensitive(rng, Chosen(estimator, settings, _data_set(rng)))


def _with_sensitive(rng: Rng, chosen: Chosen) -> Chosen:
    """Return the same with settings that are about sensitive columns, and data to match."""
    settings, data = dict(chosen.settings), chosen.data
    if maybe(rng, 0.15):
        kind = one_of(rng, ["strings", "floats", "integers"])
        data = replace(data, n_groups=(2, int(rng.integers(2, 4))), group_kind=kind)
        settings["combine"] = one_of(rng, ["intersection", "marginal", "marginal"])
        if any(type(one).__name__ == "MinorityRate" for one in as_objects(settings["constraint"])):
            settings["combine"] = "intersection"  # with "marginal" the minority has to be named
    if maybe(rng, 0.1):
        frame = data.container in ("frame", "shuffled")
        kind = data.group_kind if frame else one_of(rng, ["integers", "floats"])
        data = replace(data, missing=0.1, group_kind=kind)
        settings["groups_missing"] = one_of(rng, ["own_group", "ignore_in_constraint"])
    if maybe(rng, 0.15):
        data = replace(data, sensitive_in_X=True)
        numeric = data.group_kind in ("integers", "floats") and not data.missing
        if data.container not in ("frame", "shuffled"):
            data = replace(data, group_kind="integers", missing=0.0, design="gaussian")
            settings.pop("groups_missing", None)
            numeric = True
        settings["use_sensitive"] = numeric and maybe(rng, 0.3)
        crossed = settings.get("combine") != "marginal" and not data.missing
        settings["group_interactions"] = crossed and maybe(rng, 0.4)
    return _suited(Chosen(chosen.estimator, settings, data))


def _suited(chosen: Chosen) -> Chosen:
    """Return the same with group columns that an intersectional constraint can read."""
    settings, data = chosen.settings, chosen.data
    read = [getattr(one, "membership", "crossed") for one in as_objects(settings["constraint"])]
    if "columns" in read:
        data = replace(data, n_groups=(2,) * len(data.n_groups), group_kind="integers", missing=0.0)
    elif "thresholds" in read:
        data = replace(data, group_kind="floats", missing=0.0)
    if set(read) - {"crossed"}:
        settings.pop("groups_missing", None)
    return Chosen(chosen.estimator, settings, data)


_SHARED = (  # settings of every classifier of two classes
    "constraint", "kappa", "surrogate", "random_state", "goal", "max_loss_increase", "enforce",
    "combine", "groups_missing", "use_sensitive",
)  # fmt: skip


def _shared_settings(rng: Rng, n_rows: int) -> Chosen:
    """Return settings that every classifier of two classes has, and at most so many rows."""
    chosen = _two_classes(rng, "FairLogisticClassifier")
    settings = {k: v for k, v in chosen.settings.items() if k in _SHARED}
    data = replace(chosen.data, n_rows=min(chosen.data.n_rows, n_rows))
    return replace(chosen, settings=settings, data=data)


def _neyman_pearson(rng: Rng) -> Chosen:
    n_classes = int(one_of(rng, [2, 2, 3, 4, 5]))
    data = replace(_data_set(rng), n_classes=n_classes)
    least = 20 * n_classes
    data = replace(data, n_rows=max(data.n_rows, least), n_features=min(data.n_features, 20))
    guessing = 0.5 * (n_classes - 1)
    losses = ["ramp", "logistic", "hinge", "truncated_logistic"]
    optional: Optional = {
        "kappa": (0.6, lambda: float(guessing * one_of(rng, [0.1, 0.3, 0.6, 0.9, 1.5]))),
        "surrogate": (0.4, _of(rng, losses)),
        "radius": (0.2, _of(rng, [0.3, 2.0, 20.0])),
        "alpha": (0.4, _of(rng, _PENALTIES)),
        "fit_intercept": (0.15, lambda: False),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }
    return Chosen("NeymanPearsonClassifier", _drawn(rng, _solver(rng), optional), data)


def _path(rng: Rng) -> Chosen:
    chosen = _two_classes(rng, "FairLogisticClassifier")
    kept = {"loss", "alpha", "surrogate", "domain", "fit_intercept", "random_state"}
    settings = {name: value for name, value in chosen.settings.items() if name in kept}
    if settings.get("loss") in _PAIRS:
        del settings["loss"]
    settings["constraint"] = one_of(rng, list(DRAW)[:5])
    data = replace(chosen.data, missing=0.0, sensitive_in_X=False, n_groups=(2,))
    return Chosen("fairness_path", settings, data)


def _cross_validated(rng: Rng) -> Chosen:
    chosen = _path(rng)
    settings = {k: v for k, v in chosen.settings.items() if k != "alpha"}
    settings |= {"n_kappas": 4, "cv": 3, "alphas": (1e-3,), "max_gap": 0.1}
    data = replace(chosen.data, n_rows=max(120, min(chosen.data.n_rows, 1000)), smallest=0.5)
    data = replace(data, positives=0.5, weights=one_of(rng, ["none", "uniform"]))
    return Chosen("FairLogisticClassifierCV", settings, data)


def _boosting(rng: Rng) -> Chosen:
    chosen = _shared_settings(rng, 2000)
    settings = chosen.settings | {"n_estimators": int(one_of(rng, [1, 5, 20, 50])), "n_jobs": 1}
    values: dict[str, list[Any]] = {
        "learning_rate": [0.03, 0.3],
        "num_leaves": [2, 4, 31],
        "min_child_samples": [1, 20],
        "reg_lambda": [0.0, 1.0],
        "colsample_bytree": [0.5],
        "early_stopping": [True],
        "n_fitted_trees": [None, 1],
    }
    _drawn(rng, settings, {name: (0.3, _of(rng, some)) for name, some in values.items()})
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairBoostingClassifier", settings=settings)


def _network(rng: Rng) -> Chosen:
    chosen = _shared_settings(rng, 400)
    settings = chosen.settings | {
        "hidden_layer_sizes": one_of(rng, [(8,), (4, 4), ()]),
        "max_epochs": int(one_of(rng, [1, 5, 20])),
    }
    _drawn(rng, settings, {"activation": (0.3, _of(rng, ["tanh", "relu"]))})
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairNetworkClassifier", settings=settings)


def _several_classes(rng: Rng) -> Chosen:
    data = _data_set(rng)
    data = replace(
        data,
        n_classes=int(one_of(rng, [3, 3, 4])),
        n_rows=max(60, min(data.n_rows, 400)),
        n_features=min(data.n_features, 12),
        labels=one_of(rng, ["integers", "strings", "objects"]),
    )
    of_two = ("bounded_group_loss", "intersectional_loss")
    name = one_of(rng, [one for one in DRAW if one not in of_two])
    settings: dict[str, Any] = {"constraint": name if maybe(rng, 0.3) else DRAW[name](rng)}
    optional: Optional = {
        "kappa": (0.6, _of(rng, KAPPAS)),
        "alpha": (0.5, _of(rng, _PENALTIES)),
        "surrogate": (0.2, lambda: "ramp"),
        "fit_intercept": (0.1, lambda: False),
        "solver": (0.2, _of(rng, FAST)),
    }
    settings = _drawn(rng, settings, optional) | {"random_state": 0}
    return Chosen("FairLogisticClassifier", settings, data)


def _thresholds(rng: Rng) -> Chosen:
    """Return settings of thresholds on the scores of a classifier fitted to the same rows."""
    data = replace(_data_set(rng), scale="unit")
    data = replace(data, n_rows=min(data.n_rows, 600))
    base = one_of(rng, [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)])
    name = one_of(rng, list(DRAW)[:6])
    constraint = name if maybe(rng, 0.3) else DRAW[name](rng)
    settings = {"estimator": base, "constraint": constraint, "cv": "prefit", "random_state": 0}
    optional: Optional = {"kappa": (0.6, _of(rng, KAPPAS)), "per_group": (0.5, lambda: True)}
    return Chosen("FairThresholds", _drawn(rng, settings, optional), data)


def _ranker(rng: Rng) -> Chosen:
    """Return settings of a ranker with linear scores."""
    data = _data_set(rng)
    data = replace(data, n_rows=max(60, min(data.n_rows, 400)), smallest=0.5, n_groups=(2,))
    constraint = QueryParity(
        one_of(rng, [None, 0.05, 0.25, 1.0]),
        loss=one_of(rng, ["hinge", "hinge", "logistic", "squared_hinge"]),
        average=maybe(rng, 0.5),
    )
    settings: dict[str, Any] = {"constraint": "query_parity" if maybe(rng, 0.3) else constraint}
    optional: Optional = {
        "kappa": (0.4, _of(rng, [0.05, 0.1, 0.5])),
        "alpha": (0.4, _of(rng, [1e-3, 1e-2, 0.1])),
    }
    return Chosen("FairRanker", _drawn(rng, settings, optional) | {"random_state": 0}, data)


def _collections(rng: Rng) -> Chosen:
    """Return settings of a classifier on dask collections."""
    chosen = _shared_settings(rng, 600)
    kept = {"kappa", "random_state"}
    settings = {name: value for name, value in chosen.settings.items() if name in kept}
    sums = [name for name in list(DRAW)[:9] if name != "minority_rate"]  # sums over rows
    settings["constraint"] = one_of(rng, sums)
    _drawn(rng, settings, {"alpha": (0.5, _of(rng, [0.0, 1e-3, 0.1]))})
    data = replace(
        chosen.data,
        missing=0.0,
        sensitive_in_X=False,
        n_groups=chosen.data.n_groups[:1],
        container=one_of(rng, ["numpy", "float32", "frame"]),
        labels=one_of(rng, ["integers", "strings"]),
        group_kind="strings",
        weights=one_of(rng, ["none", "uniform", "integers"]),
    )
    return Chosen("dask.FairLogisticClassifier", settings, data)


_ESTIMATORS: list[tuple[float, Callable[[Rng], Chosen]]] = [
    (0.66, lambda rng: _two_classes(rng, "FairLogisticClassifier")),
    (0.16, lambda rng: _two_classes(rng, "FairHingeClassifier")),
    (0.14, _neyman_pearson),
    (0.025, _path),
    (0.015, _cross_validated),
]
_OTHER_MODELS = (_boosting, _network)
_OTHER_KINDS = (_several_classes, _thresholds, _ranker, _collections)
_EVERY = 12  # a case of another model, and one of another kind of estimator, after so many
_OTHER_KIND = 8  # the first index with another kind of estimator


def draw(rng: Rng, index: int) -> Chosen:
    """Return an estimator, its settings and its data; some indices have another model or kind."""
    turn, rest = divmod(index, _EVERY)
    if rest == _EVERY - 1:
        return _OTHER_MODELS[(turn + 1) % len(_OTHER_MODELS)](rng)
    if rest == _OTHER_KIND:
        return _OTHER_KINDS[turn % len(_OTHER_KINDS)](rng)
    shares = [share for share, _ in _ESTIMATORS]
    chosen = _ESTIMATORS[int(rng.choice(len(shares), p=shares))][1](rng)
    if chosen.settings.get("solver", "auto") not in FAST:
        rows = min(chosen.data.n_rows, _SLOW_ROWS)
        chosen = replace(chosen, data=replace(chosen.data, n_rows=rows))
    return chosen
