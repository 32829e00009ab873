"""Fits of this library and of other packages with several settings.

This module imports NumPy and scikit-learn only; each function imports the package of its own. So it
runs in the environment of any package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import fairlearn_peers

EPOCHS = 300  # full-batch steps of Adam of the packages that train networks


class Task:
    """Training rows, test rows, the notion and the settings."""

    def __init__(self, file: Any):
        self.X, self.y, self.groups = file["X"], file["y"], file["groups"]
        self.X_test, self.groups_test = file["X_test"], file["groups_test"]
        self.notion, self.settings = str(file["notion"]), [float(s) for s in file["settings"]]
        self.seed = int(file["seed"])

    def small(self) -> Task:
        """Return the task on few rows and with one setting, to load what a package loads late."""
        task = copy(self)
        rows = np.random.RandomState(0).permutation(len(self.y))[:400]
        task.X, task.y, task.groups = self.X[rows], self.y[rows], self.groups[rows]
        task.settings = self.settings[:1]
        return task

    def with_groups(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the rows with a column for every group but the last."""
        codes = np.arange(int(self.groups.max()))
        return np.column_stack([X, groups[:, None] == codes])


class Found:
    """What a fit predicts on the test rows.

    Parameters
    ----------
    setting : float
        The setting that it had.
    chance : ndarray
        The probability that each test row is selected; 0 or 1 if predictions are not random.
    score : ndarray
        What rows are ranked by.
    probability : bool
        Whether scores are probabilities of the positive class.
    """

    def __init__(self, setting: float, chance: Any, score: Any, probability: bool):
        self.setting, self.probability = setting, probability
        self.chance, self.score = (np.asarray(one, float).ravel() for one in (chance, score))


def plain() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def of_model(setting: float, model: Any, X: np.ndarray) -> Found:
    """Return the predictions of a classifier of scikit-learn's interface."""
    probability = model.predict_proba(X)[:, 1]
    return Found(setting, model.predict(X) == model.classes_[1], probability, True)


def unconstrained(task: Task) -> Iterator[Found]:
    yield of_model(0.0, plain().fit(task.X, task.y), task.X_test)


def ours(enforce: str, sees_group: bool) -> Callable[[Task], Iterator[Found]]:
    def fits(task: Task) -> Iterator[Found]:
        from fairconstrained import FairLogisticClassifier

        X, X_test = task.X, task.X_test
        if sees_group:
            X, X_test = task.with_groups(X, task.groups), task.with_groups(X_test, task.groups_test)
        for kappa in task.settings:
            model = FairLogisticClassifier(task.notion, kappa, enforce=enforce)
            yield of_model(kappa, model.fit(X, task.y, sensitive_features=task.groups), X_test)

    return fits


def our_interactions(task: Task) -> Iterator[Found]:
    from fairconstrained import FairLogisticClassifier

    X, X_test = (
        np.column_stack([rows, groups])
        for rows, groups in ((task.X, task.groups), (task.X_test, task.groups_test))
    )
    for kappa in task.settings:
        model = FairLogisticClassifier(
            task.notion, kappa, enforce="decision", sensitive_columns=[-1], group_interactions=True
        )
        yield of_model(kappa, model.fit(X, task.y), X_test)


def our_thresholds(task: Task) -> Iterator[Found]:
    from fairconstrained import FairThresholds

    for kappa in task.settings:
        inner = plain().fit(task.X, task.y)
        model = FairThresholds(inner, task.notion, kappa, per_group=True, cv="prefit")
        model.fit(task.X, task.y, sensitive_features=task.groups)
        chance = model.predict(task.X_test, sensitive_features=task.groups_test) == 1
        yield Found(kappa, chance, inner.predict_proba(task.X_test)[:, 1], True)


def exponentiated_gradient(task: Task) -> Iterator[Found]:
    for bound in task.settings:
        model = fairlearn_peers.reduction(plain(), task.notion, bound)
        model.fit(task.X, task.y, sensitive_features=task.groups)
        chance = fairlearn_peers.chance(model, task.X_test)
        weights = np.asarray(model.weights_)
        scores = [one.predict_proba(task.X_test)[:, 1] for one in model.predictors_]
        yield Found(bound, chance, weights[: len(scores)] @ np.array(scores), True)


