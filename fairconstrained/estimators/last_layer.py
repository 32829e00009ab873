"""The last layer of a network, whose scores are linear in it, as a problem of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize_scalar

from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.search import DecisionTask
from fairconstrained.estimators.fit import Fit, SearchSpace
from fairconstrained.estimators.solving import best_of, data_pass_limit
from fairconstrained.models import LinearModel, Model
from fairconstrained.models.network import TorchModel
from fairconstrained.penalties import Leading, Penalty
from fairconstrained.problem import CompositeFunction, Evaluation, Problem
from fairconstrained.solvers import Result, Status, default_solver
from fairconstrained.solvers.base import Iterate, Measured, Start
from fairconstrained.terms.head import NoTerm
from fairconstrained.utils.typing import Array, RandomState


@dataclass(frozen=True, eq=False)
class LastLayerProblem:
    """A network's problem with all layers fixed but the last one.

    The variables are the coefficients of the last layer, its bias and the constraints' own
    variables. All tools for linear models apply.

    Attributes
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        All variables of the network's problem.
    positions : ndarray of int
        The positions of the problem's variables among these.
    """

    problem: Problem
    w: Array
    positions: Array

    @classmethod
    def of(cls, problem: Problem, w: Array, penalty: Penalty) -> LastLayerProblem | None:
        """Return the problem of the last layer, None if the network does not end with one.

        Parameters
        ----------
        problem : Problem
            The network's.
        w : ndarray of shape (n_variables,)
            Where the other layers are fixed.
        penalty : Penalty
            The penalty on coefficients.
        """
        model = problem.objective.model
        last = model.network.last if isinstance(model, TorchModel) else None
        if last is None or not isinstance(model, TorchModel):
            return None
        own = np.arange(model.n_parameters, problem.n_variables)
        positions = np.concatenate([last.positions, own])
        n_coefficients = last.coefficients.stop - last.coefficients.start
        parts = with_last_layer(problem.parts, w, model.n_parameters)
        objective = replace(parts[0], penalty=Leading(penalty, n_coefficients))
        return cls(Problem(objective, tuple(parts[1:])), w, positions)

    def start(self) -> Array:
        """Return the variables at which the network is as it was."""
        return self.w[self.positions]

    def lift(self, v: Array) -> Array:
        """Return all variables, for those of this problem."""
        w = self.w.copy()
        w[self.positions] = v
        return w


def with_last_layer(
    parts: Sequence[CompositeFunction], w: Array, n_parameters: int
) -> list[CompositeFunction]:
    """Return composite functions of the last layer, with the other layers fixed.

    Parameters
    ----------
    parts : sequence of CompositeFunction
        Functions of networks with the same weights, without penalties.
    w : ndarray of shape (n_variables,)
        Where the other layers are fixed.
    n_parameters : int
        The number of the network's weights.
    """
    fixed: dict[Model, LinearModel] = {}  # freed with this call; models compare by identity
    changed = []
    for part in parts:
        model, owned = part.model, part.auxiliary
        assert isinstance(model, TorchModel), "constraints are on the scores of the network"
        assert model.network.last is not None
        if model not in fixed:
            bias, hidden = model.network.last.bias, model.hidden(w[:n_parameters])
            weight, intercept = np.ones(len(hidden)), bias.stop > bias.start
            fixed[model] = LinearModel.standardized(
                hidden, weight, fit_intercept=intercept, rescale=False
            )
        by = fixed[model].n_parameters - n_parameters
        moved = slice(owned.start + by, owned.stop + by) if owned.stop > owned.start else owned
        changed.append(replace(part, model=fixed[model], auxiliary=moved))
    return changed


def with_fitted_last_layer(
    problem: Problem,
    solution: tuple[Result, Evaluation],
    penalty: Penalty,
    random_state: RandomState,
    *,
    validated: bool,
) -> tuple[Result, Evaluation]:
    """Return a network with its last layer fitted once more, if that is better.

    Parameters
    ----------
    problem : Problem
        The problem of the network.
    solution : tuple of (Result, Evaluation)
        The network.
    penalty : Penalty
        The penalty, for any number of weights.
    random_state : int, RandomState or None
        The source of randomness.
    validated : bool
        Whether validation rows chose the network.
    """
    result = solution[0]
    last = None
    if np.all(np.isfinite(result.w)):
        last = LastLayerProblem.of(problem, result.w, penalty)
    if last is None:
        return solution
    tol = result.solver.tol
    options = SimpleNamespace(solver="auto", max_iter=None, random_state=random_state)
    solver = default_solver(last.problem).with_options(tol=tol)
    refit, _ = best_of(solver, last.problem, options, warm=Start(last.start()))
    if _worth(refit, tol) >= _worth(result, tol):
        return solution
    after = problem.at(last.lift(refit.w))
    measured = Measured.of(Iterate(after, refit.multipliers, result.n_iter), tol)
    status = result.status
    if measured.violation <= tol:
        status = _status_of_feasible(status, validated)
    repaired = result.with_point(measured, status)
    message = f"{repaired.message} The last layer was fitted once more."
    passes = result.data_passes + refit.data_passes
    return replace(repaired, message=message, data_passes=passes), after


def last_layer_space(fit: Fit, result: Result, penalty: Penalty) -> SearchSpace | None:
    """Return the space of the last layer with all others fixed, None if there is no such layer.

    The constraints hold on its scores as well, so that the search starts from the solution. The
    unconstrained model is that of the fixed layers.
    """
    last = LastLayerProblem.of(fit.problem, result.w, penalty)
    if last is None:
        return None
    problem = last.problem
    solver = default_solver(problem).with_options(tol=result.solver.tol)
    limit = data_pass_limit(problem, solver.tol)
    start = Start(last.start(), result.multipliers)
    first = solver.minimize(problem, warm=start, max_data_passes=limit)
    free = problem.with_constraints(())
    unconstrained = default_solver(free).minimize(free, first.w, max_data_passes=limit)
    model = problem.objective.model
    task = DecisionTask(
        problem,
        first,
        solver,
        fit.data.y,
        fit.data.loss_weight,
        unconstrained.w[: model.n_parameters],
        fit.estimator.random_state,
        SearchBudget(),
    )
    held_out = fit.held_out
    if held_out is not None:
        parts = with_last_layer(held_out.constraints, result.w, fit.model.n_parameters)
        held_out = replace(held_out, constraints=tuple(parts))
    return SearchSpace(task, held_out, last.lift)


def is_sound(problem: Problem, result: Result) -> bool:
    """Return whether a result meets the constraints and is not worse than a constant score."""
    model, term = problem.objective.model, problem.objective.term
    if result.violation > result.solver.tol or isinstance(term, NoTerm):
        return result.violation <= result.solver.tol

    def loss_at(level: float) -> float:
        return float(term.value(np.full(term.n_rows, level))[0])

    if model.offset() is None:
        return result.objective <= loss_at(0.0)
    least = minimize_scalar(loss_at, bounds=(-8.0, 8.0), method="bounded")
    return result.objective <= float(least.fun)


def _status_of_feasible(status: Status, validated: bool) -> Status:
    """Return the status of a run whose point is feasible after its last layer was fitted again."""
    if validated:
        return Status.VALIDATED
    return Status.STALLED if status in (Status.INFEASIBLE, Status.DIVERGED) else status


def _worth(result: Result, tol: float) -> tuple[float, float]:
    """Return the violation beyond the tolerance, then the objective; less is better."""
    return result.violation if result.violation > tol else 0.0, result.objective
