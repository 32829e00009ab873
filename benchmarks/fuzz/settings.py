"""Which estimator a case has, with random settings and data that suit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.fuzz.classifier_settings import (
    FAST,
    PAIRS,
    data_set,
    penalty_strength,
    shared_settings,
    solver_settings,
    two_classes,
)
from benchmarks.fuzz.constraint_settings import DRAW
from benchmarks.fuzz.drawing import Chosen, Rng, maybe, one_of
from benchmarks.fuzz.further_settings import FURTHER

_SLOW_ROWS = 120  # the most rows for solvers that take seconds where others do not


def _neyman_pearson(rng: Rng) -> Chosen:
    """Return settings of the Neyman-Pearson classifier."""
    n_classes = int(one_of(rng, [2, 2, 3, 4, 5]))
    data = replace(data_set(rng), n_classes=n_classes)
    least = 20 * n_classes
    data = replace(data, n_rows=max(data.n_rows, least), n_features=min(data.n_features, 20))
    settings = solver_settings(rng)
    guessing = 0.5 * (n_classes - 1)
    optional: dict[str, tuple[float, Callable[[], Any]]] = {
        "kappa": (0.6, lambda: float(guessing * one_of(rng, [0.1, 0.3, 0.6, 0.9, 1.5]))),
        "surrogate": (
            0.4, lambda: one_of(rng, ["ramp", "logistic", "hinge", "truncated_logistic"])
        ),
        "radius": (0.2, lambda: float(one_of(rng, [0.3, 2.0, 20.0]))),
        "alpha": (0.4, lambda: penalty_strength(rng)),
        "fit_intercept": (0.15, lambda: False),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }  # fmt: skip
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()
    return Chosen("NeymanPearsonClassifier", settings, data)


def _path(rng: Rng) -> Chosen:
    """Return settings of a path."""
    chosen = two_classes(rng, "FairLogisticClassifier")
    kept = {"loss", "alpha", "surrogate", "domain", "fit_intercept", "random_state"}
    settings = {name: value for name, value in chosen.settings.items() if name in kept}
    if settings.get("loss") in PAIRS:
        del settings["loss"]
    settings["constraint"] = one_of(rng, list(DRAW)[:5])
    data = replace(chosen.data, missing=0.0, sensitive_in_X=False, n_groups=(2,))
    return Chosen("fairness_path", settings, data)


def _cross_validated(rng: Rng) -> Chosen:
    """Return settings of the cross-validated classifier."""
    chosen = _path(rng)
    settings = {k: v for k, v in chosen.settings.items() if k != "alpha"}
    settings |= {"n_kappas": 4, "cv": 3, "alphas": (1e-3,), "max_gap": 0.1}
    data = replace(chosen.data, n_rows=max(120, min(chosen.data.n_rows, 1000)), smallest=0.5)
    data = replace(data, positives=0.5, weights=one_of(rng, ["none", "uniform"]))
    return Chosen("FairLogisticClassifierCV", settings, data)


def _boosting(rng: Rng) -> Chosen:
    """Return settings of boosted trees."""
    chosen = shared_settings(rng, 2000)
    settings = chosen.settings | {"n_estimators": int(one_of(rng, [1, 5, 20, 50])), "n_jobs": 1}
    optional: dict[str, list[Any]] = {
        "learning_rate": [0.03, 0.3],
        "num_leaves": [2, 4, 31],
        "min_child_samples": [1, 20],
        "reg_lambda": [0.0, 1.0],
        "colsample_bytree": [0.5],
        "early_stopping": [True],
        "n_fitted_trees": [None, 1],
    }
    for name, values in optional.items():
        if maybe(rng, 0.3):
            settings[name] = one_of(rng, values)
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairBoostingClassifier", settings=settings)


def _network(rng: Rng) -> Chosen:
    """Return settings of a small network."""
    chosen = shared_settings(rng, 400)
    settings = chosen.settings | {
        "hidden_layer_sizes": one_of(rng, [(8,), (4, 4), ()]),
        "max_epochs": int(one_of(rng, [1, 5, 20])),
    }
    if maybe(rng, 0.3):
        settings["activation"] = one_of(rng, ["tanh", "relu"])
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairNetworkClassifier", settings=settings)


_ESTIMATORS: list[tuple[float, Callable[[Rng], Chosen]]] = [
    (0.66, lambda rng: two_classes(rng, "FairLogisticClassifier")),
    (0.16, lambda rng: two_classes(rng, "FairHingeClassifier")),
    (0.14, _neyman_pearson),
    (0.025, _path),
    (0.015, _cross_validated),
]
OTHER_MODELS: dict[str, Callable[[Rng], Chosen]] = {"lightgbm": _boosting, "torch": _network}
"""Estimators of other models, by the module that they need."""
_EVERY = 12  # a case of another model, and one of another kind of estimator, after so many
_OTHER_KIND = 8  # the first index with another kind of estimator


def draw(rng: Rng, index: int) -> Chosen:
    """Return an estimator, its settings and its data; some indices have another model or kind."""
    turn, rest = divmod(index, _EVERY)
    if rest == _EVERY - 1:
        names = list(OTHER_MODELS)
        return OTHER_MODELS[names[(turn + 1) % len(names)]](rng)
    if rest == _OTHER_KIND:
        return FURTHER[turn % len(FURTHER)](rng)
    shares = [share for share, _ in _ESTIMATORS]
    chosen = _ESTIMATORS[int(rng.choice(len(shares), p=shares))][1](rng)
    if chosen.settings.get("solver", "auto") not in FAST:
        rows = min(chosen.data.n_rows, _SLOW_ROWS)
        chosen = replace(chosen, data=replace(chosen.data, n_rows=rows))
    return chosen
