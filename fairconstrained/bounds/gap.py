"""How far an objective is from the least one that meets the constraints, at most."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from fairconstrained.bounds import fenchel
from fairconstrained.bounds.branching import Branching
from fairconstrained.bounds.relaxation import EnvelopePoint, Lagrangian
from fairconstrained.bounds.tables import Tables, tabulated
from fairconstrained.functions import Logistic, Sigmoid
from fairconstrained.models.linear import LinearModel
from fairconstrained.penalties import Zero
from fairconstrained.problem import Evaluation, Problem
from fairconstrained.shards.model import ShardedLinearModel
from fairconstrained.terms.classes import MultinomialLoss
from fairconstrained.utils.arrays import Array

_MOST_CONSTRAINTS = 50  # that get multipliers: others have zero, which loses little
_MOST_NEAR = 20  # in all, with those that may get multipliers; 50 gave the same bounds
_NEAR = 0.01  # of the largest value: these may get multipliers as well
_SAMPLE = 3000  # rows whose Hessian makes the units of the parameters
_FAR = 2.0  # times the curvature of the loss: multipliers start nearer to those of convex problems
_OPTIMAL = 1e-5  # a gap that is called none
_MOST_COLUMNS = 1000  # up to which there is a Hessian: with more the first bound is all
_STEPS, _INNER = 30, 20  # changes of multipliers, and Newton steps for each
_SAME = 4  # changes of multipliers with the same Hessian
_EXCESS = 0.1  # of the gap that suffices: what the minimum may be off
_SMALL = 2e-4  # of the objective: after two such gains there is little more
_LEAST_RADIUS = 1e-3


@dataclass(frozen=True)
class OptimalityGap:
    r"""How far an objective is from the least one, at most.

    Attributes
    ----------
    gap : float or None
        :math:`\max\{0, f(w) - \text{bound}\} / f(w)`; None where no bound is known.
    reason : str
        Why there is none; empty if there is one.
    data_passes : float
        What it cost.
    kind : str
        What the model is compared with.
    """

    gap: float | None
    reason: str = ""
    data_passes: float = 0.0
    kind: str = "model"

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of an estimator."""
        return {"optimality_gap_": self.gap, "optimality_gap_reason_": self.reason}

    def __str__(self) -> str:
        """Return a sentence on the gap, or why there is none."""
        return self.text or f"no bound is known: {self.reason}"

    @property
    def text(self) -> str:
        """A sentence on the gap; empty where there is none."""
        if self.gap is None:
            return ""
        if self.gap <= _OPTIMAL:
            return f"globally optimal to {_OPTIMAL:g}"
        percent = f"{100.0 * self.gap / (1.0 - self.gap):.2g}%"
        return f"training objective at most {percent} above that of the best {self.kind}"


NOT_ASKED_FOR = OptimalityGap(None, "it was not asked for")


