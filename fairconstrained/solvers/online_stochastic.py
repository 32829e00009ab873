"""Yu, Neely and Wei's online stochastic method: queues of violations as multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any, Literal

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.descent import (
    Descent,
    SuffixAverage,
    first_multipliers,
    linearised,
)
from fairconstrained.solvers._tools.parameters import Choice, Valid
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers._tools.sampling import StratifiedSampler
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.polished import PolishedSolver
from fairconstrained.solvers.rows import BatchSolver
from fairconstrained.utils.typing import Array

_STEP_ERROR = 0.01  # of the tolerance: the error that a step may have


class OnlineStochastic(BatchSolver, PolishedSolver):
    r"""Online stochastic subgradient method, on batches or on all rows.

    Every constraint has a queue :math:`Q_j`, and a step at a batch :math:`\xi` is

    .. math::
        w^+ = \mathrm{Proj}_W\Big(w - \frac{V \nabla f(w; \xi) + \sum_j Q_j \nabla g_j(w; \xi)}
        {2 \alpha}\Big), \qquad Q_j^+ = \max\{Q_j + g_j(w^+; \xi), 0\},

    so that :math:`Q / V` are multipliers. The queue uses the value of the constraint instead of its
    linearisation in the paper: both need a second product with the batch, and with all rows the
    value is needed by the next step anyway. The result is the average over the second half of the
    run (in the paper over the whole run), moved to a point that meets the constraints on all rows.
    If a step is too long, :math:`\alpha` is increased, see
    :class:`~fairconstrained.solvers._tools.descent.Descent`. Each of these four changes can be
    switched off; :meth:`paper` is the algorithm as published.

    Parameters
    ----------
    V : float or None, default=None
        The weight of the objective, > 0. None takes :math:`M^2 / L`, with the norm M of the
        Jacobian of the constraints and the curvature L of the objective at the start (on the first
        batch).
    alpha : float or None, default=None
        The inverse step size, > 0. None takes :math:`V L / 2`: steps of length 1 / L.
    batch_size : int or None, default=None
        The number of rows drawn per step, the same share of every cell; None takes all rows.
    linearized : bool, default=False
        Whether the queue takes :math:`g_j(w; \xi) + \langle \nabla g_j(w; \xi), w^+ - w \rangle`,
        as the paper does, in place of :math:`g_j(w^+; \xi)`. It costs one backward pass per
        constraint.
    average : {"suffix", "all"}, default="suffix"
        The points that the result is an average of: those of the second half of the run, or all.
    adapt : bool, default=True
        Whether :math:`\alpha` is increased if a step is too long.
    repair : bool, default=True
        Whether the result is moved to a point that meets the constraints on all rows.
    max_iter : int, default=1000
        The number K of steps.
    check_every : int, default=200
        The number of steps between two measurements. Each measurement evaluates all rows, several
        times if feasibility has to be restored.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by sequential quadratic programming
        steps from its best point. If False, estimators try no other solver either.

    Notes
    -----
    The effect of the additions to the published algorithm, measured by ``python -m benchmarks
    additions`` on COMPAS (demographic parity 0.02, 300 data passes; gaps are relative to the best
    objective):
    with the default parameters the gap is 5e-7. With V and alpha of the paper it is 2.3%; with the
    average of all points in place of the suffix average 6e-5. Values in place of linearisations
    save a backward pass per constraint and give the same points there; adapting alpha and the
    repair made no difference.

    References
    ----------
    H. Yu, M. Neely, X. Wei, "Online convex optimization with stochastic constraints", NeurIPS
    2017; IPC, algorithm 3.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.online_stochastic import OnlineStochastic
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=OnlineStochastic())
    >>> clf.fit(X, y, sensitive_features=groups).result_.status.value
    'converged'
    >>> OnlineStochastic.paper(max_iter=2500)
    OnlineStochastic(V=50.0, adapt=False, alpha=2500, average='all',
                     linearized=True, max_iter=2500, polish=False, repair=False)
    """

    def __init__(
        self,
        V: float | None = None,
        alpha: float | None = None,
        *,
        batch_size: int | None = None,
        linearized: bool = False,
        average: Literal["suffix", "all"] = "suffix",
        adapt: bool = True,
        repair: bool = True,
        max_iter: int = 1000,
        check_every: int = 200,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.V = V
        self.alpha = alpha
        self.batch_size = batch_size
        self.linearized = linearized
        self.average = average
        self.adapt = adapt
        self.repair = repair
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @classmethod
    def paper(cls, *, max_iter: int = 10_000, **options: Any) -> OnlineStochastic:
        """Return IPC's algorithm 3 as printed, with V = sqrt(K) and alpha = K.

        The queue takes the linearisation of the constraints, an iterate is the average of all
        points so far, and nothing is adapted or repaired. Objective and violation are then right to
        the order of 1 / sqrt(K) (theorems 1 and 2): 1e-2 after 10,000 steps. The default takes
        steps from the measured curvature.

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best.

        Parameters
        ----------
        max_iter : int, default=10000
            K.
        **options
            Further hyperparameters.
        """
        setting = {"V": sqrt(max_iter), "alpha": max_iter, "max_iter": max_iter}
        plain = {"linearized": True, "average": "all", "adapt": False, "repair": False}
        return cls(**{**setting, **plain, "polish": False, **options})

    @classmethod
    def valid_parameters(cls) -> dict[str, Valid]:
        """Return the valid values of `average` besides those of all solvers."""
        return {**super().valid_parameters(), "average": Choice(("suffix", "all"))}

    def _constants(self, at: Evaluation) -> tuple[float, float]:
        """Return V and alpha."""
        if self.V is not None and self.alpha is not None:
            return self.V, self.alpha
        scales = Scales.near(at, np.random.RandomState(0))
        curvature = scales.curvature or scales.slope or 1.0
        weight = (scales.slope**2 / curvature or 1.0) if self.V is None else self.V
        return weight, 0.5 * weight * curvature if self.alpha is None else self.alpha

    def _values(self, before: Evaluation, after: Evaluation) -> Array:
        """Return what the queue takes in."""
        return linearised(before, after) if self.linearized else after.constraints

    def _averages(self) -> tuple[SuffixAverage, SuffixAverage]:
        """Return what averages the points and the multipliers."""
        restarts = self.average == "suffix"
        return SuffixAverage(restarts=restarts), SuffixAverage(restarts=restarts)

    def _draws(self, problem: Problem, start: Start) -> Callable[[], Problem]:
        """Return what gives the problem of the next step: on a new batch, or on all rows."""
        if self.batch_size is None or self.batch_size >= problem.n_rows:
            return lambda: problem
        return StratifiedSampler(problem, self.batch_size, start.random_state).draw

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the answer so far every `check_every` steps."""
        draw = self._draws(problem, start)
        at = draw().at(start.w)
        weight, alpha = self._constants(at)
        descent = Descent(2.0 * alpha / weight, _STEP_ERROR * start.tol, adapt=self.adapt)
        queue = weight * first_multipliers(problem, start)
        points, prices = self._averages()
        for k in range(1, self.max_iter + 1):
            after, before = descent.step(at, queue / weight), queue
            queue = np.maximum(queue + self._values(at, after), 0.0)
            first = self.average == "all"  # of z_0, ..., z_{K-1}; the other one begins at z_1
            points.add(at.w if first else after.w)
            prices.add((before if first else queue) / weight)
            if self.measures(problem, start, k):
                answer = problem.at(points.mean)
                if self.repair:
                    answer = restore(answer, start.feasible)
                yield Iterate(answer, prices.mean, k)
            drawn = draw()
            at = after if drawn is problem else drawn.at(after.w)
