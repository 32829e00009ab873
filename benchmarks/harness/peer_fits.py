"""Fits of this library and of other packages to a bound: the chances of the test rows.

A chance is the probability that a test row is selected; 0 or 1 if predictions are not random. Each
function imports its package itself. All linear models are logistic with the same ridge.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
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


@dataclass(frozen=True, eq=False)
class Task:
    """Training rows, test rows and the notion; groups are codes."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    X_test: np.ndarray
    groups_test: np.ndarray
    notion: str
    seed: int

    def plain(self) -> LogisticRegression:
        """Return the model that has no constraint, not fitted."""
        return LogisticRegression(C=1.0 / (RIDGE * len(self.y)), max_iter=1000)

    @cached_property
    def inner(self) -> LogisticRegression:
        """The same, fitted once."""
        return self.plain().fit(self.X, self.y)

    def fitted(self, model: Any) -> Any:
        """Return a model fitted to the training rows with their groups."""
        return model.fit(self.X, self.y, sensitive_features=self.groups)


def unconstrained(task: Task, bound: float) -> Any:
    return task.inner.predict(task.X_test)


def unconstrained_trees(task: Task, bound: float) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(num_leaves=15, n_jobs=1, verbose=-1, random_state=task.seed)
    return model.fit(task.X, task.y).predict(task.X_test)


def ours(task: Task, bound: float, enforce: str) -> Any:
    from fairconstrained import FairLogisticClassifier

    model = FairLogisticClassifier(task.notion, bound, enforce=enforce, alpha=RIDGE)
    return task.fitted(model).predict(task.X_test)


def our_thresholds(task: Task, bound: float) -> Any:
    from fairconstrained import FairThresholds

    model = FairThresholds(task.inner, task.notion, bound, per_group=True, cv="prefit")
    return task.fitted(model).predict(task.X_test, sensitive_features=task.groups_test)


def our_trees(task: Task, bound: float) -> Any:
    from fairconstrained import FairBoostingClassifier

    options = {"enforce": "decision", "random_state": task.seed}
    model = FairBoostingClassifier(task.notion, bound, **options)
    return task.fitted(model).predict(task.X_test)


def exponentiated_gradient(task: Task, bound: float) -> Any:
    from fairlearn import reductions

    # fairlearn bounds the distance from the rate of all rows
    moment = getattr(reductions, FAIRLEARN[task.notion][0])(difference_bound=bound / 2.0)
    model = task.fitted(reductions.ExponentiatedGradient(task.plain(), moment))
    return model._pmf_predict(task.X_test)[:, 1]


@lru_cache(maxsize=1)
def _grid(task: Task) -> list[tuple[float, float, Any]]:
    """Return the gaps and the accuracies of the models of a grid on training rows."""
    from fairlearn import reductions

    moment = getattr(reductions, FAIRLEARN[task.notion][0])()
    search = task.fitted(reductions.GridSearch(task.plain(), moment, grid_size=GRID))
    chances = [model.predict(task.X) for model in search.predictors_]
    gaps = [gap(counts(task.y, task.groups, chance, task.notion)) for chance in chances]
    accuracies = [np.mean(chance == task.y) for chance in chances]
    return list(zip(gaps, accuracies, search.predictors_, strict=True))


def grid_search(task: Task, bound: float) -> Any:
    """Return what the most accurate model of the grid within the bound on training rows says."""
    best = min(_grid(task), key=lambda model: (max(model[0], bound), -model[1]))
    return best[2].predict(task.X_test)


def threshold_optimizer(task: Task, bound: float) -> Any:
    from fairlearn.postprocessing import ThresholdOptimizer

    _, name = FAIRLEARN[task.notion]
    options = {"predict_method": "predict_proba", "prefit": True, "tol": bound or None}
    model = task.fitted(ThresholdOptimizer(estimator=task.inner, constraints=name, **options))
    return model._pmf_predict(task.X_test, sensitive_features=task.groups_test)[:, 1]


def oxonfair(task: Task, bound: float) -> Any:
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm

    name = {"equalized_odds": "equalized_odds_max"}.get(task.notion, task.notion)
    model = FairPredictor(task.inner, DataDict(task.y, task.X, groups=task.groups))
    model.fit(gm.accuracy, getattr(gm, name), bound)
    return model.predict(DataDict(np.zeros(len(task.X_test)), task.X_test, groups=task.groups_test))


def error_parity(task: Task, bound: float) -> Any:
    from error_parity import RelaxedThresholdOptimizer

    options = {"predictor": lambda X: task.inner.predict_proba(X)[:, 1], "constraint": task.notion}
    model = RelaxedThresholdOptimizer(**options, tolerance=bound)
    model.fit(X=task.X, y=task.y, group=task.groups)
    chance = np.zeros(len(task.X_test))
    for group, classifier in model._realized_classifier.group_to_clf.items():
        rows = task.groups_test == group
        chance[rows] = _expected(classifier, task.X_test[rows])
    return chance


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


