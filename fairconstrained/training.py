"""From what a user passes to `fit` to the problem that is solved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairconstrained.confidence import check_confidence
from fairconstrained.constraints.base import Constraint
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.groups import GROUPS_MISSING
from fairconstrained.inputs import TrainingData, is_number
from fairconstrained.interactions import Layout
from fairconstrained.losses import Objective
from fairconstrained.models import LinearModel, spread
from fairconstrained.penalties import L2, Penalty
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.problem import Part, Problem
from fairconstrained.registry import check_option
from fairconstrained.scalar import Array
from fairconstrained.solvers import Result, automatic

_ENFORCE = {"score": "the surrogate of the decision", "decision": "what `predict` does"}
_GOALS = {"accuracy": "least loss", "fairness": "least unfairness"}
_SMALL = 1 << 24  # below this many multiplications starting threads costs more than it gains


def check_options(estimator: Any) -> None:
    """Check the options of an estimator that nothing else looks at.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what is valid.
    """
    check_option("enforce", estimator.enforce, _ENFORCE)
    check_confidence(estimator)
    check_solver_options(estimator)
    _check_switches(estimator, "use_sensitive", "group_interactions")
    _check_goal(estimator)
    if estimator.group_interactions and estimator.sensitive_columns is None:
        raise ValueError(
            "group_interactions=True needs the groups when predicting as well: name the columns of "
            "X that hold them in sensitive_columns (it is not enough to pass groups to fit)."
        )
    missing = check_option("groups_missing", estimator.groups_missing, GROUPS_MISSING)
    if estimator.group_interactions and missing is GROUPS_MISSING["ignore_in_constraint"]:
        raise ValueError(
            "group_interactions=True gives every row the coefficients of its group, and with "
            "groups_missing='ignore_in_constraint' some rows have none; use 'own_group'."
        )
    if estimator.group_interactions and estimator.combine == "marginal":
        raise ValueError(
            "group_interactions=True gives every row the coefficients of its group, and with "
            "combine='marginal' a row is in several; use combine='intersection'."
        )


def _check_goal(estimator: Any) -> None:
    """Check what is minimised, and what it may cost."""
    increase = estimator.max_loss_increase
    if not (is_number(increase, Real) and 0.0 < increase < np.inf):
        raise ValueError(
            "max_loss_increase must be a number > 0, the part of the best loss that may be lost "
            "(0.01 is one per cent; 0 would leave the unconstrained model only); got "
            f"{increase!r}."
        )
    goal = check_option("goal", estimator.goal, _GOALS)
    if goal is _GOALS["fairness"] and estimator.enforce == "decision":
        raise ValueError(
            "enforce='decision' bounds the decisions' gap by kappa, and goal='fairness' does not "
            "use kappa; use goal='accuracy'."
        )
    constraint = estimator.constraint
    nothing = constraint is None or (isinstance(constraint, list | tuple) and not constraint)
    if goal is _GOALS["fairness"] and nothing:
        raise ValueError(
            f"goal='fairness' makes the gap of a constraint as small as it can, and constraint="
            f"{constraint!r} has none: name one, such as 'demographic_parity'."
        )


def check_solver_options(estimator: Any) -> None:
    """Check the options that every estimator has.

    Raises
    ------
    ValueError
        With the argument's name, what was found and what is valid.
    """
    max_iter, tol = estimator.max_iter, estimator.tol
    if max_iter is not None and not (is_number(max_iter, Integral) and max_iter >= 1):
        raise ValueError(f"max_iter must be an integer >= 1 or None; got {max_iter!r}.")
    if not (is_number(tol, Real) and 0.0 < tol < np.inf):
        raise ValueError(f"tol must be a number > 0; got {tol!r}.")
    _check_switches(estimator, "fit_intercept", "warm_start")
    if not isinstance(estimator.verbose, bool | Integral):
        raise ValueError(f"verbose must be an integer, 0 for silence; got {estimator.verbose!r}.")


def _check_switches(estimator: Any, *names: str) -> None:
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {value!r}.")


def penalty_of(alpha: Any) -> Penalty:
    """Return the L2 penalty of strength `alpha`, or `alpha` itself if it is a penalty.

    Raises
    ------
    ValueError
        If it is neither a number >= 0 nor a penalty.
    """
    if isinstance(alpha, Penalty):
        return alpha
    if not (is_number(alpha, Real) and 0.0 <= alpha < np.inf):
        raise ValueError(
            f"alpha must be a number >= 0 or a penalty such as SCAD(0.02); got {alpha!r}."
        )
    return L2(float(alpha))


def domain_of(domain: Any) -> Domain:
    """Return the whole space for None, else the domain.

    Raises
    ------
    TypeError
        If it is not an instance of Domain, for instance a class.
    """
    if domain is None:
        return WholeSpace()
    if not isinstance(domain, Domain):
        raise TypeError(
            "domain must be None (the whole space) or an instance of Domain, such as L1Ball(20.0), "
            f"L2Ball(5.0) or Box(-1.0, 1.0); got {domain!r}"
            + (" (a class: add parentheses)." if isinstance(domain, type) else ".")
        )
    return domain


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
    :func:`~fairconstrained.models.spread`): the penalty then counts coefficients per spread, and
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
        Part(model, objective, LeadingPenalty(penalty, n)), domain=LeadingDomain(domain, n)
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
    level = problem.unmetered().at(w).constraints.max()
    least = best.objective
    return problem.swap((1.0 + max_loss_increase) * least, least=least), np.append(w, level)


class Unconstrained:
    """The model without constraints, solved when it is first asked for.

    Parameters
    ----------
    problem : Problem
        The problem without its constraints.
    """

    def __init__(self, problem: Problem):
        self.problem = problem.unmetered()

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
    held_out : tuple of Part
        The constraints on the rows held out for `confidence`, if there are any.
    n_held_out : int
        How many rows these are.
    """

    data: TrainingData
    layout: Layout
    problem: Problem
    unconstrained: Unconstrained
    held_out: tuple[Part, ...] = ()
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


def _with_variables(parts: list[Part], start: int) -> Iterator[Part]:
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
