"""What a fit needs of an estimator: its parameters, and how scores depend on variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.population import Certificate, HeldOut, search_with_confidence
from fairconstrained.decisions.search import DecisionSearch, DecisionTask, search_decisions
from fairconstrained.domains import Domain
from fairconstrained.estimators.best_of import best_of, minimize_by_default
from fairconstrained.estimators.sampled_start import sampled_start
from fairconstrained.estimators.solving import solver_of
from fairconstrained.models import Model
from fairconstrained.penalties import Penalty
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, Solver
from fairconstrained.solvers.base import Callback, Start
from fairconstrained.utils.typing import Array

if TYPE_CHECKING:
    from fairconstrained.estimators.fit import Fit


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """What a search on decisions varies.

    Attributes
    ----------
    task : DecisionTask
        What the search starts from, in its own variables.
    held_out : HeldOut or None
        The constraints on the held-out rows, in the same variables.
    lift : callable
        From the search's variables to those of the fit.
    search : callable
        Finds a model without a confidence, from the task.
    """

    task: DecisionTask
    held_out: HeldOut | None
    lift: Callable[[Array], Array]
    search: Callable[[DecisionTask], DecisionSearch] = search_decisions

    def found(self, confidence: float | None) -> tuple[DecisionSearch, Certificate | None]:
        """Return the model that was found, and with a confidence what the held-out rows show."""
        if self.held_out is None or confidence is None:
            return self.search(self.task), None
        return search_with_confidence(self.task, self.held_out, confidence)


class Parametrization(ABC):
    """How the scores of an estimator depend on the solver's variables.

    This is all that distinguishes linear classifiers, networks and trees in a :class:`Fit`. A
    subclass has a model, a penalty and a domain. Here a solver minimises the problem on all rows.

    Attributes
    ----------
    model : Model
        The model on the training rows.
    penalty : Penalty
        The penalty on the variables.
    domain : Domain
        The set of the variables.
    most_thresholds : int
        How many thresholds are tried where they depend on the scores.
    """

    model: Model
    penalty: Penalty
    domain: Domain
    most_thresholds: ClassVar[int] = 12

    @property
    def constrained(self) -> TrainingData | None:
        """The rows that constraints are bound to, None for all training rows."""
        return None

    @property
    def validation(self) -> TrainingData | None:
        """The rows that chose how far training went, None if no rows did."""
        return None

    def moved(self, by: float) -> Self:
        """Return the same for scores measured from a threshold that is higher by a number."""
        return self

    @classmethod
    def by_atom(cls, estimator: Any) -> bool:
        """Return whether rows may be read once per evaluation: nothing needs their scores."""
        return False

    @classmethod
    def features(cls, estimator: Any, data: TrainingData) -> TrainingData:
        """Return the rows with the features that the model uses."""
        return data

    @classmethod
    def of(cls, estimator: Any, data: TrainingData, *, path: bool = False) -> Self:
        """Return the parametrization for an estimator's options.

        Parameters
        ----------
        estimator : estimator
            Its parameters are read.
        data : TrainingData
            The rows, from `features`.
        path : bool, default=False
            Whether the tolerances are to vary: a parametrization may depend on the constraints.
        """
        raise TypeError(f"{cls.__name__} is not made of an estimator's options.")

    @abstractmethod
    def attributes(self, w: Array) -> Mapping[str, Any]:
        """Return the fitted attributes that `predict` uses, for the solver's variables."""

    @abstractmethod
    def variables(self, estimator: Any) -> Array | None:
        """Return the variables of a fitted estimator, None if it was fitted to other features."""

    @classmethod
    def validation_share(cls, estimator: Any, data: TrainingData) -> float | None:
        """Return the share of the rows that chooses the iterate; None trains with all rows."""
        return None

    def solver(self, estimator: Any, problem: Problem) -> Solver:
        """Return the solver with the estimator's options."""
        return solver_of(estimator, problem)

    def minimize(
        self,
        estimator: Any,
        problem: Problem,
        *,
        split: tuple[Problem, Problem] | None = None,
        warm: Start | Result | None = None,
        callback: Callback | None = None,
    ) -> tuple[Result, Evaluation]:
        """Return the solution of a problem, see `best_of`, and the evaluation there.

        Without a warm start, fits on many rows start from the solution on a sample of them, see
        :func:`~fairconstrained.estimators.sampled_start.sampled_start`.

        Parameters
        ----------
        estimator : estimator
            Its parameters are read.
        problem : Problem
            What is to be minimised.
        split : tuple of Problem or None, default=None
            The same functions on the rows that the model is trained on, and, without penalties, on
            those that choose the iterate.
        warm, callback
            See :meth:`~fairconstrained.solvers.Solver.minimize`.
        """
        solver = self.solver(estimator, problem)
        solver.check(problem)
        sampled = sampled_start(solver, problem, estimator) if warm is None else None
        if sampled is None:
            return best_of(solver, problem, estimator, warm=warm, callback=callback)
        solver, start = sampled
        result, at = best_of(solver, problem, estimator, warm=start, callback=callback)
        return replace(result, data_passes=result.data_passes + start.data_passes), at

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
        """Return the solution from a start that is near it, such as that of a point of a path.

        Parameters
        ----------
        estimator, problem, split, warm, callback
            See `minimize`.
        like : Evaluation or None, default=None
            An evaluation near the start, see :meth:`Problem.at`.
        """
        solver = self.solver(estimator, problem)
        return best_of(solver, problem, estimator, like=like, warm=warm, callback=callback)

    def unconstrained(
        self, estimator: Any, problem: Problem, split: tuple[Problem, Problem] | None
    ) -> Result:
        """Return the solution of a problem without constraints, by default the default solver's."""
        return minimize_by_default(problem)

    def search_space(self, fit: Fit, result: Result) -> SearchSpace:
        """Return what a search on decisions varies, by default the variables of the fit.

        Parameters
        ----------
        fit : Fit
            The fit of this parametrization.
        result : Result
            The solution of its problem, which bounds scores.
        """
        return SearchSpace(fit.decision_task(result), fit.held_out, lambda w: w)
