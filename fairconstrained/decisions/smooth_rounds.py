"""Rounds of smooth problems that bound decisions, with sigmoids in their place that narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag, cholesky, solve_triangular, svd
from scipy.optimize import minimize

from fairconstrained.decisions.candidates import Candidate, CandidateSearch
from fairconstrained.decisions.new_rows import effective_rows
from fairconstrained.functions.base import Indicator
from fairconstrained.functions.surrogates import Sigmoid, Surrogate
from fairconstrained.models.linear import LinearModel
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.shards.in_memory import drawn
from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.class_scores import ByClass, counts_predictions
from fairconstrained.terms.ordered_pairs import as_csr
from fairconstrained.terms.threshold_rates import ClippedRates, ThresholdRates
from fairconstrained.utils.numerics import by_first_row
from fairconstrained.utils.typing import Array

_WIDTHS = 0.5, 0.2  # of sigmoids in the first and the last round, in standard deviations of scores
_PENALTY, _GROWTH = 30.0, 1.5  # the penalty parameter, and its growth per round
_WITH_LOSS = 10.0  # the first penalty parameter where the loss is in the objective
_OVERSHOOT = 0.3  # of a violation, per late round: rankings change in steps
_STEPS = 8  # of L-BFGS in a round; for rankings more, and more trials
_MANY_STEPS, _MANY_TRIALS = 20, 40
_NEAR = 0.1  # below the bound, constraints count in the metric of a round
_MOST_IN_METRIC = 1000  # constraints; with more a round has the plain metric

ANCHOR = 20.0  # times variables over rows: what it costs to move scores by their spread
_RIDGE = 1e-3  # of the mean curvature
_MOST_CURVED = 300  # variables for which the curvature is a matrix
_ROWS_OF_CURVATURE = 10_000
_LEAST_SPREAD = 1e-12
_N_SAMPLED = 4  # rounds on a sample of many rows
_MOST_ROWS, _FEW_ROWS = 50_000, 2000  # of a smooth problem; of a cell, all of which are taken

_RATE = 0.2  # widths of density estimates fall with this power of the number of rows
_STEEPER = 4.0  # the factor for surrogates of rankings


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Variables in which the loss has the same curvature along all directions."""

    # r, where the curvature in the problem's units is R'R; None where it is not computed,
    # (n_variables, n_variables)
    triangle: Array | None
    sizes: Array  # the units of the variables, (n_variables,)

    @classmethod
    def of(cls, problem: Problem, w: Array) -> Coordinates:
        """Return the coordinates for the curvature of a problem's loss at a model."""
        sizes, model = problem.preconditioner, problem.objective.model
        n = model.n_parameters
        loss = Problem(CompositeFunction(model, problem.objective.term), counter=problem.counter)
        multiplied = isinstance(model, LinearModel) and model.n_outputs == 1 and model.in_memory
        curved = loss.twice_differentiable or (multiplied and problem.objective.term.curved)
        if n > _MOST_CURVED or not curved:
            return cls(None, sizes)
        if loss.batchable:
            loss = loss.batch(np.arange(0, model.n_rows, -(-model.n_rows // _ROWS_OF_CURVATURE)))
        curvature = loss.at(w[:n]).hessian(np.zeros(0)) * sizes[:n] * sizes[:n, None]
        curvature /= np.trace(curvature) / n
        curvature.flat[:: n + 1] += _RIDGE
        return cls(block_diag(cholesky(curvature), np.eye(problem.n_variables - n)), sizes)

    def variables(self, x: Array) -> Array:
        """Return the variables at coordinates."""
        return self.sizes * (x if self.triangle is None else solve_triangular(self.triangle, x))

    def at(self, w: Array) -> Array:
        """Return the coordinates of variables."""
        return w / self.sizes if self.triangle is None else self.triangle @ (w / self.sizes)

    def gradient(self, g: Array) -> Array:
        """Return gradients in the coordinates, (..., n_variables), for those in the variables."""
        g = g * self.sizes
        return g if self.triangle is None else solve_triangular(self.triangle, g.T, trans=1).T


@dataclass(frozen=True, eq=False)
class Metric:
    r"""The symmetric root of :math:`(I + \rho J^\top J)^{-1}`, for the rows J of few constraints.

    In variables z with x = root z the penalty of these constraints has curvature 1 at most, so that
    L-BFGS need not learn it again in every round.
    """

    basis: Array  # the right singular vectors of J, (n_rows, n_variables)
    factors: Array  # what the root multiplies them by, (n_rows,)

    @classmethod
    def of(cls, rows: Array, penalty: float) -> Metric:
        """Return the metric for the rows J and a penalty parameter."""
        _, sizes, basis = svd(rows, full_matrices=False)
        return cls(basis, 1.0 / np.sqrt(1.0 + penalty * sizes**2))

    def root(self, z: Array) -> Array:
        """Return the root times a vector."""
        return z + ((self.factors - 1.0) * (self.basis @ z)) @ self.basis


class SmoothRounds:
    r"""Minimises the share of errors under constraints on decisions, from a model.

    Decisions :math:`1\{s > 0\}` become sigmoids of :math:`s / h`, see
    :func:`smooth_parts`, with widths h that shrink from round
    to round. A round is some steps of L-BFGS, in the metric of the constraints near the bound, on
    the augmented Lagrangian, plus a price for the distance from the first model,
    :math:`10\, d / n` times its square in d whitened variables.
    Smooth constraints are shifted to those on decisions before every round, and multipliers follow
    the constraints on decisions, so that the last rounds bound decisions. With constraints on
    rankings multipliers follow the shifted constraints, and the loss is added to the share of
    errors instead of the price: scores may have to move far.

    Parameters
    ----------
    search : CandidateSearch
        The constraints on decisions.
    start : Candidate
        The model.
    n_rounds : int
        The rounds in which the widths shrink.
    anchor : float
        Times variables over rows, what it costs to move the scores by their spread.
    """

    def __init__(
        self, search: CandidateSearch, start: Candidate, n_rounds: int, anchor: float = ANCHOR
    ):
        problem = search.problem
        self.search, self.last, self.n_rounds, self.n_done = search, start, n_rounds, 0
        self.coordinates = Coordinates.of(problem, start.w)
        self.start = self.coordinates.at(start.w)
        size = search.spread(start)
        if self.coordinates.triangle is None:  # their curvature may be less
            size = min(size, float(np.linalg.norm(self.start)))
        self.unit = max(size, _LEAST_SPREAD)
        self.start /= self.unit
        # minus the share of correct predictions; with constraints on rankings after the loss
        self.parts = smooth_parts(search)
        self.sampled, self.rows = self._sample()
        self.multipliers = np.zeros(problem.n_constraints)
        correct = np.ones(search.parts[0].n_outputs)
        self.objective, self.penalty = np.append(1.0, -3.0 * correct), _WITH_LOSS
        self.anchor = 0.0
        if search.counted:
            self.objective, self.penalty = -correct, _PENALTY
            self.anchor = anchor * problem.n_variables / problem.n_rows

    def _sample(self) -> tuple[list[CompositeFunction], Array | None]:
        """Return the parts on some of many rows, with all rows of small cells, and the rows."""
        (part, *others), most = self.parts, _MOST_ROWS
        if others or not part.batchable or part.model.n_rows <= most:
            return self.parts, None
        strata = by_first_row(part.term.strata())
        rows, weights = drawn(strata, np.arange(strata.max() + 1), most, _FEW_ROWS)
        term = part.term.take(rows, weights)
        return [replace(part, model=part.model.batch(rows), term=term)], rows

    def restart(self, start: Candidate) -> None:
        """Go on from another model."""
        self.last = start
        self.start = self.coordinates.at(start.w) / self.unit

    def next(self) -> Candidate:
        """Return the model of the next round."""
        share = min(self.n_done / (self.n_rounds - 1), 1.0)
        width = _WIDTHS[0] ** (1.0 - share) * _WIDTHS[1] ** share
        problem = self._problem(width * max(self.search.spread(self.last), _LEAST_SPREAD))
        at = self._at(problem)
        shift = self._shift(at)
        x = self.coordinates.at(self.last.w) / self.unit
        metric = self._metric(at, shift)
        steps, trials = (_STEPS, _STEPS) if self.search.counted else (_MANY_STEPS, _MANY_TRIALS)

        def value(z: Array) -> tuple[float, Array]:
            value, gradient = self._value(x + metric.root(z), problem, shift)
            return value, metric.root(gradient)

        z = minimize(
            value,
            np.zeros_like(x),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": steps, "maxfun": trials},
        ).x
        x = x + metric.root(z)
        w = problem.domain.project(self.coordinates.variables(self.unit * x))
        self.last = self.search.evaluate(w)
        strict = np.concatenate(self.search.outputs(self.last))
        if not self.search.counted:  # the smooth ones tell less about those on decisions
            strict = (self._at(problem).constraints + shift)[len(self.objective) :]
        self.multipliers = np.maximum(self.multipliers + self.penalty * strict, 0.0)
        self.penalty *= _GROWTH
        self.n_done += 1
        return self.last

    def _at(self, problem: Problem) -> Evaluation:
        """Return a smooth problem at the last model."""
        scores = dict(self.last.scores)
        if problem.models[0] not in scores and self.rows is not None:  # on some of the rows
            scores = {problem.models[0]: scores[self.search.model][self.rows]}
        return problem.at(self.last.w).with_scores(scores)

    def _shift(self, at: Evaluation) -> Array:
        """Return what makes smooth constraints equal to those on decisions, 0 for the objective.

        Some have other outputs on decisions: then the largest one tells how far all of them differ.
        """
        n, strict = len(self.objective), self.search.outputs(self.last)
        shift, smooth = np.zeros(len(at.constraints)), at.constraints[n:]
        if self.search.counted:
            shift[n:] = np.concatenate(strict) - smooth
            return shift
        late = max(self.n_done - self.n_rounds + 1, 0)
        for hard, place in zip(strict, at.problem.places[-len(strict) :], strict=True):
            soft = at.constraints[place]
            least = soft + (hard.max(initial=0.0) - soft.max(initial=0.0))
            hard = hard if len(soft) == len(hard) else least
            shift[place] = hard - soft + _OVERSHOOT * late * np.maximum(hard, 0.0)
        return shift

    def _metric(self, at: Evaluation, shift: Array) -> Metric:
        """Return the metric of the constraints near the bound at the last model."""
        problem, first = at.problem, len(self.objective)
        if not self.search.counted or problem.n_constraints > _MOST_IN_METRIC:
            return Metric(np.zeros((0, problem.n_variables)), np.zeros(0))
        size = (at.constraints + shift)[first:] + self.multipliers / self.penalty + _NEAR
        rows = at.constraint_gradients(first + np.flatnonzero(size > 0.0))
        return Metric.of(self.unit * self.coordinates.gradient(rows), self.penalty)

    def _problem(self, width: float) -> Problem:
        """Return a problem whose outputs are the objective's parts and the smooth constraints."""
        parts = self.sampled if self.n_done < _N_SAMPLED else self.parts
        parts = [steeper_part(part, 1.0 / width).smoothed(width) for part in parts]
        return replace(self.search.problem, objective=CompositeFunction(), constraints=tuple(parts))

    def _value(self, x: Array, problem: Problem, shift: Array) -> tuple[float, Array]:
        """Return the augmented Lagrangian and its gradient."""
        at = problem.at(self.coordinates.variables(self.unit * x))
        first, constraints = np.split(at.constraints + shift, [len(self.objective)])
        active = np.maximum(self.multipliers + self.penalty * constraints, 0.0)
        gradient = at.gradient(np.append(self.objective, active), objective=0.0)
        gradient, moved = self.coordinates.gradient(gradient), x - self.start
        value = float(self.objective @ first) + float(active @ active) / (2.0 * self.penalty)
        value += 0.5 * self.anchor * float(moved @ moved)
        return value, self.unit * gradient + self.anchor * moved


class SmoothRates(CellMeans):
    """Rates of decisions with sigmoids in their place, of other widths for other rows.

    Its `signs` are the inverse widths.
    """

    @classmethod
    def of(cls, term: CellMeans, rows: Array) -> SmoothRates:
        """Return the rates of a term; a row counts as `rows` of it in the sizes of cells."""
        indices, lengths = term.cells.indices, np.diff(term.cells.indptr)
        sizes = np.bincount(indices, np.repeat(rows, lengths), minlength=term.n_statistics)
        smallest, inside = np.full(term.n_rows, rows.sum()), lengths > 0
        if inside.any():
            smallest[inside] = np.minimum.reduceat(sizes[indices], term.cells.indptr[:-1][inside])
        kept: Any = {name: getattr(term, name) for name in ("combination", "offset", "constant")}
        return cls(term.cells, Sigmoid(), smallest**_RATE, **kept)


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
    parts = _stacked([search.parts[0], *search.problem.constraints])
    smooth = [_smooth(part, weights) for part in parts]
    return smooth if search.counted else [search.problem.objective, *smooth]


def _stacked(parts: Sequence[CompositeFunction]) -> Sequence[CompositeFunction]:
    """Return rates of decisions of the same scores as one function; others as they are."""
    strict = [part.zero_one() for part in parts]
    rates = [part.term for part in strict if isinstance(part.term, CellMeans)]
    if not all(map(counts_predictions, rates)) or len(rates) < len(parts):
        return parts
    if len({part.model for part in parts}) > 1:
        return parts
    each = zip(rates, strict, strict=True)
    levels = [rate.head(np.zeros(rate.n_statistics)) + part.level for rate, part in each]
    term = CellMeans(
        sp.csc_array(sp.vstack([as_csr(rate.cells) for rate in rates])),
        Indicator(),
        combination=sp.csr_array(sp.block_diag([as_csr(rate.combination) for rate in rates])),
        constant=np.concatenate(levels),
    )
    return [replace(parts[0], term=term, level=0.0)]


def _smooth(part: CompositeFunction, weights: Array) -> CompositeFunction:
    """Return a smooth function."""
    strict = part.term.zero_one()
    if isinstance(strict, CellMeans) and counts_predictions(strict):
        rows = weights if strict.n_rows == len(weights) else np.ones(strict.n_rows)
        return replace(part, term=SmoothRates.of(strict, rows))
    if isinstance(strict, ByClass) and strict.counts_predictions:
        sizes = np.concatenate([effective_rows(rate) for rate in strict.by_class])
        terms = tuple(replace(rate, function=Sigmoid()) for rate in strict.by_class)
        soft = replace(strict, terms=terms, sharpness=float(np.median(sizes)) ** _RATE)
        return replace(part, term=soft)
    return steeper_part(part, _STEEPER)


def steeper_part(part: CompositeFunction, factor: float) -> CompositeFunction:
    """Return a function of rates with a surrogate that is steeper by a factor; others unchanged.

    Parameters
    ----------
    part : CompositeFunction
        The function.
    factor : float
        What the surrogate's scale is divided by.
    """
    return replace(part, term=_steeper(part.term, factor))


def _steeper(term: Term, factor: float) -> Term:
    """Return a term with a surrogate that is steeper; others unchanged."""
    if isinstance(term, ByClass) and term.zero_one().counts_predictions:
        return replace(term, sharpness=factor * term.sharpness)
    if not isinstance(term, CellMeans | ThresholdRates | ClippedRates):
        return term
    steep = term.function.steeper(factor) if isinstance(term.function, Surrogate) else term.function
    return replace(term, function=steep)
