"""Methods around LightGBM with the trees of `FairBoostingClassifier`'s defaults, ours among them.

A method is a function of a split, a constraint and a tolerance; it returns an `Outcome`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from benchmarks.decisions import CONSTRAINTS, Split
from benchmarks.harness import fairlearn_peers
from fairconstrained import FairBoostingClassifier, FairThresholds

_FAIRGBM = """
import sys, time, numpy as np
from fairgbm import FairGBMClassifier
data = np.load(sys.argv[1])
bound, parameters = float(sys.argv[3]), eval(sys.argv[4])
model = FairGBMClassifier(
    constraint_type="FPR,FNR", constraint_fpr_threshold=bound, constraint_fnr_threshold=bound,
    **parameters,
)
start = time.process_time()
model.fit(data["X"], data["y"], constraint_group=data["groups"])
seconds = time.process_time() - start
np.savez(sys.argv[2], probability=model.predict_proba(data["X_test"])[:, -1], seconds=seconds)
"""
_OXONFAIR = """
import sys, time, warnings, numpy as np
warnings.simplefilter("ignore")
from oxonfair import DeepDataDict, DeepFairPredictor, group_metrics as gm
data, found = np.load(sys.argv[1]), {}
metrics = {"demographic_parity": gm.pos_pred_rate.max_diff, "equalized_odds": gm.equalized_odds_max}
test = DeepDataDict(data["y_test"], data["test"][:, None], data["groups_test"])
for constraint, metric in metrics.items():
    for kappa in map(float, sys.argv[3:]):
        start = time.process_time()
        model = DeepFairPredictor(
            data["y"], data["scores"][:, None], data["groups"], use_actual_groups=True
        )
        model.fit(gm.accuracy, metric, kappa)
        seconds = time.process_time() - start
        found[f"{constraint} {kappa} seconds"] = seconds
        found[f"{constraint} {kappa}"] = np.asarray(model.predict(test), dtype=float).ravel()
np.savez(sys.argv[2], **found)
"""


def tree_parameters() -> dict[str, Any]:
    """Return our defaults as LightGBM's parameters."""
    names = (
        "n_estimators", "learning_rate", "num_leaves", "min_child_samples", "min_child_weight",
        "reg_lambda",
    )  # fmt: skip
    ours = FairBoostingClassifier().get_params()
    return {**{name: ours[name] for name in names}, "n_jobs": 1, "random_state": 0, "verbose": -1}


def lightgbm() -> Any:
    """Return LightGBM's classifier with these parameters."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**tree_parameters())


Outcome = tuple[np.ndarray, np.ndarray | None, float]
"""The probability of a positive prediction, scores as probabilities, CPU seconds of the fit."""


def ours(split: Split, constraint: str, kappa: float, enforce: str) -> Outcome:
    """Fit our classifier."""
    X, X_test, y, _, groups, _ = split
    clf = FairBoostingClassifier(constraint, kappa, enforce=enforce, n_jobs=1, random_state=0)
    start = time.process_time()
    clf.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    probability = clf.predict_proba(X_test)[:, 1]
    return (probability > 0.5).astype(float), probability, seconds


def free(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit LightGBM."""
    X, X_test, y, *_ = split
    model = lightgbm()
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    probability = model.predict_proba(X_test)[:, 1]
    return (probability > 0.5).astype(float), probability, seconds


def our_thresholds(split: Split, constraint: str, kappa: float, n_thresholds: int = 1) -> Outcome:
    """Fit LightGBM and our thresholds by group, on the same rows.

    With two thresholds of each group decisions are expected ones over hash functions, as those of
    methods that draw them.
    """
    X, X_test, y, _, groups, groups_test = split
    options = {"per_group": True, "n_thresholds": n_thresholds, "cv": "prefit"}
    start = time.process_time()
    inner = lightgbm().fit(X, y)
    model = FairThresholds(inner, constraint, kappa, **options)
    model.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    probability = inner.predict_proba(X_test)[:, 1]
    own = model.thresholds_.loc[groups_test].to_numpy().reshape(len(X_test), -1)
    return (probability[:, None] > own).mean(axis=1), probability, seconds