def fairret(task: Task, bound: float) -> Any:
    from fairret import statistic
    from fairret.loss import NormLoss

    parity = task.notion == "demographic_parity"
    both = (statistic.TruePositiveRate(), statistic.FalsePositiveRate())
    rates = statistic.StackedLinearFractionalStatistic(*both)
    unfairness = NormLoss(statistic.PositiveRate() if parity else rates)
    strength = 0.05 / bound  # the smaller the bound, the larger the weight of the violation

    def prepared(y: Any, onehot: Any) -> Callable[[Any, Any], Any]:
        given = (onehot,) if parity else (onehot, y)
        return lambda loss, logits: loss + strength * unfairness(logits, *given)

    return _trained(task, prepared)


def humancompatible_train(task: Task, bound: float) -> Any:
    import torch
    from humancompatible.train.dual_optim import ALM

    def prepared(y: Any, onehot: Any) -> Callable[[Any, Any], Any]:
        events = [torch.ones_like(y)] if task.notion == "demographic_parity" else [y, 1.0 - y]
        dual = ALM(m=len(events) * onehot.shape[1] ** 2, lr=0.1, penalty=1.0, is_ineq=True)

        def lagrangian(loss: Any, logits: Any) -> Any:
            gaps = []
            for event in events:
                weights = onehot * event
                rates = (weights * torch.sigmoid(logits)).sum(0) / weights.sum(0).clamp(min=1.0)
                gaps.append((rates[:, None] - rates[None, :]).ravel())
            return dual.forward_update(loss, torch.cat(gaps) - bound)

        return lagrangian

    return _trained(task, prepared)


def fairgbm(task: Task, bound: float) -> Any:
    from fairgbm import sklearn as fairgbm_sklearn

    # its checks of arrays call scikit-learn by a name of before version 1.6
    fairgbm_sklearn._LGBMCheckXY = lambda X, y, **options: (X, y)
    fairgbm_sklearn._LGBMCheckArray = lambda X, **options: X
    options = {"constraint_type": "FNR,FPR", "num_leaves": 15, "random_state": task.seed}
    bounds = {"constraint_fnr_tolerance": bound, "constraint_fpr_tolerance": bound}
    model = fairgbm_sklearn.FairGBMClassifier(n_jobs=1, **options, **bounds)
    model.fit(task.X, task.y, constraint_group=task.groups)
    return model.predict_proba(task.X_test)[:, 1] > 0.5


@dataclass(frozen=True)
class Method:
    """A method and what it knows.

    Attributes
    ----------
    fit : callable
        Returns the chances for a task and a bound.
    kind : str
        Methods of a kind are compared: models of the same class, with the same knowledge.
    notions : tuple of str
        The notions that it can bound.
    most_groups : int
        It is left out where there are more groups: a grid over their thresholds or multipliers.
    without : dict
        Its only bound for notions of which it has no tolerance.
    """

    fit: Callable[[Task, float], Any]
    kind: str = "blind"
    notions: tuple[str, ...] = NOTIONS
    most_groups: int = 1000
    without: dict[str, float] = field(default_factory=dict)


SEES, TREES = "sees the group", "trees"
OURS = {
    "ours, decisions": Method(partial(ours, enforce="decision")),
    "ours, scores": Method(partial(ours, enforce="score")),
    "ours, thresholds": Method(our_thresholds, SEES),
    "ours with group, decisions": Method(partial(ours, enforce="decision"), SEES),
    "ours, trees": Method(our_trees, TREES, NOTIONS[1:]),
}
_NONE = dict.fromkeys(NOTIONS, 1.0)
FREE = {
    "no constraint": Method(unconstrained, without=_NONE),
    "no constraint with group": Method(unconstrained, SEES, without=_NONE),
    "no constraint, trees": Method(unconstrained_trees, TREES, NOTIONS[1:], without=_NONE),
}
PEERS = {
    "ExponentiatedGradient": Method(exponentiated_gradient),
    "GridSearch": Method(grid_search, most_groups=2),
    "fairret": Method(fairret),
    "humancompatible-train": Method(humancompatible_train),
    "ThresholdOptimizer": Method(threshold_optimizer, SEES, without={NOTIONS[1]: 0.0}),
    "OxonFair": Method(oxonfair, SEES, most_groups=2),
    "error-parity": Method(error_parity, SEES),
    "FairGBM": Method(fairgbm, TREES, NOTIONS[1:]),
}
METHODS = {**FREE, **OURS, **PEERS}
