"""Random settings of estimators of another kind: several classes, thresholds, rankers, dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fuzz.classifier_settings import (
    FAST,
    data_set,
    penalty_strength,
    shared_settings,
)
from benchmarks.fuzz.constraint_settings import DRAW
from benchmarks.fuzz.drawing import KAPPAS, Chosen, Rng, maybe, one_of
from fairconstrained.constraints import QueryParity

_OF_TWO_CLASSES = ("bounded_group_loss", "intersectional_loss")  # constraints
_ON_DECISIONS = list(DRAW)[:6]
_SUMS = [name for name in list(DRAW)[:9] if name != "minority_rate"]  # sums over rows


def _drawn(rng: Rng, settings: dict[str, Any], optional: dict[str, tuple[float, Any]]) -> None:
    """Add some of the optional settings."""
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()


def _several_classes(rng: Rng) -> Chosen:
    """Return settings for three or four classes."""
    data = data_set(rng)
    data = replace(
        data,
        n_classes=int(one_of(rng, [3, 3, 4])),
        n_rows=max(60, min(data.n_rows, 400)),
        n_features=min(data.n_features, 12),
        labels=one_of(rng, ["integers", "strings", "objects"]),
    )
    name = one_of(rng, [one for one in DRAW if one not in _OF_TWO_CLASSES])
    settings: dict[str, Any] = {"constraint": name if maybe(rng, 0.3) else DRAW[name](rng)}
    optional: dict[str, tuple[float, Any]] = {
        "kappa": (0.6, lambda: one_of(rng, KAPPAS)),
        "alpha": (0.5, lambda: penalty_strength(rng)),
        "surrogate": (0.2, lambda: "ramp"),
        "fit_intercept": (0.1, lambda: False),
        "solver": (0.2, lambda: one_of(rng, FAST)),
    }
    _drawn(rng, settings, optional)
    return Chosen("FairLogisticClassifier", settings | {"random_state": 0}, data)


def _thresholds(rng: Rng) -> Chosen:
    """Return settings of thresholds on the scores of a classifier fitted to the same rows."""
    data = replace(data_set(rng), scale="unit")
    data = replace(data, n_rows=min(data.n_rows, 600))
    base = one_of(rng, [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)])
    name = one_of(rng, _ON_DECISIONS)
    settings: dict[str, Any] = {
        "estimator": base,
        "constraint": name if maybe(rng, 0.3) else DRAW[name](rng),
        "cv": "prefit",
        "random_state": 0,
    }
    optional: dict[str, tuple[float, Any]] = {
        "kappa": (0.6, lambda: one_of(rng, KAPPAS)),
        "per_group": (0.5, lambda: True),
    }
    _drawn(rng, settings, optional)
    return Chosen("FairThresholds", settings, data)


def _ranker(rng: Rng) -> Chosen:
    """Return settings of a ranker with linear scores."""
    data = data_set(rng)
    data = replace(data, n_rows=max(60, min(data.n_rows, 400)), smallest=0.5, n_groups=(2,))
    constraint = QueryParity(
        one_of(rng, [None, 0.05, 0.25, 1.0]),
        loss=one_of(rng, ["hinge", "hinge", "logistic", "squared_hinge"]),
        average=maybe(rng, 0.5),
    )
    settings: dict[str, Any] = {"constraint": "query_parity" if maybe(rng, 0.3) else constraint}
    optional: dict[str, tuple[float, Any]] = {
        "kappa": (0.4, lambda: one_of(rng, [0.05, 0.1, 0.5])),
        "alpha": (0.4, lambda: one_of(rng, [1e-3, 1e-2, 0.1])),
    }
    _drawn(rng, settings, optional)
    return Chosen("FairRanker", settings | {"random_state": 0}, data)


def _collections(rng: Rng) -> Chosen:
    """Return settings of a classifier on dask collections."""
    chosen = shared_settings(rng, 600)
    kept = {"kappa", "random_state"}
    settings = {name: value for name, value in chosen.settings.items() if name in kept}
    settings["constraint"] = one_of(rng, _SUMS)
    if maybe(rng, 0.5):
        settings["alpha"] = one_of(rng, [0.0, 1e-3, 0.1])
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


FURTHER: tuple[Callable[[Rng], Chosen], ...] = (
    _several_classes,
    _thresholds,
    _ranker,
    _collections,
)
"""Estimators of another kind, in turn."""
