"""Problem: what is minimised, and Evaluation: one forward pass through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairconstrained.domains import Domain, WholeSpace
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.penalties import Leading as LeadingPenalty
from fairconstrained.penalties import Linear, Penalty, Proximity, Zero
from fairconstrained.scalar import Array
from fairconstrained.terms import Pullback, Term, joint_codes


@dataclass
class Meter:
    """Counts the rows that forward passes have read."""

    rows: float = 0.0


@dataclass(frozen=True, eq=False)
class Part:
    r"""The functions :math:`c(w) = \mathrm{term}(\mathrm{model}(w), w_{aux}) + p(w)`.

    The objective is a part with one output; every constraint is a part, on rows of its own if its
    model has others than the objective's.

    Parameters
    ----------
    model : LinearModel or None
        Turns weights into scores; None for a part that is a penalty alone.
    term : Term or None
        Turns scores into outputs; None for a part that is a penalty alone (one output).
    penalty : Penalty
        A function of all the variables, added to every output.
    auxiliary : slice
        Where the term's own variables are among all.
    """

    model: Any
    term: Term | None
    penalty: Penalty = field(default_factory=Zero)
    auxiliary: slice = field(default_factory=lambda: slice(0, 0))

    @property
    def n_outputs(self) -> int:
        """The number of functions."""
        return 1 if self.term is None else self.term.n_outputs

    @property
    def smooth(self) -> bool:
        """Whether term and penalty are."""
        return self.penalty.smooth and (self.term is None or self.term.smooth)

    @property
    def convex(self) -> bool:
        """Whether term and penalty are (sufficient, not necessary)."""
        return self.penalty.convex and (self.term is None or self.term.convex)

    def add(self, penalty: Penalty) -> Part:
        """Return the part with one more penalty."""
        return replace(self, penalty=self.penalty + penalty)

    def convexify(self, w: Array, scores: Array | None) -> Part:
        """Return the convex majorant at `w`."""
        penalty = self.penalty.convexify(w)
        if self.term is None or scores is None:
            return replace(self, penalty=penalty)
        if not self.model.linear:
            raise ValueError("convexify needs a model whose scores are linear in the weights.")
        return replace(self, term=self.term.convexify(scores, w[self.auxiliary]), penalty=penalty)

    def modulus(self) -> float:
        """Return a lower bound on the curvature: negative if weakly convex, -inf if not even so."""
        if self.term is None:
            return self.penalty.modulus
        bend = self.term.weak_curvature()
        if not np.all(np.isfinite(bend)):
            return -np.inf
        return self.penalty.modulus - self.model.curvature(bend)


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The problem :math:`\min_{w \in W} f(w)` subject to :math:`g_j(w) \le 0`.

    Parameters
    ----------
    objective : Part
        f, with one output.
    constraints : tuple of Part
        The parts whose outputs are g_1, ..., g_m.
    domain : Domain
        W.
    n_variables : int or None
        The number of variables; by default the model's parameters and what the terms own.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.losses import Logistic
    >>> from fairconstrained.models import LinearModel
    >>> from fairconstrained.problem import Part, Problem
    >>> from fairconstrained.terms import average
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([-1, 1, -1, 1])
    >>> model, weight = LinearModel(X), np.ones(4)
    >>> parity = DemographicParity(kappa=0.1).bind(y, np.array([0, 0, 1, 1]), weight)
    >>> problem = Problem(Part(model, average(Logistic(), y, weight)), (Part(model, parity),))
    >>> at = problem.at(np.zeros(2))
    >>> round(at.objective, 4), at.constraints, at.violation
    (0.6931, array([-0.1, -0.1]), 0.0)
    """

    objective: Part
    constraints: tuple[Part, ...] = ()
    domain: Domain = field(default_factory=WholeSpace)
    n_variables: int = 0
    meter: Meter = field(default_factory=Meter, repr=False)

    def __post_init__(self) -> None:
        """Count the variables when their number is not given."""
        if not self.n_variables:
            end = max(part.auxiliary.stop for part in self.parts)
            owned = max(m.n_parameters for m in self.models)
            object.__setattr__(self, "n_variables", max(end, owned))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The objective, then the constraints."""
        return (self.objective, *self.constraints)

    @cached_property
    def models(self) -> tuple[Any, ...]:
        """The distinct models of the parts: each makes one pass per evaluation."""
        models = {id(part.model): part.model for part in self.parts if part.model is not None}
        return tuple(models.values())

    @property
    def n_rows(self) -> int:
        """The rows that one pass over all the data reads."""
        return sum(model.full_rows or model.n_rows for model in self.models)

    @property
    def n_constraints(self) -> int:
        """The number m of constraints."""
        return sum(part.n_outputs for part in self.constraints)

    @property
    def names(self) -> list[str]:
        """What each constraint says."""
        return [
            name
            for part in self.constraints
            for name in (part.term.names if part.term else ("penalty",))
        ]

    @property
    def passes(self) -> float:
        """The data passes made so far: one means that every row was read once."""
        return self.meter.rows / max(self.n_rows, 1)

    @property
    def smooth(self) -> bool:
        """Whether all functions have continuous gradients."""
        return all(part.smooth for part in self.parts)

    @property
    def convex(self) -> bool:
        """Whether all functions are convex (sufficient, not necessary)."""
        return all(part.convex for part in self.parts)

    @cached_property
    def modulus(self) -> float:
        """A lower bound on the curvature of all functions, by power iterations on the data."""
        return min(part.modulus() for part in self.parts)

    @property
    def weakly_convex(self) -> bool:
        """Whether a quadratic can make all functions convex."""
        return all(
            part.term is None or bool(np.all(np.isfinite(part.term.weak_curvature())))
            for part in self.parts
        )

    def start(self) -> Array:
        """Return the point 0 of the domain, with the terms' own starts."""
        w = np.zeros(self.n_variables)
        for part in self.parts:
            if part.term is not None and part.term.n_auxiliary:
                w[part.auxiliary] = part.term.auxiliary_start
        return self.domain.project(w)

    def at(self, w: Array) -> Evaluation:
        """Return the evaluation at `w`."""
        return Evaluation(self, np.asarray(w, dtype=float))

    def unmetered(self) -> Problem:
        """Return the same problem with a meter of its own, for measurements that do not count."""
        return replace(self, meter=Meter())

    def with_constraints(self, constraints: Sequence[Part]) -> Problem:
        """Return the problem with other constraints."""
        return replace(self, constraints=tuple(constraints))

    def batch(self, *rows: Array, weights: Sequence[Array] | None = None) -> Problem:
        """Return the problem on batches, its statistics unbiased estimates of the full ones.

        Parameters
        ----------
        *rows : ndarray of int
            One batch for every model, in the order of `models`.
        weights : sequence of ndarray or None, default=None
            For every batch one over the expected number of draws of each row in it.

        Raises
        ------
        ValueError
            If the number of batches is not the number of models.
        """
        if len(rows) != len(self.models):
            raise ValueError(f"batch: {len(self.models)} models need as many, got {len(rows)}.")
        draws: Sequence[Array | None] = weights or [None] * len(rows)
        drawn = {
            id(model): (model.batch(chosen), chosen, weight)
            for model, chosen, weight in zip(self.models, rows, draws, strict=True)
        }

        def take(part: Part) -> Part:
            if part.term is None:
                return part
            model, chosen, weight = drawn[id(part.model)]
            return replace(part, model=model, term=part.term.batch(chosen, weight))

        return self._map(take)

    def strata(self) -> list[Array]:
        """Return, for every model, codes of the cells that each of its rows belongs to."""
        return [
            joint_codes(
                [p.term.strata() for p in self.parts if p.term is not None and p.model is model]
            )
            for model in self.models
        ]

    def proximal(self, center: Array, rho: float) -> Problem:
        r"""Return IPC's subproblem: :math:`\tfrac{\rho}{2}\|w - c\|^2` added to every function.

        Parameters
        ----------
        center : ndarray of shape (n_variables,)
            The centre c.
        rho : float
            The strength; the subproblem is strongly convex where it exceeds minus the modulus.

        References
        ----------
        IPC, equation (4).
        """
        proximity = Proximity(center, rho)
        problem = self._map(lambda part: part.add(proximity))
        if "modulus" in self.__dict__:  # known already: what is added is known as well
            problem.__dict__["modulus"] = self.modulus + rho
        return problem

    def convexify(self, w: Array) -> Problem:
        """Return IDCA's convex problem at `w`, which majorises this one and touches it there.

        References
        ----------
        IDCA, equation (21) and algorithm 1.
        """
        at = self.unmetered().at(w)
        return self._map(lambda part: part.convexify(at.w, at.scores_of(part)))

    def swap(self, bound: float | None = None) -> Problem:
        r"""Return the swapped problem: the least unfairness subject to the loss.

        .. math::
            \min_{w, t} t \quad \text{s.t.} \quad g_j(w) \le t, \quad f(w) \le \text{bound}.

        The new variable t comes last; it is a level of the constraints, so that 0 stands for
        "all of them hold". The problem is smooth if this one is.

        Parameters
        ----------
        bound : float or None, default=None
            The largest objective allowed; None leaves the objective out, which is the problem of
            finding a feasible point.

        References
        ----------
        3S-Econ, Problem 1; IPC, Remark 1 (the start).
        """
        n = self.n_variables
        level = np.zeros(n + 1)
        level[n] = 1.0

        def extend(part: Part, penalty: Penalty) -> Part:
            return replace(part, penalty=LeadingPenalty(part.penalty, n) + penalty)

        constraints = [extend(part, Linear(-level)) for part in self.constraints]
        if bound is not None:
            constraints.append(extend(self.objective, Linear(np.zeros(n + 1), -bound)))
        return replace(
            self,
            objective=Part(None, None, Linear(level)),
            constraints=tuple(constraints),
            domain=LeadingDomain(self.domain, n),
            n_variables=n + 1,
        )

    def _map(self, change: Any) -> Problem:
        objective, *constraints = (change(part) for part in self.parts)
        return replace(self, objective=objective, constraints=tuple(constraints))


