"""How networks are trained: the iterate best on validation rows, last layers, fitted networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from types import SimpleNamespace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize_scalar

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.search import LOOSEN
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.estimators.fit import Fit
from fairconstrained.estimators.rows import loss_part, penalty_of
from fairconstrained.estimators.solving import Solved, best_of
from fairconstrained.models import LinearModel, Model
from fairconstrained.models.linear import checked_scores
from fairconstrained.models.modules import load_weights
from fairconstrained.models.network import Network, TorchModel
from fairconstrained.penalties import Leading
from fairconstrained.problem import CompositeFunction, Evaluation, Problem
from fairconstrained.problem.composite import NO_MODEL
from fairconstrained.solvers import Result, Status, default_solver
from fairconstrained.solvers.base import Callback, Iterate, Measured, Start
from fairconstrained.utils.arrays import Array, Matrix

_START_WAS_CHOSEN = (
    "The weights are those of the start: no later iterate that meets the constraints on the rows "
    "trained on was better on the validation rows. Raise max_epochs or n_iter_no_change, change "
    f"learning_rate, or {LOOSEN}."
)


@dataclass(eq=False)
class BestOnValidation:
    r"""A solver's callback that keeps the iterate that is best on validation rows.

    Iterates that meet the constraints on the training rows come first, then those whose violation
    on the validation rows is at most :math:`1 / \sqrt{n}`, the order of the error of a rate in a
    sample of n rows; the smaller mean loss on the validation rows decides between these. The run
    is stopped once no better iterate has been found for a number of data passes.
    """

    problem: Problem
    validation: Problem  # of the validation rows
    tol: float
    patience: float  # the data passes without a better iterate after which the run is stopped
    callback: Callback | None = None
    # what the best iterate is worth, less is better, and the iterate
    best: tuple[tuple[float, float, float], Measured] | None = None
    passes: float = 0.0  # those made up to it

    def __call__(self, measured: Measured) -> bool:
        """Compare an iterate with the best one; return whether to stop."""
        stop = bool(self.callback is not None and self.callback(measured))
        w, passes = measured.iterate.at.w, self.problem.passes
        worth = self._worth(measured, self.validation.at(w[: self.validation.n_variables]))
        if np.all(np.isfinite(worth)) and (self.best is None or worth < self.best[0]):
            self.best, self.passes = (worth, measured.without_rows()), passes
        return stop or (self._feasible and passes - self.passes >= self.patience)

    @property
    def _feasible(self) -> bool:
        return self.best is not None and self.best[0][0] == 0.0

    def _worth(self, measured: Measured, at: Evaluation) -> tuple[float, float, float]:
        missed = measured.violation if measured.violation > self.tol else 0.0
        return missed, max(at.violation - self.validation.n_rows**-0.5, 0.0), at.objective

    def chosen(self, problem: Problem, result: Result) -> Solved:
        """Return the result with the iterate that was chosen, measured on all rows."""
        w, multipliers, n_iter, status = result.w, result.multipliers, result.n_iter, result.status
        if self.best is not None:
            best = self.best[1]
            w, multipliers, n_iter = best.iterate.at.w, best.multipliers, best.iterate.iteration
            status = Status.VALIDATED if self._feasible else status
        point = problem.uncounted().at(w)
        same = len(multipliers) == problem.n_constraints
        iterate = Iterate(point, multipliers if same else None, n_iter)
        return _with_point(result, Measured.of(iterate, self.tol), status), point


def _with_point(result: Result, measured: Measured, status: Status) -> Result:
    """Return the result with another point, and with what it means if that is the start."""
    moved = result.with_point(measured, status)
    if status is not Status.VALIDATED or measured.iterate.iteration:
        return moved
    return replace(moved, message=f"{moved.message} {_START_WAS_CHOSEN}")


def iterations(n_epochs: float, n_rows: int, batch_size: int | None) -> int:
    """Return the steps that make so many data passes, with two forward passes per batch."""
    if batch_size is None:
        return ceil(n_epochs)
    return ceil(n_epochs * max(1.0, n_rows / (2.0 * batch_size)))


def layers_of(estimator: Any) -> dict[str, Any]:
    """Return what makes the network of an estimator."""
    names = "hidden_layer_sizes", "activation", "module", "device"
    return {name: getattr(estimator, name) for name in names}


def fitted_network(estimator: Any) -> TorchModel:
    """Return the model of a fitted estimator, on no rows."""
    shift, scale = estimator.feature_mean_, estimator.feature_scale_
    return TorchModel.with_scale(np.zeros((0, len(shift))), shift, scale, **layers_of(estimator))


_fitted: WeakKeyDictionary[Any, tuple[Array, str, Network]] = WeakKeyDictionary()


class NetworkScores(FairEstimator):
    """Estimators whose scores may be those of a network."""

    loss: Any
    device: str
    _penalizes_biases: ClassVar[bool] = False

    def _free_problem(self, data: TrainingData, *growing: Any) -> Problem:
        """Return the problem without constraints; the variables are weights, matrices first."""
        model = TorchModel.standardized(data.X, data.loss_weight, **layers_of(self))
        n = model.n_parameters if self._penalizes_biases else model.n_penalized
        return Problem(loss_part(self, model, data).add(Leading(penalty_of(self.alpha), n)))

    def _fitted(self, fit: Fit, w: Array) -> dict[str, Array]:
        assert isinstance(fit.model, TorchModel)
        network = fit.model.network
        scales = {"feature_mean_": network.shift, "feature_scale_": network.scale}
        return {"weights_": np.array(w), **scales}

    def _variables(self, fit: Fit) -> Array | None:
        """Return the weights of the last fit, None if its network is another one."""
        weights: Array = getattr(self, "weights_", np.empty(0))
        return weights if weights.shape == (fit.model.n_parameters,) else None

    def _with_linear_scores(self, at: Evaluation) -> Evaluation:
        last = last_layer(at.problem, at.w)
        return at if last is None else last[0].at(last[1])

    def _raw_scores(self, features: Matrix) -> Array:
        """Return the scores of rows with the features of the model.

        To make a network takes as long as the scores of many rows. That of an estimator is kept for
        later calls, beside the estimator: it is no part of what is copied or pickled.
        """
        weights, device = self.weights_, self.device
        last = _fitted.get(self)
        if last is None or last[1] != device or not np.array_equal(last[0], weights):
            network = fitted_network(self).network
            load_weights(network.module, network.tensor(weights))
            last = _fitted[self] = weights.copy(), device, network
        with np.errstate(over="ignore", invalid="ignore"):
            return checked_scores(last[2].loaded_scores(features))


Lift = Callable[[Array], Array]


class LastLayer(LinearModel):
    """The scores of a network as a function of its last layer."""

    kind: ClassVar[str] = "network with the same hidden layers"


def last_layer(problem: Problem, w: Array) -> tuple[Problem, Array, Lift] | None:
    """Return a network's problem with all layers fixed at w but the last one.

    Its variables are the coefficients of the last layer, its bias and the constraints' own
    variables, and all tools for linear models apply. With it are returned the variables at w, and
    the map from these variables to those of the network. None if the network has no such layer.
    """
    model = problem.objective.model
    if not isinstance(model, TorchModel) or model.network.last is None:
        return None
    last = model.network.last
    auxiliary = np.arange(model.n_parameters, problem.n_variables)
    positions = np.concatenate([last.positions, auxiliary])
    parts = with_last_layer(problem.parts, w, model.n_parameters)
    n_coefficients = last.coefficients.stop - last.coefficients.start
    penalty = parts[0].penalty
    assert isinstance(penalty, Leading), "the biases of a network are free"
    objective = replace(parts[0], penalty=Leading(penalty.penalty, n_coefficients))

    def lift(v: Array) -> Array:
        whole = w.copy()
        whole[positions] = v
        return whole

    return Problem(objective, tuple(parts[1:])), w[positions], lift


def with_last_layer(
    parts: Sequence[CompositeFunction], w: Array, n_parameters: int
) -> list[CompositeFunction]:
    """Return composite functions of the last layer, with the other layers fixed."""
    fixed: dict[Model, LinearModel] = {}  # freed with this call; models compare by identity
    changed = []
    for part in parts:
        model, owned = part.model, part.auxiliary
        assert isinstance(model, TorchModel), "constraints are on the scores of the network"
        assert model.network.last is not None
        if model not in fixed:
            bias, hidden = model.network.last.bias, model.hidden(w[:n_parameters])
            weight, intercept = np.ones(len(hidden)), bias.stop > bias.start
            fixed[model] = LastLayer.standardized(
                hidden, weight, fit_intercept=intercept, rescale=False
            )
        by = fixed[model].n_parameters - n_parameters
        moved = slice(owned.start + by, owned.stop + by) if owned.stop > owned.start else owned
        changed.append(replace(part, model=fixed[model], auxiliary=moved))
    return changed


def with_fitted_last_layer(
    problem: Problem, solution: Solved, random_state: Any, *, validated: bool = False
) -> Solved:
    """Return the network. If it is not sound, its last layer is fitted once more.

    Where that is worse than a constant score, since training has diverged, the hidden layers are
    those that training began with, and the run counts as stalled. `validated` says that validation
    rows chose the network.
    """
    result, tol, best = solution[0], solution[0].solver.tol, solution
    passes = result.data_passes
    for trained in (True, False):
        if is_sound(problem, best[0]):
            break
        w = result.w if trained else problem.start(random_state)
        last = last_layer(problem, w) if np.all(np.isfinite(w)) else None
        if last is None:
            continue
        linear, _, lift = last
        again = refit(linear, None, tol)
        passes += again.data_passes
        after = problem.at(lift(again.w))
        measured = Measured.of(Iterate(after, again.multipliers, result.n_iter), tol)
        status, feasible = result.status, measured.violation <= tol
        if feasible and validated and trained:
            status = Status.VALIDATED
        elif feasible and (not trained or status in (Status.INFEASIBLE, Status.DIVERGED)):
            status = Status.STALLED
        repaired = _with_point(result, measured, status)
        layers = "" if trained else ", to the hidden layers that training began with"
        message = f"{repaired.message} The last layer was fitted once more{layers}."
        repaired = replace(repaired, message=message)
        if _worth(repaired, tol) < _worth(best[0], tol):
            best = repaired, after
    return replace(best[0], data_passes=passes), best[1]


def refit(linear: Problem, start: Start | None, tol: float) -> Result:
    """Return the solution of the problem of a last layer, with all that `best_of` tries.

    Without a `start` it begins at that of the problem.
    """
    options = SimpleNamespace(solver="auto", max_iter=None, random_state=None)
    solver = default_solver(linear).with_options(tol=tol)
    return best_of(solver, linear, options, warm=start)[0]


def is_sound(problem: Problem, result: Result) -> bool:
    """Return whether a result meets the constraints and is not worse than a constant score.

    The least unfairness, a problem in epigraph form, is sound as it is.
    """
    if problem.in_epigraph_form:
        return True
    model, term = problem.objective.model, problem.objective.term
    if result.violation > result.solver.tol or model is NO_MODEL:
        return result.violation <= result.solver.tol

    def loss_at(level: float) -> float:
        return float(term.value(np.full(term.n_rows, level))[0])

    if model.offset() is None:
        return result.objective <= loss_at(0.0)
    least = minimize_scalar(loss_at, bounds=(-8.0, 8.0), method="bounded")
    return result.objective <= float(least.fun)


def _worth(result: Result, tol: float) -> tuple[float, float]:
    """Return the violation beyond the tolerance, then the objective; less is better."""
    return result.violation if result.violation > tol else 0.0, result.objective
