"""The last layer of a network, whose scores are linear in it, as a problem of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairconstrained.models import LinearModel, Model
from fairconstrained.models.network import TorchModel
from fairconstrained.penalties import Leading, Penalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array


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
        last = model.last_layer if isinstance(model, TorchModel) else None
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
    fixed: dict[TorchModel, LinearModel] = {}  # freed with this call; models compare by identity

    def model_of(model: Model | None) -> LinearModel | None:
        if not isinstance(model, TorchModel) or model.last_layer is None:
            return None
        if model not in fixed:
            bias = model.last_layer.bias
            hidden = model.hidden(w[:n_parameters])
            fixed[model] = LinearModel.standardized(
                hidden,
                np.ones(len(hidden)),
                fit_intercept=bias.stop > bias.start,
                rescale=False,
            )
        return fixed[model]

    def changed(part: CompositeFunction) -> CompositeFunction:
        linear = model_of(part.model)
        assert linear is not None, "constraints are on the scores of the network"
        by = linear.n_parameters - n_parameters
        own = part.auxiliary
        moved = slice(own.start + by, own.stop + by) if own.stop > own.start else slice(0, 0)
        return replace(part, model=linear, auxiliary=moved)

    return [changed(part) for part in parts]
