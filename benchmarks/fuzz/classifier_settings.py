"""Random settings of classifiers of two classes, and data that suit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fuzz.constraint_settings import as_objects, constraints
from benchmarks.fuzz.data import DESIGNS, GROUP_KINDS, LABELS, SCALES, WEIGHTS, DataSpec
from benchmarks.fuzz.drawing import KAPPAS, Chosen, Rng, maybe, one_of
from fairconstrained.domains import Box, L1Ball, L2Ball
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.objectives import PairwiseLoss, PartialAUC
from fairconstrained.penalties import L1, L2, SCAD
from fairconstrained.solvers import SOLVERS

FAST = ("auto", "ipc", "augmented-lagrangian", "smoothing", "sqp")
NAMED = tuple(SOLVERS)


def data_set(rng: Rng) -> DataSpec:
    """Return a data set: about 300 rows in the median, a few of thousands."""
    n_rows = int(np.exp(rng.normal(np.log(250.0), 0.9)))
    n_rows = min(max(n_rows, 30), 5000)
    n_features = int(rng.integers(1, 13))
    if maybe(rng, 0.08):
        n_rows, n_features = int(rng.integers(30, 80)), int(rng.integers(80, 160))
    labels = one_of(rng, LABELS)
    n_groups = (int(one_of(rng, [2, 2, 2, 2, 3, 3, 4, 6])),)
    return DataSpec(
        seed=int(rng.integers(2**31)),
        n_rows=n_rows,
        n_features=n_features,
        design=one_of(rng, [*DESIGNS, *["gaussian"] * 4, "binary"]),
        scale=one_of(rng, ["unit"] * 5 + list(SCALES)),
        container=one_of(
            rng, ["numpy"] * 4 + ["float32", "fortran", "csr", "csc", "frame", "shuffled", "list"]
        ),
        labels=labels,
        positives=float(one_of(rng, [0.5, 0.5, 0.3, 0.7, 0.1, 0.05])),
        signal=float(one_of(rng, [1.0, 1.0, 2.0, 0.0, 5.0])),
        n_groups=n_groups,
        smallest=float(one_of(rng, [0.5, 0.5, 0.3, 0.1, 0.03])),
        group_kind=one_of(rng, [kind for kind in GROUP_KINDS if kind != "booleans"]),
        weights=one_of(rng, ["none"] * 6 + list(WEIGHTS)),
    )


def solver_settings(rng: Rng) -> dict[str, Any]:
    """Return the solver, and now and then few iterations or a beta."""
    name = "auto" if maybe(rng, 0.75) else one_of(rng, NAMED)
    settings: dict[str, Any] = {} if name == "auto" else {"solver": name}
    if maybe(rng, 0.1 if name in FAST else 0.8):
        settings["max_iter"] = int(one_of(rng, [1, 3, 10, 50, 200]))
    return settings


def penalty_strength(rng: Rng) -> Any:
    return one_of(
        rng, [1e-4, 1e-4, 1e-4, 1e-3, 0.0, 1e-6, 1e-2, 1.0, L2(1e-3), L1(1e-3), SCAD(0.02)]
    )


def _domain(rng: Rng) -> Any:
    size = float(one_of(rng, [0.5, 2.0, 20.0]))
    return one_of(rng, [L1Ball, L2Ball, lambda b: Box(-b, b)])(size)


_LOSSES = {
    "FairLogisticClassifier": ["truncated_logistic", "hinge", "squared_hinge", "quadratic"],
    "FairHingeClassifier": ["squared_hinge"],
}
PAIRS = [PairwiseLoss(), PairwiseLoss("hinge"), "auc", "partial_auc", PartialAUC((0.0, 0.5))]


def two_classes(rng: Rng, estimator: str) -> Chosen:
    """Return settings of a classifier of two classes under constraints."""
    settings: dict[str, Any] = {"constraint": constraints(rng)}
    settings |= solver_settings(rng)
    optional: dict[str, tuple[float, Callable[[], Any]]] = {
        "kappa": (0.6, lambda: one_of(rng, KAPPAS)),
        "alpha": (0.5, lambda: penalty_strength(rng)),
        "surrogate": (0.2, lambda: one_of(rng, ["ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])),
        "loss": (0.2, lambda: one_of(rng, _LOSSES[estimator])),
        "domain": (0.15, lambda: _domain(rng)),
        "fit_intercept": (0.1, lambda: False),
        "warm_start": (0.05, lambda: True),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()
    own_loss = settings["constraint"] != "bounded_group_loss"  # by name it takes the estimator's
    if estimator == "FairLogisticClassifier" and own_loss and maybe(rng, 0.05):
        settings["loss"] = one_of(rng, PAIRS)
    if maybe(rng, 0.05):
        settings |= {"goal": "fairness", "max_loss_increase": one_of(rng, [0.001, 0.01, 0.1])}
    elif maybe(rng, 0.2):
        settings["enforce"] = "decision"
    return _with_sensitive(rng, Chosen(estimator, settings, data_set(rng)))


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
    found = as_objects(settings["constraint"])
    memberships = {getattr(one, "membership", "crossed") for one in found} - {"crossed"}
    if "columns" in memberships:
        data = replace(data, n_groups=(2,) * len(data.n_groups), group_kind="integers", missing=0.0)
    elif "thresholds" in memberships:
        data = replace(data, group_kind="floats", missing=0.0)
    if memberships:
        settings.pop("groups_missing", None)
    return Chosen(chosen.estimator, settings, data)


_SHARED = (  # settings of every classifier of two classes
    "constraint", "kappa", "surrogate", "random_state", "goal", "max_loss_increase", "enforce",
    "combine", "groups_missing", "use_sensitive",
)  # fmt: skip


def shared_settings(rng: Rng, n_rows: int) -> Chosen:
    """Return settings that every classifier of two classes has, and at most so many rows."""
    chosen = two_classes(rng, "FairLogisticClassifier")
    settings = {k: v for k, v in chosen.settings.items() if k in _SHARED}
    return replace(
        chosen, settings=settings, data=replace(chosen.data, n_rows=min(chosen.data.n_rows, n_rows))
    )
