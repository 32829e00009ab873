"""From what a user passes to `fit` to the problem that is solved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairconstrained.constraints.base import Constraint
from fairconstrained.data.group_interactions import Layout
from fairconstrained.data.validation import TrainingData
from fairconstrained.domains import Domain
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.models.linear import LinearModel, spread
from fairconstrained.objectives.base import Objective
from fairconstrained.penalties.base import Penalty
from fairconstrained.penalties.separable import Leading as LeadingPenalty
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Result, automatic
from fairconstrained.utils.typing import Array

_SMALL = 1 << 24  # below this many multiplications starting threads costs more than it gains


def threads_that_pay(X: Any) -> AbstractContextManager[Any]:
    """Return a context with one BLAS thread unless X is dense and large."""
    dense = isinstance(X, np.ndarray)
    return threadpool_limits(limits=None if dense and X.size > _SMALL else 1, user_api="blas")


def build_problem(data: TrainingData, constraints: list[Constraint], **options: Any) -> Problem:
    """Return the problem of a linear classifier, see :func:`assemble`."""
    return assemble(data, constraints, **options)[0]


def assemble(
    data: TrainingData,
    constraints: list[Constraint],
    *,
    loss: Objective,
    penalty: Penalty,
    domain: Domain,
    fit_intercept: bool,
) -> tuple[Problem, Unconstrained]:
    r"""Return the problem of a linear classifier, and its solution without the constraints.

    Where the domain is the whole space the features are put on one scale first (see
    :func:`~fairconstrained.models.linear.spread`): the penalty counts coefficients per spread, and
    nothing depends on the units of the features.

    Parameters
    ----------
    data : TrainingData
        The data.
    constraints : list of Constraint
        All must hold.
    loss : Objective
        A loss, averaged over the rows, or a loss of pairs.
    penalty : Penalty
        On the coefficients; the intercept is free.
    domain : Domain
        Of the coefficients; the intercept is free.
    fit_intercept : bool
        Whether there is an intercept.
    """
    model = linear_model(data.X, data.sample_weight, domain, fit_intercept)
    n = model.n_coefficients
    objective = loss.bind(data.y, data.sample_weight)
    plain = Problem(
        CompositeFunction(model, objective, LeadingPenalty(penalty, n)),
        domain=LeadingDomain(domain, n),
    )
    unconstrained = Unconstrained(plain)
    return constrained(plain, constraints, data, unconstrained), unconstrained


def constrained(
    problem: Problem, constraints: list[Constraint], data: TrainingData, unconstrained: Any
) -> Problem:
    """Return the problem with these constraints in place of its own.

    Parameters
    ----------
    problem : Problem
        Its objective is kept, and with it the model.
    constraints : list of Constraint
        All must hold.
    data : TrainingData
        The rows of the model.
    unconstrained : Unconstrained
        The model without constraints, for constraints that are about its scores.
    """
    model = problem.objective.model
    parts = [part for one in constraints for part in one.parts(model, data, unconstrained)]
    parts = list(_with_variables(parts, model.n_parameters))
    return replace(problem, constraints=tuple(parts), n_variables=0)


def fairest(
    problem: Problem, unconstrained: Unconstrained, max_loss_increase: float
) -> tuple[Problem, Array]:
    r"""Return the problem of the least unfairness for a loss that is nearly the best, and a start.

    .. math::
        \min_{w, t} t \quad \text{s.t.} \quad g_j(w) \le t, \quad
        f(w) \le (1 + \delta) \min f.

    The start is the unconstrained model, where everything but the unfairness is as it should be.

    Parameters
    ----------
    problem : Problem
        f and g.
    unconstrained : Unconstrained
        The least f.
    max_loss_increase : float
        delta > 0: with 0 nothing but the unconstrained model is left.

    References
    ----------
    3S-Econ, Problem 1.
    """
    best = unconstrained.result
    w = problem.start()
    w[: len(best.w)] = best.w
    level = problem.uncounted().at(w).constraints.max()
    least = best.objective
    return problem.epigraph((1.0 + max_loss_increase) * least, least=least), np.append(w, level)


class Unconstrained:
    """The model without constraints, solved when it is first asked for.

    Parameters
    ----------
    problem : Problem
        The problem without its constraints.
    """

    def __init__(self, problem: Problem):
        self.problem = problem.uncounted()

    @cached_property
    def result(self) -> Result:
        """The solution."""
        return automatic(self.problem).minimize(self.problem)

    @cached_property
    def scores(self) -> Array:
        """Its scores of the training rows."""
        scores = self.problem.at(self.result.w).scores_of(self.problem.objective)
        assert scores is not None
        return scores


@dataclass(frozen=True, eq=False)
class Prepared:
    """What `fit` makes of its arguments.

    Attributes
    ----------
    data : TrainingData
        The rows, as the model sees them.
    layout : Layout
        What the model sees of X.
    problem : Problem
        What is to be minimised.
    unconstrained : Unconstrained
        The same without constraints.
    held_out : tuple of CompositeFunction
        The constraints on the rows held out for `confidence`, if there are any.
    n_held_out : int
        How many rows these are.
    """

    data: TrainingData
    layout: Layout
    problem: Problem
    unconstrained: Unconstrained
    held_out: tuple[CompositeFunction, ...] = ()
    n_held_out: int = 0

    @property
    def model(self) -> LinearModel:
        """From weights to scores."""
        return self.unconstrained.problem.objective.model

    def with_held_out(self, held: TrainingData | None, constraints: list[Constraint]) -> Prepared:
        """Return the same with the constraints on rows held out, if there are any."""
        if held is None:
            return self
        model = self.model.on(held.X)
        parts = (part for one in constraints for part in one.parts(model, held, self.unconstrained))
        return replace(self, held_out=tuple(parts), n_held_out=len(held.y))


def _with_variables(parts: list[CompositeFunction], start: int) -> Iterator[CompositeFunction]:
    """Yield the parts, the variables that their terms own laid out one after the other."""
    for part in parts:
        end = start + (0 if part.term is None else part.term.n_auxiliary)
        yield replace(part, auxiliary=slice(start, end)) if end > start else part
        start = end


def linear_model(
    X: Any, sample_weight: Array, domain: Domain, fit_intercept: bool, *, n_outputs: int = 1
) -> LinearModel:
    """Return the model, its features centred and scaled where the domain allows it."""
    known = spread(X, sample_weight)
    shift = known.mean if domain.whole_space and fit_intercept else None
    scale = known.scale if domain.whole_space else None
    squares = known.variance if shift is not None else known.variance + known.mean**2
    if scale is not None:
        squares = squares / scale**2
    return LinearModel(
        X,
        fit_intercept=fit_intercept,
        n_outputs=n_outputs,
        shift=shift,
        scale=scale,
        mean_squares=squares,
    )
