"""Checks of the options that estimators share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from fairconstrained.data.groups import GROUPS_MISSING
from fairconstrained.decisions.population import check_confidence
from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.penalties.base import L2, Penalty
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.validation import is_number

_ENFORCE = {"score": "the surrogate of the decision", "decision": "what `predict` does"}


_GOALS = {"accuracy": "least loss", "fairness": "least unfairness"}


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
    domain.check()
    return domain
