"""Sequential quadratic programming with a trust region, and the methods that take its steps."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from fairconstrained.problem import Evaluation, Problem
from fairconstrained.problem.composite import Multipliers
from fairconstrained.problem.kkt import FAR, KKT, is_stuck, objective_scale
from fairconstrained.solvers.base import Iterate, Solver, Start
from fairconstrained.solvers.curvature import Curvature, ExactHessian, Linearised, QuasiNewton, Step
from fairconstrained.solvers.result import Result, SolverState, Status
from fairconstrained.utils.arrays import Array
from fairconstrained.utils.parameter_constraints import AboveOne, Limit, Positive

_LARGE_CAP = 100.0  # losses per gap are often 10: only larger multipliers are signs of no interior
_CAP_LIMIT = 1e6  # of the sum of the multipliers: the weight of the exact penalty
_LEAST_PRICE = 0.1  # of violations in the merit function: multipliers start at zero
_POOR, _GOOD = 0.1, 0.75  # actual over predicted decrease: a step is rejected, the shift falls
_KEPT = 0.1  # of the error, left by a step: the Hessian need not be computed again
_MOST_FAILURES = 12  # rejected steps in a row; the shift has then grown by 4^12
_MOST_STILL = 3  # steps for feasibility that would lower it by less than a tenth of the tolerance
_ROUNDING = 1e-13  # relative, of objectives: sums over rows lose some digits


class SQP(Solver, kw_only=True):
    r"""Sequential quadratic programming with a trust region, for smooth problems.

    Every step solves

    .. math::
        \min_s \langle \nabla f(w), s \rangle + \tfrac12 s^\top (B + \delta I) s + \rho \max_j
        \big(g_j(w) + \langle \nabla g_j(w), s \rangle\big)_+

    through its dual, which has a variable per nearly active constraint. B is the Hessian of the
    Lagrangian where it costs little (:attr:`Problem.twice_differentiable`), else its L-BFGS
    approximation; from the first step on that leaves the domain it is a multiple of the identity,
    so that steps are projections. The shift :math:`\delta` plays the part of a trust region: it
    grows when the merit function :math:`f(w) + \pi \max_j g_j(w)_+` falls short of the prediction,
    and vanishes near a solution, where steps are Newton's. rho is only large enough for the steps
    to approach the constraints; it grows where these cannot be met, and the run ends at a point of
    least violation. Where constraints are nearly met but no step meets them better, as in problems
    without an interior, steps aim at a violation of `tol` / 6 or less: multipliers are bounded.

    A Hessian counts as a data pass.

    Parameters
    ----------
    memory : int or None, default=None
        The number of pairs of L-BFGS. None takes the Hessian where it costs little, else 30 pairs;
        with 0 the model of the Lagrangian is linear.
    max_iter : int, default=1000
        The maximum number of trial steps, each of which is one evaluation.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical Optimization", 2006, chapters 4 and 18; C. Cartis, N. Gould,
    P. Toint, "On the evaluation complexity of composite function minimization with applications to
    nonconvex nonlinear programming", SIAM Journal on Optimization 21 (2011); damping of L-BFGS is
    Powell's (1978).

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import SQP
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=SQP()).fit(X, y, sensitive_features=groups)
    >>> clf.result_.status.value
    'converged'
    """

    requires: ClassVar[tuple[str, ...]] = ("smooth",)
    preferred_with: ClassVar[tuple[str, ...]] = ("n_constraints", "few_columns_or_whole_space")
    rho, growth = 10.0, 10.0  # the first weight of the exact penalty, and the factor of its growth

    memory: Limit | None = None

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the points that are moved to."""
        if self.memory is None and problem.twice_differentiable:
            hessian = start.left_by(SQP).hessian
            fits = hessian is not None and len(hessian) == problem.n_variables
            model: Curvature = ExactHessian(hessian if fits else None)
        else:
            memory = 30 if self.memory is None else self.memory
            model = QuasiNewton(problem.preconditioner**2, memory)
        run = Steps(self, start.at(problem), model, start)
        for k in range(1, self.max_iter + 1):
            moved = run.step()
            if moved or run.failure is not None or start.passes_used_up(problem):
                state = SolverState(SQP, hessian=run.curvature.matrix)
                yield Iterate(run.at, run.multipliers, k, state, run.failure)


