"""How networks are trained: the iterate that is best on validation rows; fitted networks."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fairconstrained.models.feature_scale import Features
from fairconstrained.models.linear import checked_scores
from fairconstrained.models.modules import load_weights
from fairconstrained.models.network import Network, TorchModel
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.solvers import Result, Status
from fairconstrained.solvers.base import Callback, Iterate, Measured
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class _Choice:
    """An iterate that may be chosen, and what it is worth: less is better."""

    worth: tuple[float, float, float]
    measured: Measured
    passes: float

    @property
    def feasible(self) -> bool:
        """Whether the constraints hold on the training rows."""
        return self.worth[0] == 0.0


class BestOnValidation:
    r"""A solver's callback that keeps the iterate that is best on validation rows.

    Iterates that meet the constraints on the training rows come first, then those whose violation
    on the validation rows is at most :math:`1 / \sqrt{n}`, the order of the error of a rate in a
    sample of n rows; the smaller mean loss on the validation rows decides between these. The run
    is stopped once no better iterate has been found for a number of data passes.

    Parameters
    ----------
    problem : Problem
        The problem on the training rows.
    validation : Problem
        The same functions, without the penalty, on the validation rows.
    tol : float
        The violation allowed on the training rows.
    patience : float
        The data passes after which the run is stopped.
    callback : callable or None, default=None
        Called with every iterate as well.
    """

    def __init__(
        self,
        problem: Problem,
        validation: Problem,
        tol: float,
        patience: float,
        callback: Callback | None = None,
    ):
        self.problem, self.validation, self.tol = problem, validation.uncounted(), tol
        self.patience, self.callback = patience, callback
        self.allowed = 1.0 / np.sqrt(validation.n_rows)
        self.best: _Choice | None = None

    def __call__(self, measured: Measured) -> bool:
        """Compare an iterate with the best one; return whether to stop."""
        stop = bool(self.callback is not None and self.callback(measured))
        w, passes = measured.iterate.at.w, self.problem.passes
        worth = self._worth(measured, self.validation.at(w[: self.validation.n_variables]))
        if np.all(np.isfinite(worth)) and (self.best is None or worth < self.best.worth):
            self.best = _Choice(worth, measured.without_rows(), passes)
        waited = 0.0 if self.best is None else passes - self.best.passes
        return stop or (waited >= self.patience and self.best is not None and self.best.feasible)

    def _worth(self, measured: Measured, at: Evaluation) -> tuple[float, float, float]:
        missed = measured.violation if measured.violation > self.tol else 0.0
        return missed, max(at.violation - self.allowed, 0.0), at.objective

    def chosen(self, problem: Problem, result: Result) -> tuple[Result, Evaluation]:
        """Return the result with the iterate that was chosen, measured on all rows.

        Parameters
        ----------
        problem : Problem
            The problem on the training and the validation rows.
        result : Result
            What the solver returned.
        """
        w, multipliers, n_iter, status = result.w, result.multipliers, result.n_iter, result.status
        if self.best is not None:
            best = self.best.measured
            w, multipliers, n_iter = best.iterate.at.w, best.multipliers, best.iterate.iteration
            status = Status.VALIDATED if self.best.feasible else status
        point = problem.uncounted().at(w)
        same = len(multipliers) == problem.n_constraints
        iterate = Iterate(point, multipliers if same else None, n_iter)
        return result.with_point(Measured.of(iterate, self.tol), status), point


def iterations(n_epochs: float, n_rows: int, batch_size: int | None) -> int:
    """Return the steps that make so many data passes, with two forward passes per batch.

    Parameters
    ----------
    n_epochs : float
        The data passes.
    n_rows : int
        The number of rows.
    batch_size : int or None
        The rows of a batch; None takes all rows in a single forward pass.
    """
    if batch_size is None:
        return ceil(n_epochs)
    return ceil(n_epochs * max(1.0, n_rows / (2.0 * batch_size)))


def fitted_network(estimator: Any) -> TorchModel:
    """Return the model of a fitted estimator, on no rows."""
    return TorchModel.with_scale(
        np.zeros((0, len(estimator.feature_mean_))),
        estimator.feature_mean_,
        estimator.feature_scale_,
        hidden_layer_sizes=tuple(estimator.hidden_layer_sizes),
        activation=estimator.activation,
        module=getattr(estimator, "module", None),
        device=getattr(estimator, "device", "cpu"),
    )


_fitted: WeakKeyDictionary[Any, tuple[Array, str, Network]] = WeakKeyDictionary()


def network_scores(estimator: Any, X: Features) -> Array:
    """Return the scores of rows with the features that a fitted estimator uses.

    To make a network takes as long as the scores of many rows. That of an estimator is kept for
    later calls, beside the estimator: it is no part of what is copied or pickled.
    """
    weights, device = estimator.weights_, getattr(estimator, "device", "cpu")
    last = _fitted.get(estimator)
    if last is None or last[1] != device or not np.array_equal(last[0], weights):
        network = fitted_network(estimator).network
        load_weights(network.module, network.tensor(weights))
        last = _fitted[estimator] = weights.copy(), device, network
    return checked_scores(last[2].loaded_scores(X))


def network_attributes(model: TorchModel, w: Array) -> dict[str, Array]:
    """Return the weights, and the centring and the scale of the features."""
    network = model.network
    return {
        "weights_": np.array(w),
        "feature_mean_": network.shift,
        "feature_scale_": network.scale,
    }


def network_variables(estimator: Any, model: TorchModel) -> Array | None:
    """Return the weights of a fitted estimator, None if its network is another one."""
    weights: Array = getattr(estimator, "weights_", np.empty(0))
    return weights if weights.shape == (model.n_parameters,) else None