def grid_search(task: Task) -> Iterator[Found]:
    size = max(10, len(task.settings))
    model = fairlearn_peers.grid_search(plain(), task.notion, size)
    model.fit(task.X, task.y, sensitive_features=task.groups)
    for k, one in enumerate(model.predictors_):
        if hasattr(one, "predict_proba"):  # not one of constant labels
            yield of_model(float(k), one, task.X_test)


def threshold_optimizer(task: Task) -> Iterator[Found]:
    model = fairlearn_peers.thresholds(plain(), task.notion)
    model.fit(task.X, task.y, sensitive_features=task.groups)
    chance = fairlearn_peers.chance(model, task.X_test, task.groups_test)
    yield Found(0.0, chance, chance, False)


def scikit_lego(task: Task) -> Iterator[Found]:
    from cvxpy.error import SolverError
    from sklego.linear_model import DemographicParityClassifier, EqualOpportunityClassifier

    n = task.X.shape[1]
    X = np.column_stack([task.X, task.groups])
    X_test = np.column_stack([task.X_test, task.groups_test])
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "demographic_parity": (DemographicParityClassifier, {}),
        "equal_opportunity": (EqualOpportunityClassifier, {"positive_target": 1}),
    }
    kind, options = kinds[task.notion]
    for bound in task.settings:
        model = kind(covariance_threshold=bound, sensitive_cols=[n], penalty="l2", **options)
        with suppress(SolverError):  # the page says how many fits have no result
            yield of_model(bound, model.fit(X, task.y), X_test)


def _torch_logits(task: Task) -> tuple[Any, ...]:
    import torch

    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    scale = task.X.std(axis=0) + 1e-12
    mean = task.X.mean(axis=0)
    X, X_test = (
        torch.tensor((one - mean) / scale, dtype=torch.float32) for one in (task.X, task.X_test)
    )
    y = torch.tensor(task.y, dtype=torch.float32)[:, None]
    onehot = torch.tensor(np.eye(int(task.groups.max()) + 1)[task.groups], dtype=torch.float32)
    model = torch.nn.Linear(X.shape[1], 1)
    return torch, X, X_test, y, onehot, model


def _of_logits(setting: float, logits: Any) -> Found:
    values = logits.detach().numpy().ravel().astype(float)
    return Found(setting, values > 0.0, 1.0 / (1.0 + np.exp(-values)), True)


def fairret(task: Task) -> Iterator[Found]:
    from fairret.loss import NormLoss
    from fairret.statistic import (
        FalsePositiveRate,
        PositiveRate,
        StackedLinearFractionalStatistic,
        TruePositiveRate,
    )

    statistics: dict[str, Any] = {
        "demographic_parity": PositiveRate,
        "equal_opportunity": TruePositiveRate,
        "equalized_odds": lambda: StackedLinearFractionalStatistic(
            TruePositiveRate(), FalsePositiveRate()
        ),
    }
    for bound in task.settings:
        strength = 0.05 / bound  # the smaller the bound, the larger the weight of the violation
        torch, X, X_test, y, onehot, model = _torch_logits(task)
        statistic = statistics[task.notion]()
        unfairness = NormLoss(statistic)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        labels = () if task.notion == "demographic_parity" else (y,)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            logits = model(X)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
            (loss + strength * unfairness(logits, onehot, *labels)).backward()
            optimizer.step()
        yield _of_logits(bound, model(X_test))


def _rates(task: Task, torch: Any, logits: Any, y: Any, onehot: Any) -> Any:
    """Return the differences of the groups' rates, both signs."""
    positive = torch.sigmoid(logits)[:, 0]
    events = {
        "demographic_parity": [torch.ones_like(positive)],
        "equal_opportunity": [y[:, 0]],
        "equalized_odds": [y[:, 0], 1.0 - y[:, 0]],
    }[task.notion]
    gaps = []
    for event in events:
        weights = onehot * event[:, None]
        rates = (weights * positive[:, None]).sum(0) / weights.sum(0)
        gaps += [rates[:, None] - rates[None, :]]
    found = torch.stack(gaps).reshape(-1)
    return found


