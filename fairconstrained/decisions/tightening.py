"""Tightened and steeper constraints on scores, so that the constraints on decisions hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.score_line import Measure
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans, averages
from fairconstrained.terms.class_scores import ByClass
from fairconstrained.terms.ranks import ClippedRates
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.typing import Array

_LITTLE = 1e-5  # of the scores, whose effect is a derivative to ten digits
_LEFT = 0.9  # the share of a constant model's distance from the bound that shifts may take


def tightening(
    search: CandidateSearch, problem: Problem, candidate: Candidate, before: Array | None = None
) -> Array:
    r"""Return the shifts of the constraints on scores at which those on decisions hold.

    With the surrogate's value :math:`g_j` and the value for decisions :math:`G_j` at the model, and
    decisions that change :math:`\rho_j` times as fast as the surrogate, :math:`G_j \le 0` holds, to
    first order, where :math:`g_j \le g_j(w) - G_j(w) / \rho_j`. The shift is
    :math:`G_j(w) / \rho_j - g_j(w)`; it is negative where decisions are fairer than scores.
    Constraints that are no averages over cells have one shift for all outputs, that of the largest
    values, since their strict version may have other outputs. It leaves them a tenth of what a
    constant model keeps below the bound: with less there is no solution. Some terms
    have variables of their own, for example thresholds. These were fitted to another surrogate, so
    that :math:`g_j(w)` says little: there :math:`G_j(w)` is added to the last shift.

    Parameters
    ----------
    search : CandidateSearch
        The constraints on decisions, and the budget.
    problem : Problem
        The constraints on scores, see `steepened`.
    candidate : Candidate
        The model.
    before : ndarray of shape (n_constraints,) or None, default=None
        The shifts with which the model was fitted; None for the constraints as they are.

    Returns
    -------
    shifts : ndarray of shape (n_constraints,)
    """
    shifts: list[Array] = []
    surrogates, measures = Measure.all_of(problem.constraints, problem.models), search.measures[1:]
    smooth_values = search.values(surrogates, candidate)
    strict_values = search.values(measures, candidate)
    rates = iter(_speeds(search, surrogates, candidate))
    known = zip(surrogates, measures, smooth_values, strict_values, strict=True)
    for smooth, strict, values, found in known:
        if isinstance(smooth.term, CellMeans):
            shifts.append(found / next(rates) - values)
        elif isinstance(strict.term, ByClass) and strict.term.counts_predictions:
            shifts.append(found - values)
        else:
            last = 0.0 if before is None else float(before[sum(map(len, shifts))])
            own = smooth.auxiliary.stop > smooth.auxiliary.start
            (constant,) = search.values([strict if own else smooth], search.constant)
            shift = max(last + _largest(found), 0.0) if own else _largest(found) - _largest(values)
            most = max(-_LEFT * constant.max(initial=-np.inf), 0.0)
            shifts.append(np.full(len(values), min(shift, most)))
    return np.concatenate(shifts)


def _largest(values: Array) -> float:
    """Return the largest value, 0 of none."""
    return float(values.max()) if values.size else 0.0


def _speeds(
    search: CandidateSearch, measures: Sequence[Measure], candidate: Candidate
) -> list[Array]:
    """Return how fast decisions change compared with the surrogate, for each output.

    That is how much both change where all scores do: decisions by the window to both sides, the
    surrogate by little. Measures that are no averages over cells are left out.
    """
    window, asked, weights = search.budget.window, [], []
    for one in measures:
        if isinstance(one.term, CellMeans):
            for function, h in ((Indicator(), window), (one.term.function, _LITTLE)):
                terms = (averages(one.term, function, shift) for shift in (h, -h))
                asked += [replace(one, level=0.0, term=term) for term in terms]
            weights.append(abs(one.term.combination))
    values = iter(search.values(asked, candidate))
    changes = (np.abs(above - below) for above, below in zip(values, values, strict=True))
    speeds = []
    for weight, of_rates, of_surrogate in zip(weights, changes, changes, strict=False):
        dense, steep = weight @ of_rates / window, weight @ of_surrogate / _LITTLE
        ratio = np.divide(dense, steep, out=np.ones_like(dense), where=steep > 0.0)
        speeds.append(np.clip(ratio, *search.budget.speed_range))
    return speeds


def steeper_part(part: CompositeFunction, factor: float) -> CompositeFunction:
    """Return a constraint on rates with a surrogate that is steeper by a factor; others unchanged.

    Parameters
    ----------
    part : CompositeFunction
        The constraint.
    factor : float
        What the surrogate's scale is divided by.
    """
    return replace(part, term=_steeper(part.term, factor))


def _on_rates(term: ByClass) -> bool:
    """Return whether the term is on rates of predictions."""
    return term.zero_one().counts_predictions


def _steeper(term: Term, factor: float) -> Term:
    """Return a term with a surrogate that is steeper; others unchanged."""
    if isinstance(term, ByClass):
        return replace(term, sharpness=factor * term.sharpness) if _on_rates(term) else term
    if not isinstance(term, CellMeans | ThresholdRates | ClippedRates):
        return term
    steep = term.function.steeper(factor) if isinstance(term.function, Surrogate) else term.function
    return replace(term, function=steep)


def steepened(search: CandidateSearch, candidate: Candidate, factor: float) -> Problem:
    """Return the problem with steeper surrogates where decisions change faster than surrogates do.

    That is so where scores are small, on data with little information about the labels.

    Parameters
    ----------
    search : CandidateSearch
        The problem, and the budget.
    candidate : Candidate
        The speeds are those at its scores.
    factor : float
        A further factor for all surrogates.
    """
    problem, budget = search.problem, search.budget
    strict = search.values(search.measures[1:], candidate)
    surrogates = Measure.all_of(problem.constraints, problem.models)
    rates, parts = iter(_speeds(search, surrogates, candidate)), []
    for part, values in zip(problem.constraints, strict, strict=True):
        speed = 1.0
        if isinstance(part.term, CellMeans):
            rate = next(rates)
            if isinstance(part.term.function, Surrogate):
                speed = float(rate[values > -budget.active].max(initial=1.0))
        parts.append(steeper_part(part, factor * (speed if speed >= budget.steep_speed else 1.0)))
    return problem.with_constraints(parts)
