"""Weights and auxiliary variables that go together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.utils.typing import Array


def weights_with_auxiliary(problem: Problem, parameters: Array) -> Array:
    """Return weights with the given parameters and auxiliary variables that suit them.

    Each term chooses its auxiliary variables, see
    :meth:`~fairconstrained.terms.base.Term.auxiliary_for`.

    Parameters
    ----------
    problem : Problem
        Its constraints are evaluated; this is not counted.
    parameters : ndarray
        The values of the first weights. The weights that follow, except for auxiliary variables,
        keep their initial values.
    """
    found = problem.start()
    found[: parameters.size] = parameters
    at = problem.uncounted().at(np.array(found))
    for part, outputs in zip(problem.parts, problem.places, strict=True):
        if part.term is not None and part.term.n_auxiliary:
            value = _outputs_by_auxiliary(at, part.auxiliary, outputs)
            found[part.auxiliary] = part.term.auxiliary_for(value)
    return found


def unit_shift(problem: Problem) -> Array | None:
    """Return the change of the weights that adds 1 to all scores, and to thresholds on them.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    direction : ndarray of shape (n_variables,) or None
        None if the model has none, see :meth:`~fairconstrained.models.base.Model.offset`.
    """
    model = problem.objective.model
    offset = None if model is None else model.offset()
    if offset is None:
        return None
    direction = np.zeros(problem.n_variables)
    direction[: len(offset)] = offset
    for part in problem.constraints:
        direction[part.auxiliary] = 1.0
    return direction


def _outputs_by_auxiliary(
    at: Evaluation, auxiliary: slice, outputs: slice
) -> Callable[[Array], Array]:
    """Return the function that maps auxiliary variables of a part to its outputs."""

    def value(own: Array) -> Array:
        w = at.w.copy()
        w[auxiliary] = own
        return at.problem.at(w, like=at).constraints[outputs]

    return value