def humancompatible_train(task: Task) -> Iterator[Found]:
    from humancompatible.train.dual_optim import ALM

    for bound in task.settings:
        torch, X, X_test, y, onehot, model = _torch_logits(task)
        with torch.no_grad():
            m = len(_rates(task, torch, model(X), y, onehot))
        dual = ALM(m=m, lr=0.1, penalty=1.0, is_ineq=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            logits = model(X)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
            gaps = _rates(task, torch, logits, y, onehot) - bound
            dual.forward_update(loss, gaps).backward()
            optimizer.step()
        yield _of_logits(bound, model(X_test))


def oxonfair(task: Task) -> Iterator[Found]:
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm

    name = {"equalized_odds": "equalized_odds_max"}.get(task.notion, task.notion)
    train = DataDict(task.y, task.X, groups=task.groups)
    test = DataDict(np.zeros(len(task.X_test)), task.X_test, groups=task.groups_test)
    for bound in task.settings:
        inner = plain().fit(task.X, task.y)
        score = inner.predict_proba(task.X_test)[:, 1]
        model = FairPredictor(inner, train)
        model.fit(gm.accuracy, getattr(gm, name), bound)
        yield Found(bound, np.asarray(model.predict(test)) == 1, score, True)


def error_parity(task: Task) -> Iterator[Found]:
    from error_parity import RelaxedThresholdOptimizer

    name = {"equal_opportunity": "true_positive_rate_parity"}.get(task.notion, task.notion)
    for bound in task.settings:
        inner = plain().fit(task.X, task.y)
        model = RelaxedThresholdOptimizer(
            predictor=lambda X, inner=inner: inner.predict_proba(X)[:, 1],
            constraint=name,
            tolerance=bound,
        )
        model.fit(X=task.X, y=task.y, group=task.groups)
        chance = np.zeros(len(task.X_test))
        for group, one in model._realized_classifier.group_to_clf.items():
            rows = task.groups_test == group
            chance[rows] = _expected(one, task.X_test[rows])
        yield Found(bound, chance, chance, False)


def _expected(one: Any, X: np.ndarray) -> np.ndarray:
    """Return the probability that error-parity's random classifier selects each row."""
    if hasattr(one, "classifiers"):
        parts = [_expected(inner, X) for inner in one.classifiers]
        return np.asarray(one.probabilities, float) @ np.array(parts)
    if hasattr(one, "target_fpr"):  # a share of the rows, whatever they are
        return np.full(len(X), float(one.target_fpr))
    return np.asarray(one(X), dtype=float)


def fairgbm(task: Task) -> Iterator[Found]:
    from fairgbm import FairGBMClassifier

    kind = {"equal_opportunity": "FNR", "equalized_odds": "FNR,FPR"}[task.notion]
    for bound in task.settings:
        model = FairGBMClassifier(
            constraint_type=kind,
            constraint_fnr_tolerance=bound,
            constraint_fpr_tolerance=bound,
            random_state=task.seed,
            n_jobs=1,
        )
        model.fit(task.X, task.y, constraint_group=task.groups)
        score = model.predict_proba(task.X_test)[:, 1]
        yield Found(bound, score > 0.5, score, True)


def boosted(task: Task) -> Iterator[Found]:
    from fairconstrained import FairBoostingClassifier

    for kappa in task.settings:
        model = FairBoostingClassifier(task.notion, kappa, enforce="decision")
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield of_model(kappa, model, task.X_test)


def aif360_reweighing(task: Task) -> Iterator[Found]:
    import pandas as pd
    from aif360.sklearn.preprocessing import Reweighing

    index = pd.Index(task.groups, name="group")
    X, y = pd.DataFrame(task.X, index=index), pd.Series(task.y, index=index)
    weights = Reweighing("group").fit_transform(X, y)[1]
    yield of_model(0.0, plain().fit(task.X, task.y, sample_weight=weights), task.X_test)