def reduction(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit fairlearn's ExponentiatedGradient around LightGBM."""
    X, X_test, y, _, groups, _ = split
    model = fairlearn_peers.reduction(lightgbm(), constraint, kappa)
    start = time.process_time()
    model.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return fairlearn_peers.chance(model, X_test), None, seconds


def thresholds(split: Split, constraint: str, kappa: float) -> Outcome:
    """Fit fairlearn's ThresholdOptimizer around LightGBM; it has no tolerance."""
    X, X_test, y, _, groups, groups_test = split
    model = fairlearn_peers.thresholds(lightgbm(), constraint)
    start = time.process_time()
    model.fit(X, y, sensitive_features=groups)
    seconds = time.process_time() - start
    return fairlearn_peers.chance(model, X_test, groups_test), None, seconds


def fairgbm(split: Split, constraint: str, kappa: float, python: str = "") -> Outcome:
    """Fit FairGBM in its own environment."""
    X, X_test, y, _, groups, _ = split
    codes = np.unique(groups, return_inverse=True)[1]
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, X=X, X_test=X_test, y=y, groups=codes)
        arguments = [str(given), str(found), str(kappa), repr(tree_parameters())]
        subprocess.run(
            [python, "-c", _FAIRGBM, *arguments], check=True, capture_output=True, env={}
        )
        outcome = np.load(found)
        probability = outcome["probability"]
        return (probability > 0.5).astype(float), probability, float(outcome["seconds"])


def oxonfair_on(
    model: Any, rows: Split, kappas: list[float], python: str
) -> dict[tuple[str, float], tuple[np.ndarray, float]]:
    """Return OxonFair's decisions for every constraint and tolerance, in its own environment."""
    X, X_test, y, y_test, groups, groups_test = rows
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(
            given,
            y=y,
            y_test=y_test,
            scores=logit(model.predict_proba(X)[:, 1].clip(1e-12, 1.0 - 1e-12)),
            test=logit(model.predict_proba(X_test)[:, 1].clip(1e-12, 1.0 - 1e-12)),
            groups=np.unique(groups, return_inverse=True)[1],
            groups_test=np.unique(groups_test, return_inverse=True)[1],
        )
        arguments = [str(given), str(found), *map(str, kappas)]
        subprocess.run([python, "-c", _OXONFAIR, *arguments], check=True, capture_output=True)
        outcome = np.load(found)
        return {
            (constraint, kappa): (
                outcome[f"{constraint} {kappa}"],
                float(outcome[f"{constraint} {kappa} seconds"]),
            )
            for constraint in CONSTRAINTS
            for kappa in kappas
        }


def oxonfair(split: Split, constraint: str, kappa: float, python: str = "") -> Outcome:
    """Fit LightGBM, and OxonFair's thresholds by group on the same rows, in its environment."""
    model, start = lightgbm(), time.process_time()
    model.fit(split[0], split[2])
    seconds = time.process_time() - start
    positive, more = oxonfair_on(model, split, [kappa], python)[constraint, kappa]
    return positive, None, seconds + more


@dataclass(frozen=True)
class Method:
    """A line of the table.

    Attributes
    ----------
    fit : callable
        From a split, a constraint and a tolerance to an outcome.
    marker : str
        In the figure.
    ours : bool
        Whether results depend on the version of this library.
    has_tolerance : bool
        Whether there is a run for every tolerance.
    constraints : tuple of str
        What it can bound.
    package : str
        The package that has an environment of its own.
    """

    fit: Callable[..., Outcome]
    marker: str
    ours: bool = False
    has_tolerance: bool = True
    constraints: tuple[str, ...] = CONSTRAINTS
    package: str = ""

    def run(self, split: Split, constraint: str, kappa: float, pythons: dict[str, str]) -> Outcome:
        """Return the outcome, from the environment of the package."""
        if self.package:
            python = pythons.get(self.package, sys.executable)
            return self.fit(split, constraint, kappa, python=python)
        return self.fit(split, constraint, kappa)


FREE, ON_SCORES, ON_DECISIONS = "LightGBM", "ours, scores", "ours, decisions"
BY_GROUP, TWO_BY_GROUP = "ours, thresholds by group", "ours, two thresholds by group"
METHODS = {
    FREE: Method(free, "*", has_tolerance=False),
    ON_SCORES: Method(partial(ours, enforce="score"), "o", ours=True),
    ON_DECISIONS: Method(partial(ours, enforce="decision"), "^", ours=True),
    BY_GROUP: Method(our_thresholds, "X", ours=True),
    TWO_BY_GROUP: Method(partial(our_thresholds, n_thresholds=2), "p", ours=True),
    "ExponentiatedGradient": Method(reduction, "s"),
    "ThresholdOptimizer": Method(thresholds, "v", has_tolerance=False),
    "FairGBM": Method(fairgbm, "D", constraints=("equalized_odds",), package="fairgbm"),
    "OxonFair": Method(oxonfair, "P", package="oxonfair"),
}
OTHERS = tuple(name for name, one in METHODS.items() if not one.ours and name != FREE)
