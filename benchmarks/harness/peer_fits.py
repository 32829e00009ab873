"""Fits of this library and of other packages with several settings: setting, chances.

A chance is the probability that a test row is selected; 0 or 1 if predictions are not random. This
module imports NumPy and scikit-learn only; each function imports the package of its own. So it runs
in the environment of any package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

EPOCHS = 300  # full-batch steps of Adam of the packages that train networks
FAIRLEARN = {  # its names of a notion, in its reductions and in its post-processing
    "demographic_parity": ("DemographicParity", "demographic_parity"),
    "equal_opportunity": ("TruePositiveRateParity", "true_positive_rate_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
}
NOTIONS = tuple(FAIRLEARN)


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


Fits = Iterator[tuple[float, Any]]


def plain() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def unconstrained(task: Task) -> Fits:
    yield 0.0, plain().fit(task.X, task.y).predict(task.X_test)


def ours(enforce: str, sees_group: bool) -> Callable[[Task], Fits]:
    def fits(task: Task) -> Fits:
        from fairconstrained import FairLogisticClassifier

        X, X_test = task.X, task.X_test
        if sees_group:
            X = task.with_groups(X, task.groups)
            X_test = task.with_groups(X_test, task.groups_test)
        for kappa in task.settings:
            model = FairLogisticClassifier(task.notion, kappa, enforce=enforce)
            yield kappa, model.fit(X, task.y, sensitive_features=task.groups).predict(X_test)

    return fits


def our_interactions(task: Task) -> Fits:
    from fairconstrained import FairLogisticClassifier

    X = np.column_stack([task.X, task.groups])
    X_test = np.column_stack([task.X_test, task.groups_test])
    options = {"enforce": "decision", "sensitive_columns": [-1], "group_interactions": True}
    for kappa in task.settings:
        model = FairLogisticClassifier(task.notion, kappa, **options)
        yield kappa, model.fit(X, task.y).predict(X_test)


def our_thresholds(task: Task) -> Fits:
    from fairconstrained import FairThresholds

    for kappa in task.settings:
        inner = plain().fit(task.X, task.y)
        model = FairThresholds(inner, task.notion, kappa, per_group=True, cv="prefit")
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield kappa, model.predict(task.X_test, sensitive_features=task.groups_test)


def boosted(task: Task) -> Fits:
    from fairconstrained import FairBoostingClassifier

    for kappa in task.settings:
        model = FairBoostingClassifier(task.notion, kappa, enforce="decision")
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield kappa, model.predict(task.X_test)


def exponentiated_gradient(task: Task) -> Fits:
    from fairlearn import reductions

    for bound in task.settings:
        moment = getattr(reductions, FAIRLEARN[task.notion][0])(difference_bound=bound)
        model = reductions.ExponentiatedGradient(plain(), moment)
        model.fit(task.X, task.y, sensitive_features=task.groups)
        yield bound, model._pmf_predict(task.X_test)[:, 1]


def grid_search(task: Task) -> Fits:
    from fairlearn import reductions

    moment = getattr(reductions, FAIRLEARN[task.notion][0])()
    model = reductions.GridSearch(plain(), moment, grid_size=max(10, len(task.settings)))
    model.fit(task.X, task.y, sensitive_features=task.groups)
    for k, predictor in enumerate(model.predictors_):
        yield float(k), predictor.predict(task.X_test)


def threshold_optimizer(task: Task) -> Fits:
    from fairlearn.postprocessing import ThresholdOptimizer

    options = {"constraints": FAIRLEARN[task.notion][1], "predict_method": "predict_proba"}
    model = ThresholdOptimizer(estimator=plain(), **options)
    model.fit(task.X, task.y, sensitive_features=task.groups)
    yield 0.0, model._pmf_predict(task.X_test, sensitive_features=task.groups_test)[:, 1]


def scikit_lego(task: Task) -> Fits:
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
            yield bound, model.fit(X, task.y).predict(X_test)


def _torch_logits(task: Task) -> tuple[Any, ...]:
    """Return torch, standardised rows, labels, groups one-hot and a linear model."""
    import torch

    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    scale, mean = task.X.std(axis=0) + 1e-12, task.X.mean(axis=0)
    X, X_test = (
        torch.tensor((rows - mean) / scale, dtype=torch.float32) for rows in (task.X, task.X_test)
    )
    y = torch.tensor(task.y, dtype=torch.float32)[:, None]
    onehot = torch.tensor(np.eye(int(task.groups.max()) + 1)[task.groups], dtype=torch.float32)
    return torch, X, X_test, y, onehot, torch.nn.Linear(X.shape[1], 1)


def _trained(torch: Any, X: Any, y: Any, model: Any, loss_of: Callable[[Any, Any], Any]) -> None:
    """Minimise what `loss_of` makes of the cross-entropy and the logits."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        logits = model(X)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        loss_of(loss, logits).backward()
        optimizer.step()


