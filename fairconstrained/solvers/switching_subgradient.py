"""The switching subgradient method: an oracle of convex problems and a solver of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.first_order import Average, FirstOrderSolver, Rows, worst_constraint
from fairconstrained.solvers.step_rules import (
    PolyakSteps,
    StaticTolerance,
    StepRule,
    StronglyConvexSteps,
)
from fairconstrained.utils.parameter_constraints import COUNT, ParameterConstraints


@dataclass(eq=False, repr=False)
class SwitchingSubgradient(FirstOrderSolver):
    r"""Switching subgradient method (SSG), for any problem with subgradients.

    A step follows the subgradient of the objective if :math:`G = \max_j g_j` is at most the
    tolerance, else the subgradient of G. On strongly convex problems (the subproblems of IPC) it
    uses the step sizes of IPC and returns the weighted average of the feasible points. On other
    problems it uses Polyak's step sizes and returns the best feasible point, or the point of least
    violation. A point counts as feasible if it meets the tolerance of its own step.

    Parameters
    ----------
    steps : StepRule or None, default=None
        The step sizes; None chooses as above.
    batch_size : int or None, default=None
        The number of rows of a mini-batch, see :class:`StochasticSwitchingSubgradient`; None takes
        all rows.
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by second-order steps from its best
        point, see :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no
        other solver either.

    References
    ----------
    IPC, algorithm 2; IDCA, algorithms 2 and 3; Y. Huang, Q. Lin, "Oracle complexity of single-loop
    switching subgradient methods", NeurIPS 2023.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import SwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=SwitchingSubgradient())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "steps": [StepRule, None],
        "batch_size": [COUNT, None],
    }

    steps: StepRule | None = None
    _: KW_ONLY
    batch_size: int | None = None

    @classmethod
    def paper(cls, **options: Any) -> SwitchingSubgradient:
        """Return IDCA's setting: a static tolerance of 1e-3 for 50,000 steps.

        The answer violates by up to this tolerance, which is therefore `tol` as well, unless other
        steps are given. The theory's number of steps is of the order of its inverse to the fourth
        power. With :class:`DiminishingTolerance` the answer is one of the first points, and
        violates.

        `iterate` yields the printed answer so far; of the measured ones `minimize` returns the
        best.

        Parameters
        ----------
        **options
            Further hyperparameters, for instance ``steps=DiminishingTolerance(0.5)``.
        """
        steps = StaticTolerance()
        setting = {} if "steps" in options else {"steps": steps, "tol": steps.epsilon}
        run = {"max_iter": 50_000, "check_every": 1000, "polish": False}
        return cls(**{**setting, **run, **options})

    def _rule(self, problem: Problem) -> StepRule:
        if self.steps is not None:
            return self.steps
        known = problem.modulus if problem.weakly_convex else -np.inf
        return StronglyConvexSteps(known) if known > 0.0 else PolyakSteps()

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps.

        It is the average of the feasible points, weighted by k + 1, or the best point.
        """
        rule = self._rule(problem)
        rows = Rows(problem, start, self.batch_size, self.check_every)
        curvature = rows.constants()[0] if isinstance(rule, PolyakSteps) else 0.0
        at = best = rows.draw(start.w).at
        mean, least = Average(), (np.inf, np.inf)
        for k in range(self.max_iter):
            tolerance = rule.tolerance(k, start.feasibility_tol)
            level, worst = worst_constraint(at.constraints)
            descends = level <= tolerance
            rank = (0.0 if descends else level, at.objective)
            if rule.averages and descends:
                mean.add(at.w, k + 1.0)
            elif rank < least:
                best, least = at, rank
            direction = at.gradient(None if descends else worst, objective=float(descends))
            norm = max(float(direction @ direction), 1e-300)
            if descends:
                length = rule.descent(k, tolerance, norm, curvature)
            else:
                length = rule.restoration(k, level, norm)
            fade = rows.fade(k / self.max_iter)
            at = rows.draw(problem.domain.project(at.w - fade * length * direction)).at
            if self.measures(problem, start, k + 1):
                if rows.sampled:
                    answers = rows.answers(at, last=k + 1 == self.max_iter)
                elif rule.averages:
                    answers = [problem.at(mean.mean) if mean.total else at]
                else:
                    answers = [best]
                for answer in answers:
                    yield Iterate(answer, None, k + 1)


@dataclass(eq=False, repr=False)
class StochasticSwitchingSubgradient(SwitchingSubgradient):
    r"""Switching subgradient method on mini-batches (SSG-S).

    Subgradients, and the values that decide between objective and constraints, come from stratified
    batches. Steps shrink over the run by (1 - k / K)^2, and the result is an average of recent
    points. The paper prints no algorithm for its SSG-S, so that there is no setting of its own.

    Parameters
    ----------
    steps : StepRule or None, default=None
        The step sizes, see :class:`SwitchingSubgradient`.
    batch_size : int or None, default=512
        The number of rows of a batch.
    max_iter : int, default=600
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by second-order steps from its best
        point, see :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no
        other solver either.

    References
    ----------
    3S-Econ, section 5.4 (SSG-S), compares with it.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers import StochasticSwitchingSubgradient
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> solver = StochasticSwitchingSubgradient(batch_size=100, tol=0.1)
    >>> clf = FairLogisticClassifier(kappa=0.1, solver=solver, random_state=0)
    >>> clf.fit(X, y, sensitive_features=groups).violation_ <= 0.1
    True
    """

    _: KW_ONLY
    batch_size: int | None = 512
    max_iter: int = 600
