"""Yu, Neely and Wei's online stochastic method: queues of violations as multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.problem import Problem
from fairconstrained.solvers._tools.descent import Descent, SuffixAverage, first_multipliers
from fairconstrained.solvers._tools.restoration import restore
from fairconstrained.solvers._tools.sampling import StratifiedSampler
from fairconstrained.solvers._tools.scales import Scales
from fairconstrained.solvers.base import Iterate, Solver, Start

_SLACK = 0.01  # of the tolerance: what a step may err by


class OnlineStochastic(Solver):
    r"""Online stochastic subgradient method, on batches or on all rows.

    Every constraint has a queue :math:`Q_j`, and a step at a batch :math:`\xi` is

    .. math::
        w^+ = \mathrm{Proj}_W\Big(w - \frac{V \nabla f(w; \xi) + \sum_j Q_j \nabla g_j(w; \xi)}
        {2 \alpha}\Big), \qquad Q_j^+ = \max\{Q_j + g_j(w^+; \xi), 0\},

    so that :math:`Q / V` are multipliers. The queue takes the constraint's value where the paper
    takes its linearisation: either is a second product with the batch, and with all rows the value
    is the next step's. The answer is the average over the later half of the run (the paper: over
    all of it), moved to where all rows meet the constraints. Where a step overshoots,
    :math:`\alpha` is raised, see :class:`~fairconstrained.solvers._tools.descent.Descent`.

    Parameters
    ----------
    V : float or None, default=None
        The weight of the objective, > 0. None takes :math:`M^2 / L`, with the norm M of the
        constraints' Jacobian and the curvature L of the objective as measured at the start
        (on the first batch).
    alpha : float or None, default=None
        None takes :math:`V L / 2`: steps of length 1 / L.
    batch_size : int or None, default=None
        The rows drawn per step, the same share of every cell; None takes all.
    max_iter : int, default=1000
        The number K of steps.
    check_every : int, default=200
        Steps between two measurements. Each evaluates all rows, a few times where the constraints
        have to be restored.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that ends short of `tol` is finished by sequential quadratic programming steps
        from its best point, see :attr:`Solver.polish`.

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
    OnlineStochastic(V=50.0, alpha=2500, max_iter=2500, polish=False)
    """

    def __init__(
        self,
        V: float | None = None,
        alpha: float | None = None,
        *,
        batch_size: int | None = None,
        max_iter: int = 1000,
        check_every: int = 200,
        tol: float = 1e-4,
        polish: bool = True,
    ):
        self.V = V
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol
        self.polish = polish

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a problem must have: terms that take batches, unless every step uses all rows."""
        return () if self.batch_size is None else ("batchable",)

    @classmethod
    def paper(cls, *, max_iter: int = 10_000, **options: Any) -> OnlineStochastic:
        """Return the paper's setting: V = sqrt(K), alpha = K.

        Objective and violation are then right to the order of 1 / sqrt(K) (theorems 1 and 2):
        1e-2 after 10,000 steps. The default takes steps from the measured curvature.

        Parameters
        ----------
        max_iter : int, default=10000
            K.
        **options
            Further hyperparameters.
        """
        setting = {"V": sqrt(max_iter), "alpha": max_iter, "max_iter": max_iter, "polish": False}
        return cls(**{**setting, **options})

    def _constants(self, at: Evaluation) -> tuple[float, float]:
        """Return V and alpha."""
        if self.V is not None and self.alpha is not None:
            return self.V, self.alpha
        scales = Scales.near(at, np.random.RandomState(0))
        curvature = scales.curvature or scales.slope or 1.0
        weight = (scales.slope**2 / curvature or 1.0) if self.V is None else self.V
        return weight, 0.5 * weight * curvature if self.alpha is None else self.alpha

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
        descent = Descent(2.0 * alpha / weight, _SLACK * start.tol)
        queue = weight * first_multipliers(problem, start)
        points, prices = SuffixAverage(), SuffixAverage()
        for k in range(1, self.max_iter + 1):
            after = descent.step(at, queue / weight)
            queue = np.maximum(queue + after.constraints, 0.0)
            points.add(after.w)
            prices.add(queue / weight)
            if self.measures(problem, start, k):
                answer = restore(problem.at(points.mean), start.feasible)
                yield Iterate(answer, prices.mean, k)
            drawn = draw()
            at = after if drawn is problem else drawn.at(after.w)