def optimality_gap(
    at: Evaluation,
    multipliers: Array,
    *,
    stop: float = 0.01,
    data_passes: float = np.inf,
    seconds: float | None = None,
    watch: Callable[[float], bool] | None = None,
) -> OptimalityGap:
    r"""Return a proved bound on how far a point is from the best one that meets the constraints.

    The bound holds for every point of the whole space, whatever local solution `at` is. A point
    that violates constraints is compared with those that violate them no more.

    Parameters
    ----------
    at : Evaluation
        A problem at a point: a linear model with a convex loss and an L2 or elastic net penalty,
        constraints on averages of a sigmoid or ramp of the score, or of a convex loss.
    multipliers : ndarray of shape (n_constraints,)
        Those of the point, where the search for better ones begins.
    stop : float, default=0.01
        The gap that suffices.
    data_passes : float, default=inf
        The passes over the rows after which the search ends.
    seconds : float or None, default=None
        The time after which it ends. With a time, boxes of coefficients are searched as well, for
        dense features, at most 30, an L2 penalty, the logistic loss and sigmoids of unit scale.
    watch : callable or None, default=None
        It is called with the gap so far after every step, and ends the search by returning True.
    """
    at = _in_memory(at)
    if reason := why_unknown(at.problem):
        return OptimalityGap(None, reason)
    deadline = np.inf if seconds is None else time.monotonic() + seconds
    target = at.objective - stop * abs(at.objective)

    def over(bound: float) -> bool:
        if not at.objective:  # no bound is above zero
            return True
        stopped = watch is not None and watch(_gap(at.objective, bound))
        return stopped or bound >= target or time.monotonic() >= deadline

    if isinstance(at.problem.objective.term, MultinomialLoss):
        bound, passes = fenchel.class_bound(at, multipliers, data_passes, over)
    else:
        chosen = np.flatnonzero(multipliers)
        chosen = chosen[np.argsort(-multipliers[chosen], kind="stable")[:_MOST_CONSTRAINTS]]
        near = at.largest(at.violation - _NEAR, max(_MOST_NEAR - len(chosen), 1))
        chosen = np.union1d(chosen, near)
        terms = [part.term for part in at.problem.parts]
        closed = all(fenchel.averages_unit(term, Logistic, Sigmoid) for term in terms)
        exact = seconds is not None
        lagrangian = Lagrangian.of(at, chosen) if closed else Tables.of(at, chosen, exact=exact)
        if lagrangian is None:
            return OptimalityGap(None, "the rows are of too many kinds")
        search = _Search(lagrangian, at.objective, stop, data_passes * at.problem.n_rows, over)
        best = search.run(at.w, multipliers[chosen])
        bound, passes = best.bound, search.rows / at.problem.n_rows
        if exact and isinstance(best, EnvelopePoint) and not over(bound):
            bound = max(bound, Branching(best, at.objective, target, over).run())
    if bound <= 0.0:
        return OptimalityGap(
            None, "the bound that was found is not above zero, which all losses are"
        )
    model = cast("LinearModel", at.problem.models[0])
    kind = f"{model.kind} with these constraints on scores"
    return OptimalityGap(_gap(at.objective, bound), "", passes, kind)


def _gap(objective: float, bound: float) -> float:
    return float(max(0.0, 1.0 - bound / objective))


def _in_memory(at: Evaluation) -> Evaluation:
    """Return an evaluation whose terms are of rows, where the rows of its atoms are in memory."""
    problem, model = at.problem, at.problem.objective.model
    several = len(problem.models) > 1
    if several or not isinstance(model, ShardedLinearModel) or model.only_shard is None:
        return at
    objective, *constraints = model.on_rows(problem.parts, slice(None))
    return replace(problem, objective=objective, constraints=tuple(constraints)).at(at.w)


def why_unknown(problem: Problem) -> str:
    """Return why no bound is known for a problem; an empty string if one is."""
    objective, models = problem.objective, problem.models
    strengths = objective.penalty.elastic_net
    if len(models) != 1 or not isinstance(models[0], LinearModel):
        return "the scores are not those of one linear model of the rows of the loss"
    if not models[0].in_memory:
        return "the rows are not in memory"
    if not problem.whole_space:
        return "the coefficients have a domain"
    if strengths is None or not strengths[1] > 0.0:
        return "the penalty is neither L2 nor elastic net, or its L2 part is zero"
    several = isinstance(objective.term, MultinomialLoss)
    if not several and not tabulated(objective):
        return "the loss is not a convex function of a row's score, or its curvature has no bound"
    for part in problem.constraints:
        plain = part.slope is None and isinstance(part.penalty, Zero)
        if not plain or not (fenchel.of_probabilities(part) if several else tabulated(part)):
            return "constraints are not on averages of a surrogate of the score or of the loss"
    return ""


