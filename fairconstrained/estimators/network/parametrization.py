"""How the scores of networks depend on the solver's variables, and how these are found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize_scalar

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.search import DecisionTask
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.estimators.best_of import best_of, data_pass_limit
from fairconstrained.estimators.network.last_layer import LastLayerProblem, with_last_layer
from fairconstrained.estimators.network.options import check_network_options, uses_validation
from fairconstrained.estimators.network.solvers import solver_of_network
from fairconstrained.estimators.network.training import BestOnValidation
from fairconstrained.estimators.options import penalty_of
from fairconstrained.estimators.parametrization import Parametrization, SearchSpace
from fairconstrained.models.network import Network, TorchModel
from fairconstrained.penalties import Leading, Penalty
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver, default_solver
from fairconstrained.solvers.base import Callback, Iterate, Measured, Start
from fairconstrained.solvers.result import Status
from fairconstrained.terms.base import NoTerm
from fairconstrained.utils.typing import Array, RandomState

if TYPE_CHECKING:
    from fairconstrained.estimators.fit import Fit


@dataclass
class _Automatic:
    """The options of a fit of the last layer."""

    random_state: RandomState
    tol: float
    solver: str | Solver = "auto"
    max_iter: int | None = None
    warm_start: bool = False
    verbose: int = 0


@dataclass(frozen=True, eq=False)
class NetworkParametrization(Parametrization):
    """Scores of a network; the variables are its weights, matrices first.

    Attributes
    ----------
    model : TorchModel
        The network on the training rows.
    penalty : Penalty
        The penalty on the weights; biases are free.
    domain : Domain
        The whole space.
    coefficients : Penalty
        The penalty, for any number of weights.
    """

    model: TorchModel
    penalty: Penalty
    domain: Domain
    coefficients: Penalty

    most_thresholds: ClassVar[int] = 5

    @classmethod
    def features(cls, estimator: Any, data: TrainingData) -> TrainingData:
        """Return the rows as they are, after the estimator's own parameters were checked."""
        check_network_options(estimator)
        return data

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, *, path: bool = False) -> Self:
        """Return the parametrization for an estimator's layers, penalty and device."""
        penalty = penalty_of(estimator.alpha)
        model = TorchModel.standardized(
            data.X,
            data.loss_weight,
            hidden_layer_sizes=estimator.hidden_layer_sizes,
            activation=estimator.activation,
            module=estimator.module,
            device=estimator.device,
        )
        return cls(model, Leading(penalty, model.n_penalized), WholeSpace(), penalty)

    @classmethod
    def validation_share(cls, estimator: Any, data: TrainingData) -> float | None:
        """Return the share of the rows that chooses the iterate; None without early stopping."""
        return estimator.validation_fraction if uses_validation(estimator, len(data.y)) else None

    def attributes(self, w: Array) -> dict[str, Array]:
        """Return the weights, and the centring and the scale of the features."""
        network: Network = self.model.network
        return {
            "weights_": np.array(w),
            "feature_mean_": network.shift,
            "feature_scale_": network.scale,
        }

    def variables(self, estimator: Any) -> Array | None:
        """Return the weights of a fitted estimator, None if its network is another one."""
        weights = getattr(estimator, "weights_", np.empty(0))
        return weights if weights.size == self.model.n_parameters else None

    def solver(self, estimator: Any, problem: Problem) -> Solver:
        """Return the solver with the estimator's options."""
        return solver_of_network(estimator, problem)

    def minimize(
        self,
        estimator: Any,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the iterate that is best on validation rows, else the solver's solution.

        It is measured on all rows. If it violates the constraints, or is worse than a constant
        score, its last layer is fitted once more with the others fixed.
        """
        trained = problem if split is None else split[0]
        solver = self.solver(estimator, trained)
        solver.check(trained)
        choice = None
        if split is not None:
            choice = BestOnValidation(*split, solver.tol, estimator.n_iter_no_change, callback)
        result, at = solver.solve(
            trained,
            warm=None if warm is None else _fitting(warm, trained),
            callback=callback if choice is None else choice,
            random_state=estimator.random_state,
            max_data_passes=float(estimator.max_epochs),
        )
        if choice is not None:
            result, at = choice.chosen(problem, result)
        if problem.in_epigraph_form or _is_sound(problem, result):
            return result, at
        return self._with_fitted_last_layer(
            estimator, problem, result, at, validated=choice is not None
        )

    def follow(
        self,
        estimator: Any,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        like: Evaluation | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the network trained on from a start, as `minimize` does."""
        return self.minimize(estimator, problem, split=split, warm=warm, callback=callback)

    def _with_fitted_last_layer(
        self,
        estimator: Any,
        problem: Problem,
        result: Result,
        at: Evaluation,
        *,
        validated: bool,
    ) -> tuple[Result, Evaluation]:
        """Return the network with its last layer fitted once more, if that is better."""
        if not np.all(np.isfinite(result.w)):
            return result, at
        last = LastLayerProblem.of(problem, result.w, self.coefficients)
        if last is None:
            return result, at
        tol = result.solver.tol
        options = _Automatic(estimator.random_state, tol)
        solver = default_solver(last.problem).with_options(tol=tol)
        found, _ = best_of(solver, last.problem, options, warm=Start(last.start()))
        if _worth(found, tol) >= _worth(result, tol):
            return result, at
        after = problem.at(last.lift(found.w))
        measured = Measured.of(Iterate(after, found.multipliers, result.n_iter), tol)
        status = result.status
        if measured.violation <= tol:
            status = _status_of_feasible(status, validated)
        repaired = result.with_point(measured, status)
        message = f"{repaired.message} The last layer was fitted once more."
        passes = result.data_passes + found.data_passes
        return replace(repaired, message=message, data_passes=passes), after

    def unconstrained(
        self, estimator: Any, problem: Problem, split: tuple[Problem, Problem] | None
    ) -> Result:
        """Return the network without constraints, trained as the estimator trains."""
        return self.minimize(estimator, problem, split=split)[0]

    def search_space(self, fit: Fit, result: Result) -> SearchSpace:
        """Return the last layer with all others fixed, or all weights if there is no such layer.

        The model without constraints that the search reports is then that of the last layer, too.
        """
        last = LastLayerProblem.of(fit.problem, result.w, self.coefficients)
        if last is None:
            return SearchSpace(fit.decision_task(result), fit.held_out, lambda w: w)
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
            parts = with_last_layer(held_out.constraints, result.w, self.model.n_parameters)
            held_out = replace(held_out, constraints=tuple(parts))
        return SearchSpace(task, held_out, last.lift)


def _fitting(start: Start | Result, problem: Problem) -> Start:
    """Return a start without multipliers, if it is of a problem with other constraints."""
    same = start.multipliers is not None and len(start.multipliers) == problem.n_constraints
    return Start(start.w, start.multipliers if same else None, start.state if same else None)


def _is_sound(problem: Problem, result: Result) -> bool:
    """Return whether a result meets the constraints and is not worse than a constant score."""
    model, term = problem.objective.model, problem.objective.term
    if result.violation > result.solver.tol or isinstance(term, NoTerm):
        return result.violation <= result.solver.tol
    if model.offset() is None:
        return result.objective <= float(term.value_at_constant(0.0)[0])
    least = minimize_scalar(
        lambda level: float(term.value_at_constant(level)[0]), bounds=(-8.0, 8.0), method="bounded"
    )
    return result.objective <= float(least.fun)


def _status_of_feasible(status: Status, validated: bool) -> Status:
    """Return the status of a run whose point is feasible after its last layer was fitted again."""
    if validated:
        return Status.VALIDATED
    return Status.STALLED if status in (Status.INFEASIBLE, Status.DIVERGED) else status


def _worth(result: Result, tol: float) -> tuple[float, float]:
    """Return the violation beyond the tolerance, then the objective; less is better."""
    return result.violation if result.violation > tol else 0.0, result.objective


def fitted_model(estimator: Any, X: Any) -> TorchModel:
    """Return the model of a fitted estimator on rows with the features that it uses."""
    return TorchModel.with_scale(
        X,
        estimator.feature_mean_,
        estimator.feature_scale_,
        hidden_layer_sizes=estimator.hidden_layer_sizes,
        activation=estimator.activation,
        module=estimator.module,
        device=estimator.device,
    )
