"""Fits of this library and of other packages with several settings: setting, chances.

A chance is the probability that a test row is selected; 0 or 1 if predictions are not random. Each
function imports its package itself. All linear models are logistic with the same ridge.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness.frontier import counts, gap

RIDGE = 1e-4
EPOCHS = 300  # full-batch steps of Adam of the packages that train networks
GRID = 20  # models of a grid search, of which every setting takes one
FAIRLEARN = {  # its names of a notion, in its reductions and in its post-processing
    "demographic_parity": ("DemographicParity", "demographic_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
}
NOTIONS = tuple(FAIRLEARN)


@dataclass(frozen=True)
class Task:
    """Training rows, test rows, the notion and the settings; groups are codes."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    X_test: np.ndarray
    groups_test: np.ndarray
    notion: str
    settings: tuple[float, ...]
    seed: int

    def plain(self) -> LogisticRegression:
        """Return the model that has no constraint, not fitted."""
        return LogisticRegression(C=1.0 / (RIDGE * len(self.y)), max_iter=1000)


Fits = Iterator[tuple[float, Any]]


def unconstrained(task: Task) -> Fits:
    yield 1.0, task.plain().fit(task.X, task.y).predict(task.X_test)


def unconstrained_trees(task: Task) -> Fits:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(num_leaves=15, n_jobs=1, verbose=-1, random_state=task.seed)
    yield 1.0, model.fit(task.X, task.y).predict(task.X_test)


def ours(task: Task, enforce: str) -> Fits:
    from fairconstrained import FairLogisticClassifier

    for kappa in task.settings:
        model = FairLogisticClassifier(task.notion, kappa, enforce=enforce, alpha=RIDGE)
        yield kappa, model.fit(task.X, task.y, sensitive_features=task.groups).predict(task.X_test)


def our_thresholds(task: Task) -> Fits:
    from fairconstrained import FairThresholds

    inner = task.plain().fit(task.X, task.y)
    for kappa in task.settings:
        model = FairThresholds(inner, task.notion, kappa, per_group=True, cv="prefit")
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield kappa, model.predict(task.X_test, sensitive_features=task.groups_test)


def our_trees(task: Task) -> Fits:
    from fairconstrained import FairBoostingClassifier

    for kappa in task.settings:
        options = {"enforce": "decision", "random_state": task.seed}
        model = FairBoostingClassifier(task.notion, kappa, **options)
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield kappa, model.predict(task.X_test)


def exponentiated_gradient(task: Task) -> Fits:
    from fairlearn import reductions

    for bound in task.settings:  # fairlearn bounds the distance from the rate of all rows
        moment = getattr(reductions, FAIRLEARN[task.notion][0])(difference_bound=bound / 2.0)
        model = reductions.ExponentiatedGradient(task.plain(), moment)
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield bound, model._pmf_predict(task.X_test)[:, 1]


def grid_search(task: Task) -> Fits:
    """Yield, for every bound, the most accurate model of the grid within it on training rows."""
    from fairlearn import reductions

    moment = getattr(reductions, FAIRLEARN[task.notion][0])()
    search = reductions.GridSearch(task.plain(), moment, grid_size=GRID)
    search.fit(task.X, task.y, sensitive_features=task.groups)
    training = [model.predict(task.X) for model in search.predictors_]
    gaps = [gap(counts(task.y, task.groups, chance, task.notion)) for chance in training]
    accuracies = [np.mean(chance == task.y) for chance in training]
    for bound in task.settings:
        order = [
            (max(each, bound), -accuracy) for each, accuracy in zip(gaps, accuracies, strict=True)
        ]
        yield bound, search.predictors_[order.index(min(order))].predict(task.X_test)


def threshold_optimizer(task: Task) -> Fits:
    from fairlearn.postprocessing import ThresholdOptimizer

    inner, (_, name) = task.plain().fit(task.X, task.y), FAIRLEARN[task.notion]
    options: dict[str, Any] = {"predict_method": "predict_proba"}
    bounded = task.notion == "demographic_parity"  # it has no tolerance for equalized odds
    for bound in task.settings if bounded else (0.0,):
        options["tol"] = bound if bounded else None
        model = ThresholdOptimizer(estimator=inner, constraints=name, prefit=True, **options)
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield bound, model._pmf_predict(task.X_test, sensitive_features=task.groups_test)[:, 1]


def oxonfair(task: Task) -> Fits:
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm

    name = {"equalized_odds": "equalized_odds_max"}.get(task.notion, task.notion)
    train = DataDict(task.y, task.X, groups=task.groups)
    test = DataDict(np.zeros(len(task.X_test)), task.X_test, groups=task.groups_test)
    inner = task.plain().fit(task.X, task.y)
    for bound in task.settings:
        model = FairPredictor(inner, train)
        model.fit(gm.accuracy, getattr(gm, name), bound)
        yield bound, model.predict(test)


def error_parity(task: Task) -> Fits:
    from error_parity import RelaxedThresholdOptimizer

    inner = task.plain().fit(task.X, task.y)
    options = {"predictor": lambda X: inner.predict_proba(X)[:, 1], "constraint": task.notion}
    for bound in task.settings:
        model = RelaxedThresholdOptimizer(**options, tolerance=bound)
        model.fit(X=task.X, y=task.y, group=task.groups)
        chance = np.zeros(len(task.X_test))
        for group, classifier in model._realized_classifier.group_to_clf.items():
            rows = task.groups_test == group
            chance[rows] = _expected(classifier, task.X_test[rows])
        yield bound, chance