class Evaluation:
    """A problem at a point: one forward pass per model, made when first needed and kept.

    Parameters
    ----------
    problem : Problem
        The problem.
    w : ndarray of shape (n_variables,)
        The point.
    """

    def __init__(self, problem: Problem, w: Array):
        self.problem = problem
        self.w = w
        self._scores: dict[int, Array] = {}
        self._passes: dict[int, tuple[Array, Pullback]] = {}

    def scores_of(self, part: Part) -> Array | None:
        """Return the scores of a part's rows, None for a part without a model."""
        model = part.model
        if model is None:
            return None
        if id(model) not in self._scores:
            self._scores[id(model)] = model.scores(self.w[: model.n_parameters])
            self.problem.meter.rows += model.n_rows
        return self._scores[id(model)]

    def _forward(self, part: Part) -> tuple[Array, Pullback]:
        if id(part) not in self._passes:
            assert part.term is not None
            scores = self.scores_of(part)
            assert scores is not None
            self._passes[id(part)] = part.term.forward(scores, self.w[part.auxiliary])
        return self._passes[id(part)]

    def _outputs(self, part: Part) -> Array:
        penalty = part.penalty.value(self.w)
        if part.term is None:
            return np.array([penalty])
        return part.term.head(self._forward(part)[0]) + penalty

    @cached_property
    def objective(self) -> float:
        """f(w)."""
        return float(self._outputs(self.problem.objective)[0])

    @cached_property
    def constraints(self) -> Array:
        """g(w), shape (n_constraints,)."""
        parts = self.problem.constraints
        return np.concatenate([self._outputs(part) for part in parts]) if parts else np.zeros(0)

    @property
    def violation(self) -> float:
        """max(0, max_j g_j(w))."""
        return float(max(self.constraints.max(initial=0.0), 0.0))

    @cached_property
    def strict_constraints(self) -> Array:
        """g(w) with the indicator in place of the surrogate."""
        return self._measure(lambda term, scores, own: term.strict().value(scores, own))

    @property
    def strict_violation(self) -> float:
        """max(0, max_j g_j(w)) with the indicator in place of the surrogate."""
        return float(max(self.strict_constraints.max(initial=0.0), 0.0))

    @cached_property
    def decision_gap(self) -> float:
        """The largest gap that the decisions 1{score > 0} show; nan without constraints."""
        gaps = self._measure(lambda term, scores, own: term.strict().gap(scores, own))
        return float(gaps.max(initial=0.0)) if gaps.size else float("nan")

    def _measure(self, of: Any) -> Array:
        values = [
            of(part.term, self.scores_of(part), self.w[part.auxiliary])
            for part in self.problem.constraints
            if part.term is not None
        ]
        return np.concatenate(values) if values else np.zeros(0)

    def gradient(self, multipliers: Array | None = None, *, objective: float = 1.0) -> Array:
        r"""Return the gradient of :math:`f + \sum_j \lambda_j g_j`: one backward pass per model.

        Parameters
        ----------
        multipliers : ndarray of shape (n_constraints,) or None, default=None
            lambda; None for the objective alone.
        objective : float, default=1.0
            The weight of f; 0 for the constraints alone.
        """
        weights = [np.array([objective])]
        if multipliers is not None and self.problem.constraints:
            ends = np.cumsum([part.n_outputs for part in self.problem.constraints])[:-1]
            weights += np.split(np.asarray(multipliers, dtype=float), ends)
        total = np.zeros(self.problem.n_variables)
        cotangents: dict[int, Array] = {}
        for part, weight in zip(self.problem.parts, weights, strict=False):
            if not np.any(weight):
                continue
            if not isinstance(part.penalty, Zero):
                total += weight.sum() * part.penalty.gradient(self.w)
            if part.term is not None:
                statistics, pullback = self._forward(part)
                on_scores, own = pullback(part.term.head_vjp(statistics, weight))
                total[part.auxiliary] += own
                known = cotangents.get(id(part.model))
                cotangents[id(part.model)] = on_scores if known is None else known + on_scores
        for model in self.problem.models:
            if id(model) in cotangents:
                back = model.vjp(self.w[: model.n_parameters], cotangents[id(model)])
                total[: model.n_parameters] += back
        return total
