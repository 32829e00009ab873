"""Yu, Neely and Wei's online stochastic method: queues of violations as multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.first_order import Average, FirstOrderSolver, Rows, linearised
from fairconstrained.utils.parameter_constraints import COUNT, POSITIVE, ParameterConstraints


@dataclass(eq=False, repr=False)
class OnlineStochastic(FirstOrderSolver):
    r"""Online stochastic subgradient method, on batches or on all rows.

    Every constraint has a queue :math:`Q_j`, and a step at a batch :math:`\xi` is

    .. math::
        w^+ = \mathrm{Proj}_W\Big(w - \frac{V \nabla f(w; \xi) + \sum_j Q_j \nabla g_j(w; \xi)}
        {2 \alpha}\Big), \qquad Q_j^+ = \max\{Q_j + g_j(w; \xi)
        + \langle \nabla g_j(w; \xi), w^+ - w \rangle, 0\},

    so that :math:`Q / V` are multipliers. The printed answer is the average of all points, and that
    of the multipliers; with all rows the last point is measured as well. A linearisation takes a
    backward pass for every statistic that the constraints depend on, the value at the new point an
    evaluation, which with all rows is that of the next step. If every constraint is determined by a
    block of rows, a batch has whole blocks, and only the queues of their constraints change.

    Parameters
    ----------
    V : float or None, default=None
        The weight of the objective, > 0. None takes :math:`M^2 / L`, with the norm M of the
        Jacobian of the constraints and the curvature L of the objective at the start (on the first
        batch).
    alpha : float or None, default=None
        The inverse step size, > 0. None takes :math:`V L`: steps of length 1 / (2 L).
    batch_size : int or None, default=None
        The number of rows drawn per step, the same share of every cell; None takes all rows.
    linearized : bool, default=False
        Whether the queues take the linearisation, as printed, or the value :math:`g_j(w^+; \xi)`.
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
    OnlineStochastic(V=50.0, alpha=2500, linearized=True, max_iter=2500,
                     polish=False)
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "V": [POSITIVE, None],
        "alpha": [POSITIVE, None],
        "batch_size": [COUNT, None],
        "linearized": ["boolean"],
    }

    V: float | None = None
    alpha: float | None = None
    _: KW_ONLY
    batch_size: int | None = None
    linearized: bool = False

    @classmethod
    def paper(cls, *, max_iter: int = 10_000, **options: Any) -> OnlineStochastic:
        """Return IPC's algorithm 3 as printed, with V = sqrt(K) and alpha = K.

        Objective and violation are then right to the order of 1 / sqrt(K) (theorems 1 and 2): 1e-2
        after 10,000 steps. The default takes steps from the measured curvature.

        `iterate` yields the printed iterates, with all rows each after the last point; of the
        measured ones `minimize` returns the best.

        Parameters
        ----------
        max_iter : int, default=10000
            K.
        **options
            Further hyperparameters.
        """
        setting = {"V": sqrt(max_iter), "alpha": max_iter, "linearized": True}
        return cls(**{**setting, "max_iter": max_iter, "polish": False, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the last point and the average so far every `check_every` steps."""
        rows = Rows(problem, start, self.batch_size)
        weight, alpha = self._constants(rows)
        queue = weight * start.first_multipliers(problem.n_constraints)
        points, multipliers = Average(), Average()
        drawn = rows.draw(start.w)
        for k in range(1, self.max_iter + 1):
            at, j = drawn.at, drawn.constraints  # a constraint that is not drawn keeps its queue
            points.add(at.w)
            multipliers.add(queue / weight)
            gradient = at.gradient(drawn.weight * queue[j] / weight)
            w = problem.domain.project(at.w - weight / (2.0 * alpha) * gradient)
            after = at.problem.at(w, like=at)
            values = linearised(at, w) if self.linearized else after.constraints
            queue[j] = np.maximum(queue[j] + values, 0.0)
            if self.measures(problem, start, k):
                if not rows.sampled:
                    yield Iterate(after, queue / weight, k)
                yield Iterate(problem.at(points.mean), multipliers.mean, k)
            drawn = rows.draw(w, like=after)

    def _constants(self, rows: Rows) -> tuple[float, float]:
        """Return V and alpha."""
        if self.V is not None and self.alpha is not None:
            return self.V, self.alpha
        curvature, slope = rows.constants()
        weight = slope**2 / curvature if self.V is None else self.V
        return weight, weight * curvature if self.alpha is None else self.alpha
