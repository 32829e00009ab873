"""Constant models: the best one that meets the constraints, and the least loss of any."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import minimize_scalar

from fairconstrained.models import Model
from fairconstrained.problem.auxiliary import unit_shift, weights_with_auxiliary
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.multinomial import MultinomialLoss
from fairconstrained.utils.typing import Array

_LEVELS = np.linspace(-6.0, 6.0, 25)
_REFINED = (0.5, 0.05)  # the distances to either side at which levels around the best are tried


class ConstantModels:
    """The constant models of a problem: score 0, and other scores with an intercept.

    Parameters
    ----------
    problem : Problem
        Its objective has a term of a linear model.
    model : Model
        That model.
    tol : float
        The tolerance of the fit; constants must meet the constraints to a thousandth of it.
    """

    def __init__(self, problem: Problem, model: Model, tol: float):
        self.problem, self.model, self.tol = problem.uncounted(), model, tol
        self.unit_shift = unit_shift(problem)

    def at(self, level: float) -> Array:
        """Return the variables of the model whose scores are all `level`."""
        w = self.problem.start()
        w[: self.model.n_parameters] = 0.0
        return w if self.unit_shift is None else w + level * self.unit_shift

    def best(self) -> Array | None:
        """Return the variables of the best feasible constant model, None if there is none."""
        term = self.problem.objective.term
        if isinstance(term, MultinomialLoss):
            zeros = np.zeros_like(term.least_constant[1])
            levels = [zeros] if self.unit_shift is None else [term.least_constant[1], zeros]
            found = (self.problem.at(self._of_classes(level)) for level in levels)
            return next((at.w for at in found if self._is_feasible(at)), None)
        least = self._least(_LEVELS if self.unit_shift is not None else np.zeros(1))
        for width in _REFINED if self.unit_shift is not None else ():
            if least is not None:
                least = self._least(least[1] + np.linspace(-width, width, 21))
        return None if least is None else self.at(least[1])

    def _of_classes(self, scores: Array) -> Array:
        """Return the variables of the model with these scores of the classes, for every row."""
        parameters = np.zeros(self.model.n_parameters)
        if self.unit_shift is not None:
            parameters[np.flatnonzero(self.unit_shift)[: len(scores)]] = scores
        return weights_with_auxiliary(self.problem, parameters)

    def _is_feasible(self, at: Evaluation) -> bool:
        return _is_inside(self.problem, at.w) and at.violation <= 1e-3 * self.tol

    def _least(self, levels: Array) -> tuple[float, float] | None:
        """Return the least objective of feasible levels and the level."""
        found = []
        for level in levels:
            at = self.problem.at(self.at(level))
            if self._is_feasible(at):
                found.append((at.objective, float(level)))
        return min(found, default=None)


def least_constant_loss(term: Term, model: Model) -> float:
    """Return the least loss of a constant score, whatever the constraints.

    Parameters
    ----------
    term : Term
        The loss.
    model : Model
        The model whose scores it takes; without an intercept the score is 0.
    """
    n_outputs = getattr(model, "n_outputs", 1)
    if isinstance(term, MultinomialLoss) and model.offset() is not None:
        return term.least_constant[0]
    if n_outputs > 1:
        return float(term.value(np.zeros((term.n_rows, n_outputs)))[0])

    if model.offset() is None:
        return float(term.value_at_constant(0.0)[0])
    return _least_at_constants(term)


_KNOWN: WeakKeyDictionary[Term, float] = WeakKeyDictionary()  # the problems of a path share a loss


def _least_at_constants(term: Term) -> float:
    """Return the least loss of all constant scores."""
    if term not in _KNOWN:
        found = minimize_scalar(
            lambda level: float(term.value_at_constant(level)[0]),
            bounds=(-8.0, 8.0),
            method="bounded",
            options={"xatol": 0.1},
        )
        _KNOWN[term] = float(found.fun)
    return _KNOWN[term]


def _is_inside(problem: Problem, w: Array) -> bool:
    """Return whether variables are in the domain."""
    return bool(np.allclose(problem.domain.project(w), w, atol=1e-12))
