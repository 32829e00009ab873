"""Rounds of smooth problems that bound decisions, with sigmoids in their place that narrow."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag, cholesky, solve_triangular
from scipy.optimize import minimize

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.new_rows import effective_rows, has_few_rows
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Sigmoid, Surrogate
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.classes import ByClass, counts_predictions
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.utils.arrays import Array

N_ROUNDS = 7  # in which sigmoids get narrower
# Widths of sigmoids in the first and the last round, in standard deviations of scores.
_FIRST_WIDTH, LAST_WIDTH = 0.5, 0.2
_PENALTY, _GROWTH = 30.0, 1.5  # the penalty parameter, and its growth per round
# The largest multiplier where there are cells of few rows: the accuracy that a unit of a gap may
# cost. A rate of few rows jumps when one decision changes. Without a limit multipliers grow with
# such jumps, and rounds end far from the bound.
_MOST_PRICE = 2.0
FIRST_ROUNDS = 4  # after which rounds begin anew near the bound if no model meets it
# The share of the violation by which later rounds tighten the bound while no model meets it. The
# rate of a small group jumps when one prediction changes, which multipliers cannot correct.
_INSIDE = 0.25
_WITH_LOSS = 10.0  # the first penalty parameter where the loss is in the objective
_STEPS = 8  # of L-BFGS in a round; for rankings more, and more trials
_MANY_STEPS, _MANY_TRIALS = 20, 40
_NEAR = 0.1  # below the bound, constraints count in the metric of a round
_MOST_IN_METRIC = 1000  # constraints; with more a round has the plain metric

ANCHOR = 20.0  # times variables over rows: what it costs to move scores by their spread
_RIDGE = 1e-3  # of the mean curvature
_MOST_CURVED = 300  # variables for which the curvature is a matrix
_ROWS_OF_CURVATURE = 10_000
_LEAST = 1e-12  # of spreads and curvatures: certain or equal predictions have none

_RATE = 0.2  # widths of density estimates fall with this power of the number of rows
_STEEPER = 4.0  # the factor for surrogates of rankings


def whitening(problem: Problem, w: Array) -> Array | None:
    """Return R where R'R is the curvature of the loss at a model, in the units of the variables.

    R is upper triangular; None where it is not computed.
    """
    sizes, model = problem.preconditioner, problem.objective.model
    n = model.n_parameters
    loss = Problem(CompositeFunction(model, problem.objective.term), counter=problem.counter)
    multiplied = isinstance(model, LinearModel) and model.n_outputs == 1 and model.in_memory
    curved = loss.twice_differentiable or (multiplied and problem.objective.term.curved)
    if n > _MOST_CURVED or not curved:
        return None
    if loss.batchable:
        loss = loss.batch(np.arange(0, model.n_rows, -(-model.n_rows // _ROWS_OF_CURVATURE)))
    curvature = loss.at(w[:n]).hessian(np.zeros(0)) * sizes[:n] * sizes[:n, None]
    curvature /= max(float(np.trace(curvature)) / n, _LEAST)
    curvature.flat[:: n + 1] += _RIDGE
    return np.asarray(block_diag(cholesky(curvature), np.eye(problem.n_variables - n)))


class SmoothRounds:
    r"""Minimises the share of errors under constraints on decisions, from a model.

    Decisions :math:`1\{s > 0\}` become sigmoids of :math:`s / h`, see :func:`smooth_parts`, with
    widths h that shrink from round to round. A round is some steps of L-BFGS, in the metric of the
    constraints near the bound, on the augmented Lagrangian, plus a price for the distance from the
    first model, :math:`10\, d / n` times its square in d whitened variables. Smooth constraints are
    shifted to those on decisions before every round. After a round multipliers change by the
    constraints on decisions, and stay below a limit where cells have few rows (Birgin and Martinez
    2014, algorithm 4.1). Where no model meets the bound, later rounds tighten it. With constraints
    on rankings multipliers change by the shifted constraints, and the loss is added to the share of
    errors instead of the price: scores may have to move far.

    `search` has the constraints on decisions. `anchor`, times variables over rows, is what it costs
    to move the scores by their spread.
    """

    def __init__(self, search: CandidateSearch, start: Candidate, anchor: float):
        problem = search.problem
        self.search, self.last, self.n_done = search, start, 0
        # what maps variables to coordinates, in which the loss has the same curvature along all
        # directions and models differ by about one, and back
        sizes, triangle, size = problem.preconditioner, whitening(problem, start.w), start.spread
        if triangle is None:
            size = min(size, float(np.linalg.norm(start.w / sizes)))  # the curvature may be less
        units = max(size, _LEAST) * sizes
        self.there: Any = sp.diags_array(1.0 / units)
        self.back: Any = sp.diags_array(units)
        if triangle is not None:
            self.there = triangle / units
            self.back = units[:, None] * solve_triangular(triangle, np.eye(len(units)))
        self.start = self.there @ start.w
        # minus the share of correct predictions; with constraints on rankings after the loss
        self.parts = smooth_parts(search)
        self.multipliers = np.zeros(problem.n_constraints)
        self.most_price = _MOST_PRICE if has_few_rows(problem) else np.inf
        correct = np.ones(search.parts[0].n_outputs)
        self.objective, self.penalty = np.append(1.0, -3.0 * correct), _WITH_LOSS
        self.anchor = self.margin = 0.0
        if search.counted:
            self.objective, self.penalty = -correct, _PENALTY
            self.anchor = anchor * problem.n_variables / problem.n_rows

    def restart(self, start: Candidate) -> None:
        """Go on from another model."""
        self.last = start
        self.start = self.there @ start.w

    def next(self) -> Candidate:
        """Return the model of the next round."""
        share = min(self.n_done / (N_ROUNDS - 1), 1.0)
        width = _FIRST_WIDTH ** (1.0 - share) * LAST_WIDTH**share
        width *= max(self.last.spread, _LEAST)
        # its outputs are the objective's parts and the smooth constraints
        parts = tuple(steeper_part(part, 1.0 / width).smoothed(width) for part in self.parts)
        problem = replace(self.search.problem, objective=CompositeFunction(), constraints=parts)
        at = problem.at(self.last.w).with_scores(self.last.scores)
        shift, x = self._shift(at), self.there @ self.last.w
        shift[len(self.objective) :] += self.margin
        root = self._root(at, shift)
        steps, trials = (_STEPS, _STEPS) if self.search.counted else (_MANY_STEPS, _MANY_TRIALS)

        def value(z: Array) -> tuple[float, Array]:
            value, gradient = self._value(x + root(z), problem, shift)
            return value, root(gradient)

        options: Any = {"maxiter": steps, "maxfun": trials}
        z = minimize(value, np.zeros_like(x), method="L-BFGS-B", jac=True, options=options).x
        w = problem.domain.project(self.back @ (x + root(z)))
        self.last = self.search.evaluate(w)
        strict = np.concatenate(self.search.outputs(self.last))
        if not self.search.counted:  # the smooth ones tell less about those on decisions
            at = problem.at(self.last.w).with_scores(self.last.scores)
            strict = (at.constraints + shift)[len(self.objective) :]
        self.multipliers = np.clip(self.multipliers + self.penalty * strict, 0.0, self.most_price)
        self.penalty *= _GROWTH
        best = self.search.best
        if self.n_done >= FIRST_ROUNDS and (best.constant or not best.met):
            self.margin += _INSIDE * float(strict.max(initial=0.0))
        self.n_done += 1
        return self.last

    def _shift(self, at: Evaluation) -> Array:
        """Return what makes smooth constraints equal to those on decisions, 0 for the objective.

        Some have other outputs on decisions: then the largest one tells how far all of them differ.
        """
        n, strict = len(self.objective), self.search.outputs(self.last)
        shift, smooth = np.zeros(len(at.constraints)), at.constraints[n:]
        if self.search.counted:
            shift[n:] = np.concatenate(strict) - smooth
            return shift
        for hard, place in zip(strict, at.problem.places[-len(strict) :], strict=True):
            soft = at.constraints[place]
            least = soft + (hard.max(initial=0.0) - soft.max(initial=0.0))
            hard = hard if len(soft) == len(hard) else least
            shift[place] = hard - soft
        return shift

    def _root(self, at: Evaluation, shift: Array) -> Callable[[Array], Array]:
        r"""Return the symmetric root of :math:`(I + \rho J^\top J)^{-1}`.

        J are the gradients of the constraints near the bound at the last model. After a change of
        coordinates by the root their penalty has curvature 1 at most, so that L-BFGS need not learn
        it again in every round.
        """
        problem, first = at.problem, len(self.objective)
        if not self.search.counted or problem.n_constraints > _MOST_IN_METRIC:
            return lambda z: z
        size = (at.constraints + shift)[first:] + self.multipliers / self.penalty + _NEAR
        rows = at.constraint_gradients(first + np.flatnonzero(size > 0.0))
        _, sizes, basis = np.linalg.svd(rows @ self.back, full_matrices=False)
        factors = 1.0 / np.sqrt(1.0 + self.penalty * sizes**2) - 1.0
        return lambda z: z + (factors * (basis @ z)) @ basis

    def _value(self, x: Array, problem: Problem, shift: Array) -> tuple[float, Array]:
        """Return the augmented Lagrangian and its gradient."""
        at = problem.at(self.back @ x)
        values, n = at.constraints + shift, len(self.objective)
        active = np.maximum(self.multipliers + self.penalty * values[n:], 0.0)
        gradient = at.gradient(np.append(self.objective, active), objective=0.0) @ self.back
        moved = x - self.start
        value = float(self.objective @ values[:n]) + float(active @ active) / (2.0 * self.penalty)
        value += 0.5 * self.anchor * float(moved @ moved)
        return value, gradient + self.anchor * moved


def smooth_rates(term: CellMeans, rows: Array) -> CellMeans:
    """Return rates with sigmoids in place of decisions; the signs of rows are inverse widths.

    A row counts as `rows` of it in the sizes of cells.
    """
    indices, lengths = term.cells.indices, np.diff(term.cells.indptr)
    sizes = np.bincount(indices, np.repeat(rows, lengths), minlength=term.n_statistics)
    smallest, inside = np.full(term.n_rows, rows.sum()), lengths > 0
    smallest[inside] = np.minimum.reduceat(sizes[indices], term.cells.indptr[:-1][inside])
    return replace(term, function=Sigmoid(), signs=smallest**_RATE)


def smooth_parts(search: CandidateSearch) -> list[CompositeFunction]:
    r"""Return the accuracy and the constraints with :math:`1 / (1 + e^{-s / h})` for decisions.

    The width is :math:`h = n^{-1/5}` for the n rows of a cell, as in an estimate of the density of
    its scores at 0, where decisions change; a row in several cells has that of the smallest. Rates
    of the same scores become one function, whose sigmoids are computed once. Of several classes
    there are soft-max probabilities, of one width. Constraints on rankings, which say little about
    decisions, get steeper surrogates, and the loss is before them. :func:`steeper_part` gives other
    widths.
    """
    weights = search.rows[1] * (search.model.n_rows / search.rows[1].sum())
    smooth = [_smooth(part, weights) for part in _stacked(search)]
    return smooth if search.counted else [search.problem.objective, *smooth]


def _stacked(search: CandidateSearch) -> Sequence[CompositeFunction]:
    """Return the accuracy and the constraints, rates of the same scores as one function."""
    first, terms = search.parts[0], [part.term for part in search.parts]
    rates = [term for term in terms if isinstance(term, CellMeans) and counts_predictions(term)]
    if len(rates) < len(terms) or len({part.model for part in search.parts}) > 1:
        return [first, *search.problem.constraints]
    each = zip(rates, search.parts, strict=True)
    levels = [rate.head(np.zeros(rate.n_statistics)) + part.level for rate, part in each]
    term = CellMeans(
        sp.csc_array(sp.vstack([as_csr(rate.cells) for rate in rates])),
        Indicator(),
        combination=sp.csr_array(sp.block_diag([as_csr(rate.combination) for rate in rates])),
        constant=np.concatenate(levels),
    )
    return [replace(first, term=term, level=0.0)]


def _smooth(part: CompositeFunction, weights: Array) -> CompositeFunction:
    """Return a smooth function."""
    strict = part.term.zero_one()
    if isinstance(strict, CellMeans) and counts_predictions(strict):
        rows = weights if strict.n_rows == len(weights) else np.ones(strict.n_rows)
        return replace(part, term=smooth_rates(strict, rows))
    if isinstance(strict, ByClass) and strict.counts_predictions:
        sizes = np.concatenate([effective_rows(rate) for rate in strict.by_class])
        terms = tuple(replace(rate, function=Sigmoid()) for rate in strict.by_class)
        soft = replace(strict, terms=terms, sharpness=float(np.median(sizes)) ** _RATE)
        return replace(part, term=soft)
    return steeper_part(part, _STEEPER)


def steeper_part(part: CompositeFunction, factor: float) -> CompositeFunction:
    """Return rates with their surrogate's scale divided by a factor; other functions unchanged."""
    term: Any = part.term
    if isinstance(term, ByClass) and term.zero_one().counts_predictions:
        return replace(part, term=replace(term, sharpness=factor * term.sharpness))
    if isinstance(getattr(term, "function", None), Surrogate):
        return replace(part, term=replace(term, function=term.function.steeper(factor)))
    return part