def next_step(at: Evaluation, result: Result) -> tuple[Array, Array] | None:
    """Return one more step from a solution, with its last Hessian, and the multipliers after it.

    It uses only what is known at the solution, so that it makes no data pass. The point after it is
    more accurate, but has no certificate. It is None where the solver knows no Hessian.
    """
    hessian = (result.state or SolverState(SQP)).hessian
    if hessian is None:
        return None
    active, curvature = Multipliers.of(result.multipliers), ExactHessian(hessian)
    model = Linearised(at, active)
    curvature.prepare(model, active)
    curvature.shifted(0.0)
    step = model.solve(curvature, _CAP_LIMIT, active)
    return step.s, step.multipliers.dense()


class ExactPenalty(SQP):
    """The exact penalty method: :class:`SQP` that learns the curvature from gradients alone.

    Parameters
    ----------
    rho : float, default=10.0
        The first weight of the largest violation, > 0.
    growth : float, default=10.0
        The factor by which rho grows where it holds a step back from the constraints, > 1.
    memory : int, default=30
        The number of pairs of L-BFGS; with 0 the model is linear, as in the cited article.
    max_iter, tol
        See :class:`SQP`.

    References
    ----------
    Cartis, Gould and Toint 2011, see :class:`SQP`, the quadratic regularization method; IPC,
    section 5 compares with it.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import ExactPenalty
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ExactPenalty())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    preferred_with: ClassVar[tuple[str, ...]] = ("in_epigraph_form",)

    rho: Positive = 10.0
    _: KW_ONLY
    growth: AboveOne = 10.0
    memory: Limit | None = 30

    @classmethod
    def paper(cls, **options: Any) -> "ExactPenalty":
        """Return the exact penalty method of the comparison in IPC, section 5.

        The paper cites Cartis, Gould and Toint (2011) and tunes the parameters; neither the
        algorithm nor their values are printed. This is the cited article's method with a linear
        model and a quadratic regularisation. For the printed coordinates see :meth:`PLADA.paper`.
        Options are further hyperparameters.
        """
        return cls(**{"memory": 0, "max_iter": 5000, **options})


class Steps:
    """The steps of a run: the point, its linearisation, the shift and the penalty."""

    def __init__(self, solver: SQP, at: Evaluation, curvature: Curvature, start: Start):
        # No shift would make the Hessian positive, and the dual of the step has no solution.
        if np.isnan(at.objective) or np.isnan(at.violation):
            raise ValueError(
                "The objective or a constraint is not a number (NaN) where the solver starts: X "
                "has values that are not finite, or a loss, a surrogate or a penalty of your own "
                "returns NaN."
            )
        self.curvature, self.tol = curvature, start.tol
        self.cap, self.growth = solver.rho, solver.growth
        self.shift = self.share = 0.0
        self.failure: Status | None = None
        self.error, self.failed, self.still = np.inf, 0, 0
        first = Multipliers.of(start.multipliers, at.problem.n_constraints)
        self._move(at, first, Linearised.width)

    def _move(self, at: Evaluation, multipliers: Multipliers, width: float) -> None:
        """Take a point; its Hessian only where the last one did not serve well."""
        self.at, self.multipliers = at, multipliers
        self.model = Linearised(at, multipliers, width, self.tol, self.share * objective_scale(at))
        if self.curvature.exact:
            before, self.error = self.error, KKT.of(at, multipliers).error
            if not self.error <= _KEPT * before < np.inf:
                self.curvature.prepare(self.model, multipliers)

    def step(self) -> bool:
        """Try a step; return whether it was taken."""
        at, model, curvature = self.at, self.model, self.curvature
        used = curvature.shifted(self.shift)
        step = model.solve(curvature, self.cap, self.multipliers)
        if self._leaves(step):
            curvature = self.curvature = Curvature()
            used = curvature.shifted(0.0)
            step = model.solve(curvature, self.cap, self.multipliers)
        if self._cannot_be_met(step):
            self.failure = Status.INFEASIBLE
            return False
        # The merit function is exact for prices above the sum of the multipliers. Twice the sum
        # leaves room for them to grow; much more would make steps along the constraints short.
        price = max(_LEAST_PRICE, 2.0 * step.multipliers.total)
        fall = max(at.violation - model.level, 0.0) - step.violation
        predicted = price * fall - float(model.gradient @ step.s)
        predicted -= 0.5 * (step.bent - curvature.added(step.s))
        trial, taken = at.problem.at(at.w + step.s), step
        merit = self._merit(at, price)
        # Near a solution both decreases are rounding errors, and their ratio is made one.
        noise, ratio = _ROUNDING * (1.0 + abs(at.objective)), 0.0
        if predicted > -noise:
            ratio = (merit - self._merit(trial, price) + noise) / (predicted + noise)
        if ratio < _POOR and trial.violation > at.violation and len(step.multipliers.which):
            # Constraints bend away from their tangents (Maratos): once more, from their values
            # after the step. The ratio is measured, not set: else the shift would never fall.
            corrected = model.solve(curvature, self.cap, step.multipliers, (trial, step.s))
            second = at.problem.at(at.w + corrected.s)
            fall = merit - self._merit(second, price)
            if fall > _POOR * predicted and not self._leaves(corrected):
                trial, ratio, taken = second, fall / predicted, corrected
        accepted = ratio >= _POOR
        if accepted:
            # Between poor and good the model is as right as it can be at this length of steps.
            self.failed, self.shift = 0, curvature.lowered(used) if ratio > _GOOD else used
            # Those that the step has moved most may be the next ones: all count that can be listed.
            which: Any = slice(None) if at.lists else model.near
            change = np.abs(trial.values(which) - at.values(which)).max(initial=0.0)
            self._move(trial, step.multipliers, 2.0 * float(change))
        if not curvature.exact and np.isfinite(trial.objective):
            # After the point is taken: gradients of few statistics are one product with X. The
            # image of the step is the negative gradient of the Lagrangian before it.
            change = trial.gradient(step.multipliers) + step.image
            curvature.update(taken.s, change, taken.image)
        if not accepted:
            self._reject(step, used)
        return accepted

    def _leaves(self, step: Step) -> bool:
        """Return whether a step that is no projection ends outside of the domain."""
        w = self.at.w + step.s
        return not (self.curvature.projects or np.array_equal(self.at.problem.domain.project(w), w))

    def _cannot_be_met(self, step: Step) -> bool:
        """Raise the penalty where it holds a step back; return whether the violation is least."""
        at, allowed = self.at, self.tol / 3.0  # by a certificate
        if step.multipliers.total < 0.999 * self.cap:
            self.still = 0
            return False
        nearly_met = min(at.violation, step.violation) <= allowed
        if nearly_met and not self.share and self.cap >= _LARGE_CAP:
            # No step meets the constraints exactly: they have no interior, and their multipliers
            # would grow without bound. They stay bounded if a part of the tolerance is used.
            self.share, self.still = 0.5 * allowed, 0
            self.model.level = self.share * objective_scale(at)
            return False
        self.cap = min(self.growth * self.cap, _CAP_LIMIT)
        still = at.violation - step.violation <= 0.1 * self.tol
        # A test costs as much as a step: the third such step in a row is tested, the sixth, ...
        self.still = self.still % _MOST_STILL + 1 if still else 0
        return self.still == _MOST_STILL and is_stuck(at, self.tol, step.multipliers)

    def _reject(self, step: Step, used: float) -> None:
        """Learn from a step that was too long."""
        self.failed += 1
        stronger = step.multipliers.total > 2.0 * self.multipliers.total + 1e-3
        if self.failed == 1 and self.curvature.exact and stronger:
            # The Hessian lacks the curvature of constraints that were not active before. Their
            # multipliers are known now: strongly convex ones need it, not a shift.
            self.multipliers = step.multipliers
            self.curvature.prepare(self.model, step.multipliers)
            return
        self.shift = self.curvature.raised(used, step.s, step.bent)
        if self.failed > _MOST_FAILURES:
            self.failure = Status.STALLED

    def _merit(self, at: Evaluation, price: float) -> float:
        """Return the exact penalty function; infinite where something overflowed."""
        value = at.objective + price * max(at.violation - self.model.level, 0.0)
        return value if np.isfinite(value) else np.inf


# Of the first round; later rounds divide it by ten. The first multipliers are far from those of
# the solution, so that a more accurate minimiser would be of no use.
_FIRST_TOL = 1e-2
_INFEASIBLE_GROWTH = 30.0  # of sigma, from which on a point is tested for infeasible stationarity
_MAX_GROWTH = 1e9  # of sigma; beyond it the objective is lost in rounding errors
_MIN_REDUCTION = 0.03  # of the gradient in one round; the new multipliers raise it again


class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method with L-BFGS, for smooth problems.

    Every round minimises, to a tolerance that decreases from round to round,

    .. math::
        f(w) + \frac{1}{2\sigma} \sum_j \big(\max\{\lambda_j + \sigma g_j(w), 0\}^2
        - \lambda_j^2\big)

    and sets :math:`\lambda_j \leftarrow \max\{\lambda_j + \sigma g_j(w), 0\}`. sigma grows if the
    violation decreases too slowly. Every evaluation is one forward and one backward pass for any
    number of constraints. Steps are those of :class:`SQP` with L-BFGS, whose curvature pairs are
    kept from round to round; where they leave the domain they are projected gradient steps.

    Parameters
    ----------
    sigma : float, default=3.0
        The first penalty parameter, > 0.
    growth : float, default=2.0
        The factor by which sigma grows, > 1.
    max_iter : int, default=100
        The maximum number of rounds.
    max_inner : int, default=1000
        The maximum number of L-BFGS iterations in a round.
    tol, polish
        See :class:`Solver`.

    References
    ----------
    IPC, Remark 2; D. Bertsekas, "Constrained Optimization and Lagrange Multiplier Methods", 1982.

    Examples
    --------
    >>> from fairconstrained.solvers import AugmentedLagrangian
    >>> AugmentedLagrangian(sigma=1.0)
    AugmentedLagrangian(sigma=1.0)
    """

    requires: ClassVar[tuple[str, ...]] = ("smooth",)

    sigma: Positive = 3.0
    _: KW_ONLY
    growth: AboveOne = 2.0
    max_iter: Limit = 100
    max_inner: Limit = 1000
    polish: bool = True

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the outcome of every round."""
        at, multipliers = start.at(problem), start.first_multipliers(problem.n_constraints)
        last = start.left_by(AugmentedLagrangian, self.sigma, max(_FIRST_TOL, 0.9 * start.tol))
        sigma, tol, before = last.parameter, last.tol, np.inf
        # Pairs of another run are not taken over: with kinks they led to worse local solutions.
        model: Curvature = QuasiNewton(problem.preconditioner**2)
        for k in range(1, self.max_iter + 1):
            # The last rounds are as accurate as the certificate asks for, and no more.
            tol = max(tol, 0.9 * start.tol * objective_scale(at))
            kind = partial(_Augmented, problem, multipliers, sigma)
            begin = replace(problem, constraints=(), kind=kind).at(at.w, like=at)
            steps = Steps(SQP(), begin, model, replace(start, multipliers=None))
            least = 0.0
            for _ in range(self.max_inner):
                residual = problem.domain.normal_cone_residual(steps.at.w, steps.model.gradient)
                stationarity = float(np.linalg.norm(residual))
                least = least or max(tol, _MIN_REDUCTION * stationarity)
                if stationarity <= least or steps.failure or start.passes_used_up(problem):
                    break
                steps.step()
            model, end = steps.curvature, cast("_Augmented", steps.at)
            at, error = end.plain, np.abs(end.multipliers - multipliers).max(initial=0.0) / sigma
            multipliers = end.multipliers
            tol *= 0.1
            state = SolverState(AugmentedLagrangian, sigma, tol)
            # A large penalty and a point where the violation cannot fall show that the
            # constraints have no common solution nearby; convex ones show it at any penalty.
            growth, failure = sigma / self.sigma, None
            if problem.convex and is_stuck(at, start.tol, end.active, reach=FAR):
                failure = Status.INFEASIBLE
            elif growth >= _MAX_GROWTH or (
                growth >= _INFEASIBLE_GROWTH and is_stuck(at, start.feasibility_tol, end.active)
            ):
                failure = Status.STALLED
            yield Iterate(at, end.active, k, state, failure)
            # Multipliers converge linearly, by a factor of the order of 1 / sigma. A larger sigma
            # makes the rounds harder: it grows only where a round did not halve the error.
            if error > 0.5 * before and error > 0.5 * start.tol:
                sigma *= self.growth
            before = error


class _Augmented(Evaluation):
    """An augmented Lagrangian at a point, which is that of a problem without constraints.

    It is made from `like`, the evaluation of the problem at the point, if that is there.
    """

    def __init__(self, plain: Problem, multipliers: Array, sigma: float, *at: Any, like: Any):
        super().__init__(*at)
        self.plain = plain.at(self.w) if like is None else like
        self.multipliers = after = np.maximum(multipliers + sigma * self.plain.constraints, 0.0)
        self.active = Multipliers.of(after)  # the same object: gradients are kept for it
        growth = float(after @ after - multipliers @ multipliers)
        self.objective = self.plain.objective + growth / (2.0 * sigma)

    def gradient(self, *_: Any, **others: Any) -> Array:
        """Return the gradient: there are no constraints with multipliers of their own."""
        return self.plain.gradient(self.active)