def fairret(task: Task) -> Fits:
    from fairret import statistic
    from fairret.loss import NormLoss

    both = (statistic.TruePositiveRate(), statistic.FalsePositiveRate())
    statistics: dict[str, Any] = {
        "demographic_parity": statistic.PositiveRate(),
        "equal_opportunity": both[0],
        "equalized_odds": statistic.StackedLinearFractionalStatistic(*both),
    }
    unfairness = NormLoss(statistics[task.notion])
    for bound in task.settings:
        strength = 0.05 / bound  # the smaller the bound, the larger the weight of the violation
        torch, X, X_test, y, onehot, model = _torch_logits(task)
        labels = () if task.notion == "demographic_parity" else (y,)

        def penalised(loss: Any, logits: Any, strength=strength, given=(onehot, *labels)) -> Any:
            return loss + strength * unfairness(logits, *given)

        _trained(torch, X, y, model, penalised)
        yield bound, model(X_test).detach().numpy() > 0.0


def _rates(task: Task, logits: Any, y: Any, onehot: Any) -> Any:
    """Return the differences of the groups' rates, both signs."""
    import torch

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
    return torch.stack(gaps).reshape(-1)


def humancompatible_train(task: Task) -> Fits:
    from humancompatible.train.dual_optim import ALM

    for bound in task.settings:
        torch, X, X_test, y, onehot, model = _torch_logits(task)
        with torch.no_grad():
            m = len(_rates(task, model(X), y, onehot))
        dual = ALM(m=m, lr=0.1, penalty=1.0, is_ineq=True)

        def lagrangian(loss: Any, logits: Any, dual=dual, bound=bound, given=(y, onehot)) -> Any:
            return dual.forward_update(loss, _rates(task, logits, *given) - bound)

        _trained(torch, X, y, model, lagrangian)
        yield bound, model(X_test).detach().numpy() > 0.0


def oxonfair(task: Task) -> Fits:
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm

    name = {"equalized_odds": "equalized_odds_max"}.get(task.notion, task.notion)
    train = DataDict(task.y, task.X, groups=task.groups)
    test = DataDict(np.zeros(len(task.X_test)), task.X_test, groups=task.groups_test)
    for bound in task.settings:
        model = FairPredictor(plain().fit(task.X, task.y), train)
        model.fit(gm.accuracy, getattr(gm, name), bound)
        yield bound, model.predict(test)


def error_parity(task: Task) -> Fits:
    from error_parity import RelaxedThresholdOptimizer

    name = {"equal_opportunity": "true_positive_rate_parity"}.get(task.notion, task.notion)
    inner = plain().fit(task.X, task.y)
    for bound in task.settings:
        model = RelaxedThresholdOptimizer(
            predictor=lambda X: inner.predict_proba(X)[:, 1], constraint=name, tolerance=bound
        )
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


def fairgbm(task: Task) -> Fits:
    from fairgbm import FairGBMClassifier

    kind = {"equal_opportunity": "FNR", "equalized_odds": "FNR,FPR"}[task.notion]
    for bound in task.settings:
        bounds = {"constraint_fnr_tolerance": bound, "constraint_fpr_tolerance": bound}
        model = FairGBMClassifier(constraint_type=kind, random_state=task.seed, n_jobs=1, **bounds)
        model.fit(task.X, task.y, constraint_group=task.groups)
        yield bound, model.predict_proba(task.X_test)[:, 1] > 0.5


def aif360_reweighing(task: Task) -> Fits:
    import pandas as pd
    from aif360.sklearn.preprocessing import Reweighing

    index = pd.Index(task.groups, name="group")
    X, y = pd.DataFrame(task.X, index=index), pd.Series(task.y, index=index)
    weights = Reweighing("group").fit_transform(X, y)[1]
    yield 0.0, plain().fit(task.X, task.y, sample_weight=weights).predict(task.X_test)
