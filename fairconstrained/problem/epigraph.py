"""The least unfairness for a bound on the loss: as an epigraph problem, or with a maximum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.penalties import Linear
from fairconstrained.terms.maximum import Maximum

if TYPE_CHECKING:
    from fairconstrained.problem.problem import Problem


def swapped(problem: Problem, bound: float) -> Problem:
    r"""Return the swapped problem in the papers' form: one objective, one constraint.

    .. math::
        \min_{w \in W} \max_j g_j(w) \quad \text{s.t.} \quad f(w) \le \text{bound}.

    It has the solutions of :meth:`Problem.epigraph`, without the additional variable and with a
    single constraint, but its objective has kinks.

    Parameters
    ----------
    problem : Problem
        Its constraints are the outputs of one term.
    bound : float
        The largest objective allowed.

    Raises
    ------
    ValueError
        If the constraints are not the outputs of one term.

    References
    ----------
    3S-Econ, Problem 1 and equation (5).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.models.linear import LinearModel
    >>> from fairconstrained.problem import CompositeFunction, Problem
    >>> from fairconstrained.problem.epigraph import swapped
    >>> from fairconstrained.terms.cell_means import average
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([-1, 1, -1, 1])
    >>> model, weight = LinearModel(X), np.ones(4)
    >>> parity = DemographicParity(0.0).bind(y, np.array([0, 0, 1, 1]), weight)
    >>> loss = CompositeFunction(model, average(Hinge(), y, weight))
    >>> problem = swapped(Problem(loss, (CompositeFunction(model, parity),)), bound=0.9)
    >>> at = problem.at(np.zeros(2))
    >>> at.objective, at.constraints.round(3)
    (0.0, array([0.1]))
    """
    terms = [part.term for part in problem.constraints]
    if len(terms) != 1 or terms[0] is None:
        raise ValueError(
            f"swapped: the constraints must be the outputs of one term; got {len(terms)} parts. "
            "Problem.epigraph(bound) takes any constraints."
        )
    objective = problem.objective
    limit = objective.add(Linear(np.zeros(problem.n_variables), -bound))
    largest = replace(problem.constraints[0], term=Maximum(terms[0]))
    return replace(problem, objective=largest, constraints=(limit,))
