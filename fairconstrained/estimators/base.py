"""What all classifiers do, whatever their classes and constraints: minimise, store, warn."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.group_interactions import Layout
from fairconstrained.estimators.callbacks import Progress
from fairconstrained.exceptions import ConvergenceWarning, InfeasibleConstraintWarning
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import SOLVERS, Result, Solver, automatic
from fairconstrained.solvers.base import Start
from fairconstrained.solvers.registry import without_kinks
from fairconstrained.utils.registry import resolve
from fairconstrained.utils.typing import Array, ArrayLike, MatrixLike


class ConstrainedClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """What does not depend on how many classes there are, nor on what the constraints say.

    Subclasses have the parameters `solver`, `max_iter`, `tol`, `warm_start`, `random_state` and
    `verbose`.
    """

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows, with the columns seen in `fit`.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.

        Returns
        -------
        accuracy : float

        Raises
        ------
        ValueError
            If lengths differ, or pandas objects have the same row labels in another order.
        """
        check_same_rows(test=True, X=X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))

    def _minimize(
        self,
        problem: Problem,
        passed: tuple[Any, Any, Any],
        attributes: Any,
        *,
        first: Array | None = None,
        layout: Layout | None = None,
    ) -> Result:
        """Return the solution of the problem, told to the callbacks on the way.

        Parameters
        ----------
        problem : Problem
            What to minimise.
        passed : tuple
            X, y and sample_weight as passed to fit.
        attributes : callable
            From the solver's variables to what `predict` needs.
        first : ndarray of shape (n_variables,) or None, default=None
            Where to start from unless a warm start is wanted.
        layout : Layout or None, default=None
            What `coef_` is made of, for a warm start.
        """
        solver = self._solver(problem)
        solver.check(problem)
        progress = Progress(self, *passed, attributes)
        result = solver.minimize(
            problem,
            warm=self._warm(problem, first, layout),
            callback=progress,
            random_state=self.random_state,
        )
        progress.close(result.w)
        return result

    def _solver(self, problem: Problem) -> Solver:
        """Return the solver with the estimator's options.

        One that is chosen by its name and needs continuous gradients is given rounded kinks.
        """
        names = {"auto": lambda: automatic(problem), **SOLVERS}
        solver = resolve("solver", self.solver, names, Solver)
        if isinstance(self.solver, str):
            solver = solver.with_options(tol=self.tol)
        beta = getattr(self, "beta", None)
        if beta is not None and "beta" not in solver.get_params(deep=False):
            raise ValueError(
                f"beta={beta!r} is given, but solver {solver!r} has no such parameter; "
                "leave beta at None."
            )
        solver = solver.with_options(max_iter=self.max_iter, beta=beta)
        return without_kinks(problem, solver) if isinstance(self.solver, str) else solver

    def _warm(self, problem: Problem, first: Array | None, layout: Layout | None) -> Start | None:
        """Return the last fit as a start if it is wanted and fits the problem.

        The coefficients are those in the units of X, since other rows have another spread; what
        constraints have as variables of their own is taken over from the solver's.
        """
        cold = None if first is None else Start(first)
        if not (self.warm_start and hasattr(self, "coef_")):
            return cold
        coef, intercept = self.coef_, self.intercept_
        model = problem.models[0]
        if layout is not None:
            if coef.shape != (max(1, layout.n_groups), layout.n_features):
                return cold
            coef, intercept = layout.unfold(coef, intercept)
        if coef.size != model.n_coefficients:
            return cold
        w = problem.start() if first is None else np.array(first)
        last = self.result_
        if last.w.size == problem.n_variables:
            w[:] = last.w
        w[: model.n_parameters] = model.variables(coef, intercept)
        known = len(last.multipliers) == problem.n_constraints
        return Start(w, last.multipliers if known else None)

    def _store_result(self, result: Result) -> None:
        self.n_iter_ = result.n_iter
        self.multipliers_ = result.multipliers
        self.objective_ = result.objective
        self.violation_ = result.violation
        self.kkt_residual_ = result.kkt_residual
        self.result_ = replace(result, state=None)  # fitted models keep no curvature pairs

    def _warn(self) -> None:
        result = self.result_
        promised = getattr(self, "certificate_", None) or getattr(self, "decision_search_", None)
        if promised is not None:
            promised.warn(stacklevel=5)
        elif result.violation > result.solver.tol:
            warnings.warn(
                f"No model that meets the constraints was found; the least violation is "
                f"{result.violation:.3g}, and the model that has it is kept. {result.message}",
                InfeasibleConstraintWarning,
                stacklevel=4,
            )
        elif not result.converged:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=4)