def _expected(classifier: Any, X: np.ndarray) -> np.ndarray:
    """Return the probability that error-parity's random classifier selects each row."""
    if hasattr(classifier, "classifiers"):
        parts = [_expected(inner, X) for inner in classifier.classifiers]
        return np.asarray(classifier.probabilities, float) @ np.array(parts)
    if hasattr(classifier, "target_fpr"):  # a share of the rows, whatever they are
        return np.full(len(X), float(classifier.target_fpr))
    return np.asarray(classifier(X), dtype=float)


def _trained(task: Task, prepared: Callable[[Any, Any], Callable[[Any, Any], Any]]) -> np.ndarray:
    """Return the predictions of a linear model of PyTorch, trained by Adam.

    `prepared(y, onehot)`, with the labels and the groups, returns what is minimised: a function of
    the cross-entropy and the logits.
    """
    import torch

    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    X, X_test = (torch.tensor(rows, dtype=torch.float32) for rows in (task.X, task.X_test))
    y = torch.tensor(task.y, dtype=torch.float32)[:, None]
    onehot = torch.tensor(np.eye(int(task.groups.max()) + 1)[task.groups], dtype=torch.float32)
    model, objective = torch.nn.Linear(X.shape[1], 1), prepared(y, onehot)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=RIDGE)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        logits = model(X)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        objective(loss, logits).backward()
        optimizer.step()
    return model(X_test).detach().numpy().ravel() > 0.0


def fairret(task: Task) -> Fits:
    from fairret import statistic
    from fairret.loss import NormLoss

    both = (statistic.TruePositiveRate(), statistic.FalsePositiveRate())
    statistics: dict[str, Any] = {
        "demographic_parity": statistic.PositiveRate(),
        "equalized_odds": statistic.StackedLinearFractionalStatistic(*both),
    }
    unfairness = NormLoss(statistics[task.notion])
    for bound in task.settings:
        strength = 0.05 / bound  # the smaller the bound, the larger the weight of the violation

        def prepared(y: Any, onehot: Any, strength: float = strength) -> Callable[[Any, Any], Any]:
            given = (onehot,) if task.notion == "demographic_parity" else (onehot, y)
            return lambda loss, logits: loss + strength * unfairness(logits, *given)

        yield bound, _trained(task, prepared)


def humancompatible_train(task: Task) -> Fits:
    import torch
    from humancompatible.train.dual_optim import ALM

    for bound in task.settings:

        def prepared(y: Any, onehot: Any, bound: float = bound) -> Callable[[Any, Any], Any]:
            parity = task.notion == "demographic_parity"
            events = [torch.ones_like(y)] if parity else [y, 1.0 - y]
            dual = ALM(m=len(events) * onehot.shape[1] ** 2, lr=0.1, penalty=1.0, is_ineq=True)

            def lagrangian(loss: Any, logits: Any) -> Any:
                gaps = []
                for event in events:
                    weights = onehot * event
                    sums = (weights * torch.sigmoid(logits)).sum(0)
                    rates = sums / weights.sum(0).clamp(min=1.0)
                    gaps.append((rates[:, None] - rates[None, :]).ravel())
                return dual.forward_update(loss, torch.cat(gaps) - bound)

            return lagrangian

        yield bound, _trained(task, prepared)


def fairgbm(task: Task) -> Fits:
    from fairgbm import sklearn as fairgbm_sklearn

    # its checks of arrays call scikit-learn by a name of before version 1.6
    fairgbm_sklearn._LGBMCheckXY = lambda X, y, **options: (X, y)
    fairgbm_sklearn._LGBMCheckArray = lambda X, **options: X
    options = {"constraint_type": "FNR,FPR", "num_leaves": 15, "random_state": task.seed}
    for bound in task.settings:
        bounds = {"constraint_fnr_tolerance": bound, "constraint_fpr_tolerance": bound}
        model = fairgbm_sklearn.FairGBMClassifier(n_jobs=1, **options, **bounds)
        model.fit(task.X, task.y, constraint_group=task.groups)
        yield bound, model.predict_proba(task.X_test)[:, 1] > 0.5


@dataclass(frozen=True)
class Method:
    """A method and what it knows.

    Attributes
    ----------
    fits : callable
        Yields the settings and the predictions of the fits of a task.
    kind : str
        Methods of a kind are compared: models of the same class, with the same knowledge.
    notions : tuple of str
        The notions that it can bound.
    most_groups : int
        It is left out where there are more groups: a grid over their thresholds or multipliers.
    """

    fits: Callable[[Task], Fits]
    kind: str = "blind"
    notions: tuple[str, ...] = NOTIONS
    most_groups: int = 1000


SEES, TREES = "sees the group", "trees"
OURS = {
    "ours, decisions": Method(partial(ours, enforce="decision")),
    "ours, scores": Method(partial(ours, enforce="score")),
    "ours, thresholds": Method(our_thresholds, SEES),
    "ours with group, decisions": Method(partial(ours, enforce="decision"), SEES),
    "ours, trees": Method(our_trees, TREES, NOTIONS[1:]),
}
FREE = {
    "no constraint": Method(unconstrained),
    "no constraint with group": Method(unconstrained, SEES),
    "no constraint, trees": Method(unconstrained_trees, TREES, NOTIONS[1:]),
}
PEERS = {
    "ExponentiatedGradient": Method(exponentiated_gradient),
    "GridSearch": Method(grid_search, most_groups=2),
    "fairret": Method(fairret),
    "humancompatible-train": Method(humancompatible_train),
    "ThresholdOptimizer": Method(threshold_optimizer, SEES),
    "OxonFair": Method(oxonfair, SEES, most_groups=2),
    "error-parity": Method(error_parity, SEES),
    "FairGBM": Method(fairgbm, TREES, NOTIONS[1:]),
}
METHODS = {**FREE, **OURS, **PEERS}