@dataclass(eq=False)
class _Search:
    """The search for multipliers with a large bound: Newton's method on the dual.

    The search ends when the gap to the `objective` is at most `stop`, when `most` rows were read,
    or when ``over(bound)`` is true.
    """

    lagrangian: Any
    objective: float
    stop: float
    most: float
    over: Callable[[float], bool]
    rows: float = 0.0  # those that were read

    def run(self, w: Array, multipliers: Array) -> Any:
        """Return where the largest bound is, from a point and its multipliers."""
        best = self._at(self._relaxed(multipliers), w)
        if self._done(best) or self.lagrangian.model.n_parameters > _MOST_COLUMNS:
            return best
        pooled, last = self.lagrangian.pooled(), best
        far = max(best.relaxed.bends[0] / _FAR, 1.0)
        if pooled is not self.lagrangian or far > 1.0:
            self.lagrangian = pooled
            last = self._at(self._relaxed(multipliers / far), w)
        # the change of a multiplier that bends the rows of its constraint as much as the loss does
        unit = 1.0 / np.maximum(last.relaxed.bends[1:], fenchel.TINY**0.5)
        kept, radius, small = None, 1.0, 0
        for step in range(_STEPS):
            if step % _SAME == 0:
                units = self._units(last)
            last = self._minimized(last, units)
            gain = (last.bound - best.bound) / abs(self.objective)
            small = small + 1 if kept is not None and 0.0 < gain < _SMALL else 0
            if kept is None or gain > 0.0:
                kept, radius = last, 2.0 * radius
                best = max(best, last, key=lambda point: point.bound)
            else:
                radius *= 0.25
            if small > 1 or radius < _LEAST_RADIUS or self._done(best) or not len(unit):
                break
            last = self._next(kept, units, radius, unit)
        return best

    def _done(self, best: Any) -> bool:
        return self.rows >= self.most or self.over(best.bound)

    def _relaxed(self, multipliers: Array) -> Any:
        self.rows += self.lagrangian.cost
        return self.lagrangian.relaxed(multipliers)

    def _at(self, relaxed: Any, w: Array) -> Any:
        self.rows += self.lagrangian.model.n_rows
        return relaxed.at(w)

    def _units(self, at: Any) -> Array:
        """Return U, lower triangular, for which U U' is about the Hessian, from some rows."""
        model, l2 = self.lagrangian.model, self.lagrangian.strengths[1]
        rows = np.arange(model.n_rows)
        if len(rows) > _SAMPLE:
            rows = np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))
        self.rows += len(rows)
        hessian = model.batch(rows).gram(at.curvatures[rows] * (model.n_rows / len(rows)))
        hessian.flat[:: len(hessian) + 1] += l2 + 1e-10 * np.trace(hessian)
        return np.linalg.cholesky(hessian)

    def _minimized(self, at: Any, units: Array) -> Any:
        """Return a point near the minimiser, by Newton's method."""
        allowed, length = _EXCESS * max(self.stop, 1e-3) * abs(self.objective), 1.0
        for _ in range(_INNER):
            if at.value - at.bound <= allowed or self.rows >= self.most:
                break
            there = self._at(at.relaxed, at.w - length * cho_solve((units, True), at.slope))
            if there.value < at.value:
                at, length = there, min(1.0, 2.0 * length)
            else:
                length *= 0.25
        return at

    def _next(self, at: Any, units: Array, radius: float, unit: Array) -> Any:
        """Return the multipliers after a step on the dual's model within a box, and w there."""
        before = at.relaxed.multipliers
        on_w, bend = at.moves()
        image = solve_triangular(units, on_w.T, lower=True)
        curved = bend - image.T @ image - 1e-12 * np.eye(len(before))

        def negative(x: Array) -> tuple[float, Array]:
            change = curved @ (x - before)
            return -float((at.gradient + 0.5 * change) @ (x - before)), -(at.gradient + change)

        room = radius * np.maximum(before, unit)
        bounds = list(zip(np.maximum(before - room, 0.0), before + room, strict=True))
        after = minimize(negative, before, jac=True, method="L-BFGS-B", bounds=bounds).x
        step = solve_triangular(units.T, image @ (after - before))
        return self._at(self._relaxed(after), at.w - step)
